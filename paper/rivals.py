"""The rivals of boostbins' `auto`, as functions `(summary, max_bins) -> cuts`: what else is there for skew."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boostbins

Floats = NDArray[np.float64]


def uniform_and_quantiles(summary: Any, max_bins: int) -> Floats:
    """Cut one half at quantiles and one half at equal steps: CatBoost's `UniformAndQuantiles`.

    As its TMedianPlusUniformBinarizer does it (library/cpp/grid_creator/binarization.cpp): every cut is moved to the
    middle between the neighbouring values, and those that meet there are one.
    """
    points = summary.points
    n_uniform = (max_bins - 1) // 2
    n_quantiles = max_bins - 1 - n_uniform
    rows = np.cumsum(points.weight)
    rank = np.floor(np.arange(1, n_quantiles + 1) * rows[-1] / (n_quantiles + 1))
    at_rank = points.low[np.minimum(np.searchsorted(rows, rank, side="right"), len(rows) - 1)]
    wanted = np.concatenate([at_rank, boostbins.uniform(summary, n_uniform + 1)])
    return _between(points.low, points.high, np.searchsorted(points.low, wanted))


def uniform_robust(summary: Any, max_bins: int) -> Floats:
    """Cut into equal widths, give up the bins that are empty, and cut those up that hold too much: as H2O does.

    Its `histogram_type="UniformRobust"` (https://docs.h2o.ai/h2o/latest-stable/h2o-docs/blog-releases.html) does one
    such round per level of a tree. Cuts that are found once for all trees need them all at once: until no bin is free,
    or none holds too much, which is more than its share of the rows.
    """
    low, high, weight = summary.points.low, summary.points.high, summary.points.weight
    rows = np.concatenate([[0.0], np.cumsum(weight)])
    first = _used(np.searchsorted(low, boostbins.uniform(summary, max_bins), side="right"), len(low))
    while (free := max_bins - len(first)) > 0:
        end = np.append(first[1:], len(low))
        excess = np.where(end - first > 1, np.maximum(rows[end] - rows[first] - rows[-1] / max_bins, 0.0), 0.0)
        if not excess.any():
            break
        # The free bins in proportion to the excess; at least one, to the bin with most.
        more = np.floor(free * excess / excess.sum()).astype(int)
        more[np.argmax(excess)] += not more.any()
        wanted = [first]
        for bin_ in np.flatnonzero(more):
            share = np.arange(1, more[bin_] + 1) / (more[bin_] + 1)
            least, most = low[first[bin_]], high[end[bin_] - 1]
            wanted.append(np.searchsorted(low, least * (1 - share) + most * share, side="right"))
        first = _used(np.concatenate(wanted), len(low))
    return _between(low, high, first[1:])


@boostbins.supervised
def tree(summary: Any, max_bins: int) -> Floats:
    """Cut where a regression tree on this column alone does that grows its best leaf first, to `max_bins` leaves."""
    low, high = summary.cell_ends
    weight, targets = summary.target_sums[:, 0], summary.target_sums[:, 1:-1]
    targets = targets - weight[:, None] * (targets.sum(axis=0) / weight.sum())  # a mean far from 0 would round
    rows = np.concatenate([[0.0], np.cumsum(weight)])
    sums = np.concatenate([np.zeros((1, targets.shape[1])), np.cumsum(targets, axis=0)])

    def leaf(first: int, end: int) -> tuple[float, int, int, int]:
        """Return the gain of the best cut of some cells, negative, and where it is."""
        if end - first < 2:
            return 0.0, first, first, end
        inner = slice(first + 1, end)
        left, right = rows[inner] - rows[first], rows[end] - rows[inner]
        gain = np.zeros(end - first - 1)
        for target in sums.T:
            before, after = target[inner] - target[first], target[end] - target[inner]
            gain += before * before / left + after * after / right
            gain -= (target[end] - target[first]) ** 2 / (rows[end] - rows[first])
        best = int(np.argmax(gain))
        return -float(gain[best]), first + 1 + best, first, end

    leaves, found = [leaf(0, len(low))], []
    negligible = -1e-12 * abs(leaves[0][0])  # what rounding leaves of a constant
    while len(found) < max_bins - 1 and leaves[0][0] < negligible:
        _, cut, first, end = heapq.heappop(leaves)
        found.append(cut)
        heapq.heappush(leaves, leaf(first, cut))
        heapq.heappush(leaves, leaf(cut, end))
    return _between(low, high, np.array(found, np.intp))


RIVALS = {"uniform+quantile": uniform_and_quantiles, "uniform-robust": uniform_robust, "tree": tree}


def _used(first: NDArray[np.intp], n_points: int) -> NDArray[np.intp]:
    """Return where the bins that hold something begin."""
    return np.unique(np.append(first[first < n_points], 0))


def _between(low: Floats, high: Floats, right: NDArray[np.intp]) -> Floats:
    """Return the cuts halfway between some points and those on their left."""
    right = np.unique(right)
    right = right[(right > 0) & (right < len(low))]
    return np.unique(high[right - 1] + (low[right] - high[right - 1]) / 2)
