"""A total of bins, shared by columns."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from boostbins import (
    METHODS,
    Binner,
    Bins,
    ColumnSummary,
    TableSummary,
    _core,
    fit_bins,
    optimal,
    summarize,
)
from boostbins.methods.budget import (
    Needs,
    Total,
    _points,
    allocate_bins,
    bin_value,
    needs_by_target,
    needs_in_proportion,
)
from tests import naive
from tests.conftest import skewed

# ---- a total for all columns


@given(
    st.lists(st.tuples(st.integers(2, 400), st.floats(0, 1e300)), min_size=1, max_size=30),
    st.integers(0, 5000),
)
@example([(123, 1e-9), (255, 1e300), (132, 0.0), (121, 5e-324)], 400)
def test_a_total_is_shared_by_what_columns_can_use(columns, total):
    most, bin_values = [m for m, _ in columns], [w for _, w in columns]
    if total < 2 * len(most):
        with pytest.raises(ValueError, match='total_bins must be "auto", or a whole number, at least 2 for each'):
            Total(total).of(len(most))
        return
    bins = allocate_bins(Total(total).of(len(most)), most, needs_in_proportion(bin_values))
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
    "flag": lambda r, n: r.random(n) < 0.3,
    "constant": lambda r, n: np.full(n, 7.0),
    "all missing": lambda r, n: np.full(n, np.nan),
    "half missing": lambda r, n: np.where(r.random(n) < 0.5, np.nan, r.normal(size=n)),
    "mostly zero": lambda r, n: np.where(r.random(n) < 0.9, 0.0, r.lognormal(0, 2, n)),
    "ties": lambda r, n: np.round(r.normal(size=n), 1),
    "lognormal": lambda r, n: r.lognormal(0, 2, n),
    "infinite": lambda r, n: np.where(r.random(n) < 0.1, np.inf, r.normal(size=n)),
    "huge": lambda r, n: r.choice([-1.7e308, 1.7e308, 0.0, 1.0, 3e307], n),
    "subnormal": lambda r, n: r.integers(-3, 9, n) * 5e-324,
    "large integers": lambda r, n: r.integers(2**53, 2**53 + 400, n),
    "dates": lambda r, n: np.datetime64("2024-01-01", "s") + r.integers(0, 10**7, n),
    "text": lambda r, n: r.choice(np.array(["a", "b"], object), n),
}

# Whole numbers, whose sums are the same in every order.
TARGETS = {
    "none": lambda r, n: None,
    "number": lambda r, n: r.integers(-20, 20, n),
    "constant": lambda r, n: np.ones(n),
    "flags": lambda r, n: r.random(n) < 0.3,
    "text": lambda r, n: r.choice(["a", "b", "c"], n),
    "heavy tail": lambda r, n: 2.0 ** r.integers(0, 40, n) * (r.random(n) < 0.1),
    "several": lambda r, n: r.integers(0, 5, (n, 3)),
}
WEIGHTS = {
    "none": lambda r, n: None,
    "whole": lambda r, n: r.integers(0, 4, n) + (np.arange(n) == 0),
    "on one row": lambda r, n: np.where(np.arange(n) == r.integers(0, n), 3.0, 0.0),
}


@st.composite
def asked_tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(TABLE_COLUMNS)), min_size=1, max_size=6))
    n, r = draw(st.sampled_from([1, 2, 3, 40, 500])), np.random.default_rng(draw(st.integers(0, 99)))
    X = pd.DataFrame({f"{i} {kind}": TABLE_COLUMNS[kind](r, n) for i, kind in enumerate(kinds)})
    y = TARGETS[draw(st.sampled_from(sorted(TARGETS)))](r, n)
    weight = WEIGHTS[draw(st.sampled_from(sorted(WEIGHTS)))](r, n)
    width = max(sum(kind != "text" for kind in kinds), 1)
    asked = draw(
        st.sampled_from([{"total_bins": 2 * width + more} for more in (0, 1, 7, 100, 5000)])
        | st.sampled_from([{"average_bins": average} for average in (2, 2.5, 9, 63.0, 300)])
        | st.just({"total_bins": "auto"})
    )
    limit = draw(st.sampled_from([{}, {"max_bins": 2}, {"max_bins": 100}]))
    return X, y, weight, {"method": draw(st.sampled_from(sorted(METHODS))), **asked, **limit}


def finite_values(X, name, weight):
    x = X[name].to_numpy().astype(np.float64)
    return x[np.isfinite(x) & (True if weight is None else weight > 0)]


@given(asked_tables())
def test_a_total_is_shared_by_tables_of_mixed_columns(given):
    X, y, weight, asked = given
    read = {"non_numeric": "skip", "dates_as_numbers": True}
    names = [name for name in X if "text" not in name]
    if not names:
        with pytest.raises(ValueError, match="X has no numeric columns"):
            fit_bins(X, sample_weight=weight, y=y, **asked, **read)
        return
    if asked.get("total_bins") == "auto" and y is None:
        with pytest.raises(ValueError, match='total_bins="auto" needs a target, .*: give y, or a number'):
            fit_bins(X, sample_weight=weight, y=y, **asked, **read)
        return
    bins = fit_bins(X, sample_weight=weight, y=y, **asked, **read)
    assert list(bins.names) == list(bins.shares) == names
    shares = bins.shares.values()
    assert sum(share.value for share in shares) == pytest.approx(1)
    assert {share.by for share in shares} == {"spread" if y is None else "target"}
    useful, given_bins = (sum(getattr(share, part) for share in shares) for part in ("useful", "bins"))
    total = asked.get("total_bins", int(asked.get("average_bins", 0) * len(names)))
    if total == "auto":
        assert given_bins == useful or 32 * len(names) <= given_bins <= 255 * len(names)
    else:
        assert given_bins == min(total, useful)
        assert sum(bins.n_bins) <= total
    for name, n_bins, share in zip(names, bins.n_bins, shares, strict=True):
        distinct = len(np.unique(finite_values(X, name, weight)))
        useful = max(min(distinct, asked.get("max_bins", 4095)), 2)
        assert share.useful == useful or (y is not None and 255 <= share.useful < useful)
        assert max(n_bins, 2) <= share.bins <= share.useful
        alone = fit_bins(X[[name]], asked["method"], share.bins, weight, y=y, **read)
        assert alone[name].tobytes() == bins[name].tobytes()


@given(asked_tables(), st.integers(0, 99))
def test_a_total_is_shared_alike_whatever_the_rows_came_in(given, seed):
    X, y, weight, asked = given
    n, r = len(X), np.random.default_rng(seed)
    X = X[[name for name in X if "text" not in name]]
    if X.shape[1] == 0 or (asked.get("total_bins") == "auto" and y is None) or (y is not None and y.dtype.kind == "U"):
        return
    read = {"dates_as_numbers": True}
    whole = fit_bins(X, sample_weight=weight, y=y, **asked, **read)

    def check(found):
        assert found == whole
        assert found.shares == whole.shares

    def rows(of, chosen):
        return None if of is None else of[chosen]

    mixed = r.permutation(n)
    check(fit_bins(X.iloc[mixed], sample_weight=rows(weight, mixed), y=rows(y, mixed), **asked, **read))
    summary = summarize(X, weight, y=y, **read)
    check(fit_bins(TableSummary.from_bytes(summary.to_bytes()), **asked))
    ends = sorted({0, n, *r.integers(0, n + 1, 2).tolist()})
    parts = [slice(*ends) for ends in pairwise(ends)]
    check(fit_bins(iter([X[part] for part in parts]), sample_weight=weight, y=y, **asked, **read))
    counted = [part for part in parts if weight is None or weight[part].any()]
    summaries = [summarize(X[part], rows(weight, part), y=rows(y, part), **read) for part in counted]
    check(fit_bins(reduce(add, [summaries[i] for i in r.permutation(len(summaries))]), **asked))


@pytest.mark.parametrize("seed", range(20))
def test_shares_are_parts_of_one_and_can_be_written(seed):
    r = np.random.default_rng(seed)
    for X in (r.normal(size=(50, 1)), np.column_stack([r.normal(size=50), np.ones((50, 2))])):
        bins = fit_bins(X, max_bins=3, average_bins=16)
        assert all(0 <= share.value <= 1 for share in bins.shares.values())
        assert Bins.from_json(bins.to_json()).shares == bins.shares


def test_one_column_gets_all_and_more_columns_than_bins_are_refused():
    r = np.random.default_rng(0)
    X, y = r.normal(size=(500, 1)), r.normal(size=500)
    for asked in ({"total_bins": 40}, {"average_bins": 40}):
        assert fit_bins(X, y=y, **asked) == fit_bins(X, max_bins=40)
    wide = r.normal(size=(30, 60))
    with pytest.raises(ValueError, match=r"at least 2 for each of 60 columns, got 100"):
        fit_bins(wide, y=y[:30], total_bins=100)
    assert fit_bins(wide, y=y[:30], total_bins=120).n_bins == (2,) * 60
    with pytest.raises(
        ValueError, match="total_bins='auto' and average_bins=9 contradict each other: give one of them"
    ):
        fit_bins(X, y=y, total_bins="auto", average_bins=9)


def test_a_noisy_step_takes_few_bins_and_what_has_no_noise_takes_many():
    found = []
    for seed in range(3):
        r = np.random.default_rng(seed)
        X, noise = r.normal(size=(6000, 4)), r.normal(size=6000)
        targets = (X[:, 0] > 0) + noise, X.sum(axis=1) + noise, X.sum(axis=1)
        found.append([sum(fit_bins(X, y=y, total_bins="auto").n_bins) / 4 for y in targets])
    step, noisy, exact = np.mean(found, axis=0)
    assert 32 <= step < 63 < noisy < 160 < exact <= 255


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


def test_a_column_whose_every_value_has_its_own_effect_gets_a_bin_for_each():
    r = np.random.default_rng(0)
    day, smooth = r.integers(0, 600, 20_000), r.normal(size=20_000)
    X = np.column_stack([day, smooth, r.normal(size=(20_000, 2))])
    y = r.normal(size=600)[day] + smooth
    bins = fit_bins(X, y=y, average_bins=200)
    assert bins.n_bins[0] > 500
    assert bins.n_bins[1] < 200
    # At a smooth effect of the same size bins are shared about evenly by both.
    alike = fit_bins(X, y=np.sin(day / 100) * 1.5 + smooth, average_bins=200).n_bins
    assert alike[0] < 2 * alike[1]


def test_where_few_rows_are_most_of_the_target_no_column_gets_more_than_usual():
    r = np.random.default_rng(0)
    X = r.normal(size=(6000, 2))
    y = X[:, 0] + np.where(np.arange(6000) % 600 == 0, 1e4 * r.random(6000), 0.0)
    tail = fit_bins(X, y=y, average_bins=1000)
    assert tail.n_bins == (255, 255)
    for share in tail.shares.values():
        assert share.useful == 255
        assert share.why.startswith("as many as it can use")
    assert max(fit_bins(X, y=X[:, 0], average_bins=1000).n_bins) > 1000
    assert fit_bins(X, y=y, max_bins=63, average_bins=1000).n_bins == (63, 63)
    shares = [1e4, *[1.0] * 299]  # one row is most of it: 1.06 rows by Kish's count, then 1,200 when evenly spread
    for parts, supported in ((shares, 255), (np.ones(1200), 16 * 1200)):
        sign = np.where(np.arange(len(parts)) % 2, 1.0, -1.0)
        sample = summarize({"x": np.arange(len(parts))}, y=sign * np.sqrt(parts)).rows
        assert needs_by_target(sample, [65_535]).most == [pytest.approx(supported, abs=1)]


@given(
    st.lists(st.lists(st.tuples(st.floats(-3, 8), st.floats(-9, 9)), min_size=4, max_size=4), min_size=1, max_size=4),
    st.floats(-30, 30),
)
def test_the_number_of_bins_where_one_more_gains_so_much_lies_on_the_curve(columns, gain):
    curves = [(sorted({x for x, _ in c}), sorted({y for _, y in c}, reverse=True)) for c in columns]
    kept = [min(map(len, curve)) for curve in curves]
    points = [
        [curve[i][:k] + [curve[i][k - 1]] * (4 - k) for i in (0, 1)] for curve, k in zip(curves, kept, strict=True)
    ]
    found = Needs(np.ones(len(columns)), np.array(points)).bins_where_one_more_gains(gain)
    for bins, (sizes, gains) in zip(found, points, strict=True):
        if gain > gains[0]:
            expected = sizes[0] - (gain - gains[0]) / 3
        elif gain <= gains[-1]:
            expected = sizes[-1] + (gains[-1] - gain) / 3
        else:
            expected = np.interp(-gain, -np.array(gains), sizes)
        assert np.log(bins) == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=11), st.integers(1, 1024), st.integers(2, 4095))
def test_what_one_more_bin_gains_falls(gains, n_codes, useful):
    """Whatever the pilot's gains are: sizes go up, what one more gains goes down, and both are numbers."""
    sizes, falls = _points(np.array(sorted(gains, reverse=True)), n_codes, useful)
    assert np.isfinite(sizes).all()
    assert np.isfinite(falls).all()
    for (a, x), (b, y) in pairwise(zip(sizes, falls, strict=True)):
        assert (a, x) == (b, y) or (a < b and x > y)


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


# ---- the pilot


levels = st.sampled_from([0.0, -0.0, 1.0, 2.0, 2.0, 5e-324, 1e308, -1e308, np.inf, -np.inf, np.nan])


@given(
    arrays(np.float64, st.tuples(st.integers(0, 3), st.integers(0, 40)), elements=st.one_of(levels, st.floats())),
    st.integers(1, 12),
)
def test_codes_number_the_values_or_groups_of_them(values, most):
    assert _core.rank_codes(values, most).tolist() == naive.rank_codes(values, most)


def test_codes_need_room():
    for most in (0, 65_536):
        with pytest.raises(ValueError, match="needs room"):
            _core.rank_codes(np.zeros((1, 3)), most)


@st.composite
def pilots(draw):
    n_columns, n_rows, n_targets = draw(st.integers(0, 3)), draw(st.integers(1, 14)), draw(st.integers(0, 3))
    codes = draw(arrays(np.uint16, (n_columns, n_rows), elements=st.integers(0, 9)))
    whole = st.integers(-3, 3).map(float)
    targets = draw(arrays(np.float64, (n_rows, n_targets), elements=st.one_of(whole, st.floats(-1, 1))))
    weight = st.one_of(st.sampled_from([0.0, 1.0, 1.0, 2.0]), st.floats(0, 1))
    weights = draw(arrays(np.float64, n_rows, elements=weight))
    least = draw(st.sampled_from([0.0, 0.5, 1.0, 3.0, 99.0]))
    return codes, targets, weights, draw(st.integers(0, 4)), draw(st.integers(0, 6)), draw(st.floats(0, 1)), least


NO_COLUMNS = (np.zeros((0, 3), np.uint16), np.arange(3.0)[:, None], np.ones(3), 2, 3, 0.5, 1.0)
WEIGHTLESS_PART = (
    np.array([[0, 1, 0]], np.uint16), np.eye(3)[:, 1:2], np.array([1, 1e-63, 0]), 1, 2, 0.0, 0.0,
)  # fmt: skip


TWO_TREES = (
    np.eye(9, dtype=np.uint16)[:1], np.column_stack([np.zeros(9), np.eye(9)[8]]), np.ones(9), 2, 2, 0.0, 0.0,
)  # fmt: skip


@given(pilots())
@example(NO_COLUMNS)
@example(WEIGHTLESS_PART)
@example(TWO_TREES)
def test_the_pilot_is_what_its_definition_says(given):
    columns, gains, left = _core.pilot(*given)
    expected_columns, expected_gains, expected_left = naive.pilot(*given)
    assert columns.tolist() == expected_columns
    assert gains.tolist() == expected_gains
    np.testing.assert_array_equal(left, np.array(expected_left).reshape(left.shape))


@given(st.integers(0, 99), st.integers(1, 3))
def test_a_split_gains_what_the_squares_fall_by(seed, n_targets):
    r = np.random.default_rng(seed)
    values, targets, weights = r.integers(0, 9, (3, 40)).astype(float), r.normal(size=(40, n_targets)), r.random(40)
    columns, found, left = _core.pilot(values.astype(np.uint16), targets, weights, 1, 6, 1.0, 0.5)
    gains = found[:, 0]

    def squares(rest):
        return (weights[:, None] * rest**2).sum()

    mean = np.average(targets, axis=0, weights=weights)
    assert gains.sum() == pytest.approx(squares(targets - mean) - squares(left))
    falls = []
    for column in values:
        for value in np.unique(column)[1:]:
            parts = [np.flatnonzero(column < value), np.flatnonzero(column >= value)]
            if min(weights[part].sum() for part in parts) >= 0.5:
                means = np.empty_like(targets)
                for part in parts:
                    means[part] = np.average(targets[part], axis=0, weights=weights[part])
                falls.append(squares(targets - mean) - squares(targets - means))
    assert gains[0] == pytest.approx(max(falls))
    assert len(columns) == 5


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 1e308])
@pytest.mark.parametrize("where", ["targets", "weights"])
@pytest.mark.parametrize("least", [0.0, 1.0, np.nan])
def test_a_pilot_of_what_cannot_be_added_up_ends(odd, where, least):
    r = np.random.default_rng(0)
    given = {"targets": r.normal(size=(50, 2)), "weights": np.ones(50)}
    given[where][7] = odd
    codes = r.integers(0, 50, (2, 50)).astype(np.uint16)
    columns, gains, left = _core.pilot(codes, given["targets"], given["weights"], 3, 5, 0.5, least)
    assert len(columns) == len(gains)
    assert (columns < 2).all()
    assert left.shape == (50, 2)


@pytest.mark.parametrize(
    ("values", "targets", "weights"),
    [
        (np.zeros((2, 0)), np.zeros((0, 1)), np.zeros(0)),
        (np.zeros((2, 3)), np.zeros((2, 1)), np.zeros(3)),
        (np.zeros((2, 3)), np.zeros((3, 1)), np.zeros(4)),
    ],
)
def test_a_pilot_needs_rows_with_targets_and_weights(values, targets, weights):
    with pytest.raises(ValueError, match="needs rows, and for each its targets and its weight"):
        _core.pilot(values.astype(np.uint16), targets, weights, 1, 2, 0.1, 1.0)
