"""LightGBM's own cuts, read out and given back as `Bins`, train the identical model, whatever the parameters.

A row for each documented parameter that touches data, bins or what is drawn at random; predictions are equal bit for
bit. What cannot be equal is in `OTHER`, with the reason.
"""

from __future__ import annotations

import json

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import boostbins.lightgbm
from boostbins import Bins
from tests.same_cuts import mixed_table

ALWAYS = {"verbosity": -1, "num_threads": 1, "seed": 1, "deterministic": True, "num_leaves": 15, "metric": "None"}
N_TREES = 8

REGRESSION = {
    "default": {},
    "dart": {"boosting": "dart", "drop_rate": 0.5},
    "dart as XGBoost's": {"boosting": "dart", "xgboost_dart_mode": True, "uniform_drop": True, "drop_seed": 3},
    "forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7, "feature_fraction": 0.8},
    "goss": {"data_sample_strategy": "goss", "top_rate": 0.3, "other_rate": 0.2},
    "bagging": {"bagging_freq": 2, "bagging_fraction": 0.6},
    "feature_fraction": {"feature_fraction": 0.5},
    "feature_fraction_bynode": {"feature_fraction_bynode": 0.5},
    "extra_trees": {"extra_trees": True},
    "extra_trees, all features": {"extra_trees": True, "feature_pre_filter": False},
    "extra_seed": {"extra_trees": True, "extra_seed": 11, "feature_fraction": 0.6, "feature_fraction_seed": 5},
    "extra_trees, no bundles": {"extra_trees": True, "enable_bundle": False},
    "quantized": {"use_quantized_grad": True},
    "quantized, renewed": {"use_quantized_grad": True, "quant_train_renew_leaf": True, "num_grad_quant_bins": 8},
    "quantized, rounded": {"use_quantized_grad": True, "stochastic_rounding": False},
    "quantized by column": {"use_quantized_grad": True, "force_col_wise": True},
    "linear trees": {"linear_tree": True, "linear_lambda": 0.1},
    "monotone": {"monotone_constraints": [1, 1, 0, -1, 0, 0, 1, 0, 0, 0]},
    "monotone, intermediate": {
        "monotone_constraints": [1, 1, 0, -1, 0, 0, 1, 0, 0, 0],
        "monotone_constraints_method": "intermediate",
    },
    "monotone, advanced": {
        "monotone_constraints": [1, 1, 0, -1, 0, 0, 1, 0, 0, 0],
        "monotone_constraints_method": "advanced",
        "monotone_penalty": 1.0,
    },
    "interactions": {"interaction_constraints": [[0, 1, 4], [2, 3, 6, 7], [8, 9]]},
    "by column": {"force_col_wise": True},
    "by row": {"force_row_wise": True},
    "max_bin": {"max_bin": 31},
    "many bins": {"max_bin": 700},
    "max_bin_by_feature": {"max_bin_by_feature": [9, 30, 10, 11, 4, 5, 20, 8, 12, 255]},
    "min_data_in_bin": {"min_data_in_bin": 40},
    "min_data_in_leaf": {"min_data_in_leaf": 1},
    "min_data_in_leaf, many": {"min_data_in_leaf": 200},
    "bin_construct_sample_cnt": {"bin_construct_sample_cnt": 700},
    "data_random_seed": {"data_random_seed": 7, "bin_construct_sample_cnt": 700},
    "enable_bundle": {"enable_bundle": False},
    "is_enable_sparse": {"is_enable_sparse": False},
    "use_missing": {"use_missing": False},
    "zero_as_missing": {"zero_as_missing": True},
    "feature_pre_filter": {"feature_pre_filter": False},
    "max_depth": {"max_depth": 3},
    "penalties": {"lambda_l1": 0.5, "lambda_l2": 2.0, "min_gain_to_split": 0.1, "path_smooth": 1.0},
    "max_delta_step": {"max_delta_step": 0.3},
    "feature_contri": {"feature_contri": [1.0, 0.5, 1.0, 1.0, 0.7, 1.0, 1.0, 1.0, 0.9, 1.0]},
    "cegb": {"cegb_penalty_split": 1e-4, "cegb_penalty_feature_coupled": [0.1] * 10},
    "boost_from_average": {"boost_from_average": False},
    "histogram_pool_size": {"histogram_pool_size": 0.01},
    "l1": {"objective": "l1"},
    "fair": {"objective": "fair", "fair_c": 2.0},
    "huber": {"objective": "huber"},
    "quantile": {"objective": "quantile", "alpha": 0.8},
    "mape": {"objective": "mape"},
    "poisson": {"objective": "poisson"},
    "gamma": {"objective": "gamma"},
    "tweedie": {"objective": "tweedie"},
    "categorical": {"categorical_column": "7", "min_data_per_group": 10, "cat_smooth": 1.0},
    "categorical, one against the rest": {"categorical_column": "7,4", "max_cat_to_onehot": 8},
}
CLASSES = {
    "binary": {"objective": "binary"},
    "unbalanced": {"objective": "binary", "is_unbalance": True},
    "scale_pos_weight": {"objective": "binary", "scale_pos_weight": 3.0},
    "pos_bagging": {"objective": "binary", "bagging_freq": 1, "pos_bagging_fraction": 0.5, "neg_bagging_fraction": 0.8},
    "multiclass": {"objective": "multiclass", "num_class": 3},
    "multiclassova": {"objective": "multiclassova", "num_class": 3},
    "cross_entropy": {"objective": "cross_entropy"},
    "cross_entropy_lambda": {"objective": "cross_entropy_lambda"},
}
OTHER: dict[str, str] = {}  # none, today


class Rows(lgb.Sequence):
    """An array as LightGBM's Sequence."""

    batch_size = 400

    def __init__(self, values):
        self.values = values

    def __getitem__(self, rows):
        return self.values[rows]

    def __len__(self):
        return len(self.values)


def frame(X):
    return pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])


def with_category(X):
    made = frame(X)
    made["c7"] = pd.Categorical([f"kind {int(kind)}" for kind in X[:, 7]])
    made["c4"] = pd.Categorical(X[:, 4] > 0)
    return made


CONTAINERS = {
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "frame": frame,
    "frame with categories": with_category,
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "list of arrays": lambda X: [X[:400], X[400:401], X[401:]],
    "sequence": Rows,
    "list of sequences": lambda X: [Rows(X[:900]), Rows(X[900:])],
}


def target(y, params):
    """The target as an objective wants it."""
    objective = params.get("objective", "regression")
    if "multiclass" in objective:
        return np.digitize(y, np.quantile(y, [0.4, 0.8])).astype(float)
    if objective in ("binary", "cross_entropy", "cross_entropy_lambda"):
        return (y > np.median(y)).astype(float)
    return np.abs(y) + 0.1 if objective in ("poisson", "gamma", "tweedie") else y


def own_cuts(X, y, params):
    """LightGBM's own cuts; a feature that it does not use has none, and needs none."""
    own = boostbins.lightgbm.from_native(lgb.Dataset(X, y, params=dict(params)))
    return Bins(own.cuts, own.names if hasattr(X, "columns") else None)


def trained(make, X, y, params, n_trees=N_TREES, **options):
    return lgb.train(dict(params), make(X, y, **options), n_trees)


def both(X, y, params, **options):
    """Predictions with LightGBM's own bins, and with these given back."""
    bins = own_cuts(X, y, params)
    native = trained(lgb.Dataset, X, y, params, **options)
    params = {key: value for key, value in params.items() if key not in ("max_bin_by_feature", "min_data_in_bin")}
    room = {} if "max_bin" in params else {"max_bin": 257}
    ours = trained(boostbins.lightgbm.Dataset, X, y, {**params, **room}, bin_method=bins, **options)
    return native.predict(X), ours.predict(X)


@pytest.mark.parametrize("name", [*REGRESSION, *CLASSES])
def test_with_any_parameter(name):
    if "quantized" in name and boostbins.lightgbm.LIBRARY.is_before("4.4"):
        pytest.skip("LightGBM 4.3 itself fails")
    X, y = mixed_table()
    params = {**ALWAYS, **{**REGRESSION, **CLASSES}[name]}
    native, ours = both(X, target(y, params), params)
    assert np.ptp(native) > 0
    assert np.array_equal(native, ours) == (name not in OTHER)


def test_with_forced_splits(tmp_path):
    X, y = mixed_table()
    splits = {"feature": 6, "threshold": 12.5, "left": {"feature": 4, "threshold": 0.5}}
    (tmp_path / "splits.json").write_text(json.dumps(splits))
    forced = {**ALWAYS, "forcedsplits_filename": str(tmp_path / "splits.json")}
    native, ours = both(X, y, forced)
    assert np.array_equal(native, ours)
    assert not np.array_equal(native, both(X, y, ALWAYS)[0])


@pytest.mark.parametrize("name", CONTAINERS)
def test_from_any_container(name):
    X, y = mixed_table()
    made = CONTAINERS[name]  # anew each time: LightGBM 4.3 changes lists
    bins = own_cuts(made(X), y, ALWAYS)
    params = {**ALWAYS, "max_bin": 257, "extra_trees": True}
    native = trained(lgb.Dataset, made(X), y, {**ALWAYS, "extra_trees": True})
    ours = trained(boostbins.lightgbm.Dataset, made(X), y, params, bin_method=bins)
    known = made(X) if "frame" in name else X
    assert np.array_equal(native.predict(known), ours.predict(known))


@pytest.mark.parametrize("name", ["weight", "init_score", "group", "xendcg", "bagging by query", "position"])
def test_with_numbers_per_row(name):
    X, y = mixed_table()
    r = np.random.default_rng(3)
    options = {
        "weight": {"weight": r.random(len(y)) * (r.random(len(y)) < 0.9)},
        "init_score": {"init_score": X[:, 6].copy()},
        "group": {"group": [150] * 10},
        "xendcg": {"group": [150] * 10},
        "bagging by query": {"group": [150] * 10},
        "position": {"group": [150] * 10, "position": np.tile(np.arange(150), 10)},
    }[name]
    params = dict(ALWAYS)
    if "group" in options:
        params["objective"] = "rank_xendcg" if name == "xendcg" else "lambdarank"
        params |= {"bagging_by_query": True, "bagging_freq": 1, "bagging_fraction": 0.5} if "query" in name else {}
        y = np.digitize(y, np.quantile(y, [0.5, 0.8, 0.95]))
    native, ours = both(X, y, params, **options)
    assert np.array_equal(native, ours)


def test_early_stopping_continued_training_and_folds():
    X, y = mixed_table()
    few, few_y = X[:1000], y[:1000]
    params = {**ALWAYS, "metric": "l2", "learning_rate": 0.5}

    def everything(make, params):
        train = make(few, few_y)
        valid = train.create_valid(X[1000:], y[1000:])
        first = lgb.train(params, train, 100, [valid], callbacks=[lgb.early_stopping(3, verbose=False)])
        more = lgb.train(params, make(few, few_y), 5, init_model=first)
        folds = lgb.cv(params, make(few, few_y), 5, nfold=3, stratified=False)
        refit = first.refit(X[1000:], y[1000:])
        return first.best_iteration, folds, more.predict(X).tolist(), refit.predict(X).tolist()

    def given_back(X, y):
        return boostbins.lightgbm.Dataset(X, y, bin_method=own_cuts(few, few_y, params))

    assert everything(lgb.Dataset, params) == everything(given_back, {**params, "max_bin": 257})


@pytest.mark.parametrize("plain", [True, False])
def test_of_more_rows_than_lightgbm_need_look_at(plain):
    X, y = mixed_table(6000, missing=not plain)
    X = X[:, [0, 1, 6]] if plain else X  # no bin with nearly half of the rows
    assert bool(few_rows(X, y)) == plain
    native, ours = both(X, y, {**ALWAYS, "extra_trees": True})
    assert np.array_equal(native, ours)


def few_rows(X, y):
    """How many rows LightGBM is told to look at."""
    asked = []

    class Watched(boostbins.lightgbm.Dataset):
        def _construct_forced(self, cuts, settings, parameters):
            asked.append(parameters.get("bin_construct_sample_cnt"))
            super()._construct_forced(cuts, settings, parameters)

    assert Watched(X, y, params=dict(ALWAYS)).construct().params.get("bin_construct_sample_cnt") is None
    return asked[0]
