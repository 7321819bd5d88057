"""Values that stand for their bins: what XGBoost learns from them, and that it holds for raw values."""

from __future__ import annotations

import json

import numpy as np
import pytest

from boostbins import Bins
from boostbins.adapters.stand_ins import for_raw_values, represented
from boostbins.sources.table import read_table
from boostbins.summary.ranges import Ranges, ranges_of

xgb = pytest.importorskip("xgboost")
from boostbins.xgboost.reference import last_thresholds  # noqa: E402

BINS = Bins([[1.0, 2.0], [0.5]], ["tail", "other"])


@pytest.fixture(scope="module")
def data():
    """A column whose missing values matter, and whose last bin reaches far beyond its least value."""
    rng = np.random.default_rng(0)
    tail = np.where(rng.random(400) < 0.5, np.nan, np.exp(3 * rng.random(400) ** 4) * 2)
    tail[0] = 1000.0
    return np.column_stack([tail, rng.random(400)]), np.isnan(tail).astype(float)


def trained(X, y, bins=BINS, **params):
    table = read_table({"tail": X[:, 0], "other": X[:, 1]})
    extent = ranges_of(table)
    rows = represented(table, bins, extent.low)
    params = {"max_bin": 8, "max_depth": 2, **params}
    model = bytes(xgb.train(params, xgb.QuantileDMatrix(rows, y, max_bin=8), 3).save_raw("json"))
    return model, rows, extent


def predicted(model, X):
    return xgb.Booster(model_file=bytearray(model)).predict(xgb.DMatrix(X))


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_raw_values_are_predicted_as_those_that_stood_for_them(data, booster):
    X, y = data
    model, rows, extent = trained(X, y, booster=booster)
    mended = for_raw_values(model, BINS, extent, last_thresholds(extent, BINS), [0, 1])
    assert np.array_equal(predicted(mended, X), predicted(model, rows))
    # XGBoost's own threshold above all values is not above all raw ones.
    assert not np.array_equal(predicted(model, X), predicted(model, rows))


def test_a_model_that_needs_no_change_is_left_as_it_is(data):
    X, y = data
    model, _, extent = trained(np.nan_to_num(X, nan=1.5), y)
    assert for_raw_values(model, BINS, extent, last_thresholds(extent, BINS), [0, 1]) is model


def test_a_threshold_that_is_no_cut_is_an_error(data):
    X, y = data
    model, _, extent = trained(np.nan_to_num(X, nan=1.5), y)
    other = Bins([[1.0, 2.5], [0.5]], BINS.names)
    with pytest.raises(RuntimeError, match="XGBoost split column 'tail' at 2.0.*bin_method=None"):
        for_raw_values(model, other, extent, last_thresholds(extent, other), [0, 1])


def test_features_that_are_not_binned_are_left_alone(data):
    X, y = data
    model, _, _ = trained(X[:, ::-1], y, Bins([[0.5], [1.0, 2.0]], BINS.names))
    content = json.loads(model)
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        tree["split_type"] = [1] * len(tree["split_type"])  # by category
    by_category = json.dumps(content).encode()
    nothing = Ranges(np.empty(0), np.empty(0), np.empty(0, bool))
    assert for_raw_values(by_category, Bins([]), nothing, np.empty(0), []) is by_category
