"""A total of bins, shared by columns."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbins import (
    METHODS,
    Binner,
    Bins,
    ColumnSummary,
    fit_bins,
    optimal,
    summarize,
)
from boostbins.methods.budget import Total, allocate_bins, bin_value
from tests.conftest import skewed

# ---- a total for all columns


@given(
    st.lists(st.tuples(st.integers(2, 400), st.floats(1e-6, 1e6)), min_size=1, max_size=30),
    st.integers(0, 5000),
)
def test_a_total_is_shared_by_what_columns_can_use(columns, total):
    most, bin_values = [m for m, _ in columns], [w for _, w in columns]
    if total < 2 * len(most):
        with pytest.raises(ValueError, match='total_bins must be "auto", or a whole number, at least 2 for each'):
            Total(total).of(len(most))
        return
    bins = allocate_bins(Total(total).of(len(most)), most, bin_values)
    assert all(2 <= n <= m for n, m in zip(bins, most, strict=True))
    assert sum(bins) == min(total, sum(most))


def test_a_total_is_shared_by_the_target_whatever_the_method():
    r = np.random.default_rng(0)
    X = np.column_stack([r.lognormal(0, 2, 5000), r.lognormal(0, 2, 5000)])
    y = np.log(X[:, 0])
    shared = Binner("kmeans", total_bins=80).fit(X, y).bins_
    assert shared == fit_bins(X, "kmeans", y=y, total_bins=80)
    assert shared.n_bins[0] > shared.n_bins[1] + 20


def test_a_total_is_kept_to_where_some_columns_cannot_have_less():
    r = np.random.default_rng(0)
    X = {"grade": r.integers(0, 5, 3000), "u": r.normal(size=3000), "v": r.normal(size=3000)}
    assert sum(fit_bins(X, "auto", y=X["grade"] ** 2, total_bins=8).n_bins) == 8


TABLE_COLUMNS = {
    "two-valued": lambda r, n: r.integers(0, 2, n).astype(float),
    "constant": lambda r, n: np.full(n, 7.0),
    "all missing": lambda r, n: np.full(n, np.nan),
    "half missing": lambda r, n: np.where(r.random(n) < 0.5, np.nan, r.normal(size=n)),
    "mostly zero": lambda r, n: np.where(r.random(n) < 0.9, 0.0, r.lognormal(0, 2, n)),
    "ties": lambda r, n: np.round(r.normal(size=n), 1),
    "lognormal": lambda r, n: r.lognormal(0, 2, n),
    "infinite": lambda r, n: np.where(r.random(n) < 0.1, np.inf, r.normal(size=n)),
}


@given(
    st.lists(st.sampled_from(sorted(TABLE_COLUMNS)), min_size=1, max_size=6),
    st.sampled_from([1, 2, 3, 40, 500]),
    st.sampled_from(["none", "number", "constant", "classes", "text"]),
    st.booleans(),
    st.sampled_from(sorted(METHODS)),
    st.integers(0, 200),
    st.integers(0, 99),
)
def test_a_total_is_shared_by_tables_of_mixed_columns(kinds, n, target, weighted, method, more, seed):
    r = np.random.default_rng(seed)
    X = {f"{i} {kind}": TABLE_COLUMNS[kind](r, n) for i, kind in enumerate(kinds)}
    numbers = r.normal(size=n)
    y = {"none": None, "number": numbers, "constant": np.ones(n), "classes": numbers > 0,
         "text": np.where(numbers > 0, "a", "b")}[target]  # fmt: skip
    weight = r.integers(1, 4, n) if weighted else None
    total = 2 * len(X) + more
    bins = fit_bins(X, method, 100, weight, y=y, total_bins=total)
    assert sum(bins.n_bins) <= total
    for name, n_bins in zip(bins.names, bins.n_bins, strict=True):
        distinct = len(np.unique(X[name][np.isfinite(X[name])]))
        assert n_bins <= max(distinct, 1)
        assert n_bins >= min(distinct, 2)


@pytest.mark.parametrize("total_bins", [None, 20])
@pytest.mark.parametrize("seed", range(3))
def test_weights_of_all_sizes_leave_nothing_infinite(seed, total_bins):
    r = np.random.default_rng(seed)
    X, y, weight = r.random((300, 2)), r.integers(-5, 6, 300), 10.0 ** r.uniform(-300, 300, 300)
    bins = fit_bins(X, "auto", 40, weight, y=y, total_bins=total_bins)
    assert Bins.from_json(bins.to_json()).choices == bins.choices  # JSON has no infinity


def test_bins_go_where_they_matter():
    r = np.random.default_rng(0)
    X = {
        "target is steep here": r.lognormal(0, 2, 5000),
        "and flat here": r.lognormal(0, 2, 5000),
        "few": r.integers(0, 5, 5000),
    }
    y = X["target is steep here"] + 0.1 * r.normal(size=5000)
    bins = fit_bins(X, "auto", 255, y=y, total_bins=3 * 63)
    assert sum(bins.n_bins) == 3 * 63
    steep, flat, few = bins.n_bins
    assert steep > 1.5 * flat
    assert 2 < flat < 63 // 2
    assert few == 5
    unsupervised = fit_bins(X, "kmeans", 255, total_bins=3 * 63)
    assert sum(unsupervised.n_bins) == 3 * 63
    for total in (None, 10**6):
        assert fit_bins(X, "kmeans", 63, total_bins=total) == fit_bins(X, "kmeans", 63)
    assert fit_bins(summarize(X, y=y), "auto", 255, total_bins=189) == bins


def test_what_is_lost_is_what_its_value_says():
    x = np.array([NormalDist().inv_cdf((i + 0.5) / 30_000) for i in range(30_000)])
    summary = ColumnSummary(x)
    for max_bins in (64, 128):
        codes = np.searchsorted(optimal(summary, max_bins), x)
        lost = sum(x[codes == c].var() * (codes == c).mean() for c in range(max_bins)) / x.var()
        assert lost == pytest.approx(bin_value(summary) ** 3 / (12 * max_bins**2), rel=0.1)
    assert bin_value(ColumnSummary(np.ones(9))) == bin_value(ColumnSummary([])) == 0


def test_a_column_that_is_mostly_missing_gets_fewer_bins():
    x, y = skewed(20_000), np.log(skewed(20_000))
    X = {"whole": x, "rest": np.where(np.arange(20_000) % 100 == 0, x, np.nan)}
    for target in (None, y):
        whole, rest = fit_bins(X, "kmeans", y=target, total_bins=120).n_bins
        assert whole > 1.25 * rest
    assert bin_value(ColumnSummary(X["rest"])) == pytest.approx(
        0.01 ** (1 / 3) * bin_value(ColumnSummary(X["rest"][::100])), rel=1e-9
    )


@pytest.mark.parametrize("total", [3, 0, -1, 12.5, True, "many"])
def test_a_bad_total_is_refused(total):
    with pytest.raises(
        ValueError, match='total_bins must be "auto", or a whole number, at least 2 for each of 2 columns'
    ):
        fit_bins(np.column_stack([skewed(4000), skewed(4000)]), total_bins=total)
