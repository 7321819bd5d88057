"""A total of bins for all columns, in each library."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import boostbins.catboost
import boostbins.lightgbm
import boostbins.xgboost
from boostbins import fit_bins
from tests.libraries import CLASSIFIERS, REGRESSORS

LIBRARIES = [*REGRESSORS, *CLASSIFIERS]
of_each = pytest.mark.parametrize("library", LIBRARIES, ids=str)
MANY = [library for library in LIBRARIES if "Gradient" not in library.name]  # whose columns may have more than 255 bins


def fine(n=6000, seed=0):
    """A table of mixed columns, of which one matters in each of its 900 values."""
    r = np.random.default_rng(seed)
    day = r.integers(0, 900, n)
    X = np.column_stack(
        [day, r.normal(size=n), r.lognormal(0, 2, n), r.integers(0, 2, n), np.ones(n), np.round(r.normal(size=n), 1)]
    )
    return X, np.cumsum(r.normal(size=900))[day] + X[:, 1]


def target_for(library, y):
    return y > np.median(y) if library in CLASSIFIERS else y


@of_each
@pytest.mark.parametrize("asked", [{"total_bins": 400}, {"average_bins": 50}, {"total_bins": "auto"}], ids=str)
def test_columns_share_a_total(library, asked):
    X, y = fine()
    y = target_for(library, y)
    model = library.make(bin_method="kmeans", **asked).fit(X, y)
    day, plain, skewed, flag, constant, rounded = model.bins_.n_bins
    if "auto" not in asked.values():
        assert sum(model.bins_.n_bins) <= 400
    assert day >= max(plain, skewed, rounded)
    assert day > rounded
    assert flag <= 3
    assert constant <= 2
    again = clone(model)
    assert {name: again.get_params()[name] for name in asked} == asked
    assert again.fit(X, y).bins_ == model.bins_
    thresholds = library.thresholds(model)
    for place, used in thresholds.items():
        imposed = library.imposed(model, X).get(place, set())
        assert set(used) - imposed <= set(model.bins_.cuts[place])


@pytest.mark.parametrize("library", MANY, ids=str)
def test_a_column_that_matters_may_have_more_than_255_bins(library):
    X, y = fine()
    y = target_for(library, y)
    model = library.make(bin_method="kmeans", average_bins=255).fit(X, y)
    assert model.bins_.n_bins[0] > 500
    assert np.isfinite(model.predict(X)).all()
    limited = library.make(bin_method="kmeans", average_bins=255, **{library.budget: 100}).fit(X, y)
    assert max(limited.bins_.n_bins) <= 101


@of_each
def test_what_cannot_be_shared_is_refused(library):
    X, y = fine(300)
    y = target_for(library, y)
    for asked, words in (
        ({"total_bins": 100, "average_bins": 20}, "total_bins=100 and average_bins=20 contradict each other"),
        ({"average_bins": 1}, "average_bins must be a number from 2 to 65535, got 1"),
        ({"average_bins": "63"}, "average_bins must be a number from 2 to 65535, got '63'"),
        ({"total_bins": 5}, 'total_bins must be "auto", or a whole number, at least 2 for each of 6 columns'),
        ({"total_bins": "enough"}, 'total_bins must be "auto", or a whole number'),
    ):
        with pytest.raises(ValueError, match=words):
            library.make(bin_method="kmeans", **asked).fit(X, y)


@of_each
@pytest.mark.parametrize("asked", [{"total_bins": 400}, {"average_bins": 50}, {"total_bins": "auto"}], ids=str)
def test_a_total_without_cuts_of_ours_is_refused(library, asked):
    X, y = fine(300)
    name = next(iter(asked))
    with pytest.raises(ValueError, match=f"{name}=.* is for cuts by a bin_method"):
        library.make(bin_method=None, **asked).fit(X, target_for(library, y))
    ready = fit_bins(X)
    with pytest.raises(ValueError, match=f"{name}=.* is for cuts by a bin_method"):
        library.make(bin_method=ready, **asked).fit(X, target_for(library, y))


@pytest.mark.parametrize("library", MANY, ids=str)
def test_a_total_that_was_asked_for_does_not_give_way(library):
    obstacle = {
        "LGBM": {"forcedbins_filename": "x.json"},
        "XGB": {"booster": "gblinear"},
        "Cat": {"text_features": [0]},
    }
    params = next(value for start, value in obstacle.items() if library.name.startswith(start))
    X, y = fine(300)
    X = [["word", *row[1:]] for row in X.tolist()] if "text_features" in params else X
    with pytest.raises(ValueError, match="or give bin_method=None"):
        library.make(average_bins=50, **params).fit(X, target_for(library, y))


def test_what_is_enough_is_so_whatever_the_engine_sees():
    X, y = fine()
    totals = [sum(library.make(total_bins="auto").fit(X, y).bins_.n_bins) for library in REGRESSORS[:3]]
    assert max(totals) < 1.1 * min(totals)


DATASETS = {
    "LightGBM": lambda X, y, **asked: boostbins.lightgbm.Dataset(X, y, params={"verbosity": -1}, **asked).construct(),
    "XGBoost": lambda X, y, **asked: boostbins.xgboost.QuantileDMatrix(X, y, **asked),
    "CatBoost": lambda X, y, **asked: boostbins.catboost.Pool(X, y, **asked),
}


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_share_a_total_too(name):
    X, y = fine()
    found = DATASETS[name](X, y, average_bins=200).bins_
    assert found.n_bins[0] > 500
    assert sum(found.n_bins) <= 6 * 200
    with pytest.raises(ValueError, match="average_bins=200 is for cuts by a bin_method"):
        DATASETS[name](X, y, bin_method=None, average_bins=200)


@pytest.mark.parametrize("name", ["LightGBM", "XGBoost"])
def test_streams_share_a_total_as_tables_do(name):
    X, y = fine()
    names = [f"x{i}" for i in range(X.shape[1])]

    def batches():
        for start in range(0, len(X), 1700):
            rows = slice(start, start + 1700)
            yield {**dict(zip(names, X[rows].T, strict=True)), "y": y[rows]}

    whole = dict(zip(names, X.T, strict=True))
    for asked in ({"average_bins": 200}, {"total_bins": 300}, {"total_bins": "auto"}):
        found = DATASETS[name](batches, "y", **asked).bins_
        assert found == DATASETS[name](pd.DataFrame(whole), y, **asked).bins_
