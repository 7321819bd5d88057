"""Bins across columns: how many each one gets of a total, and how many are enough.

A column that the target needs finely gets many bins, others few. What the target needs is seen by a pilot: a small
boosted model on a sample of rows. Each of its splits is tried again with only every second cut of its column, every
fourth, and so on: what the splits lose so is what the column loses with so many bins. Bins go where one more of them
gains most. A column of which the target is a smooth function loses a quarter with twice the bins, one whose every value
has its own effect only half; what matters only together with other columns is seen, too; noise gets next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbins import _core
from boostbins.methods import DEFAULT_BINS, MAX_BINS, MIN_BINS
from boostbins.methods.density import Points
from boostbins.sources.values import Floats
from boostbins.summary.column import ColumnSummary
from boostbins.summary.rows import RowSample

Codes: TypeAlias = NDArray[np.uint16]
TotalBins: TypeAlias = int | Literal["auto"] | None

MAX_SHARED_BINS = 4095
"""Of one column, where bins are shared and nothing else limits them."""

_TREES, _LEAVES, _RATE = 15, 31, 0.2
_GROUPS = 1023  # of a column's values in the sample, where it has more: the pilot cuts between them
_LEAST_SHARE, _LEAST_ROWS = 1 / 400, 10  # of a leaf: of the weight of all, and of the different rows
_ROWS_OF_ALL, _FEWEST_ROWS, _MOST_ROWS = 2, 2048, 8192  # of how many rows the pilot sees one; at least and at most
_EVENLY = 0.1  # of the bins: a pilot does not see all
_SMOOTH = 3.0  # what one more of B bins gains falls with B to this power, where the target is a smooth function
_FINER, _FINEST = (0.25, 0.5), 2  # what twice the bins leave of a loss beyond what is seen; doublings there
_NO_NEED, _LARGEST_GAIN = -1000.0, 2000.0  # the logarithms of what bins gain that gain nothing, and of no real gain
_PER_ROW = 16  # bins of a column at most, for each of the rows that make up the target's variance
_FAR = 300.0  # the logarithm of more bins than there are

_COARSE = 8  # bins per column on average, with which a second pilot has to do
_ENOUGH = 0.003  # of the error that is left may be due to bins
_DECAY = 1.3  # what is due to bins falls with their number to this power: 1 for steps, 2 for what is smooth
_FEWEST, _MOST, _UNKNOWN = 32, 255, 127  # bins per column on average: at least, at most, and where too little is seen
_SEEN = 0.1  # of the target's variance, which the pilots must explain for their errors to tell anything


@dataclass(frozen=True)
class BinShare:
    """How many bins a column got of a total, and why."""

    bins: int
    value: float  # its part of what bins are worth in all columns: by the target, or by how the values are spread
    useful: int  # how many it could use: of its distinct values, of its limit, or of the target's rows
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


@dataclass(frozen=True)
class Needs:
    """What bins gain in each column: all of them, and one more of so many."""

    values: Floats
    """Of all bins of each column, in sum 1."""
    points: Floats
    """The logarithms of numbers of bins, ascending, and of what one more gains there, descending: (columns, 2, n)."""

    def bins_where_one_more_gains(self, gain: float) -> Floats:
        """Return for each column the number of bins at which one more of them gains so much, a logarithm."""
        sizes, gains = self.points[:, 0], self.points[:, 1]
        columns, last = np.arange(len(sizes)), sizes.shape[1] - 1
        after = (gains >= gain).sum(axis=1)
        left, right = np.maximum(after - 1, 0), np.minimum(after, last)
        beyond = gains[columns, left] - gain
        between = (after > 0) & (after <= last)
        falls = gains[columns, left] - gains[columns, right]
        part = np.divide(beyond, falls, out=np.zeros(len(sizes)), where=between)
        ahead = np.where(between, part * (sizes[columns, right] - sizes[columns, left]), beyond / _SMOOTH)
        bins: Floats = np.exp(np.clip(sizes[columns, left] + ahead, -_FAR, _FAR))
        return bins


class Pilot(NamedTuple):
    """What a pilot tells, and what it was of."""

    needs: Needs
    most: list[int]  # how many bins each column can use, as far as the target's rows can tell them apart
    sample: RowSample  # the rows that it learns from, then some that it does not
    targets: Floats
    weights: Floats
    learns: NDArray[np.bool_]
    left: Floats  # what it leaves of the targets


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


def allocate_bins(total: int, most: Sequence[int], needs: Needs) -> list[int]:
    """Return how many bins each column gets of a total: where one more gains most, at most what it can use.

    >>> allocate_bins(100, [255, 255, 10], needs_in_proportion([0.5, 0.3, 0.2]))
    [56, 34, 10]
    """
    limit = np.array(most, np.float64)
    if limit.sum() <= total:
        return list(most)
    least = np.clip(_EVENLY * total / len(limit), MIN_BINS, limit)

    def bins_at(gain: float) -> Floats:
        return np.clip(needs.bins_where_one_more_gains(gain), least, limit)

    low, high = -_LARGEST_GAIN, _LARGEST_GAIN  # what one more gains where each has all, and where each has the least
    for _ in range(60):
        middle = (low + high) / 2
        fits = bins_at(middle).sum() <= total
        low, high = (low, middle) if fits else (middle, high)
    bins = bins_at(high)
    whole = np.floor(bins).astype(int)
    most_left = np.argsort(whole - bins, kind="stable")
    most_left = most_left[whole[most_left] < limit[most_left]]
    whole[most_left[: int(total - whole.sum())]] += 1
    return [int(n) for n in whole]


def shared_bins(total: int, most: Sequence[int], needs: Needs, by: Literal["target", "spread"]) -> list[BinShare]:
    """Return how many bins each column gets of a total, and why."""
    given = allocate_bins(total, most, needs)
    return [BinShare(n, float(value), useful, by) for n, value, useful in zip(given, needs.values, most, strict=True)]


def needs_in_proportion(values: Sequence[float] | Floats) -> Needs:
    """Return what bins gain where a column loses value**3 / B**2 with B bins: they go in proportion to the values."""
    values = np.array(values, np.float64)
    gains = _SMOOTH * np.log(values, out=np.full(len(values), -_LARGEST_GAIN), where=values > 0)
    gains = np.clip(gains, _NO_NEED, -_NO_NEED)  # so that those of the least and the greatest are found
    return Needs(_in_sum_1(values), np.stack([np.zeros(len(values)), gains], axis=1)[:, :, None])


def needs_by_spread(summaries: Sequence[ColumnSummary]) -> Needs:
    """Return what bins gain without a target: by how finely the columns' values are spread."""
    return needs_in_proportion([bin_value(summary) for summary in summaries])


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


def needs_by_target(sample: RowSample, most: Sequence[int], *, judged: bool = False) -> Pilot:
    """Return what bins gain for the target: what the splits of a pilot gain with ever fewer cuts.

    Parameters
    ----------
    sample : RowSample
    most : sequence of int
        How many bins each column can use.
    judged : bool
        Whether to keep some rows for `enough_bins`, from which the pilot does not learn.
    """
    n_different = sample.n_different
    n_learns = int(np.clip(n_different / _ROWS_OF_ALL, _FEWEST_ROWS, _MOST_ROWS))
    if judged:
        n_learns = min(n_learns, len(sample) * 2 // 3)
    sample = sample.first(n_learns + n_learns // 2 if judged else n_learns)
    weights = sample.moments[:, 0]
    targets = sample.moments[:, 1:-1] / weights[:, None]
    targets = targets / (np.abs(targets).max(initial=0.0) or 1.0)
    weights = weights / (weights.max(initial=0.0) or 1.0)
    learns = np.arange(len(sample)) < n_learns
    n_columns = len(sample.values)
    gains, sizes, left = np.zeros((n_columns, 1)), np.ones(n_columns, np.intp), targets
    if len(sample):
        codes = _core.rank_codes(sample.values, _GROUPS)
        columns, found, left = _grown(codes, targets, weights * learns)
        # A few huge gains do not rule: of a gain counts its root, and of what is left of it as large a part.
        gains = np.zeros((n_columns, found.shape[1]))
        np.add.at(gains, columns.astype(np.intp), found / np.sqrt(found[:, :1]))
        sizes = codes.max(axis=1).astype(np.intp) + 1
    points = [_points(column, int(size), useful) for column, size, useful in zip(gains, sizes, most, strict=True)]
    needs = Needs(_in_sum_1(gains[:, 0]), np.array(points).reshape(n_columns, 2, -1))
    supported = _supported(targets, weights, n_different)
    return Pilot(needs, [min(n, supported) for n in most], sample, targets, weights, learns, left)


def _points(gains: Floats, n_codes: int, useful: int) -> Floats:
    """Return where one more bin of a column gains what, from the gains with its bins, with half of them, and so on."""
    n_points = len(gains) + _FINEST
    sizes = -(-n_codes // 2 ** np.arange(len(gains)))
    losses = (gains[0] - gains)[sizes >= MIN_BINS][::-1]
    sizes = sizes[sizes >= MIN_BINS][::-1].astype(np.float64)
    if useful > n_codes and len(losses) > 2 and losses[-3] > 0:
        # The sample has not all of its values: the loss goes on to fall, as before.
        left = float(np.clip(losses[-2] / losses[-3], *_FINER))
        further = 2 ** np.arange(1, _FINEST + 1)
        losses = np.concatenate([losses[:-1], losses[-2] * left ** np.arange(1, _FINEST + 2)])
        sizes = np.concatenate([sizes, sizes[-1] * further])
    hull: list[tuple[float, float]] = []  # of the losses: what one more bin gains falls from corner to corner
    for size, loss in zip(sizes.tolist(), losses.tolist(), strict=True):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-2], (size, loss)):
            hull.pop()
        if not hull or size > hull[-1][0]:
            hull.append((size, loss))
    falling = [(a, b) for a, b in pairwise(hull) if b[1] < a[1]]
    if not falling:
        return np.array([[0.0] * n_points, [_NO_NEED] * n_points])
    points = [(np.log(a[0] * b[0]) / 2, np.log(-_slope(a, b))) for a, b in falling]
    return np.array(points + [points[-1]] * (n_points - len(points))).T


def _slope(a: tuple[float, float], b: tuple[float, float]) -> float:
    return (b[1] - a[1]) / (b[0] - a[0])


def _supported(targets: Floats, weights: Floats, n_rows: float) -> int:
    """Return how many bins of a column a target can tell apart: some for each row that it is made of.

    Where few rows hold most of the target's variance (Kish's count of them), finer bins would find these rows, and
    trees whose leaves may be single rows learn them by heart. What libraries have by themselves is never too many.
    """
    if not len(targets):
        return DEFAULT_BINS
    mean = np.average(targets, axis=0, weights=weights) if weights.any() else 0.0
    parts = weights * np.square(targets - mean).sum(axis=1)
    if not parts.any():
        return DEFAULT_BINS
    parts /= parts.max()
    count = parts.sum() ** 2 / np.square(parts).sum()
    return int(np.clip(_PER_ROW * count * n_rows / len(parts), DEFAULT_BINS, MAX_BINS))


def enough_bins(pilot: Pilot, codes: Codes) -> int:
    """Return how many bins in all are enough: more of them would hardly lessen the error.

    Another pilot learns from few bins. By how much more it errs on rows that both have not seen tells how much finer
    bins must be.

    Parameters
    ----------
    pilot : Pilot
        One that is judged.
    codes : array of shape (columns, rows)
        The numbers of the few bins that hold the sample's values; missing ones above all others.
    """
    n_columns = len(codes)
    growing, held = pilot.weights * pilot.learns, pilot.weights * ~pilot.learns
    if not (growing.any() and held.any()):
        return _UNKNOWN * n_columns
    _, _, left = _grown(codes, pilot.targets, growing)
    mean = np.average(pilot.targets, axis=0, weights=growing)
    fine, coarse, none = (
        float((held * np.square(errors).sum(axis=1)).sum()) for errors in (pilot.left, left, pilot.targets - mean)
    )
    if min(fine, coarse) > (1 - _SEEN) * none or none == 0:
        return _UNKNOWN * n_columns
    lost = (coarse - fine) / fine if fine > 0 else np.inf
    average = _COARSE * (max(lost, 0.0) / _ENOUGH) ** (1 / _DECAY)
    return round(float(np.clip(average, _FEWEST, _MOST)) * n_columns)


def coarse_bins(n_columns: int) -> int:
    """Return the total with which `enough_bins` sees what bins cost."""
    return _COARSE * n_columns


def _grown(codes: Codes, targets: Floats, weights: Floats) -> tuple[NDArray[np.uint64], Floats, Floats]:
    """Return a small boosted model's columns of splits, their gains with ever fewer cuts, and what is left."""
    least = max(_LEAST_SHARE, _LEAST_ROWS / max(int(np.count_nonzero(weights)), 1)) * float(weights.sum())
    return _core.pilot(codes, targets, weights, _TREES, _LEAVES, _RATE, least)


def _in_sum_1(values: Floats) -> Floats:
    """Return the parts of a sum; of nothing, equal ones."""
    total = values.sum()
    return np.minimum(values / total, 1.0) if total > 0 else np.full(len(values), 1 / max(len(values), 1))
