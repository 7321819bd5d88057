from __future__ import annotations

import pickle
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbins import ColumnSummary
from boostbins.summary import column
from boostbins.summary.column import MAX_CELLS, GrowingSummary
from tests import naive
from tests.conftest import columns, distributions, skewed

LARGE = 300_000  # past the size up to which columns are sorted


def cells_of(summary):
    low, high = summary.cell_ends
    return low, high, summary._state[0][:, 1]


@given(columns, st.integers(2, 20))
def test_cells_are_those_of_the_definition(x, max_cells):
    summary = ColumnSummary(x, max_cells=max_cells)
    expected = naive.cells(x, max_cells)
    _, _, counts = cells_of(summary)
    assert counts.tolist() == [count for _, count in expected]
    assert summary.is_exact == (len({v for v in x if np.isfinite(v)}) <= max_cells)


@given(columns, st.integers(2, 20), st.data())
def test_cells_do_not_depend_on_order_partitioning_or_merge_tree(x, max_cells, data):
    whole = ColumnSummary(x, max_cells=max_cells)
    order = data.draw(st.permutations(range(len(x))))
    ends = sorted(data.draw(st.lists(st.integers(0, len(x)), max_size=5)))
    parts = [ColumnSummary(p, max_cells=max_cells) for p in np.split(x[list(order)], ends)]
    while len(parts) > 1:
        i = data.draw(st.integers(0, len(parts) - 2))
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    assert parts[0] == whole


@pytest.mark.parametrize("name", distributions(1))
def test_large_columns_do_not_depend_on_order_or_partitioning_either(name):
    x = distributions(LARGE, seed=1)[name]
    r = np.random.default_rng(2)
    x[r.random(LARGE) < 0.01] = np.nan
    x[:3] = [np.inf, -np.inf, -0.0]
    whole = ColumnSummary(x)
    assert ColumnSummary(r.permutation(x)) == whole
    parts = [ColumnSummary(p) for p in np.split(x, np.sort(r.integers(0, LARGE, 7)))]
    left = sum(parts[1:], start=parts[0])
    right = parts[-1]
    for part in reversed(parts[:-1]):
        right = part + right
    assert left == whole == right
    finite = x[np.isfinite(x)]
    assert (whole.min, whole.max, whole.count) == (finite.min(), finite.max(), len(finite))
    assert (whole.missing, whole.negative_infinite, whole.positive_infinite) == (np.isnan(x).sum(), 1, 1)
    assert whole.n_rows == LARGE


def test_the_guided_pass_and_the_sorted_one_agree():
    x = skewed(LARGE)
    from_sorted = ColumnSummary(x[:100_000]) + ColumnSummary(x[100_000:200_000]) + ColumnSummary(x[200_000:])
    assert ColumnSummary(x) == from_sorted


@pytest.mark.parametrize("limit", [32_767, 32_768, 32_769])
def test_exact_up_to_the_limit_of_distinct_values(limit):
    x = np.tile(np.sqrt(np.arange(limit)), 6)
    summary = ColumnSummary(x)
    assert summary.is_exact == (limit <= 32_768)
    assert summary.n_cells <= 32_768
    assert summary.count == len(x)
    if summary.is_exact:
        np.testing.assert_array_equal(summary.points.low, np.unique(x))


def test_every_type_and_stride_gives_the_same_summary():
    whole = np.random.default_rng(0).integers(0, 100, (LARGE, 2))
    expected = ColumnSummary(whole[:, 0].astype(np.float64))
    for dtype in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f8", ">i4", np.longdouble]:
        assert ColumnSummary(whole[:, 0].astype(dtype)) == expected, dtype
    assert ColumnSummary(np.asfortranarray(whole)[:, 0]) == expected
    assert ColumnSummary(whole[::-1, 0]) == expected
    assert ColumnSummary(np.array([True, False, True])) == ColumnSummary([1.0, 0.0, 1.0])


@given(columns, st.data())
def test_weights_count_as_repetitions(x, data):
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x))), int)
    weighted, repeated = ColumnSummary(x, weight=times), ColumnSummary(np.repeat(x, times))
    np.testing.assert_array_equal(weighted.points.low, repeated.points.low)
    np.testing.assert_array_equal(weighted.points.weight, repeated.points.weight)
    assert weighted.special_weights == repeated.special_weights
    if repeated.count:
        q = np.linspace(0, 1, 12)
        np.testing.assert_array_equal(weighted.quantile(q), repeated.quantile(q))


def test_weighted_parts_add_up_to_the_whole_but_for_rounding():
    x, r = skewed(LARGE), np.random.default_rng(0)
    w, y = r.random(LARGE), r.standard_normal(LARGE)
    w[::7] = 0
    whole = ColumnSummary(x, w, y)
    parts = ColumnSummary(x[:1000], w[:1000], y[:1000]) + ColumnSummary(x[1000:], w[1000:], y[1000:])
    np.testing.assert_array_equal(whole._state[0], parts._state[0])
    np.testing.assert_allclose(whole.target_sums, parts.target_sums, rtol=1e-9, atol=1e-9)
    total = [w.sum(), (w * y).sum(), (w * y * y).sum()]
    np.testing.assert_allclose(whole.target_sums.sum(axis=0), total)


@pytest.mark.parametrize("n_rows", [1_000, 200_000])  # sorted, and counted
@pytest.mark.parametrize("n_targets", [1, 2, 5, 16])
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_are_summed_as_the_numbers_0_and_1(n_rows, n_targets, weighted):
    rng = np.random.default_rng(n_targets)
    x = np.where(rng.random(n_rows) < 0.01, np.nan, rng.lognormal(0, 2, n_rows) * rng.choice([-1, 1, 1], n_rows))
    x[:9] = [-np.inf, np.inf, 0.0, -0.0, -0.0, 1e300, -1e-300, 5e-324, 1e300]
    classes = rng.random((n_rows, n_targets)) < 0.3
    weight = rng.integers(0, 4, n_rows).astype(float) if weighted else None
    summary = ColumnSummary(x, weight, classes, max_cells=4096)
    assert summary == ColumnSummary(x, weight, classes.astype(float), max_cells=4096)

    counted = np.isfinite(x) & (True if weight is None else weight > 0)
    weights = np.ones(n_rows) if weight is None else weight
    cell = np.searchsorted(summary.cell_ends[0], x[counted], side="right") - 1
    for i in range(n_targets):  # whole numbers, so exactly
        sums = np.bincount(cell, (weights * classes[:, i])[counted], summary.n_cells)
        assert (summary.target_sums[:, 1 + i] == sums).all()


def test_target_sums_are_those_of_the_rows_in_each_cell():
    x, y = skewed(LARGE), np.random.default_rng(1).standard_normal(LARGE)
    summary = ColumnSummary(x, target=y)
    low, _ = summary.cell_ends
    cell = np.searchsorted(low, x, side="right") - 1
    np.testing.assert_allclose(summary.target_sums[:, 1], np.bincount(cell, y, len(low)), atol=1e-9)


def test_a_weighted_and_a_plain_summary_add_up():
    both = ColumnSummary([1.0, 2.0], weight=[0.5, 1.0]) + ColumnSummary([2.0, 3.0])
    np.testing.assert_array_equal(both.points.weight, [0.5, 2.0, 1.0])
    with pytest.raises(ValueError, match="target"):
        ColumnSummary([1.0], target=[1.0]) + ColumnSummary([1.0])


@given(columns.filter(lambda x: np.isfinite(x).any()), st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_quantiles_are_numpys(x, q):
    finite = x[np.isfinite(x)] + 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.quantile(finite, q)
    got = ColumnSummary(x).quantile(q)
    kept = np.isfinite(expected)  # NumPy's overflow where neighbours are more than 1.8e308 apart
    np.testing.assert_array_equal(got[kept], expected[kept])
    assert np.isfinite(got).all()


@pytest.mark.parametrize("name", sorted(distributions(1).keys() - {"a heavy value"}))
def test_quantiles_of_large_columns_stay_near_the_right_rank(name):
    x = np.sort(distributions(LARGE)[name])
    got = ColumnSummary(x).quantile(np.arange(1, 255) / 255)
    below = np.searchsorted(x, got, side="left") / len(x) * 255
    upto = np.searchsorted(x, got, side="right") / len(x) * 255
    error = np.maximum(np.arange(1, 255) - upto, below - np.arange(1, 255)).max()
    # In bins. Inside a crowded cell only the sample knows the way.
    assert error < (5 if "noise" in name else 0.05)


@pytest.mark.parametrize("name", distributions(1))
def test_moments_are_the_columns(name):
    stats = pytest.importorskip("scipy.stats")
    x = distributions(LARGE)[name]
    summary = ColumnSummary(x)
    scale = np.abs(x).max()
    np.testing.assert_allclose(
        summary.mean / scale, (x / scale).mean(), rtol=1e-3 if name == "a heavy value" else 1e-5, atol=1e-7
    )
    if "spike" in name:
        return
    if name not in ("subnormal", "huge"):
        np.testing.assert_allclose(summary.variance, x.var(), rtol=1e-4)
        np.testing.assert_allclose(summary.skew, stats.skew(x), rtol=1e-3, atol=1e-3)


def test_moments_of_extreme_columns_do_not_overflow():
    summary = ColumnSummary([-1e308, 1e308, 1e308])
    assert summary.mean == pytest.approx(1e308 / 3)
    assert summary.skew == pytest.approx(-0.7071, abs=1e-3)
    assert ColumnSummary([3.0, 3.0]).skew == 0
    assert np.isnan(ColumnSummary([np.nan]).mean)


@pytest.mark.parametrize("weight", [None, "random"])
def test_bytes_and_pickles_round_trip(weight):
    x = skewed(LARGE)
    w = None if weight is None else np.random.default_rng(0).random(LARGE)
    for summary in (ColumnSummary(x, w), ColumnSummary(x[:5], w if w is None else w[:5]), ColumnSummary([])):
        assert ColumnSummary.from_bytes(summary.to_bytes()) == summary
        again = pickle.loads(pickle.dumps(summary))
        assert again == summary
        assert hash(again) == hash(summary)
        assert again + again == summary + summary


def test_summaries_with_more_scales_than_cells_round_trip():
    for x, limit in (([1.0, 2.0, 4.0, 8.0], 2), (10.0 ** np.random.default_rng(0).uniform(-300, 300, 5000), 1000)):
        summary = ColumnSummary(x, max_cells=limit)
        assert limit < summary.n_cells <= 4096
        assert pickle.loads(pickle.dumps(summary)) == summary


def test_damaged_bytes_are_refused():
    data = ColumnSummary(skewed(1000)).to_bytes()
    for bad in (b"", data[:10], data[:-1], data[:200] + b"\0" + data[201:], b"x" + data[1:]):
        with pytest.raises(ValueError, match="summary"):
            ColumnSummary.from_bytes(bad)
    with pytest.raises(ValueError, match="version 9"):
        ColumnSummary.from_bytes(data[:17] + b"\x09" + data[18:])


def test_it_says_what_it_holds():
    assert repr(ColumnSummary([1, 2, 2, np.nan, -np.inf])) == (
        "ColumnSummary(3 rows from 1 to 2, mean 1.66667, skew -0.707; 2 distinct values, exact; 1 missing; 1 -inf)"
    )
    assert repr(ColumnSummary([np.nan])) == "ColumnSummary(no finite values; 1 missing)"
    assert "cells" in repr(ColumnSummary(skewed(LARGE)))


def test_it_cannot_be_changed():
    summary = ColumnSummary([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        summary.points.low[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        summary._state[0][0] = 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": [[1.0]]}, "one dimension"),
        ({"column": ["a"]}, "numbers"),
        ({"column": [1j]}, "numbers"),
        ({"column": [1.0], "weight": [-1.0]}, "weight must be finite and not negative, got -1.0"),
        ({"column": [1.0], "weight": [np.nan]}, "weight must be finite"),
        ({"column": [1.0], "weight": [1.0, 2.0]}, "weight must have one entry per row"),
        ({"column": [1.0, 2.0], "weight": [1e308, 1e308]}, "infinity"),
        ({"column": [1.0], "target": [np.inf]}, "target must be finite"),
        ({"column": [1.0], "max_cells": 1}, "max_cells"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ColumnSummary(**arguments)


def test_a_nan_of_any_bits_is_missing():
    odd = np.array([0xFFFFFFFFFFFFFFFF, 0x7FF0000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    x = np.concatenate([np.repeat(odd, 1000), np.tile([18231.0, 0.5], 70_000)])
    summary = ColumnSummary(x)
    assert summary.missing == 3000
    assert summary.points.weight.tolist() == [70_000, 70_000]
    assert ColumnSummary(x[::-1]) == summary
    for n in (1, 200_000):
        odd = np.repeat(np.array([0x7F800001, 0xFFC00000, 0x3F800000], np.uint32), n).view(np.float32)
        assert ColumnSummary(odd).missing == 2 * n


def test_odd_arrays_are_read():
    packed = np.zeros(200_000, dtype=[("a", "i1"), ("b", "f8")])
    packed["b"] = np.arange(200_000) % 7
    assert ColumnSummary(packed["b"]) == ColumnSummary(packed["b"].copy())
    assert ColumnSummary(np.ma.array([1, 2, 9], mask=[False, False, True])) == ColumnSummary([1.0, 2.0, np.nan])


def test_extreme_weights_do_not_break_the_description():
    assert "2 rows" in repr(ColumnSummary([0.0, 1.0], [1.0, 1e-300]))
    assert ColumnSummary([0.0, 1e200]).variance == np.inf
    most = np.finfo(np.float64).max
    for value in (1e300, most):
        assert ColumnSummary([-value, value], [1e300, 1e-300]).variance == 0
    assert ColumnSummary([-most, most]).variance == np.inf


def test_bytes_of_every_version_are_read():
    x = np.concatenate([np.sqrt(np.arange(40.0)), [np.nan, np.inf, -np.inf, -3.25, -3.25]])
    weight, target = np.arange(45) / 4, np.arange(45.0)
    written = {
        "summary-v1-cells.bin": ColumnSummary(x, max_cells=16),
        "summary-v1-weighted.bin": ColumnSummary(x, weight, target),
        "summary-v2-cells.bin": ColumnSummary(x, max_cells=16),
        "summary-v2-weighted.bin": ColumnSummary(x, weight[::-1], target),
    }
    for name, summary in written.items():
        data = (Path(__file__).parents[1] / "fixtures" / name).read_bytes()
        assert ColumnSummary.from_bytes(data) == summary
        if "v2" in name:
            assert summary.to_bytes() == data
            assert ColumnSummary.from_bytes(data).range == summary.range


@given(columns, st.data())
def test_the_range_is_that_of_all_rows_whatever_their_weights(x, data):
    weight = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(x), max_size=len(x))), float)
    low, high = (np.fmin.reduce(x), np.fmax.reduce(x)) if len(x) else (np.nan, np.nan)
    expected = (low, high, bool(np.isnan(x).any()))
    border = data.draw(st.integers(0, len(x)))
    parts = [(x[:border], weight[:border]), (x[border:], weight[border:])]
    growing = GrowingSummary(8)
    for values, its in parts:
        growing.add(values, its, None)
    whole = ColumnSummary(x, weight, max_cells=8)
    for summary in (
        whole,
        sum((ColumnSummary(*part, max_cells=8) for part in parts[1:]), ColumnSummary(*parts[0], max_cells=8)),
        growing.summary(),
        ColumnSummary.from_bytes(whole.to_bytes()),
        ColumnSummary(x),
    ):
        np.testing.assert_array_equal(summary.range, expected)
    assert growing.summary() == whole
    counted = weight > 0
    assert whole == ColumnSummary(x[counted], weight[counted], max_cells=8)


def test_a_forged_range_is_refused():
    body = ColumnSummary([1.0]).to_bytes()[: -4 - 17]
    forged = body + struct.pack("<2d?", 2.0, 1.0, False)
    with pytest.raises(ValueError, match="a range that ends before it begins"):
        ColumnSummary.from_bytes(forged + struct.pack("<I", zlib.crc32(forged)))


def resealed(data, at, values, form):
    """Return a summary's bytes with some fields of its header forged, and the checksum made right."""
    forged = bytearray(data[:-4])
    struct.pack_into(form, forged, at, *values)
    return bytes(forged) + struct.pack("<I", zlib.crc32(forged))


N_CELLS, N_MOMENTS, N_SAMPLE, MAX, LEVEL, APART, APART_WEIGHT, RANGE = 18, 26, 34, 42, 50, 54, 78, 102  # offsets
CELLS = 118


@pytest.mark.parametrize(
    ("at", "form", "values", "message"),
    [
        (N_CELLS, "<Q", [2**61], "another length"),
        (N_CELLS, "<Q", [3], "another length"),
        (N_MOMENTS, "<Q", [2**63], "another length"),
        (N_SAMPLE, "<Q", [2**64 - 1], "another length"),
        (LEVEL, "<i", [-1], "no such level"),
        (LEVEL, "<i", [10**6], "no such level"),
        (LEVEL, "<i", [2106], "another level"),
        (APART, "<Q", [2**63], "missing or infinite rows"),
        (APART, "<Q", [0], "missing or infinite rows"),
        (APART_WEIGHT, "<d", [np.inf], "missing or infinite rows"),
        (APART_WEIGHT, "<d", [-1.0], "missing or infinite rows"),
        (RANGE, "<dd", [0.0, 9.0], "range"),
        (RANGE, "<dd", [9.0, 1.0], "range"),
        (RANGE, "<d", [np.nan], "range"),
        (CELLS, "<Q", [2**64 - 1], "another level"),
        (CELLS + 8, "<Q", [0], "cannot be counted"),
        (CELLS + 8, "<Q", [2**64 - 1], "cannot be counted"),
        (CELLS + 16, "<Q", [2**63 + 1], "do not ascend"),
        (CELLS + 64, "<d", [np.nan], "weight or target"),
        (CELLS + 64, "<d", [0.0], "weight or target"),
    ],
)
def test_forged_bytes_are_refused(at, form, values, message):
    data = ColumnSummary([1.0, 2.0, 4.0, 9.0, np.nan], [1.0, 2.0, 3.0, 4.0, 5.0]).to_bytes()
    assert ColumnSummary.from_bytes(resealed(data, CELLS, [], "<")).n_cells == 4
    with pytest.raises(ValueError, match=message):
        ColumnSummary.from_bytes(resealed(data, at, values, form))


def test_a_forged_limit_takes_no_memory():
    small = ColumnSummary(np.sqrt(np.arange(60.0)), max_cells=16)
    forged = ColumnSummary.from_bytes(resealed(small.to_bytes(), MAX, [2**60], "<Q"))
    resource = pytest.importorskip("resource")  # not on Windows
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (forged + forged).count == 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def grown(parts, weights):
    growing = GrowingSummary(32_768)
    for x, weight in zip(parts, weights, strict=True):
        growing.add(x, weight, None)
    return growing.summary()


@pytest.mark.parametrize("n", [500, LARGE])
def test_weights_that_become_infinite_across_parts_are_refused(n):
    x, weight = np.arange(float(n)), np.full(n, 1e300)
    weight[0] = 6e307
    part = ColumnSummary(x, weight)
    with pytest.raises(ValueError, match="weight adds up to infinity: divide it by its maximum"):
        part + part
    with pytest.raises(ValueError, match="weight adds up to infinity"):
        grown([x, x], [weight, weight])
    target = np.full((n, 1), 1e3)
    with pytest.raises(ValueError, match="target's squares, times the weights, add up to infinity"):
        ColumnSummary(x, weight, target)


@pytest.mark.parametrize("weighted", [False, True])
def test_zeros_and_missing_values_that_come_late_count_as_any_other(weighted):
    """Where small values have a window of their own, in which zeros and NaN of both signs are then counted."""
    r = np.random.default_rng(0)
    first = r.integers(1, 2**40, 200_000) * 5e-324
    second = np.where(r.random(200_000) < 0.5, 0.0, r.permutation(first))
    third = np.where(r.random(200_000) < 0.5, r.choice([np.nan, -np.nan, np.inf, -np.inf, -0.0], 200_000), second)
    parts = [first, second, third]
    weights = [r.integers(1, 4, len(part)).astype(float) if weighted else None for part in parts]
    growing = GrowingSummary(MAX_CELLS)
    for part, weight in zip(parts, weights, strict=True):
        growing.add(part, weight, None)
    whole = np.concatenate(parts)
    weight = np.concatenate(weights) if weighted else None
    exact = ColumnSummary(whole, weight, max_cells=None)
    for summary in (growing.summary(), ColumnSummary(whole, weight), exact + ColumnSummary([], max_cells=MAX_CELLS)):
        assert summary.missing == np.isnan(whole).sum()
        assert summary.special_weights == exact.special_weights
        assert summary.count == np.isfinite(whole).sum()
        assert summary == growing.summary()


@pytest.mark.parametrize("n_threads", [2, 3])
def test_one_long_column_is_the_same_in_threads(n_threads, monkeypatch):
    monkeypatch.setattr(column, "_WORTH_A_THREAD", 50_000)
    x = np.concatenate([skewed(300_000), [np.nan, np.inf, 0.0]])
    assert ColumnSummary.of_checked(x, None, None, MAX_CELLS, n_threads) == ColumnSummary(x)
    weight = np.random.default_rng(0).random(len(x))
    weighted = ColumnSummary.of_checked(x, weight, None, MAX_CELLS, n_threads)
    assert weighted.to_bytes() == ColumnSummary(x, weight).to_bytes()  # in one part: sums do not hang on the threads
