"""The features and the target that libraries are compared on, from tables of every kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from boostbins.sources.features import notes_on, numbers_and_categories, target_values

COLUMNS = {
    "number": [1.5, None, 3.0],
    "whole": [1, 2, 3],
    "flag": [True, False, True],
    "text": ["a", None, "a"],
    "id": ["x", "y", "z"],
    "empty": [None, None, None],
}
FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame(COLUMNS, schema_overrides={"empty": pl.Float64}),
    "Arrow": lambda: pa.table({**COLUMNS, "empty": pa.array([None] * 3, pa.float64())}),
    "dict": lambda: {name: np.array(values, object) for name, values in COLUMNS.items()},
}


@pytest.mark.parametrize("kind", FRAMES)
def test_numbers_and_categories_of_every_kind_of_table(kind):
    table = FRAMES[kind]()
    frame, notes = numbers_and_categories(table, 2)
    assert list(frame) == ["number", "whole", "flag", "text"]
    np.testing.assert_array_equal(frame["number"], [1.5, np.nan, 3.0])
    assert frame["whole"].tolist() == [1, 2, 3]
    assert [int(value == "True") if isinstance(value, str) else int(value) for value in frame["flag"]] == [1, 0, 1]
    assert frame["text"].dtype == "category"
    assert frame["text"].isna().tolist() == [False, True, False]
    assert "left out (nothing but missing values): 'empty'" in notes
    assert "left out, as text with too many values to be a category: 'id' (3 values)" in notes


def test_arrays_have_names_by_number():
    expected = pd.DataFrame({"x0": [1.0, 0.0], "x1": [0.0, 2.0]})
    for X in (expected.to_numpy(), sparse.csr_array(expected.to_numpy()), [[1.0, 0.0], [0.0, 2.0]]):
        frame, notes = numbers_and_categories(X, 10)
        pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
        assert notes == []


def test_dates_become_seconds_and_are_noted():
    days = pd.to_datetime(["1970-01-02", None])
    frame, notes = numbers_and_categories(pd.DataFrame({"day": days, "span": days - days[0]}), 10)
    np.testing.assert_array_equal(frame["day"], [86_400.0, np.nan])
    np.testing.assert_array_equal(frame["span"], [0.0, np.nan])
    assert notes == [
        "dates are taken as seconds since 1970 (month, weekday and age are up to you): 'day'",
        "durations are taken as seconds: 'span'",
    ]


def test_notes_are_by_what_columns_hold():
    left_out = {"a": "text", "b": "text", "c": "lists"}
    assert notes_on({}, left_out) == ["left out (text): 'a', 'b'", "left out (lists): 'c'"]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ValueError, r"rows and columns, got shape \(3,\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "more than one column named 'a'"),
        (object(), (TypeError, ValueError), "X must be"),
    ],
)
def test_what_is_no_table_is_named(X, error, message):
    with pytest.raises(error, match=message):
        numbers_and_categories(X, 10)


def test_targets_are_numbers_or_objects_that_are_none():
    assert target_values([1, 2], 2, "y").dtype.kind == "i"
    assert target_values(np.array([1, 2.5], object), 2, "y").dtype == np.float64
    assert target_values(["a", "b"], 2, "y").tolist() == ["a", "b"]
    assert target_values(np.array([True, False], object), 2, "y").dtype == object


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan], "y: the target has a missing value"),
        (np.array([None, None], object), "y: the target has 2 missing values"),
        ([1.0], r"y: the target must have one entry per row, shape \(2,\), got \(1,\)"),
        (np.array(["2020", "2021"], "datetime64[Y]"), "y: the target holds dates or durations"),
    ],
)
def test_a_target_that_cannot_be_one_is_named(y, message):
    with pytest.raises(ValueError, match=message):
        target_values(y, 2, "y")
