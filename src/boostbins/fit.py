"""Read, summarize, cut: a table to bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from boostbins._threads import WORTH_THREADS, Progress, checked_threads, map_threads, spare_threads
from boostbins.bins import Bins
from boostbins.methods import (
    DEFAULT_BINS,
    MAX_BINS,
    MIN_BINS,
    Method,
    find_chosen,
    looks_at_target,
    may_look_at_target,
    method_named,
)
from boostbins.methods.budget import (
    MAX_SHARED_BINS,
    BinShare,
    Codes,
    Total,
    TotalBins,
    allocate_bins,
    coarse_bins,
    enough_bins,
    needs_by_spread,
    needs_by_target,
    shared_bins,
    useful_bins,
)
from boostbins.methods.choice import Choice
from boostbins.sources.csv import MixedColumnError
from boostbins.sources.request import NonNumeric, PerRow, Request
from boostbins.sources.stream import Stream, open_source, peeked
from boostbins.sources.table import Table
from boostbins.sources.values import Floats, Targets, checked_target, numbers_or_classes, positive_weight
from boostbins.summary.column import MAX_CELLS, ColumnSummary, checked_max_cells
from boostbins.summary.rows import RowSample
from boostbins.summary.stats import BinStats, bin_stats
from boostbins.summary.table import (
    ALL_OF_TARGET,
    OfTarget,
    TableSummary,
    summarize_column,
    summarize_stream,
    summarize_table,
)


def fit_bins(
    X: Any,
    method: str | Method = "kmeans",
    max_bins: int | Sequence[int] | Mapping[str, int] | None = None,
    sample_weight: PerRow = None,
    n_threads: int | None = None,
    *,
    y: PerRow = None,
    columns: Sequence[str] | None = None,
    total_bins: TotalBins = None,
    average_bins: float | None = None,
    exact: bool = False,
    non_numeric: NonNumeric = "error",
    dates_as_numbers: bool = False,
    progress: Progress | None = None,
) -> Bins:
    """Return bins for every column of a table.

    Every row is used. What is in memory is read a column at a time, in threads, and never copied as a whole; what is
    not is read once, in batches, with the same cuts to the last bit.

    Parameters
    ----------
    X : array, frame, sparse matrix, list or dict of columns; file or files; stream; TableSummary
        NumPy arrays, pandas, polars and Arrow tables, SciPy's sparse matrices; missing values are welcome. Of any
        size: the path of a Parquet, CSV or Feather file, a folder or pattern of them, or a list; an Arrow dataset or
        reader; a `np.memmap`; an iterator of tables, or a function that gives one. Or what `summarize` returned.
    method : str or function
        "auto", "hybrid", "kmeans", "optimal", "quantile" or "uniform"; or a function ``(summary, max_bins) -> cuts``
        of your own. "auto" looks at `y`.
    max_bins : int, or one per column as a sequence or a dict by name
        At most so many bins for present values, 2 to 65,535. A column with no more distinct values than that
        gets a bin for each, whatever the method. If not given, 255; where columns share a total, 4,095.
    sample_weight : array of shape (rows,), or the name of a column, optional
    n_threads : int, optional
        As many as there are processors, if not given.
    y : array of shape (rows,), or the name of a column, optional
        The target, for methods that look at it, and for how a total is shared. Texts are taken as classes (not where X
        comes in batches), numbers as numbers, of which a row may have several.
    columns : sequence of str, optional
        Which to bin; all, if not given.
    total_bins : int or "auto", optional
        At most this many bins in all columns together, and at most `max_bins` in each: most for those that the target
        needs finely, as a small boosted model on some rows tells; without a target, for those that are spread most.
        "auto": as many as are enough.
    average_bins : int, optional
        `total_bins` as an average per column.
    exact : bool
        Whether to hold every distinct value of a column, instead of at most 32,768 cells. Takes the memory and the
        time of sorting.
    non_numeric : "error" or "skip"
        What to do with columns of text or categories: skipped ones are not in the bins.
    dates_as_numbers : bool
        Whether dates and durations are taken as numbers: as seconds, since 1970 or in all. `Bins.units` says so.
    progress : function, optional
        Called with the bytes that are read, the bytes that there are, and the file at hand, of what comes in batches.

    Examples
    --------
    >>> import numpy as np
    >>> income = np.random.default_rng(0).lognormal(10, 1, 100_000)
    >>> fit_bins({"income": income}, method="kmeans", max_bins=63)
    Bins(income: 63)
    """
    find = method_named(method)
    total = Total(total_bins, average_bins)
    max_bins = default_bins(total) if max_bins is None else max_bins

    def fit(summary: TableSummary) -> Bins:
        return fit_summary(summary, find, max_bins, total=total.of(len(summary)), exact=exact, n_threads=n_threads)

    per_row = {"sample_weight": sample_weight, "y": y}
    if isinstance(X, TableSummary):
        if given := [argument for argument, value in per_row.items() if value is not None]:
            raise ValueError(f"{given[0]} is part of a TableSummary: give it to summarize")
        return fit(_chosen(X, columns))
    request = Request(columns, per_row, non_numeric, dates_as_numbers, texts=["y"])
    rows = open_source(X, request)
    if isinstance(rows, Stream):

        def max_cells(names: Sequence[str]) -> int | None:
            return None if exact else max(map(cells_for, checked_max_bins(max_bins, names)))

        needs = OfTarget(sums=may_look_at_target(find), rows=bool(total))
        return fit(_summarized(rows, replace(request, texts=()), max_cells, needs, n_threads, progress))
    table, weight, target = rows.table, rows.per_row.get("sample_weight"), rows.per_row.get("y")
    check_some(table.names, request)
    return fit_table(
        table,
        find,
        checked_max_bins(max_bins, table.names),
        None if weight is None else positive_weight(weight, table.n_rows, "sample_weight"),
        None if target is None else numbers_or_classes(target, table.n_rows, "y"),
        total=total.of(len(table)),
        exact=exact,
        n_threads=n_threads,
    )


def summarize(
    X: Any,
    sample_weight: PerRow = None,
    n_threads: int | None = None,
    *,
    y: PerRow = None,
    columns: Sequence[str] | None = None,
    max_cells: int | None = MAX_CELLS,
    non_numeric: NonNumeric = "error",
    dates_as_numbers: bool = False,
    progress: Progress | None = None,
) -> TableSummary:
    """Return the summary of a table, from which `fit_bins` finds the same bins as from its rows.

    Summaries can be saved, sent and added: that of yesterday's rows and that of today's make new bins without
    yesterday's rows.

    Parameters
    ----------
    X, sample_weight, n_threads, columns, non_numeric, dates_as_numbers, progress
        As for `fit_bins`.
    y : array of shape (rows,) or (rows, targets), or the name of a column, optional
        Numbers. Of classes, whether a row is of each, the same ones in all parts: ``labels[:, None] == classes``.
    max_cells : int or None
        Cells per column: enough for a quarter as many bins. None: every distinct value.

    Examples
    --------
    >>> summarize({"price": [1.0, 2.0, 2.0]})
    TableSummary(3 rows; price: 2 distinct values)
    """
    max_cells = checked_max_cells(max_cells)
    if isinstance(X, TableSummary):
        return _chosen(X, columns)
    request = Request(columns, {"sample_weight": sample_weight, "y": y}, non_numeric, dates_as_numbers)
    rows = open_source(X, request)
    if isinstance(rows, Stream):
        return _summarized(rows, request, lambda _: max_cells, ALL_OF_TARGET, n_threads, progress)
    table, weight, target = rows.table, rows.per_row.get("sample_weight"), rows.per_row.get("y")
    return summarize_table(
        table,
        None if weight is None else positive_weight(weight, table.n_rows, "sample_weight"),
        None if target is None else checked_target(target, table.n_rows, "y"),  # texts of two parts may be others
        max_cells=max_cells,
        n_threads=n_threads,
    )


def _summarized(
    stream: Stream,
    request: Request,
    max_cells: Callable[[Sequence[str]], int | None],
    needs: OfTarget,
    n_threads: int | None,
    progress: Progress | None,
) -> TableSummary:
    """Return the summary of a stream; a column of a CSV that turns out to be text is as one that begins so."""
    while True:
        try:
            # The sample of rows needs all columns of a batch at once.
            by_column = not (needs.rows and request.per_row.get("y") is not None)
            names, batches = peeked(stream.batches(request, by_column=by_column))
            check_some(names, request)
            return summarize_stream(
                batches,
                max_cells=max_cells(names),
                of_target=needs,
                n_threads=n_threads,
                progress=progress,
                size=stream.size,
            )
        except MixedColumnError as error:
            if request.non_numeric == "error" or error.column in request.named.values() or stream.names is None:
                raise
            kept = [name for name in request.chosen(stream.names) if name != error.column]
            request = replace(request, columns=kept)


def check_some(names: Sequence[str], request: Request) -> None:
    """Refuse a table without a column to cut."""
    if not names:
        what = "no columns to bin" if request.non_numeric == "error" else "no numeric columns: there is nothing to bin"
        raise ValueError(f"X has {what}")


def fit_summary(
    summary: TableSummary,
    method: Method,
    max_bins: int | Sequence[int] | Mapping[str, int],
    *,
    total: TotalBins = None,
    exact: bool = False,
    n_threads: int | None = None,
    to_native: Callable[[int, Floats], Floats] = lambda column, cuts: cuts,
) -> Bins:
    """Return bins for every column of a summary.

    `to_native` turns the cuts of a column into those that a library can use.
    """
    budgets = checked_max_bins(max_bins, summary.names)
    for name, column, budget in zip(summary.names, summary, budgets, strict=True):
        if not column.is_exact and column.max_cells is not None:
            if exact:
                raise ValueError(
                    f"exact=True: the summary of column {name!r} is not exact; summarize with max_cells=None"
                )
            if column.max_cells < 4 * budget:
                raise ValueError(
                    f"max_bins={budget} needs a summary of {4 * budget} cells, and that of column {name!r} has at most "
                    f"{column.max_cells}: summarize with max_cells={4 * budget}"
                )

    # Finer cells than asked for become those that it would have had: the cuts are the same, whatever is summed up.
    def summary_of(i: int) -> ColumnSummary:
        return _as_coarse(summary.columns[i], None if exact else cells_for(budgets[i]))

    def rows() -> RowSample | None:
        if summary.rows is None and any(column.has_target for column in summary):
            raise ValueError(
                "the summary has no sample of its rows, by which a total of bins is shared: it is of an older version, "
                "of some columns of another, or a sum of parts whose columns stand in another order; summarize anew"
            )
        return summary.rows

    return _cut(summary_of, summary.names, summary.units, method, budgets, total, rows, to_native, n_threads)


def _cut(
    summary_of: Callable[[int], ColumnSummary],
    names: Sequence[str],
    units: Mapping[str, str],
    method: Method,
    budgets: Sequence[int],
    total: TotalBins,
    rows: Callable[[], RowSample | None],
    to_native: Callable[[int, Floats], Floats],
    n_threads: int | None,
) -> Bins:
    """Return the bins of all columns, whose summaries are made, or had, one at a time: all, to share a total."""
    columns = range(len(names))
    shares: Sequence[BinShare | None] = [None] * len(names)
    if total is not None and names:
        held = map_threads(summary_of, columns, n_threads)
        summary_of = held.__getitem__
        shared = _shared(held, method, budgets, total, rows(), n_threads)
        budgets, shares = [share.bins for share in shared], shared

    def fit_column(i: int) -> tuple[Floats, BinStats, Choice | None]:
        summary = summary_of(i)
        found, choice = find_chosen(summary, method, budgets[i])
        cuts = to_native(i, found)
        return cuts, bin_stats(summary, cuts), choice

    fitted = map_threads(fit_column, columns, n_threads)
    cuts, stats, choices = zip(*fitted, strict=True) if fitted else ((), (), ())
    return Bins(cuts, names, stats, choices, units, shares)


def _shared(
    summaries: Sequence[ColumnSummary],
    method: Method,
    budgets: Sequence[int],
    total: int | Literal["auto"],
    rows: RowSample | None,
    n_threads: int | None,
) -> list[BinShare]:
    """Return how many bins each column gets of a total."""
    most = [
        useful_bins(max_bins, summary.n_cells if summary.is_exact else None)
        for max_bins, summary in zip(budgets, summaries, strict=True)
    ]
    if rows is None:
        if total == "auto":
            raise ValueError('total_bins="auto" needs a target, for which bins are enough: give y, or a number')
        return shared_bins(total, most, needs_by_spread(summaries), "spread")
    pilot = needs_by_target(rows, most, judged=total == "auto")
    if total == "auto":
        few = allocate_bins(coarse_bins(len(most)), pilot.most, pilot.needs)

        def codes(i: int) -> Codes:
            values = pilot.sample.values[i]
            cuts = find_chosen(summaries[i], method, few[i])[0]
            return np.where(np.isnan(values), len(cuts) + 1, np.searchsorted(cuts, values)).astype(np.uint16)

        total = enough_bins(pilot, np.array(map_threads(codes, range(len(most)), n_threads)))
    return shared_bins(total, pilot.most, pilot.needs, "target")


def of_target(method: Any, total: Total) -> OfTarget:
    """Return what a summary needs of the target, for a method and a total of bins."""
    return OfTarget(sums=looks_at_target(method), rows=bool(total))


def default_bins(total: Total, usual: int = DEFAULT_BINS) -> int:
    """Return how many bins a column may have where nothing is said: more than usual, where columns share a total."""
    return MAX_SHARED_BINS if total else usual


def cells_for(max_bins: int) -> int:
    """Return how many cells a summary needs to be cut into `max_bins` bins."""
    return max(MAX_CELLS, 4 * max_bins)


def _as_coarse(column: ColumnSummary, max_cells: int | None) -> ColumnSummary:
    """Return a summary as it would be with at most `max_cells` cells: a new one, whose caches go with it."""
    if max_cells is None or (column.max_cells is not None and column.max_cells <= max_cells):
        return copy(column)
    return column + ColumnSummary([], max_cells=max_cells)


def _chosen(summary: TableSummary, columns: Sequence[str] | None) -> TableSummary:
    """Return some columns of a summary; all, if none are named."""
    names = Request(columns).chosen(summary.names)
    return summary if columns is None else summary.of_columns(names)


def fit_table(
    table: Table,
    method: Method,
    budgets: Sequence[int],
    weight: Floats | None = None,
    target: Targets | None = None,
    *,
    total: TotalBins = None,
    exact: bool = False,
    n_threads: int | None = None,
    to_native: Callable[[int, Floats], Floats] = lambda column, cuts: cuts,
) -> Bins:
    """Return bins for every column of a table; all is checked already.

    `to_native` turns the cuts of a column into those that a library can use.
    """
    sums_of = target if may_look_at_target(method) else None

    threads = checked_threads(n_threads)
    threads = threads if table.n_rows >= WORTH_THREADS else 1
    of_column = spare_threads(len(table), threads)

    def summary_of(i: int) -> ColumnSummary:
        max_cells = None if exact else cells_for(budgets[i])
        return summarize_column(table, i, weight, sums_of, max_cells=max_cells, n_threads=of_column)

    def rows() -> RowSample | None:
        return None if target is None else RowSample.of(table, weight, target)

    return _cut(summary_of, table.names, table.units, method, budgets, total, rows, to_native, threads)


def checked_max_bins(max_bins: int | Sequence[int] | Mapping[str, int], names: Sequence[str]) -> list[int]:
    """Return the number of bins for each column."""
    budgets: list[Any]
    if isinstance(max_bins, np.ndarray):
        max_bins = max_bins.tolist()
    if isinstance(max_bins, Mapping):
        if odd := sorted(set(names) ^ set(max_bins)):
            what = "lacks a number for" if odd[0] in names else "names what X does not have:"
            raise ValueError(f"max_bins, given by name, {what} column {odd[0]!r}")
        budgets = [max_bins[name] for name in names]
    elif isinstance(max_bins, Sequence) and not isinstance(max_bins, str):
        budgets = list(max_bins)
        if len(budgets) != len(names):
            raise ValueError(
                f"max_bins must be one number, or one for each of {len(names)} columns, got {len(budgets)}"
            )
    else:
        budgets = [max_bins] * len(names)
    for n in budgets:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not MIN_BINS <= n <= MAX_BINS:
            raise ValueError(f"max_bins must be a whole number from {MIN_BINS} to {MAX_BINS}, got {n!r}")
    return [int(n) for n in budgets]
