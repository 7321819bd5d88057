"""CatBoost's own cuts, given back as `Bins`, train the very same model, whatever else is asked of it."""

from __future__ import annotations

from inspect import signature
from typing import Any

import catboost
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import boostbins.catboost
from boostbins import Bins
from tests.same_cuts import mixed_table

QUIET = {
    "iterations": 6,
    "depth": 4,
    "verbose": False,
    "allow_writing_files": False,
    "thread_count": 2,
    "random_seed": 0,
}
N = 600
X, Y = mixed_table(N)
CLASSES = np.digitize(Y, np.quantile(Y, [0.4, 0.7]))
GROUPS = np.repeat(np.arange(N // 20), 20)
WEIGHT = np.random.default_rng(1).random(N)
NAMES = list("abcdefghij")
CATEGORIES = [4, 7]


def own_cuts(pool: catboost.Pool, **options: Any) -> Bins:
    """Return the cuts that CatBoost itself makes for all numeric features; a constant one has none."""
    pool.quantize(**options)
    found = boostbins.catboost.from_native(pool)
    names = pool.get_feature_names()
    others = [*pool.get_cat_feature_indices(), *pool.get_embedding_feature_indices()]
    names = [names[i] or f"x{i}" for i in range(pool.num_col()) if i not in others]
    return Bins([found[name] if name in found.names else [] for name in names], names)


def raw(model: Any, data: Any) -> np.ndarray:
    return np.asarray(catboost.CatBoost.predict(model, data))


def both(name: str, params: dict[str, Any], data: Any, label: Any, **fit: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what CatBoost and ours predict, trained alike on the same cuts."""
    kinds = {key: fit[key] for key in ("cat_features", "embedding_features") if key in fit}
    cut = {key: params[key] for key in ("border_count", "nan_mode") if key in params}
    own = own_cuts(catboost.Pool(data, label, **kinds), **cut)
    native = getattr(catboost, name)(**{**QUIET, **params}).fit(data, label, **fit)
    ours = getattr(boostbins.catboost, name)(**{**QUIET, **params}, bin_method=own).fit(data, label, **fit)
    return raw(native, data), raw(ours, data)


def mixed_frame() -> pd.DataFrame:
    """Return the same table with two columns of categories."""
    frame = pd.DataFrame(X, columns=NAMES)
    for place in CATEGORIES:
        frame[NAMES[place]] = X[:, place].astype(int).astype(str)
    return frame


OF_NUMBERS = [
    {},
    {"rsm": 0.5},
    {"bootstrap_type": "Bayesian", "bagging_temperature": 2},
    {"bootstrap_type": "Bernoulli", "subsample": 0.6, "sampling_frequency": "PerTreeLevel"},
    {"bootstrap_type": "MVS", "subsample": 0.6, "mvs_reg": 0.5},
    {"bootstrap_type": "No", "random_strength": 0},
    {"boosting_type": "Ordered"},
    {"has_time": True},
    {"grow_policy": "Depthwise", "min_data_in_leaf": 5},
    {"grow_policy": "Lossguide", "max_leaves": 9},
    {"monotone_constraints": [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]},
    {"feature_weights": {1: 0.1, 6: 3.0}},
    {"first_feature_use_penalties": {0: 5.0}, "per_object_feature_penalties": {1: 0.1}, "penalties_coefficient": 2},
    {"ignored_features": [0]},
    {"ignored_features": ["2-5", "8"]},
    {"langevin": True, "diffusion_temperature": 1000},
    {"posterior_sampling": True},
    {"model_shrink_rate": 0.1, "model_shrink_mode": "Decreasing"},
    {"score_function": "L2", "l2_leaf_reg": 1},
    {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 3, "loss_function": "Poisson"},
    {"leaf_estimation_backtracking": "No", "loss_function": "LogCosh"},
    {"fold_permutation_block": 8, "fold_len_multiplier": 1.5, "boosting_type": "Ordered"},
    {"approx_on_full_history": True, "boosting_type": "Ordered"},
    {"boost_from_average": False},
    {"used_ram_limit": "1gb"},
    {"loss_function": "Quantile:alpha=0.8"},
    {"loss_function": "MAE"},
    {"loss_function": "Huber:delta=2"},
    {"loss_function": "RMSEWithUncertainty"},
    {"border_count": 20},
    {"nan_mode": "Max"},
]


@pytest.mark.parametrize("params", OF_NUMBERS, ids=str)
def test_of_numbers(params):
    label = np.abs(Y) if params.get("loss_function") == "Poisson" else Y
    native, ours = both("CatBoostRegressor", params, X, label)
    assert np.array_equal(native, ours)
    native, ours = both("CatBoostRegressor", params, mixed_frame(), label, cat_features=["e", "h"])
    assert np.array_equal(native, ours)


@pytest.mark.parametrize(
    "params",
    [
        {"one_hot_max_size": 10},
        {"one_hot_max_size": 10, "ignored_features": ["a", "e"]},
        {"ignored_features": ["h"]},
        {"ignored_features": [0, 4, 7], "rsm": 0.5},
        {"max_ctr_complexity": 1},
        {"simple_ctr": ["Borders:TargetBorderCount=2", "Counter"], "combinations_ctr": ["BinarizedTargetMeanValue"]},
        {"counter_calc_method": "Full"},
        {"ctr_leaf_count_limit": 2, "store_all_simple_ctr": True},
        {"model_size_reg": 0, "per_feature_ctr": ["7:Counter:Prior=0.5"]},
        {"allow_writing_files": True},
    ],
    ids=str,
)
def test_of_categories(params, tmp_path):
    params = {**params, "train_dir": str(tmp_path)} if "allow_writing_files" in params else params
    for name, label in (("CatBoostRegressor", Y), ("CatBoostClassifier", CLASSES)):
        native, ours = both(name, params, mixed_frame(), label, cat_features=["e", "h"])
        assert np.array_equal(native, ours)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"auto_class_weights": "Balanced"},
        {"class_weights": [1, 5, 2]},
        {"loss_function": "MultiClassOneVsAll"},
        {"scale_pos_weight": 3},
        {"loss_function": "CrossEntropy"},
        {"target_border": 0.5},
        {"allow_const_label": True},
    ],
    ids=str,
)
def test_of_classes(params):
    two = {"scale_pos_weight", "loss_function", "target_border"} & set(params) and "Multi" not in str(params)
    label = (CLASSES > 0).astype(int) if two else np.zeros(N, int) if "allow_const_label" in params else CLASSES
    native, ours = both("CatBoostClassifier", params, X, label, sample_weight=WEIGHT)
    assert np.array_equal(native, ours)


@pytest.mark.parametrize("loss", ["YetiRank", "QueryRMSE", "QuerySoftMax", "PairLogit", "PairLogitPairwise"])
def test_of_groups(loss):
    pairs = np.array([(20 * g + i, 20 * g + i + 1) for g in range(N // 20) for i in range(3)])
    params = {"loss_function": loss, "border_count": 32}
    more = {"pairs": pairs, "pairs_weight": np.arange(1.0, len(pairs) + 1)} if "Pair" in loss else {}
    label = CLASSES.astype(float)
    native, ours = both(
        "CatBoostRanker", params, X, label, group_id=GROUPS, group_weight=1.0 + GROUPS, subgroup_id=GROUPS % 3, **more
    )
    assert np.array_equal(native, ours)
    native, ours = both("CatBoostRanker", {**params, "sampling_unit": "Group"}, X, label, group_id=GROUPS, **more)
    assert np.array_equal(native, ours)


@pytest.mark.parametrize("loss", ["MultiRMSE", "MultiLogloss"])
def test_of_many_targets(loss):
    name, label = (
        ("CatBoostRegressor", np.column_stack([Y, -2 * Y]))
        if loss == "MultiRMSE"
        else ("CatBoostClassifier", np.column_stack([CLASSES > 0, CLASSES > 1]).astype(int))
    )
    native, ours = both(name, {"loss_function": loss}, X, label)
    assert np.array_equal(native, ours)


def test_of_every_kind_of_table():
    numbers = np.nan_to_num(X)
    vectors = list(np.random.default_rng(2).standard_normal((N, 3)).astype(np.float32))
    as_objects = mixed_frame().to_numpy(object)
    ordinal = mixed_frame().astype(dict.fromkeys("eh", "category"))
    tables = [
        (numbers.astype(np.float32), {}),
        (np.asfortranarray(numbers), {}),
        (sparse.csr_matrix(numbers), {}),
        (numbers.tolist(), {}),
        (as_objects, {"cat_features": CATEGORIES}),
        (as_objects.tolist(), {"cat_features": CATEGORIES}),
        (ordinal, {"cat_features": CATEGORIES}),
        (pd.DataFrame(X, columns=NAMES).assign(v=vectors), {"embedding_features": ["v"]}),
        (mixed_frame().assign(v=vectors), {"embedding_features": ["v"], "cat_features": ["e", "h"]}),
    ]
    if hasattr(catboost.core, "pl"):  # as of 1.2.9
        tables += [
            (pl.DataFrame(numbers, schema=NAMES), {}),
            (pl.DataFrame(mixed_frame()), {"cat_features": ["e", "h"]}),
        ]
    for table, more in tables:
        for params in ({}, {"ignored_features": [0, 7]}):
            native, ours = both("CatBoostRegressor", params, table, Y, **more)
            assert np.array_equal(native, ours)
    integers = sparse.csr_matrix(np.round(np.abs(numbers)).astype(int))
    native, ours = both("CatBoostRegressor", {"ignored_features": [0, 7]}, integers, Y, cat_features=[7])
    assert np.array_equal(native, ours)


def test_with_validation_and_early_stopping():
    fit = {"eval_set": [(X[:200], Y[:200]), catboost.Pool(X[200:400], Y[200:400])], "early_stopping_rounds": 2}
    native, ours = both("CatBoostRegressor", {"iterations": 60, "learning_rate": 0.9}, X, Y, **fit)
    assert np.array_equal(native, ours)
    fit = {"eval_set": (mixed_frame()[:200], Y[:200]), "cat_features": ["e", "h"], "use_best_model": True}
    params = {"ignored_features": ["a", "h"], "one_hot_max_size": 5}
    native, ours = both("CatBoostRegressor", params, mixed_frame(), Y, **fit)
    assert np.array_equal(native, ours)


def test_with_a_part_of_the_rows_for_validation():
    params = {**QUIET, "eval_fraction": 0.3, "ignored_features": [6]}
    part, _ = catboost.Pool(X, Y).train_eval_split(False, False, 0.3, False)
    ours = boostbins.catboost.CatBoostRegressor(**params, bin_method=own_cuts(part)).fit(X, Y)
    assert np.array_equal(raw(catboost.CatBoostRegressor(**params).fit(X, Y), X), raw(ours, X))


def test_with_weights_and_a_baseline():
    native, ours = both("CatBoostRegressor", {}, X, Y, sample_weight=WEIGHT, baseline=np.sin(Y))
    assert np.array_equal(native, ours)


@pytest.mark.parametrize("categories", [[], ["e", "h"]], ids=str)
def test_from_another_model(categories):
    frame, kinds = mixed_frame() if categories else pd.DataFrame(X, columns=NAMES), {"cat_features": categories}
    first = catboost.CatBoostRegressor(**QUIET).fit(frame[300:], Y[300:], **kinds)
    native, ours = both("CatBoostRegressor", {"rsm": 0.7}, frame, Y, init_model=first, **kinds)
    assert np.array_equal(native, ours)


@pytest.mark.parametrize("categories", [[], ["e", "h"]], ids=str)
def test_from_a_snapshot(categories, tmp_path):
    frame, kinds = mixed_frame() if categories else pd.DataFrame(X, columns=NAMES), {"cat_features": categories}
    params = {**QUIET, "ignored_features": [0, 7]}
    own, saved = own_cuts(catboost.Pool(frame, Y, **kinds)), {"save_snapshot": True, "snapshot_file": "s"}
    found = []
    for folder, make in (("native", catboost.CatBoostRegressor), ("ours", boostbins.catboost.CatBoostRegressor)):
        for iterations in (3, 6):  # the second goes on from the first
            more = {"allow_writing_files": True, "train_dir": str(tmp_path / folder), "iterations": iterations}
            model = make(**{**params, **more}, **({"bin_method": own} if folder == "ours" else {}))
            model.fit(frame, Y, **saved, **kinds)
        found.append(raw(model, frame))
    assert np.array_equal(*found)


def test_from_pools():
    """A pool of the user's own is read, and left as it is."""
    pairs = np.array([(i, i + 1) for i in range(0, N - 1, 4)])
    told = {
        "weight": WEIGHT,
        "timestamp": np.arange(N)[::-1].copy(),
        "feature_names": NAMES,
        "baseline": np.sin(Y),
    }
    ranked = {
        "group_id": GROUPS,
        "group_weight": 1.0 + GROUPS,
        "subgroup_id": GROUPS % 3,
        "pairs": pairs,
        "pairs_weight": 1.0 + np.arange(len(pairs)),
    }
    for params, more in (
        ({"has_time": True}, told),
        ({"boosting_type": "Ordered", "ignored_features": ["a", "h"]}, told),
        ({"loss_function": "QueryRMSE"}, ranked),
        ({"loss_function": "PairLogit", "ignored_features": [1]}, ranked),
    ):
        pool = catboost.Pool(X, Y, **more)
        own = own_cuts(catboost.Pool(X, Y, feature_names=more.get("feature_names")))
        name = "CatBoostRanker" if more is ranked else "CatBoostRegressor"
        native = getattr(catboost, name)(**QUIET, **params).fit(pool)
        ours = getattr(boostbins.catboost, name)(**QUIET, **params, bin_method=own).fit(pool)
        assert np.array_equal(raw(native, X), raw(ours, X))
        assert not pool.is_quantized()


@pytest.mark.skipif("graph" not in signature(catboost.Pool).parameters, reason="has no graphs yet")
def test_from_a_graph():
    graph = {"group_id": GROUPS, "graph": [(20 * g + i, 20 * g + i + 1) for g in range(N // 20) for i in range(5)]}
    pool, params = catboost.Pool(X, Y, **graph), {**QUIET, "loss_function": "QueryRMSE"}
    own = own_cuts(catboost.Pool(X, Y, **graph))
    assert len(own) == 40  # the means, minima and maxima of the neighbours too
    native = catboost.CatBoostRanker(**params).fit(pool)
    for given in ((pool, None, {}), (X, Y, graph)):
        ours = boostbins.catboost.CatBoostRanker(**params, bin_method=own).fit(*given[:2], **given[2])
        assert np.array_equal(raw(native, pool), raw(ours, pool))


def test_selecting_features():
    found = []
    for make in (
        catboost.CatBoostRegressor,
        lambda **params: boostbins.catboost.CatBoostRegressor(**params, bin_method=own_cuts(catboost.Pool(X, Y))),
    ):
        model = make(**QUIET)
        options = {"features_for_select": "0-9", "num_features_to_select": 3, "steps": 2, "logging_level": "Silent"}
        chosen = model.select_features(X, Y, train_final_model=True, **options)["selected_features"]
        found.append([chosen, raw(model, X).tolist()])
    assert found[0] == found[1]


# A pool that is quantized beforehand numbers its categories in the order of the rows, and training on other pools in
# the order in which it has shuffled them: the same model, but for the luck of the draw.
DRAWN_ANEW = {
    "one-hot features": {"one_hot_max_size": 10},
    "a categorical feature is ignored, and the rest are one-hot": {"ignored_features": ["h"]},
}


@pytest.mark.parametrize("params", DRAWN_ANEW.values(), ids=list(DRAWN_ANEW))
def test_our_pools_are_as_catboosts_own_quantized_ones(params):
    frame, kinds = mixed_frame(), {"cat_features": ["e", "h"]}
    quantized = catboost.Pool(frame, Y, **kinds)
    own = own_cuts(quantized)
    ours = boostbins.catboost.Pool(frame, Y, bin_method=own, **kinds)

    def trained(pool: catboost.Pool, **more: Any) -> np.ndarray:
        return raw(catboost.train(pool, {**QUIET, **params, "loss_function": "RMSE", **more}), frame)

    assert np.array_equal(trained(quantized), trained(ours))
    plain = catboost.Pool(frame, Y, **kinds)
    assert not np.array_equal(trained(plain), trained(ours))
    certain = {"random_strength": 0, "bootstrap_type": "No"}
    assert np.allclose(trained(plain, **certain), trained(ours, **certain), rtol=0, atol=1e-12)
