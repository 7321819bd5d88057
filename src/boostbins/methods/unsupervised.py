"""Methods that look at the values only."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from boostbins import _core
from boostbins.sources.values import Floats, real_numbers
from boostbins.summary.column import ColumnSummary, halfway, run_means


def quantile(summary: ColumnSummary, max_bins: int) -> Floats:
    """Cut so that the bins hold equally many rows: at the inner quantiles, with linear interpolation."""
    return summary.quantile(np.arange(1, max_bins) / max_bins)


def uniform(summary: ColumnSummary, max_bins: int) -> Floats:
    """Cut into equal widths between the least and the greatest value."""
    share = np.arange(1, max_bins) / max_bins
    return summary.min * (1 - share) + summary.max * share


def kmeans(
    summary: ColumnSummary,
    max_bins: int,
    *,
    seeds: Literal["quantile", "k-means++"] | ArrayLike = "quantile",
    max_iter: int = 300,
    tol: float = 1e-4,
    random_state: int | None = 0,
) -> Floats:
    """Cut halfway between the centers of k-means: Lloyd's iteration, by default from quantile seeds.

    The rule of Labovich (TMLR 2025), and the centers of scikit-learn's ``KMeans(init=seeds, n_init=1)`` with the
    same `max_iter` and `tol`: stop when the centers' squared moves add up to at most `tol` times the column's
    variance; an empty cluster takes the row that is farthest from its center.

    Parameters
    ----------
    summary : ColumnSummary
    max_bins : int
    seeds : "quantile", "k-means++" or array
        The centers to begin with: quantiles from 0 to 1; Arthur & Vassilvitskii's random ones, drawn with
        `random_state`; or your own, at most `max_bins`.
    max_iter : int
    tol : float
    random_state : int, optional

    Examples
    --------
    Parameters are set with `functools.partial`:

    >>> from functools import partial
    >>> converged = partial(kmeans, max_iter=10_000, tol=0)
    >>> converged(ColumnSummary([1, 2, 3, 10, 20, 30]), 2)
    array([14.5])
    """
    if isinstance(seeds, str):
        if seeds == "quantile":
            start = summary.quantile(_even_shares(max_bins))
        elif seeds == "k-means++":
            start = _plus_plus(summary, max_bins, random_state)
        else:
            raise ValueError(f"seeds must be 'quantile', 'k-means++' or an array of centers, got {seeds!r}")
    else:
        start = real_numbers(seeds, "seeds")
        if start.ndim != 1 or not 1 <= len(start) <= max_bins or not np.isfinite(start).all():
            raise ValueError(
                f"seeds must be 1 to max_bins={max_bins} finite numbers, got an array of shape {start.shape}"
            )
    if max_iter < 1 or not tol >= 0:
        raise ValueError(f"max_iter must be at least 1 and tol at least 0, got {max_iter!r} and {tol!r}")
    centers, _ = _core.lloyd(summary.points, start, summary.mean, max_iter, tol)
    return midpoints(distinct(centers))


def optimal(summary: ColumnSummary, max_bins: int) -> Floats:
    """Cut where the bins' within-variance is least: the global optimum of k-means.

    Exact on the summary's points; with ``exact=True`` in `fit_bins`, on the raw column.
    """
    points = summary.points
    middle = points.middle
    if len(middle) <= max_bins:
        return points.high[:-1]
    first = _core.optimal(middle, points.weight, max_bins).astype(np.intp)[:-1]
    center = run_means(middle, points.weight, first)
    cut = halfway(center[:-1], center[1:])
    return np.clip(cut, points.high[first[1:] - 1], np.nextafter(points.low[first[1:]], -np.inf))


@lru_cache(maxsize=8)
def _even_shares(n: int) -> Floats:
    shares = np.linspace(0, 1, n)
    shares.flags.writeable = False
    return shares


def distinct(values: Floats) -> Floats:
    """Return the distinct values in ascending order."""
    return values if (values[1:] > values[:-1]).all() else np.unique(values)


def midpoints(values: Floats) -> Floats:
    """Return cuts that separate ascending, distinct values.

    >>> midpoints(np.array([1.0, 2.0, 4.0]))
    array([1.5, 3. ])
    """
    return halfway(values[:-1], values[1:])


def _plus_plus(summary: ColumnSummary, k: int, random_state: int | None) -> Floats:
    """Seeds drawn one by one, each with a chance proportional to its squared distance from those before."""
    random = np.random.default_rng(random_state)
    x, weight = summary.points.middle, summary.points.weight
    scale = max(abs(summary.min), abs(summary.max)) or 1.0
    seeds = [x[random.choice(len(x), p=weight / weight.sum())]]
    distance = np.full(len(x), np.inf)
    while len(seeds) < k:
        distance = np.minimum(distance, np.abs(x / scale - seeds[-1] / scale))
        chance = np.cumsum(weight * distance**2)
        if chance[-1] == 0:
            break
        seeds.append(x[np.searchsorted(chance, random.random() * chance[-1], side="right")])
    return np.sort(np.array(seeds))
