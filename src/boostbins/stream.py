"""Tables that come in batches: files, Arrow datasets and readers, memory maps, iterators of chunks; any size.

A stream is read from the first batch to the last: while the next is read (of a user's own iterator: before it) threads
add the columns of the one at hand to their summaries. What is held is the summary of each column, and a few batches.
Of a Parquet file, whose columns lie apart, not even those: the thread that adds a column reads it, some row groups at a
time, and nothing is handed over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins.columns import Column, NonNumeric, Table, dense, float_values, read_table, unread_table
from boostbins.inputs import Floats, checked_target, checked_weight, numbered_classes, real_numbers
from boostbins.reading import (
    STDIN,
    FileError,
    check_csv_names,
    check_unchanged,
    columns_of,
    csv_form,
    expanded,
    first_line,
    kind_of,
    not_utf8,
    read_one,
    state_of,
)
from boostbins.summary import MAX_CELLS, GrowingSummary
from boostbins.table_summary import TableSummary
from boostbins.threads import WORTH_THREADS, Progress, ahead, checked_threads, each, in_order

_BATCH = 2**26  # bytes of a batch, as float64
_FEWEST_ROWS = 2**15
_MOST_ROWS = 2**20
_ROWS_AT_A_VISIT = 2**18  # of a column that is read by itself: its counts come into the cache once for all of them
_CSV_BLOCK = 2**24  # bytes
_GROUPS_AT_ONCE = 2  # row groups that are read at the same time, where each is a batch
_HEAD = 64 * 1024  # bytes that tell what a CSV looks like

RowNumbers: TypeAlias = str | ArrayLike | None
"""A number per row: the name of a column, or an array."""


class Batch(NamedTuple):
    """Some rows of a stream."""

    table: Table  # the columns to be cut
    numbers: dict[str, Floats]  # those that stand beside them, by their argument: weights, targets
    size: int  # of what has been read for it, in bytes
    where: str  # it comes from


class _Chunk(NamedTuple):
    """A batch as it comes: a table of any kind."""

    data: Any
    size: int
    where: str


class _Unread(NamedTuple):
    """Rows of a file, of which columns are read when they are asked for; by any thread."""

    empty: Any  # Arrow's table, without its rows
    num_rows: int
    read: Callable[[Sequence[str]], Any]  # some columns, as Arrow's table

    def read_one(self, name: str) -> Any:
        return self.read([name]).column(0)


@dataclass(frozen=True)
class Stream:
    """A table that comes in batches."""

    chunks: Callable[[Sequence[str] | None], Iterator[_Chunk]]  # from the first on; of some columns, if told
    names: tuple[str, ...] | None = None  # of all its columns, where they are known beforehand
    size: int = 0  # bytes; 0 if not known
    once: bool = False  # whether it can only be read once
    by_column: Callable[[Sequence[str] | None], Iterator[_Chunk]] | None = None  # chunks that may be unread
    ours: bool = True  # whether a thread may read it: what a user's iterator does may be bound to the user's

    def batches(
        self,
        columns: Sequence[str] | None = None,
        beside: Mapping[str, RowNumbers] | None = None,
        *,
        non_numeric: NonNumeric = "error",
        dates_as_numbers: bool = False,
        by_column: bool = False,
    ) -> Iterator[Batch]:
        """Yield the batches, each with the same columns; those without rows are left out.

        Parameters
        ----------
        columns : sequence of str, optional
            Which to read; all, if not given.
        beside : dict
            Numbers per row that are no columns to be cut, by the argument that they were given as: names of columns,
            or arrays of all rows.
        non_numeric, dates_as_numbers
            As for `fit_bins`.
        by_column : bool
            Whether a column may be read no sooner than a batch's table is asked for it, and each time that it is.
        """
        check_names(columns)
        given = {argument: value for argument, value in (beside or {}).items() if value is not None}
        named = {argument: value for argument, value in given.items() if isinstance(value, str)}
        arrays = {argument: _array(value, argument) for argument, value in given.items() if argument not in named}
        wanted = None
        if self.names is not None:
            self._check(columns or (), "columns")
            for argument, name in named.items():
                self._check([name], argument)
            chosen = [name for name in (self.names if columns is None else columns) if name not in named.values()]
            wanted = list(dict.fromkeys([*chosen, *named.values()]))
        names: tuple[str, ...] | None = None
        start = 0
        chunks = ((by_column and self.by_column) or self.chunks)(wanted)
        for data, size, where in ahead(chunks) if self.ours else chunks:
            try:
                if _n_rows(data) == 0:
                    continue
                if isinstance(data, _Unread):
                    empty, numbers = _taken_apart_unread(data, named)
                    table = unread_table(empty, data.num_rows, data.read_one, non_numeric, dates_as_numbers)
                else:
                    data, numbers = taken_apart(as_table(data), named)
                    if columns is not None:
                        data = selected(data, [name for name in columns if name not in named.values()])
                    table = read_table(data, non_numeric=non_numeric, dates_as_numbers=dates_as_numbers)
                table = table if names is None else table.matched(names)
            except FileError:  # says where already
                raise
            except (TypeError, ValueError) as error:
                raise type(error)(f"{where}: {error}") from None
            names = table.names
            rows = slice(start, start := start + table.n_rows)
            for argument, array in arrays.items():
                if len(array) < start:
                    raise ValueError(f"{argument} must have one entry per row, and has only {len(array)}")
                numbers[argument] = array[rows]
            yield Batch(table, numbers, size, where)
        if names is None:
            raise ValueError("X has no rows")
        for argument, array in arrays.items():
            if len(array) != start:
                raise ValueError(f"{argument} must have one entry per row, shape ({start},), got {array.shape}")

    def mapped(self, change: Callable[[Any], Any], columns: Sequence[str] | None = None) -> Stream:
        """Return the stream of changed chunks, of some columns of this one, if told."""

        def chunks(_: Sequence[str] | None) -> Iterator[_Chunk]:
            return (chunk._replace(data=change(chunk.data)) for chunk in self.chunks(columns))

        return replace(self, chunks=chunks, by_column=None, names=None)

    def _check(self, names: Sequence[str], argument: str) -> None:
        for name in names:
            if self.names is not None and name not in self.names:
                raise ValueError(
                    f"{argument}: there is no column {name!r}; there are {', '.join(map(repr, self.names[:10]))}"
                )


def open_stream(X: Any) -> Stream | None:
    """Return what comes in batches as a stream, and None for what is a table in memory.

    Parameters
    ----------
    X : any
        A path, pattern or folder, or several; an Arrow dataset or reader; a np.memmap; an iterator of tables, or a
        function that gives one.
    """
    if isinstance(X, Stream):
        return X
    if isinstance(X, str | os.PathLike):
        return _of_files([os.fspath(X)])
    if isinstance(X, list | tuple) and X and all(isinstance(name, str | os.PathLike) for name in X):
        return _of_files([os.fspath(name) for name in X])
    if isinstance(X, np.memmap):
        return _of_array(X)
    if type(X).__module__.startswith("pyarrow"):
        return _of_arrow(X)
    if isinstance(X, Iterator):
        return Stream(lambda _: _numbered(X), once=True, ours=False)
    if callable(X) and not hasattr(X, "columns"):
        return Stream(lambda _: _numbered(X()), ours=False)
    return None


def _numbered(given: Any) -> Iterator[_Chunk]:
    """Yield what a user's iterator gives, or a function's: a table in place of an iterator is the only one."""
    if isinstance(given, np.ndarray | Mapping) or hasattr(given, "columns") or hasattr(given, "num_rows"):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"X must give an iterator of tables, and its function returned a {type(given).__name__}")
    return (_Chunk(data, 0, f"chunk {i}") for i, data in enumerate(given))


def summarize_stream(
    batches: Iterator[Batch],
    *,
    weight: str = "sample_weight",
    target: str = "y",
    n_classes: int | None = None,
    max_cells: int | None = MAX_CELLS,
    n_threads: int | None = None,
    progress: Progress | None = None,
    size: int = 0,
    seen: Callable[[Column], Column] | None = None,
) -> TableSummary:
    """Return the summary of all batches.

    Parameters
    ----------
    batches : iterator of Batch
    weight, target : str
        The arguments among the batches' numbers that are these.
    n_classes : int, optional
        If the target numbers classes, how many.
    max_cells, n_threads, progress
        As for `summarize`.
    size : int
        Of the whole stream, for `progress`.
    seen : function, optional
        How a library sees a column.
    """
    threads = checked_threads(n_threads)
    columns: list[GrowingSummary] = []
    names: tuple[str, ...] = ()
    done = 0
    for some in _joined(batches):
        n_rows = sum(batch.table.n_rows for batch in some)
        weights, targets = _beside(some, weight, checked_weight), _beside(some, target, checked_target)
        if targets is not None and n_classes is not None:
            targets = numbered_classes(targets[:, 0], n_classes, target)
        names = some[0].table.names
        columns = columns or [GrowingSummary(max_cells) for _ in names]

        def add(i: int) -> None:
            columns[i].add(_column(some, i, seen), weights, targets)  # noqa: B023 (done before the next)

        each(add, range(len(names)), threads if n_rows >= WORTH_THREADS else 1)
        done += sum(batch.size for batch in some)
        if progress is not None:
            progress(done, max(size, done), some[-1].where)
    summary = TableSummary(each(lambda i: columns[i].summary(), range(len(names)), threads), names)
    if len(summary) and summary.n_rows == 0:
        raise ValueError(f"{weight} is zero for every row: give some row a positive weight")
    return summary


def _joined(batches: Iterator[Batch]) -> Iterator[list[Batch]]:
    """Yield batches, small ones together."""
    some: list[Batch] = []
    n_rows = 0
    for batch in batches:
        some.append(batch)
        n_rows += batch.table.n_rows
        if n_rows >= _FEWEST_ROWS:
            yield some
            some, n_rows = [], 0
    if some:
        yield some


def _column(some: Sequence[Batch], i: int, seen: Callable[[Column], Column] | None) -> NDArray[Any]:
    """Return a column of some batches."""
    columns = [batch.table.read(i) for batch in some]
    parts = [dense(column if seen is None else seen(column)) for column in columns]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _beside(
    some: Sequence[Batch], argument: str, check: Callable[[ArrayLike, int, str], NDArray[Any]]
) -> NDArray[Any] | None:
    """Return numbers per row of some batches, if there are any."""
    parts = []
    for batch in some:
        if argument not in batch.numbers:
            return None
        try:
            parts.append(check(batch.numbers[argument], batch.table.n_rows, argument))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{batch.where}: {error}") from None
    return np.concatenate(parts)


def peeked(batches: Iterator[Batch]) -> tuple[tuple[str, ...], Iterator[Batch]]:
    """Return the names of the columns, from the first batch, and all batches."""
    first = next(batches)
    return first.table.names, chain([first], batches)


# ---- chunks of any kind


def check_names(columns: Sequence[str] | None) -> None:
    """Refuse what is no list of different names."""
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}")
    if columns is not None and len(set(columns)) < len(columns):
        twice = next(name for name in columns if list(columns).count(name) > 1)
        raise ValueError(f"columns names {twice!r} more than once")


def _array(value: ArrayLike, argument: str) -> NDArray[Any]:
    array = np.asarray(value)
    if array.ndim == 0:
        raise ValueError(f"{argument} must be a column's name, or an array with one entry per row, got {value!r}")
    return array


def _n_rows(data: Any) -> int:
    if isinstance(data, Mapping):
        return len(next(iter(data.values()), ()))
    if hasattr(data, "num_rows"):
        return int(data.num_rows)
    shape = getattr(data, "shape", None)
    return int(shape[0]) if shape else len(data[0]) if isinstance(data, list | tuple) and data else 1


def as_table(data: Any) -> Any:
    """Return a chunk; Arrow's record batches as tables, which are frames."""
    if not hasattr(data, "to_struct_array") or hasattr(data, "to_batches"):
        return data
    import pyarrow

    return pyarrow.Table.from_batches([data])


def taken_apart(data: Any, named: Mapping[str, str], texts: Sequence[str] = ()) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return a table without the columns that stand beside the others, and these; of `texts`, they may be so."""
    if not named:
        return data, {}
    if isinstance(data, Mapping):
        for argument, name in named.items():
            if name not in data:
                raise ValueError(f"{argument}: there is no column {name!r}")
        numbers = {argument: np.asarray(data[name]) for argument, name in named.items()}
        for argument, values in numbers.items():
            if argument not in texts:
                numbers[argument] = real_numbers(values, f"{argument}, column {named[argument]!r},")
        return {name: column for name, column in data.items() if name not in named.values()}, numbers
    frame = _frame(data, next(iter(named)))
    numbers = {}
    for argument, name in named.items():
        if name not in frame.columns:
            raise ValueError(f"{argument}: there is no column {name!r}")
        column = frame.get_column(name)
        if column.dtype.is_numeric() or column.dtype.is_boolean():
            numbers[argument] = float_values(column)
        elif argument in texts:
            numbers[argument] = np.array([*column.to_list(), None], object)[:-1]
        else:
            raise TypeError(f"{argument}: column {name!r} must hold numbers, got {column.dtype}")
    return frame.drop(list(dict.fromkeys(named.values()))).to_native(), numbers


def _taken_apart_unread(data: _Unread, named: Mapping[str, str]) -> tuple[Any, dict[str, Floats]]:
    """Return a chunk's table, still without rows, without the columns that stand beside the others, and these."""
    if not named:
        return data.empty, {}
    beside = list(dict.fromkeys(named.values()))
    return data.empty.drop_columns(beside), taken_apart(data.read(beside), named)[1]


def selected(data: Any, columns: Sequence[str]) -> Any:
    """Return some columns of a table."""
    if isinstance(data, Mapping):
        if missing := [name for name in columns if name not in data]:
            raise ValueError(f"columns: there is no column {missing[0]!r}")
        return {name: data[name] for name in columns}
    frame = _frame(data, "columns")
    if missing := [name for name in columns if name not in frame.columns]:
        raise ValueError(f"columns: there is no column {missing[0]!r}")
    return frame.select(list(columns)).to_native()


def _frame(data: Any, argument: str) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(data, eager_only=True)
    except TypeError:
        raise TypeError(
            f"{argument} is given by name, but a {type(data).__name__} has no names: give a frame or a dict of columns"
        ) from None


def _of_array(X: NDArray[Any]) -> Stream:
    """Return an array on disk by blocks of rows, in one pass over the file."""
    if X.ndim == 1:
        X = X[:, None]
    if X.ndim != 2:
        raise ValueError(f"X must be a table with rows and columns, got shape {X.shape} of dtype {X.dtype}")
    rows = _rows_at_once(X.shape[1])

    def chunks(_: Sequence[str] | None) -> Iterator[_Chunk]:
        for start in range(0, len(X), rows):
            block = np.array(X[start : start + rows])  # read, so that what follows does not touch the file
            yield _Chunk(block, block.nbytes, f"rows from {start:,}")

    return Stream(chunks, size=X.nbytes)


def _of_arrow(X: Any) -> Stream | None:
    import pyarrow
    from pyarrow import dataset

    if isinstance(X, pyarrow.RecordBatchReader):
        names = tuple(columns_of(X.schema, "X"))
        kinds = _kinds([(X.schema, "X")], names)
        return Stream(
            lambda columns: (_Chunk(_as_told(b, columns or names, kinds), b.nbytes, "X") for b in X), names, once=True
        )
    if not isinstance(X, dataset.Dataset):
        return None
    names = tuple(columns_of(X.schema, "X"))
    kinds = _kinds([(X.schema, "X")], names)

    def chunks(columns: Sequence[str] | None) -> Iterator[_Chunk]:
        chosen = list(columns or names)
        rows = _rows_at_once(len(chosen))
        try:
            for batch in X.to_batches(columns=chosen, batch_size=rows, batch_readahead=1, fragment_readahead=1):
                yield _Chunk(_as_told(batch, chosen, kinds), batch.nbytes, "X")
        except (pyarrow.ArrowException, OSError) as error:
            raise FileError(f"X cannot be read: {first_line(error)}") from None

    return Stream(chunks, names)


def _rows_at_once(n_columns: int) -> int:
    return min(max(_BATCH // (8 * max(n_columns, 1)), _FEWEST_ROWS), _MOST_ROWS)


# ---- files


class _File(NamedTuple):
    name: str
    schema: Any  # Arrow's
    size: int
    chunks: Callable[[Sequence[str]], Iterator[_Chunk]]
    by_column: Callable[[Sequence[str]], Iterator[_Chunk]] | None = None


def _of_files(paths: Sequence[str]) -> Stream:
    if find_spec("pyarrow") is None:
        raise ImportError(f"{paths[0]} is read by pyarrow, which is not installed: pip install 'boostbins[files]'")
    files = [_opened(file) for path in paths for file in expanded(path)]
    schemas = [(file.schema, file.name) for file in files]
    names, *_ = [tuple(columns_of(*schema)) for schema in schemas]

    def chunks(columns: Sequence[str] | None, by_column: bool = False) -> Iterator[_Chunk]:
        chosen = list(columns or names)
        kinds = _kinds(schemas, chosen)
        for file in files:
            for data, size, where in ((by_column and file.by_column) or file.chunks)(chosen):
                yield _Chunk(_as_told(data, chosen, kinds), size, where)

    return Stream(
        chunks,
        names,
        sum(file.size for file in files),
        once=any(file.name == STDIN for file in files),
        by_column=partial(chunks, by_column=True),
    )


def _kinds(schemas: Sequence[tuple[Any, str]], columns: Sequence[str]) -> dict[str, Any]:
    """Return the types of those of some columns that hold something: all files must agree on these."""
    import pyarrow

    first, origin = schemas[0]
    all_of_them = set(columns) == set(columns_of(first, origin))
    kinds: dict[str, tuple[Any, str]] = {}
    for schema, file in schemas:
        there = columns_of(schema, file)
        if odd := [name for name in columns if name not in there]:
            raise FileError(f"{file} has no column {odd[0]!r}, which {origin} has")
        if all_of_them and (odd := [name for name in there if name not in columns]):
            raise FileError(f"{file} has a column {odd[0]!r}, which {origin} has not")
        for name in columns:
            kind = schema.field(name).type
            if pyarrow.types.is_null(kind):
                continue
            known, where = kinds.setdefault(name, (kind, file))
            if _family(kind) != _family(known):
                raise FileError(
                    f"column {name!r} is {known} in {where}, and {kind} in {file}: convert one of them, or leave it out"
                )
    return {name: kind for name, (kind, _) in kinds.items()}


def _family(kind: Any) -> str:
    """Return what may stand below each other: any numbers, but no numbers and texts, and no dates of two units."""
    from pyarrow import types

    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    return "numbers" if is_number else "text" if types.is_string(kind) or types.is_large_string(kind) else str(kind)


def _as_told(data: Any, columns: Sequence[str], kinds: Mapping[str, Any]) -> Any:
    """Return an Arrow table of some columns; those that are all missing here have the type of the others."""
    import pyarrow

    if isinstance(data, _Unread):
        return data._replace(
            empty=_as_told(data.empty, columns, kinds), read=lambda some: _as_told(data.read(some), some, kinds)
        )
    table = as_table(data).select(list(columns))
    for place, field in enumerate(table.schema):
        if pyarrow.types.is_null(field.type):
            kind = kinds.get(field.name, pyarrow.float64())
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table


def _opened(name: str) -> _File:
    """Return a file as a stream of Arrow tables; one that is written to meanwhile is refused."""
    path = Path(name)
    if name == STDIN or not path.is_file():
        return _whole(name)
    try:
        before = state_of(name)
        with path.open("rb") as opened:
            head = opened.read(_HEAD)
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror or error}") from None
    compression = next((kind for magic, kind in _ARROW_READS.items() if head.startswith(magic)), None)
    if kind_of(head) == "parquet":
        file = _parquet(name, before)
    elif head.startswith(b"ARROW1"):
        file = _feather(name)
    elif compression is not None or _is_plain_csv(head):
        file = _csv(name, compression)
    else:
        file = _whole(name)

    def checked(chunks: Callable[[Sequence[str]], Iterator[_Chunk]], columns: Sequence[str]) -> Iterator[_Chunk]:
        try:
            yield from chunks(columns)
            check_unchanged(name, before)
        except OSError as error:
            raise FileError(f"cannot read {name}: {first_line(error)}") from None

    return file._replace(
        size=before[0],
        chunks=partial(checked, file.chunks),
        by_column=file.by_column and partial(checked, file.by_column),
    )


_ARROW_READS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_OTHERS = (b"\xfd7zXZ\x00", b"PK\x03\x04", b"FEA1", b"\xff\xfe", b"\xfe\xff")


def _is_plain_csv(head: bytes) -> bool:
    return bool(head.strip()) and not head.startswith(_OTHERS)


def _whole(name: str) -> _File:
    """Return a file that can only be read as a whole."""
    table = read_one(name)
    where = "standard input" if name == STDIN else name
    return _File(name, table.schema, table.nbytes, lambda columns: iter([_Chunk(table, table.nbytes, where)]))


def _parquet(name: str, state: tuple[int, int, int]) -> _File:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(name) as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (pyarrow.ArrowException, OSError) as error:
        raise FileError(f"{name} is not a whole Parquet file: {first_line(error)}") from None
    n_groups = metadata.num_row_groups
    rows = [metadata.row_group(i).num_rows for i in range(n_groups)]
    before = [0, *accumulate(rows)]  # each row group, and in all
    mine = threading.local()  # a reader is not for two threads

    def opened() -> Any:
        return parquet.ParquetFile(name, metadata=metadata, pre_buffer=False, page_checksum_verification=True)

    def where(groups: range) -> str:
        which = f"group {groups[0] + 1}" if len(groups) == 1 else f"groups {groups[0] + 1} to {groups[-1] + 1}"
        return f"{name}, row {which} of {n_groups}"

    def not_read(groups: range, error: BaseException) -> FileError:
        return FileError(f"{where(groups)} cannot be read: {first_line(error)}")

    def size_of(first: int, last: int) -> int:  # of rows, so that all add up to the file
        return int(state[0] * last // before[-1] - state[0] * first // before[-1])

    def check_rows(groups: range, n: int) -> None:
        if n != (known := sum(rows[i] for i in groups)):
            raise FileError(f"{where(groups)} has {n:,} rows, and should have {known:,}: write it again")

    def batches(group: int, columns: list[str]) -> Iterator[_Chunk]:
        alone = range(group, group + 1)
        seen = 0
        try:
            with opened() as file:
                for batch in file.iter_batches(_rows_at_once(len(columns)), row_groups=alone, columns=columns):
                    first = before[group] + seen
                    seen += batch.num_rows
                    yield _Chunk(batch, size_of(first, first + batch.num_rows), where(alone))
        except (pyarrow.ArrowException, OSError) as error:
            raise not_read(alone, error) from None
        check_rows(alone, seen)

    def chunks(columns: Sequence[str]) -> Iterator[_Chunk]:
        chosen = list(columns)
        if max(rows, default=0) > _rows_at_once(len(chosen)):  # Arrow's own threads read its columns
            return chain.from_iterable(batches(group, chosen) for group in range(n_groups))
        whole = in_order(lambda group: list(batches(group, chosen)), range(n_groups), _GROUPS_AT_ONCE)
        return chain.from_iterable(whole)

    def read(groups: range, columns: Sequence[str]) -> Any:
        try:
            if not hasattr(mine, "file"):
                mine.file = opened()
            table = mine.file.read_row_groups(groups, list(columns), use_threads=False)
        except (pyarrow.ArrowException, OSError) as error:
            for group in groups if len(groups) > 1 else ():  # to say which of them it is
                read(range(group, group + 1), columns)
            raise not_read(groups, error) from None
        check_rows(groups, table.num_rows)
        check_unchanged(name, state)
        return table

    def by_column(_: Sequence[str]) -> Iterator[_Chunk]:
        for groups in _runs(rows, _ROWS_AT_A_VISIT):
            n_rows = sum(rows[i] for i in groups)
            unread = _Unread(schema.empty_table(), n_rows, partial(read, groups))
            yield _Chunk(unread, size_of(before[groups[0]], before[groups[-1] + 1]), where(groups))

    # With fewer rows a column is a small piece of the file, and a disk is slow to find many of those; with more, one
    # column is more than a batch.
    worth_it = _FEWEST_ROWS <= max(rows, default=0) <= _BATCH // 8
    return _File(name, schema, 0, chunks, by_column if worth_it else None)


def _runs(sizes: Sequence[int], least: int) -> Iterator[range]:
    """Yield neighbours that together have the least size; the last may have less."""
    start = total = 0
    for i, size in enumerate(sizes):
        total += size
        if total >= least or i == len(sizes) - 1:
            yield range(start, i + 1)
            start, total = i + 1, 0


def _feather(name: str) -> _File:
    import pyarrow

    def opened() -> Any:
        try:
            return pyarrow.ipc.open_file(pyarrow.memory_map(name))
        except (pyarrow.ArrowException, OSError) as error:
            raise FileError(f"{name} is not a whole Feather file: {first_line(error)}") from None

    def chunks(columns: Sequence[str]) -> Iterator[_Chunk]:
        file = opened()
        rows = _rows_at_once(len(columns))
        for i in range(file.num_record_batches):
            try:
                batch = file.get_batch(i)
            except (pyarrow.ArrowException, OSError) as error:
                raise FileError(f"{name}, batch {i + 1} cannot be read: {first_line(error)}") from None
            batch = batch.select(list(columns))
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                yield _Chunk(part, part.nbytes, name)

    return _File(name, opened().schema, 0, chunks)


def _csv(name: str, compression: str | None) -> _File:
    """Return a CSV; numbers are read as float64, whatever they look like in the first block."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    def source(file: Any) -> Any:
        raw = pyarrow.PythonFile(file, "r")
        return raw if compression is None else pyarrow.CompressedInputStream(raw, compression)

    with Path(name).open("rb") as file:
        try:
            head = bytes(source(file).read(_HEAD))
        except (pyarrow.ArrowException, OSError) as error:
            raise FileError(f"{name} is not a whole compressed file: {first_line(error)}") from None
    if not _is_plain_csv(head):  # something else, compressed
        return _whole(name)
    form = csv_form(head, name)

    def reader(file: Any, **convert: Any) -> Any:
        return arrow_csv.open_csv(
            source(file),
            arrow_csv.ReadOptions(block_size=_CSV_BLOCK, skip_rows=form.skip_rows),
            form.parse_options,
            arrow_csv.ConvertOptions(**form.convert_options, **convert),
        )

    try:
        with Path(name).open("rb") as file:
            schema = reader(file).schema
    except pyarrow.ArrowInvalid as error:
        raise _csv_error(name, error) from None
    check_csv_names(schema.names, name)
    fields = [
        field.with_type(pyarrow.float64())
        if pyarrow.types.is_integer(field.type) or pyarrow.types.is_null(field.type)
        else field
        for field in schema
    ]
    schema = pyarrow.schema(fields)

    def chunks(columns: Sequence[str]) -> Iterator[_Chunk]:
        read = 0
        with Path(name).open("rb") as file:
            try:
                for batch in reader(file, column_types=schema, include_columns=list(columns)):
                    read, before = file.tell(), read
                    yield _Chunk(batch, read - before, name)
            except pyarrow.ArrowInvalid as error:
                raise _csv_error(name, error) from None

    return _File(name, schema, 0, chunks)


def _csv_error(name: str, error: BaseException) -> FileError:
    said = first_line(error)
    if "invalid UTF8" in said:
        return not_utf8(name, said)
    hint = (
        ": the first lines of that column hold something else; mend them, or leave the column out"
        if "conversion error" in said
        else ""
    )
    return FileError(f"{name} cannot be read as CSV: {said}{hint}")
