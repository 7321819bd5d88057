"""Bins across columns: how many each one gets of a total, and how many are enough.

A column that the target needs finely gets many bins, others few. What the target needs is seen by a pilot: a small
boosted model on a sample of rows, whose splits may lie between any two values. A column's value is the sum of the cube
roots of the gains of its splits: with B bins, a column loses about value**3 / B**2 of the target's variance, so bins in
proportion to it lose least in all (as quantizers share bits: Gersho & Gray 1992). What matters only together with
other columns is seen; noise gets next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbins import _core
from boostbins._threads import map_threads
from boostbins.methods import MAX_BINS, MIN_BINS
from boostbins.methods.density import Points
from boostbins.sources.values import Floats
from boostbins.summary.column import ColumnSummary
from boostbins.summary.rows import MAX_ROWS, RowSample

TotalBins: TypeAlias = int | Literal["auto"] | None

MAX_SHARED_BINS = 4095
"""Of one column, where bins are shared and nothing else limits them."""

_TREES, _LEAVES, _RATE = 15, 31, 0.2
_LEAST_SHARE, _LEAST_ROWS = 1 / 400, 10  # of a leaf: of the weight of all, and of the different rows
_ROWS_OF_ALL, _FEWEST_ROWS = 2, 2048  # of how many rows the pilot sees one, and how many at least
_EVENLY = 0.1  # of the shares: a pilot does not see all

_COARSE = 8  # bins per column on average, with which a second pilot has to do
_ENOUGH = 0.002  # of the error that is left may be due to bins
_DECAY = 1.3  # what is due to bins falls with their number to this power: 1 for steps, 2 for what is smooth
_FEWEST, _MOST, _UNKNOWN = 32, 255, 127  # bins per column on average: at least, at most, and where too little is seen
_SEEN = 0.1  # of the target's variance, which the pilots must explain for their errors to tell anything
_JUDGED_ROWS, _PARTS = 4096, 3  # on which pilots are judged, and in how many parts
_JUDGED_TREES, _JUDGED_RATE = 8, 0.3  # fewer trees that learn as much


@dataclass(frozen=True)
class BinShare:
    """How many bins a column got of a total, and why."""

    bins: int
    value: float  # its part of what bins are worth in all columns: by the target, or by how the values are spread
    useful: int  # how many it could use: of its distinct values, or of its limit
    by: Literal["target", "spread"]

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> BinShare:
        """Return what `dataclasses.asdict` gave, where it can be so."""
        share = cls(**fields)
        is_sound = type(share.bins) is type(share.useful) is int and type(share.value) in (int, float)
        if not is_sound or not MIN_BINS <= share.bins <= share.useful <= MAX_BINS or not 0 <= share.value <= 1:
            raise ValueError("a share must be of a number of bins that are of use, with a value from 0 to 1")
        if share.by not in _BY:
            raise ValueError(f"a share must be by target or spread, got {share.by!r}")
        return share

    @property
    def why(self) -> str:
        """Return the reason in words."""
        if self.bins == self.useful:
            return f"as many as it can use; {self.value:.1%} of {_BY[self.by]}"
        return f"{self.value:.1%} of {_BY[self.by]}"


_BY = {"target": "what bins gain for the target", "spread": "the spread of all columns"}


class Shares(NamedTuple):
    """What a pilot makes of columns."""

    of_columns: Floats  # of all bins, in sum 1
    sample: RowSample
    targets: Floats
    weights: Floats


@dataclass(frozen=True)
class Total:
    """How many bins are asked for in all columns together: as a number, an average per column, or as are enough."""

    total_bins: TotalBins = None
    average_bins: float | None = None

    def __bool__(self) -> bool:
        return self.total_bins is not None or self.average_bins is not None

    def __str__(self) -> str:
        name = "average_bins" if self.total_bins is None else "total_bins"
        return f"{name}={getattr(self, name)!r}"

    def of(self, n_columns: int, taken: int = 0, taken_for: str = "") -> TotalBins:
        """Return what is left of the total for `n_columns`, when some bins are taken; at least two for each."""
        total, average = self.total_bins, self.average_bins
        if average is not None:
            if total is not None:
                raise ValueError(
                    f"total_bins={total!r} and average_bins={average!r} contradict each other: give one of them"
                )
            is_number = isinstance(average, int | float | np.integer | np.floating) and not isinstance(average, bool)
            if not is_number or not MIN_BINS <= average <= MAX_BINS:
                raise ValueError(f"average_bins must be a number from {MIN_BINS} to {MAX_BINS}, got {average!r}")
            return max(int(average * n_columns) - taken, MIN_BINS * n_columns)
        if total is None or (isinstance(total, str) and total == "auto"):
            return total
        is_whole = isinstance(total, int | np.integer) and not isinstance(total, bool)
        if not is_whole or total < MIN_BINS * n_columns + taken:
            also = f" and {taken}{taken_for}" if taken else ""
            raise ValueError(
                f'total_bins must be "auto", or a whole number, at least {MIN_BINS} for each of {n_columns} '
                f"columns{also}, got {total!r}"
            )
        return int(total) - taken


NO_TOTAL = Total()


def useful_bins(max_bins: int, n_values: int | None) -> int:
    """Return how many of `max_bins` a column can use that has `n_values` different ones, if known: two at least."""
    return max(max_bins if n_values is None else min(max_bins, n_values), MIN_BINS)


def allocate_bins(total: int, most: Sequence[int], shares: Sequence[float] | Floats) -> list[int]:
    """Return how many bins each column gets of a total: in proportion to its share, at most what it can use.

    >>> allocate_bins(100, [255, 255, 10], [0.5, 0.3, 0.2])
    [56, 34, 10]
    """
    limit, share = np.array(most, np.float64), np.array(shares, np.float64)
    if limit.sum() <= total:
        return list(most)
    low, high = 0.0, float((limit / share).max())  # the scale of the shares, and one where each gets what it can use
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


def shared_bins(
    total: int, most: Sequence[int], shares: Sequence[float] | Floats, by: Literal["target", "spread"]
) -> list[BinShare]:
    """Return how many bins each column gets of a total, and why."""
    given = allocate_bins(total, most, shares)
    return [BinShare(n, float(share), useful, by) for n, share, useful in zip(given, shares, most, strict=True)]


def shares_by_spread(summaries: Sequence[ColumnSummary]) -> Floats:
    """Return the columns' shares of bins without a target: by how finely their values are spread."""
    return _with_some_for_all([bin_value(summary) for summary in summaries])


def bin_value(summary: ColumnSummary) -> float:
    """Return the sum of the cube roots of what k-means loses between neighbouring values, in standard deviations."""
    if len(summary.points.weight) < 2:
        return 0.0
    column = Points(summary)
    with np.errstate(over="ignore"):
        distance = column.distance / (float(np.sqrt(summary.variance)) or 1.0)
    present = summary.weight / (summary.weight + sum(summary.special_weights))
    share = present * column.between_weight / column.weight.sum()
    return float((np.cbrt(share) * np.cbrt(distance) ** 2).sum())


def shares_by_target(sample: RowSample) -> Shares:
    """Return the columns' shares of bins: by the splits of a pilot."""
    sample = sample.first(int(np.clip(sample.n_different / _ROWS_OF_ALL, _FEWEST_ROWS, MAX_ROWS)))
    weights = sample.moments[:, 0]
    targets = sample.moments[:, 1:-1] / weights[:, None]
    largest = np.abs(targets).max(initial=0.0) or 1.0
    targets = targets / largest
    weights = weights / weights.max(initial=0.0) if len(weights) else weights
    value: Floats = np.zeros(len(sample.values))
    if len(sample):
        columns, gains, _ = _pilot(sample.values, targets, weights, _TREES, _RATE)
        np.add.at(value, columns.astype(np.intp), np.cbrt(gains))
    return Shares(_with_some_for_all(value), sample, targets, weights)


def enough_bins(shares: Shares, codes: Floats, n_threads: int | None) -> int:
    """Return how many bins in all are enough: more of them would hardly lessen the error.

    Pilots learn from two thirds of the rows, for each third anew: one from the values, another from their codes with
    few bins. By how much more the latter err on the rows that they have not seen tells how much finer bins must be.

    Parameters
    ----------
    shares : Shares
    codes : array of shape (columns, rows)
        The numbers of the bins that hold the sample's values; NaN for missing ones.
    n_threads : int, optional
    """
    sample = shares.sample.first(_JUDGED_ROWS)
    n_columns, n_rows = len(sample.values), len(sample)
    targets, weights = shares.targets[:n_rows], shares.weights[:n_rows]
    parts = (sample.keys >> np.uint64(32)) % np.uint64(_PARTS)  # of bits that do not hang on the last digits

    def errors(part: int) -> tuple[float, float, float]:
        """Return the errors on a part: of the pilot from the values, of that from the codes, and of the mean."""
        held = weights * (parts == part)
        growing = weights - held
        mean = (targets * growing[:, None]).sum(axis=0) / growing.sum() if growing.any() else 0.0
        left = [
            _pilot(values, targets, growing, _JUDGED_TREES, _JUDGED_RATE)[2]
            for values in (sample.values, codes[:, :n_rows])
        ]
        fine, coarse, none = (float((held * np.square(x).sum(axis=1)).sum()) for x in (*left, targets - mean))
        return fine, coarse, none

    fine, coarse, none = np.array(map_threads(errors, range(_PARTS), n_threads)).sum(axis=0).tolist()
    if min(fine, coarse) > (1 - _SEEN) * none or none == 0:
        return _UNKNOWN * n_columns
    lost = (coarse - fine) / fine if fine > 0 else np.inf
    average = _COARSE * (max(lost, 0.0) / _ENOUGH) ** (1 / _DECAY)
    return round(float(np.clip(average, _FEWEST, _MOST)) * n_columns)


def coarse_bins(n_columns: int) -> int:
    """Return the total with which `enough_bins` sees what bins cost."""
    return _COARSE * n_columns


def _pilot(
    values: Floats, targets: Floats, weights: Floats, n_trees: int, rate: float
) -> tuple[NDArray[np.uint64], Floats, Floats]:
    """Return the columns of the splits of a small boosted model, their gains, and what is left of the targets."""
    least = max(_LEAST_SHARE, _LEAST_ROWS / len(weights)) * float(weights.sum())
    return _core.pilot(values, targets, weights, n_trees, _LEAVES, rate, least)


def _with_some_for_all(value: Sequence[float] | Floats) -> Floats:
    """Return the shares of columns: a part evenly, the rest by their value."""
    value = np.array(value, np.float64)
    evenly = np.full(len(value), 1 / max(len(value), 1))
    return _EVENLY * evenly + (1 - _EVENLY) * (value / value.sum()) if value.sum() > 0 else evenly
