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
from typing import Any, NamedTuple

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
from boostbins.sources.request import PLAIN, Request
from boostbins.sources.table import NOTHING, Column, Table, dense, float_values, lazy_table, read_table
from boostbins.sources.values import is_missing, real_numbers

_ROWS_TOGETHER = 2**15  # of small batches


class Batch(NamedTuple):
    """Some rows."""

    table: Table  # the columns to be cut
    per_row: dict[str, Any]  # numbers per row, by their argument: weights, targets
    size: int  # of what has been read for it, in bytes
    where: str  # it comes from
    borrowed: bool = False  # whether it lies in memory that may hold the next one, once that is asked for

    def kept(self) -> Batch:
        """Return the batch in memory of its own."""
        if not self.borrowed:
            return self
        per_row = {argument: values.copy() for argument, values in self.per_row.items()}
        return self._replace(table=self.table.copied(), per_row=per_row, borrowed=False)


@dataclass(frozen=True)
class Stream:
    """A table that comes in batches."""

    chunks: Callable[[Sequence[str] | None], Iterator[Chunk]]  # from the first on; of some columns, if given
    names: tuple[str, ...] | None = None  # of all its columns, where they are known beforehand
    size: int = 0  # bytes; 0 if not known
    once: bool = False  # whether it can only be read once
    by_column: Callable[[Sequence[str] | None], Iterator[Chunk]] | None = None  # chunks that may be unread
    ours: bool = True  # a user's iterator may be bound to the user's thread, and fill the same memory again and again

    def batches(self, request: Request = PLAIN, *, by_column: bool = False) -> Iterator[Batch]:
        """Yield the batches, each with the same columns; those without rows are left out.

        Parameters
        ----------
        request : Request
            What is asked of them.
        by_column : bool
            Whether a column may be read no sooner than a batch's table is asked for it, and each time that it is.
        """
        arrays = request.arrays
        needed = None if self.names is None else request.needed(self.names)
        first: Table | None = None
        start = 0
        chunks = ((by_column and self.by_column) or self.chunks)(needed)
        for data, size, where in prefetch(chunks) if self.ours else chunks:
            try:
                if _n_rows(data) == 0:
                    continue
                if isinstance(data, LazyRowGroups):
                    empty, per_row = _split_lazy(data, request)
                    table = lazy_table(empty, data.num_rows, data.read_one, request)
                else:
                    data, per_row = selected(as_table(data), request)
                    table = read_table(data, request)
                table = table if first is None else _alike(table, first)
            except FileError:  # says where already
                raise
            except (TypeError, ValueError) as error:
                raise type(error)(f"{where}: {error}") from None
            first = table if first is None else first
            rows = slice(start, start := start + table.n_rows)
            for argument, array in arrays.items():
                if len(array) < start:
                    raise ValueError(f"{argument} must have one entry per row, and has only {len(array)}")
                per_row[argument] = array[rows]
            yield Batch(table, per_row, size, where, borrowed=not self.ours)
        if first is None:
            raise ValueError("X has no rows")
        for argument, array in arrays.items():
            if len(array) != start:
                raise ValueError(f"{argument} must have one entry per row, shape ({start},), got {array.shape}")


def open_source(X: Any, request: Request) -> Batch | Stream:
    """Return a table in memory as one batch, and what comes in batches as a stream, for the same request."""
    stream = open_stream(X)
    if stream is not None:
        return stream
    data, per_row = selected(as_table(X), request)
    given = {argument: value for argument, value in request.per_row.items() if value is not None}
    return Batch(read_table(data, request), given | per_row, 0, "X")


def _alike(table: Table, first: Table) -> Table:
    """Return the columns of a batch in the order of the first's; dates must be dates in both."""
    table = table.matched(first.names)
    for name in table.names:
        mine, its = table.units.get(name), first.units.get(name)
        if mine != its and NOTHING not in (mine, its):
            raise ValueError(
                f"column {name!r} holds {mine or 'numbers'} here, and {its or 'numbers'} in what came first"
            )
    return table


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


def table_of(some: Sequence[Batch], view: Callable[[Column], Column] | None) -> Table:
    """Return the rows of some batches as one table."""
    if len(some) == 1 and view is None:
        return some[0].table
    n_rows = sum(batch.table.n_rows for batch in some)
    return replace(some[0].table, n_rows=n_rows, read=lambda i: column_in(some, i, view), in_memory=False, array=None)


def numbers_in(
    some: Sequence[Batch], argument: str, check: Callable[[ArrayLike, int, str], NDArray[Any]]
) -> NDArray[Any] | None:
    """Return numbers per row of some batches, if there are any."""
    parts = []
    for batch in some:
        if argument not in batch.per_row:
            return None
        try:
            parts.append(check(batch.per_row[argument], batch.table.n_rows, argument))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{batch.where}: {error}") from None
    return np.concatenate(parts)


def peeked(batches: Iterator[Batch]) -> tuple[tuple[str, ...], Iterator[Batch]]:
    """Return the names of the columns, from the first batch, and all batches."""
    first = next(batches)
    return first.table.names, chain([first], batches)


# ---- chunks of any kind


def _n_rows(data: Any) -> int:
    if isinstance(data, Mapping):
        return len(next(iter(data.values()), ()))
    if hasattr(data, "num_rows"):
        return int(data.num_rows)
    shape = getattr(data, "shape", None)
    return int(shape[0]) if shape else len(data[0]) if isinstance(data, list | tuple) and data else 1


def selected(data: Any, request: Request) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the columns to be cut of any table, and the numbers per row, by argument."""
    named = request.named
    if not named and request.columns is None:
        return data, {}
    data = _with_names(data)
    if isinstance(data, Mapping):
        chosen = request.chosen(list(data))
        columns = {argument: np.asarray(data[name]) for argument, name in named.items()}
        numbers = {
            argument: values
            if argument in request.texts
            else real_numbers(values, f"{argument}, column {named[argument]!r},")
            for argument, values in columns.items()
        }
        return {name: data[name] for name in chosen}, numbers
    frame = _frame(data, next(iter(named), "columns"))
    chosen = request.chosen(frame.columns)
    numbers = {
        argument: _per_row(frame.get_column(name), argument, argument in request.texts)
        for argument, name in named.items()
    }
    return frame.select(chosen).to_native(), numbers


def _per_row(column: Any, argument: str, may_be_text: bool) -> NDArray[Any]:
    """Return a column of numbers per row as an array; text as objects, with None for what is missing."""
    import narwhals as nw

    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        if may_be_text and column.dtype.is_integer() and column.null_count() == 0:  # as classes they may be any
            return np.asarray(column.to_numpy())
        return float_values(column)
    if may_be_text:
        if column.dtype.is_temporal():
            return np.asarray(column.to_numpy())
        return np.array([None if is_missing(value) else value for value in column.to_list()] + [None], object)[:-1]
    raise TypeError(f"{argument}: column {column.name!r} must hold numbers, got {column.dtype}")


def _split_lazy(data: LazyRowGroups, request: Request) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return a chunk's columns to be cut, still without rows, and the numbers per row."""
    if not request.named:
        return data.empty, {}
    per_row = list(dict.fromkeys(request.named.values()))
    columns = replace(request, columns=[])
    return data.empty.drop_columns(per_row), selected(data.read(per_row), columns)[1]


def _with_names(data: Any) -> Any:
    """Return arrays, and lists of columns, as columns by the names that they have in bins."""
    if isinstance(data, list | tuple):
        return {f"x{i}": column for i, column in enumerate(data)}
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return {f"x{i}": data[:, i] for i in range(data.shape[1])}
    return data


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
