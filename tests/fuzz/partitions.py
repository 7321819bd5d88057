"""Rows that come in parts, of any size, order and kind, have the cuts of the same rows in memory."""

from __future__ import annotations

import gzip
import itertools
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, feather, parquet

from boostbins import TableSummary, fit, fit_bins, summarize
from boostbins.sources import csv as our_csv
from boostbins.sources import files as our_files
from boostbins.sources import stream
from boostbins.summary import column as column_module
from tests.fuzz.laws import check_same
from tests.fuzz.running import telling
from tests.fuzz.tables import KINDS, any_case

_NUMBERS = tuple(kind for kind in KINDS if kind not in ("text", "dates", "float16"))  # few writers know the last


def case(r):
    asked = replace(any_case(r, most_rows=20_000, kinds=_NUMBERS), weight=None, target=None)
    if asked.n_rows == 0 or asked.refusal():
        return
    n = asked.n_rows
    # Whose sums are the same in every order: of others they are so up to rounding only.
    if r.random() < 0.4:
        asked = replace(asked, weight=r.integers(0, 4, n).astype(np.float64))
        asked.weight[r.integers(n)] = 1.0
    if r.random() < 0.3:
        asked = replace(asked, target=r.integers(-5, 6, n) if r.random() < 0.5 else r.random(n) < 0.3)
    way = r.choice(WAYS)
    with telling(asked), telling(way.__name__), small_parts(r):
        way(asked, r)


@contextmanager
def small_parts(r):
    """Batches, blocks and summaries so small that small tables have many."""
    limits = [
        (our_files, "_MAX_ROWS", [50, 5_000]),
        (our_files, "_MIN_ROWS", [10, 50]),
        (our_files, "_ROWS_AT_A_VISIT", [20, 3_000]),
        (our_csv, "_MAX_BLOCK", [1 << 7, 1 << 12, 1 << 16]),
        (stream, "_ROWS_TOGETHER", [1, 100, 5_000]),
        (column_module, "_SORTED_ROWS", [0, 100, 10_000]),
        (fit, "MAX_CELLS", [8, 100, 5_000]),
    ]
    with ExitStack() as stack:
        for module, name, sizes in limits:
            if r.random() < 0.7:
                stack.enter_context(patch.object(module, name, int(r.choice(sizes))))
        yield


def in_memory(asked, **others):
    return fit_bins(asked.numbers, **asked.options(**others))


def check(asked, X, r, *, names=True, **others):
    """What comes in parts is what is in memory."""
    exact = bool(r.random() < 0.2)
    found = fit_bins(X, **asked.options(exact=exact, n_threads=int(r.integers(1, 3)), **others))
    check_same(found, in_memory(asked, exact=exact), names=names)


def ends_of(r, n):
    """Where parts begin and end, empty ones among them."""
    inner = r.integers(0, n + 1, r.choice([0, 1, 3, 12]))
    return list(itertools.pairwise([0, *sorted(inner.tolist()), n]))


def arrow(asked, *, per_row=False):
    """The numbers as Arrow's table; `per_row`: with weights and target."""
    columns = dict(asked.numbers)
    if per_row:
        columns |= {name: x for name, x in {"w": asked.weight, "t": asked.target}.items() if x is not None}
    return pa.table(columns)


def by_name(asked):
    return {
        "sample_weight": None if asked.weight is None else "w",
        "y": None if asked.target is None else "t",
    }


def summaries_are_added(asked, r):
    max_cells = [None, 2, 17, 200, 5_000][r.integers(5)]
    whole = summarize(asked.numbers, asked.weight, y=asked.target, max_cells=max_cells)
    mixed = asked.rows(r.permutation(asked.n_rows))
    parts = []
    for begin, end in ends_of(r, asked.n_rows):
        part = mixed.rows(np.arange(begin, end))
        if part.refusal() is None:
            columns = dict(sorted(part.numbers.items(), reverse=bool(r.integers(2))))
            parts.append(summarize(columns, part.weight, y=part.target, max_cells=max_cells))
    while len(parts) > 1:
        i, j = r.choice(len(parts), 2, replace=False)
        both = parts[i] + parts[j]
        parts = [part for k, part in enumerate(parts) if k not in (i, j)]
        parts.append(TableSummary.from_bytes(both.to_bytes()) if r.random() < 0.3 else both)
    names = dict(zip(parts[0].names, parts[0], strict=True))
    assert names == dict(zip(whole.names, whole, strict=True))
    if max_cells is None:
        held = parts[0].rows if parts[0].names == whole.names else None
        ordered = TableSummary((parts[0][name] for name in whole.names), whole.names, rows=held)
        cut = partial(fit_bins, ordered, asked.method, asked.budgets, **asked.total)
        if held is None and asked.total and asked.target is not None:  # parts had their columns in another order
            with pytest.raises(ValueError, match="the summary has no sample of its rows"):
                cut()
        else:
            check_same(cut(), in_memory(asked))


_CHUNKS = {
    "dict": lambda part: dict(part.numbers),
    "pandas": lambda part: pd.DataFrame(part.numbers),
    "pandas backwards": lambda part: pd.DataFrame(part.numbers).iloc[:, ::-1],
    "polars": lambda part: pl.DataFrame(part.numbers),
    "Arrow": arrow,
    "Arrow with nulls": lambda part: pa.table({k: pa.array(v, from_pandas=True) for k, v in part.numbers.items()}),
}


def chunks_of_any_kind(asked, r):
    first, *others = ends_of(r, asked.n_rows)
    # The first chunk with rows says how the columns are ordered.
    kinds = ["dict", *r.choice(list(_CHUNKS), len(others))]
    while first[0] == first[1]:
        first, *others = others
    parts = [_CHUNKS[kind](asked.rows(np.arange(*ends))) for kind, ends in zip(kinds, [first, *others], strict=False)]
    check(asked, iter(parts) if r.random() < 0.5 else lambda: iter(parts), r)


def chunks_that_are_arrays(asked, r):
    parts = [asked.matrix[begin:end] for begin, end in ends_of(r, asked.n_rows)]
    check(asked, iter(parts), r, names=False)


def one_buffer_refilled(asked, r):
    n_rows = int(r.integers(1, asked.n_rows + 1))
    make = [dict, partial(pd.DataFrame, copy=False), pa.table][r.integers(3)]

    def refilled():
        buffer = np.empty((n_rows, asked.matrix.shape[1]), order="F")
        for begin in range(0, asked.n_rows, n_rows):
            rows = asked.matrix[begin : begin + n_rows]
            buffer[: len(rows)] = rows
            yield make(dict(zip(asked.numbers, buffer[: len(rows)].T, strict=True)))
        buffer[:] = -1.0

    check(asked, refilled() if r.random() < 0.5 else refilled, r)


def readers_and_datasets(asked, r):
    table = arrow(asked)
    X = [lambda: table.to_reader(int(r.integers(1, 5_000))), lambda: dataset.dataset(table)][r.integers(2)]()
    check(asked, X, r)


def memory_maps(asked, r):
    mapped = np.memmap("map", np.float64, "w+", shape=asked.matrix.shape, order=r.choice(["C", "F"]))
    mapped[:] = asked.matrix
    check(asked, mapped, r, names=False)


def _write_parquet(table, path, r):
    parquet.write_table(
        table,
        path,
        row_group_size=int(r.choice([1, 10, 100, 5_000])) if len(table) < 3_000 else 1_500,
        compression=str(r.choice(["none", "snappy", "zstd", "gzip"])),
        use_dictionary=bool(r.integers(2)),
        data_page_version=str(r.choice(["1.0", "2.0"])),
        data_page_size=int(r.choice([100, 1 << 20])),
        write_page_checksum=bool(r.integers(2)),
    )


def _write_feather(table, path, r):
    feather.write_feather(
        table, path, compression=str(r.choice(["lz4", "zstd", "uncompressed"])), chunksize=int(r.choice([10, 1_000]))
    )


def _write_csv(table, path, r):
    """Text has no types: numbers of all kinds are written as float64."""
    fields = [field if pa.types.is_string(field.type) else field.with_type(pa.float64()) for field in table.schema]
    table = table.cast(pa.schema(fields), safe=False)
    frame = table.to_pandas()
    match r.integers(3):
        case 0:
            csv.write_csv(table, path)
        case 1:
            frame.to_csv(path, index=False, sep=str(r.choice([",", ";", "\t"])))
        case _:
            pl.from_pandas(frame).write_csv(path, separator=str(r.choice([",", ";"])), null_value="NA")
    if r.random() < 0.3:
        path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        path.unlink()


_TEXTS = [
    "plain",
    "x,y",
    "x;y",
    'a "quote"',
    "two\nlines",
    "a\r\nb",
    "\n",
    " ",
    "ü",
    '"',
    "long " * 30,
]  # never numbers
_WRITERS = {"parquet": _write_parquet, "feather": _write_feather, "csv": _write_csv}


def files(asked, r):
    kind = str(r.choice(list(_WRITERS)))
    named = bool(r.integers(2))
    table = arrow(asked, per_row=named)
    if r.random() < 0.3:
        table = table.add_column(int(r.integers(2)), "text", pa.array(r.choice(_TEXTS, asked.n_rows).tolist()))
    Path("data").mkdir()
    for i, (begin, end) in enumerate(ends_of(r, asked.n_rows)):
        if begin < end or kind == "parquet":
            _WRITERS[kind](table.slice(begin, end - begin), Path("data") / f"{i:03}.{kind}", r)
    paths = sorted(Path("data").iterdir())
    X = [lambda: "data", lambda: [str(path) for path in paths], lambda: f"data/*{kind}*"][r.integers(3)]()
    with telling(kind):
        check(asked, X, r, non_numeric="skip", **(by_name(asked) if named else {}))


WAYS = [
    summaries_are_added,
    summaries_are_added,
    chunks_of_any_kind,
    chunks_that_are_arrays,
    one_buffer_refilled,
    readers_and_datasets,
    memory_maps,
    files,
    files,
    files,
]
