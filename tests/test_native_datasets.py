"""`Dataset`, `QuantileDMatrix` and `Pool`: the libraries' own objects, with our cuts in them."""

from __future__ import annotations

import warnings
from inspect import signature

import catboost
import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb
from libraries import of_lightgbm, of_xgboost
from scipy import sparse
from test_adapters import data

import boostbins.catboost
import boostbins.lightgbm
import boostbins.xgboost
from boostbins import Bins, fit_bins

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


@pytest.mark.parametrize("kind", ["null", "string", "float16", "date32"])
@pytest.mark.parametrize("is_polars", [False, True])
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


def test_catboost_takes_probabilities_as_numbers():
    X, y = data()
    share = 1 / (1 + np.exp(-y / y.std()))
    expected = fit_bins(X.astype(np.float32), "auto", 40, y=share)
    quiet = {"iterations": 1, "verbose": False, "allow_writing_files": False, "border_count": 39}
    for params in ({"loss_function": "CrossEntropy"}, {"loss_function": "Logloss", "target_border": 0.5}):
        model = boostbins.catboost.CatBoostClassifier(bin_method="auto", **quiet, **params).fit(X, share)
        assert model.bins_.choices["x0"].explained == pytest.approx(dict(expected.choices["x0"].explained), rel=0.01)
    which = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    flat, column = (
        boostbins.catboost.CatBoostClassifier(bin_method="auto", **quiet).fit(X, labels).bins_
        for labels in (which, pd.DataFrame({"y": which}))
    )
    assert flat.choices == column.choices


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
    """LightGBM bundles wrongly beside a column with a heavy bin that is not zero's: ours must not let it."""
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


# ---- XGBoost


def test_xgboost_trains_on_the_cuts_and_shares_them():
    X, y = data(missing=True)
    train = boostbins.xgboost.QuantileDMatrix(X[:1000], y[:1000], max_bin=32)
    valid = xgb.QuantileDMatrix(X[1000:], y[1000:], ref=train, max_bin=32)
    also = boostbins.xgboost.QuantileDMatrix(X[1000:], y[1000:], ref=train, max_bin=32)
    booster = xgb.train({"max_bin": 32}, train, 10, evals=[(valid, "v"), (also, "w")], verbose_eval=False)
    assert boostbins.xgboost.from_native(train) == train.bins_
    assert max(train.bins_.n_bins) == 31
    for place, thresholds in of_xgboost(booster).items():
        inside = thresholds[thresholds <= np.nanmax(X[:1000, place])]
        assert np.isin(inside, train.bins_.cuts[place]).all()
    assert xgb.train({"max_bin": 32}, train, 5, xgb_model=booster).num_boosted_rounds() == 15
    assert np.isfinite(xgb.train({"max_bin": 32, "booster": "dart"}, train, 5).predict(xgb.DMatrix(X))).all()


def test_xgboost_raw_and_binned_predictions_agree():
    """On the training matrix XGBoost predicts from bins, on any other from values."""
    X, y = data(4000, missing=True)
    y = y + 20 * np.isnan(X[:, 0])
    train = boostbins.xgboost.QuantileDMatrix(X, y)
    booster = xgb.train({"max_depth": 8}, train, 30)
    assert np.array_equal(booster.predict(train), booster.predict(xgb.DMatrix(X)))


@pytest.mark.parametrize("missing", [-999.0, 0.0, 0.1])
def test_xgboost_values_that_stand_for_missing(missing):
    X, y = data()
    holes = np.random.default_rng(1).random(X.shape) < 0.2
    marked, clear = np.where(holes, missing, X), np.where(holes, np.nan, X)
    one = boostbins.xgboost.QuantileDMatrix(marked, y, missing=missing)
    other = boostbins.xgboost.QuantileDMatrix(np.where(clear == missing, np.nan, clear), y)
    assert one.bins_ == other.bins_
    assert one.num_nonmissing() == other.num_nonmissing()
    model = boostbins.xgboost.XGBRegressor(missing=missing, n_estimators=5).fit(marked, y)
    assert [c.tolist() for c in model.bins_] == [c.tolist() for c in one.bins_]


def test_xgboost_reads_the_cuts_of_any_quantile_matrix():
    X, y = data()
    bins = boostbins.xgboost.from_native(xgb.QuantileDMatrix(pd.DataFrame(X, columns=list("abcde")), y, max_bin=16))
    assert bins.names == ("a", "b", "c", "d", "e")
    assert bins.n_bins[0] == 16
    with pytest.raises(TypeError, match="must be an xgboost.QuantileDMatrix"):
        boostbins.xgboost.from_native(X)


def test_xgboost_infinite_values_are_refused_as_ever():
    with pytest.raises(Exception, match="inf"):
        boostbins.xgboost.XGBRegressor(n_estimators=2).fit(np.array([[1.0], [np.inf], [2.0]]), [0, 1, 2])


@pytest.mark.skipif(boostbins.xgboost.LIBRARY.is_before("3.1"), reason="does not know categories by name")
def test_xgboost_trains_on_with_fewer_categories():
    r = np.random.default_rng(0)
    kind, a = r.integers(0, 4, 2000), r.standard_normal(2000)
    y = np.array([0, 9, 1, 8.0])[kind] + a
    names = np.array(list("abcd"))[kind]
    some = kind >= 2
    whole = pd.DataFrame({"a": a, "kind": pd.Categorical(names)})
    part = pd.DataFrame({"a": a[some], "kind": pd.Categorical(names[some])})
    errors = []
    for library in (xgb, boostbins.xgboost):
        first = library.XGBRegressor(n_estimators=10, enable_categorical=True).fit(whole, y)
        more = library.XGBRegressor(n_estimators=10, enable_categorical=True).fit(part, y[some], xgb_model=first)
        errors.append(np.mean((more.predict(part) - y[some]) ** 2))
    assert errors[1] < 2 * errors[0]


def test_xgboost_categories_by_number():
    r = np.random.default_rng(0)
    kind, a = r.integers(0, 4, 800).astype(float), r.standard_normal(800)
    options = {"enable_categorical": True, "feature_types": ["q", "c"], "n_estimators": 5}
    with pytest.raises(ValueError, match="categories must not be negative, and column 1 has -2"):
        boostbins.xgboost.XGBRegressor(**options).fit(np.column_stack([a, kind - 2]), a)
    frame = pd.DataFrame({"a": a, "kind": np.sort(kind)})
    train = boostbins.xgboost.QuantileDMatrix(frame, a, feature_types=["q", "c"], enable_categorical=True)
    booster = xgb.train({"max_depth": 3}, train, 5)
    raw = xgb.DMatrix(frame, feature_types=["q", "c"], enable_categorical=True)
    assert np.array_equal(booster.predict(train), booster.predict(raw))
    assert len(train.get_quantile_cut()[1]) == len(train.bins_.cuts[0]) + 3 + 4
    holes = np.where(r.random(800) < 0.1, 9_999_999.0, kind)
    model = boostbins.xgboost.XGBRegressor(missing=9_999_999.0, **options).fit(np.column_stack([a, holes]), kind)
    assert model.bins_.names == ("x0",)


def test_xgboost_parameters_of_numpy_and_one_column():
    X, y = data()
    assert boostbins.xgboost.XGBRegressor(max_bin=np.int64(9), n_estimators=2).fit(X, y).bins_.n_bins[0] == 8
    with pytest.raises(TypeError, match="max_bin must be a whole number, got '63'"):
        boostbins.xgboost.XGBRegressor(max_bin="63").fit(X, y)
    assert boostbins.xgboost.XGBRegressor(n_estimators=2).fit(pd.Series(X[:, 0], name="a"), y).bins_.names == ("a",)


def test_xgboost_the_greatest_of_all_values():
    greatest = np.finfo(np.float32).max
    X = np.array([[np.nextafter(greatest, np.float32(0))], [greatest], [greatest], [0]], np.float32)
    model = boostbins.xgboost.XGBRegressor(n_estimators=5, min_child_weight=0).fit(X, [0.0, 1, 1, 5])
    assert np.isfinite(model.predict(X)).all()


def test_xgboost_huge_and_tiny_values():
    r = np.random.default_rng(0)
    X = r.standard_normal((500, 4)) * np.array([1e37, 1e-37, 1e-44, 3e9])
    X[:, 3] += 1.7e12
    booster = boostbins.xgboost.XGBRegressor(n_estimators=5, max_bin=20).fit(X, X[:, 0] / 1e37)
    assert np.isfinite(booster.predict(X)).all()
    assert booster.bins_.n_bins[:2] == (19, 19)


# ---- CatBoost

BRIEF = {"iterations": 10, "verbose": False, "allow_writing_files": False}
SMALL = {**BRIEF, "loss_function": "RMSE"}


def test_catboost_trains_and_validates_on_the_cuts():
    X, y = data(missing=True)
    train = boostbins.catboost.Pool(X[:1000], y[:1000], border_count=30)
    model = catboost.train(train, SMALL, eval_set=catboost.Pool(X[1000:], y[1000:]))
    assert boostbins.catboost.from_native(train) == train.bins_
    assert max(train.bins_.n_bins) == 31
    for place, borders in model.get_borders().items():
        assert np.isin([b for b in borders if abs(b) < 3e38], train.bins_.cuts[place]).all()
    folds = catboost.cv(boostbins.catboost.Pool(X, y, border_count=30), SMALL, fold_count=3, logging_level="Silent")
    assert len(folds) == 10
    again = boostbins.catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False).fit(train)
    assert again.bins_ == train.bins_
    more = boostbins.catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False)
    assert more.fit(X, y, init_model=again).tree_count_ == 10


@pytest.mark.parametrize("mode", ["Min", "Max"])
def test_catboost_holds_missing_values_apart(mode):
    X, y = data(missing=True)
    y = y + 30 * np.isnan(X[:, 0])
    ours = boostbins.catboost.CatBoostRegressor(nan_mode=mode, iterations=30, verbose=False, allow_writing_files=False)
    ours.fit(X, y)
    native = catboost.CatBoostRegressor(nan_mode=mode, iterations=30, verbose=False, allow_writing_files=False).fit(
        X, y
    )
    there = np.isnan(X[:, 0])
    assert ours.predict(X[there]).min() > ours.predict(X[~there]).mean()
    assert np.corrcoef(ours.predict(X), native.predict(X))[0, 1] > 0.98


def test_catboost_refuses_missing_values_where_they_are_forbidden():
    X, y = data(missing=True)
    with pytest.raises(ValueError, match="nan_mode='Forbidden', and column 'x0' has missing values"):
        boostbins.catboost.CatBoostRegressor(nan_mode="Forbidden", verbose=False, allow_writing_files=False).fit(X, y)


def with_words(X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    return frame.assign(text=np.where(X[:, 0] > 0, "up and away", "down below"))


def with_kinds(X):
    return pd.DataFrame(X, columns=list("abcde")).assign(kind=np.where(X[:, 2] > 3, "many", "few"))


def with_vectors(X):
    vectors = np.random.default_rng(0).standard_normal((len(X), 3))
    return pd.DataFrame(X, columns=list("abcde")).assign(vector=list(vectors))


def test_catboost_leaves_categories_and_embeddings_alone():
    X, y = data()
    for frame, kinds in (
        (with_kinds(X), {"cat_features": ["kind"]}),
        (with_vectors(X), {"embedding_features": ["vector"]}),
        (with_vectors(X).assign(kind="few"), {"embedding_features": ["vector"], "cat_features": ["kind"]}),
    ):
        model = boostbins.catboost.CatBoostRegressor(bin_method="kmeans", **BRIEF).fit(frame, y, **kinds)
        assert model.bins_.names == tuple("abcde")
        for place, borders in model.get_borders().items():
            assert np.isin(borders, model.bins_.cuts[place]).all()
        if "embedding_features" in kinds:
            listed = boostbins.catboost.Pool(frame[[*"abcde", "vector"]].to_numpy().tolist(), y, embedding_features=[5])
            assert listed.bins_.cuts[0].tolist() == model.bins_.cuts[0].tolist()
        if len(kinds) == 1:
            assert boostbins.catboost.Pool(frame, y, bin_method="kmeans", **kinds).bins_ == model.bins_


@pytest.mark.parametrize("method", ["kmeans", "auto", "quantile"])
def test_catboost_reads_a_pool_and_leaves_it_as_it_is(method, tmp_path):
    X, y = data(missing=True)
    y, weight = y.astype(np.float32), np.random.default_rng(0).random(len(X), np.float32)  # as a pool keeps them
    classes = np.array(["no", "yes"])[(y > np.median(y)).astype(int)]
    frame = pd.DataFrame(X, columns=list("abcde"))
    for make, label in (("CatBoostRegressor", y), ("CatBoostClassifier", classes)):
        for table, more in ((X, {}), (frame, {"weight": weight}), (np.nan_to_num(X), {"weight": weight})):
            pool = catboost.Pool(table, label, **more)
            made = [getattr(boostbins.catboost, make)(bin_method=method, **BRIEF) for _ in range(2)]
            read = made[0].fit(pool)
            given = made[1].fit(table, label, sample_weight=more.get("weight"))
            assert read.bins_ == given.bins_
            assert np.array_equal(read.predict(X), given.predict(X))
            assert not pool.is_quantized()
    file = tmp_path / "numbers.csv"
    np.savetxt(file, np.column_stack([y, np.nan_to_num(X).astype(np.float32)]), delimiter="\t", fmt="%.9g")
    given = boostbins.catboost.Pool(np.nan_to_num(X), y, bin_method=method)
    assert boostbins.catboost.Pool(file, bin_method=method).bins_ == given.bins_
    assert boostbins.catboost.CatBoostRegressor(bin_method=method, **BRIEF).fit(str(file)).bins_ == given.bins_


def test_catboost_cuts_the_numbers_of_its_own_kind_of_table():
    X, y = data()
    kinds = with_kinds(X)[["kind"]].to_numpy().astype("S").astype(object)
    for names in (None, list("abcde")):
        table = catboost.FeaturesData(X.astype(np.float32), kinds, num_feature_names=names)
        pool = boostbins.catboost.Pool(table, y)
        assert pool.bins_.names == tuple(names or (f"x{i}" for i in range(5)))
        assert all(map(np.array_equal, pool.bins_.cuts, boostbins.catboost.Pool(X, y).bins_.cuts))


def quantized(X, y):
    pool = catboost.Pool(X, y)
    pool.quantize()
    return pool


# What CatBoost cannot do with cuts of ours, and what is said of it.
OBSTACLES = {
    "a setting": (lambda X, y: (X, y), {"feature_border_type": "Median"}, {}, "contradicts bin_method: leave it out"),
    "text": (lambda X, y: (with_words(X), y), {"text_features": ["text"]}, {}, "forgets how to process text.*leave th"),
    "a quantized pool": (lambda X, y: (quantized(X, y), None), {}, {}, "cuts of its own: give one that is not quantiz"),
    "a pool of more than numbers": (
        lambda X, y: (catboost.Pool(with_kinds(X), y, cat_features=["kind"]), None),
        {},
        {},
        "cannot be read if it has categorical.*give X and y, or a boostbins.catboost.Pool",
    ),
    "a part for validation": (
        lambda X, y: (with_kinds(X), y),
        {"cat_features": ["kind"], "eval_fraction": 0.2},
        {},
        "hides which rows are trained on.*give eval_set instead",
    ),
    "ignored vectors": (
        lambda X, y: (with_vectors(X), y),
        {"embedding_features": ["vector"], "ignored_features": ["vector"]},
        {},
        "forgets ignored_features where it is given cuts: leave them out of X",
    ),
    "ignored, and a model to begin with": (
        lambda X, y: (X, y),
        {"ignored_features": [0]},
        {"init_model": lambda X, y: catboost.CatBoostRegressor(**BRIEF).fit(X, y)},
        "forgets ignored_features.*leave one of them out",
    ),
}


@pytest.mark.parametrize("given", OBSTACLES.values(), ids=list(OBSTACLES))
def test_catboost_trains_as_it_would_where_it_cannot_take_cuts_unless_they_were_asked_for(given):
    make, params, fit, said = given
    X, y = data(500)
    table, label = make(X, y)
    fit = {name: value(X, y) for name, value in fit.items()}
    with pytest.raises(ValueError, match=rf"{said}.*, or give bin_method=None"):
        boostbins.catboost.CatBoostRegressor(bin_method="kmeans", **params, **BRIEF).fit(table, label, **fit)
    with pytest.warns(UserWarning, match=rf"{said}.*the library goes its own way"):
        ours = boostbins.catboost.CatBoostRegressor(**params, **BRIEF).fit(table, label, **fit)
    native = catboost.CatBoostRegressor(**params, **BRIEF).fit(table, label, **fit)
    rows = table if label is not None else make(X, y)[0]
    assert np.array_equal(ours.predict(rows), native.predict(rows))
    assert not hasattr(ours, "bins_")


def test_catboost_pools_give_way_likewise():
    X, y = data(500)
    for frame, kinds, said in (
        (with_words(X), {"text_features": ["text"]}, "forgets how to process text"),
        (with_vectors(X).assign(kind="few"), {"embedding_features": ["vector"], "cat_features": ["kind"]}, "crashes"),
    ):
        with pytest.raises(ValueError, match=said):
            boostbins.catboost.Pool(frame, y, bin_method="kmeans", **kinds)
        with pytest.warns(UserWarning, match=said):
            pool = boostbins.catboost.Pool(frame, y, **kinds)
        assert pool.bins_ is None
        assert not pool.is_quantized()
    with pytest.warns(UserWarning, match="no rows to cut"):
        assert boostbins.catboost.Pool(catboost.FeaturesData(X[:0].astype(np.float32))).num_row() == 0


@pytest.mark.parametrize("search", ["grid_search", "randomized_search"])
def test_catboosts_own_searches_give_way(search):
    X, y = data(300)
    ask = {"param_grid" if search == "grid_search" else "param_distributions": {"depth": [2, 3]}, "verbose": False}
    ask |= {"X": X, "y": y, "cv": 2}
    with pytest.raises(ValueError, match="use scikit-learn's GridSearchCV"):
        getattr(boostbins.catboost.CatBoostRegressor(bin_method="kmeans", **BRIEF), search)(**ask)
    ours, native = boostbins.catboost.CatBoostRegressor(**BRIEF), catboost.CatBoostRegressor(**BRIEF)
    with pytest.warns(UserWarning, match="use scikit-learn's GridSearchCV") as said:
        found = getattr(ours, search)(**ask)
    assert len(said) == 1
    assert found == getattr(native, search)(**ask)
    assert np.array_equal(ours.predict(X), native.predict(X))
    assert ours.bin_method == "kmeans"


def test_catboost_refuses_a_pool_with_cuts_by_another_method():
    X, y = data(500)
    pool = boostbins.catboost.Pool(X, y, bin_method="quantile")
    with pytest.raises(ValueError, match="cuts by another bin_method"):
        boostbins.catboost.CatBoostRegressor(bin_method="kmeans", **BRIEF).fit(pool)
    for method in ({}, {"bin_method": "quantile"}, {"bin_method": pool.bins_}):
        assert boostbins.catboost.CatBoostRegressor(**method, **BRIEF).fit(pool).bins_ == pool.bins_


def test_catboost_refuses_validation_sets_with_other_cuts():
    X, y = data()
    train = boostbins.catboost.Pool(X[:1000], y[:1000])
    other = boostbins.catboost.Pool(X[1000:], y[1000:])
    same = boostbins.catboost.Pool(X[1000:], y[1000:], bin_method=train.bins_)
    for x, label in ((X[:1000], y[:1000]), (train, None)):
        model = boostbins.catboost.CatBoostRegressor(iterations=10, verbose=False, allow_writing_files=False)
        with pytest.raises(ValueError, match="eval_set has cuts of its own"):
            model.fit(x, label, eval_set=other)
        model.fit(x, label, eval_set=same)
        reported = model.get_evals_result()["validation"]["RMSE"]
        error = np.sqrt(np.mean((model.predict(X[1000:]) - y[1000:]) ** 2))
        assert np.isclose(min(reported), error)


def test_catboost_refuses_quantized_validation_sets_with_categories():
    X, y = data()
    frame, kinds = with_kinds(X), {"cat_features": ["kind"]}
    model = boostbins.catboost.CatBoostRegressor(one_hot_max_size=5, **BRIEF)
    bins = model.fit(frame, y, eval_set=catboost.Pool(frame[::-1], y[::-1], **kinds), **kinds).bins_
    other = boostbins.catboost.Pool(frame[::-1], y[::-1], bin_method=bins, **kinds)
    for given in ((frame, y, kinds), (boostbins.catboost.Pool(frame, y, bin_method=bins, **kinds), None, {})):
        with pytest.raises(ValueError, match="numbers its categories by itself.*not quantized"):
            model.copy().fit(*given[:2], eval_set=other, **given[2])


def test_catboost_selects_features_on_the_cuts_or_not_at_all():
    X, y = data()
    options = {"features_for_select": "0-4", "num_features_to_select": 2, "steps": 1, "logging_level": "Silent"}
    model = boostbins.catboost.CatBoostRegressor(iterations=10, verbose=False, allow_writing_files=False)
    model.select_features(X, y, train_final_model=True, **options)
    for place, borders in model.get_borders().items():
        assert np.isin(borders, model.bins_.cuts[place]).all()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(text="up and away")
    other = boostbins.catboost.CatBoostRegressor(iterations=10, verbose=False, allow_writing_files=False)
    other.set_params(text_features=["text"])
    with pytest.warns(UserWarning, match="forgets how to process text"):
        other.select_features(frame, y, **options)


def test_catboost_weights_given_by_position():
    X, y = data()
    weight = np.random.default_rng(0).random(len(X))
    by_name = boostbins.catboost.Pool(X, y, weight=weight)
    before = list(signature(catboost.Pool.__init__).parameters.values())[3:]
    before = before[: [p.name for p in before].index("weight")]
    by_place = boostbins.catboost.Pool(X, y, *[p.default for p in before], weight)
    assert by_name.bins_ == by_place.bins_ != boostbins.catboost.Pool(X, y).bins_


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"border_count": "8"}, "border_count must be a whole number from 1 on, got '8'"),
        ({"border_count": 0}, "border_count must be a whole number from 1 on, got 0"),
        ({"nan_mode": "Mean"}, "nan_mode must be 'Min', 'Max' or 'Forbidden', got 'Mean'"),
        ({"bin_method": "kmeens"}, "bin_method must be one of"),
    ],
)
def test_catboost_pools_say_what_is_wrong(options, said):
    X, y = data(100)
    with pytest.raises(ValueError, match=said):
        boostbins.catboost.Pool(X, y, **options)


def test_catboost_reads_the_cuts_of_any_quantized_pool():
    X, y = data()
    pool = catboost.Pool(X, y)
    with pytest.raises(ValueError, match="quantize it first"):
        boostbins.catboost.from_native(pool)
    pool.quantize(border_count=10)
    assert boostbins.catboost.from_native(pool).n_bins[0] == 11
    with pytest.raises(TypeError, match=r"must be a catboost.Pool"):
        boostbins.catboost.from_native(X)
    own = boostbins.catboost.Pool(X, y, bin_method=Bins([[0.5], [1.5], [], [], [-1.0]]))
    assert boostbins.catboost.from_native(own) == own.bins_
