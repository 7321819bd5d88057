"""Every kind of table gives the same columns, and what is no table is named."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather
from scipy import sparse as sp

from boostbins import METHODS, Bins, fit_bins
from boostbins.sources.table import read_table
from tests.conftest import skewed


def data(n=3000):
    r = np.random.default_rng(0)
    return {
        "price": np.where(r.random(n) < 0.1, np.nan, r.lognormal(0, 2, n)),
        "rooms": r.integers(0, 9, n),
        "new": r.random(n) < 0.3,
    }


TABLES = {
    "dict": dict,
    "array": lambda d: np.column_stack(list(d.values())),
    "Fortran": lambda d: np.asfortranarray(np.column_stack(list(d.values()))),
    "list of columns": lambda d: list(d.values()),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda d: pd.DataFrame(d).convert_dtypes(dtype_backend="numpy_nullable"),
    "pandas Arrow": lambda d: pd.DataFrame(d).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "polars with nulls": lambda d: pl.DataFrame(d).with_columns(pl.col("price").fill_nan(None)),
    "Arrow": lambda d: pa.table(d),
    "Arrow with nulls": lambda d: pa.table({k: pa.array(v, from_pandas=True) for k, v in d.items()}),
    "CSR": lambda d: sp.csr_array(np.column_stack(list(d.values()))),
    "CSC matrix": lambda d: sp.csc_matrix(np.column_stack(list(d.values()))),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_kind_of_table_gives_the_same_bins(kind, method):
    columns = data()
    expected = fit_bins(columns, method, 31)
    X = TABLES[kind](columns)
    bins = fit_bins(X, method, 31)
    for got, want in zip(bins, expected, strict=True):
        np.testing.assert_array_equal(got, want)
    named = (
        kind in ("dict", "pandas", "pandas nullable", "pandas Arrow", "polars", "polars with nulls") or "Arrow" in kind
    )
    assert bins.names == (("price", "rooms", "new") if named else ("x0", "x1", "x2"))
    np.testing.assert_array_equal(bins.encode(X), expected.encode(columns))
    assert bins.stats[0].missing == np.isnan(columns["price"]).sum()


@pytest.mark.parametrize(
    "dtype", ["Int64", "Int8", "UInt16", "Float32", "Float64", "boolean", "int64[pyarrow]", "bool[pyarrow]"]
)
def test_missing_values_of_nullable_types(dtype):
    series = pd.Series([1, None, 0, 1], dtype=dtype)
    bins = fit_bins(pd.DataFrame({"x": series}))
    assert bins["x"].tolist() == [0.5]
    assert bins.encode(pd.DataFrame({"x": series}))[:, 0].tolist() == [1, 2, 0, 1]


def test_a_single_column():
    x = skewed(1000)
    for X in (x, pd.Series(x, name="x0"), pl.Series("x0", x)):
        assert fit_bins(X) == fit_bins(x[:, None])


def test_frames_are_matched_by_name():
    frame = pd.DataFrame(data())
    bins = fit_bins(frame)
    np.testing.assert_array_equal(bins.encode(frame[["new", "price", "rooms"]]), bins.encode(frame))
    with pytest.raises(ValueError, match="X lacks 'rooms'; the bins are for 'price', 'rooms', 'new'"):
        bins.encode(frame.drop(columns="rooms"))
    with pytest.raises(ValueError, match="not binned: 'more'"):
        bins.encode(frame.assign(more=1))
    with pytest.raises(ValueError, match="X has 2 columns, but the bins are for 3"):
        bins.encode(np.zeros((4, 2)))


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_zeros_are_counted(weighted):
    r = np.random.default_rng(0)
    dense = np.where(r.random((5000, 2)) < 0.05, r.lognormal(0, 2, (5000, 2)), 0)
    dense[0] = np.nan
    w = r.integers(0, 3, 5000) if weighted else None
    for method in sorted(METHODS):
        sparse, plain = (fit_bins(X, method, 31, sample_weight=w) for X in (sp.csr_array(dense), dense))
        for a, b in zip(sparse, plain, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_allclose(sparse.stats[0].weight, plain.stats[0].weight)
    np.testing.assert_array_equal(sparse.encode(sp.csc_array(dense)), sparse.encode(dense))


def test_sparse_duplicates_are_added_up():
    twice = sp.coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [0, 0, 0])), shape=(3, 1))
    assert fit_bins(twice)[0].tolist() == [1.5, 4.0]


def test_columns_that_are_not_numbers_can_be_skipped():
    frame = pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"], "k": pd.Categorical(["p", "q"])})
    bins = fit_bins(frame, non_numeric="skip")
    assert bins.names == ("a",)
    assert bins.encode(frame, non_numeric="skip").tolist() == [[0], [1]]


def test_numbers_in_objects_are_numbers_in_every_kind_of_table():
    values = [Decimal("1.5"), None, 3, 2.5]
    expected = fit_bins({"a": [1.5, np.nan, 3.0, 2.5]})
    for X in ({"a": np.array(values, object)}, pd.DataFrame({"a": np.array(values, object)})):
        assert fit_bins(X) == expected
    texts = {"a": [1.0, 2.0], "b": ["x", "y"]}
    for X in (texts, pd.DataFrame(texts), pl.DataFrame(texts)):
        assert fit_bins(X, non_numeric="skip").names == ("a",)
        with pytest.raises((TypeError, ValueError), match="column 'b'"):
            fit_bins(X)


def test_odd_tables():
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    assert [s.missing for s in fit_bins(masked).stats] == [0, 1]
    assert fit_bins(np.arange(9.0), max_bins=np.array(3)).n_bins == (3,)
    if hasattr(pl, "Int128"):
        wide = pl.DataFrame({"x": pl.Series([1, 2], dtype=pl.Int128)})
        assert fit_bins(wide)["x"].tolist() == [1.5]


def test_a_table_is_not_copied():
    X = np.zeros((1000, 3))
    assert np.shares_memory(read_table(X).read(1), X)
    frame = pd.DataFrame({"a": np.arange(5.0)})
    assert np.shares_memory(read_table(frame).read(0), frame["a"].to_numpy())


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 3)), "no rows"),
        (np.empty((3, 0)), "no columns"),
        ([], "no columns"),
        ({}, "no columns"),
        (pd.DataFrame(), "no columns"),
        (pd.DataFrame({"a": []}, dtype=float), "no rows"),
        ([[1.0, 2.0], [3.0]], "one length, got 'x0' 2, 'x1' 1"),
        ([["a", "b"]], "column 'x0': a column must hold numbers"),
        (np.array([["a"]]), "numbers"),
        (np.array([[1, None]], object), "numbers, got dtype object"),
        (np.array([[1j]]), "complex"),
        (np.zeros((2, 2, 2)), "rows and columns"),
        (5, "must be an array"),
        ("table.csv", "there is no file table.csv"),
        (pd.DataFrame({"c": ["x"]}), "column 'c' of type .*non_numeric='skip'"),
        (pd.DataFrame({"c": pd.Categorical(["x"])}), "column 'c' of type Categorical"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "more than one column named 'a'|duplicate|unique"),
        (pl.LazyFrame({"a": [1]}), "collect it first"),
        (sp.csr_array(np.array([[1j]])), "numbers"),
    ],
)
def test_bad_tables_are_refused(X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit_bins(X)


def test_a_column_of_nothing_is_missing_whatever_holds_it(tmp_path):
    table = pa.table({"nothing": pa.nulls(3), "b": [1, 2, 3]})
    feather.write_feather(table, tmp_path / "t.feather")
    expected = Bins([[], [1.5, 2.5]], ["nothing", "b"])
    for X in (table, pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype), tmp_path / "t.feather"):
        bins = fit_bins(X)
        assert bins == expected
        assert bins.stats[0].missing == 3
        if X is not table:
            assert bins.encode(table).tolist() == [[3, 0], [3, 1], [3, 2]]


def test_whole_numbers_with_nulls_are_read_however_large():
    values = [2**53 + 1, None, 2**60 + 1, 5]
    expected = fit_bins({"x": [float(2**53 + 1), np.nan, float(2**60 + 1), 5.0]})
    frames = [
        pd.DataFrame({"x": pd.array(values, dtype="int64[pyarrow]")}),
        pd.DataFrame({"x": pd.array(values, dtype="Int64")}),
        pl.DataFrame({"x": values}),
        pa.table({"x": values}),
    ]
    for frame in frames:
        assert fit_bins(frame) == expected
        assert fit_bins(frame).stats == expected.stats


def test_decimals_are_the_nearest_numbers_in_every_frame():
    digits = np.random.default_rng(0).integers(-(10**17), 10**17, 300)
    values = [*(Decimal(int(n)).scaleb(-7) for n in digits), Decimal("1E-7"), Decimal(0), None]
    expected = fit_bins({"x": [np.nan if v is None else float(v) for v in values]}, max_bins=1000)
    kind = pa.decimal128(30, 7)
    frames = [
        pa.table({"x": pa.array(values, kind)}),
        pl.from_arrow(pa.table({"x": pa.array(values, kind)})),
        pd.DataFrame({"x": pd.array(values, dtype=pd.ArrowDtype(kind))}),
    ]
    for frame in frames:
        assert fit_bins(frame, max_bins=1000) == expected
