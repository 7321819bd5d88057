"""Cuts by densities: how many bins a stretch of values deserves for its rows, its spread, and what the target does.

A density says of each gap between neighbouring points which share of the cuts it should get. Three are known, each the
best for some loss when bins are many: equal rows per bin (quantiles); the least variance of the values within bins
(k-means: the cube root of rows times squared distance, Panter & Dite 1951); and the same with the target's mean in
place of the values. A mixture of densities keeps a part of each one's promise: where the rows' has a share a, no bin
holds more than 1/a of the rows that a quantile bin would (but for half of those of its two end values).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from boostbins import _core
from boostbins.sources.values import Floats
from boostbins.summary.column import ColumnSummary, halfway

MIXTURES: dict[str, tuple[float, float, float]] = {
    "hybrid": (0.75, 0.25, 0.0),
    "even hybrid": (0.5, 0.5, 0.0),
    "quantile": (1.0, 0.0, 0.0),
    "optimal": (0.0, 1.0, 0.0),
    "mixture": (0.6, 0.2, 0.2),
    "even mixture": (1 / 3, 1 / 3, 1 / 3),
    "spread mixture": (0.2, 0.6, 0.2),
}
"""Shares of the densities of rows, spread and target, by name."""


def hybrid(summary: ColumnSummary, max_bins: int) -> Floats:
    """Cut by rows and by spread: three quarters of the cuts as quantiles lie, one quarter as in the best k-means.

    For use without a target. All cuts are used on every column, ties or not, and no bin holds more than 4/3 of the
    rows that a quantile bin would, but for rows of the values at its ends (half of these do not count).

    >>> hybrid(ColumnSummary([0, 0, 0, 0, 1, 2, 3, 1000]), 4).tolist()
    [0.5, 1.5, 501.5]
    """
    column = Points(summary)
    return column.between(placed_gaps(mixed("hybrid", column.densities()), max_bins))


class Points:
    """The points of a summary, and the gaps between them."""

    def __init__(self, summary: ColumnSummary) -> None:
        points = summary.points
        self.low, self.high = points.low, points.high
        # As they are, so that a weight is as good as repeated rows, to the last bit; very small ones in a unit that has
        # room below it.
        self.weight = points.weight
        if (most := float(points.weight.max())) < 1:
            self.weight = np.ldexp(points.weight, -math.frexp(most)[1])
        self.between_weight = (self.weight[:-1] + self.weight[1:]) / 2
        self._weighted = not np.array_equal(points.weight, points.rows)
        if self._weighted:
            # Weights add up to the number of equal rows that would leave as much to chance (Kish 1965).
            self._most = most
            share = points.weight / most
            self._rows_of_most = float(share.sum() / (share**2 / points.rows).sum())
        self.rows = self.in_rows(points.weight)
        self.middle = points.middle
        with np.errstate(over="ignore"):
            distance = np.diff(self.middle)
        self.distance = distance if np.isfinite(distance).all() else self.middle[1:] / 2 - self.middle[:-1] / 2

    def in_rows(self, weights: Floats) -> Floats:
        """Return sums of weights, or of what they multiply, in units of rows."""
        return weights / self._most * self._rows_of_most if self._weighted else weights

    def densities(self) -> list[Floats]:
        """Return those of rows and of spread."""
        spread = np.cbrt(self.between_weight) * np.cbrt(self.distance / self.distance.max()) ** 2
        return [shares(self.between_weight), shares(spread)]

    def between(self, gaps: NDArray[np.intp]) -> Floats:
        """Return cuts in some gaps."""
        return halfway(self.high[gaps], self.low[gaps + 1])

    def gaps_of(self, cuts: Floats) -> NDArray[np.intp]:
        """Return the gaps that cuts lie in."""
        gaps = np.unique(np.searchsorted(self.middle, cuts, side="right")) - 1
        return gaps[(gaps >= 0) & (gaps < len(self.middle) - 1)]


def shares(masses: Floats) -> Floats:
    """Return masses as parts of their sum; equal ones, if that is zero."""
    total = masses.sum()
    return masses / total if total > 0 else np.full(len(masses), 1 / len(masses))


def mixed(name: str, densities: list[Floats]) -> Floats:
    """Return a mixture of the densities that are there."""
    mixed = np.zeros(len(densities[0]))
    for share, density in zip(MIXTURES[name], densities, strict=False):
        if share:
            mixed += share * density
    return mixed


def placed_gaps(density: Floats, max_bins: int) -> NDArray[np.intp]:
    """Return the gaps to be cut, `max_bins` - 1 of them: no gap takes two cuts, and what one cannot take others do.

    The cuts lie in the middle of equal shares: the end bins get half of what the others do, as between quantile seeds.
    """
    if max_bins - 1 >= len(density):
        return np.arange(len(density))
    if max_bins < 2:
        return np.empty(0, np.intp)
    return _core.placed(density, max_bins - 1).astype(np.intp)
