"""Some rows at a time: Parquet, CSV and Feather files as chunks of Arrow tables, whatever their size."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

from boostbins._threads import map_ordered
from boostbins.sources.content import (
    STDIN,
    Content,
    FileError,
    check_unchanged,
    content_held,
    content_of,
    first_line,
    is_compressed,
    state_of,
)
from boostbins.sources.csv import CsvFile

_BATCH = 2**26  # bytes of a batch, as float64
_MIN_PIECE, _MAX_PIECE = 2**12, 2**18  # bytes of a column in a file
_MIN_ROWS = 2**15
_MAX_ROWS = 2**20
_ROWS_AT_A_VISIT = 2**18  # of a column that is read by itself: its counts come into the cache once for all of them
_GROUPS_AT_ONCE = 2  # row groups that are read at the same time, where each is a batch


class Chunk(NamedTuple):
    """A batch as it comes: a table of any kind."""

    data: Any
    size: int
    where: str


class LazyRowGroups(NamedTuple):
    """Rows of a file, of which columns are read when they are asked for; by any thread."""

    empty: Any  # Arrow's table, without its rows
    num_rows: int
    read: Callable[[Sequence[str]], Any]  # some columns, as Arrow's table

    def read_one(self, name: str) -> Any:
        """Return a column."""
        return self.read([name]).column(0)


def as_table(data: Any) -> Any:
    """Return a chunk; Arrow's record batches as tables, which are frames."""
    if not hasattr(data, "to_struct_array") or hasattr(data, "to_batches"):
        return data
    import pyarrow

    return pyarrow.Table.from_batches([data])


def rows_at_once(n_columns: int) -> int:
    """Return how many rows of `n_columns` columns make a chunk."""
    return min(max(_BATCH // (8 * max(n_columns, 1)), _MIN_ROWS), _MAX_ROWS)


# ---- files

_INDEX = re.compile(r"__index_level_\d+__")  # what pandas makes of an index without a name


def columns_of(schema: Any, name: str) -> list[str]:
    """Return the names of a file's columns, all different, without what pandas made of an index."""
    try:
        names = [column for column in schema.names if not _INDEX.fullmatch(column)]
    except UnicodeDecodeError:
        raise FileError(f"{name} has a column whose name is no text: it is damaged, write it again") from None
    if len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise FileError(f"{name} has more than one column named {twice!r}: rename one of them")
    return names


class File(NamedTuple):
    """A file that is open to be read."""

    name: str
    schema: Any  # Arrow's
    size: int
    chunks: Callable[[Sequence[str]], Iterator[Chunk]]
    by_column: Callable[[Sequence[str]], Iterator[Chunk]] | None = None
    whole: Callable[[], Iterator[Chunk]] | None = None  # all rows at once, where a chunk does not tell a column's type


def kinds_of(schemas: Sequence[tuple[Any, str]], columns: Sequence[str]) -> dict[str, Any]:
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


def conform_to_schema(data: Any, columns: Sequence[str], kinds: Mapping[str, Any]) -> Any:
    """Return an Arrow table of some columns; those that are all missing here have the type of the others."""
    import pyarrow

    if isinstance(data, LazyRowGroups):
        return data._replace(
            empty=conform_to_schema(data.empty, columns, kinds),
            read=lambda some: conform_to_schema(data.read(some), some, kinds),
        )
    table = as_table(data).select(list(columns))
    for index, field in enumerate(table.schema):
        if pyarrow.types.is_null(field.type):
            kind = kinds.get(field.name, pyarrow.float64())
            table = table.set_column(index, field.name, table.column(index).cast(kind))
    return table


def opened_file(name: str) -> File:
    """Return a file as a stream of Arrow tables; one that is written to meanwhile is refused."""
    with content_of(name) as content:
        before = None if name == STDIN or not Path(name).is_file() else state_of(name)
        kind = kind_of(content.head, name)
        if kind == "csv":
            file = _csv(name, content_held(content) if before is None else partial(content_of, name))
        elif before is not None and content.is_plain and kind == "parquet":
            file = _parquet(name, before)
        elif before is not None and content.is_plain and kind == "feather":
            file = _feather(name)
        else:
            file = _whole(name, kind, content.all())
    if before is None:
        return file

    def checked(chunks: Callable[..., Iterator[Chunk]], *columns: Sequence[str]) -> Iterator[Chunk]:
        try:
            yield from chunks(*columns)
            check_unchanged(name, before)
        except OSError as error:
            raise FileError(f"cannot read {name}: {first_line(error)}") from None

    return file._replace(
        size=before[0],
        chunks=partial(checked, file.chunks),
        by_column=file.by_column and partial(checked, file.by_column),
        whole=file.whole and partial(checked, file.whole),
    )


def kind_of(head: bytes, name: str) -> str:
    """Return what kind of file begins so."""
    if not head.strip():
        raise FileError(f"{name} is empty")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{name} is UTF-16: convert it, e.g. with iconv -f utf-16 -t utf-8")
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "csv")


def is_plain_text(head: bytes) -> bool:
    """Return whether a file that begins so can be read as text."""
    no_text = (*_MAGIC, b"\xff\xfe", b"\xfe\xff")
    return bool(head.strip()) and not head.startswith(no_text) and not is_compressed(head)


_MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "old feather"}


def _whole(name: str, kind: str, data: bytes) -> File:
    """Return what can only be read as a whole: a Parquet or Feather file that came compressed, or through a pipe."""
    import pyarrow
    from pyarrow import feather, parquet

    what, read = ("Parquet", parquet.read_table) if kind == "parquet" else ("Feather", feather.read_table)
    try:
        table = read(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise FileError(f"{_shown(name)} is not a whole {what} file: {first_line(error)}") from None
    chunk = Chunk(table, len(data), _shown(name))
    return File(name, table.schema, len(data), lambda columns: iter([chunk._replace(data=table.select(columns))]))


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else name


def _parquet(name: str, state: tuple[int, int, int]) -> File:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(name) as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FileError(f"{name} is not a whole Parquet file: {first_line(error)}") from None
    n_groups = metadata.num_row_groups
    rows = [metadata.row_group(i).num_rows for i in range(n_groups)]
    before = [0, *accumulate(rows)]  # each row group, and in all
    mine = threading.local()  # a reader is not for two threads

    most = max((metadata.row_group(i).total_byte_size for i in range(n_groups)), default=0)

    def opened(n_columns: int) -> Any:
        # A group that is larger than a batch is read piece by piece: Arrow holds its columns whole otherwise.
        return parquet.ParquetFile(
            name,
            metadata=metadata,
            pre_buffer=False,
            page_checksum_verification=True,
            buffer_size=min(max(_BATCH // n_columns, _MIN_PIECE), _MAX_PIECE) if most > _BATCH else 0,
        )

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

    def batches(group: int, columns: list[str]) -> Iterator[Chunk]:
        alone = range(group, group + 1)
        seen = 0
        try:
            with opened(len(columns)) as file:
                for batch in file.iter_batches(rows_at_once(len(columns)), row_groups=alone, columns=columns):
                    first = before[group] + seen
                    seen += batch.num_rows
                    yield Chunk(batch, size_of(first, first + batch.num_rows), where(alone))
        except (pyarrow.ArrowException, OSError) as error:
            raise not_read(alone, error) from None
        check_rows(alone, seen)

    def chunks(columns: Sequence[str]) -> Iterator[Chunk]:
        chosen = list(columns)
        if max(rows, default=0) > rows_at_once(len(chosen)):  # Arrow's own threads read its columns
            return chain.from_iterable(batches(group, chosen) for group in range(n_groups))
        whole = map_ordered(lambda group: list(batches(group, chosen)), range(n_groups), _GROUPS_AT_ONCE)
        return chain.from_iterable(whole)

    def read(groups: range, columns: Sequence[str]) -> Any:
        try:
            if not hasattr(mine, "file"):
                mine.file = opened(1)
            table = mine.file.read_row_groups(groups, list(columns), use_threads=False)
        except (pyarrow.ArrowException, OSError) as error:
            for group in groups if len(groups) > 1 else ():  # to say which of them it is
                read(range(group, group + 1), columns)
            raise not_read(groups, error) from None
        check_rows(groups, table.num_rows)
        check_unchanged(name, state)
        return table

    def by_column(_: Sequence[str]) -> Iterator[Chunk]:
        for groups in _runs(rows, _ROWS_AT_A_VISIT):
            n_rows = sum(rows[i] for i in groups)
            unread = LazyRowGroups(schema.empty_table(), n_rows, partial(read, groups))
            yield Chunk(unread, size_of(before[groups[0]], before[groups[-1] + 1]), where(groups))

    # With fewer rows a column is a small piece of the file, and a disk is slow to find many of those; with more, one
    # column is more than a batch.
    worth_it = _MIN_ROWS <= max(rows, default=0) <= _BATCH // 8
    return File(name, schema, 0, chunks, by_column if worth_it else None)


def _runs(sizes: Sequence[int], least: int) -> Iterator[range]:
    """Yield neighbours that together have the least size; the last may have less."""
    start = total = 0
    for i, size in enumerate(sizes):
        total += size
        if total >= least or i == len(sizes) - 1:
            yield range(start, i + 1)
            start, total = i + 1, 0


def _feather(name: str) -> File:
    import pyarrow

    def opened() -> Any:
        try:
            return pyarrow.ipc.open_file(pyarrow.memory_map(name))
        except (pyarrow.ArrowException, OSError) as error:
            raise FileError(f"{name} is not a whole Feather file: {first_line(error)}") from None

    def chunks(columns: Sequence[str]) -> Iterator[Chunk]:
        file = opened()
        rows = rows_at_once(len(columns))
        for i in range(file.num_record_batches):
            try:
                batch = file.get_batch(i)
            except (pyarrow.ArrowException, OSError) as error:
                raise FileError(f"{name}, batch {i + 1} cannot be read: {first_line(error)}") from None
            batch = batch.select(list(columns))
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                yield Chunk(part, part.nbytes, name)

    return File(name, opened().schema, 0, chunks)


def _csv(name: str, opened: Callable[[], AbstractContextManager[Content]]) -> File:
    file = CsvFile(opened, _shown(name))

    def chunks(columns: Sequence[str]) -> Iterator[Chunk]:
        return (Chunk(table, size, _shown(name)) for table, size in file.tables(columns))

    def whole() -> Iterator[Chunk]:
        yield Chunk(file.whole(), 0, _shown(name))

    return File(name, file.schema, 0, chunks, whole=whole)
