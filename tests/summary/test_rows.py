"""Samples of rows: the same whatever the order, the partitioning and the container; read back, or refused."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
import zlib
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from boostbins import ColumnSummary, TableSummary, _core, fit_bins, summarize
from boostbins.sources.table import ROWS_AT_ONCE, read_table
from boostbins.sources.values import checked_target, checked_weight
from boostbins.summary import rows as module
from boostbins.summary.rows import MAX_ROWS, RowSample
from tests import naive
from tests.conftest import any_float

FEW = 8  # rows that a sample keeps, where a test says so


def sample(X, y, weight=None):
    table = read_table(X)
    weights = None if weight is None else checked_weight(weight, table.n_rows, "weight")
    return RowSample.of(table, weights, checked_target(y, table.n_rows, "y"))


def few_rows():
    return patch.object(module, "MAX_ROWS", FEW)


def check_same(found, expected):
    assert found == expected
    for name in RowSample.__slots__:
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


# ---- keys


@given(arrays(np.float64, st.tuples(st.integers(0, 5), st.integers(0, 4)), elements=any_float))
def test_keys_are_those_of_their_definition(X):
    keys = np.zeros(len(X), np.uint64)
    for i, column in enumerate(X.T):
        _core.add_to_keys(column, i, keys)
    assert keys.tolist() == [naive.row_key(row) for row in X.tolist()]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"])
def test_keys_are_of_numbers_whatever_their_type_and_place(dtype):
    values = np.array([0, 1, 1, 0, 1] * 1000, dtype)
    expected = np.zeros(5000, np.uint64)
    _core.add_to_keys(values.astype(float), 3, expected)
    for column in (values, np.repeat(values, 3)[::3], values[::-1].copy()[::-1]):
        keys = np.zeros(5000, np.uint64)
        _core.add_to_keys(column, 3, keys)
        np.testing.assert_array_equal(keys, expected)


def test_all_missing_values_are_one_and_so_are_both_zeros():
    missing = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000ABC, 0x7FFFFFFFFFFFFFFF], np.uint64)
    for equal in (missing.view(np.float64), np.array([0.0, -0.0])):
        found = sample({"a": equal}, np.ones(len(equal)))
        assert len(found) == 1
        assert not np.signbit(found.values[~np.isnan(found.values)]).any()
        np.testing.assert_array_equal(found.moments, [[len(equal)] * 3])
    signaling = np.array([0x7F800001, 0x7FC00000, 0xFFC00000], np.uint32).view(np.float32)
    assert len(sample({"a": signaling}, np.ones(3))) == 1


def test_keys_must_fit():
    with pytest.raises(ValueError, match="keys must have one entry per row"):
        _core.add_to_keys(np.zeros(3), 0, np.zeros(4, np.uint64))
    frozen = np.zeros(3, np.uint64)
    frozen.flags.writeable = False
    for keys in (np.zeros(3), np.zeros(6, np.uint64)[::2], frozen):
        with pytest.raises(TypeError):
            _core.add_to_keys(np.zeros(3), 0, keys)


# ---- which rows


tables = st.integers(1, 3).flatmap(
    lambda width: arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.just(width)),
        elements=st.one_of(st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan, np.inf]), st.floats()),
    )
)


def expected_sample(X, y, weight, most):
    """The keys, values and moments by definition, of whole numbers."""
    found = {}
    for row, targets, w in zip(X.tolist(), y.tolist(), weight.tolist(), strict=True):
        if w:
            moments = np.array([1, *targets, sum(t * t for t in targets)]) * w
            key = naive.row_key(row)
            found[key] = (row, found[key][1] + moments) if key in found else (row, moments)
    return [(key, *found[key]) for key in sorted(found)[:most]]


@given(tables, st.integers(1, 2), st.integers(0, 99))
def test_a_sample_is_what_its_definition_says_however_rows_are_divided(X, n_targets, seed):
    r = np.random.default_rng(seed)
    n = len(X)
    y, weight = r.integers(-3, 4, (n, n_targets)), r.integers(0, 4, n).astype(float)
    with few_rows():
        found = sample(X, y, weight)
        expected = expected_sample(X, y, weight, FEW)
        assert found.keys.tolist() == [key for key, _, _ in expected]
        np.testing.assert_array_equal(found.values.T, np.array([row for _, row, _ in expected]).reshape(-1, X.shape[1]))
        np.testing.assert_array_equal(found.moments, np.array([m for _, _, m in expected]).reshape(-1, n_targets + 2))
        mixed = r.permutation(n)
        check_same(sample(X[mixed], y[mixed], weight[mixed]), found)
        check_same(sample(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int), axis=0)), found)
        counted = weight > 0
        check_same(sample(X[counted], y[counted], weight[counted]), found)
        ends = np.sort(r.integers(0, n + 1, 3))
        parts = [sample(X[rows], y[rows], weight[rows]) for rows in np.split(np.arange(n), ends) if len(rows)]
        while len(parts) > 1:  # in any tree
            i, j = r.choice(len(parts), 2, replace=False)
            parts = [*(part for k, part in enumerate(parts) if k not in (i, j)), parts[i] + parts[j]]
        check_same(parts[0], found)


def test_containers_hold_the_same_rows():
    r = np.random.default_rng(0)
    n = 2 * ROWS_AT_ONCE + 77
    X = np.round(r.lognormal(size=(n, 3)), 1) * (r.random((n, 3)) < 0.3)
    y = r.integers(0, 9, n)
    names = ["x0", "x1", "x2"]
    columns = dict(zip(names, X.T, strict=True))
    found = sample(X, y)
    for same in (
        np.asfortranarray(X), X[:, ::-1].copy()[:, ::-1], X.astype(">f8"), columns, pd.DataFrame(columns),
        pl.DataFrame(columns), pa.table(columns), sparse.csr_array(X), sparse.csc_array(X), list(X.T),
        np.ma.masked_array(X),
    ):  # fmt: skip
        check_same(sample(same, y), found)
    parts = [slice(i, i + 5000) for i in range(0, n, 5000)]
    streamed = summarize(({**{k: v[rows] for k, v in columns.items()}, "y": y[rows]} for rows in parts), y="y")
    check_same(streamed.rows, found)
    check_same(summarize(X, y=y).rows, found)
    half = X.astype(np.float16)
    check_same(sample(half, y), sample(half.astype(np.float64), y))


def test_few_different_rows_are_all_held():
    r = np.random.default_rng(0)
    X, y, weight = r.integers(0, 2, (100_000, 3)), r.integers(0, 9, 100_000), r.integers(0, 3, 100_000)
    found = sample(X, y, weight)
    assert len(found) == found.n_different == 8
    held = pd.DataFrame({"key": X @ [4, 2, 1], "weight": weight, "y": weight * y, "squares": weight * y**2})
    expected = held.groupby("key").sum().loc[found.values.T @ [4, 2, 1]]
    np.testing.assert_array_equal(found.moments, expected)


def test_rows_that_are_not_held_take_no_memory():
    n = 200_000
    X = np.random.default_rng(0).integers(0, 2, (n, 40), np.int8) * (np.arange(40) < 3).astype(np.int8)
    table, y = read_table(X), np.ones((n, 1))
    tracemalloc.start()
    try:
        assert len(RowSample.of(table, None, y)) == 8
        assert tracemalloc.get_traced_memory()[1] < 8 * n * 20  # less than half of the rows
    finally:
        tracemalloc.stop()


def test_other_bytes_are_not_read_again_for_every_block():
    read = []
    table = read_table(np.zeros((8 * ROWS_AT_ONCE, 2), ">f8"))
    inner = table.read
    object.__setattr__(table, "read", lambda i: read.append(i) or inner(i))
    RowSample.of(table, None, np.ones((8 * ROWS_AT_ONCE, 1)))
    assert len(read) <= 4


@pytest.mark.parametrize("n", [5000, MAX_ROWS, MAX_ROWS + 1, 30_000, 100_000])
@pytest.mark.parametrize("copies", [1, 3])
def test_how_many_rows_differ_is_known_or_estimated(n, copies):
    X = np.tile(np.arange(float(n)), copies)
    found = sample({"a": X}, np.ones(n * copies))
    assert len(found) == min(n, MAX_ROWS)
    if n < MAX_ROWS:
        assert found.n_different == n
    # With k keys of n, the estimate's standard deviation is n / sqrt(k - 2).
    assert found.n_different == pytest.approx(n, rel=4 / np.sqrt(MAX_ROWS))
    first = found.first(100)
    assert len(first) == 100
    with patch.object(module, "MAX_ROWS", 100):
        check_same(first, sample({"a": X}, np.ones(n * copies)))


def test_a_sample_of_nothing():
    nothing = sample({"a": [1.0, 2.0]}, [1.0, 2.0], [0.0, 0.0])
    assert len(nothing) == nothing.n_different == 0
    some = sample({"a": [1.0, 2.0]}, [1.0, 2.0])
    check_same(nothing + some, some)
    check_same(some + nothing, some)
    check_same(RowSample.from_bytes(nothing.to_bytes()), nothing)


def test_a_sample_is_a_value():
    some, other = sample({"a": [1.0, np.nan]}, [1.0, 2.0]), sample({"a": [1.0, np.nan]}, [1.0, 3.0])
    assert some == sample({"a": [np.nan, 1.0]}, [2.0, 1.0])
    assert hash(some) == hash(sample({"a": [np.nan, 1.0]}, [2.0, 1.0]))
    assert some != other
    assert some != 1
    with pytest.raises(AttributeError, match="a RowSample is immutable"):
        some.keys = other.keys
    with pytest.raises(ValueError, match="read-only"):
        some.moments[0] = 0
    with pytest.raises(TypeError):
        _ = some + 1


# ---- sums that are none


def test_sums_that_are_infinite_are_refused():
    x, big = {"a": np.array([0.0, 0, 1, 2])}, np.array([1e153, -1e153, 1e153, 1e153])
    with pytest.raises(ValueError, match="the target's squares, times the weights, add up to infinity"):
        sample(x, big, np.full(4, 1e160))
    for method in ("kmeans", "auto"):
        with pytest.raises(ValueError, match="the target's squares, times the weights, add up to infinity"):
            fit_bins(x, method, sample_weight=np.full(4, 1e160), y=big, average_bins=2)
    some = sample(x, np.ones(4), np.full(4, 2e307))
    with pytest.raises(ValueError, match="the rows' weight adds up to infinity"):
        _ = some + some


# ---- as bytes


@given(tables, st.integers(0, 99))
def test_bytes_and_pickles_keep_every_bit(X, seed):
    y = np.random.default_rng(seed).normal(size=(len(X), 2))
    found = sample(X, y)
    for copy in (RowSample.from_bytes(found.to_bytes()), pickle.loads(pickle.dumps(found))):
        check_same(copy, found)
        assert not copy.values.flags.writeable
    whole = summarize(X, y=y)
    for copy in (TableSummary.from_bytes(whole.to_bytes()), pickle.loads(pickle.dumps(whole))):
        assert copy == whole
        check_same(copy.rows, found)


def forged(n_rows=None, n_columns=None, n_moments=None, change=None):
    """The bytes of a sample of three rows and two columns, with another header or body, and the right checksum."""
    some = sample(np.array([[1.0, 2], [3, 4], [5, 6]]), [1.0, 2.0, 3.0])
    data = bytearray(some.to_bytes()[:-4])
    for at, number in ((15, n_rows), (23, n_columns), (31, n_moments)):
        if number is not None:
            struct.pack_into("<Q", data, at, number)
    if change is not None:
        at, number = change
        struct.pack_into("<d", data, 39 + 8 * at, number)
    return bytes(data) + struct.pack("<I", zlib.crc32(data))


def test_what_was_not_forged_is_read():
    assert len(RowSample.from_bytes(forged())) == 3


@pytest.mark.parametrize("number", [0, 1, 2, 4, 2**31, 2**32, 2**61, 2**63, 2**64 - 1])
@pytest.mark.parametrize("field", ["n_rows", "n_columns", "n_moments"])
def test_forged_numbers_of_rows_and_columns_are_refused_and_take_no_memory(field, number):
    data = forged(**{field: number}) if (field, number) != ("n_columns", 2) else forged(n_columns=0)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="not a sample of rows of boostbins', or are damaged"):
            RowSample.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("field", ["n_columns", "n_moments"])
@pytest.mark.parametrize("number", [2**40, 2**62, 2**63, 2**64 - 1])
def test_forged_columns_of_no_rows_are_refused(field, number):
    header = {"n_columns": 1, "n_moments": 3} | {field: number}
    body = module._HEADER.pack(module.MAGIC, 1, 0, *header.values())
    with pytest.raises(ValueError, match="not a sample of rows of boostbins', or are damaged"):
        RowSample.from_bytes(body + struct.pack("<I", zlib.crc32(body)))


@pytest.mark.parametrize(
    ("at", "number"),
    [(0, 1e308), (2, 0.0), (9, 0.0), (9, -1.0), (9, np.inf), (9, np.nan), (10, np.nan), (10, np.inf), (11, -1.0),
     (11, np.inf), (17, np.nan)],
)  # fmt: skip
def test_forged_keys_and_moments_are_refused(at, number):
    with pytest.raises(ValueError, match="not a sample of rows of boostbins', or are damaged"):
        RowSample.from_bytes(forged(change=(at, number)))


@given(st.data())
def test_damaged_bytes_are_refused(data):
    whole = forged()
    at = data.draw(st.integers(0, len(whole) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    for damaged in (
        whole[:at],
        whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :],
        whole + b"\0",
        whole[at + 1 :],
    ):
        with pytest.raises(ValueError, match="sample of rows"):
            RowSample.from_bytes(damaged)


def test_another_version_is_named():
    data = bytearray(forged())
    data[14] = 9
    with pytest.raises(ValueError, match="a sample of rows of version 9; this boostbins reads version 1"):
        RowSample.from_bytes(bytes(data))


def test_rows_of_other_columns_are_refused():
    whole = summarize({"a": [1.0, 2.0], "b": [3.0, 4.0]}, y=[1.0, 2.0])
    odd = TableSummary(whole.columns, whole.names, rows=sample({"a": [1.0]}, [1.0]))
    with pytest.raises(ValueError, match="not a summary of boostbins': its rows have other columns"):
        TableSummary.from_bytes(odd.to_bytes())


# ---- in summaries


def test_a_summary_whose_rows_cannot_be_known_says_so():
    r = np.random.default_rng(0)
    X, y = {"a": r.normal(size=300), "b": r.normal(size=300)}, r.normal(size=300)
    whole, turned = summarize(X, y=y), summarize({"b": X["b"], "a": X["a"]}, y=y)
    for summary, columns in ((whole + turned, None), (whole, ["a"]), (whole, ["b", "a"])):
        with pytest.raises(ValueError, match="the summary has no sample of its rows"):
            fit_bins(summary, columns=columns, average_bins=20)
    assert fit_bins(whole, columns=["a", "b"], average_bins=20) == fit_bins(X, y=y, average_bins=20)


def test_a_summary_of_no_rows_adds_nothing():
    X, y = {"a": np.arange(30.0)}, np.arange(30.0)
    whole = summarize(X, y=y)
    nothing = TableSummary([ColumnSummary([])], ["a"])
    assert nothing.rows is None
    assert (whole + nothing).rows == (nothing + whole).rows == whole.rows


def test_targets_of_another_number_are_named():
    one, two = summarize({"a": [1.0, 2.0]}, y=[1.0, 2.0]), summarize({"a": [1.0, 2.0]}, y=np.eye(2))
    with pytest.raises(ValueError, match="targets"):
        _ = one + two


def test_a_library_that_sees_float32_has_about_the_same_rows():
    r = np.random.default_rng(0)
    X, y = r.lognormal(0, 2, (30_000, 3)), r.normal(size=30_000)
    exact, rounded = sample(X, y), sample(X.astype(np.float32), y)
    np.testing.assert_array_equal(exact.keys >> np.uint64(24), rounded.keys >> np.uint64(24))
    np.testing.assert_array_equal(exact.values.astype(np.float32), rounded.values)
