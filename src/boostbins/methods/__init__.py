"""The methods: functions from a summary and a number of bins to cuts, all in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from boostbins.methods.choice import Choice, Chosen, chosen
from boostbins.methods.density import hybrid
from boostbins.methods.unsupervised import distinct, kmeans, midpoints, optimal, quantile, uniform
from boostbins.sources.request import meant
from boostbins.sources.values import Floats, real_numbers
from boostbins.summary.column import ColumnSummary

Method: TypeAlias = Callable[[ColumnSummary, int], ArrayLike | Chosen]

MIN_BINS, MAX_BINS = 2, 65_535
"""Limits of `max_bins`: with a code for missing values, codes fit 16 bits."""

DEFAULT_BINS = 255
"""Of a column, as in the libraries."""


FEW_BINS = 32
"""Up to here a bin is so wide that what k-means makes of its inside counts more than its rows."""


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
    hint = meant(method, list(METHODS)) if isinstance(method, str) else ""
    raise ValueError(
        f"{argument} must be one of {names} or a function (summary, max_bins) -> cuts{also}, got {method!r}{hint}"
    )


def named_methods(methods: Any, always: Sequence[str] = (), also: Sequence[str] = ()) -> dict[str, Any]:
    """Return methods by their names, given as a sequence of names and functions, as a dict, or as one of them.

    `always` are there in any case; names in `also` stand for something else, and are left as they are.

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
    others = "".join(f" or {name!r}" for name in also)
    return {
        name: m if isinstance(m, str) and m in also else method_named(m, "methods", others)
        for name, m in {**dict(zip(always, always, strict=True)), **methods}.items()
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


def may_look_at_target(method: Method) -> bool:
    """Return whether a method may look at the target that it is given: a function of yours may, marked or not."""
    function = getattr(method, "func", method)
    return looks_at_target(method) or all(function is not known for known in METHODS.values())


def needs_target(method: Any, total: Any) -> bool:
    """Return whether cuts depend on the target: by the method, or because columns share a total of bins."""
    return bool(total) or looks_at_target(method)


def find_cuts(summary: ColumnSummary, method: Method, max_bins: int) -> Floats:
    """Return a method's cuts, after the cases that need no method."""
    return find_chosen(summary, method, max_bins)[0]


def find_chosen(summary: ColumnSummary, method: Method, max_bins: int) -> tuple[Floats, Choice | None]:
    """Return a method's cuts, after the cases that need no method, and its choice, if it made one."""
    if summary.is_exact and summary.n_cells <= max_bins:
        return midpoints(summary.points.low), None
    found = method(summary, max_bins)
    cuts, choice = found if isinstance(found, Chosen) else (found, None)
    return _checked_cuts(cuts, summary, method, max_bins), choice


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
        found = distinct(found)
        return found[(found >= summary.min) & (found < summary.max)] + 0.0
    if (wrong := found[1:] <= found[:-1]).any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"method {name} must return ascending cuts without duplicates (np.unique does both), "
            f"got {found[at]} before {found[at + 1]}"
        )
    return found + 0.0
