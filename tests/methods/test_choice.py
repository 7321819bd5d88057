"""auto: the cuts that the target asks for."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

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
    summarize,
    supervised,
)
from boostbins.methods import FEW_BINS, find_cuts, looks_at_target
from boostbins.methods.budget import bin_value
from boostbins.methods.choice import BEYOND_CHANCE
from boostbins.methods.density import MIXTURES
from tests import naive
from tests.conftest import skewed

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
        x, y = skewed(4000, seed=seed), np.random.default_rng(seed + 100).normal(size=4000)
        cuts, choice = chosen(x, y)
        lead = {n: choice.explained[n] - choice.explained[choice.usual] for n in choice.noise}
        beyond = [name for name, gain in lead.items() if gain > BEYOND_CHANCE * choice.noise[name]]
        assert (choice.chosen == "hybrid") == (not beyond)
        assert choice.chosen in [*beyond, "hybrid"]
        assert len(cuts) == 62


def test_by_chance_alone_hardly_ever_another_is_taken():
    taken = [chosen(skewed(4000, seed=s), np.random.default_rng(s + 500).normal(size=4000)).choice for s in range(60)]
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
    x = skewed(4000)
    weight = np.where(np.arange(4000) % 2, least, most)
    y = np.log(x) + np.random.default_rng(0).normal(size=4000)
    bins = fit_bins(x[:, None], method, 63, weight, y=y)
    assert len(bins[0]) == 62
    assert Bins.from_json(bins.to_json()) == bins


def test_a_target_that_lives_in_the_bulk_gets_bins_there_and_one_in_the_tail_gets_them_there():
    x = skewed(20_000)
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
    x, y = skewed(4000), np.random.default_rng(1).normal(size=4000)
    assert chosen(x, y, FEW_BINS).choice.usual == "kmeans"
    assert chosen(x, y, FEW_BINS + 1).choice.usual == "hybrid"
    quiet = next(
        c for s in range(20) if (c := chosen(x, np.random.default_rng(s).normal(size=4000), 16))[1].chosen == "kmeans"
    )
    summary = ColumnSummary(x)
    np.testing.assert_array_equal(np.searchsorted(quiet.cuts, x), np.searchsorted(kmeans(summary, 16), x))


def test_it_explains_itself():
    x = skewed(4000)
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
    x = skewed(4000)
    assert fit_bins(x[:, None], "auto", 63) == fit_bins(x[:, None], "hybrid", 63)


def test_a_constant_target_says_nothing():
    x = skewed(4000)
    for y in (np.ones(4000), np.full(4000, 0.1) * 3, np.full(4000, 1e100)):
        bins = fit_bins(x[:, None], "auto", 63, y=y)
        assert bins == fit_bins(x[:, None], "hybrid", 63)
        assert bins.choices["x0"].why.startswith("the target is constant")


@pytest.mark.parametrize("total_bins", [None, 40])
@pytest.mark.parametrize("exponent", [-500, 500])
def test_the_scale_of_the_target_does_not_count(exponent, total_bins):
    X = np.column_stack([skewed(4000), skewed(4000, seed=1)])
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
    x, y = skewed(4000), np.log(skewed(4000))
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
    x = skewed(4000)
    y = (np.log(x) > 0.3).astype(int)
    number = fit_bins(x[:, None], "auto", 63, y=y)
    for classes in (np.where(y == 1, "yes", "no"), np.where(y == 1, "yes", "no").astype(object), y.astype(bool)):
        assert fit_bins(x[:, None], "auto", 63, y=classes) == number


def test_classes_are_told_apart_not_ranked():
    x = skewed(4000)
    which = np.digitize(np.log(x), [-3, -1, 0, 1, 3])  # of 6
    names = np.array(["f", "a", "d", "b", "e", "c"])[which]
    choice = fit_bins(x[:, None], "auto", 63, y=names).choices["x0"]
    assert choice.explained["quantile"] > 0.8  # as numbers in the order of their names they would not be
    many = fit_bins(x[:, None], "auto", 63, y=np.array([f"{i:03}" for i in range(100)])[np.arange(4000) % 100])
    assert len(many[0]) == 62
    alone = np.where(np.arange(4000) == 7, "once", names)
    assert len(fit_bins(x[:, None], "auto", 63, y=alone)[0]) == 62


def test_numbers_may_come_as_objects():
    x = skewed(4000)
    y = np.round(np.log(x), 3)
    expected = fit_bins(x[:, None], "auto", 63, y=y)
    for same in (y.astype(object), np.array([Decimal(str(v)) for v in y]), y[:, None], pd.DataFrame({"y": y})):
        assert fit_bins(x[:, None], "auto", 63, y=same).choices == expected.choices
    names = np.where(y > 0, "a", "b")
    assert fit_bins(x[:, None], "auto", 63, y=pd.DataFrame({"y": names})) == fit_bins(x[:, None], "auto", 63, y=names)


def test_a_target_may_be_a_column_of_the_table():
    x = skewed(4000)
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
        summarize({"x": skewed(2)}, y=["a", "b"])
    x, labels = skewed(4000), np.array(list("abcd"))[np.arange(4000) % 4]
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
        fit_bins(skewed(4000)[:, None], "auto", y=y)


def test_all_weight_on_one_row_leaves_nothing_to_cut():
    weight = np.zeros(4000)
    weight[7] = 1
    assert fit_bins(skewed(4000)[:, None], "auto", 63, weight, y=np.arange(4000)).n_bins == (1,)


def test_a_function_of_ones_own_may_choose_and_look():
    @supervised
    def mine(summary, max_bins):
        assert summary.has_target
        return auto(summary, max_bins)

    x = skewed(4000)
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
