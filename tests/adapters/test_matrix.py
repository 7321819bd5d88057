"""`bin_method`, against the real libraries: one matrix for all of them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import boostbins.catboost
import boostbins.lightgbm
import boostbins.sklearn
import boostbins.xgboost
from boostbins import Bins, fit_bins, kmeans
from boostbins.adapters.library import Library
from boostbins.adapters.requested import floor32
from tests.libraries import CLASSIFIERS, EVERY, FORESTS, RANKERS, REGRESSORS, fingerprint, that_take

pytestmark = pytest.mark.filterwarnings(
    # The libraries' own, each met by their own classes too.
    "ignore:The argument 'eval_set' is deprecated",
    "ignore:`XGBRF.*` is deprecated:FutureWarning",  # XGBoost 3.4, and the next
    "ignore:.*`booster=.*` is deprecated:UserWarning",
    "ignore:X does not have valid feature names",
    "ignore:.*force_all_finite.*:FutureWarning",
    "ignore:.*is_sparse is deprecated.*:FutureWarning",
    "ignore:.*Can't optimze method.*:UserWarning",
    "ignore:Failed to import numba:UserWarning",
    "ignore:Found `n_estimators` in params:UserWarning",
)
of_each = pytest.mark.parametrize("library", REGRESSORS, ids=str)


def of_those_that_take(*abilities, among=REGRESSORS):
    return pytest.mark.parametrize("library", that_take(*abilities, among=among), ids=str)


def data(n=1500, seed=0, missing=False):
    """Skewed columns of both signs, positive, discrete and constant."""
    r = np.random.default_rng(seed)
    X = np.column_stack(
        [
            r.standard_normal(n) + np.where(r.random(n) < 0.01, r.exponential(20, n), 0),
            r.lognormal(0, 2, n),
            r.poisson(3, n).astype(float),
            np.full(n, 7.0),
            -r.lognormal(0, 1, n),
        ]
    )
    y = X[:, 0] + np.sqrt(X[:, 1]) + X[:, 2] - X[:, 4] + 0.1 * r.standard_normal(n)
    if missing:
        X[r.random(n) < 0.1, 0] = np.nan
        X[r.random(n) < 0.1, 2] = np.nan
    return X, y


def columns_of(library, X):
    """The columns as the library sees them."""
    return X.astype(np.float32).astype(float) if "float32" in library.takes else X


def same_parts(asked, used, column):
    """Whether cuts part a column's values alike."""
    return np.array_equal(np.searchsorted(asked, column), np.searchsorted(used, column))


# ---- our cuts, and only ours


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("library", [*REGRESSORS, *CLASSIFIERS, *FORESTS], ids=str)
def test_every_threshold_is_a_cut_of_ours(library, missing):
    if missing and "missing" not in library.takes:
        pytest.skip("takes no missing values")
    X, y = data(missing=missing)
    y = y > np.median(y) if "Classifier" in library.name else y
    model = library.make(**{library.budget: 40}).fit(X, y)
    imposed, seen = library.imposed(model, X), 0
    for place, thresholds in library.thresholds(model).items():
        own = [t for t in thresholds if t not in imposed.get(place, ())]
        assert np.isin(own, model.bins_.cuts[place]).all()
        seen += len(own)
    assert seen > 10
    assert max(model.bins_.n_bins) <= library.bins_of(40)


@of_each
def test_the_cuts_are_the_cores(library):
    X, y = data()
    model = library.make(**{library.budget: 40}).fit(X, y)
    core = fit_bins(columns_of(library, X), max_bins=library.bins_of(40))
    for i, column in enumerate(columns_of(library, X).T):
        used = model.bins_.cuts[i]
        if library.name.startswith("LGBM"):  # spends bins on zero
            zeros = np.abs(used) < 1e-30
            used, fewer = used[~zeros], zeros.sum()
            core_cuts = fit_bins(column, max_bins=int(library.bins_of(40) - fewer)).cuts[0]
        else:
            core_cuts = core.cuts[i]
        assert len(used) == len(core_cuts)
        assert same_parts(core_cuts, used, column)


# ---- the target


def auto_of(library, X, y, max_bins=40, **options):
    """The bins that the core makes of the columns as the library sees them, of the library's number per column."""
    budget = library.bins_of(max_bins)
    budgets = [budget] * X.shape[1]
    if library.name.startswith("LGBM"):  # spends bins on zero
        budgets = [int(budget - (column.min() < 0) - (column.max() > 0)) for column in X.T]
    return fit_bins(columns_of(library, X), "auto", budgets, y=y, **options)


def assert_same_choices(model, core, X):
    assert {name: choice.chosen for name, choice in model.bins_.choices.items()} == {
        name: choice.chosen for name, choice in core.choices.items()
    }
    for used, cuts, column in zip(model.bins_.cuts, core.cuts, X.T, strict=True):
        assert same_parts(cuts, used[np.abs(used) > 1e-30], column)


@of_each
def test_auto_looks_at_the_target(library):
    X, y = data()
    y = np.round(10 * y)
    model = library.make(bin_method="auto", **{library.budget: 40}).fit(X, y)
    assert_same_choices(model, auto_of(library, X, y), columns_of(library, X))
    assert model.bins_.choices
    other = library.make(bin_method="auto", **{library.budget: 40}).fit(X, -y)
    assert other.bins_ == model.bins_  # what is explained does not depend on the sign
    assert "% of the target" in next(iter(model.bins_.choices.values())).why


@pytest.mark.parametrize("library", CLASSIFIERS, ids=str)
def test_auto_tells_classes_apart(library):
    X, y = data()
    which = np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))
    shuffled = np.array([3, 0, 4, 1, 2])[which]  # their numbers say nothing
    for labels in (shuffled, shuffled > 1):
        model = library.make(bin_method="auto", **{library.budget: 40}).fit(X, labels)
        classes = labels.astype(str) if labels.dtype != bool else labels
        assert_same_choices(model, auto_of(library, X, classes), columns_of(library, X))


@of_each
def test_a_total_of_bins_is_kept_to(library):
    X, y = data()
    model = library.make(bin_method="auto", total_bins=90, **{library.budget: 100}).fit(X, y)
    assert sum(n for n, column in zip(model.bins_.n_bins, X.T, strict=True) if len(set(column)) > 1) <= 90
    assert max(model.bins_.n_bins) > 90 / 5
    again = clone(model)
    assert again.total_bins == 90
    assert again.fit(X, y).bins_ == model.bins_


@of_each
def test_a_total_is_shared_by_the_target_whatever_the_method(library):
    X = np.random.default_rng(0).lognormal(0, 2, (3000, 2))
    y = np.log(X[:, 0])
    y = y > 0 if library in CLASSIFIERS else y
    first, second = library.make(bin_method="kmeans", total_bins=80, **{library.budget: 100}).fit(X, y).bins_.n_bins
    assert first > second + 20
    for bad in (3, 80.0, "80"):
        with pytest.raises(ValueError, match=rf"total_bins must be .*, or a whole number, at least 2 .*, got {bad!r}"):
            library.make(bin_method="kmeans", total_bins=bad).fit(X, y)


@pytest.mark.parametrize("library", [library for library in REGRESSORS if "Gradient" not in library.name], ids=str)
def test_the_cuts_do_not_look_at_validation_sets(library):
    X, y = data()
    made = []
    for test_target in (y[1000:], -1e3 * y[1000:]):
        model = library.make(bin_method="auto", **{library.budget: 40})
        made.append(model.fit(X[:1000], y[:1000], eval_set=[(X[1000:], test_target)]).bins_)
    assert made[0] == made[1] == library.make(bin_method="auto", **{library.budget: 40}).fit(X[:1000], y[:1000]).bins_


def test_scikit_learn_looks_at_the_rows_that_early_stopping_leaves():
    X, y = data()
    model = boostbins.sklearn.HistGradientBoostingRegressor(
        bin_method="auto", early_stopping=True, random_state=0, max_iter=3, validation_fraction=0.5
    )
    from sklearn.model_selection import train_test_split

    rows, _ = train_test_split(np.arange(len(y)), test_size=0.5, random_state=model.fit(X, y)._random_seed)
    assert model.bins_ == fit_bins(X[rows], "auto", 255, y=y[rows])


def test_several_targets_and_none():
    X, y = data()
    both = np.column_stack([y, X[:, 0]])
    model = boostbins.xgboost.XGBRegressor(bin_method="auto", max_bin=41, n_estimators=3).fit(X, both)
    core = fit_bins(X.astype(np.float32), "auto", 40, y=both)
    assert model.bins_.choices["x1"].explained == pytest.approx(dict(core.choices["x1"].explained))
    dataset = boostbins.lightgbm.Dataset(X, bin_method="auto", params={"verbosity": -1}).construct()
    assert (
        dataset.bins_ == boostbins.lightgbm.Dataset(X, bin_method="hybrid", params={"verbosity": -1}).construct().bins_
    )


@of_each
def test_none_is_the_library_itself_to_the_last_bit(library):
    X, y = data()
    ours = library.make(bin_method=None).fit(X, y)
    native = library.make_native().fit(X, y)
    assert fingerprint(ours) == fingerprint(native)
    assert not hasattr(ours, "bins_")
    assert isinstance(ours, library.native)


@of_each
def test_a_librarys_own_cuts_given_back_make_the_same_model(library):
    X, y = data(missing="missing" in library.takes)
    native = library.make_native().fit(X, y)
    if library.name.startswith("LGBM"):
        import lightgbm

        own = boostbins.lightgbm.from_native(lightgbm.Dataset(X, y, params={"verbosity": -1}))
    elif library.name.startswith("XGB"):
        import xgboost

        own = boostbins.xgboost.from_native(xgboost.QuantileDMatrix(X, y, max_bin=256))
    elif library.name.startswith("Cat"):
        import catboost

        pool = catboost.Pool(X, y)
        pool.quantize(border_count=254)
        own = boostbins.catboost.from_native(pool)
    elif library.name.startswith("Hist"):
        own = boostbins.sklearn.from_native(native)
    else:
        pytest.skip("has no cuts of its own")
    own = Bins([*own.cuts[:3], [], *own.cuts[-1:]])  # a constant column may be absent, or have a cut outside
    model = library.make(bin_method=own, **({"max_bin": 300} if library.name.startswith("XGB") else {})).fit(X, y)
    assert np.array_equal(model.predict(X), native.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("library", [*REGRESSORS, *CLASSIFIERS], ids=str)
def test_the_model_predicts_the_same_where_boostbins_cannot_be_imported(library, tmp_path):
    X, y = data(missing="missing" in library.takes)
    y = (y > np.median(y)).astype(int) if "Classifier" in library.name else y
    model = library.make().fit(X, y)
    expected = model.predict_proba(X) if "Classifier" in library.name else model.predict(X)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "expected.npy", expected)
    file = str(tmp_path / "model.json")
    predict = "predict_proba" if "Classifier" in library.name else "predict"
    if library.name.startswith("LGBM"):
        model.booster_.save_model(file)
        load = f"import lightgbm; found = lightgbm.Booster(model_file={file!r}).predict(X)"
        expected = expected[:, 1] if expected.ndim == 2 else expected
        np.save(tmp_path / "expected.npy", expected)
    elif library.name.startswith("XGB"):
        model.save_model(file)
        load = f"import xgboost; m = xgboost.{library.name}(); m.load_model({file!r}); found = m.{predict}(X)"
    elif library.name.startswith("Cat"):
        model.save_model(file + ".cbm")
        load = f"import catboost; found = catboost.{library.name}().load_model({file + '.cbm'!r}).{predict}(X)"
    else:
        (tmp_path / "model.json").write_bytes(pickle.dumps(model.to_native()))
        load = f"import pickle; found = pickle.load(open({file!r}, 'rb')).{predict}(X)"
    code = f"""
import sys
sys.modules["boostbins"] = None  # an import of it fails
import numpy as np
X, expected = np.load({str(tmp_path / "X.npy")!r}), np.load({str(tmp_path / "expected.npy")!r})
{load}
assert np.array_equal(found, expected), abs(found - expected).max()
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("library", EVERY, ids=str)
def test_to_native_is_the_librarys_own_class(library):
    X, y = data(600)
    rank = {"group": [300, 300]} if library.name == "LGBMRanker" else {"qid": np.repeat([0, 1], 300)}
    rank = {"group_id": np.repeat([0, 1], 300)} if library.name == "CatBoostRanker" else rank
    y = (y > np.median(y)).astype(int) if "Reg" not in library.name else y
    model = library.make().fit(X, y, **(rank if "Ranker" in library.name else {}))
    plain = model.to_native()
    assert type(plain) is library.native
    assert b"boostbins" not in pickle.dumps(plain)
    assert np.array_equal(plain.predict(X), model.predict(X))
    assert "bin_method" not in plain.get_params()


@of_each
def test_equal_bins_whichever_the_container(library):
    X, y = data(missing="missing" in library.takes)
    expected = library.make().fit(X, y)
    names = ["a", "b", "c", "d", "e"]
    frame = pd.DataFrame(X, columns=names)
    others = {
        "F order": np.asfortranarray(X),
        "a view": np.repeat(X, 2, axis=0)[::2],
        "rows of lists": X.tolist(),
        "pandas": frame,
        "pandas, nullable": frame.convert_dtypes(),
        "polars": pl.DataFrame(X, schema=names),
        "arrow": pa.table(dict(zip(names, X.T, strict=True))),
    }
    for kind, other in others.items():
        try:
            library.make_native().fit(other, y)
        except Exception:  # what the library does not take, we need not
            continue
        model = library.make().fit(other, y)
        assert [c.tolist() for c in model.bins_.cuts] == [c.tolist() for c in expected.bins_.cuts], kind
        assert np.array_equal(model.predict(other), expected.predict(X)), kind
        if kind == "pandas":
            assert model.bins_.names == tuple(names), kind


@of_each
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int16, np.uint8, bool])
def test_columns_of_other_types(library, dtype):
    r = np.random.default_rng(0)
    X = np.floor(np.abs(r.standard_cauchy((1500, 3))) * 20) % (2 if dtype is bool else 200)
    X = X.astype(dtype)
    y = X.sum(axis=1) + r.standard_normal(1500)
    model = library.make(**{library.budget: 20}).fit(X, y)
    same = library.make(**{library.budget: 20}).fit(X.astype(float), y)
    assert model.bins_ == same.bins_
    assert np.array_equal(model.predict(X), same.predict(X.astype(float)))


def test_integers_beyond_float32_are_cut_as_lightgbm_sees_them():
    r = np.random.default_rng(0)
    X = r.integers(2**30, 2**30 + 5000, (2000, 1))
    y = (X[:, 0] % 977).astype(float)
    model = boostbins.lightgbm.LGBMRegressor(n_estimators=5, verbosity=-1).fit(X, y)
    assert max(model.bins_.n_bins) <= len(np.unique(X.astype(np.float32))) + 1


@of_each
@pytest.mark.parametrize("kind", ["object", "strings", "sparse", "big-endian", "longdouble"])
def test_frames_with_columns_of_odd_types(library, kind):
    """Either all columns are cut by us, or none is trained on."""
    X, y = data(400)
    odd = {
        "object": X[:, 0].astype(object),
        "strings": X[:, 0].astype(str),
        "sparse": pd.arrays.SparseArray(X[:, 0], fill_value=0.0),
        "big-endian": X[:, 0].astype(">f8"),
        "longdouble": X[:, 0].astype(np.longdouble),
    }[kind]
    frame = pd.DataFrame({"a": odd, "b": X[:, 1]})
    try:
        library.make_native().fit(frame, y)
    except Exception:
        with pytest.raises(Exception, match=r"."):
            library.make().fit(frame, y)
        return
    model = library.make().fit(frame, y)
    assert model.bins_.names == ("a", "b")
    plain = library.make().fit(pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}), y)
    assert model.bins_ == plain.bins_
    imposed = library.imposed(model, X)
    for place, thresholds in library.thresholds(model).items():
        assert np.isin([t for t in thresholds if t not in imposed.get(place, ())], model.bins_.cuts[place]).all()


@of_each
def test_weights_in_any_form_that_the_library_takes(library):
    X, y = data(400)
    weight = np.random.default_rng(0).random(400)
    expected = library.make().fit(X, y, sample_weight=weight).bins_
    for other in (weight.tolist(), pd.Series(weight), pd.DataFrame({"w": weight}), weight.astype(object)):
        try:
            library.make_native().fit(X, y, sample_weight=other)
        except Exception:  # what the library does not take, we need not
            continue
        assert library.make().fit(X, y, sample_weight=other).bins_ == expected


@of_those_that_take("sparse")
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse_matrices(library, form):
    r = np.random.default_rng(0)
    dense = np.where(r.random((1500, 4)) < 0.7, 0.0, r.lognormal(0, 2, (1500, 4)) * r.choice([-1, 1], (1500, 4)))
    y = np.sqrt(np.abs(dense)).sum(axis=1)
    X = sparse.csr_matrix(dense) if form == "csr" else sparse.csc_matrix(dense)
    model = library.make().fit(X, y)
    # XGBoost takes what is not stored as missing.
    twin = np.where(dense == 0, np.nan, dense) if library.name.startswith("XGB") else dense
    same = library.make().fit(twin, y)
    assert [c.tolist() for c in model.bins_.cuts] == [c.tolist() for c in same.bins_.cuts]
    assert np.allclose(model.predict(X), same.predict(twin))
    assert type(X).__name__ == ("csr_matrix" if form == "csr" else "csc_matrix")


@of_those_that_take("missing")
def test_columns_without_cuts(library):
    X, y = data()
    X = np.column_stack([X, np.full(len(X), np.nan), np.where(X[:, 0] > 0, 3.0, np.nan), np.zeros(len(X))])
    model = library.make().fit(X, y)
    cuts = [model.bins_.cuts[i] for i in (3, 5, 6, 7)]
    assert [len(c[np.abs(c) > 1e-30]) for c in cuts] == [0] * 4  # but LightGBM's around zero
    assert np.isfinite(model.predict(X)).all()
    assert np.mean((model.predict(X) - y) ** 2) < np.var(y)


@of_those_that_take("infinite")
def test_infinite_values_are_in_the_end_bins(library):
    X, y = data()
    X[:5, 1], X[5:9, 4] = np.inf, -np.inf
    model = library.make().fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@of_those_that_take("weights")
def test_weights_count_in_the_binning(library):
    X, y = data()
    times = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = library.make(**{library.budget: 30}).fit(X, y, sample_weight=times.astype(float))
    repeated = library.make(**{library.budget: 30}).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    plain = library.make(**{library.budget: 30}).fit(X, y)
    for i in (0, 1, 4):
        assert np.allclose(weighted.bins_.cuts[i], repeated.bins_.cuts[i])
        assert not np.array_equal(weighted.bins_.cuts[i], plain.bins_.cuts[i])


@of_those_that_take("weights", "early-stopping")
def test_weights_of_the_rows_that_early_stopping_leaves(library):
    X, y = data()
    weight = np.random.default_rng(1).random(len(X))
    if library.name.startswith("Hist"):
        model = library.make(early_stopping=True, validation_fraction=0.3).fit(X, y, sample_weight=weight)
    elif library.name.startswith("Grad"):
        model = library.make(n_iter_no_change=3, validation_fraction=0.3).fit(X, y, sample_weight=weight)
    else:
        pytest.skip("splits no rows off")
    rows = sum(model.bins_.stats[0].weight)
    assert 0.6 * weight.sum() < rows < 0.8 * weight.sum()


@of_those_that_take("categorical")
def test_categories_stay_the_librarys(library):
    X, y = data(missing=True)
    r = np.random.default_rng(0)
    kind = r.integers(0, 5, len(X))
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.insert(1, "kind", pd.Categorical(np.array(["u", "v", "w", "x", "y"])[kind]))
    y = y + np.array([0, 9, 1, 8, 2])[kind]
    params, fit = {}, {}
    if library.name.startswith("XGB"):
        params = {"enable_categorical": True}
    elif library.name.startswith("Cat"):
        fit = {"cat_features": ["kind"]}
    else:
        params = {"categorical_features": "from_dtype"} if library.name.startswith("Hist") else {}
    model = library.make(**params).fit(frame, y, **fit)
    native = library.make_native(**params).fit(frame, y, **fit)
    assert model.bins_.names == ("a", "b", "c", "d", "e")
    assert np.corrcoef(model.predict(frame), native.predict(frame))[0, 1] > 0.98
    shuffled = frame.sample(frac=1, random_state=0)
    assert np.array_equal(model.predict(frame), model.predict(shuffled)[np.argsort(shuffled.index)])
    # Only categories: nothing to cut, and no reason to fail.
    only = library.make(**params).fit(frame[["kind"]], y, **fit)
    assert len(only.bins_) == 0
    native = library.make_native(**params).fit(frame[["kind"]], y, **fit)
    assert np.array_equal(only.predict(frame[["kind"]]), native.predict(frame[["kind"]]))


@of_those_that_take("categorical")
def test_categories_by_number(library):
    X, y = data()
    kind = np.random.default_rng(0).integers(0, 5, len(X))
    X[:, 2] = kind
    y = y + np.array([0, 9, 1, 8, 2])[kind]
    params, fit = {}, {}
    if library.name.startswith("XGB"):
        params = {"enable_categorical": True, "feature_types": ["float", "float", "c", "float", "float"]}
    elif library.name.startswith("LGBM"):
        fit = {"categorical_feature": [2]}
    elif library.name.startswith("Hist"):
        params = {"categorical_features": [2]}
    else:
        X = X.astype(object)
        X[:, 2] = kind
        fit = {"cat_features": [2]}
    model = library.make(**params).fit(X, y, **fit)
    assert model.bins_.names == ("x0", "x1", "x3", "x4")
    assert np.isfinite(model.predict(X)).all()


@of_those_that_take("monotone")
def test_monotone_constraints_hold(library):
    X, y = data()
    name, value = ("monotonic_cst" if library.name.startswith("Hist") else "monotone_constraints"), [0, -1, 0, 0, 0]
    value = tuple(value) if library.name.startswith("XGB") else value
    model = library.make(**{name: value}).fit(X, y)
    line = np.repeat(X[:1], 200, axis=0)
    line[:, 1] = np.linspace(0, X[:, 1].max(), 200)
    assert (np.diff(model.predict(line)) <= 0).all()


@of_those_that_take("interaction")
def test_interaction_constraints_pass_through(library):
    X, y = data()
    name = "interaction_cst" if library.name.startswith("Hist") else "interaction_constraints"
    groups = "[[0, 1], [2, 3, 4]]" if library.name.startswith("XGB") else [[0, 1], [2, 3, 4]]
    model = library.make(**{name: groups}).fit(X, y)
    native = library.make_native(**{name: groups}).fit(X, y)
    assert np.corrcoef(model.predict(X), native.predict(X))[0, 1] > 0.95


# ---- fitting as before


@of_those_that_take("early-stopping")
def test_early_stopping_and_validation_sets(library):
    X, y = data()
    noise = np.random.default_rng(3).standard_normal(len(y)) * 5
    train, test = (X[:1000], y[:1000] + noise[:1000]), (X[1000:], y[1000:])
    if library.name.startswith("LGBM"):
        import lightgbm

        model = library.make(n_estimators=500)
        model.fit(*train, eval_set=[test], callbacks=[lightgbm.early_stopping(5, verbose=False)])
        stopped = model.best_iteration_
    elif library.name.startswith("XGB"):
        model = library.make(n_estimators=500, early_stopping_rounds=5).fit(*train, eval_set=[test], verbose=False)
        stopped = model.best_iteration
    elif library.name.startswith("Cat"):
        model = library.make(iterations=3000).fit(*train, eval_set=test, early_stopping_rounds=5)
        stopped = model.best_iteration_
    elif library.name.startswith("Hist"):
        stopped = library.make(max_iter=500, early_stopping=True).fit(*train).n_iter_
    else:
        stopped = library.make(n_estimators=500, n_iter_no_change=5).fit(*train).n_estimators_
    assert 0 < stopped < (3000 if library.name.startswith("Cat") else 500)


def test_catboost_with_a_part_of_the_rows_for_evaluation():
    X, y = data()
    model = boostbins.catboost.CatBoostRegressor(iterations=10, verbose=False, allow_writing_files=False)
    model.set_params(eval_fraction=0.3).fit(X, y)
    assert 0.6 * len(X) < sum(model.bins_.stats[0].weight) < 0.8 * len(X)


def test_catboost_with_a_part_of_a_frames_rows_knows_the_columns_by_name():
    X, y = data()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    ready = fit_bins(frame[["b", "a"]], max_bins=20)
    model = boostbins.catboost.CatBoostRegressor(iterations=10, verbose=False, allow_writing_files=False)
    model.set_params(eval_fraction=0.3, bin_method=ready).fit(frame, y)
    assert model.bins_.names == ("a", "b")
    assert model.bins_["a"].tolist() == floor32(ready["a"]).tolist()


@of_those_that_take("objective")
def test_objectives_of_ones_own(library):
    X, y = data()

    def half_squares(y_true, y_pred):
        return y_pred - y_true, np.ones_like(y_true)

    if library.name.startswith("Cat"):

        class HalfSquares:
            def calc_ders_range(self, approxes, targets, weights):
                return [(t - a, -1.0) for a, t in zip(approxes, targets, strict=True)]

        model = library.make(loss_function=HalfSquares(), eval_metric="RMSE").fit(X, y)
    else:
        model = library.make(objective=half_squares).fit(X, y)
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.8


@of_those_that_take("objective")
def test_metrics_of_ones_own(library):
    X, y = data()
    test = (X[1000:], y[1000:])
    if library.name.startswith("Cat"):

        class Worst:
            def get_final_error(self, error, weight):
                return error

            def is_max_optimal(self):
                return False

            def evaluate(self, approxes, target, weight):
                return float(np.abs(np.array(approxes[0]) - np.array(target)).max()), 1.0

        model = library.make(eval_metric=Worst()).fit(X[:1000], y[:1000], eval_set=test, use_best_model=False)
        reported = model.get_evals_result()["validation"]["Worst"][-1]
    elif library.name.startswith("LGBM"):
        model = library.make()
        model.fit(X[:1000], y[:1000], eval_set=[test], eval_metric=lambda t, p: ("worst", np.abs(t - p).max(), False))
        reported = model.evals_result_["valid_0"]["worst"][-1]
    else:

        def worst(y_true, y_pred):
            return float(np.abs(y_true - y_pred).max())

        model = library.make(eval_metric=worst).fit(X[:1000], y[:1000], eval_set=[test], verbose=False)
        reported = model.evals_result()["validation_0"]["worst"][-1]
    assert np.isclose(reported, np.abs(model.predict(test[0]) - test[1]).max(), rtol=1e-4)


@pytest.mark.parametrize("library", CLASSIFIERS, ids=str)
def test_several_classes_with_labels_of_any_kind(library):
    X, y = data()
    labels = np.array(["low", "mid", "high"])[np.digitize(y, np.quantile(y, [0.33, 0.66]))]
    if library.name.startswith("XGB"):  # takes 0, 1, ... only
        labels = np.unique(labels, return_inverse=True)[1]
    model = library.make().fit(X, labels)
    assert model.predict_proba(X).shape == (len(X), 3)
    assert np.mean(np.ravel(model.predict(X)) == labels) > 0.8


@pytest.mark.parametrize("library", RANKERS, ids=str)
def test_ranking_in_groups_with_weights(library):
    X, y = data()
    relevance = np.digitize(y, np.quantile(y, [0.5, 0.8, 0.95]))
    group = np.repeat(np.arange(30), 50)
    by_group = np.random.default_rng(0).random(30)
    if library.name.startswith("LGBM"):
        fit = {"group": [50] * 30, "sample_weight": by_group[group]}
    elif library.name.startswith("XGB"):
        fit = {"qid": group, "sample_weight": by_group}
    else:
        fit = {"group_id": group, "sample_weight": by_group[group]}
    model = library.make(**{library.budget: 30}).fit(X, relevance, **fit)
    assert np.corrcoef(model.predict(X), relevance)[0, 1] > 0.5
    unweighted = library.make(**{library.budget: 30}).fit(
        X, relevance, **{k: v for k, v in fit.items() if k != "sample_weight"}
    )
    assert model.bins_ != unweighted.bins_


@pytest.mark.parametrize("loss", ["PairLogitPairwise", "YetiRankPairwise", "YetiRank"])
def test_catboost_keeps_its_number_of_borders_for_a_loss(loss):
    X, y = data(600)
    group = np.repeat(np.arange(60), 10)
    few = {"iterations": 2, "verbose": False, "allow_writing_files": False, "loss_function": loss}
    model = boostbins.catboost.CatBoostRanker(**few).fit(X, y, group_id=group)
    assert max(model.bins_.n_bins) == model.get_all_params()["border_count"] + 1


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_exact_learner_with_all_that_it_has(form):
    from sklearn.dummy import DummyRegressor

    X, y = data()
    X = X.astype(np.float32).astype(float)
    seen = []

    def monitor(i, model, scope):
        if i == 9:  # before, there are trees missing
            seen.append(np.mean((y - model.predict(scope["X"])) ** 2))  # raw values, as ever
        return False

    options = {"random_state": 0, "init": DummyRegressor(), "max_features": 3}
    model = boostbins.sklearn.GradientBoostingRegressor(n_estimators=10, warm_start=True, **options)
    model.fit(form(X), y, monitor=monitor)
    assert np.allclose(seen[-1], model.train_score_[-1])
    model.set_params(n_estimators=20).fit(form(X), y)
    assert len(model.estimators_) == 20
    for stage in (*model.staged_predict(form(X)),):
        last = stage
    assert np.array_equal(last, model.predict(form(X)))
    assert np.allclose(np.mean((y - last) ** 2), model.train_score_[-1])
    assert not {"_represented", "_stand_ins"} & set(vars(model))


@of_each
def test_clone_copy_pickle_and_parameters(library):
    X, y = data(400)
    ready = fit_bins(X, max_bins=10)
    for method in ("optimal", partial(kmeans, max_iter=5), ready):
        model = library.make(bin_method=method, bin_cache="memory", **{library.budget: 33})
        twin = clone(model)
        assert twin.get_params()["bin_cache"] == "memory"
        assert twin.get_params()[library.budget] == 33
        assert type(twin.get_params()["bin_method"]) is type(method)
        assert twin.fit(X, y).bins_ == clone(twin).fit(X, y).bins_
        for other in (pickle.loads(pickle.dumps(twin)), copy.deepcopy(twin), copy.copy(twin)):
            assert other.bins_ == twin.bins_
            assert np.array_equal(other.predict(X), twin.predict(X))
            assert other.get_params().keys() == twin.get_params().keys()
    changed = clone(model).set_params(bin_method="uniform", **{library.budget: 12})
    assert changed.get_params()["bin_method"] == "uniform"
    assert max(changed.fit(X, y).bins_.n_bins) <= library.bins_of(12)
    assert "'uniform'" in repr(changed)


@of_each
def test_a_second_fit_forgets_the_first(library):
    X, y = data(400)
    model = library.make()
    first = model.fit(X, y).bins_
    assert model.fit(X * 2, y).bins_ != first
    if not library.name.startswith("Cat"):  # does not let a fitted model's parameters be set
        assert not hasattr(model.set_params(bin_method=None).fit(X, y), "bins_")


@of_each
def test_searches_of_scikit_learn(library):
    X, y = data(300)
    search = GridSearchCV(library.make(), {"bin_method": ["kmeans", "quantile", None], library.budget: [8, 16]}, cv=2)
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(set(np.round(search.cv_results_["mean_test_score"], 10))) > 3
    assert np.isfinite(cross_val_score(library.make(), X, y, cv=2)).all()


@of_each
def test_a_function_of_ones_own(library):
    X, y = data()
    model = library.make(bin_method=lambda summary, max_bins: [summary.mean]).fit(X[:, :2], y)
    own = [c[np.abs(c) > 1e-30] for c in model.bins_.cuts]
    assert [len(c) for c in own] == [1, 1]
    assert np.allclose([c[0] for c in own], columns_of(library, X)[:, :2].mean(axis=0), rtol=1e-6)


@of_each
def test_ready_bins_are_used_as_they_are(library):
    X, y = data()
    ready = Bins([[-1.0, 0.25, 2.5], [1.0, 2.0], [0.5], [], [-3.5]], names=["a", "b", "c", "d", "e"])
    for table in (X, pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(X, columns=list("abcde"))[list("edcba")]):
        model = library.make(bin_method=ready).fit(table, y)
        for name in "abe":
            cuts = model.bins_[name] if hasattr(table, "columns") else model.bins_[ready.names.index(name)]
            assert cuts[np.abs(cuts) > 1e-30].tolist() == ready[name].tolist()
    again = library.make(bin_method=model.bins_).fit(table, y)
    assert again.bins_ == model.bins_
    assert np.array_equal(again.predict(table), model.predict(table))


@of_each
def test_many_bins(library):
    X, y = data(4000)
    n = 255 if library.name.startswith("Hist") else 3000
    model = library.make(**{library.budget: n}, **({"depth": 4} if "Cat" in library.name else {})).fit(X, y)
    assert library.bins_of(n) - 3 <= model.bins_.n_bins[0] <= library.bins_of(n)
    imposed = library.imposed(model, X)
    for place, thresholds in library.thresholds(model).items():
        own = [t for t in thresholds if t not in imposed.get(place, ())]
        assert np.isin(own, model.bins_.cuts[place]).all()


def test_sixty_five_thousand_bins():
    r = np.random.default_rng(0)
    X = r.standard_normal((80_000, 1))
    y = X[:, 0] ** 2
    for model in (
        boostbins.lightgbm.LGBMRegressor(max_bin=65_000, n_estimators=2, verbosity=-1),
        boostbins.xgboost.XGBRegressor(max_bin=65_000, n_estimators=2),
        boostbins.catboost.CatBoostRegressor(
            border_count=20_000, iterations=2, verbose=False, allow_writing_files=False
        ),
    ):
        model.set_params(bin_method="quantile").fit(X, y)
        assert model.bins_.n_bins[0] > 19_900


@of_each
def test_what_a_library_explains(library):
    X, y = data()
    model = library.make().fit(X, y)
    assert model.feature_importances_.shape == (5,) if not library.name.startswith("Hist") else True
    if library.name.startswith("LGBM"):
        import lightgbm

        assert np.allclose(model.predict(X, pred_contrib=True).sum(axis=1), model.predict(X))
        assert lightgbm.plot_importance(model) is not None
    elif library.name.startswith("XGB"):
        import xgboost

        shap = model.get_booster().predict(xgboost.DMatrix(X), pred_contribs=True)
        assert np.allclose(shap.sum(axis=1), model.predict(X), atol=1e-3)
        assert xgboost.plot_importance(model) is not None
    elif library.name.startswith("Cat"):
        import catboost

        shap = model.get_feature_importance(catboost.Pool(X, y), type="ShapValues")
        assert np.allclose(shap.sum(axis=1), model.predict(X))


# ---- bad input


@of_each
def test_errors_name_the_argument_the_value_and_the_way_out(library):
    X, y = data(300)
    with pytest.raises(ValueError, match=r"must be one of 'auto', 'hybrid', 'kmeans'.* or Bins or None, got 'kmean'"):
        library.make(bin_method="kmean").fit(X, y)
    with pytest.raises(ValueError, match="bin_method must be one of.*got 3"):
        library.make(bin_method=3).fit(X, y)
    with pytest.raises(TypeError, match="bin_cache must be None, 'memory' or a folder, got 3"):
        library.make(bin_cache=3).fit(X, y)
    with pytest.raises(ValueError, match="bin_method holds bins for other columns.*5 columns, but the bins are for 1"):
        library.make(bin_method=Bins([[1.0]])).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcde"))
    with pytest.raises(ValueError, match="bin_method holds bins for other columns: X lacks 'z'"):
        library.make(bin_method=Bins([[1.0]] * 5, names=list("zbcde"))).fit(frame, y)
    with pytest.raises(ValueError, match=rf"bin_method holds 10\d bins for column 'x0', and {library.budget}=20"):
        library.make(bin_method=Bins([np.arange(1.0, 100)] * 5), **{library.budget: 20}).fit(X, y)
    with pytest.raises(Exception, match=r"NaN|nan|finite|[Ww]eight"):
        library.make().fit(X, y, sample_weight=np.full(300, np.nan))
    with pytest.raises(Exception, match=r"max_bin|border.count"):
        library.make(bin_method="kmeans", **{library.budget: 10**6}).fit(X, y)
    with pytest.raises(Exception, match=r"max_bin|border.count|n_bins"):
        library.make(bin_method="kmeans", **{library.budget: 0 if "Cat" not in library.name else -1}).fit(X, y)


def test_settings_that_contradict_are_refused(tmp_path):
    import lightgbm
    import xgboost

    X, y = data(300)
    quiet = {"verbosity": -1}
    with pytest.raises(ValueError, match=r"forcedbins_filename='f.json' sets cuts of its own: give them as bin_method"):
        boostbins.lightgbm.LGBMRegressor(forcedbins_filename="f.json", bin_method="kmeans", **quiet).fit(X, y)
    with pytest.raises(ValueError, match=r"num_machines > 1: .* use boostbins.dask"):
        boostbins.lightgbm.LGBMRegressor(num_machines=2, **quiet).fit(X, y)
    for setting in (
        {"feature_border_type": "Median"},
        {"input_borders": "f"},
        {"per_float_feature_quantization": ["0:9"]},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(setting))}=.* contradicts bin_method"):
            boostbins.catboost.CatBoostRegressor(verbose=False, bin_method="kmeans", **setting).fit(X, y)
    with pytest.raises(TypeError, match="not a ready-made Dataset"):
        boostbins.lightgbm.LGBMRegressor().fit(lightgbm.Dataset(X, y), y)
    with pytest.raises(TypeError, match="not a ready-made DMatrix"):
        boostbins.xgboost.XGBRegressor().fit(xgboost.DMatrix(X, y), y)
    with pytest.raises(ValueError, match=r"there is no file .*f\.csv"):
        boostbins.lightgbm.Dataset(str(tmp_path / "f.csv")).construct()


WITHOUT_CUTS = [
    ({"tree_method": "exact"}, "tree_method='exact' takes no ready cuts: use tree_method='hist', or give bin_method"),
    ({"tree_method": "approx"}, "tree_method='approx' takes no ready cuts: use tree_method='hist', or give bin_method"),
    ({"booster": "gblinear"}, "booster='gblinear' has no bins: use 'gbtree' or 'dart', or give bin_method=None"),
    ({"max_bin": 2}, "max_bin=2 is beyond what a method can do: use 3 to 65536, or give bin_method=None"),
    ({"max_bin": 10**5}, "max_bin=100000 is beyond what a method can do: use 3 to 65536, or give bin_method=None"),
    (
        {"updater": "prune", "process_type": "update"},
        "process_type='update' looks for no splits.*leave it out, or give",
    ),
]


@pytest.mark.filterwarnings("ignore:.*manually specified the `updater`:UserWarning")
@pytest.mark.parametrize(("params", "said"), WITHOUT_CUTS, ids=lambda value: str(value)[:30])
def test_xgboost_goes_its_own_way_where_it_takes_no_cuts_unless_a_method_was_asked_for(params, said):
    import xgboost

    X, y = data(300)
    few = {"n_estimators": 3, "n_jobs": 1, "feature_selector": "cyclic", "updater": "coord_descent"}
    few = few if "booster" in params else {"n_estimators": 3, "n_jobs": 1}
    first = xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(X, y)
    fit = {"xgb_model": first} if "process_type" in params else {}
    native = xgboost.XGBRegressor(**few, **params).fit(X, y, **fit)
    model = boostbins.xgboost.XGBRegressor(n_estimators=3).fit(X, y)
    for copied in (clone, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))):
        ours = copied(model).set_params(**few, **params)
        with pytest.warns(UserWarning, match=f"{said}.*It was not given, so the library goes its own way"):
            ours.fit(X, y, **fit)
        assert fingerprint(ours) == fingerprint(native)
        assert not hasattr(ours, "bins_")
    for method in ("kmeans", "auto", fit_bins(X, max_bins=9)):
        with pytest.raises(ValueError, match=said):
            boostbins.xgboost.XGBRegressor(bin_method=method, **few, **params).fit(X, y, **fit)


@pytest.mark.filterwarnings("ignore:.*manually specified the `updater`:UserWarning")
def test_xgboost_itself_refuses_what_contradicts_the_cuts_of_a_matrix():
    import xgboost

    X, y = data(300)
    for updater in ("grow_colmaker", "grow_histmaker"):  # of the estimators it has made a QuantileDMatrix already
        for library in (xgboost, boostbins.xgboost):
            with pytest.raises(xgboost.core.XGBoostError, match="tree method can use"):
                library.XGBRegressor(updater=updater, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="device='sycl:gpu' takes no ready cuts: use 'cpu' or 'cuda'"):
        boostbins.xgboost.XGBRegressor(device="sycl:gpu", bin_method="kmeans").fit(X, y)
    train = boostbins.xgboost.QuantileDMatrix(X, y, max_bin=16)
    for params in ({}, {"max_bin": 15}, {"max_bin": 17}):
        with pytest.raises(xgboost.core.XGBoostError, match="Inconsistent `max_bin`"):
            xgboost.train(params, train, 1)
    for params in ({"tree_method": "exact", "max_bin": 16}, {"tree_method": "approx", "max_bin": 16}):
        with pytest.raises(xgboost.core.XGBoostError, match="tree method can use"):
            xgboost.train(params, train, 1)
    with pytest.raises(xgboost.core.XGBoostError, match="Not implemented"):
        xgboost.train({"booster": "gblinear"}, train, 1)


def test_a_quantile_matrix_of_two_bins_or_without_rows_is_xgboosts_own():
    import xgboost

    X, y = data(300)
    with pytest.warns(UserWarning, match="data has no rows to find cuts on: give it some, or give bin_method=None"):
        assert boostbins.xgboost.QuantileDMatrix(X[:0]).num_row() == 0
    with pytest.raises(ValueError, match="data has no rows"):
        boostbins.xgboost.QuantileDMatrix(X[:0], bin_method="kmeans")
    with pytest.warns(UserWarning, match="max_bin=2 is beyond"):
        ours = boostbins.xgboost.QuantileDMatrix(X, y, max_bin=2)
    assert all(map(np.array_equal, ours.get_quantile_cut(), xgboost.QuantileDMatrix(X, max_bin=2).get_quantile_cut()))
    with pytest.raises(ValueError, match="max_bin=2 is beyond"):
        boostbins.xgboost.QuantileDMatrix(X, y, max_bin=2, bin_method="kmeans")


@pytest.mark.parametrize("library", EVERY, ids=str)
def test_the_documentation_that_scikit_learn_shows_is_the_librarys_own(library):
    native = library.native()
    assert library.ours()._get_doc_link() == (native._get_doc_link() if hasattr(native, "_get_doc_link") else "")


def test_xgboost_may_lose_its_forests():
    code = """
import xgboost
for name in ("XGBRFRegressor", "XGBRFClassifier"):
    vars(xgboost).pop(name, None)
from boostbins.xgboost import *
import boostbins.xgboost
assert XGBRegressor is boostbins.xgboost.XGBRegressor
assert not [name for name in boostbins.xgboost.__all__ if "RF" in name]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    import xgboost

    for name in ("XGBRFRegressor", "XGBRFClassifier"):
        assert (name in boostbins.xgboost.__all__) == hasattr(boostbins.xgboost, name) == hasattr(xgboost, name)


def test_a_library_that_did_something_else_is_caught():
    with pytest.raises(RuntimeError, match=r"did not take the cuts of column 'b': 2 were given and 1 are there"):
        boostbins.lightgbm.LIBRARY.compare(
            {0: np.array([1.0]), 2: np.array([1.0, 2.0])}, {0: np.array([1.0]), 2: np.array([1.0])}, ["a", "b"]
        )


def test_an_unsupported_version_is_refused_with_those_that_were_tested():
    for oldest, below in (("99.0.0", "100"), ("0.0.1", "0.0.2")):
        library = Library("NumPy", "numpy", "numpy", oldest=oldest, newest="99.5.0", below=below)
        with pytest.raises(
            ImportError, match=rf"supports NumPy from {oldest} to before {below} \(tested: {oldest} and"
        ):
            library.check()


@pytest.mark.parametrize("module", ["lightgbm", "xgboost", "catboost", "sklearn"])
def test_a_library_that_is_not_there_is_named_with_what_to_install(module):
    code = f"import sys; sys.modules[{module!r}] = None; import boostbins.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"is not installed: pip install 'boostbins[{module}]'" in done.stderr


def test_floor32_parts_float32_values_as_the_cut_does():
    r = np.random.default_rng(0)
    values = np.concatenate([r.standard_normal(500), r.lognormal(0, 20, 500), [0.0, 1e-45, 3e38]]).astype(np.float32)
    cuts = np.unique(np.concatenate([values.astype(float), r.standard_normal(200), [1e300, -1e300, 3.4028235e38]]))
    below = floor32(cuts)
    assert (below == below.astype(np.float32)).all()
    near = cuts[np.abs(cuts) < 3.4e38].astype(np.float32)
    values = np.sort([near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))], axis=None)
    # Of two cuts, the values below one are among those below the other: as many are the same ones.
    told = np.searchsorted(values.astype(float), [*below, np.inf, -np.inf], "right")
    assert np.isin(np.searchsorted(values.astype(float), cuts, "right"), told).all()
