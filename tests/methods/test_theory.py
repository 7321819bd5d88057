"""The paper's theorem: what binning x can cost when y is a Lipschitz function of x with noise."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boostbins import METHODS, Bins, fit_bins
from tests.conftest import skewed


def within(values, codes):
    """E[Var(values | bin)]."""
    n = np.bincount(codes)
    mean = np.bincount(codes, values) / np.maximum(n, 1)
    return ((values - mean[codes]) ** 2).mean()


LIPSCHITZ = {  # functions with their constants
    "sine": (np.sin, 1.0),
    "kink": (lambda x: np.abs(x - 1), 1.0),
    "steep": (lambda x: 3 * np.tanh(x), 3.0),
    "clip": (lambda x: 2 * np.clip(x, -1, 1), 2.0),
}


@given(st.integers(0, 10_000), st.sampled_from(sorted(LIPSCHITZ)), st.integers(1, 40))
def test_variance_lost_in_y_is_bounded_by_that_lost_in_x(seed, name, n_cuts):
    r = np.random.default_rng(seed)
    x = r.standard_normal(500) * r.lognormal(0, 1)
    codes = Bins([np.unique(r.choice(x, n_cuts))]).encode(x)[:, 0]
    f, constant = LIPSCHITZ[name]
    assert within(f(x), codes) <= constant**2 * within(x, codes) * (1 + 1e-9) + 1e-12


@given(st.integers(0, 10_000), st.floats(0, 3))
def test_noise_adds_its_variance(seed, sigma):
    r = np.random.default_rng(seed)
    x = r.lognormal(0, 1, 20_000)
    codes = fit_bins(x, "kmeans", 16).encode(x)[:, 0]
    y = np.sin(x) + sigma * r.standard_normal(len(x))
    bound = within(x, codes) + sigma**2
    assert within(y, codes) <= bound * 1.1 + 1e-12


@given(st.integers(0, 10_000), st.floats(-5, 5), st.integers(1, 40))
def test_for_a_linear_function_the_bound_is_met(seed, slope, n_cuts):
    r = np.random.default_rng(seed)
    x = r.standard_normal(500)
    codes = Bins([np.unique(r.choice(x, n_cuts))]).encode(x)[:, 0]
    np.testing.assert_allclose(within(slope * x + 7, codes), slope**2 * within(x, codes), rtol=1e-9, atol=1e-12)


def test_optimal_has_the_least_bound_of_all_methods():
    x = skewed(20_000)
    cost = {m: within(x, fit_bins(x, m, 63).encode(x)[:, 0]) for m in METHODS}
    assert min(cost, key=cost.get) == "optimal"
    assert cost["kmeans"] < cost["quantile"]
