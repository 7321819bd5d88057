"""Summaries of tables: saved, read and added up."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbins import ColumnSummary, TableSummary, fit_bins, summarize
from boostbins.summary.column import MAX_CELLS, GrowingSummary
from tests.conftest import any_float, distributions

N = 150_000


@pytest.fixture(scope="module")
def table():
    columns = {name.replace(",", ""): values for name, values in distributions(N).items()}
    columns["small"] = columns["normal"].astype(np.float32)
    columns["whole"] = columns["integers"].astype(np.int32)
    columns["gaps"] = np.where(np.arange(N) % 7 == 0, np.nan, columns["lognormal"])
    columns["empty"] = np.full(N, np.nan)
    columns["flag"] = columns["normal"] > 0
    return pa.table(columns)


@pytest.fixture(scope="module")
def bins(table):
    return fit_bins(table)


@given(st.lists(any_float, min_size=1, max_size=200), st.lists(st.integers(0, 200), max_size=6), st.integers(2, 40))
def test_cuts_do_not_depend_on_the_partitioning(values, borders, max_cells):
    column = np.array(values)
    borders = sorted(min(b, len(column)) for b in borders)
    parts = np.split(column, borders)
    whole = summarize({"a": column}, max_cells=max_cells)
    assert summarize(iter([{"a": part} for part in parts]), max_cells=max_cells) == whole
    sums = [summarize({"a": part}, max_cells=max_cells) for part in parts if len(part)]
    total = sums[-1]
    for part in sums[:-1]:
        total = total + part
    assert total == whole


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(distributions(1)))
def test_many_rows_in_batches_are_those_rows(name, weighted):
    first, second = distributions(140_000)[name], distributions(90_000, seed=1)[name]
    parts = [first, second, second * 1e3 + 7, first[:1000] * 1e6, -second]  # far beyond what was seen before
    weights = [np.arange(len(part)) % 4.0 if weighted else None for part in parts]
    growing = GrowingSummary(MAX_CELLS)
    for part, weight in zip(parts, weights, strict=True):
        growing.add(part, weight, None)
    assert growing.summary() == ColumnSummary(np.concatenate(parts), np.concatenate(weights) if weighted else None)


# ---- saved summaries


def test_saved_summaries_add_up_to_the_whole(table, bins, tmp_path):
    for i, part in enumerate([table.slice(0, 50_000), table.slice(50_000)]):
        summarize(part).save(tmp_path / f"{i}.bin")
    first, second = (TableSummary.load(tmp_path / f"{i}.bin") for i in range(2))
    assert fit_bins(first + second) == bins == fit_bins(second + first)
    assert first.n_rows == 50_000
    assert (first + second).n_rows == N
    assert fit_bins(first + second).stats == bins.stats


def test_a_damaged_summary_is_refused(table, tmp_path):
    path = tmp_path / "s.bin"
    summarize(table.select(["normal"])).save(path)
    data = path.read_bytes()
    damaged = {
        "cut": data[:-9],
        "changed": data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
        "empty": b"",
        "other": b"PAR1" * 100,
    }
    for content in damaged.values():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"s\.bin: .*(cut short|checksum)"):
            TableSummary.load(path)
    path.write_bytes(data[:15] + b"\x63" + data[16:])
    with pytest.raises(ValueError, match="version 99"):
        TableSummary.load(path)


@pytest.mark.parametrize("units", [{"a": "days"}, {"a": 1}, {"b": "seconds"}, [], None, {"a": ["seconds"]}])
def test_units_that_are_none_are_refused(units):
    whole = TableSummary([ColumnSummary([1.0, 2.0])], ["a"], {"a": "seconds"})

    def forged(units):
        before, names = (json.dumps({"names": ["a"], "units": u}).encode() for u in ({"a": "seconds"}, units))
        data = whole.to_bytes()[:-4]
        assert before in data
        data = data.replace(before, names).replace(struct.pack("<Q", len(before)), struct.pack("<Q", len(names)), 1)
        return data + struct.pack("<I", zlib.crc32(data))

    assert TableSummary.from_bytes(forged({"a": "seconds"})) == whole
    with pytest.raises(ValueError, match="not a summary of boostbins': its names cannot be read"):
        TableSummary.from_bytes(forged(units))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (b'["a", "b", "c"]', "ends before column 'c'"),
        (b'["a"]', "goes on after the last column"),
        (b'["a", "a"]', "2 different names"),
        (b'["a", 5]', "names cannot be read"),
        (b'{"a": 1, "b": 2}', "names cannot be read"),
        (b"[" * 100_000, "names cannot be read"),
        (b'["a", "b"', "names cannot be read"),
        (b"\xff\xfe", "names cannot be read"),
    ],
)
def test_forged_names_are_refused(names, message):
    whole = summarize({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    columns = [column.to_bytes() for column in whole]
    body = b"boostbins table\x01" + len(names).to_bytes(8, "little") + names
    body += b"".join(len(column).to_bytes(8, "little") + column for column in columns)
    with pytest.raises(ValueError, match=message):
        TableSummary.from_bytes(body + zlib.crc32(body).to_bytes(4, "little"))


def test_summaries_that_do_not_suffice_are_refused(table):
    summary = summarize(table.select(["normal"]))
    with pytest.raises(ValueError, match="max_bins=10000 needs a summary of 40000 cells"):
        fit_bins(summary, max_bins=10_000)
    with pytest.raises(ValueError, match=r"exact=True: the summary of column 'normal' is not exact"):
        fit_bins(summary, exact=True)
    with pytest.raises(ValueError, match="sample_weight is part of a TableSummary"):
        fit_bins(summary, sample_weight=[1.0])
    with pytest.raises(ValueError, match="only one of the two summaries has a column 'b'"):
        summary + summarize({"b": [1.0]})
    fine = summarize(table.select(["normal"]), max_cells=None)
    assert fit_bins(fine, exact=True) == fit_bins(table.select(["normal"]), exact=True)
    assert fit_bins(fine, max_bins=10_000) == fit_bins(table.select(["normal"]), max_bins=10_000)
    assert fit_bins(fine) == fit_bins(table.select(["normal"]))
