"""Cuts by densities: hybrid, auto, and the sharing of a total."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from statistics import NormalDist

import naive
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boostbins import (
    METHODS,
    Binner,
    Bins,
    Choice,
    ColumnSummary,
    auto,
    fit_bins,
    hybrid,
    kmeans,
    optimal,
    summarize,
    supervised,
)
from boostbins.methods import FEW_BINS, find_cuts, looks_at_target
from boostbins.methods.budget import allocate_bins, bin_value
from boostbins.methods.choice import BEYOND_CHANCE
from boostbins.methods.density import MIXTURES, placed_gaps


def lognormal(n=4000, seed=0):
    return np.random.default_rng(seed).lognormal(0, 2, n)


# ---- where cuts are placed

masses = st.lists(st.integers(0, 1000), min_size=3, max_size=40).filter(lambda m: sum(map(bool, m)) > 2)


@given(masses, st.integers(1, 38))
def test_cuts_are_placed_as_by_definition(density, n_cuts):
    n_cuts = min(n_cuts, sum(map(bool, density)) - 1)
    expected = naive.placed(density, n_cuts)
    found = placed_gaps(np.array(density, float), n_cuts + 1)
    assert len(found) == n_cuts
    held = np.cumsum([0, *density])
    # Where a wanted share ends just at a gap's end, rounding decides between it and the next that holds anything.
    for got, want in zip(found, expected, strict=True):
        assert got == want or held[max(got, want)] == held[min(got, want) + 1] or abs(got - want) == 1


def test_placing_ends_where_rounding_fills_a_gap_in_every_other_round():
    # With the gaps of 0.4 full, 3 cuts are left for 1.2: a gap of 0.4 is worth just 1, or by rounding a bit more.
    density = np.array([4, 4, 4, 2, 3, 3, 3, 1]) / 10
    assert len(placed_gaps(density, 7)) == 6


@given(
    st.lists(st.integers(-50, 50), min_size=8, max_size=300).filter(lambda x: len(set(x)) > 5),
    st.integers(2, 60),
    st.data(),
)
def test_hybrid_spends_all_bins_and_keeps_near_to_quantiles(values, max_bins, data):
    scale = data.draw(st.sampled_from([1, 1e-300, 1e300]))
    x = np.array(values, float) ** 3 * scale
    counts = dict(zip(*np.unique(x, return_counts=True), strict=True))
    cuts = find_cuts(ColumnSummary(x), hybrid, max_bins)
    assert len(cuts) == min(max_bins, len(counts)) - 1
    if len(counts) <= max_bins:
        return
    each = np.array(list(counts))
    for code in range(max_bins):
        held = each[np.searchsorted(cuts, each) == code]
        rows = [counts[v] for v in held]
        inside = sum(rows) - (rows[0] + rows[-1]) / 2
        assert len(held) == 1 or inside <= (4 / 3) * len(x) / (max_bins - 1) * (1 + 1e-9)


def test_hybrid_reaches_into_the_tail_where_quantiles_do_not():
    x = np.append(np.random.default_rng(0).normal(size=10_000), [1e3, 2e3, 3e3, 4e3])
    tail = fit_bins(x[:, None], "hybrid", 32).encode(x[:, None])[-4:, 0]
    assert len(set(tail.tolist())) >= 3
    assert len(set(fit_bins(x[:, None], "quantile", 32).encode(x[:, None])[-4:, 0].tolist())) == 1


# ---- what is chosen


def chosen(x, y, max_bins=63, weight=None):
    summary = ColumnSummary(x, weight, y)
    return auto(summary, max_bins)


def test_the_scores_are_variances_between_bins_and_the_noise_is_that_of_the_projections():
    r = np.random.default_rng(0)
    x, weight = np.round(r.lognormal(0, 1, 90), 2), r.integers(1, 4, 90).astype(float)
    y = np.log(x) + r.normal(size=90)
    candidates = {}
    for name in MIXTURES:
        only = {"hybrid": MIXTURES[name]}  # the usual one, made to be this one
        with pytest.MonkeyPatch.context() as patch:
            for key in list(MIXTURES):
                patch.setitem(MIXTURES, key, MIXTURES[key])
            patch.setitem(MIXTURES, "hybrid", only["hybrid"])
            patch.setattr("boostbins.methods.choice.BEYOND_CHANCE", 1e9)
            candidates[name] = np.searchsorted(chosen(x, y, 40, weight).cuts, x)
    _, choice = chosen(x, y, 40, weight)
    values = np.unique(x)
    held = [(weight[x == v].sum(), (x == v).sum()) for v in values]
    w = weight * weight.sum() / sum(total**2 / rows for total, rows in held)  # add up to the effective number of rows
    centered = y - np.average(y, weights=w)
    total = (w * centered**2).sum()
    coordinates = np.sqrt(w) * centered
    usual = naive.projection(candidates["hybrid"], w)
    within = (total - coordinates @ usual @ coordinates) / (w.sum() - len(set(candidates["hybrid"])))
    for name, codes in candidates.items():
        other = naive.projection(codes, w)
        between = coordinates @ other @ coordinates - within * (len(set(codes)) - 1)
        assert choice.explained[name] == pytest.approx(between / total, abs=1e-9)
        if name != "hybrid":
            difference = usual - other
            noise = within * np.sqrt(2 * np.trace(difference @ difference)) / total
            assert choice.noise[name] == pytest.approx(noise, rel=1e-6, abs=1e-9)


def test_another_is_taken_only_beyond_chance():
    for seed in range(20):
        x, y = lognormal(seed=seed), np.random.default_rng(seed + 100).normal(size=4000)
        cuts, choice = chosen(x, y)
        lead = {n: choice.explained[n] - choice.explained[choice.usual] for n in choice.noise}
        beyond = [name for name, gain in lead.items() if gain > BEYOND_CHANCE * choice.noise[name]]
        assert (choice.chosen == "hybrid") == (not beyond)
        assert choice.chosen in [*beyond, "hybrid"]
        assert len(cuts) == 62


def test_by_chance_alone_hardly_ever_another_is_taken():
    taken = [chosen(lognormal(seed=s), np.random.default_rng(s + 500).normal(size=4000)).choice for s in range(60)]
    assert sum(choice.chosen != choice.usual for choice in taken) <= 3


@pytest.mark.parametrize(
    "weigh", [lambda r: np.where(r.random(1500) < 0.1, 10.0, 1.0), lambda r: r.lognormal(0, 2.5, 1500)]
)
def test_nor_where_few_rows_have_most_of_the_weight(weigh):
    taken = []
    for seed in range(60):
        r = np.random.default_rng(seed)
        taken.append(chosen(r.lognormal(0, 2, 1500), r.normal(size=1500), weight=weigh(r)).choice)
    assert sum(choice.chosen != choice.usual for choice in taken) <= 3


@pytest.mark.parametrize("method", ["hybrid", "auto"])
@pytest.mark.parametrize("least", [1e-320, 1e-310, 1e-300, 1.0])
@pytest.mark.parametrize("most", [1e-312, 1.0, 1e20, 1e300])
def test_weights_of_any_size_are_fine(method, least, most):
    x = lognormal()
    weight = np.where(np.arange(4000) % 2, least, most)
    y = np.log(x) + np.random.default_rng(0).normal(size=4000)
    bins = fit_bins(x[:, None], method, 63, weight, y=y)
    assert len(bins[0]) == 62
    assert Bins.from_json(bins.to_json()) == bins


def test_a_target_that_lives_in_the_bulk_gets_bins_there_and_one_in_the_tail_gets_them_there():
    x = lognormal(20_000)
    noise = 0.01 * np.random.default_rng(1).normal(size=len(x))
    bulk, tail = chosen(x, np.log(x) + noise, 16), chosen(x, x + noise, 16)
    assert np.median(bulk.cuts) < 10 < np.median(tail.cuts)
    assert bulk.choice.chosen != "kmeans"
    within = {}
    for name, cuts in {"auto": bulk.cuts, "kmeans": kmeans(ColumnSummary(x), 16)}.items():
        codes = np.searchsorted(cuts, x)
        within[name] = sum(np.log(x)[codes == c].var() * (codes == c).sum() for c in set(codes))
    assert within["auto"] < 0.2 * within["kmeans"]


def test_up_to_few_bins_the_usual_one_is_kmeans():
    x, y = lognormal(), np.random.default_rng(1).normal(size=4000)
    assert chosen(x, y, FEW_BINS).choice.usual == "kmeans"
    assert chosen(x, y, FEW_BINS + 1).choice.usual == "hybrid"
    quiet = next(
        c for s in range(20) if (c := chosen(x, np.random.default_rng(s).normal(size=4000), 16))[1].chosen == "kmeans"
    )
    summary = ColumnSummary(x)
    np.testing.assert_array_equal(np.searchsorted(quiet.cuts, x), np.searchsorted(kmeans(summary, 16), x))


def test_it_explains_itself():
    x = lognormal()
    bins = fit_bins({"x": x, "few": np.round(x) % 5}, "auto", 63, y=np.log(x))
    assert set(bins.choices) == {"x"}
    choice = bins.choices["x"]
    assert isinstance(choice, Choice)
    assert set(choice.explained) == set(MIXTURES)
    assert "% of the target" in choice.why
    assert Bins.from_json(bins.to_json()).choices == bins.choices
    other = chosen(x, 1e6 * np.log(x) + 5)  # in other units
    assert other.choice.explained == pytest.approx(dict(choice.explained))
    assert fit_bins(x[:, None], "kmeans").choices == {}


def test_without_a_target_it_is_hybrid():
    x = lognormal()
    assert fit_bins(x[:, None], "auto", 63) == fit_bins(x[:, None], "hybrid", 63)


def test_a_constant_target_says_nothing():
    x = lognormal()
    for y in (np.ones(4000), np.full(4000, 0.1) * 3, np.full(4000, 1e100)):
        bins = fit_bins(x[:, None], "auto", 63, y=y)
        assert bins == fit_bins(x[:, None], "hybrid", 63)
        assert bins.choices["x0"].why.startswith("the target is constant")


@pytest.mark.parametrize("total_bins", [None, 40])
@pytest.mark.parametrize("exponent", [-500, 500])
def test_the_scale_of_the_target_does_not_count(exponent, total_bins):
    X = np.column_stack([lognormal(), lognormal(seed=1)])
    y = np.log(X[:, 0]) + np.random.default_rng(0).normal(size=4000)
    expected, bins = (fit_bins(X, "auto", 63, y=target, total_bins=total_bins) for target in (y, y * 2.0**exponent))
    assert bins == expected
    assert bins.choices == expected.choices


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_choice_is_that_of_the_whole_whatever_the_parts(seed, n_parts):
    r = np.random.default_rng(seed)
    x = np.round(r.lognormal(0, 2, 2000), r.integers(0, 4))
    y = np.round(10 * np.log1p(x) + r.normal(size=2000))  # whole targets have exact sums
    part = r.integers(0, n_parts, 2000)
    whole = fit_bins(x[:, None], "auto", 40, y=y)
    added = sum(
        (summarize(x[part == p][:, None], y=y[part == p]) for p in range(1, n_parts)),
        start=summarize(x[part == 0][:, None], y=y[part == 0]),
    )
    assert fit_bins(added, "auto", 40) == whole
    again = np.random.default_rng(0).permutation(2000)
    assert fit_bins(x[again][:, None], "auto", 40, y=y[again]) == whole


def test_weights_count_as_rows_in_the_cuts_and_their_scale_does_not():
    r = np.random.default_rng(0)
    x, y, weight = r.lognormal(0, 2, 1500), r.integers(0, 3, 1500), r.integers(0, 4, 1500)
    repeated = fit_bins(np.repeat(x, weight)[:, None], "hybrid", 40)
    assert fit_bins(x[:, None], "hybrid", 40, weight) == repeated
    for scale in (1e-3, 1e3):
        assert fit_bins(x[:, None], "auto", 40, weight * scale, y=y) == fit_bins(x[:, None], "auto", 40, weight, y=y)


def test_missing_and_infinite_values_have_no_say():
    x, y = lognormal(), np.log(lognormal())
    odd = np.concatenate([x, [np.nan, np.inf, -np.inf]])
    assert fit_bins(odd[:, None], "auto", 63, y=np.append(y, [1e9, 1e9, 1e9])) == fit_bins(x[:, None], "auto", 63, y=y)


def test_a_column_of_crowded_cells_is_cut_too():
    r = np.random.default_rng(0)
    x = np.where(r.random(200_000) < 0.1, 1e15, 1.7e9 + r.integers(0, 10**6, 200_000))  # one cell holds all the times
    y = np.sin(x / 1e5)
    bins = fit_bins(x[:, None], "auto", 63, y=y)
    assert len(np.unique(bins.encode(x[:, None]))) > 40


# ---- classes


def test_texts_are_classes_and_two_of_them_are_a_number():
    x = lognormal()
    y = (np.log(x) > 0.3).astype(int)
    number = fit_bins(x[:, None], "auto", 63, y=y)
    for classes in (np.where(y == 1, "yes", "no"), np.where(y == 1, "yes", "no").astype(object), y.astype(bool)):
        assert fit_bins(x[:, None], "auto", 63, y=classes) == number


def test_classes_are_told_apart_not_ranked():
    x = lognormal()
    which = np.digitize(np.log(x), [-3, -1, 0, 1, 3])  # of 6
    names = np.array(["f", "a", "d", "b", "e", "c"])[which]
    choice = fit_bins(x[:, None], "auto", 63, y=names).choices["x0"]
    assert choice.explained["quantile"] > 0.8  # as numbers in the order of their names they would not be
    many = fit_bins(x[:, None], "auto", 63, y=np.array([f"{i:03}" for i in range(100)])[np.arange(4000) % 100])
    assert len(many[0]) == 62
    alone = np.where(np.arange(4000) == 7, "once", names)
    assert len(fit_bins(x[:, None], "auto", 63, y=alone)[0]) == 62


def test_numbers_may_come_as_objects():
    x = lognormal()
    y = np.round(np.log(x), 3)
    expected = fit_bins(x[:, None], "auto", 63, y=y)
    for same in (y.astype(object), np.array([Decimal(str(v)) for v in y]), y[:, None], pd.DataFrame({"y": y})):
        assert fit_bins(x[:, None], "auto", 63, y=same).choices == expected.choices
    names = np.where(y > 0, "a", "b")
    assert fit_bins(x[:, None], "auto", 63, y=pd.DataFrame({"y": names})) == fit_bins(x[:, None], "auto", 63, y=names)


def test_a_target_may_be_a_column_of_the_table():
    x = lognormal()
    names = np.where(np.log(x) > 0.3, "yes", "no")
    expected = fit_bins({"x": x}, "auto", 63, y=names)
    columns = {"x": x, "more": x, "answer": names}
    for table in (columns, pd.DataFrame(columns), pa.table(columns)):
        assert fit_bins(table, "auto", 63, y="answer", columns=["x"]) == expected
        assert fit_bins(table, "auto", 63, y=names, columns=["x"]) == expected
        assert fit_bins(table, "auto", 63, y=np.eye(2)[(names == "yes").astype(int)], columns=["x"]).names == ("x",)
        with pytest.raises(ValueError, match="y: there is no column 'question'"):
            fit_bins(table, "auto", y="question")
        with pytest.raises(TypeError, match="sample_weight.* 'answer'.* must hold numbers"):
            fit_bins(table, "auto", sample_weight="answer")


def test_classes_of_parts_do_not_add_up_unless_they_are_the_same():
    with pytest.raises(
        TypeError, match=r"y must hold numbers, got dtype <U1: of classes, give whether a row is of each"
    ):
        summarize({"x": lognormal(2)}, y=["a", "b"])
    x, labels = lognormal(), np.array(list("abcd"))[np.arange(4000) % 4]
    flags = labels[:, None] == np.unique(labels)
    assert fit_bins(iter([{"x": x[:7]}, {"x": x[7:]}]), "auto", 63, y=flags) == fit_bins({"x": x}, "auto", 63, y=labels)
    parts = summarize({"x": x[:999]}, y=flags[:999]) + summarize({"x": x[999:]}, y=flags[999:])
    assert fit_bins(parts, "auto", 63) == fit_bins({"x": x}, "auto", 63, y=labels)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.r_[np.nan, np.ones(3999)], "the target has a missing value: remove that row, or fill it in"),
        (np.r_[np.inf, np.ones(3999)], "y must be finite, got inf"),
        (np.full(4000, 1e300), "y has squares that add up to infinity: divide it by its maximum"),
        (np.ones(3), r"y must have one entry per row, shape \(4000,\), got \(3,\)"),
        (np.ones((4000, 17)), "y must have 1 to 16 numbers per row, got 17"),
        (
            np.array([None, "a"] * 2000, object),
            "the target has 2,000 missing values: remove those",
        ),
        (np.array([None, 1] * 2000, object), "the target has 2,000 missing values: remove those rows"),
        (pd.array(["a", pd.NA] * 2000, "string"), "the target has 2,000 missing values: remove those rows"),
        (pd.array([True, pd.NA] * 2000, "boolean"), "the target has 2,000 missing values: remove those rows"),
    ],
)
def test_a_bad_target_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        fit_bins(lognormal()[:, None], "auto", y=y)


def test_all_weight_on_one_row_leaves_nothing_to_cut():
    weight = np.zeros(4000)
    weight[7] = 1
    assert fit_bins(lognormal()[:, None], "auto", 63, weight, y=np.arange(4000)).n_bins == (1,)


def test_a_function_of_ones_own_may_choose_and_look():
    @supervised
    def mine(summary, max_bins):
        assert summary.has_target
        return auto(summary, max_bins)

    x = lognormal()
    bins = fit_bins(x[:, None], mine, 63, y=np.log(x))
    assert bins.choices["x0"].chosen in MIXTURES
    assert bins.observed(x[:, None]).choices == bins.choices

    class Mine:
        def cut(self, summary, max_bins):
            return mine(summary, max_bins)

    for other in (
        partial(mine),
        supervised(partial(lambda summary, max_bins: mine(summary, max_bins))),
        supervised(Mine().cut),
    ):
        assert looks_at_target(other)
        assert Binner(other, 63).fit(x[:, None], np.log(x)).bins_ == bins


# ---- a total for all columns


@given(
    st.lists(st.tuples(st.integers(2, 400), st.floats(0, 1e6)), min_size=1, max_size=30),
    st.integers(0, 5000),
)
def test_a_total_is_shared_by_what_columns_can_use(columns, total):
    most, bin_values = [m for m, _ in columns], [w for _, w in columns]
    if total < 2 * len(most):
        with pytest.raises(ValueError, match="total_bins must be a whole number, at least 2 for each"):
            allocate_bins(total, most, bin_values)
        return
    bins = allocate_bins(total, most, bin_values)
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


@given(st.lists(st.tuples(st.integers(-30, 30), st.integers(1, 3)), min_size=3, max_size=14), st.integers(2, 12))
def test_a_weight_is_as_good_as_repeated_rows_to_the_last_bit(rows, max_bins):
    x, weight = np.array(rows, np.float64).T
    weighted, repeated = ColumnSummary(x, weight), ColumnSummary(np.repeat(x, weight.astype(int)))
    for name in ("hybrid", "optimal", "quantile", "uniform"):  # k-means gives an empty cluster a row, whole
        cuts = [find_cuts(summary, METHODS[name], max_bins).tolist() for summary in (weighted, repeated)]
        assert cuts[0] == cuts[1], name
    assert bin_value(weighted) == bin_value(repeated)


def test_a_weight_is_as_good_as_repeated_rows_where_many_cuts_are_as_good():
    weight = np.array([1, 1, 2, 1, 3, 1, 3, 1, 2, 1, 2, 1, 1])
    x = np.arange(13.0)
    assert hybrid(ColumnSummary(x, weight), 12).tolist() == hybrid(ColumnSummary(np.repeat(x, weight)), 12).tolist()


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
    assert flat >= 63 // 2
    assert few == 5
    unsupervised = fit_bins(X, "kmeans", 255, total_bins=3 * 63)
    assert sum(unsupervised.n_bins) == 3 * 63
    for total in (None, 10**6):
        assert fit_bins(X, "kmeans", 63, total_bins=total) == fit_bins(X, "kmeans", 63)
    assert fit_bins(summarize(X, y=y), "auto", 255, total_bins=189) == bins


def test_what_is_lost_is_what_worth_says():
    x = np.array([NormalDist().inv_cdf((i + 0.5) / 30_000) for i in range(30_000)])
    summary = ColumnSummary(x)
    for max_bins in (64, 128):
        codes = np.searchsorted(optimal(summary, max_bins), x)
        lost = sum(x[codes == c].var() * (codes == c).mean() for c in range(max_bins)) / x.var()
        assert lost == pytest.approx(bin_value(summary) ** 3 / (12 * max_bins**2), rel=0.1)
    assert bin_value(ColumnSummary(np.ones(9))) == bin_value(ColumnSummary([])) == 0
    assert bin_value(ColumnSummary(x, target=np.ones(30_000))) == 0


def test_a_column_that_is_mostly_missing_gets_fewer_bins():
    x, y = lognormal(20_000), np.log(lognormal(20_000))
    X = {"whole": x, "rest": np.where(np.arange(20_000) % 100 == 0, x, np.nan)}
    for target in (None, y):
        whole, rest = fit_bins(X, "kmeans", y=target, total_bins=120).n_bins
        assert whole > 1.25 * rest
    assert bin_value(ColumnSummary(X["rest"])) == pytest.approx(
        0.01 ** (1 / 3) * bin_value(ColumnSummary(X["rest"][::100])), rel=1e-9
    )


@pytest.mark.parametrize("total", [3, 0, -1, 12.5, True, "many"])
def test_a_bad_total_is_refused(total):
    with pytest.raises(ValueError, match="total_bins must be a whole number, at least 2 for each of 2 columns"):
        fit_bins(np.column_stack([lognormal(), lognormal()]), total_bins=total)
