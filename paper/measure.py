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

from boostbins import Bins
from paper import timing
from paper.datasets import load
from paper.jobs import PROTOCOLS, Job
from paper.learners import LEARNERS, NATIVE
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
    mean_bins: float | None = None  # of all columns
    # CPU time of the process, which what else runs on the machine hardly touches.
    bin_seconds: float | None = None  # training part: fit and encode; of some libraries, until the first tree is begun
    train_seconds: float | None = None  # with the search, if there is one; with the binning, if there is no bin_seconds
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
    model = learner.make(data.task.track, job.method, job.max_bins, job.seed, protocol.params_of(job.learner))
    metric = data.task.metric
    if job.method == "milp":
        import_module("optbinning")  # before the clock runs
    if protocol.search:
        draws, folds = protocol.search
        model = RandomizedSearchCV(
            model, learner.space(), n_iter=draws, cv=folds, scoring=SCORING[metric], random_state=job.seed,
            error_score="raise",
        )  # fmt: skip
    return _judged(job, model, X, y, metric, data.checksum)


def _synthetic(job: Job) -> Outcome:
    X, y = job.cell.draw(seed_of(job.data, job.seed))
    model = LEARNERS[job.learner].make("regression", job.method, job.max_bins, job.seed, job.synthetic_params)
    return _judged(job, model, X, y, "mse")


def _judged(job: Job, model: Any, X: Any, y: Any, metric: str, checksum: str = "") -> Outcome:
    """Train on one part, score on the other."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=TEST_SIZE, random_state=job.seed)
    if isinstance(model, Pipeline) and len(model) == 2:  # step by step, for their times
        begin = time.process_time()
        binner, model = model.named_steps.values()
        X_train = binner.fit_transform(X_train, y_train)
        bin_seconds = time.process_time() - begin
        X_test = binner.transform(X_test)
        _, _, train_seconds = _trained(job, model, X_train, y_train)
        bins = binner.bins_
    else:
        bins, bin_seconds, train_seconds = _trained(job, model, X_train, y_train)
    if metric == "mse":
        score = mean_squared_error(y_test, model.predict(X_test))
    else:
        score = roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])
    return Outcome(
        metric,
        float(score),
        len(y),
        X.shape[1],
        *_counts(bins),
        bin_seconds,
        train_seconds,
        checksum,
    )


def _trained(job: Job, model: Any, X: Any, y: Any) -> tuple[Bins | None, float | None, float]:
    """Train; return the bins, the seconds until they were there, where that can be told, and those of the rest."""
    learner = LEARNERS[job.learner]
    begun: list[float] = []
    begin = time.process_time()
    if learner.first_tree and not isinstance(model, RandomizedSearchCV):
        model.fit(X, y, **learner.first_tree(model, lambda: begun.append(time.process_time())))
    else:
        model.fit(X, y)
    end = time.process_time()
    if job.method == NATIVE:
        bins = learner.native_bins(model, X, job.max_bins)
    else:
        best = getattr(model, "best_estimator_", model)
        bins = getattr(best[0] if isinstance(best, Pipeline) else best, "bins_", None)
    return (bins, begun[0] - begin, end - begun[0]) if begun else (bins, None, end - begin)


def _counts(bins: Bins | None) -> tuple[int | None, float | None]:
    """Return the bins of the column that has most, and of all on average."""
    return (None, None) if bins is None else (max(bins.n_bins), float(np.mean(bins.n_bins)))


def _speed(job: Job) -> Outcome:
    X, y = timing.table(*timing.TABLES[job.data], job.seed)
    params = PROTOCOLS[job.protocol].params_of(job.learner)
    first, model = (
        LEARNERS[job.learner].make("regression", job.method, job.max_bins, job.seed, params) for _ in range(2)
    )
    first.fit(X[:1000], y[:1000])  # what is slow once only is not timed
    bins, bin_seconds, train_seconds = _trained(job, model, X, y)
    whole = train_seconds + (bin_seconds or 0.0)
    return Outcome("seconds", whole, *X.shape, *_counts(bins), bin_seconds, train_seconds)


def _timing(job: Job) -> Outcome:
    shape, rows = job.data.split("/")
    score = timing.seconds(shape, int(rows), job.learner, job.method, job.max_bins, job.seed)
    return Outcome("seconds", score, int(rows), 1)


def _describe(job: Job) -> Outcome:
    data = load(job.data)
    return Outcome("mean skew", data.mean_skew, *data.X.shape, checksum=data.checksum)


_MEASURES = {"real": _real, "synthetic": _synthetic, "timing": _timing, "speed": _speed, "describe": _describe}
