"""Bins across columns: how many each one gets of a total."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from boostbins.methods import MIN_BINS
from boostbins.methods.choice import TargetSums
from boostbins.methods.density import Points, mixed
from boostbins.summary.column import ColumnSummary


def bin_value(summary: ColumnSummary) -> float:
    """Return how much a column gains from bins: the number that it should get is proportional to it.

    With B bins by the best density the mean square that is lost is about ``value**3 / (12 B**2)``: of the target's
    mean, in units of its standard deviation; without a target, of the values, in units of theirs. (Rows without a value
    lose nothing.) Shared by columns in proportion to this value, bins lose least in all.
    """
    if len(summary.points.weight) < 2:
        return 0.0
    column = Points(summary)
    if not summary.has_target:
        deviation = float(np.sqrt(summary.variance)) or 1.0
        with np.errstate(over="ignore"):
            change = column.distance / deviation
    else:
        target = TargetSums(summary, column)
        if target.total == 0:
            return 0.0
        change = target.change(mixed("even hybrid", column.densities()))
        change = change / np.sqrt(target.total / column.rows.sum())
    present = summary.weight / (summary.weight + sum(summary.special_weights))
    share = present * column.between_weight / column.weight.sum()
    return float((np.cbrt(share) * np.cbrt(change) ** 2).sum())


def distinct_bins(summary: ColumnSummary, max_bins: int) -> int:
    """Return the number of bins that a column can use, of those that it may have."""
    return max(min(max_bins, summary.n_cells) if summary.is_exact else max_bins, MIN_BINS)


def allocate_bins(total: int, most: Sequence[int], bin_values: Sequence[float]) -> list[int]:
    """Return how many bins each column gets of a total: half of them evenly, half by value, to each what it can use.

    >>> allocate_bins(100, [255, 255, 10], [3.0, 1.0, 1.0])
    [57, 33, 10]
    """
    checked_total(total, len(most))
    limit, value_of = np.array(most, np.float64), np.array(bin_values)
    if limit.sum() <= total:
        return list(most)
    share = np.full(len(most), 1 / len(most))
    if value_of.sum() > 0:
        share = (share + value_of / value_of.sum()) / 2
    low, high = 0.0, float((limit / share).max())  # of how much the shares are of, where each gets what it can use
    for _ in range(100):
        middle = (low + high) / 2
        fits = np.clip(middle * share, MIN_BINS, limit).sum() <= total
        low, high = (middle, high) if fits else (low, middle)
    bins = np.clip(low * share, MIN_BINS, limit)
    whole = np.floor(bins).astype(int)
    most_left = np.argsort(whole - bins, kind="stable")
    most_left = most_left[whole[most_left] < limit[most_left]]
    whole[most_left[: int(total - whole.sum())]] += 1
    return [int(n) for n in whole]


def checked_total(total: int, n_columns: int, taken: int = 0, taken_for: str = "") -> int:
    """Return a total of bins that has some for each column, besides those that are taken."""
    is_whole = isinstance(total, int | np.integer) and not isinstance(total, bool)
    if not is_whole or total < MIN_BINS * n_columns + taken:
        also = f" and {taken}{taken_for}" if taken else ""
        raise ValueError(
            f"total_bins must be a whole number, at least {MIN_BINS} for each of {n_columns} columns{also}, "
            f"got {total!r}"
        )
    return total
