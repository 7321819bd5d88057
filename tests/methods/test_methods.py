"""What holds for every method, and what a function of one's own may return."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbins import METHODS, ColumnSummary, fit_bins, kmeans
from boostbins.methods import find_cuts
from tests.conftest import columns, distributions, skewed


def cut(x, method="kmeans", max_bins=255, **options):
    return fit_bins(np.asarray(x)[:, None], method, max_bins, **options).cuts[0]


@given(columns.filter(len), st.sampled_from(sorted(METHODS)), st.integers(2, 12))
def test_cuts_ascend_and_separate_values_whatever_the_floats(x, method, max_bins):
    cuts = cut(x, method, max_bins)
    present = np.unique(x[np.isfinite(x)] + 0.0)
    assert len(cuts) <= max_bins - 1
    assert np.isfinite(cuts).all()
    assert (np.diff(cuts) > 0).all()
    if len(cuts):
        assert present[0] <= cuts[0]
        assert cuts[-1] < present[-1]
    if len(present) <= max_bins:
        np.testing.assert_array_equal(np.searchsorted(cuts, present), np.arange(len(present)))


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("x", [[], [np.nan, np.nan], [5.0, 5.0], [np.inf, -np.inf], [np.inf, 1.0, np.nan]])
def test_columns_without_two_values_have_no_cuts(method, x):
    assert len(find_cuts(ColumnSummary(x), METHODS[method], 255)) == 0


@pytest.mark.parametrize("method", sorted(METHODS))
def test_more_bins_than_a_summary_usually_has_cells(method):
    x = np.random.default_rng(0).permutation(np.arange(40_000.0))
    assert len(cut(x, method, 65_535)) == 39_999
    assert len(cut(skewed(150_000), method, 40_000)) > 20_000 or method == "uniform"


def test_exact_sees_what_cells_hide():
    x = skewed(200_000)
    cells, raw = (cut(x, "optimal", 255, exact=e) for e in (False, True))
    s = np.sort(x)

    def cost(cuts):
        return sum(((g - g.mean()) ** 2).sum() for g in np.split(s, np.searchsorted(s, cuts, side="right")))

    assert cost(raw) < cost(cells) < cost(raw) * 1.001


@pytest.mark.parametrize("name", ["timestamps and noise at 1e15", "a spike in noise"])
def test_no_method_collapses_on_mixed_scales(name):
    x = distributions(400_000)[name]
    spike = (np.abs(x - 1.7e9) < 1e6) if "time" in name else (np.abs(x - 1e9) < 10)
    codes = fit_bins(x, "quantile", 63).encode(x)[:, 0]
    share = np.bincount(codes, minlength=63) / len(x) * 63
    assert share.max() < 2, "a bin holds more than twice its share"
    assert len(np.unique(codes[spike])) > 0.8 * spike.mean() * 63
    assert len(np.unique(fit_bins(x, "kmeans", 63).encode(x)[:, 0])) > 40


def test_a_heavy_value_among_many_takes_one_bin():
    x = distributions(400_000)["a heavy value"]
    bins = fit_bins(x, "quantile", 63)
    codes = bins.encode(x)[:, 0]
    assert len(np.unique(codes[np.abs(x - 50_000) < 1])) <= 2
    assert len(bins[0]) > 40


def test_a_function_of_ones_own():
    assert cut(skewed(1000), lambda summary, max_bins: [1.0, summary.max / 2], 3)[0] == 1.0
    assert len(cut(skewed(1000), partial(kmeans, max_iter=3), 9)) == 8

    def best_split(summary, max_bins):
        sums = summary.target_sums
        left = np.cumsum(sums, axis=0)[:-1]
        right = sums.sum(axis=0) - left
        gain = left[:, 1] ** 2 / left[:, 0] + right[:, 1] ** 2 / right[:, 0]
        return summary.cell_ends[1][[gain.argmax()]]

    x = np.random.default_rng(0).random(5000)
    bins = fit_bins(x[:, None], best_split, 2, y=x > 0.3)
    assert bins[0] == pytest.approx([0.3], abs=1e-3)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([2.0, 1.0], "ascending"),
        ([1.0, 1.0], "ascending cuts without duplicates"),
        ([np.nan], "not finite"),
        ([np.inf], "not finite"),
        (np.arange(9.0), "9 cuts, but max_bins=5 leaves room for 4"),
        ([[1.0]], "1-D"),
        ("abc", "array of cuts"),
        (None, "not finite|array of cuts|1-D"),
    ],
)
def test_what_a_function_returns_is_checked(returned, message):
    def mine(summary, max_bins):
        return returned

    with pytest.raises((ValueError, TypeError), match=f"method mine .*({message})"):
        cut(skewed(1000), mine, 5)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="'kmeans', 'optimal', 'quantile', 'uniform' or a function .*, got 'kmean'"):
        cut([1.0], "kmean")
