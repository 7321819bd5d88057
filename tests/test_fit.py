"""fit_bins: weights, budgets, threads, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse as sp

from boostbins import METHODS, fit_bins
from tests.conftest import skewed


@given(st.data())
def test_sparse_is_dense_to_the_last_bit_with_whole_number_weights(data):
    n = data.draw(st.integers(1, 40))
    values = st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.1, -2.5, 1e-9, np.nan])
    x = np.array(data.draw(st.lists(values, min_size=n, max_size=n)))[:, None]
    weight = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    if not weight.any():
        weight[0] = 1
    method, max_bins = data.draw(st.sampled_from(sorted(METHODS))), data.draw(st.integers(2, 6))
    sparse, plain = (fit_bins(X, method, max_bins, sample_weight=weight) for X in (sp.csc_array(x), x))
    assert (sparse, sparse.stats) == (plain, plain.stats)


def test_threads_change_nothing():
    X = np.column_stack([skewed(5000, s) for s in range(9)])
    assert fit_bins(X, n_threads=1) == fit_bins(X, n_threads=4) == fit_bins(X)


def test_weights_are_counted():
    x = skewed(3000)
    times = np.random.default_rng(0).integers(0, 4, 3000)
    for method in sorted(METHODS):
        weighted, repeated = fit_bins(x, method, 31, times), fit_bins(np.repeat(x, times), method, 31)
        np.testing.assert_allclose(weighted[0], repeated[0], rtol=1e-9)
        scaled = fit_bins(x, method, 31, times * 1e-3)
        np.testing.assert_allclose(scaled[0], repeated[0], rtol=2e-2)
    assert fit_bins(x, sample_weight=np.ones(3000)) == fit_bins(x)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_weights_may_be_tiny_or_huge(scale):
    x = skewed(2000)
    for method in sorted(METHODS):
        cuts = fit_bins(x, method, 31, np.full(2000, scale))[0]
        assert len(cuts) == 30
        assert np.isfinite(cuts).all()


def test_a_budget_per_column():
    X = np.column_stack([skewed(3000), skewed(3000, 1)])
    assert fit_bins(X, max_bins=[5, 300]).n_bins == (5, 300)
    assert fit_bins({"a": X[:, 0], "b": X[:, 1]}, max_bins={"b": 7, "a": 9}).n_bins == (9, 7)
    assert fit_bins(X, max_bins=np.int64(2)).n_bins == (2, 2)
    assert fit_bins(np.arange(70_000.0), "uniform", max_bins=65_535).n_bins == (65_535,)


@pytest.mark.parametrize("max_bins", [1, 0, -3, 70_000, 2.5, "many", True, [5], [5, 1], {"x0": 5}, {"x0": 5, "z": 5}])
def test_bad_budgets_are_refused(max_bins):
    with pytest.raises(ValueError, match="max_bins"):
        fit_bins(np.zeros((5, 2)), max_bins=max_bins)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([-1.0, 1.0], "not negative, got -1.0"),
        ([np.nan, 1.0], "finite"),
        ([1.0], r"one entry per row, shape \(2,\), got \(1,\)"),
        ([0.0, 0.0], "zero for every row"),
        (["1", "2"], "numbers"),
        ([10**400, 1], "numbers"),
        (np.array([1j, 1]), "numbers, got ndarray of dtype complex128"),
        (np.array([1, 2], "datetime64[s]"), "numbers"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises((ValueError, TypeError), match=f"sample_weight.*{message}"):
        fit_bins([[1.0, 2.0]], sample_weight=weight)


@pytest.mark.parametrize("options", [{"n_threads": 0}, {"n_threads": 1.5}, {"non_numeric": "drop"}, {"y": [np.inf, 1]}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        fit_bins([[1.0, 2.0]], **options)
