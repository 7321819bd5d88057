"""The bins that `bin_method` asks for, as a library can use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from boostbins.bins import Bins
from boostbins.cache import BinCache, cached_bins
from boostbins.fit import fit_summary, fit_table
from boostbins.methods import MAX_BINS, MIN_BINS, Method, method_named, needs_target
from boostbins.methods.budget import TotalBins
from boostbins.sources.table import Table
from boostbins.sources.values import MAX_TARGETS, Floats, Targets, numbered_classes, numbers_or_classes, positive_weight
from boostbins.summary.table import TableSummary


class CutFormat(NamedTuple):
    """What a library makes of cuts."""

    name: str
    to_native: Callable[[int, Floats], Floats]  # of a column, its cuts to those that the library uses


def floor32(cuts: Floats) -> Floats:
    """Return cuts that part float32 values as the given ones do, and are float32 themselves.

    The greatest float32 that is not above the cut; cuts beyond the range of float32 part nothing.

    >>> floor32(np.array([0.1, 1.0])).tolist()
    [0.09999999403953552, 1.0]
    """
    with np.errstate(over="ignore"):
        near = cuts.astype(np.float32)
    below = np.where(near.astype(np.float64) <= cuts, near, np.nextafter(near, np.float32(-np.inf)))
    limit = np.finfo(np.float32).max
    return np.unique(below[(below > -limit) & (below < limit)]).astype(np.float64) + 0.0


FLOAT64 = CutFormat("float64", lambda column, cuts: cuts)
FLOAT32 = CutFormat("float32", lambda column, cuts: floor32(cuts))


# ---- the bins


def requested_bins(
    bin_method: str | Method | Bins,
    table: Table,
    budgets: Sequence[int],
    *,
    sample_weight: ArrayLike | None = None,
    label: Any = None,
    n_classes: int | None = None,
    bin_cache: BinCache = None,
    total: TotalBins = None,
    cut_format: CutFormat = FLOAT64,
    limit: str,
    n_threads: int | None = None,
) -> Bins:
    """Return the bins that `bin_method` asks for, as the library will use them.

    Parameters
    ----------
    bin_method : str, function or Bins
    table : Table
        As the library sees it.
    budgets : sequence of int
        How many bins the library has for each column.
    sample_weight : array, optional
    label : array, optional
        What is to be predicted, for methods that look at it.
    n_classes : int, optional
        If it numbers classes, how many there are.
    bin_cache : None, "memory" or a folder
    total : int or "auto", optional
        What is left of it for these columns: see `Total.of`.
    cut_format : CutFormat
        What the library makes of cuts.
    limit : str
        What sets the budgets, for messages: e.g. "max_bin=63".
    n_threads : int, optional
    """
    if isinstance(bin_method, Bins):
        return _ready_bins(bin_method, table, budgets, cut_format.to_native, limit)
    method = method_named(bin_method, "bin_method", " or Bins or None")
    check_budgets(budgets, limit)
    weight = None if sample_weight is None else _weight_that_counts(sample_weight, table.n_rows)
    target = target_of(label, table.n_rows, n_classes) if needs_target(method, total) else None
    rooms = _rooms(budgets, cut_format.to_native)

    def suits(bins: Bins) -> bool:
        most = total + sum(rooms) - sum(budgets) if isinstance(total, int) else sum(rooms)
        fits = bins.names == table.names and all(n <= room for n, room in zip(bins.n_bins, rooms, strict=True))
        return fits and sum(bins.n_bins) <= most and bins.stats is not None and not bins.units

    return cached_bins(
        bin_cache,
        table,
        (weight, target),
        method,
        [list(budgets), total, cut_format.name],
        lambda: fit_table(
            table,
            method,
            budgets,
            weight,
            target,
            total=total,
            n_threads=n_threads,
            to_native=cut_format.to_native,
        ),
        suits,
        n_threads,
    )


def summarized_bins(
    bin_method: str | Method | Bins,
    summary: TableSummary,
    budgets: Sequence[int],
    *,
    total: TotalBins = None,
    cut_format: CutFormat = FLOAT64,
    limit: str,
    n_threads: int | None = None,
) -> Bins:
    """Return the bins that `bin_method` asks for, of a table that is summarized as the library sees it.

    As `requested_bins` of the table itself.
    """
    if isinstance(bin_method, Bins):
        names = Table(summary.names, 0, True, lambda i: np.empty(0), feature_indices=tuple(range(len(summary))))
        return _ready_bins(bin_method, names, budgets, cut_format.to_native, limit)
    method = method_named(bin_method, "bin_method", " or Bins or None")
    check_budgets(budgets, limit)
    return fit_summary(summary, method, budgets, total=total, n_threads=n_threads, to_native=cut_format.to_native)


def target_of(label: Any, n_rows: int, n_classes: int | None = None) -> Targets | None:
    """Return the target for the binning, if there is a label."""
    if label is None:
        return None
    values = np.asarray(label)
    if values.ndim == 2:
        values = values[:, :MAX_TARGETS]
    target = numbers_or_classes(values, n_rows, "label")
    if n_classes is not None and target.shape[1] == 1 and values.dtype.kind in "biuf":
        return numbered_classes(target[:, 0], n_classes, "label")
    return target


def check_budgets(budgets: Sequence[int], limit: str) -> None:
    """Refuse budgets that a method cannot work with."""
    for budget in budgets:
        if not isinstance(budget, int | np.integer):
            raise TypeError(f"{limit} must be a whole number")
        if not MIN_BINS <= budget <= MAX_BINS:
            raise ValueError(
                f"{limit} leaves {budget} bins for the values of a column; bin_method needs {MIN_BINS} to {MAX_BINS}"
            )


def _weight_that_counts(weight: Any, n_rows: int) -> Floats:
    """Return the rows' weights for the binning, from any form that a library takes.

    Some train on negative weights too; in the binning these count as zero.
    """
    array = np.asarray(weight)
    array = array.astype(np.float64) if array.dtype == object else array
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    try:
        return positive_weight(np.maximum(array, 0), n_rows, "sample_weight")
    except ValueError as error:
        raise ValueError(f"{error}, or give bin_method=None") from None


def _ready_bins(
    bins: Bins, table: Table, budgets: Sequence[int], to_native: Callable[[int, Floats], Floats], limit: str
) -> Bins:
    try:
        table.matched(bins.names)
    except ValueError as error:
        raise ValueError(f"bin_method holds bins for other columns: {error}") from None
    order = [bins.names.index(name) for name in table.names] if table.named else range(len(bins))
    cuts = [to_native(i, bins.cuts[j]) for i, j in enumerate(order)]
    for i, (native, room) in enumerate(zip(cuts, _rooms(budgets, to_native), strict=True)):
        if len(native) + 1 > room:
            raise ValueError(
                f"bin_method holds {len(native) + 1} bins for column {table.names[i]!r}, and {limit} has room for "
                f"{room}: raise it, or make bins with fewer"
            )
    same = bins.stats is not None and all(len(c) == len(bins.cuts[j]) for c, j in zip(cuts, order, strict=True))
    choices = [bins.choices.get(bins.names[j]) for j in order]
    shares = [bins.shares.get(bins.names[j]) for j in order]
    stats = [bins.stats[j] for j in order] if same and bins.stats else None
    return Bins(cuts, table.names, stats, choices, shares=shares)


def _rooms(budgets: Sequence[int], to_native: Callable[[int, Floats], Floats]) -> list[int]:
    """Return how many bins each column can have, with the cuts that a library adds by itself."""
    return [budget + len(to_native(i, np.empty(0))) for i, budget in enumerate(budgets)]
