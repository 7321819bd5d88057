"""Which cuts a method gives, as a digest: results of other cuts are not results of the method.

The digest is of the cuts of a few small tables that are made here. A change of the code that moves no cut leaves it as
it is; another rule does not. Of a budget it is of the cuts that the learner is trained with, in its library's own way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import boostbins
from boostbins import Bins
from paper.binning import BUDGETS, FUNCTIONS
from paper.learners import LEARNERS

NUMBERS_OF_BINS = (16, 63, 255)


class Probe(NamedTuple):
    """A table, and which kind of target it has."""

    track: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]


def cuts_of(learner: str, method: str) -> str:
    """Return the digest of the cuts that a learner gets by a method; empty, if they are not boostbins' to change.

    Of a library's own bins, and of a learner without bins, the versions beside each result tell more: with another
    version of the library all of its results are others, whatever the bins.
    """
    if method in BUDGETS:
        return _of_budget(learner, method)
    return _of_function(FUNCTIONS[method]) if method in FUNCTIONS else ""


@cache
def _of_function(function: Callable[..., Any]) -> str:
    return _digest(
        boostbins.fit_bins(probe.X, function, max_bins, n_threads=1, y=probe.y)
        for probe in probes()
        for max_bins in NUMBERS_OF_BINS
    )


@cache
def _of_budget(learner: str, method: str) -> str:
    few = {"n_estimators": 1}
    tables = (*probes(), _noisy())
    models = ((LEARNERS[learner].make(probe.track, method, 0, 0, few), probe) for probe in tables)
    return _digest(model.fit(probe.X, probe.y).bins_ for model, probe in models)


def _digest(tables: Iterable[Bins]) -> str:
    """Return a digest of cuts to nine digits: how a processor rounds is no other rule."""
    text = "\n".join(" ".join(f"{cut:.9g}" for cut in cuts + 0.0) for bins in tables for cuts in bins.cuts)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@cache
def probes() -> tuple[Probe, ...]:
    """Return the tables, made by random bits and exact arithmetic only: they are the same on every machine."""
    return tuple(_made())


def _made() -> Iterator[Probe]:
    r = np.random.default_rng(0)
    n = 3000
    bell, skewed, pick = _bell(r, n), _skewed(r, n), r.random(n)
    X = np.column_stack(
        [
            bell,
            skewed,
            np.round(10 * _skewed(r, n)),  # ties
            r.integers(0, 2, n),
            np.where(pick < 0.8, 0.0, skewed),
            np.where(pick < 0.1, np.nan, _bell(r, n)),
            1_500_000_000 + r.integers(0, 10**7, n),
        ]
    )
    y = _graded(bell * X[:, 3] + np.where(skewed > 2, 3.0, skewed) + X[:, 2] / 8 + r.random(n))
    yield Probe("regression", X, y)
    yield Probe("classification", X, (y > np.median(y)).astype(float))
    n = 36_000  # more than a summary has cells
    X = np.column_stack([_bell(r, n), _skewed(r, n)])
    yield Probe("regression", X, _graded(X[:, 0] ** 2 + X[:, 1] + r.random(n)))


@cache
def _noisy() -> Probe:
    """Return a table of whose target most is noise: where enough bins are neither the fewest nor the most."""
    r = np.random.default_rng(1)
    n = 4000
    X = np.column_stack([_bell(r, n), _skewed(r, n), _bell(r, n)])
    return Probe("regression", X, _graded(X.sum(axis=1) + 3 * _bell(r, n)))


def _bell(r: np.random.Generator, n: int) -> NDArray[np.float64]:
    return (r.random((12, n)) - 0.5).sum(axis=0)


def _skewed(r: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Return numbers over many scales, much like lognormal ones."""
    return ((1 + r.random((8, n))) / (1 + r.random((8, n)))).prod(axis=0) ** 2


def _graded(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a target in whole grades, whose sums are exact in any order."""
    return np.round(1023 * np.sqrt((y - y.min()) / (y.max() - y.min())))
