"""What is accepted as numbers; dates and durations are seconds, from every kind of table."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from boostbins import Bins, ColumnSummary, TableSummary, fit_bins, summarize
from boostbins.sources.reading import read_files
from boostbins.sources.values import (
    MAX_TARGETS,
    checked_target,
    checked_weight,
    class_targets,
    is_missing,
    numbered_classes,
    numeric_column,
    positive_weight,
)

DAYS = np.array(["2024-01-01", "2024-01-03", "NaT", "2024-02-29"], "datetime64[D]")


def tables_of_dates(days=DAYS):
    """Return the same dates in every kind of table, each in another unit."""
    return {
        "pandas": pd.DataFrame({"t": days.astype("datetime64[ns]")}),
        "seconds": pd.DataFrame({"t": days.astype("datetime64[s]")}),
        "zoned": pd.DataFrame({"t": pd.to_datetime(days.astype("datetime64[ns]")).tz_localize("UTC")}),
        "polars": pl.DataFrame({"t": days.astype("datetime64[ms]")}),
        "days": pl.DataFrame({"t": days}),
        "arrow": pa.table({"t": pa.array(days)}),
        "dict": {"t": days},
    }


def test_dates_have_one_unit_in_every_kind_of_table():
    tables = tables_of_dates()
    bins = fit_bins(tables["pandas"], dates_as_numbers=True)
    assert bins.units == {"t": "seconds since 1970"}
    assert bins["t"].tolist() == [1704067200 + 86400, (1704240000 + 1709164800) / 2]
    for X in tables.values():
        with pytest.raises(TypeError, match="dates_as_numbers=True"):
            fit_bins(X)
        assert fit_bins(X, dates_as_numbers=True) == bins
        assert bins.encode(X)[:, 0].tolist() == [0, 1, 3, 2]
        assert summarize(X, dates_as_numbers=True) == summarize(tables["pandas"], dates_as_numbers=True)
    array = fit_bins(DAYS[:, None], dates_as_numbers=True)
    assert array["x0"].tolist() == bins["t"].tolist()
    assert array.encode(DAYS[:, None].astype("datetime64[us]"))[:, 0].tolist() == [0, 1, 3, 2]


def test_durations_are_seconds():
    spans = np.array([90, 86400], "timedelta64[s]")
    bins = fit_bins(pd.DataFrame({"d": spans}), dates_as_numbers=True)
    assert bins.units == {"d": "seconds"}
    assert bins == fit_bins(pl.DataFrame({"d": spans.astype("timedelta64[us]")}), dates_as_numbers=True)
    assert bins["d"].tolist() == [(90 + 86400) / 2]


def test_bins_of_dates_encode_files_of_dates(tmp_path):
    tables = tables_of_dates()
    bins = fit_bins(tables["pandas"], dates_as_numbers=True)
    tables["pandas"].to_csv(tmp_path / "t.csv", index=False, date_format="%Y-%m-%d")
    tables["polars"].write_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert fit_bins(tmp_path / name, dates_as_numbers=True) == bins
        assert bins.encode(read_files(tmp_path / name))[:, 0].tolist() == [0, 1, 3, 2]


def test_dates_and_numbers_are_not_taken_for_each_other(tmp_path):
    dates, numbers = fit_bins({"t": DAYS}, dates_as_numbers=True), fit_bins({"t": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="'t' holds numbers, and these bins are of seconds since 1970"):
        dates.encode({"t": [1.7e9, 1.8e9]})
    with pytest.raises(ValueError, match="'t' holds seconds since 1970, and these bins are of numbers"):
        numbers.encode({"t": DAYS})
    with pytest.raises(ValueError, match="'t' holds seconds since 1970 in one summary, and numbers in the other"):
        _ = summarize({"t": DAYS}, dates_as_numbers=True) + summarize({"t": [1.0, 2.0]})
    with pytest.raises(ValueError, match="chunk 1.*'t' holds numbers here, and seconds since 1970 in what came first"):
        fit_bins(iter([{"t": DAYS}, {"t": [1.0]}]), dates_as_numbers=True)
    nothing = pa.table({"t": pa.nulls(2)})
    assert dates.encode(nothing)[:, 0].tolist() == [3, 3]


def test_units_are_kept():
    bins = fit_bins({"t": DAYS, "x": [1.0, 2.0, 3.0, 4.0]}, dates_as_numbers=True)
    for copy in (
        Bins.from_json(bins.to_json()),
        pickle.loads(pickle.dumps(bins)),
        bins.observed({"t": DAYS, "x": np.arange(4.0)}),
    ):
        assert copy == bins
        assert copy.units == {"t": "seconds since 1970"}
    assert bins != Bins(bins.cuts, bins.names)
    summary = summarize({"t": DAYS}, dates_as_numbers=True)
    for copy in (TableSummary.from_bytes(summary.to_bytes()), pickle.loads(pickle.dumps(summary)), summary + summary):
        assert fit_bins(copy).units == {"t": "seconds since 1970"}


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", ">f8", ">i2", np.longdouble])
def test_columns_become_what_the_kernels_read(dtype):
    values = np.array([0, 1, 1], dtype)
    found = numeric_column(values)
    assert found.dtype.char in "?bhilqBHILQfd"
    assert found.dtype.isnative
    np.testing.assert_array_equal(found.astype(float), [0, 1, 1])


def test_a_column_is_only_copied_where_it_must_be():
    matrix = np.zeros((4, 3))
    assert np.shares_memory(numeric_column(matrix[::2, 1]), matrix)
    packed = np.zeros(3, np.dtype([("flag", "?"), ("x", "f8")]))
    assert numeric_column(packed["x"]).strides == (8,)
    np.testing.assert_array_equal(numeric_column(np.ma.masked_equal([1, 2], 2)), [1, np.nan])


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        ([["a"]], ValueError, r"one dimension, got shape \(1, 1\)"),
        (["a"], TypeError, "must hold numbers, got dtype <U1"),
        ([1j], TypeError, "must hold numbers, got dtype complex128"),
    ],
)
def test_what_is_no_column_is_named(column, error, message):
    with pytest.raises(error, match=message):
        numeric_column(column)


@pytest.mark.parametrize(
    ("check", "values", "message"),
    [
        (checked_weight, [1.0, -1.0], "w must be finite and not negative, got -1.0"),
        (checked_weight, [1.0, np.nan], "w must be finite and not negative, got nan"),
        (checked_weight, [1e308, 1e308], "w adds up to infinity: divide it by its maximum"),
        (checked_weight, [1.0], r"one entry per row, shape \(2,\), got \(1,\)"),
        (positive_weight, [0.0, 0.0], "w is zero for every row: give some row a positive weight"),
        (checked_target, [1.0, np.inf], "w must be finite, got inf"),
        (checked_target, [1e200, 1.0], "w has squares that add up to infinity"),
        (checked_target, np.zeros((2, 17)), "w must have 1 to 16 numbers per row, got 17"),
        (checked_target, np.array(["2020", "2021"], "datetime64[Y]"), "w: the target holds dates"),
    ],
)
def test_numbers_per_row_are_checked(check, values, message):
    with pytest.raises(ValueError, match=message):
        check(values, 2, "w")


def test_the_kernels_take_as_many_targets():
    x = np.zeros(3)
    ColumnSummary.of_checked(x, None, np.zeros((3, MAX_TARGETS)), None)
    with pytest.raises(ValueError, match=f"there must be 1 to {MAX_TARGETS} targets per row"):
        ColumnSummary.of_checked(x, None, np.zeros((3, MAX_TARGETS + 1)), None)


def test_classes_beyond_the_last_share_a_target():
    labels = np.repeat([f"{i:02}" for i in range(20)], 2)
    targets = class_targets(labels, "y")
    assert targets.shape == (40, 16)
    assert targets.sum(axis=1).tolist() == [1] * 40
    assert targets.sum(axis=0).tolist() == [2] * 15 + [10]
    np.testing.assert_array_equal(numbered_classes(np.array([0.0, 1.0]), 2, "y"), [[False], [True]])
    with pytest.raises(ValueError, match="whole numbers from 0 to 2, got 1.5"):
        numbered_classes(np.array([1.5]), 3, "y")


def test_what_is_missing_among_objects():
    assert all(map(is_missing, [None, float("nan"), pd.NA, pd.NaT, np.float32("nan")]))
    assert not any(map(is_missing, [0, "", False, np.array([np.nan])]))
