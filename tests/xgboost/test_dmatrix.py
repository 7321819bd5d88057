"""`QuantileDMatrix`: XGBoost's own object, with our cuts in it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import boostbins.catboost
import boostbins.lightgbm
import boostbins.xgboost
from tests.adapters.test_matrix import data
from tests.libraries import of_xgboost

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
