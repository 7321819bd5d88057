"""`Dataset`: LightGBM's own object, with our cuts in it."""

from __future__ import annotations

import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import boostbins.catboost
import boostbins.lightgbm
import boostbins.xgboost
from boostbins import Bins, fit_bins
from tests.adapters.test_matrix import data
from tests.libraries import of_lightgbm

QUIET = {"verbosity": -1, "num_threads": 2, "seed": 0, "deterministic": True}


# ---- LightGBM


def dataset(X, y, **options):
    return boostbins.lightgbm.Dataset(X, y, **options)


def with_cuts_of(data_set, bins):
    """Whether LightGBM has these cuts; it does not use the constant column of `data`, unless told to."""
    used = boostbins.lightgbm.from_native(data_set)
    assert used.names == bins.names
    assert used.cuts[3].tolist() == []
    return [c.tolist() for i, c in enumerate(used) if i != 3] == [c.tolist() for i, c in enumerate(bins) if i != 3]


def test_lightgbm_takes_labels_as_classes_where_its_objective_does():
    X, y = data()
    train = dataset(X, y, bin_method="auto")

    def objective(scores, data):
        return scores - np.tile(data.get_label(), 3).reshape(scores.shape), np.ones_like(scores)

    lgb.train({**QUIET, "objective": objective, "num_class": 3}, train, 1)
    numbers = dataset(X, y, bin_method="auto", params=QUIET).construct()
    assert train.bins_.choices == numbers.bins_.choices
    for label in (np.full(len(y), 3.0), np.full(len(y), -1.0), np.full(len(y), 0.5)):
        with pytest.raises(ValueError, match="label, of 3 classes, must hold whole numbers from 0 to 2, got"):
            lgb.train({**QUIET, "objective": "softmax", "num_class": 3}, dataset(X, label, bin_method="auto"), 1)


HANDS_OVER_ARROW = pytest.mark.skipif(
    not hasattr(pl.DataFrame, "__arrow_c_stream__"), reason="polars before 1.3: LightGBM refuses its frames itself"
)


@pytest.mark.parametrize("kind", ["null", "string", "float16", "date32"])
@pytest.mark.parametrize("is_polars", [False, pytest.param(True, marks=HANDS_OVER_ARROW)])
def test_types_at_which_lightgbm_ends_the_process_are_refused(kind, is_polars):
    X, y = data(60)
    odd = pa.array([None] * 60, kind) if kind != "float16" else pa.array(np.zeros(60, np.float16))
    table = pa.table({"a": X[:, 0], "odd": odd, "y": y})
    frame = pl.from_arrow(table) if is_polars else table
    with pytest.raises(TypeError, match="data, column 'odd' is of a type that LightGBM cannot read .*: make"):
        dataset(frame, y).construct()
    assert dataset(table.drop_columns("odd"), y, params=QUIET).construct().bins_.names == ("a", "y")


@pytest.mark.parametrize(
    ("label", "n_classes", "message"),
    [
        ([1, 2, 3], 3, "label, of 3 classes, must hold whole numbers from 0 to 2, got 3"),
        ([0, np.nan, 1], 3, "the target has a missing value: remove that row"),
        ([0, 1], 3, r"label must have one entry per row, shape \(3,\), got \(2,\)"),
        ([0, 1, 2], "3", "n_classes must be a whole number, at least 1, got '3'"),
        ([0, 1, 2], -3, "n_classes must be a whole number, at least 1, got -3"),
    ],
)
def test_labels_that_number_no_classes_are_refused(label, n_classes, message):
    X = np.arange(6.0).reshape(3, 2)
    for given in (X, lambda: iter([X])):
        with pytest.raises(ValueError, match=message if given is X else "label|n_classes"):
            boostbins.xgboost.QuantileDMatrix(given, label, bin_method="auto", n_classes=n_classes)


def test_lightgbm_takes_max_bin_from_train_as_ever():
    X, y = data()
    train = dataset(X, y)
    booster = lgb.train({**QUIET, "max_bin": 16}, train, 10)
    assert max(train.bins_.n_bins) == 16
    assert with_cuts_of(train, train.bins_)
    kept = dataset(X, y, params={**QUIET, "feature_pre_filter": False}).construct()
    assert boostbins.lightgbm.from_native(kept) == kept.bins_
    for place, thresholds in of_lightgbm(booster).items():
        assert np.isin(thresholds, train.bins_.cuts[place]).all()


def test_lightgbm_validation_sets_and_folds_share_the_cuts():
    X, y = data(missing=True)
    train = dataset(X[:1000], y[:1000], params={**QUIET, "max_bin": 30})
    for valid in (train.create_valid(X[1000:], y[1000:]), lgb.Dataset(X[1000:], y[1000:], reference=train)):
        seen = {}
        stop = [lgb.early_stopping(3, verbose=False), lgb.record_evaluation(seen)]
        booster = lgb.train({**QUIET, "max_bin": 30}, train, 200, valid_sets=[valid], callbacks=stop)
        assert booster.best_iteration > 0
        assert with_cuts_of(valid, Bins(train.bins_.cuts, boostbins.lightgbm.from_native(valid).names))
    folds = lgb.cv(QUIET, dataset(X, y), 10, nfold=3, stratified=False, return_cvbooster=True)
    cuts = dataset(X, y, params=QUIET).construct().bins_.cuts
    for booster in folds["cvbooster"].boosters:
        for place, thresholds in of_lightgbm(booster).items():
            assert np.isin(thresholds, cuts[place]).all()


def test_lightgbm_trains_on():
    X, y = data()
    first = lgb.train(QUIET, dataset(X, y, free_raw_data=False), 5)
    more = lgb.train(QUIET, dataset(X, y, free_raw_data=False), 5, init_model=first)
    assert more.num_trees() == 10
    model = boostbins.lightgbm.LGBMRegressor(n_estimators=5, **QUIET).fit(X, y)
    assert (
        boostbins.lightgbm.LGBMRegressor(n_estimators=5, **QUIET).fit(X, y, init_model=model).booster_.num_trees() == 10
    )
    assert np.isfinite(first.refit(X, y + 1).predict(X)).all()


@pytest.mark.parametrize(
    "params",
    [
        {"boosting": "dart"},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
        {"data_sample_strategy": "goss"},
        {"linear_tree": True},
        {"extra_trees": True},
        {"use_missing": False},
        {"zero_as_missing": True},
        {"force_row_wise": True},
        {"force_col_wise": True},
        {"feature_pre_filter": False},
        {"min_data_in_leaf": 200},
        {"enable_bundle": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", [False, True])
def test_lightgbm_in_all_its_ways(params, missing):
    X, y = data(missing=missing)
    X[:, 3] = np.where(X[:, 0] > 0, 0.0, X[:, 1])  # mostly zero
    settings = {**QUIET, "max_bin": 40, **params}
    train = dataset(X, y, params=settings)
    booster = lgb.train(settings, train, 10)
    for place, thresholds in of_lightgbm(booster).items():
        assert np.isin(thresholds, train.bins_.cuts[place]).all()
    native = lgb.train(settings, lgb.Dataset(X, y), 10)
    assert np.corrcoef(booster.predict(X), native.predict(X))[0, 1] > 0.9


def test_lightgbm_zeros_that_are_missing_do_not_count_in_the_binning():
    X = np.random.default_rng(0).lognormal(0, 1, (2000, 1))
    X[:1500] = 0
    train = dataset(X, X[:, 0], params={**QUIET, "zero_as_missing": True, "max_bin": 20}).construct()
    core = fit_bins(X[1500:], max_bins=19)
    assert train.bins_.cuts[0][np.abs(train.bins_.cuts[0]) > 1e-30].tolist() == core.cuts[0].tolist()


def n_groups(data_set, folder):
    data_set.construct()._dump_text(str(folder / "dump.txt"))
    line = next(line for line in (folder / "dump.txt").read_text().splitlines() if line.startswith("num_groups"))
    (folder / "dump.txt").unlink()
    return int(line.split(":")[1])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_lightgbm_still_bundles_exclusive_columns(form, tmp_path):
    kind = np.random.default_rng(0).integers(0, 30, 3000)
    X = form(np.eye(30)[kind])
    y = (kind % 7).astype(float)
    ours, native = dataset(X, y, params=QUIET), lgb.Dataset(X, y, params=QUIET)
    assert n_groups(ours, tmp_path) == n_groups(native, tmp_path) < 5
    assert np.allclose(lgb.train(QUIET, ours, 10).predict(X), lgb.train(QUIET, native, 10).predict(X))


@pytest.mark.parametrize("sparse_column", [False, True])
def test_lightgbm_learns_what_is_rare_from_all_rows(sparse_column):
    """LightGBM itself looks at a sample: here one that misses the missing, the negative and a category."""
    r = np.random.default_rng(0)
    X = np.column_stack([r.lognormal(0, 1, 5000), r.lognormal(0, 1, 5000), r.integers(0, 3, 5000)])
    if sparse_column:
        X[:4000, 1] = 0
    sample = set(lgb.Dataset(None, params={"bin_construct_sample_cnt": 300})._create_sample_indices(total_nrow=5000))
    outside = [i for i in range(5000) if i not in sample][:100]
    X[outside[:50], 0] = np.nan
    X[outside[50:], 1] = -5 - r.random(50)
    y = np.where(np.isnan(X[:, 0]), 50, X[:, 0]) + X[:, 1]
    params = {**QUIET, "bin_construct_sample_cnt": 300}
    train = dataset(X, y, params=params, categorical_feature=[2])
    booster = lgb.train(params, train, 30)
    missing, negative = outside[:50], outside[50:]
    assert booster.predict(X[missing]).min() > 30
    assert np.median(booster.predict(X[negative])) < -1
    assert (train.bins_.cuts[1] < -1).any()


@pytest.mark.parametrize("bundled", [False, True])
def test_lightgbm_nothing_of_ours_leaks_into_the_model(bundled):
    X, y = data()
    if bundled:
        X[:, 2:4] = np.where(X[:, :1] > 0, [0.0, 1.0], [1.0, 0.0]) * (X[:, 1:2] < 0.3)
    train = dataset(X, y, params=dict(QUIET))
    assert train.construct().params == lgb.Dataset(X, y, params=dict(QUIET)).construct().params
    text = lgb.train(QUIET, train, 3).model_to_string()
    assert "[forcedbins_filename: ]" in text
    assert "[max_bin_by_feature: ]" in text
    assert "boostbins" not in text
    assert train.reference is None


def test_lightgbm_says_nothing_that_it_does_not_say_itself(capfd):
    X, y = data()
    lgb.train({"num_threads": 2}, lgb.Dataset(X, y), 2)
    native = capfd.readouterr()
    lgb.train({"num_threads": 2}, dataset(X, y), 2)
    ours = capfd.readouterr()
    kinds = [
        {line.split("]", 2)[1] + line.split("]", 2)[2][:12] for line in out.out.splitlines() if line.startswith("[")}
        for out in (ours, native)
    ]
    assert kinds[0] <= kinds[1]
    assert ours.err == native.err


def test_lightgbm_categories_as_parameters():
    X, y = data()
    for given in ([2, 3], "2,3"):
        params = {**QUIET, "cat_feature": given}
        assert boostbins.lightgbm.from_native(lgb.Dataset(X, y, params=dict(params))).names[2:] == (
            "Column_3",
            "Column_4",
        )
        assert dataset(X, y, params=params).construct().bins_.names == ("x0", "x1", "x4")
    frame = pd.DataFrame(X, columns=list("abcde"))
    train = dataset(frame, y, params=dict(QUIET), categorical_feature=["c"]).construct()
    assert boostbins.lightgbm.from_native(train).names == ("a", "b", "d", "e")


def test_lightgbm_takes_ordered_categories_as_numbers():
    r = np.random.default_rng(0)
    code = r.integers(-1, 40, 3000)
    size = pd.Categorical.from_codes(code, [f"size {i:02d}" for i in range(40)], ordered=True)
    frame = pd.DataFrame({"a": r.standard_normal(3000), "size": size})
    y = np.sqrt(np.abs(code)) * 3 + frame["a"]
    model = boostbins.lightgbm.LGBMRegressor(**QUIET).fit(frame, y)
    native = lgb.LGBMRegressor(**QUIET).fit(frame, y)
    assert model.bins_.names == ("a", "size")
    assert np.mean((model.predict(frame) - y) ** 2) < 2 * np.mean((native.predict(frame) - y) ** 2)
    assert isinstance(frame["size"].dtype, pd.CategoricalDtype)


def test_lightgbm_samples_with_the_seed_that_it_is_given():
    """Two negative values among 400,000 rows: with this seed, LightGBM's sample misses one of them or both."""
    n, r = 400_000, np.random.default_rng(4)
    X = np.zeros((n, 2))
    X[r.choice(n, n // 10, False), 0] = 1.0
    X[r.choice(n, 2, False), 1] = -3.0
    X[r.choice(n, n // 10, False), 1] += 1.0
    for seed in range(4):
        model = boostbins.lightgbm.LGBMRegressor(n_estimators=2, verbosity=-1, random_state=seed)
        assert (model.fit(X, X.sum(axis=1)).bins_.cuts[1] < -1).any()


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix])
def test_lightgbm_linear_trees_on_sparse_matrices(form):
    X, y = data()
    booster = lgb.train({**QUIET, "linear_tree": True}, dataset(form(X), y), 3)
    assert np.isfinite(booster.predict(X)).all()


@pytest.mark.parametrize("bundled", [False, True])
def test_lightgbm_binary_files_can_be_loaded(bundled, tmp_path):
    X, y = data(8000)
    if bundled:
        X[:, :2] = np.where(X[:, :2] > 0.5, X[:, :2], 0)
        X[:6000, :2] = 0
    train = dataset(X, y, params=dict(QUIET))
    train.save_binary(str(tmp_path / "train.bin"))
    for again in (lgb.Dataset, boostbins.lightgbm.Dataset):
        loaded = again(str(tmp_path / "train.bin"), params=dict(QUIET))
        assert with_cuts_of(loaded, Bins(train.bins_.cuts, boostbins.lightgbm.from_native(loaded).names))
        assert same_trees(lgb.train(QUIET, loaded, 5), lgb.train(QUIET, train, 5))
    assert boostbins.lightgbm.Dataset(tmp_path / "train.bin", params=dict(QUIET)).construct().bins_ is not None
    with pytest.raises(ValueError, match=r"train\.bin is a Dataset that was saved, and has its cuts"):
        boostbins.lightgbm.Dataset(tmp_path / "train.bin", bin_method="kmeans", params=dict(QUIET)).construct()


def same_trees(one, other):
    return (
        one.model_to_string().split("Tree=0")[1].split("end of trees")[0]
        == (other.model_to_string().split("Tree=0")[1].split("end of trees")[0])
    )


def test_lightgbm_trains_on_the_rows_that_it_predicts():
    """LightGBM bundles wrongly next to a column with a heavy bin that is not zero's: ours must not let it."""
    for seed in range(8, 12):
        r = np.random.default_rng(seed)
        a = np.where(r.random(3000) < 0.8, 0, r.choice([-1.0, 1.0], 3000))
        tail = -r.lognormal(0, 3, 3000)
        X = np.column_stack([np.zeros(3000), a, tail])
        y = a * 5 + np.arcsinh(tail)
        params = {"verbosity": -1, "min_data_in_leaf": 1, "max_bin": 15, "num_threads": 1, "metric": "l2"}
        train, seen = dataset(X, y, bin_method="uniform"), {}
        booster = lgb.train(params, train, 20, valid_sets=[train], callbacks=[lgb.record_evaluation(seen)])
        assert np.isclose(seen["training"]["l2"][-1], np.mean((booster.predict(X) - y) ** 2))


def test_lightgbm_categories_that_are_not_there_are_passed_over():
    X, y = data()
    assert len(dataset(X, y, categorical_feature=[2, 9], params=dict(QUIET)).construct().bins_) == 4


def test_lightgbm_warns_once():
    X, y = data()
    said = []
    for make in (lgb.Dataset, dataset):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make(X, y, params={**QUIET, "categorical_feature": [2]}).construct()
        said.append([str(w.message) for w in caught])
    assert said[0] == said[1] != []


def test_lightgbm_reads_the_cuts_of_any_dataset():
    X, y = data(missing=True)
    native = lgb.Dataset(pd.DataFrame(X, columns=list("abcde")), y, params=QUIET)
    bins = boostbins.lightgbm.from_native(native)
    assert bins.names == ("a", "b", "c", "d", "e")
    assert [n + m for n, m in zip(bins.n_bins, (1, 0, 1, 0, 0), strict=True)] == [
        max(native.feature_num_bin(i), 1) for i in range(5)
    ]
    booster = lgb.train(QUIET, native, 10)
    for place, thresholds in of_lightgbm(booster).items():
        assert np.isin(thresholds, bins.cuts[place]).all()
    with pytest.raises(TypeError, match=r"must be a lightgbm.Dataset, got ndarray"):
        boostbins.lightgbm.from_native(X)
