"""Dates and durations are seconds, from every kind of table."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from boostbins import Bins, TableSummary, fit_bins, summarize
from boostbins.sources.reading import read_files

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
