"""Read, summarize, cut: a table to bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostbins.bins import Bins
from boostbins.columns import NonNumeric, Table, read_table, summarize_column
from boostbins.inputs import Floats, checked_target, positive_weight
from boostbins.methods import MAX_BINS, MIN_BINS, Method, find_cuts, method_named
from boostbins.stats import BinStats, bin_stats
from boostbins.summary import MAX_CELLS
from boostbins.threads import checked_threads, each

_WORTH_THREADS = 1_000  # rows; on fewer, threads mostly wait for each other


def fit_bins(
    X: Any,
    method: str | Method = "kmeans",
    max_bins: int | Sequence[int] | Mapping[str, int] = 255,
    sample_weight: ArrayLike | None = None,
    n_threads: int | None = None,
    *,
    y: ArrayLike | None = None,
    exact: bool = False,
    non_numeric: NonNumeric = "error",
    dates_as_numbers: bool = False,
) -> Bins:
    """Return bins for every column of a table.

    Every row is used. Columns are read one at a time, in threads, and never copied as a whole.

    Parameters
    ----------
    X : array, frame, sparse matrix, list or dict of columns
        NumPy arrays, pandas, polars and Arrow tables, SciPy's sparse matrices; missing values are welcome.
    method : str or function
        "kmeans", "optimal", "quantile" or "uniform"; or a function ``(summary, max_bins) -> cuts`` of your own.
    max_bins : int, or one per column as a sequence or a dict by name
        At most so many bins for present values, 2 to 65,535. A column with no more distinct values than that
        gets a bin for each, whatever the method.
    sample_weight : array of shape (rows,), optional
    n_threads : int, optional
        As many as there are processors, if not given.
    y : array of shape (rows,), optional
        The target, for methods that look at it: the summary then carries its sums per cell.
    exact : bool
        Whether to hold every distinct value of a column, instead of at most 32,768 cells. Takes the memory and the
        time of sorting.
    non_numeric : "error" or "skip"
        What to do with columns of text or categories: skipped ones are not in the bins.
    dates_as_numbers : bool
        Whether dates, times and durations are taken as numbers (of their own unit).

    Examples
    --------
    >>> import numpy as np
    >>> income = np.random.default_rng(0).lognormal(10, 1, 100_000)
    >>> fit_bins({"income": income}, method="kmeans", max_bins=63)
    Bins(income: 63)
    """
    find = method_named(method)
    table = read_table(X, non_numeric=non_numeric, dates_as_numbers=dates_as_numbers)
    if len(table) == 0:
        raise ValueError("X has no columns to bin")
    budgets = checked_max_bins(max_bins, table.names)
    weight = None if sample_weight is None else positive_weight(sample_weight, table.n_rows, "sample_weight")
    target = None if y is None else checked_target(y, table.n_rows, "y")
    return fit_table(table, find, budgets, weight, target, exact=exact, n_threads=n_threads)


def fit_table(
    table: Table,
    method: Method,
    budgets: Sequence[int],
    weight: Floats | None = None,
    target: Floats | None = None,
    *,
    exact: bool = False,
    n_threads: int | None = None,
    settle: Callable[[int, Floats], Floats] = lambda column, cuts: cuts,
) -> Bins:
    """Return bins for every column of a table; all is checked already.

    `settle` turns the cuts of a column into those that a library can use.
    """

    def fit_column(i: int) -> tuple[Floats, BinStats]:
        max_cells = None if exact else max(MAX_CELLS, 4 * budgets[i])
        summary = summarize_column(table, i, weight, target, max_cells=max_cells)
        cuts = settle(i, find_cuts(summary, method, budgets[i]))
        return cuts, bin_stats(summary, cuts)

    threads = checked_threads(n_threads)
    fitted = each(fit_column, range(len(table)), threads if table.n_rows >= _WORTH_THREADS else 1)
    return Bins([cuts for cuts, _ in fitted], table.names, [stats for _, stats in fitted])


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
