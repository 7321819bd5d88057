"""One job done: data, bins, training, score."""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.metrics import mean_squared_error, roc_auc_score
from sklearn.model_selection import RandomizedSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from paper import timing
from paper.datasets import load
from paper.jobs import PROTOCOLS, Job
from paper.learners import LEARNERS
from paper.synthetic import seed_of

TEST_SIZE = 0.2
SCORING = {"mse": "neg_mean_squared_error", "roc_auc": "roc_auc"}


@dataclass(frozen=True)
class Outcome:
    """What a job gave. Empty is what does not apply."""

    metric: str = ""
    score: float | None = None
    rows: int | None = None
    features: int | None = None
    bins: int | None = None  # of the column that has most
    bin_seconds: float | None = None  # training part: fit and encode
    train_seconds: float | None = None  # with the search, if there is one; with the binning, if the library does it
    checksum: str = ""  # of the data
    error: str = ""


def measure(job: Job) -> Outcome:
    """Do a job; what goes wrong is part of the outcome."""
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            return _MEASURES[job.kind](job)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(error=f"{type(error).__name__}: {error} ({where.name}, line {where.lineno} of {where.filename})")


def _real(job: Job) -> Outcome:
    data = load(job.data)
    X, y = data.X, data.y
    if job.max_rows and job.max_rows < len(y):
        kept = np.random.default_rng(job.seed).permutation(len(y))[: job.max_rows]
        X, y = X[kept], y[kept]
    protocol, learner = PROTOCOLS[job.protocol], LEARNERS[job.learner]
    model = learner.make(data.task.track, job.method, job.max_bins, job.seed, protocol.params)
    metric = data.task.metric
    if job.method == "milp":
        import_module("optbinning")  # before the clock runs
    if protocol.search:
        draws, folds = protocol.search
        model = RandomizedSearchCV(
            model, learner.space(), n_iter=draws, cv=folds, scoring=SCORING[metric], random_state=job.seed,
            error_score="raise",
        )  # fmt: skip
    return _judged(model, X, y, metric, job.seed, data.checksum)


def _synthetic(job: Job) -> Outcome:
    X, y = job.cell.draw(seed_of(job.data, job.seed))
    model = LEARNERS[job.learner].make("regression", job.method, job.max_bins, job.seed, job.synthetic_params)
    return _judged(model, X, y, "mse", job.seed)


def _judged(model: Any, X: Any, y: Any, metric: str, seed: int, checksum: str = "") -> Outcome:
    """Train on one part, score on the other."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=TEST_SIZE, random_state=seed)
    bin_seconds = None
    begin = time.perf_counter()
    if isinstance(model, Pipeline) and len(model) == 2:  # step by step, for their times
        binner, model = model.named_steps.values()
        X_train = binner.fit_transform(X_train, y_train)
        bin_seconds = time.perf_counter() - begin
        X_test, begin = binner.transform(X_test), time.perf_counter()
        bins = binner.bins_
        model.fit(X_train, y_train)
    else:
        model.fit(X_train, y_train)
        best = getattr(model, "best_estimator_", model)
        step = best[0] if isinstance(best, Pipeline) else best
        bins = getattr(step, "bins_", None)
    train_seconds = time.perf_counter() - begin
    if metric == "mse":
        score = mean_squared_error(y_test, model.predict(X_test))
    else:
        score = roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])
    return Outcome(
        metric,
        float(score),
        len(y),
        X.shape[1],
        max(len(cuts) + 1 for cuts in bins.cuts) if bins else None,
        bin_seconds,
        train_seconds,
        checksum,
    )


def _timing(job: Job) -> Outcome:
    shape, rows = job.data.split("/")
    score = timing.seconds(shape, int(rows), job.learner, job.method, job.max_bins, job.seed)
    return Outcome("seconds", score, int(rows), 1)


def _describe(job: Job) -> Outcome:
    data = load(job.data)
    return Outcome("mean skew", data.mean_skew, *data.X.shape, checksum=data.checksum)


_MEASURES = {"real": _real, "synthetic": _synthetic, "timing": _timing, "describe": _describe}
