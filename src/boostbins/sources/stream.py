"""Tables that come in batches: files, Arrow datasets and readers, memory maps, iterators of chunks; any size.

A stream is read from the first batch to the last: while the next is read (of a user's own iterator: before it) threads
add the columns of the one at hand to their summaries. What is held is the summary of each column, and a few batches.
Of a Parquet file, whose columns lie apart, not even those: the thread that adds a column reads it, some row groups at a
time, and nothing is handed over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins._threads import prefetch
from boostbins.sources.content import STDIN, FileError, expanded, first_line
from boostbins.sources.files import (
    Chunk,
    LazyRowGroups,
    as_table,
    columns_of,
    conform_to_schema,
    kinds_of,
    opened_file,
    rows_at_once,
)
from boostbins.sources.table import Column, NonNumeric, Table, dense, float_values, lazy_table, read_table
from boostbins.sources.values import Floats, real_numbers

_ROWS_TOGETHER = 2**15  # of small batches

PerRow: TypeAlias = str | ArrayLike | None
"""A number per row: the name of a column, or an array."""


class Batch(NamedTuple):
    """Some rows of a stream."""

    table: Table  # the columns to be cut
    numbers: dict[str, Floats]  # those that stand beside them, by their argument: weights, targets
    size: int  # of what has been read for it, in bytes
    where: str  # it comes from
    borrowed: bool = False  # whether it lies in memory that may hold the next one, once that is asked for

    def kept(self) -> Batch:
        """Return the batch in memory of its own."""
        if not self.borrowed:
            return self
        numbers = {argument: values.copy() for argument, values in self.numbers.items()}
        return self._replace(table=self.table.copied(), numbers=numbers, borrowed=False)


@dataclass(frozen=True)
class Stream:
    """A table that comes in batches."""

    chunks: Callable[[Sequence[str] | None], Iterator[Chunk]]  # from the first on; of some columns, if told
    names: tuple[str, ...] | None = None  # of all its columns, where they are known beforehand
    size: int = 0  # bytes; 0 if not known
    once: bool = False  # whether it can only be read once
    by_column: Callable[[Sequence[str] | None], Iterator[Chunk]] | None = None  # chunks that may be unread
    ours: bool = True  # a user's iterator may be bound to the user's thread, and fill the same memory again and again

    def batches(
        self,
        columns: Sequence[str] | None = None,
        per_row: Mapping[str, PerRow] | None = None,
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
        given = {argument: value for argument, value in (per_row or {}).items() if value is not None}
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
        for data, size, where in prefetch(chunks) if self.ours else chunks:
            try:
                if _n_rows(data) == 0:
                    continue
                if isinstance(data, LazyRowGroups):
                    empty, numbers = _split_lazy_columns(data, named)
                    table = lazy_table(empty, data.num_rows, data.read_one, non_numeric, dates_as_numbers)
                else:
                    data, numbers = split_columns(as_table(data), named)
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
            yield Batch(table, numbers, size, where, borrowed=not self.ours)
        if names is None:
            raise ValueError("X has no rows")
        for argument, array in arrays.items():
            if len(array) != start:
                raise ValueError(f"{argument} must have one entry per row, shape ({start},), got {array.shape}")

    def mapped(self, change: Callable[[Any], Any], columns: Sequence[str] | None = None) -> Stream:
        """Return the stream of changed chunks, of some columns of this one, if told."""

        def chunks(_: Sequence[str] | None) -> Iterator[Chunk]:
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


def _numbered(given: Any) -> Iterator[Chunk]:
    """Yield what a user's iterator gives, or a function's: a table in place of an iterator is the only one."""
    if isinstance(given, np.ndarray | Mapping) or hasattr(given, "columns") or hasattr(given, "num_rows"):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"X must give an iterator of tables, and its function returned a {type(given).__name__}")
    return (Chunk(data, 0, f"chunk {i}") for i, data in enumerate(given))


def joined(batches: Iterator[Batch]) -> Iterator[list[Batch]]:
    """Yield batches, small ones together."""
    some: list[Batch] = []
    n_rows = 0
    for batch in batches:
        n_rows += batch.table.n_rows
        if n_rows >= _ROWS_TOGETHER:
            yield [*some, batch]
            some, n_rows = [], 0
        else:
            some.append(batch.kept())
    if some:
        yield some


def column_in(some: Sequence[Batch], i: int, view: Callable[[Column], Column] | None) -> NDArray[Any]:
    """Return a column of some batches."""
    columns = [batch.table.read(i) for batch in some]
    parts = [dense(column if view is None else view(column)) for column in columns]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def numbers_in(
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


def split_columns(
    data: Any, named: Mapping[str, str], texts: Sequence[str] = ()
) -> tuple[Any, dict[str, NDArray[Any]]]:
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


def _split_lazy_columns(data: LazyRowGroups, named: Mapping[str, str]) -> tuple[Any, dict[str, Floats]]:
    """Return a chunk's table, still without rows, without the columns that stand beside the others, and these."""
    if not named:
        return data.empty, {}
    per_row = list(dict.fromkeys(named.values()))
    return data.empty.drop_columns(per_row), split_columns(data.read(per_row), named)[1]


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
    rows = rows_at_once(X.shape[1])

    def chunks(_: Sequence[str] | None) -> Iterator[Chunk]:
        for start in range(0, len(X), rows):
            block = np.array(X[start : start + rows])  # read, so that what follows does not touch the file
            yield Chunk(block, block.nbytes, f"rows from {start:,}")

    return Stream(chunks, size=X.nbytes)


def _of_arrow(X: Any) -> Stream | None:
    import pyarrow
    from pyarrow import dataset

    if isinstance(X, pyarrow.RecordBatchReader):
        names = tuple(columns_of(X.schema, "X"))
        kinds = kinds_of([(X.schema, "X")], names)
        return Stream(
            lambda columns: (Chunk(conform_to_schema(b, columns or names, kinds), b.nbytes, "X") for b in X),
            names,
            once=True,
            ours=False,  # it may read from an iterator of the user's
        )
    if not isinstance(X, dataset.Dataset):
        return None
    names = tuple(columns_of(X.schema, "X"))
    kinds = kinds_of([(X.schema, "X")], names)

    def chunks(columns: Sequence[str] | None) -> Iterator[Chunk]:
        chosen = list(columns or names)
        rows = rows_at_once(len(chosen))
        try:
            for batch in X.to_batches(columns=chosen, batch_size=rows, batch_readahead=1, fragment_readahead=1):
                yield Chunk(conform_to_schema(batch, chosen, kinds), batch.nbytes, "X")
        except (pyarrow.ArrowException, OSError) as error:
            raise FileError(f"X cannot be read: {first_line(error)}") from None

    return Stream(chunks, names)


def _of_files(paths: Sequence[str]) -> Stream:
    if find_spec("pyarrow") is None:
        raise ImportError(f"{paths[0]} is read by pyarrow, which is not installed: pip install 'boostbins[files]'")
    files = [opened_file(file) for path in paths for file in expanded(path)]
    schemas = [(file.schema, file.name) for file in files]
    names, *_ = [tuple(columns_of(*schema)) for schema in schemas]

    def chunks(columns: Sequence[str] | None, by_column: bool = False) -> Iterator[Chunk]:
        chosen = list(columns or names)
        kinds = kinds_of(schemas, chosen)
        for file in files:
            for data, size, where in ((by_column and file.by_column) or file.chunks)(chosen):
                yield Chunk(conform_to_schema(data, chosen, kinds), size, where)

    return Stream(
        chunks,
        names,
        sum(file.size for file in files),
        once=any(file.name == STDIN for file in files),
        by_column=partial(chunks, by_column=True),
    )
