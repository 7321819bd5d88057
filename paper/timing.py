"""The paper's timing figure: one column binned, by boostbins, by the reference implementations, and XGBoost's training.

And tables to find bins for and train on. Everything in one thread. The reference of k-means is scikit-learn's `KMeans`,
of optimal k-means `kmeans1d`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boostbins
from paper.binning import SUMMARY_METHODS

Column = NDArray[np.float64]
SHAPES: dict[str, Callable[[np.random.Generator, int], Column]] = {
    "uniform": lambda random, n: random.random(n),
    "lognormal": lambda random, n: random.lognormal(0, 2, n),
}
ROWS = (10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7)
# More rows of these take many minutes, or more memory than the machine has.
LIMITS = {
    ("reference", "kmeans", "lognormal"): 10**5,
    ("reference", "kmeans++", "uniform"): 10**5,
    ("reference", "kmeans++", "lognormal"): 10**5,
    ("reference", "optimal", "uniform"): 10**5,
    ("reference", "optimal", "lognormal"): 10**5,
}
METHODS = {
    "boostbins": tuple(SUMMARY_METHODS),
    "reference": ("quantile", "uniform", "kmeans", "kmeans++", "optimal"),
    "xgboost": ("training",),
}
TIMINGS = [
    (shape, rows, implementation, method)
    for shape in SHAPES
    for rows in ROWS
    for implementation, methods in METHODS.items()
    for method in methods
    if rows <= LIMITS.get((implementation, method, shape), rows)
]
"""(shape, rows, implementation, method) of every point of the figure."""

REPEATS, LONG = 3, 20.0  # best of three, or of one when it takes so many seconds


def seconds(shape: str, rows: int, implementation: str, method: str, max_bins: int, seed: int) -> float:
    """Return how long it takes to bin a column: to find the cuts and to encode all rows."""
    x = SHAPES[shape](np.random.default_rng(seed), rows)
    if implementation == "xgboost":
        y = 2 * x + np.random.default_rng(0).normal(0, 0.1, rows)
        work = partial(_train, x, y)
    elif implementation == "boostbins":
        work = partial(_boostbins, x, SUMMARY_METHODS[method], max_bins)
    else:
        work = partial(_reference, x, method, max_bins)
    best = np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
        if best > LONG:
            break
    return best


TABLES = {"20000x16": (20_000, 16), "1000000x20": (1_000_000, 20)}
"""Rows and columns of tables on which finding the bins and training are timed."""


def table(rows: int, columns: int, seed: int) -> tuple[NDArray[np.float64], Column]:
    """Return columns of several kinds in turn: lognormal, normal, even, counts and two-valued ones; and a target."""
    random = np.random.default_rng(seed)
    z = random.standard_normal((rows, columns))
    kinds = (np.exp, np.asarray, lambda z: np.floor(1000 * z) / 1000, lambda z: np.floor(np.exp(1 + z)), np.sign)
    X = np.column_stack([kinds[i % len(kinds)](column) for i, column in enumerate(z.T)])
    y = np.sin(2 * z[:, 0]) + z[:, 1] * z[:, 2] + z[:, 3 : columns // 2].sum(axis=1)
    return X, y + 0.3 * random.standard_normal(rows)


def _boostbins(x: Column, method: Any, max_bins: int) -> Any:
    return boostbins.fit_bins(x[:, None], method, max_bins, n_threads=1).encode(x[:, None], n_threads=1)


def _reference(x: Column, method: str, max_bins: int) -> Any:
    if method == "uniform":
        cuts = np.linspace(x.min(), x.max(), max_bins + 1)[1:-1]
    elif method == "quantile":
        cuts = np.quantile(x, np.arange(1, max_bins) / max_bins)
    else:
        centers = np.sort(_reference_centers(x, method, max_bins))
        cuts = (centers[1:] + centers[:-1]) / 2
    return np.digitize(x, cuts)


def _reference_centers(x: Column, method: str, max_bins: int) -> Column:
    if method == "optimal":
        import kmeans1d

        return np.array(kmeans1d.cluster(x, max_bins).centroids)
    from sklearn.cluster import KMeans

    seeds: Any = "k-means++"
    if method == "kmeans":
        seeds = np.quantile(x, np.linspace(0, 1, max_bins))[:, None]
    found = KMeans(max_bins, init=seeds, n_init=1, random_state=0).fit(x[:, None])
    return np.asarray(found.cluster_centers_).ravel()


def _train(x: Column, y: Column) -> Any:
    import xgboost

    return xgboost.XGBRegressor(tree_method="hist", max_bin=255, n_jobs=1).fit(x[:, None], y)
