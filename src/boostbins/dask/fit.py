"""Summaries and bins of what lies in the partitions of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import dask
import numpy as np

from boostbins.adapters.params import BinMethod
from boostbins.bins import Bins
from boostbins.dask.partitions import Parts, Reader, opened
from boostbins.fit import cells_for, checked_max_bins, fit_summary
from boostbins.methods import Method, method_named
from boostbins.sources.table import NonNumeric, Table
from boostbins.sources.values import checked_target, checked_weight
from boostbins.summary.column import MAX_CELLS, ColumnSummary
from boostbins.summary.ranges import Ranges, ranges_of, ranges_of_summary
from boostbins.summary.table import TableSummary, summarize_table

_AT_ONCE = 8  # summaries that are added by one task
_COLUMNS = 16  # that are added, and cut, by one task


def fit_bins(
    X: Any,
    method: str | Method = "kmeans",
    max_bins: int | Sequence[int] | Mapping[str, int] = 255,
    sample_weight: Any = None,
    *,
    y: Any = None,
    columns: Sequence[str] | None = None,
    total_bins: int | None = None,
    exact: bool = False,
    non_numeric: NonNumeric = "error",
    dates_as_numbers: bool = False,
    client: Any = None,
) -> Bins:
    """Return bins for every column of a Dask collection, the same as `boostbins.fit_bins` of all its rows in memory.

    No rows are moved: what comes back from the cluster is the bins (with `total_bins`, the summaries).

    Parameters
    ----------
    X : Dask DataFrame or Array
        In any partitions.
    method, max_bins, columns, total_bins, exact, non_numeric, dates_as_numbers
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
    parts = opened(
        X, columns, {"sample_weight": sample_weight, "y": y}, non_numeric=non_numeric, dates_as_numbers=dates_as_numbers
    )
    names = parts.reader.names
    if not names:
        raise ValueError("X has no columns to bin")
    budgets = dict(zip(names, checked_max_bins(max_bins, names), strict=True))
    max_cells = None if exact else max(map(cells_for, budgets.values()))

    def cut(summary: TableSummary, ranges: Ranges) -> Bins:
        own = [budgets[name] for name in summary.names]
        return fit_summary(summary, find, own, total_bins=total_bins, exact=exact, n_threads=1)

    return _cut_on_cluster(parts, cut, max_cells, client, together=total_bins is not None)[0]


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
    parts = opened(
        X, columns, {"sample_weight": sample_weight, "y": y}, non_numeric=non_numeric, dates_as_numbers=dates_as_numbers
    )
    return _fetched(parts, max_cells, client).summary


def requested_bins(
    bin_method: BinMethod,
    parts: Parts,
    cut: Callable[[str | Method | Bins, TableSummary, Ranges], Bins],
    max_bin: int,
    client: Any,
    *,
    together: bool,
) -> tuple[Bins, Ranges]:
    """Return the bins that an estimator's flag asks for, found on the cluster, and the ranges of the columns.

    `cut` makes them of a summary and the ranges, of some columns, or of all together; ready bins are only made to fit
    the ranges.
    """
    assert bin_method is not None
    if not isinstance(bin_method, Bins):
        return _cut_on_cluster(parts, partial(cut, bin_method), cells_for(max_bin), client, together=together)
    found_ranges = computed([dask.delayed(_extent)(part) for part in _summed(parts, 0)], client)
    ranges = _side_by_side(found_ranges)
    names = parts.reader.names
    if parts.reader.dtypes is None and len(bin_method) == len(names):  # an array has no names of its own
        choices = [bin_method.choices.get(name) for name in bin_method.names]
        bin_method = Bins(bin_method.cuts, names, bin_method.stats, choices)
    return cut(bin_method, _empty(names, None), ranges), ranges


def computed(values: list[Any], client: Any) -> list[Any]:
    """Return delayed values, computed by a client, or by whatever is the default."""
    if client is None:
        return list(dask.compute(*values))
    if client.asynchronous:
        raise TypeError("client must not be asynchronous: bins are found by a plain distributed.Client(address)")
    return list(client.gather(client.compute(values)))


# ---- the tasks: pure, so that Dask may run them again when a worker is lost


class _Part(NamedTuple):
    """What is known of some columns of some rows."""

    summary: TableSummary
    ranges: Ranges  # of all rows, those of weight 0 too


def _cut_on_cluster(
    parts: Parts, cut: Callable[[TableSummary, Ranges], Bins], max_cells: int | None, client: Any, *, together: bool
) -> tuple[Bins, Ranges]:
    """Return bins and ranges: cut on the cluster some columns at a time, or here, where all are needed together."""
    if together:
        whole = _fetched(parts, max_cells, client)
        return cut(*whole), whole.ranges
    fit = dask.delayed(partial(_fitted, cut=cut, weighted="sample_weight" in parts.per_row))
    found = computed([fit(part) for part in _summed(parts, max_cells)], client)
    return _joined([bins for bins, _ in found]), _side_by_side([ranges for _, ranges in found])


def _fetched(parts: Parts, max_cells: int | None, client: Any) -> _Part:
    """Return what is known of all columns."""
    check = dask.delayed(partial(_some_rows, weighted="sample_weight" in parts.per_row))
    found = computed([check(part) for part in _summed(parts, max_cells)], client)
    names = [name for part in found for name in part.summary.names]
    summary = TableSummary([column for part in found for column in part.summary], names)
    return _Part(summary, _side_by_side([part.ranges for part in found]))


def _fitted(part: _Part, cut: Callable[[TableSummary, Ranges], Bins], weighted: bool) -> tuple[Bins, Ranges]:
    return cut(*_some_rows(part, weighted)), part.ranges


def _some_rows(part: _Part, weighted: bool) -> _Part:
    if part.summary.n_rows:
        return part
    if weighted and not np.isnan(part.ranges.low).all():
        raise ValueError("sample_weight is zero for every row: give some row a positive weight")
    raise ValueError("X has no rows")


def _summed(parts: Parts, max_cells: int | None) -> list[Any]:
    """Return the delayed summary of each group of columns: of partitions, added up a few at a time."""
    summarized = dask.delayed(partial(_summarized, reader=parts.reader, max_cells=max_cells))
    numbers = [parts.per_row.get(argument, [None] * len(parts.rows)) for argument in ("sample_weight", "y")]
    found = [summarized(*row) for row in zip(parts.rows, *numbers, strict=True)]
    add = dask.delayed(_added)
    groups = []
    for group in range(len(_groups(parts.reader.names))):
        level = [part[group] for part in found]
        while len(level) > 1:
            level = [add(level[i : i + _AT_ONCE]) for i in range(0, len(level), _AT_ONCE)]
        groups += level
    return groups


def _groups(names: Sequence[str]) -> list[range]:
    return [range(start, min(start + _COLUMNS, len(names))) for start in range(0, max(len(names), 1), _COLUMNS)]


def _summarized(part: Any, weight: Any, target: Any, reader: Reader, max_cells: int | None) -> list[_Part]:
    """Return what is known of a partition, by groups of columns; with `max_cells` of 0 the ranges only."""
    table = reader(part)
    found = []
    for group in _groups(reader.names):
        names = [reader.names[i] for i in group]
        if table is None:
            nothing = np.full(len(names), np.nan)
            found.append(_Part(_empty(names, max_cells), Ranges(nothing, nothing, np.zeros(len(names), np.bool_))))
        elif max_cells == 0:
            found.append(_Part(_empty(names, None), ranges_of(table.chosen(group), 1)))
        else:
            found.append(_of_table(table.chosen(group), weight, target, max_cells))
    return found


def _of_table(table: Table, weight: Any, target: Any, max_cells: int | None) -> _Part:
    weights = None if weight is None else checked_weight(_plain(weight), table.n_rows, "sample_weight")
    targets = None if target is None else checked_target(_plain(target), table.n_rows, "y")
    summary = summarize_table(table, weights, targets, max_cells=max_cells, n_threads=1)
    return _Part(summary, ranges_of_summary(summary) if weight is None else ranges_of(table, 1))


def _plain(values: Any) -> Any:
    """Return a series of pandas' own types of numbers as an array."""
    return (
        values.to_numpy(np.float64, na_value=np.nan)
        if hasattr(values, "iloc") and values.dtype.kind in "biuf"
        else values
    )


def _empty(names: Sequence[str], max_cells: int | None) -> TableSummary:
    return TableSummary([ColumnSummary([], max_cells=max_cells or None)] * len(names), names)


def _added(parts: list[_Part]) -> _Part:
    low, high, missing = zip(*(part.ranges for part in parts), strict=True)
    ranges = Ranges(np.fmin.reduce(low), np.fmax.reduce(high), np.any(missing, axis=0))
    return _Part(reduce(TableSummary.__add__, (part.summary for part in parts)), ranges)


def _extent(part: _Part) -> Ranges:
    return part.ranges


# ---- groups of columns, put together


def _joined(groups: Sequence[Bins]) -> Bins:
    cuts = [cuts for bins in groups for cuts in bins]
    names = [name for bins in groups for name in bins.names]
    if any(bins.stats is None for bins in groups):
        return Bins(cuts, names)
    choices = [bins.choices.get(name) for bins in groups for name in bins.names]
    return Bins(cuts, names, [stats for bins in groups for stats in bins.stats or ()], choices)


def _side_by_side(found_ranges: Sequence[Ranges]) -> Ranges:
    low, high, missing = zip(*found_ranges, strict=True)
    return Ranges(np.concatenate(low), np.concatenate(high), np.concatenate(missing))
