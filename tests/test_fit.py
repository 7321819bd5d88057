from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather
from scipy import sparse as sp

from boostbins import METHODS, Bins, TableSummary, fit_bins, summarize
from boostbins.sources.reading import read_files
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


@given(st.data())
def test_sparse_is_dense_to_the_last_bit_with_whole_number_weights(data):
    n = data.draw(st.integers(1, 40))
    values = st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.1, -2.5, 1e-9, np.nan])
    x = np.array(data.draw(st.lists(values, min_size=n, max_size=n)))[:, None]
    weight = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    if not weight.any():
        weight[0] = 1
    method, max_bins = data.draw(st.sampled_from(sorted(METHODS))), data.draw(st.integers(2, 6))
    sparse, plain = (fit_bins(X, method, max_bins, sample_weight=weight) for X in (sp.csc_array(x), x))
    assert (sparse, sparse.stats) == (plain, plain.stats)


def test_sparse_duplicates_are_added_up():
    twice = sp.coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [0, 0, 0])), shape=(3, 1))
    assert fit_bins(twice)[0].tolist() == [1.5, 4.0]


def test_threads_change_nothing():
    X = np.column_stack([skewed(5000, s) for s in range(9)])
    assert fit_bins(X, n_threads=1) == fit_bins(X, n_threads=4) == fit_bins(X)


def test_weights_are_counted():
    x = skewed(3000)
    times = np.random.default_rng(0).integers(0, 4, 3000)
    for method in sorted(METHODS):
        weighted, repeated = fit_bins(x, method, 31, times), fit_bins(np.repeat(x, times), method, 31)
        np.testing.assert_allclose(weighted[0], repeated[0], rtol=1e-9)
        scaled = fit_bins(x, method, 31, times * 1e-3)
        np.testing.assert_allclose(scaled[0], repeated[0], rtol=2e-2)
    assert fit_bins(x, sample_weight=np.ones(3000)) == fit_bins(x)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_weights_may_be_tiny_or_huge(scale):
    x = skewed(2000)
    for method in sorted(METHODS):
        cuts = fit_bins(x, method, 31, np.full(2000, scale))[0]
        assert len(cuts) == 30
        assert np.isfinite(cuts).all()


def test_a_budget_per_column():
    X = np.column_stack([skewed(3000), skewed(3000, 1)])
    assert fit_bins(X, max_bins=[5, 300]).n_bins == (5, 300)
    assert fit_bins({"a": X[:, 0], "b": X[:, 1]}, max_bins={"b": 7, "a": 9}).n_bins == (9, 7)
    assert fit_bins(X, max_bins=np.int64(2)).n_bins == (2, 2)
    assert fit_bins(np.arange(70_000.0), "uniform", max_bins=65_535).n_bins == (65_535,)


def test_columns_that_are_not_numbers_can_be_skipped():
    frame = pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"], "k": pd.Categorical(["p", "q"])})
    bins = fit_bins(frame, non_numeric="skip")
    assert bins.names == ("a",)
    assert bins.encode(frame, non_numeric="skip").tolist() == [[0], [1]]


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


@pytest.mark.parametrize(
    "max_bins", [1, 0, -3, 70_000, 2.5, "many", True, None, [5], [5, 1], {"x0": 5}, {"x0": 5, "z": 5}]
)
def test_bad_budgets_are_refused(max_bins):
    with pytest.raises(ValueError, match="max_bins"):
        fit_bins(np.zeros((5, 2)), max_bins=max_bins)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([-1.0, 1.0], "not negative, got -1.0"),
        ([np.nan, 1.0], "finite"),
        ([1.0], r"one entry per row, shape \(2,\), got \(1,\)"),
        ([0.0, 0.0], "zero for every row"),
        (["1", "2"], "numbers"),
        ([10**400, 1], "numbers"),
        (np.array([1j, 1]), "numbers, got ndarray of dtype complex128"),
        (np.array([1, 2], "datetime64[s]"), "numbers"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises((ValueError, TypeError), match=f"sample_weight.*{message}"):
        fit_bins([[1.0, 2.0]], sample_weight=weight)


@pytest.mark.parametrize("options", [{"n_threads": 0}, {"n_threads": 1.5}, {"non_numeric": "drop"}, {"y": [np.inf, 1]}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        fit_bins([[1.0, 2.0]], **options)


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
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Decimal(30, 7))}),
        pd.DataFrame({"x": pd.array(values, dtype=pd.ArrowDtype(kind))}),
    ]
    for frame in frames:
        assert fit_bins(frame, max_bins=1000) == expected
