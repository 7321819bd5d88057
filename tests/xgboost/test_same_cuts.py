"""XGBoost's own cuts, given back as `Bins`, train XGBoost's own model, whatever is set: only the cuts are ours.

A setting that is not here, of those that XGBoost documents, has to do with GPUs, with `gblinear`, which has no bins, or
with what is printed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb
from scipy import sparse

import boostbins.xgboost
from boostbins.xgboost import LIBRARY
from boostbins.xgboost.dmatrix import QuantileDMatrix, from_native
from tests.libraries import fingerprint
from tests.same_cuts import mixed_table
from tests.xgboost.test_batches import Batches

X, y = mixed_table(800)
R = np.random.default_rng(2)
NAMES = list("abcdefghij")
QUIET = {"nthread": 1, "eta": 0.5}
pytestmark = pytest.mark.filterwarnings(
    "ignore:The argument 'eval_set' is deprecated",
    "ignore:`XGBRF.*` is deprecated:FutureWarning",  # XGBoost 3.4, and the next
    "ignore:.*`booster=.*` is deprecated:UserWarning",
    "ignore:.*manually specified the `updater`:UserWarning",
    "ignore:`feature_weights` in `fit` method is deprecated",  # its only place in older versions
)

LABELS = {
    "number": y,
    "positive": np.exp(y / 4),
    "count": R.poisson(np.exp(y / 8)),
    "share": 1 / (1 + np.exp(-y)),
    "flag": (y > np.median(y)).astype(int),
    "class": np.digitize(y, np.quantile(y, [0.2, 0.5, 0.9])),
    "several": np.column_stack([y, X[:, 6], X[:, 1]]),
    "flags": np.column_stack([y > np.median(y), X[:, 6] > 20]).astype(int),
    "censored": np.where(R.random(800) < 0.3, -1, 1) * np.exp(y / 4),
    "relevance": np.digitize(y, np.quantile(y, [0.5, 0.8, 0.95])),
}
WEIGHT = R.random(800) * (R.random(800) < 0.8)  # some rows do not count
BESIDE = {
    "weight": WEIGHT,
    "base_margin": R.standard_normal(800),
    "feature_weights": R.random(10) + 0.01,
    "qid": np.repeat(np.arange(20), 40),
    "bounds": {"label_lower_bound": np.exp(y / 4), "label_upper_bound": np.exp(y / 4) + R.exponential(1, 800)},
}


def of(params, label="number", *per_row, max_bin=32, since="2"):
    """A setting: XGBoost's parameters, what is predicted, and what else is said of the rows."""
    name = ", ".join([*(f"{key}={value}" for key, value in params.items()), label, *per_row, f"max_bin={max_bin}"])
    old = pytest.mark.skipif(LIBRARY.is_before(since), reason=f"needs XGBoost {since}")
    return pytest.param(params, label, per_row, max_bin, id=name, marks=old)


RANK = ("relevance", "qid")
AFT = ("number", "bounds")
SETTINGS = [
    # trees
    of({}),
    of({"tree_method": "hist"}),
    of({"updater": "grow_quantile_histmaker"}),
    of({"updater": "grow_quantile_histmaker,prune", "gamma": 5}),
    *[of({}, max_bin=n) for n in (2, 3, 16, 64, 255, 256, 257, 1024)],
    of({"max_depth": 1}),
    of({"max_depth": 12, "min_child_weight": 0}),
    of({"max_depth": 0, "max_leaves": 20, "grow_policy": "lossguide"}),
    of({"max_leaves": 9}),
    of({"grow_policy": "lossguide"}),
    of({"gamma": 3}),
    of({"min_child_weight": 40}),
    of({"max_delta_step": 0.5}),
    of({"lambda": 20, "alpha": 5}),
    of({"eta": 0.01}),
    of({"max_cached_hist_node": 2}, since="2.1"),
    # samples, of rows and columns
    of({"subsample": 0.5, "seed": 7}),
    of({"subsample": 0.5, "sampling_method": "uniform", "seed_per_iteration": True}),
    of({"colsample_bytree": 0.5, "seed": 7}),
    of({"colsample_bylevel": 0.5}),
    of({"colsample_bynode": 0.5}),
    of({"colsample_bytree": 0.7, "colsample_bylevel": 0.7, "colsample_bynode": 0.7}, "number", "feature_weights"),
    of({"num_parallel_tree": 5, "subsample": 0.6, "colsample_bynode": 0.6, "eta": 1}),
    # constraints
    of({"monotone_constraints": "(1,1,0,0,0,0,1,0,-1,0)"}),
    of({"interaction_constraints": "[[0, 1], [2, 3, 6]]"}),
    # dropout
    of({"booster": "dart"}),
    of({"booster": "dart", "rate_drop": 0.5, "skip_drop": 0.2, "sample_type": "weighted", "normalize_type": "forest"}),
    of({"booster": "dart", "rate_drop": 0.1, "one_drop": 1}),
    # numbers per row
    of({}, "number", "weight"),
    of({}, "number", "base_margin"),
    of({"subsample": 0.7}, "number", "weight", "base_margin", max_bin=256),
    of({"scale_pos_weight": 3, "objective": "binary:logistic"}, "flag"),
    of({"scale_pos_weight": 3, "objective": "binary:logistic"}, "flag", "weight"),
    of({"base_score": 4.0}),
    # objectives
    of({"objective": "reg:squaredlogerror"}, "positive"),
    of({"objective": "reg:pseudohubererror", "huber_slope": 2.0}),
    of({"objective": "reg:absoluteerror"}),
    of({"objective": "reg:absoluteerror"}, "number", "weight"),
    of({"objective": "reg:quantileerror", "quantile_alpha": 0.9}),
    of({"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}),
    of({"objective": "reg:gamma"}, "positive"),
    of({"objective": "reg:tweedie", "tweedie_variance_power": 1.2}, "positive"),
    of({"objective": "count:poisson"}, "count"),
    of({"objective": "reg:logistic"}, "share"),
    of({"objective": "binary:logistic"}, "flag"),
    of({"objective": "binary:logitraw"}, "flag"),
    of({"objective": "binary:hinge"}, "flag"),
    of({"objective": "multi:softprob", "num_class": 4}, "class"),
    of({"objective": "multi:softmax", "num_class": 4}, "class", "weight"),
    of({"objective": "survival:cox"}, "censored"),
    *[
        of({"objective": "survival:aft", "aft_loss_distribution": kind, "aft_loss_distribution_scale": 1.3}, *AFT)
        for kind in ("normal", "logistic", "extreme")
    ],
    of({"objective": "rank:ndcg"}, *RANK),
    of({"objective": "rank:ndcg", "lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 4}, *RANK),
    of({"objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_bias_norm": 1.0}, *RANK),
    of({"objective": "rank:ndcg", "ndcg_exp_gain": False, "lambdarank_normalization": False}, *RANK, since="2.1"),
    of({"objective": "rank:pairwise", "lambdarank_score_normalization": False}, *RANK, since="3"),
    of({"objective": "rank:map"}, "flag", "qid"),
    # several targets
    of({}, "several"),
    of({"objective": "binary:logistic"}, "flags"),
    of({"multi_strategy": "multi_output_tree"}, "several"),
    of({"multi_strategy": "multi_output_tree", "subsample": 0.6, "max_leaves": 9}, "several", "weight"),
    of({"multi_strategy": "multi_output_tree", "objective": "multi:softprob", "num_class": 4}, "class"),
]  # fmt: skip


def train(params, matrix, n_trees=4, **options):
    return bytes(xgb.train({**QUIET, **params}, matrix, n_trees, **options).save_raw("json"))


def own_and_ours(data, label=None, max_bin=32, **options):
    """XGBoost's own matrix, and ours with its cuts: one more of `max_bin` is for the last cut."""
    options = {"nthread": 1, **options}
    own = xgb.QuantileDMatrix(data, label, max_bin=max_bin, **options)
    return own, QuantileDMatrix(data, label, bin_method=from_native(own), max_bin=max_bin + 1, **options)


@pytest.mark.parametrize(("params", "label", "per_row", "max_bin"), SETTINGS)
def test_the_model_is_xgboosts_own_whatever_is_set(params, label, per_row, max_bin):
    options = {}
    for name in per_row:
        options.update(BESIDE[name] if name == "bounds" else {name: BESIDE[name]})
    own, ours = own_and_ours(X, None if "bounds" in per_row else LABELS[label], max_bin, **options)
    assert train({**params, "max_bin": max_bin + 1}, ours) == train({**params, "max_bin": max_bin}, own)


def test_other_cuts_train_another_model():
    own, ours = own_and_ours(X, y)
    other = QuantileDMatrix(X, y, bin_method="kmeans", max_bin=33, nthread=1)
    assert train({"max_bin": 32}, own) == train({"max_bin": 33}, ours) != train({"max_bin": 33}, other)


# ---- the data


def in_batches(data, label):
    return Batches([{"data": data[part], "label": label[part]} for part in (slice(300), slice(300, 800))])


new = pytest.mark.skipif(LIBRARY.is_before("3"), reason="takes it in another way")
CONTAINERS = {
    "float32": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "CSR": sparse.csr_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas, nullable": lambda X: pd.DataFrame(X, columns=NAMES).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "Arrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=new if kind in ("polars", "Arrow") else ()) for kind in CONTAINERS]
)
def test_the_model_is_xgboosts_own_whatever_holds_the_data(kind):
    own, ours = own_and_ours(CONTAINERS[kind](X), y)
    assert train({"max_bin": 33}, ours) == train({"max_bin": 32}, own)


@pytest.mark.parametrize("missing", [0.0, 3.0, -999.0])
def test_whatever_stands_for_missing(missing):
    own, ours = own_and_ours(np.nan_to_num(X, nan=missing), y, missing=missing)
    assert train({"max_bin": 33}, ours) == train({"max_bin": 32}, own)


@pytest.mark.parametrize("form", ["names", "numbers"])
@pytest.mark.parametrize(
    "params",
    [{}, {"max_cat_to_onehot": 1}, {"max_cat_to_onehot": 7}, {"max_cat_to_onehot": 1, "max_cat_threshold": 2}],
    ids=str,
)
def test_with_categories(form, params):
    frame = pd.DataFrame(X, columns=NAMES).astype({"h": int})
    if form == "names":
        frame["h"] = pd.Categorical([f"kind {i}" for i in frame["h"]])
        own, ours = own_and_ours(frame, y, enable_categorical=True)
    else:
        own, ours = own_and_ours(frame, y, enable_categorical=True, feature_types=["q"] * 7 + ["c"] + ["q"] * 2)
    assert from_native(own).names == tuple("abcdefgij")
    assert train({**params, "max_bin": 33}, ours) == train({**params, "max_bin": 32}, own)


def test_of_data_iterators(tmp_path):
    own = xgb.QuantileDMatrix(in_batches(X, y), max_bin=32, nthread=1)
    ours = QuantileDMatrix(in_batches(X, y), bin_method=from_native(own), max_bin=33, nthread=1)
    assert train({"max_bin": 33}, ours) == train({"max_bin": 32}, own)
    if LIBRARY.is_before("3"):
        return
    pages = [in_batches(X, y), in_batches(X, y)]
    for batches, name in zip(pages, ("own", "ours"), strict=True):
        batches.cache_prefix = str(tmp_path / name)
    own = xgb.ExtMemQuantileDMatrix(pages[0], max_bin=32, nthread=1)
    ours = boostbins.xgboost.ExtMemQuantileDMatrix(pages[1], bin_method=from_native(own), max_bin=33, nthread=1)
    for params in ({}, {"subsample": 0.5}):
        assert train({**params, "max_bin": 33}, ours) == train({**params, "max_bin": 32}, own)


# ---- where it cannot be


def test_the_greatest_of_all_numbers_is_parted_from_the_rest():
    """XGBoost's own last cut is infinite then, which predicts otherwise than it trains; ours is at that number."""
    column = np.where(X[:, 4] == 1, np.finfo(np.float32).max, 1e38 * X[:, 0])
    data = np.column_stack([column, X[:, 1]])
    own, ours = own_and_ours(data, 10 * X[:, 4] + y, max_bin=8)
    booster = xgb.train({**QUIET, "max_bin": 9}, ours, 4)
    assert bytes(booster.save_raw("json")) != train({"max_bin": 8}, own)
    assert np.array_equal(booster.predict(ours), booster.predict(xgb.DMatrix(data)))


def test_of_as_many_bins_as_there_can_be_one_is_missing():
    values = np.arange(70_000.0)[:, None]
    with pytest.raises(ValueError, match="has 65535 cuts; at most 65534 are possible"):
        from_native(xgb.QuantileDMatrix(values, max_bin=65_536))
    own, ours = own_and_ours(values, np.sqrt(values), max_bin=65_535)
    assert train({"max_bin": 65_536}, ours, 1) == train({"max_bin": 65_535}, own, 1)


# ---- training, and the estimators


def test_evaluated_and_continued():
    own, ours = own_and_ours(X[:500], y[:500])
    seen, models = [], []
    for matrix, max_bin in ((own, 32), (ours, 33)):
        params, results = {**QUIET, "max_bin": max_bin, "eval_metric": ["rmse", "mae"]}, {}
        valid = xgb.QuantileDMatrix(X[500:], y[500:], ref=matrix, max_bin=max_bin, nthread=1)
        options = {"evals": [(matrix, "train"), (valid, "valid")], "verbose_eval": False}
        first = xgb.train(params, matrix, 40, evals_result=results, early_stopping_rounds=2, **options)
        again = xgb.train({**params, "subsample": 0.5}, matrix, 3, xgb_model=first)
        update = {"process_type": "update", "updater": "prune", "gamma": 9}
        pruned = xgb.train({**params, **update}, matrix, first.num_boosted_rounds(), xgb_model=first)
        seen.append((results, first.best_iteration, first.best_score))
        models.append([bytes(model.save_raw("json")) for model in (first, again, pruned)])
    assert seen[0] == seen[1]
    assert models[0] == models[1]
    assert len(set(models[0])) == 3
    assert 0 < seen[0][1] < 39


def half_squares(y_true, y_pred):
    return y_pred - y_true, np.ones_like(y_true)


named = pd.DataFrame(X, columns=NAMES)
with_categories = named.assign(h=named["h"].astype(int).astype("category"))
ESTIMATORS = {
    "defaults": ("XGBRegressor", {}, {}, {}),
    "weights and margins": ("XGBRegressor", {}, {}, {"sample_weight": WEIGHT, "base_margin": y / 2}),
    "feature weights": ("XGBRegressor", {"colsample_bynode": 0.5}, {}, {"feature_weights": BESIDE["feature_weights"]}),
    "missing": ("XGBRegressor", {"missing": 3.0}, {"missing": 3.0}, {}),
    "an objective": ("XGBRegressor", {"objective": half_squares}, {}, {}),
    "dart": ("XGBRegressor", {"booster": "dart", "rate_drop": 0.3}, {}, {}),
    "monotone": ("XGBRegressor", {"monotone_constraints": {"a": 1, "b": -1}}, {"data": named}, {}),
    "apart": ("XGBRegressor", {"interaction_constraints": [["a", "b"], ["c", "g"]]}, {"data": named}, {}),
    "parameters of no name": ("XGBRegressor", {"max_cached_hist_node": 9, "seed_per_iteration": True}, {}, {}),
    "two classes": ("XGBClassifier", {"scale_pos_weight": 2}, {"label": "flag"}, {}),
    "four classes": ("XGBClassifier", {}, {"label": "class"}, {}),
    "several labels": ("XGBClassifier", {}, {"label": "flags"}, {}),
    "several targets": ("XGBRegressor", {"multi_strategy": "multi_output_tree"}, {"label": "several"}, {}),
    "a forest": ("XGBRFRegressor", {"n_estimators": 7}, {}, {}),
    "a forest of classes": ("XGBRFClassifier", {"n_estimators": 7}, {"label": "flag"}, {}),
    "ranking": ("XGBRanker", {}, {"label": "relevance"}, {"qid": BESIDE["qid"], "sample_weight": R.random(20)}),
    "categories": ("XGBRegressor", {"enable_categorical": True}, {"data": with_categories}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATORS)
def test_of_estimators(name):
    kind, params, given, fit = ESTIMATORS[name]
    if not hasattr(xgb, kind):
        pytest.skip("is no longer there")
    if LIBRARY.is_before("2.1"):
        params.pop("max_cached_hist_node", None)
    data, label = given.get("data", X), LABELS[given.get("label", "number")]
    per_row = {"sample_weight": "weight", "qid": "qid"}
    options = {per_row[key]: value for key, value in fit.items() if key in per_row}
    options |= {"enable_categorical": params.get("enable_categorical", False), "missing": params.get("missing")}
    cuts = from_native(xgb.QuantileDMatrix(data, label, max_bin=32, nthread=1, **options))
    params = {"n_estimators": 4, "n_jobs": 1, **params}
    fit = {**fit, "verbose": False, "eval_set": [(data[:100], label[:100])]}
    if kind == "XGBRanker":
        fit["eval_qid"] = [fit["qid"][:100]]
    own = getattr(xgb, kind)(max_bin=32, **params).fit(data, label, **fit)
    ours = getattr(boostbins.xgboost, kind)(max_bin=33, bin_method=cuts, **params).fit(data, label, **fit)
    assert [c.tolist() for c in ours.bins_] == [c.tolist() for c in cuts]
    assert fingerprint(ours) == fingerprint(own)
    assert ours.evals_result() == own.evals_result()
    assert np.array_equal(ours.predict(data), own.predict(data))


def test_of_estimators_that_stop_early_and_go_on():
    cuts = from_native(xgb.QuantileDMatrix(X[:500], y[:500], max_bin=32, nthread=1))
    made = []
    for make, params in (
        (xgb.XGBRegressor, {"max_bin": 32}),
        (boostbins.xgboost.XGBRegressor, {"max_bin": 33, "bin_method": cuts}),
    ):
        params = {"n_estimators": 60, "learning_rate": 0.5, "n_jobs": 1, **params}
        first = make(early_stopping_rounds=2, **params).fit(
            X[:500], y[:500], eval_set=[(X[500:], y[500:])], verbose=False
        )
        more = make(**{**params, "n_estimators": 3}).fit(X[:500], y[:500], xgb_model=first)
        made.append((first.best_iteration, first.evals_result(), fingerprint(first), fingerprint(more)))
    assert made[0] == made[1]
    assert 0 < made[0][0] < 59
