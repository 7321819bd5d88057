from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.conftest import skewed

sklearn = pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from sklearn.base import clone  # noqa: E402
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from boostbins import Binner, fit_bins  # noqa: E402


@parametrize_with_checks([Binner(), Binner("quantile", 7), Binner("optimal", 4), Binner("uniform", 3)])
def test_it_is_a_scikit_learn_transformer(estimator, check):
    check(estimator)


def table():
    r = np.random.default_rng(0)
    X = np.column_stack([skewed(2000), r.integers(0, 5, 2000)])
    X[::20, 0] = np.nan
    return X


def test_codes_are_those_of_fit_bins():
    X, w = table(), np.random.default_rng(1).random(2000)
    binner = Binner("kmeans", 31).fit(X, sample_weight=w)
    assert binner.bins_ == fit_bins(X, "kmeans", 31, w)
    np.testing.assert_array_equal(binner.transform(X), binner.bins_.encode(X))
    decoded = binner.inverse_transform(binner.transform(X))
    np.testing.assert_array_equal(np.isnan(decoded), np.isnan(X))
    np.testing.assert_array_equal(binner.transform(decoded), binner.transform(X))


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_in_frames_out(backend):
    library = pytest.importorskip(backend)
    frame = library.DataFrame({"price": skewed(100), "size": skewed(100, 1)})
    out = Binner(max_bins=5).set_output(transform=backend).fit_transform(frame)
    assert isinstance(out, library.DataFrame)
    assert list(out.columns) == ["price", "size"]
    assert Binner().fit(frame).get_feature_names_out().tolist() == ["price", "size"]
    assert Binner().fit(frame).bins_ == fit_bins(frame)
    assert Binner(max_bins={"price": 3, "size": 4}).fit(frame).bins_.n_bins == (3, 4)


def test_it_works_where_transformers_do():
    X = pd.DataFrame(table(), columns=["a", "b"]).fillna(1.0)
    y = np.log(X["a"]) + X["b"]
    steps = make_pipeline(make_column_transformer((Binner(max_bins=15), ["a"]), remainder="passthrough"), Ridge())
    search = GridSearchCV(steps, {"columntransformer__binner__method": ["kmeans", "quantile"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.best_params_["columntransformer__binner__method"] == "quantile"  # y is a function of log a
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_codes_that_are_none_are_refused():
    binner = Binner(max_bins=3).fit(np.arange(9.0)[:, None])
    for code in (1e300, np.inf, 0.5):
        with pytest.raises(ValueError, match="codes must be whole numbers"):
            binner.inverse_transform([[code]])


def test_parameters_are_kept_and_checked_in_fit():
    binner = Binner("uniform", [3, 4], exact=True, n_threads=1)
    assert clone(binner).get_params() == binner.get_params()
    with pytest.raises(ValueError, match="max_bins must be one number, or one for each of 1 columns, got 2"):
        binner.fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="must be one of .* got 'kmean'"):
        Binner("kmean").fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="feature names should match|Feature names"):
        Binner().fit(pd.DataFrame({"a": [1.0, 2.0]})).transform(pd.DataFrame({"b": [1.0]}))


def test_auto_looks_at_the_target():
    X = np.random.default_rng(0).lognormal(0, 2, (3000, 2))
    y = X[:, 0]
    binner = Binner(method="auto", max_bins=63).fit(X, y)
    assert set(binner.bins_.choices) == {"x0", "x1"}
    assert binner.bins_ == fit_bins(X, "auto", 63, y=y)
    assert Binner(method="auto", max_bins=63).fit(X).bins_ == fit_bins(X, "hybrid", 63)


@pytest.mark.parametrize("asked", [{"total_bins": 90}, {"average_bins": 45}, {"total_bins": "auto"}], ids=str)
def test_columns_share_a_total(asked):
    r = np.random.default_rng(0)
    X = r.lognormal(0, 2, (3000, 2))
    y = np.where(np.log(X[:, 0]) > 0, "yes", "no")
    binner = clone(Binner(**asked)).fit(X, y)
    expected = fit_bins(X, y=y, **asked)
    assert binner.bins_ == expected
    assert binner.bins_.shares == pickle.loads(pickle.dumps(binner)).bins_.shares == expected.shares
    if asked == {"total_bins": "auto"}:
        with pytest.raises(ValueError, match='total_bins="auto" needs a target'):
            Binner(**asked).fit(X)
    else:
        assert Binner(**asked).fit(X).bins_ == fit_bins(X, **asked)
    with pytest.raises(ValueError, match="contradict each other"):
        Binner(total_bins=90, average_bins=45).fit(X, y)
