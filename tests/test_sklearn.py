"""scikit-learn's own cuts, given back as `Bins`, train the very same model, whatever else is asked of it.

Its exact learner has no cuts: there, they lie between all values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import ensemble
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

import boostbins.sklearn
from boostbins import Bins
from tests.same_cuts import mixed_table

N = 500
X, Y = mixed_table(N)
CLASSES = np.digitize(Y, np.quantile(Y, [0.4, 0.7]))
WEIGHT = np.random.default_rng(1).random(N)
NAMES = list("abcdefghij")
FRAME = pd.DataFrame(X, columns=NAMES)
WITH_KINDS = FRAME.assign(h=pd.Categorical(X[:, 7].astype(int).astype(str)), e=pd.Categorical(X[:, 4].astype(int)))


@pytest.fixture(autouse=True)
def _one_thread():
    """Small fits wait for threads more than they work."""
    with threadpool_limits(1):
        yield


def raw(model: Any, data: Any) -> np.ndarray:
    return model.predict_proba(data) if hasattr(model, "predict_proba") else model.predict(data)


# ---- histograms


def both(name: str, params: dict[str, Any], data: Any, label: Any, weight: Any = None) -> list[np.ndarray]:
    """Return what scikit-learn's model and ours predict, trained alike on the same cuts."""
    params = {"max_iter": 8, "random_state": 0, "early_stopping": False, **params}
    native = getattr(ensemble, name)(**params).fit(data, label, weight)
    own = boostbins.sklearn.from_native(native)
    ours = getattr(boostbins.sklearn, name)(**params, bin_method=own).fit(data, label, weight)
    assert ours.n_iter_ == native.n_iter_
    return [raw(model, data) for model in (native, ours)]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"loss": "absolute_error"},
        {"loss": "gamma"},
        {"loss": "poisson"},
        {"loss": "quantile", "quantile": 0.8},
        {"learning_rate": 0.5, "max_leaf_nodes": 5},
        {"max_depth": 2, "max_leaf_nodes": None},
        {"min_samples_leaf": 3, "l2_regularization": 5.0},
        {"max_features": 0.4},
        {"max_bins": 20},
        {"monotonic_cst": [1, 1, 0, 0, 0, 0, -1, 0, 0, 0]},
        {"interaction_cst": [{0, 1}, {2, 3, 4, 5, 6, 7, 8, 9}]},
        {"interaction_cst": "no_interactions"},
        {
            "early_stopping": True,
            "n_iter_no_change": 2,
            "validation_fraction": 0.3,
            "max_iter": 60,
            "learning_rate": 0.8,
        },
        {"early_stopping": True, "scoring": "neg_median_absolute_error", "tol": 1e-2, "max_iter": 40},
        {"early_stopping": True, "validation_fraction": None, "scoring": "loss", "tol": 0.1, "max_iter": 40},
        {"categorical_features": [4, 7]},
        {"categorical_features": np.isin(np.arange(10), [4, 7])},
        {"categorical_features": [7], "monotonic_cst": [1] * 7 + [0, 0, 0], "max_features": 0.7},
    ],
    ids=str,
)
def test_histograms_of_numbers(params):
    label = np.abs(Y) + 0.1 if params.get("loss") in ("gamma", "poisson") else Y
    for weight in (None, WEIGHT, np.where(WEIGHT < 0.3, 0.0, WEIGHT)):
        assert np.array_equal(*both("HistGradientBoostingRegressor", params, X, label, weight))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"class_weight": "balanced"},
        {"class_weight": {0: 1, 1: 5, 2: 0.5}},
        {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 40, "learning_rate": 0.8},
    ],
    ids=str,
)
def test_histograms_of_classes(params):
    names = np.array(["low", "middle", "high"])[CLASSES] if "class_weight" not in params else CLASSES
    for label in (names, names == names[0]):
        given = (
            {**params, "class_weight": {False: 1, True: 3}}
            if "class_weight" in params and label is not names
            else params
        )
        assert np.array_equal(*both("HistGradientBoostingClassifier", given, X, label, WEIGHT))


@pytest.mark.parametrize(
    ("frame", "params"),
    [
        (FRAME, {"categorical_features": ["e", "h"]}),
        (FRAME, {"monotonic_cst": {"a": 1, "g": -1}}),
        (WITH_KINDS, {"categorical_features": "from_dtype"}),
        (WITH_KINDS, {"categorical_features": ["h", "e"]}),
        (WITH_KINDS, {"categorical_features": "from_dtype", "early_stopping": True, "max_iter": 30}),
    ],
    ids=str,
)
def test_histograms_of_frames(frame, params):
    assert np.array_equal(*both("HistGradientBoostingRegressor", params, frame, Y))


def test_histograms_that_go_on():
    params = {"max_iter": 4, "random_state": 0, "warm_start": True}
    native = ensemble.HistGradientBoostingRegressor(**params).fit(X, Y, WEIGHT)
    own = boostbins.sklearn.from_native(native)
    ours = boostbins.sklearn.HistGradientBoostingRegressor(**params, bin_method=own).fit(X, Y, WEIGHT)
    assert np.array_equal(*(raw(model.set_params(max_iter=9).fit(X, Y, WEIGHT), X) for model in (native, ours)))


# ---- exact


def with_few_values(column: np.ndarray) -> np.ndarray:
    levels = np.unique(np.quantile(column, np.linspace(0, 1, 40), method="nearest"))
    return levels[np.searchsorted(levels, column, side="right") - 1]


FEW = np.column_stack([with_few_values(column) for column in mixed_table(N, missing=False)[0].T]).astype(np.float32)
UNSEEN = np.random.default_rng(2).permuted(FEW, axis=0)  # values that are there, in rows that are not
LEVELS = [np.unique(column).astype(np.float64) for column in FEW.T]
BETWEEN = Bins([(values[:-1] + values[1:]) / 2 for values in LEVELS])


def exactly_both(name: str, params: dict[str, Any], data: Any, label: Any, weight: Any = None) -> list[np.ndarray]:
    params = {"n_estimators": 8, "random_state": 0, **params}
    native = getattr(ensemble, name)(**params).fit(data, label, weight)
    ours = getattr(boostbins.sklearn, name)(**params, bin_method=BETWEEN).fit(data, label, weight)
    assert np.array_equal(native.train_score_, ours.train_score_)
    for tree in ours.estimators_.ravel():
        for place, threshold in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            assert place < 0 or threshold in BETWEEN.cuts[place]
    return [np.concatenate([raw(model, data), raw(model, UNSEEN)]) for model in (native, ours)]


OF_TREES = [
    {},
    {"subsample": 0.5},
    {"subsample": 0.3, "max_features": 0.5, "max_depth": 6},
    {"max_features": "sqrt", "max_leaf_nodes": 9},
    {"min_samples_split": 20, "min_samples_leaf": 0.02},
    {"min_weight_fraction_leaf": 0.05, "min_impurity_decrease": 0.01},
    {"ccp_alpha": 0.02},
    {"ccp_alpha": 0.02, "subsample": 0.6},
    {"n_iter_no_change": 2, "validation_fraction": 0.3, "n_estimators": 60, "learning_rate": 0.9, "subsample": 0.7},
    {"init": "zero", "subsample": 0.7},
]
if boostbins.sklearn.LIBRARY.is_before("1.9"):  # deprecated there
    OF_TREES += [{"criterion": "squared_error", "subsample": 0.7}]


@pytest.mark.parametrize(
    "params",
    [
        *OF_TREES,
        {"init": Ridge(), "subsample": 0.7},
        {"init": DummyRegressor(strategy="median")},
        {"loss": "absolute_error", "subsample": 0.5},
        {"loss": "huber", "alpha": 0.8, "subsample": 0.5},
        {"loss": "quantile", "alpha": 0.3, "subsample": 0.5},
    ],
    ids=str,
)
def test_exact_trees_of_numbers(params):
    for weight in (None, np.where(WEIGHT < 0.3, 0.0, WEIGHT)):
        assert np.array_equal(*exactly_both("GradientBoostingRegressor", params, FEW, Y, weight))
    for form in (sparse.csr_matrix, sparse.csc_matrix):
        assert np.array_equal(*exactly_both("GradientBoostingRegressor", params, form(FEW), Y, WEIGHT))


@pytest.mark.parametrize("params", [*OF_TREES, {"init": GaussianNB(), "subsample": 0.7}], ids=str)
def test_exact_trees_of_classes(params):
    assert np.array_equal(*exactly_both("GradientBoostingClassifier", params, FEW, CLASSES, WEIGHT))
    for loss in ("log_loss", "exponential"):
        given = {**params, "loss": loss}
        assert np.array_equal(*exactly_both("GradientBoostingClassifier", given, FEW, CLASSES > 1, WEIGHT))


def test_exact_trees_that_go_on():
    found = []
    for module, more in ((ensemble, {}), (boostbins.sklearn, {"bin_method": BETWEEN})):
        model = module.GradientBoostingRegressor(n_estimators=4, subsample=0.5, random_state=0, warm_start=True, **more)
        model.fit(FEW, Y).set_params(n_estimators=9).fit(FEW, Y, WEIGHT)
        found.append(np.concatenate([raw(model, FEW), raw(model, UNSEEN), model.oob_improvement_]))
    assert np.array_equal(*found)


@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1.0, 1e30])
def test_exact_trees_whatever_the_scale(scale):
    """What scikit-learn takes for one value, if it is less than 1e-7 from another, has bins of its own."""
    bins = Bins([cuts * scale for cuts in BETWEEN.cuts])
    params = {"n_estimators": 8, "random_state": 0, "subsample": 0.6}
    native = ensemble.GradientBoostingRegressor(**params).fit(FEW, Y)
    ours = boostbins.sklearn.GradientBoostingRegressor(bin_method=bins, **params).fit(FEW * np.float32(scale), Y)
    assert np.allclose(raw(native, FEW), raw(ours, FEW * np.float32(scale)))


def test_exact_trees_on_values_at_all_scales():
    r = np.random.default_rng(0)
    column = (r.choice([-1, 1], N) * 10.0 ** r.uniform(-38, 38, N)).astype(np.float32)[:, None]
    model = boostbins.sklearn.GradientBoostingRegressor(bin_method="quantile", max_bins=50, n_estimators=200)
    model.fit(column, np.arange(50)[np.argsort(np.argsort(column[:, 0])) // 10])
    assert len(np.unique(np.round(model.predict(column)))) == 50
