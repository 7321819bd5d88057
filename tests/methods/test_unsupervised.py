"""quantile, uniform, kmeans and optimal: their definitions, and rivals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbins import ColumnSummary, fit_bins, kmeans, optimal, quantile
from boostbins.methods.unsupervised import midpoints
from tests import naive
from tests.conftest import distributions, finite, skewed

distinct_values = st.lists(finite, min_size=3, max_size=9, unique=True).map(lambda v: sorted(x + 0.0 for x in set(v)))


def cut(x, method="kmeans", max_bins=255, **options):
    return fit_bins(np.asarray(x)[:, None], method, max_bins, **options).cuts[0]


def borders(values, cuts):
    return sorted({0, *np.searchsorted(values, cuts, side="right").tolist()} - {len(values)})


@given(st.lists(finite, min_size=2, max_size=2, unique=True).map(sorted))
def test_a_midpoint_separates_its_neighbours(pair):
    left, right = np.array(pair) + 0.0
    if left == right:
        return
    (middle,) = midpoints(np.array([left, right]))
    assert left <= middle < right


def test_quantile_cuts_are_numpys():
    x = skewed(20_000)
    np.testing.assert_array_equal(cut(x, "quantile"), np.quantile(x, np.arange(1, 255) / 255))


def test_uniform_cuts_have_equal_widths():
    x = skewed(20_000)
    np.testing.assert_allclose(cut(x, "uniform", 11), np.linspace(x.min(), x.max(), 12)[1:-1])


@given(st.lists(st.integers(0, 40), min_size=12, max_size=80), st.integers(2, 9))
def test_lloyd_is_the_naive_one(numbers, k):
    # A convex bend leaves ties of values, but no value halfway between two centers.
    x = np.array(numbers) + 1e-3 * np.sqrt(2) * np.array(numbers) ** 2
    values, counts = np.unique(x, return_counts=True)
    if len(values) <= k:
        return
    seeds = np.quantile(x, np.linspace(0, 1, k))
    expected = naive.lloyd(values, counts, seeds)
    summary = ColumnSummary(x)
    np.testing.assert_allclose(kmeans(summary, k), midpoints(np.unique(expected)), rtol=1e-9)


def test_lloyd_with_weights_is_lloyd_with_repetitions():
    r = np.random.default_rng(0)
    x, times = r.lognormal(0, 1, 3000), r.integers(0, 4, 3000)
    weighted = cut(x, "kmeans", 31, sample_weight=times)
    np.testing.assert_allclose(weighted, cut(np.repeat(x, times), "kmeans", 31), rtol=1e-9)


def test_parameters_of_kmeans_matter():
    x, summary = skewed(20_000), ColumnSummary(skewed(20_000))
    one, few, many = (kmeans(summary, 20, max_iter=i, tol=0) for i in (1, 5, 10_000))

    def cost(cuts):
        return sum(group.var() * len(group) for group in np.split(np.sort(x), np.searchsorted(np.sort(x), cuts)))

    assert cost(optimal(summary, 20)) <= cost(many) < cost(few) < cost(one) < cost(quantile(summary, 20))
    drawn = [kmeans(summary, 20, seeds="k-means++", random_state=s) for s in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert cost(drawn[0]) < cost(quantile(summary, 20))
    given_seeds = kmeans(summary, 20, seeds=np.quantile(x, np.linspace(0, 1, 20)))
    np.testing.assert_array_equal(given_seeds, kmeans(summary, 20))
    for bad in ({"seeds": "random"}, {"seeds": [np.nan]}, {"seeds": np.arange(21)}, {"max_iter": 0}, {"tol": -1}):
        with pytest.raises(ValueError, match="seeds|max_iter"):
            kmeans(summary, 20, **bad)


@given(distinct_values, st.data())
def test_optimal_is_the_least_of_all_partitions(values, data):
    n = len(values)
    k = data.draw(st.integers(2, n - 1))
    weights = data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    cuts = cut(values, "optimal", k, sample_weight=weights)
    found = naive.sse(values, weights, borders(values, cuts))
    least = naive.least_sse(values, weights, k)
    # Doubles cannot tell costs apart that differ by less than their rounding, relative to the whole column's.
    whole = naive.sse(values, weights, [0])
    assert found - least <= max(least / 10**9, whole / 10**30)


@pytest.mark.parametrize("name", distributions(1))
@pytest.mark.parametrize("k", [2, 17, 255])
def test_optimal_costs_no_more_than_other_solvers(name, k):
    kmeans1d = pytest.importorskip("kmeans1d")
    x = distributions(3000)[name]
    if name in ("huge", "subnormal"):
        x = x / np.abs(x).max()
    values = np.sort(x)
    if len(np.unique(values)) <= k:
        pytest.skip("a bin for every value")

    def cost(starts):
        return float(naive.sse([*values], [1] * len(values), starts))

    labels = np.array(kmeans1d.cluster(values, k).clusters)
    rival = cost(np.flatnonzero(np.diff(labels, prepend=-1)).tolist())
    assert cost(borders(values, cut(x, "optimal", k))) <= rival * (1 + 1e-9)


def test_optimal_agrees_with_ckwrap():
    ckwrap = pytest.importorskip("ckwrap")
    x = np.sort(skewed(4000))
    labels = ckwrap.ckmeans(x, 40).labels
    rival = naive.sse([*x], [1] * len(x), np.flatnonzero(np.diff(labels, prepend=-1)).tolist())
    assert float(naive.sse([*x], [1] * len(x), borders(x, cut(x, "optimal", 40)))) == pytest.approx(
        float(rival), rel=1e-9
    )


def test_optimal_on_a_lattice_where_the_count_jumps_over_k():
    values = np.arange(1000.0)
    for k in (7, 255, 333, 334, 499, 501, 999):
        sizes = np.diff([*borders(values, cut(values, "optimal", k)), 1000])
        assert len(sizes) == k
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    ("values", "k"),
    [
        ([-0.79, 0.1, 0.3, 1e12], 3),
        ([-99999999.999995, 0.0, 4e-6, 5e-6, 100000000.000005], 4),
        ([-1.543e-12, -1.337e-13, 6.456e-13, 1000.0], 3),
        ([-39 * 5e-324, -27 * 5e-324, -16 * 5e-324], 2),
        ([0.0, 1.0, 3.0, 1e10, 2e10, 5e10, 5e10 + 1e-4], 6),
        ([-1.7e308, -1.69e308, 0.0, 1e-300, 1.7e308], 3),
    ],
)
def test_optimal_keeps_its_digits_between_far_modes(values, k):
    found = naive.sse(values, [1] * len(values), borders(values, cut(values, "optimal", k)))
    assert found <= naive.least_sse(values, [1] * len(values), k) * (1 + Fraction(1, 10**9))


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=8, unique=True), st.data())
def test_optimal_with_weights_of_all_sizes(values, data):
    values = sorted({v + 0.0 for v in values})
    n = len(values)
    if n < 3:
        return
    k = data.draw(st.integers(2, n - 1))
    weights = [10.0 ** data.draw(st.integers(-10, 10)) for _ in values]
    cuts = cut(values, "optimal", k, sample_weight=weights)
    found, least = naive.sse(values, weights, borders(values, cuts)), naive.least_sse(values, weights, k)
    whole = naive.sse(values, weights, [0])
    assert found - least <= max(least / 10**6, whole / 10**25)


@pytest.mark.parametrize(
    ("values", "weights", "k"),
    [
        ([0, 6, 7, 8, 9, 11], [1, 1, 1e-17, 1, 1e-17, 1], 5),
        ([1, 3, 4, 7, 8, 10], [1e-16, 1, 1e-16, 1, 1, 1], 5),
        ([11, 12, 28], [4e10, 4e-8, 3e-11], 2),
        ([0, 1e-9, 1, 1 + 1e-9, 2, 2 + 1e-9, 3, 3 + 1e-9, 4, 4 + 1e-9, 5], [4, 4, 4, 1, 4, 3, 1, 1, 4, 1, 2], 7),
    ],
)
def test_optimal_sees_rows_of_little_weight_and_values_close_together(values, weights, k):
    values = [float(v) for v in values]
    found = naive.sse(values, weights, borders(values, cut(values, "optimal", k, sample_weight=weights)))
    assert found <= naive.least_sse(values, weights, k) * (1 + Fraction(1, 10**6))


def test_one_sentinel_does_not_spoil_the_optimum():
    x = np.append(np.random.default_rng(0).random(2000), 1e15)
    np.testing.assert_allclose(cut(x, "optimal", 3), [0.5, 5e14], rtol=0.1)


def test_centers_stay_inside_the_data():
    # Relocation takes the rows of a cluster one by one; what rounding leaves of its weight is not a cluster.
    for seed in range(250, 280):
        r = np.random.default_rng(seed)
        x = np.concatenate([r.normal(size=100) * 10.0 ** r.integers(-12, 1), np.full(50, 1000.0)])
        cuts = cut(x, "kmeans", 40, sample_weight=r.random(150))
        assert (cuts < 1000).all()


def test_centers_at_the_least_and_the_greatest_float_are_finite():
    most = np.finfo(float).max
    x = np.sort(np.append(1e308 * (1 + 1e-3 * np.arange(200)), [-most, most]))
    for origin in range(200):  # near which the rows lie: the rounding is another for each
        weight = np.ones(202)
        weight[1 + origin] = 1000
        for sign in (1, -1):
            assert np.isfinite(kmeans(ColumnSummary(sign * x, weight), 3)).all()


def test_rows_of_little_weight_have_centers_too():
    r = np.random.default_rng(0)
    x = np.concatenate([r.normal(0, 1, 200), r.normal(100, 1, 200), r.normal(200, 1, 200)])
    for tiny in (1e-6, 1e-10, 1e-13):
        w = np.repeat([1.0, tiny, tiny], 200)
        start = [-1.0, 0.0, 1.0, 100.0, 200.0]
        cuts = kmeans(ColumnSummary(x, w), 5, seeds=start, tol=0)
        plain = naive.lloyd(np.sort(x), w[np.argsort(x)], start, tol=0)
        np.testing.assert_allclose(cuts, midpoints(plain), rtol=1e-9)
