"""Summaries and bins of what lies in the partitions of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.params import BinMethod
from boostbins.bins import Bins
from boostbins.dask.partitions import Parts, Reader, opened
from boostbins.fit import cells_for, checked_max_bins, default_bins, fit_summary
from boostbins.methods import Method, may_look_at_target, method_named
from boostbins.methods.budget import Total, TotalBins
from boostbins.sources.request import NonNumeric, Request
from boostbins.sources.values import checked_target, checked_weight, numbered_classes
from boostbins.summary.column import MAX_CELLS, ColumnSummary
from boostbins.summary.ranges import Ranges, ranges_of_summary
from boostbins.summary.rows import RowSample
from boostbins.summary.table import ALL_OF_TARGET, OfTarget, TableSummary, summarize_column

_AT_ONCE = 8  # summaries that are added by one task
_COLUMNS = 16  # that are added, and cut, by one task


def fit_bins(
    X: Any,
    method: str | Method = "kmeans",
    max_bins: int | Sequence[int] | Mapping[str, int] | None = None,
    sample_weight: Any = None,
    *,
    y: Any = None,
    columns: Sequence[str] | None = None,
    total_bins: TotalBins = None,
    average_bins: float | None = None,
    exact: bool = False,
    non_numeric: NonNumeric = "error",
    dates_as_numbers: bool = False,
    client: Any = None,
) -> Bins:
    """Return bins for every column of a Dask collection, the same as `boostbins.fit_bins` of all its rows in memory.

    No rows are moved: what comes back from the cluster is the bins (with a total of bins, the summaries).

    Parameters
    ----------
    X : Dask DataFrame or Array
        In any partitions.
    method, max_bins, columns, total_bins, average_bins, exact, non_numeric, dates_as_numbers
        As for `boostbins.fit_bins`.
    sample_weight, y : name of a column, or Dask Series or Array with the partitions of X, optional
    client : distributed.Client, optional
        The current one, if not given; without any, Dask's threads do the work.

    Examples
    --------
    >>> import dask.array as da
    >>> fit_bins(da.random.default_rng(0).lognormal(0, 2, (10_000, 2), chunks=(1000, 2)), max_bins=63)
    Bins(x0: 63, x1: 63)
    """
    find = method_named(method)
    parts = opened(X, Request(columns, {"sample_weight": sample_weight, "y": y}, non_numeric, dates_as_numbers))
    names = parts.reader.names
    if not names:
        raise ValueError("X has no columns to bin")
    total = Total(total_bins, average_bins)
    max_bins = default_bins(total) if max_bins is None else max_bins
    budgets = dict(zip(names, checked_max_bins(max_bins, names), strict=True))
    max_cells = None if exact else max(map(cells_for, budgets.values()))

    def cut(summary: TableSummary) -> Bins:
        own = [budgets[name] for name in summary.names]
        return fit_summary(summary, find, own, total=total.of(len(own)), exact=exact, n_threads=1)

    needs = OfTarget(sums=may_look_at_target(find), rows=bool(total))
    return _cut_on_cluster(parts, cut, max_cells, client, needs)[0]


def summarize(
    X: Any,
    sample_weight: Any = None,
    *,
    y: Any = None,
    columns: Sequence[str] | None = None,
    max_cells: int | None = MAX_CELLS,
    non_numeric: NonNumeric = "error",
    dates_as_numbers: bool = False,
    client: Any = None,
) -> TableSummary:
    """Return the summary of a Dask collection, equal to `boostbins.summarize` of all its rows in memory.

    Parameters
    ----------
    X, sample_weight, y, columns, non_numeric, dates_as_numbers, client
        As for `fit_bins`.
    max_cells : int or None
        Cells per column: enough for a quarter as many bins. None: every distinct value.

    Examples
    --------
    >>> import dask.array as da
    >>> summarize(da.ones((10, 1), chunks=3))
    TableSummary(10 rows; x0: 1 distinct values)
    """
    parts = opened(X, Request(columns, {"sample_weight": sample_weight, "y": y}, non_numeric, dates_as_numbers))
    return _fetched(parts, max_cells, client, ALL_OF_TARGET)


def requested_bins(
    bin_method: BinMethod,
    parts: Parts,
    cut: Callable[[str | Method | Bins, TableSummary], Bins],
    max_bin: int,
    client: Any,
    kept: OfTarget,
) -> tuple[Bins, Ranges]:
    """Return the bins that an estimator's `bin_method` asks for, found on the cluster, and the ranges of the columns.

    `cut` makes them of a summary, of some columns or of all together; of ready bins it is given the ranges only.
    """
    assert bin_method is not None
    if not isinstance(bin_method, Bins):
        return _cut_on_cluster(parts, partial(cut, bin_method), cells_for(max_bin), client, kept)
    summary = _side_by_side(computed(_summed(parts, None, ALL_OF_TARGET, counted=False), client))
    names = parts.reader.names
    if parts.reader.dtypes is None and len(bin_method) == len(names):  # an array has no names of its own
        choices = [bin_method.choices.get(name) for name in bin_method.names]
        shares = [bin_method.shares.get(name) for name in bin_method.names]
        bin_method = Bins(bin_method.cuts, names, bin_method.stats, choices, shares=shares)
    return cut(bin_method, summary), ranges_of_summary(summary)


def with_classes(parts: Parts, client: Any) -> Parts:
    """Return the partitions of a classifier's rows with its labels as in memory: whether a row is of each class."""
    labels = parts.per_row.get("y")
    if labels is None:
        return parts
    found = [some for some in computed([dask.delayed(_labels_in)(part) for part in labels], client) if len(some)]
    if not found:
        return parts
    of_classes = dask.delayed(partial(_of_classes, classes=np.unique(np.concatenate(found))))
    return replace(parts, per_row={**parts.per_row, "y": [of_classes(part) for part in labels]})


def computed(values: list[Any], client: Any) -> list[Any]:
    """Return delayed values, computed by a client, or by whatever is the default."""
    if client is None:
        return list(dask.compute(*values))
    if client.asynchronous:
        raise TypeError("client must not be asynchronous: bins are found by a plain distributed.Client(address)")
    return list(client.gather(client.compute(values)))


# ---- the tasks: pure, so that Dask may run them again when a worker is lost


def _cut_on_cluster(
    parts: Parts, cut: Callable[[TableSummary], Bins], max_cells: int | None, client: Any, kept: OfTarget
) -> tuple[Bins, Ranges]:
    """Return bins and ranges: cut on the cluster some columns at a time, or here, where all are needed together."""
    if kept.rows:
        whole = _fetched(parts, max_cells, client, kept)
        return cut(whole), ranges_of_summary(whole)
    fit = dask.delayed(partial(_fitted, cut=cut, weighted="sample_weight" in parts.per_row))
    bins, ranges = zip(*computed([fit(part) for part in _summed(parts, max_cells, kept)], client), strict=True)
    low, high, missing = map(np.concatenate, zip(*ranges, strict=True))
    return _joined(bins), Ranges(low, high, missing)


def _fetched(parts: Parts, max_cells: int | None, client: Any, kept: OfTarget) -> TableSummary:
    """Return the summary of all columns."""
    check = dask.delayed(partial(_some_rows, weighted="sample_weight" in parts.per_row))
    return _side_by_side(computed([check(part) for part in _summed(parts, max_cells, kept)], client))


def _fitted(summary: TableSummary, cut: Callable[[TableSummary], Bins], weighted: bool) -> tuple[Bins, Ranges]:
    return cut(_some_rows(summary, weighted)), ranges_of_summary(summary)


def _some_rows(summary: TableSummary, weighted: bool) -> TableSummary:
    if summary.n_rows or summary.rows is not None:
        return summary
    if weighted and not np.isnan(ranges_of_summary(summary).low).all():
        raise ValueError("sample_weight is zero for every row: give some row a positive weight")
    raise ValueError("X has no rows")


def _summed(parts: Parts, max_cells: int | None, kept: OfTarget, *, counted: bool = True) -> list[Any]:
    """Return the delayed summary of each group of columns: of partitions, added up a few at a time.

    Last comes one without columns that has the sample of rows, if that is kept. Of rows that are not counted there are
    the ranges only.
    """
    kept = kept if "y" in parts.per_row else OfTarget(sums=False, rows=False)
    summarized = dask.delayed(
        partial(_summarized, reader=parts.reader, max_cells=max_cells, kept=kept, counted=counted)
    )
    numbers = [parts.per_row.get(argument, [None] * len(parts.rows)) for argument in ("sample_weight", "y")]
    found = [summarized(*row) for row in zip(parts.rows, *numbers, strict=True)]
    add = dask.delayed(_added)
    groups = []
    for group in range(len(_groups(parts.reader.names)) + kept.rows):
        level = [part[group] for part in found]
        while len(level) > 1:
            level = [add(level[i : i + _AT_ONCE]) for i in range(0, len(level), _AT_ONCE)]
        groups += level
    return groups


def _groups(names: Sequence[str]) -> list[range]:
    return [range(start, min(start + _COLUMNS, len(names))) for start in range(0, max(len(names), 1), _COLUMNS)]


def _summarized(
    part: Any, weight: Any, target: Any, reader: Reader, max_cells: int | None, kept: OfTarget, counted: bool
) -> list[TableSummary]:
    """Return the summary of a partition, by groups of columns, and that with the sample of rows."""
    table = reader(part)
    if table is None:
        groups = [_empty([reader.names[i] for i in group], max_cells) for group in _groups(reader.names)]
        return [*groups, *[TableSummary([])] * kept.rows]
    weights = targets = None
    if not counted:
        weights = np.zeros(table.n_rows)
    elif weight is not None:
        weights = checked_weight(_plain(weight), table.n_rows, "sample_weight")
    if counted and target is not None:
        targets = checked_target(_plain(target), table.n_rows, "y")
    summed = targets if kept.sums else None
    groups = [
        TableSummary(
            [summarize_column(table, i, weights, summed, max_cells=max_cells) for i in group],
            [table.names[i] for i in group],
            table.units,
        )
        for group in _groups(reader.names)
    ]
    if kept.rows and targets is not None:
        groups.append(TableSummary([], rows=RowSample.of(table, weights, targets)))
    return groups


def _labels_in(part: Any) -> NDArray[Any]:
    return np.unique(np.asarray(_plain(part)))


def _of_classes(part: Any, classes: NDArray[Any]) -> Any:
    """Return whether each row is of each class; labels of which some are missing as they are, to be refused."""
    labels = np.asarray(_plain(part))
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        return part
    return numbered_classes(np.searchsorted(classes, labels), len(classes), "y")


def _plain(values: Any) -> Any:
    """Return a series of pandas' own types of numbers as an array."""
    return (
        values.to_numpy(np.float64, na_value=np.nan)
        if hasattr(values, "iloc") and values.dtype.kind in "biuf"
        else values
    )


def _empty(names: Sequence[str], max_cells: int | None) -> TableSummary:
    return TableSummary([ColumnSummary([], max_cells=max_cells)] * len(names), names)


def _added(parts: list[TableSummary]) -> TableSummary:
    return reduce(TableSummary.__add__, parts)


# ---- groups of columns, put together


def _joined(groups: Sequence[Bins]) -> Bins:
    cuts = [cuts for bins in groups for cuts in bins]
    names = [name for bins in groups for name in bins.names]
    stats = None if any(bins.stats is None for bins in groups) else [s for bins in groups for s in bins.stats or ()]
    choices = [bins.choices.get(name) for bins in groups for name in bins.names]
    units = {name: unit for bins in groups for name, unit in bins.units.items()}
    return Bins(cuts, names, stats, choices, units)


def _side_by_side(groups: Sequence[TableSummary]) -> TableSummary:
    names = [name for summary in groups for name in summary.names]
    units = {name: unit for summary in groups for name, unit in summary.units.items()}
    rows = next((summary.rows for summary in groups if summary.rows is not None), None)
    return TableSummary([column for summary in groups for column in summary], names, units, rows)
