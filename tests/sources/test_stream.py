"""What comes in batches has the cuts of what is in memory, to the last bit; what cannot be read is named."""

from __future__ import annotations

import gzip
import itertools
import os
import sqlite3
import subprocess
import sys
import threading
import time
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet
from scipy.sparse import csr_matrix

from boostbins import ColumnSummary, fit_bins, summarize
from boostbins.sources import csv as our_csv
from boostbins.sources import files, stream
from boostbins.sources.content import FileError
from boostbins.summary import column as column_module
from boostbins.summary.column import GrowingSummary
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


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(files, "_MAX_ROWS", 9_973)
    monkeypatch.setattr(files, "_MIN_ROWS", 5_000)
    monkeypatch.setattr(stream, "_ROWS_TOGETHER", 5_000)
    monkeypatch.setattr(files, "_ROWS_AT_A_VISIT", 15_000)


def written(table, folder, n_files=3, kind="parquet"):
    folder.mkdir(exist_ok=True)
    ends = np.linspace(0, table.num_rows, n_files + 1).astype(int)
    for i, (start, end) in enumerate(itertools.pairwise(ends)):
        part, path = table.slice(start, end - start), folder / f"part-{i}.{kind}"
        if kind == "parquet":
            parquet.write_table(part, path, row_group_size=11_111)
        elif kind == "feather":
            feather.write_feather(part, path, chunksize=20_000)
        else:
            csv.write_csv(part, path)
    return folder


# ---- the same cuts


def refilled(table, n_rows, kind):
    """Yield a table's rows from one buffer, filled again and again."""
    matrix = np.column_stack([table.column(name).to_numpy().astype(np.float64) for name in table.column_names])
    buffer = np.empty((n_rows, matrix.shape[1]), order="F")
    for start in range(0, len(matrix), n_rows):
        rows = matrix[start : start + n_rows]
        buffer[: len(rows)] = rows
        columns = dict(zip(table.column_names, buffer[: len(rows)].T, strict=True))
        yield {"dict": dict, "pandas": partial(pd.DataFrame, copy=False), "arrow": pa.table}[kind](columns)


@pytest.mark.parametrize("kind", ["dict", "pandas", "arrow"])
@pytest.mark.parametrize("n_rows", [1_000, 40_000])
def test_an_iterator_may_fill_one_buffer_again_and_again(table, n_rows, kind):
    table = table.select(["normal", "gaps", "integers", "whole", "lognormal"])
    for options in ({}, {"sample_weight": "integers", "y": "whole", "method": "auto"}):
        expected = fit_bins(table, **options)
        assert fit_bins(refilled(table, n_rows, kind), **options) == expected
        assert fit_bins(lambda: refilled(table, n_rows, kind), **options) == expected
    if kind == "arrow":
        batches = (batch for part in refilled(table, n_rows, kind) for batch in part.to_batches())
        schema = pa.schema([(name, pa.float64()) for name in table.column_names])
        assert fit_bins(pa.RecordBatchReader.from_batches(schema, batches)) == fit_bins(table)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_files_have_the_cuts_of_memory(table, bins, tmp_path, small_batches, n_threads):
    folder = written(table, tmp_path / "data")
    assert fit_bins(folder, n_threads=n_threads) == bins
    assert fit_bins(str(folder / "*.parquet"), n_threads=n_threads) == bins
    assert fit_bins(sorted(folder.iterdir(), reverse=True), n_threads=n_threads) == bins
    assert fit_bins(written(table, tmp_path / "feather", 2, "feather"), n_threads=n_threads) == bins


@pytest.mark.parametrize("row_group_size", [997, 40_000, N])
@pytest.mark.parametrize("batch", [files._BATCH, 8 * 30_000], ids=["by column", "larger groups by row"])
def test_row_groups_of_any_size_have_them(table, bins, tmp_path, monkeypatch, row_group_size, batch):
    monkeypatch.setattr(files, "_BATCH", batch)
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=row_group_size)
    assert fit_bins(tmp_path / "a.parquet") == bins


@pytest.mark.parametrize("method", ["optimal", "quantile", "uniform"])
def test_every_method_has_them(table, tmp_path, small_batches, method):
    folder = written(table, tmp_path / "data", 2)
    assert fit_bins(folder, method, 63) == fit_bins(table, method, 63)


def test_csv_has_the_cuts_of_memory(table, tmp_path, monkeypatch):
    monkeypatch.setattr(our_csv, "_MAX_BLOCK", 1 << 20)
    numbers = table.drop_columns(["small", "flag"])  # whose texts are of other numbers, and truths
    folder = written(numbers, tmp_path / "data", 2, "csv")
    bins = fit_bins(numbers)
    assert fit_bins(folder) == bins
    for path in list(folder.iterdir()):
        (folder / (path.name + ".gz")).write_bytes(gzip.compress(path.read_bytes(), 1))
        path.unlink()
    assert fit_bins(folder) == bins


def test_arrow_datasets_and_readers_have_them(table, bins, tmp_path, small_batches):
    folder = written(table, tmp_path / "data")
    assert fit_bins(pa.dataset.dataset(folder)) == bins
    assert fit_bins(pa.dataset.dataset(table)) == bins
    assert fit_bins(table.to_reader(7_777)) == bins


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "dict", "array"])
def test_chunks_of_any_kind_have_them(table, bins, kind):
    make = {
        "arrow": lambda part: part,
        "pandas": lambda part: part.to_pandas(),
        "polars": pl.from_arrow,
        "dict": lambda part: {name: part[name].to_numpy() for name in part.column_names},
        "array": lambda part: np.column_stack([part[name].to_numpy().astype(float) for name in part.column_names]),
    }[kind]
    sizes = [1, 0, 5, 70_000, 33, 0, 12_000]
    ends = np.cumsum([0, *sizes, N - sum(sizes)])
    parts = [make(table.slice(a, b - a)) for a, b in itertools.pairwise(ends)]
    found = fit_bins(iter(parts))
    assert [c.tobytes() for c in found.cuts] == [c.tobytes() for c in bins.cuts]
    assert fit_bins(lambda: iter(parts)) == found


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps_are_read_in_blocks(table, bins, tmp_path, small_batches, order):
    array = np.asfortranarray(np.column_stack([table[name].to_numpy().astype(float) for name in table.column_names]))
    mapped = np.memmap(tmp_path / "data", np.float64, "w+", shape=array.shape, order=order)
    mapped[:] = array
    assert [c.tobytes() for c in fit_bins(mapped).cuts] == [c.tobytes() for c in bins.cuts]
    weight = np.arange(N) % 3
    assert fit_bins(mapped, sample_weight=weight) == fit_bins(array, sample_weight=weight)


@pytest.mark.parametrize("large", [False, True])
@given(
    st.lists(st.tuples(any_float, st.integers(0, 3), st.integers(-5, 5)), min_size=1, max_size=150),
    st.lists(st.tuples(any_float, st.integers(0, 3), st.integers(-5, 5)), max_size=150),
    st.integers(2, 40),
    st.sampled_from([0, 1, 2]),
)
def test_a_growing_summary_is_the_sum_of_its_batches(large, before, after, max_cells, n_beside):
    def arrays(rows):
        columns = np.array(rows, float).reshape(-1, 3)
        x, w, t = (np.ascontiguousarray(column) for column in columns.T)
        return x, w if n_beside else None, t[:, None] if n_beside == 2 else None

    growing = GrowingSummary(max_cells)
    with patch.object(column_module, "_SORTED_ROWS", 0 if large else column_module._SORTED_ROWS):
        growing.add(*arrays(before))
    first = ColumnSummary(*arrays(before), max_cells=max_cells)
    assert growing.summary() == first
    growing.add(*arrays(after))
    both = first + ColumnSummary(*arrays(after), max_cells=max_cells)
    assert growing.summary() == both
    growing.add(*arrays(before))
    assert growing.summary() == both + first


# ---- weights, targets, columns


def test_weights_and_targets_come_by_name(table, tmp_path, small_batches):
    weight = np.arange(N) % 5
    data = table.append_column("w", pa.array(weight)).append_column("t", table["normal"])
    folder = written(data, tmp_path / "data")
    assert fit_bins(folder, sample_weight="w", columns=table.column_names) == fit_bins(table, sample_weight=weight)
    assert fit_bins(data, sample_weight="w", y="t") == fit_bins(table, sample_weight=weight)
    assert fit_bins(folder, sample_weight=weight, columns=table.column_names) == fit_bins(table, sample_weight=weight)
    named = summarize(folder, columns=["uniform"], sample_weight="w", y="t")
    assert named.names == ("uniform",)
    known = ColumnSummary(table["uniform"].to_numpy(), weight, table["normal"].to_numpy())
    np.testing.assert_allclose(named["uniform"].target_sums, known.target_sums, rtol=1e-9, atol=1e-9)


def test_columns_are_selected(table, bins, tmp_path):
    folder = written(table, tmp_path / "data", 2)
    some = ["whole", "lognormal"]
    found = fit_bins(folder, columns=some)
    assert found == fit_bins(table, columns=some) == fit_bins(summarize(folder), columns=some)
    assert found.names == tuple(some)
    assert found["lognormal"].tobytes() == bins["lognormal"].tobytes()


def test_texts_are_skipped_if_asked(tmp_path):
    parquet.write_table(pa.table({"a": [1.0, 2.0], "text": ["x", None]}), tmp_path / "a.parquet")
    assert fit_bins(tmp_path / "a.parquet", non_numeric="skip").names == ("a",)
    with pytest.raises(TypeError, match=r"a\.parquet.*column 'text'.*non_numeric='skip'"):
        fit_bins(tmp_path / "a.parquet")


# ---- files that differ


def test_numbers_of_different_types_go_together(tmp_path):
    parts = [
        pa.table({"a": pa.array([1, 2, None]), "b": pa.array([None, None, None])}),
        pa.table({"b": pa.array([0.5, 1.5], pa.float32()), "a": pa.array([2.5, -1.0])}),
        pa.table({"a": pa.array([True, False]), "b": pa.array([7, 8], pa.uint8())}),
        pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.float64())}),
    ]
    for i, part in enumerate(parts):
        parquet.write_table(part, tmp_path / f"{i}.parquet")
    a = [1, 2, np.nan, 2.5, -1, 1, 0]
    b = [np.nan] * 3 + [0.5, 1.5, 7, 8]
    assert fit_bins(tmp_path) == fit_bins({"a": a, "b": b})
    assert summarize(tmp_path) == summarize({"a": a, "b": b})


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"a": [1.0]}, r"1\.parquet has no column 'b', which .*0\.parquet has"),
        ({"a": [1.0], "b": [1.0], "c": [1.0]}, r"1\.parquet has a column 'c', which .*0\.parquet has not"),
        ({"a": [1.0], "b": ["text"]}, r"column 'b' is double in .*0\.parquet, and string in .*1\.parquet: convert"),
    ],
)
def test_files_of_other_columns_are_named(tmp_path, second, message):
    parquet.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table(second), tmp_path / "1.parquet")
    with pytest.raises(FileError, match=message):
        fit_bins(tmp_path)
    assert fit_bins(tmp_path, columns=["a"]).names == ("a",)  # the way out


def test_chunks_of_other_columns_are_named():
    with pytest.raises(ValueError, match=r"chunk 1: X lacks 'b'"):
        fit_bins(iter([{"a": [1], "b": [2]}, {"a": [1]}]))
    with pytest.raises(TypeError, match=r"chunk 1: X, column 'a': a column must hold numbers"):
        fit_bins(iter([{"a": [1]}, {"a": ["x"]}]))


@pytest.mark.parametrize("weight", [None, "uniform"])
def test_a_damaged_row_group_is_named(table, tmp_path, weight):
    path = tmp_path / "a.parquet"
    parquet.write_table(table.select(["normal", "uniform"]), path, row_group_size=50_000, write_page_checksum=True)
    column = parquet.read_metadata(path).row_group(1).column(0)
    data = bytearray(path.read_bytes())
    middle = column.data_page_offset + column.total_compressed_size // 2
    data[middle - 2000 : middle + 2000] = b"\xff" * 4000
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"^[^:]*a\.parquet, row group 2 of 3 cannot be read"):
        fit_bins(path, sample_weight=weight)


def test_a_file_cut_short_is_named(table, tmp_path):
    for kind, what in [("parquet", "Parquet"), ("feather", "Feather")]:
        folder = written(table, tmp_path / kind, 1, kind)
        (path,) = folder.iterdir()
        path.write_bytes(path.read_bytes()[:-1000])
        with pytest.raises(FileError, match=f"is not a whole {what} file"):
            fit_bins(folder)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_a_column_whose_name_is_damaged_is_named(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    (parquet.write_table if kind == "parquet" else feather.write_feather)(pa.table({"price": [1.0]}), path)
    path.write_bytes(path.read_bytes().replace(b"price", b"pric\xff"))
    with pytest.raises(FileError, match=rf"a\.{kind} (has a column whose name is no text|is not a whole)"):
        fit_bins(path)


def test_csv_of_texts_among_numbers_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(our_csv, "_MAX_BLOCK", 1 << 12)
    rows = [f"{i},{i / 7}" for i in range(2000)]
    (tmp_path / "a.csv").write_text("\n".join(["a,b", *rows, "oops,1"]) + "\n")
    with pytest.raises(FileError, match=r"a\.csv cannot be read as CSV: .*oops.*leave the column out"):
        fit_bins(tmp_path / "a.csv")
    assert fit_bins(tmp_path / "a.csv", columns=["b"]).names == ("b",)


def test_whole_numbers_may_become_fractions_and_missing_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(our_csv, "_MAX_BLOCK", 1 << 12)
    a = [*range(3000), 0.5, np.nan]
    b = [np.nan] * 3000 + [1.0, 2.0]
    pd.DataFrame({"a": a, "b": b}).to_csv(tmp_path / "a.csv", index=False)
    text = (tmp_path / "a.csv").read_text().replace(".0,", ",")
    (tmp_path / "a.csv").write_text(text)
    assert fit_bins(tmp_path / "a.csv") == fit_bins({"a": a, "b": b})


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (iter([]), {}, "X has no rows"),
        (iter([{"a": []}]), {}, "X has no rows"),
        ([], {}, "X has no columns"),
        ({"a": [1.0]}, {"columns": ["b"]}, "columns: there is no column 'b'"),
        ({"a": [1.0]}, {"columns": "a"}, "columns must be a list of names"),
        ({"a": [1.0]}, {"columns": ["a", "a"]}, "columns names 'a' more than once"),
        (summarize({"a": [1.0]}), {"columns": ["b"]}, "columns: there is no column 'b'; there are 'a'"),
        ({"a": [1.0]}, {"sample_weight": "w"}, "sample_weight: there is no column 'w'"),
        (csr_matrix(np.ones((3, 1))), {"columns": ["x0"]}, "columns is given by name, but a csr_matrix has no names"),
        (iter([{"a": [1.0, 2.0]}]), {"sample_weight": [1.0]}, r"sample_weight must have one entry per row"),
        (iter([{"a": [1.0], "w": [-1.0]}]), {"sample_weight": "w"}, "chunk 0: sample_weight must be finite and not"),
        (iter([{"a": [1.0], "w": [0.0]}]), {"sample_weight": "w"}, "sample_weight is zero for every row"),
        (iter([{"a": [1.0]}]), {"max_bins": 1}, "max_bins must be a whole number from 2"),
        (iter([{"a": [1.0]}]), {"max_bins": {"b": 3}}, "max_bins, given by name"),
    ],
)
def test_bad_streams_are_refused(X, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit_bins(X, **options)


def test_a_missing_reader_is_named(monkeypatch):
    monkeypatch.setattr(stream, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"a\.parquet is read by pyarrow.*pip install 'boostbins\[files\]'"):
        fit_bins("a.parquet")


def test_a_function_may_give_a_single_table():
    X = np.random.default_rng(0).lognormal(0, 2, (1000, 3))
    assert fit_bins(lambda: X) == fit_bins(X)
    assert fit_bins(lambda: pa.table({"a": X[:, 0]})).names == ("a",)
    assert fit_bins(lambda: {"a": X[:, 0]}).names == ("a",)
    with pytest.raises(TypeError, match="its function returned a NoneType"):
        fit_bins(lambda: None)


def test_a_users_iterator_stays_in_the_users_thread():
    connection = sqlite3.connect(":memory:")
    frame = pd.DataFrame({"a": np.random.default_rng(0).random(5000)})
    frame.to_sql("t", connection, index=False)
    assert fit_bins(pd.read_sql("select * from t", connection, chunksize=1000)) == fit_bins(frame)
    connection.close()


def test_an_empty_folder_is_named(tmp_path):
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(FileError, match="has no files"):
        fit_bins(tmp_path)


def test_a_file_that_is_written_to_meanwhile_is_refused(table, tmp_path, small_batches):
    folder = written(table.select(["normal"]), tmp_path / "data", 1)
    (path,) = folder.iterdir()

    def touch(*_):
        os.utime(path, ns=(1, 1))

    with pytest.raises(FileError, match="changed while it was read"):
        fit_bins(folder, progress=touch)


def test_progress_ends_at_the_files_size(table, tmp_path, small_batches):
    folder = written(table.select(["normal", "whole"]), tmp_path / "data")
    told = []
    fit_bins(folder, progress=lambda *said: told.append(said))
    done, total, _ = zip(*told, strict=True)
    assert list(done) == sorted(done)
    assert len(done) > 5
    assert set(total) == {sum(path.stat().st_size for path in folder.iterdir())}
    assert done[-1] == total[-1]


# ---- interrupted, and in little memory

_READ = """
import resource, sys, threading
import pyarrow.parquet
from boostbins import fit_bins
def anonymous():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("RssAnon")).split()[1]) / 1024
peak, over = [0.0], threading.Event()
def watch():
    while not over.wait(0.002):
        peak[0] = max(peak[0], anonymous())
before = anonymous()
thread = threading.Thread(target=watch, daemon=True); thread.start()
fit_bins(sys.argv[1], n_threads=2)
over.set(); thread.join()
print(peak[0] - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_file_is_binned_in_less_memory_than_it_has(tmp_path):
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(8)])
    with parquet.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for _ in range(6):
            part = pa.table({f"c{i}": rng.lognormal(0, 2, 1_000_000) for i in range(8)})
            writer.write_table(part, row_group_size=100_000)
    size = 6 * part.nbytes / 2**20
    done = subprocess.run([sys.executable, "-c", _READ, tmp_path / "a.parquet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < size / 2, f"{done.stdout} MB of {size:.0f}"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kind", ["one row group", "narrow CSV"])
def test_a_file_of_few_columns_is_binned_in_little_memory(tmp_path, kind):
    path = tmp_path / "a"
    if kind == "narrow CSV":
        path.write_text("a,b\n" + "".join(f"{i % 7},{i % 10}\n" for i in range(100_000)) * 120)
    else:
        values = np.random.default_rng(0).lognormal(0, 2, 12_000_000)
        parquet.write_table(
            pa.table({"a": values, "b": values}), path, row_group_size=len(values), use_dictionary=False
        )
    done = subprocess.run([sys.executable, "-c", _READ, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 160, f"{done.stdout} MB"


def test_an_interrupt_ends_it_at_once(table):
    begun = threading.Event()

    def endless():
        while True:
            begun.set()
            yield table
            time.sleep(0.01)

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_bins(endless(), progress=interrupt)
    assert begun.is_set()
