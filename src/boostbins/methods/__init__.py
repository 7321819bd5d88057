"""The methods: functions from a summary and a number of bins to cuts, all in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from boostbins import _core
from boostbins.methods.density import Choice, Chosen, chosen, hybrid
from boostbins.sources.values import Floats, real_numbers
from boostbins.summary.column import ColumnSummary, halfway, run_means

Method: TypeAlias = Callable[[ColumnSummary, int], ArrayLike | Chosen]

MIN_BINS, MAX_BINS = 2, 65_535
"""Limits of `max_bins`: with a code for missing values, codes fit 16 bits."""


FEW_BINS = 32
"""Up to here a bin is so wide that what k-means makes of its inside counts more than its rows."""


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
            start = summary.quantile(np.linspace(0, 1, max_bins))
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
    return midpoints(np.unique(centers))


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


def auto(summary: ColumnSummary, max_bins: int) -> Floats | Chosen:
    """Cut by rows, spread and target, mixed as explains the target best: as usual, unless another is beyond chance.

    The candidates are cuts by `methods.density.MIXTURES`. The usual one is `hybrid`; at 32 bins or fewer, `kmeans`.
    Another one is taken only where its bins explain more of the target's variance, by three standard deviations of
    what chance would give. Without a target: as `hybrid`.
    """
    if not summary.has_target:
        return hybrid(summary, max_bins)
    if max_bins > FEW_BINS:
        return chosen(summary, max_bins, "hybrid")
    return chosen(summary, max_bins, "kmeans", {"kmeans": kmeans(summary, max_bins)})


METHODS: dict[str, Method] = {
    "auto": auto,
    "hybrid": hybrid,
    "kmeans": kmeans,
    "optimal": optimal,
    "quantile": quantile,
    "uniform": uniform,
}
"""The methods by name. Your own function ``(summary, max_bins) -> cuts`` is as good as these."""


def method_named(method: str | Method, argument: str = "method", also: str = "") -> Method:
    """Return a method by its name, or the function itself."""
    if callable(method):
        return method
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    names = ", ".join(map(repr, METHODS))
    raise ValueError(
        f"{argument} must be one of {names} or a function (summary, max_bins) -> cuts{also}, got {method!r}"
    )


def named_methods(methods: Any, always: Sequence[str] = ()) -> dict[str, Method]:
    """Return methods by their names, given as a sequence of names and functions, as a dict, or as one of them.

    >>> list(named_methods(["optimal", "kmeans"]))
    ['optimal', 'kmeans']
    """
    if isinstance(methods, str) or callable(methods):
        methods = [methods]
    if not isinstance(methods, Mapping):
        named = [(m if isinstance(m, str) else getattr(m, "__name__", repr(m)), m) for m in methods]
        methods = dict(named)
        if len(methods) < len(dict.fromkeys(named)):
            raise ValueError(f"methods must have different names, got {[name for name, _ in named]}: pass a dict")
    return {
        name: method_named(m, "methods") for name, m in {**dict(zip(always, always, strict=True)), **methods}.items()
    }


def supervised(method: Method) -> Method:
    """Mark a function of yours as one that looks at the target, so that estimators give it to the summary.

    >>> @supervised
    ... def at_the_mean(summary, max_bins):
    ...     low, high = summary.cell_ends
    ...     return [float(np.average((low + high) / 2, weights=summary.target_sums[:, 1]))]
    >>> looks_at_target(at_the_mean), looks_at_target(kmeans)
    (True, False)
    """
    getattr(method, "__func__", method).supervised = True  # type: ignore[union-attr]
    return method


supervised(auto)


def looks_at_target(method: Any) -> bool:
    """Return whether a method, by its name or itself, or `functools.partial` of one, looks at the target."""
    function = METHODS.get(method) if isinstance(method, str) else method
    return any(getattr(f, "supervised", False) for f in (function, getattr(function, "func", None)))


def needs_target(method: Any, total_bins: int | None) -> bool:
    """Return whether cuts depend on the target: by the method, or by how a total is shared."""
    return total_bins is not None or looks_at_target(method)


def find_cuts(summary: ColumnSummary, method: Method, max_bins: int) -> Floats:
    """Return a method's cuts, with the cases settled that need no method."""
    return find_chosen(summary, method, max_bins)[0]


def find_chosen(summary: ColumnSummary, method: Method, max_bins: int) -> tuple[Floats, Choice | None]:
    """Return a method's cuts, with the cases settled that need no method, and its choice, if it made one."""
    if summary.is_exact and summary.n_cells <= max_bins:
        return midpoints(summary.points.low), None
    found = method(summary, max_bins)
    cuts, choice = found if isinstance(found, Chosen) else (found, None)
    return _checked_cuts(cuts, summary, method, max_bins), choice


def midpoints(values: Floats) -> Floats:
    """Return cuts that separate ascending, distinct values.

    >>> midpoints(np.array([1.0, 2.0, 4.0]))
    array([1.5, 3. ])
    """
    return halfway(values[:-1], values[1:])


def _checked_cuts(cuts: ArrayLike, summary: ColumnSummary, method: Any, max_bins: int) -> Floats:
    name = getattr(method, "__name__", repr(method))
    found = real_numbers(cuts, f"method {name} must return an array of cuts, and it")
    if found.ndim != 1:
        raise ValueError(f"method {name} must return a 1-D array of cuts, got shape {found.shape}")
    if len(found) > max_bins - 1:
        raise ValueError(
            f"method {name} returned {len(found)} cuts, but max_bins={max_bins} leaves room for {max_bins - 1}"
        )
    if not np.isfinite(found).all():
        raise ValueError(f"method {name} returned a cut that is not finite: {found[~np.isfinite(found)][0]}")
    if method in METHODS.values() or getattr(method, "func", None) in METHODS.values():
        # Ours may meet: quantiles do on ties. A cut outside the values would leave a bin without any.
        found = np.unique(found)
        return found[(found >= summary.min) & (found < summary.max)] + 0.0
    if (wrong := found[1:] <= found[:-1]).any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"method {name} must return ascending cuts without duplicates (np.unique does both), "
            f"got {found[at]} before {found[at + 1]}"
        )
    return found + 0.0


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
