"""The paper's ways to bin, as functions of boostbins, and a transformer that applies them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

import boostbins
from boostbins import Bins
from paper.rivals import RIVALS

UNBINNED = "exhaustive"
"""The learner on raw values: every distinct value may be split at."""


def digitized(method: Callable[..., ArrayLike]) -> Callable[[Any, int], NDArray[np.float64]]:
    """Let a value at a cut go right, as in `np.digitize`: boostbins' bins have it on the left."""

    def cuts(summary: Any, max_bins: int) -> NDArray[np.float64]:
        made = method(summary, max_bins)
        found = np.unique(np.nextafter(getattr(made, "cuts", made), -np.inf))  # `auto` tells its choice beside them
        return found[(found >= summary.min) & (found < summary.max)]

    cuts.__name__ = getattr(method, "__name__", "cuts")
    return cuts


SUMMARY_METHODS: dict[str, Callable[..., Any]] = {
    "quantile": boostbins.quantile,
    "uniform": boostbins.uniform,
    "kmeans": boostbins.kmeans,
    "kmeans++": partial(boostbins.kmeans, seeds="k-means++"),
    "optimal": boostbins.optimal,
}
"""The paper's."""
OUR_METHODS: dict[str, Callable[..., Any]] = {"auto": boostbins.auto, "hybrid": boostbins.hybrid}
FUNCTIONS = {**SUMMARY_METHODS, **OUR_METHODS, **RIVALS}
METHODS = [*FUNCTIONS, "milp"]
BUDGETS: dict[str, dict[str, Any]] = {
    "average-63": {"average_bins": 63},
    "average-255": {"average_bins": 255},
    "auto-bins": {"total_bins": "auto"},
}
"""Numbers of bins that all columns share, as parameters of boostbins' estimators: k-means places them."""


def find_bins(method: str, X: NDArray[np.float64], y: Any, max_bins: int, seed: int = 0) -> Bins:
    """Bin all columns by a method's name."""
    if method == "milp":
        return Bins([_milp_cuts(column, y, max_bins) for column in X.T])
    function = FUNCTIONS[method]
    if method == "kmeans++":
        function = partial(function, random_state=seed)
    target = y if getattr(function, "supervised", False) else None
    return boostbins.fit_bins(X, digitized(function), max_bins, n_threads=1, y=target, exact=True)


def _milp_cuts(column: NDArray[np.float64], y: Any, max_bins: int) -> NDArray[np.float64]:
    from optbinning import ContinuousOptimalBinning, OptimalBinning

    kind = OptimalBinning if set(np.unique(y)) <= {0, 1} else ContinuousOptimalBinning
    found = kind(max_n_bins=max_bins).fit(column, y)
    return np.nextafter(np.unique(np.asarray(found.splits, np.float64)), -np.inf)


class PaperBinner(TransformerMixin, BaseEstimator):
    """The first step of the paper's pipelines: values to codes."""

    def __init__(self, method: str = "kmeans", max_bins: int = 255, random_state: int = 0) -> None:
        self.method = method
        self.max_bins = max_bins
        self.random_state = random_state

    def fit(self, X: NDArray[np.float64], y: Any = None) -> PaperBinner:
        """Find the cuts on the training part."""
        self.bins_ = find_bins(self.method, X, y, self.max_bins, self.random_state)
        return self

    def transform(self, X: NDArray[np.float64]) -> NDArray[Any]:
        """Return the codes; values outside the range are in the end bins."""
        return self.bins_.encode(X, n_threads=1)
