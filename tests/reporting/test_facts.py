"""report: what is said of columns and bins is true."""

from __future__ import annotations

import json
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from boostbins import METHODS, ColumnSummary, fit_bins, report
from boostbins.reporting.facts import column_facts, number, percent
from boostbins.sources.request import Request
from boostbins.sources.table import read_table
from tests.conftest import distributions

WITH_DATES = Request(dates_as_numbers=True)


def facts_of(column, y=None, max_bins=(63,)):
    summary = ColumnSummary(column, target=y)
    return column_facts("x", summary, METHODS, max_bins)


@pytest.mark.parametrize("name", distributions(10))
def test_bins_and_costs_are_those_of_fit_bins(name):
    column = distributions(20_000)[name]
    y = column > np.median(column)
    found = report({"x": column}, y, max_bins=[255, 63])
    for max_bins in (255, 63):
        for method in METHODS:
            bins = fit_bins({"x": column}, method, max_bins, y=y)
            binned = found.facts[0].binned[method, max_bins]
            assert np.array_equal(binned.cuts, bins["x"])
            assert binned.lost == bins.costs()["lost"][0]
            assert binned.choice == bins.choices.get("x")


@pytest.mark.parametrize("n_classes", [1, 2, 3, 20])
def test_the_choice_is_that_of_fit_bins_for_classes_too(n_classes):
    r = np.random.default_rng(0)
    x = r.lognormal(0, 2, 3000)
    y = np.array([f"class {i:02}" for i in np.minimum(r.poisson(x), n_classes - 1)])
    found = report({"x": x, "few": np.minimum(x // 1, 3)}, y, max_bins=[63, 15])
    facts = found["x"]
    for max_bins in (63, 15):
        choice = fit_bins({"x": x}, "auto", max_bins, y=y).choices["x"]
        assert facts.binned["auto", max_bins].choice == choice
        told = found.to_dict()["columns"][[f.name for f in found.facts].index("x")]["binned"][str(max_bins)]
        assert told["auto"]["choice"]["why"] == choice.why
        assert told["hybrid"]["choice"] is None
    assert found["few"].binned["auto", 63].choice is None
    shown = found.target.removeprefix("the target = ")
    cuts = facts.binned["quantile", 15].cuts
    share = [np.mean(y[np.searchsorted(cuts, x) == i] == shown) for i in range(len(cuts) + 1)]
    assert facts.binned["quantile", 15].target == pytest.approx(share)
    chosen = found.costs.query("column == 'x' and method == 'auto'")["chosen"]
    assert chosen.tolist() == [facts.binned["auto", n].choice.chosen for n in (63, 15)]


def test_without_a_target_auto_is_hybrid():
    x = {"x": np.random.default_rng(0).lognormal(0, 2, 3000)}
    for methods, left in ((METHODS, list(METHODS)[1:]), (["auto"], ["auto"])):
        found = report(x, methods=methods, max_bins=63)
        assert sorted(found.methods) == sorted({"quantile", "kmeans", *left})
        assert found.notes == ("there is no target, without which auto is hybrid",)
    assert np.array_equal(found["x"].binned["auto", 63].cuts, fit_bins(x, "hybrid", 63)["x"])
    assert report(x, methods=["hybrid"]).notes == ()


@pytest.mark.parametrize("name", distributions(10))
@pytest.mark.parametrize("n", [2_000, 300_000])
def test_histograms_hold_every_row_where_it_is(name, n):
    column = distributions(n)[name]
    for histogram in facts_of(column).histograms:
        assert histogram.weight.sum() == pytest.approx(n)
        below = np.searchsorted(np.sort(column), histogram.edges[1:-1], side="right")
        # Up to 32,768 values are held one by one, others in cells.
        assert np.abs(np.cumsum(histogram.weight)[:-1] - below).max() <= (1e-6 if n == 2_000 else 0.01 * n), (
            histogram.axis
        )


def test_positive_columns_have_a_log_axis_and_others_one_on_both_sides_of_zero():
    r = np.random.default_rng(0)
    positive, both = facts_of(r.lognormal(0, 2, 1000)), facts_of(r.standard_cauchy(1000))
    assert [h.axis for h in positive.histograms] == ["linear", "log"]
    assert [h.axis for h in both.histograms] == ["linear", "symlog"]
    assert all((np.diff(h.edges) > 0).all() for f in (positive, both) for h in f.histograms)


@pytest.mark.parametrize("code", [-9999, 99999, -999, 999, -1, 9999, 65535, 1e30, 998, -99])
@pytest.mark.parametrize("n", [1_000, 200_000])
def test_codes_for_missing_are_spotted(code, n):
    r = np.random.default_rng(0)
    column = np.where(r.random(n) < 0.03, code, r.gamma(2, 10, n))
    (found,) = facts_of(column).sentinels
    assert found.value == code
    assert found.share == pytest.approx(0.03, abs=0.01)


@pytest.mark.parametrize(
    ("ordinary", "codes"),
    [
        (lambda r, n: r.lognormal(10, 1, n), [-9999]),  # incomes: a wide range
        (lambda r, n: r.lognormal(10, 1, n), [-999]),
        (lambda r, n: r.integers(1, 80, n), [997, 998, 999]),
        (lambda r, n: r.integers(1, 60, n), [-99, -98]),
        (lambda r, n: r.integers(18, 70, n), [99]),
        (lambda r, n: r.integers(1, 6, n), [99]),  # answers to a questionnaire
    ],
)
def test_codes_of_questionnaires_and_registers_are_spotted(ordinary, codes):
    r = np.random.default_rng(0)
    column = np.where(r.random(5000) < 0.05, r.choice(codes, 5000), ordinary(r, 5000))
    assert sorted(s.value for s in facts_of(column).sentinels) == sorted(codes)


def test_shares_are_of_all_rows():
    r = np.random.default_rng(0)
    column = np.where(r.random(10_000) < 0.1, -9999, r.lognormal(0, 1, 10_000))
    column[r.random(10_000) < 0.5] = np.nan
    (code,) = facts_of(column).sentinels
    assert code.share == (column == -9999).mean()
    with_infinite = np.append(r.lognormal(0, 3, 7000), [np.inf] * 3000)
    hiding = facts_of(with_infinite).hiding[63]
    inside = (with_infinite > hiding.low) & (with_infinite <= hiding.high)
    assert hiding.share == pytest.approx(inside.mean())


def test_two_codes_are_spotted():
    r = np.random.default_rng(0)
    pick = r.random(5000)
    column = np.where(pick < 0.02, -999, np.where(pick < 0.05, 999, r.standard_normal(5000)))
    assert [s.value for s in facts_of(column).sentinels] == [-999, 999]


@pytest.mark.parametrize(
    "column",
    [
        np.arange(100.0),  # ages up to 99
        np.random.default_rng(0).integers(0, 1000, 50_000),  # up to 999
        np.random.default_rng(0).standard_normal(1000),
        np.random.default_rng(0).lognormal(0, 3, 1000),
        np.append(np.random.default_rng(0).standard_normal(100_000), 9999.0),  # one row is an outlier
        np.random.default_rng(0).integers(-5, 5, 1000),
        np.random.default_rng(0).integers(-1, 6, 1000),
        np.random.default_rng(0).integers(-1, 10, 1000),
        2.0 ** np.random.default_rng(0).integers(0, 9, 1000),
        10.0 ** np.random.default_rng(0).integers(0, 7, 1000),
        np.random.default_rng(0).choice([9.0, 29, 99, 999], 1000),
        np.random.default_rng(0).integers(1900, 2000, 1000),
        np.random.default_rng(0).integers(10_000, 100_000, 5000),  # postal codes
        np.array([0.0, 1.0] * 500),
        np.array([-1.0, 1.0] * 500),
        np.array([3.0] * 100),
        np.array([np.nan] * 100),
    ],
)  # fmt: skip
def test_ordinary_values_are_no_codes(column):
    assert facts_of(column).sentinels == ()


def test_outliers_are_counted():
    r = np.random.default_rng(0)
    column = np.append(r.standard_normal(10_000), [500.0] * 7 + [-400.0] * 3)
    outliers = facts_of(column).outliers
    assert outliers.rows == 10
    assert outliers.share == pytest.approx(10 / 10_010)
    assert facts_of(r.standard_normal(10_000)).outliers is None


def test_a_hidden_tail_is_told_with_what_the_target_does_in_it():
    r = np.random.default_rng(0)
    x = np.where(r.random(20_000) < 0.01, 20 + r.exponential(20, 20_000), r.standard_normal(20_000))
    y = np.where(x > 10, x, 0.0) + 0.1 * r.standard_normal(20_000)
    hiding = facts_of(x, y).hiding[63]
    cuts = fit_bins({"x": x}, "quantile", 63)["x"]
    inside = (x > cuts[-1]) & (x <= x.max())
    assert (hiding.low, hiding.high) == (cuts[-1], x.max())
    assert hiding.share == pytest.approx(inside.mean(), abs=1e-9)
    assert hiding.lost == pytest.approx(
        ((x[inside] - x[inside].mean()) ** 2).sum() / ((x - x.mean()) ** 2).sum(), rel=0.01
    )
    kmeans = fit_bins({"x": x}, "kmeans", 63)["x"]
    assert hiding.cuts_inside == ((kmeans > hiding.low) & (kmeans < hiding.high)).sum()
    which = np.searchsorted(kmeans, x[inside], side="left")
    assert hiding.target == pytest.approx([y[inside][which == b].mean() for b in np.unique(which)])
    within = sum(((y[inside][which == b] - y[inside][which == b].mean()) ** 2).sum() for b in np.unique(which))
    total, n, k = ((y[inside] - y[inside].mean()) ** 2).sum(), inside.sum(), len(np.unique(which))
    assert hiding.target_explained == pytest.approx(1 - within / (n - k) / (total / (n - 1)))  # the adjusted R²
    assert "hides" in hiding.described(63)


def test_a_target_of_noise_explains_nothing():
    r = np.random.default_rng(0)
    x = np.where(r.random(20_000) < 0.02, 20 + r.exponential(20, 20_000), r.standard_normal(20_000))
    assert "target" not in facts_of(x, np.random.default_rng(0).standard_normal(20_000)).hiding[63].described(63)
    explained = [
        facts_of(x, np.random.default_rng(i).standard_normal(20_000)).hiding[63].target_explained for i in range(9)
    ]
    assert np.median(explained) < 0.02


def test_target_means_per_bin_are_those_of_the_rows():
    r = np.random.default_rng(0)
    x, y = r.lognormal(0, 2, 5000), r.standard_normal(5000)
    binned = facts_of(x, y).binned["kmeans", 63]
    which = np.searchsorted(binned.cuts, x, side="left")
    assert binned.target == pytest.approx([y[which == b].mean() for b in range(len(binned.cuts) + 1)])


def test_columns_are_ordered_by_what_kmeans_would_gain():
    r = np.random.default_rng(0)
    table = {"even": r.random(5000), "few": r.integers(0, 5, 5000), "tail": r.lognormal(0, 3, 5000)}
    found = report(table, max_bins=63)
    assert list(found.columns["column"]) == ["tail", "even", "few"]
    gains = [facts.gain(63) for facts in found.facts]
    assert gains == sorted(gains, reverse=True)
    assert "most in 'tail'" in found.verdict
    assert "next to nothing" in report({"few": table["few"]}).verdict


def test_the_same_from_every_kind_of_table():
    r = np.random.default_rng(0)
    frame = pd.DataFrame({"a": r.lognormal(0, 2, 500), "b": r.integers(0, 9, 500), "c": r.choice(["x", "y"], 500)})
    frame["y"] = r.choice(["yes", "no"], 500)
    expected = report(frame, "y").to_dict()
    assert expected["target"] == "y = yes"
    assert expected["notes"] == ["left out (text or categories): 'c'"]
    for table in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert report(table, "y").to_dict() == expected
    numbers = frame[["a", "b"]]
    assert report(numbers.to_numpy()).costs["lost"].tolist() == report(numbers).costs["lost"].tolist()


def test_dates_are_seconds_whatever_their_unit():
    when = pd.Series(pd.date_range("2024-02-29 12:00", periods=50, freq="D"))
    for frame in (
        pd.DataFrame({"t": when}),
        pd.DataFrame({"t": when.astype("datetime64[s]")}),
        pl.DataFrame({"t": when.tolist()}),
        pa.table({"t": pa.array(when, pa.timestamp("ms"))}),
    ):
        table = read_table(frame, WITH_DATES)
        assert np.array_equal(table.read(0), when.astype("datetime64[s]").astype(np.int64))
        assert "seconds since 1970" in report(frame).notes[0]
    days = read_table(
        pa.table({"t": pa.array([19_000, None], pa.date32()), "d": pa.array([5, 6], pa.duration("ms"))}), WITH_DATES
    )
    assert np.array_equal(days.read(0), [19_000 * 86_400, np.nan], equal_nan=True)
    assert days.read(1).tolist() == [0.005, 0.006]


def test_dates_far_away_zoned_and_fine():
    far = pa.table({"t": pa.array([datetime(2020, 1, 1), datetime(9999, 12, 31), None])})
    assert np.array_equal(read_table(far, WITH_DATES).read(0), [1577836800, 253402214400, np.nan], equal_nan=True)
    fine = pa.table({"t": pa.array([1, 1_500_000_001], pa.timestamp("ns"))})
    assert read_table(fine, WITH_DATES).read(0).tolist() == [1e-9, 1.500000001]
    for zoned in (
        pd.DataFrame({"t": pd.to_datetime(["2020-01-01 00:00"]).tz_localize("Europe/Berlin")}),
        pl.DataFrame({"t": [datetime(2020, 1, 1)]}).select(pl.col("t").dt.replace_time_zone("Europe/Berlin")),
    ):
        assert read_table(zoned, WITH_DATES).read(0).tolist() == [1577836800 - 3600]


def test_files_and_streams_are_reported_as_their_tables(tmp_path):
    frame = pd.DataFrame({"a": np.arange(300.0) ** 2, "b": np.arange(300) % 7})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    expected = report(frame, "b")
    parts = [frame[:100], frame[100:]]
    for X in (tmp_path / "t.parquet", str(tmp_path / "t.csv"), [tmp_path / "t.csv"], parts.__iter__, iter(parts)):
        assert report(X, "b").to_dict() == expected.to_dict()


def test_whole_numbers_beyond_what_floats_tell_apart():
    table = pa.table({"id": pa.array([10**18, 10**18 + 1000, None, 5])})
    assert report(table).facts[0].missing == 1
    assert fit_bins(table)["id"][0] > 5


def test_dicts_and_lists_of_columns_with_text():
    table = {"a": np.arange(20.0), "t": np.array(["x", "y"] * 10), "when": np.arange(20).astype("datetime64[D]")}
    found = report(table)
    assert sorted(found.columns["column"]) == ["a", "when"]
    assert report([np.arange(5.0), np.arange(5.0) ** 2], "x1").columns["column"].tolist() == ["x0"]
    assert report(np.arange(10.0)).columns["column"].tolist() == ["x0"]


columns_of_odd_values = st.lists(
    st.one_of(st.floats(), st.sampled_from([0.0, -1.0, 9999.0, np.nan, np.inf, 1e308, -1e308, 5e-324])),
    min_size=1,
    max_size=60,
)


@example([1e-310, -4e58, 2e-249])
@example([5e-324, -1e200])
@given(columns_of_odd_values)
def test_any_column_can_be_told_of_and_written_as_json(column):
    column = np.array(column)
    found = report({"x": column}, np.arange(float(len(column))), max_bins=[63, 2])
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [facts["name"] for facts in written["columns"]] == ["x"]
    assert written["rows"] == len(column)
    assert "\n\nx: " in str(found)
    assert list(found.columns["column"]) == ["x"]
    assert sorted(set(found.costs["max_bins"])) == [2, 63]
    assert found.costs["lost"].between(0, 1).all()


def test_weights_count_as_rows():
    r = np.random.default_rng(0)
    x, weight = r.lognormal(0, 2, 500), r.integers(1, 5, 500)
    by_weight = report({"x": x}, sample_weight=weight, methods=["optimal"], max_bins=31)
    by_rows = report({"x": np.repeat(x, weight)}, methods=["optimal"], max_bins=31)
    assert by_weight.costs["lost"].to_numpy() == pytest.approx(by_rows.costs["lost"].to_numpy(), rel=1e-9)


def test_plot_draws_the_cuts_of_each_method():
    import matplotlib as mpl

    mpl.use("Agg")
    found = report({"x": np.random.default_rng(0).lognormal(0, 2, 5000)})
    axes = found.plot("x", 63)
    assert axes.get_title(loc="left") == "x: where 63 bins go"
    assert [len(lines.get_segments()) for lines in axes.figure.axes[1].collections] == [
        len(found["x"].binned[method, 63].cuts) for method in found.methods
    ]
    with pytest.raises(ValueError, match="max_bins must be one of 255, 63, got 10"):
        found.plot("x", 10)
    with pytest.raises(KeyError, match="no column 'z'"):
        found.plot("z")


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (pd.DataFrame({"c": ["x", "y"]}), None, {}, "there is no numeric column"),
        ({"a": [1.0, 2.0]}, "b", {}, "there is no column 'b'"),
        ({"a": [1.0, 2.0]}, [1.0], {}, "the target must have one entry per row"),
        ({"a": [1.0, 2.0]}, [1.0, np.nan], {}, "the target has a missing value"),
        (pd.DataFrame({"a": [1.0, 2.0], "y": ["x", None]}), "y", {}, "the target has a missing value"),
        ({"a": [1.0, 2.0]}, None, {"max_bins": 1}, "max_bins must be a whole number from 2 to 65535, got 1"),
        ({"a": [1.0, 2.0]}, None, {"max_bins": []}, "max_bins must hold a number"),
        ({"a": [1.0, 2.0]}, None, {"methods": ["k"]}, "methods must be one of 'auto'.*got 'k'"),
        ({"a": [1.0, 2.0]}, None, {"sample_weight": [1.0, -1.0]}, "sample_weight must be finite and not negative"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(X, y, options, message):
    with pytest.raises(ValueError, match=message):
        report(X, y, **options)


def test_numbers_as_people_write_them():
    assert [number(x) for x in (0, 12, 0.5, 1234.56, 1_117_000, 2e15, -9999)] == [
        "0", "12", "0.5", "1,235", "1,117,000", "2e+15", "-9,999",
    ]  # fmt: skip
    assert [percent(x) for x in (1, 0.5, 0.00396, 1e-6)] == ["100 %", "50 %", "0.396 %", "0.0001 %"]
