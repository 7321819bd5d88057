"""The summaries of all columns of a table: what is kept, sent and added up instead of its rows."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boostbins._atomic import atomic_write
from boostbins._threads import WORTH_THREADS, Progress, checked_threads, map_threads, spare_threads
from boostbins.sources.stream import Batch, column_in, joined, numbers_in, table_of
from boostbins.sources.table import DATE, SPAN, Column, SparseColumn, Table
from boostbins.sources.values import Floats, Targets, checked_target, checked_weight, numbered_classes
from boostbins.summary.column import MAX_CELLS, ColumnSummary, GrowingSummary
from boostbins.summary.rows import RowSample

MAGIC = b"boostbins table"
_VERSION = 3  # 2 had no sample of rows, 1 no units
_HEAD = struct.Struct("<15sBQ")  # ..., the length of the names
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


class TableSummary:
    """The summaries of all columns of a table, immutable: made by `summarize`, added up with ``+``, cut by `fit_bins`.

    Like those of its columns, the sum is the same to the last bit whatever the parts that the rows came in and the
    order they are added in. (With weights or targets: up to the rounding of their sums.)

    Parameters
    ----------
    columns : iterable of ColumnSummary
    names : iterable of str, optional
        "x0", "x1", ... if not given.
    units : dict, optional
        What the numbers of a column count that held dates or durations, by its name.
    rows : RowSample, optional
        Some of the rows, with their targets.

    Examples
    --------
    >>> from boostbins import fit_bins, summarize
    >>> yesterday, today = summarize({"price": [1.0, 2.0]}), summarize({"price": [2.0, 9.0, float("nan")]})
    >>> yesterday + today
    TableSummary(5 rows; price: 3 distinct values)
    >>> fit_bins(yesterday + today)["price"]
    array([1.5, 5.5])
    """

    __slots__ = ("columns", "names", "rows", "units")

    columns: tuple[ColumnSummary, ...]
    names: tuple[str, ...]
    units: Mapping[str, str]
    rows: RowSample | None

    def __init__(
        self,
        columns: Iterable[ColumnSummary],
        names: Iterable[str] | None = None,
        units: Mapping[str, str] | None = None,
        rows: RowSample | None = None,
    ) -> None:
        held = tuple(columns)
        known = tuple(f"x{i}" for i in range(len(held))) if names is None else tuple(map(str, names))
        if len(known) != len(held) or len(set(known)) != len(known):
            raise ValueError(f"names must be {len(held)} different names, one per column, got {known}")
        object.__setattr__(self, "columns", held)
        object.__setattr__(self, "names", known)
        given = {name: unit for name, unit in (units or {}).items() if unit and name in known}
        object.__setattr__(self, "units", given)
        object.__setattr__(self, "rows", rows)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a TableSummary is immutable: make a new one instead of setting {name}")

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[ColumnSummary]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> ColumnSummary:
        if name not in self.names:
            raise KeyError(f"no column {name!r}; there are {', '.join(map(repr, self.names[:10]))}")
        return self.columns[self.names.index(name)]

    @property
    def n_rows(self) -> int:
        """The number of rows, those of weight 0 not counted."""
        return max((column.n_rows for column in self.columns), default=0)

    def __add__(self, other: TableSummary) -> TableSummary:
        """Return the summary of both tables' rows; columns are matched by name."""
        if not isinstance(other, TableSummary):
            return NotImplemented
        if odd := sorted(set(self.names) ^ set(other.names)):
            raise ValueError(f"only one of the two summaries has a column {odd[0]!r}: they cannot be added")
        for name, mine in zip(self.names, self, strict=True):
            unit, its = self.units.get(name), other.units.get(name)
            if unit != its and mine.count and other[name].count:
                raise ValueError(
                    f"column {name!r} holds {unit or 'numbers'} in one summary, and {its or 'numbers'} in the other: "
                    f"they cannot be added"
                )
        sums = [mine + other[name] for name, mine in zip(self.names, self, strict=True)]
        return TableSummary(sums, self.names, {**other.units, **self.units}, self._sum_of_rows(other))

    def _sum_of_rows(self, other: TableSummary) -> RowSample | None:
        """Return the sample of both tables' rows; that of a table without any has none. Keys go by columns' places."""
        for empty, whole in ((self, other), (other, self)):
            if empty.rows is None and empty.n_rows == 0:
                return whole.rows if self.names == other.names else None
        if self.rows is None or other.rows is None or self.names != other.names:
            return None
        return self.rows + other.rows

    def of_columns(self, names: Sequence[str]) -> TableSummary:
        """Return the summaries of some columns, in this order."""
        rows = self.rows if tuple(names) == self.names else None  # others would have other keys
        return TableSummary((self[name] for name in names), names, self.units, rows)

    # ---- as a value

    def __eq__(self, other: object) -> bool:
        mine = (self.names, self.units, self.columns, self.rows)
        return isinstance(other, TableSummary) and mine == (other.names, other.units, other.columns, other.rows)

    def __hash__(self) -> int:
        return hash((self.names, self.columns))

    def __repr__(self) -> str:
        held = [
            f"{name}: {column.n_cells:,} {'distinct values' if column.is_exact else 'cells'}"
            for name, column in zip(self.names[:6], self, strict=False)
        ]
        more = [f"and {len(self) - 6} more"] if len(self) > 6 else []
        return f"TableSummary({self.n_rows:,} rows; {', '.join(held + more)})"

    def to_bytes(self) -> bytes:
        """Return the summary as bytes, for `from_bytes`."""
        names = json.dumps({"names": self.names, "units": dict(self.units)}).encode()
        parts = [_HEAD.pack(MAGIC, _VERSION, len(names)), names]
        for column in self.columns:
            data = column.to_bytes()
            parts += [_LENGTH.pack(len(data)), data]
        rows = b"" if self.rows is None else self.rows.to_bytes()
        parts += [_LENGTH.pack(len(rows)), rows]
        body = b"".join(parts)
        return body + _CRC.pack(zlib.crc32(body))

    @classmethod
    def from_bytes(cls, data: bytes) -> TableSummary:
        """Return the summary that `to_bytes` wrote."""
        if len(data) < _HEAD.size + _CRC.size or not data.startswith(MAGIC):
            raise ValueError("these bytes are not a summary of boostbins', or are cut short")
        _, version, length = _HEAD.unpack_from(data)
        if not 1 <= version <= _VERSION:
            raise ValueError(f"a summary of version {version}; this boostbins reads up to version {_VERSION}")
        body = memoryview(data)[: -_CRC.size]
        if _CRC.unpack(data[-_CRC.size :])[0] != zlib.crc32(body):
            raise ValueError("the summary is damaged or cut short: its checksum is wrong; build it again")
        at = _HEAD.size + length
        names, units = _described_in(bytes(body[_HEAD.size : at]), version)
        parts = []
        for what in [*(f"column {name!r}" for name in names), *(["its rows"] if version > 2 else [])]:
            if at + _LENGTH.size > len(body):
                raise ValueError(f"not a summary of boostbins': it ends before {what}")
            (length,) = _LENGTH.unpack_from(body, at)
            at += _LENGTH.size + length
            parts.append(bytes(body[at - length : at]))
        if at != len(body):
            raise ValueError("not a summary of boostbins': it goes on after the last column")
        columns = [ColumnSummary.from_bytes(part) for part in parts[: len(names)]]
        sampled = parts[len(names)] if version > 2 else b""
        rows = RowSample.from_bytes(sampled) if sampled else None
        if rows is not None and len(rows.values) != len(columns):
            raise ValueError("not a summary of boostbins': its rows have other columns")
        return cls(columns, names, units, rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return TableSummary, (self.columns, self.names, self.units, self.rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the summary to a file: whole, or not at all."""
        with atomic_write(path) as file:
            file.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TableSummary:
        """Return the summary in a file that `save` wrote."""
        with Path(path).open("rb") as file:
            data = file.read(len(MAGIC))
            if data == MAGIC:  # else it may be anything, and without end
                data += file.read()
        try:
            return cls.from_bytes(data)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None


def _described_in(data: bytes, version: int) -> tuple[list[str], dict[str, str]]:
    """Return the names of the columns, and the units; version 1 had none."""
    try:
        described = json.loads(data)
        names, units = (described, {}) if version == 1 else (described["names"], described["units"])
        is_sound = isinstance(names, list) and all(isinstance(name, str) for name in names)
        is_sound &= set(units) <= set(names) and set(units.values()) <= {DATE, SPAN}
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        is_sound = False
    if not is_sound:
        raise ValueError("not a summary of boostbins': its names cannot be read")
    return names, units


# ---- summaries of rows


class OfTarget(NamedTuple):
    """What a summary keeps of the target, if there is one."""

    sums: bool = True  # in each column's cells: for methods that look at it
    rows: bool = True  # of some rows: to share a total of bins


ALL_OF_TARGET = OfTarget()


def summarize_table(
    table: Table,
    weight: Floats | None = None,
    target: Targets | None = None,
    *,
    max_cells: int | None = MAX_CELLS,
    n_threads: int | None = None,
) -> TableSummary:
    """Return the summary of a table; weights and targets are checked already."""
    of_column = spare_threads(len(table), n_threads)
    columns = map_threads(
        lambda i: summarize_column(table, i, weight, target, max_cells=max_cells, n_threads=of_column),
        range(len(table)),
        n_threads,
    )
    rows = None if target is None else RowSample.of(table, weight, target)
    return TableSummary(columns, table.names, table.units, rows)


def summarize_column(
    table: Table,
    i: int,
    weight: Floats | None = None,
    target: Targets | None = None,
    *,
    max_cells: int | None = MAX_CELLS,
    n_threads: int = 1,
) -> ColumnSummary:
    """Return the summary of a table's column; weights and targets are checked already."""
    column = table.read(i)
    if isinstance(column, SparseColumn) and target is not None:
        column = column.dense()
    if not isinstance(column, SparseColumn):
        return ColumnSummary.of_checked(column, weight, target, max_cells, n_threads)
    stored_weight = None if weight is None else weight[column.rows]
    stored = ColumnSummary.of_checked(column.values, stored_weight, None, max_cells)
    if weight is None:
        n_rest, rest_weight = table.n_rows - len(column.values), None
    else:
        rest = weight.copy()
        rest[column.rows] = 0.0
        n_rest, rest_weight = int(np.count_nonzero(rest)), [rest.sum()]
    if n_rest == 0 and len(column.values) == table.n_rows:
        return stored
    if n_rest == 0:
        return stored + ColumnSummary([column.rest], [0.0], max_cells=max_cells)
    return stored + ColumnSummary([column.rest], rest_weight, max_cells=max_cells).of_rows(n_rest)


def summarize_stream(
    batches: Iterator[Batch],
    *,
    weight: str = "sample_weight",
    target: str = "y",
    n_classes: int | None = None,
    max_cells: int | None = MAX_CELLS,
    of_target: OfTarget = ALL_OF_TARGET,
    n_threads: int | None = None,
    progress: Progress | None = None,
    size: int = 0,
    view: Callable[[Column], Column] | None = None,
) -> TableSummary:
    """Return the summary of all batches.

    Parameters
    ----------
    batches : iterator of Batch
    weight, target : str
        The arguments that these were given as.
    n_classes : int, optional
        If the target numbers classes, how many.
    max_cells, n_threads, progress
        As for `summarize`.
    of_target : OfTarget
        What is kept of it.
    size : int
        Of the whole stream, for `progress`.
    view : function, optional
        How a library sees a column.
    """
    threads = checked_threads(n_threads)
    columns: list[GrowingSummary] = []
    names: tuple[str, ...] = ()
    units: dict[str, str] = {}
    rows: RowSample | None = None
    done = 0
    for some in joined(batches):
        n_rows = sum(batch.table.n_rows for batch in some)
        weights, targets = numbers_in(some, weight, checked_weight), numbers_in(some, target, checked_target)
        if targets is not None and n_classes is not None:
            targets = numbered_classes(targets[:, 0], n_classes, target)
        names = some[0].table.names
        for batch in some:
            units |= {name: unit for name, unit in batch.table.units.items() if unit}
        columns = columns or [GrowingSummary(max_cells) for _ in names]
        summed = targets if of_target.sums else None

        def add(i: int) -> None:
            columns[i].add(column_in(some, i, view), weights, summed)  # noqa: B023 (done before the next)

        map_threads(add, range(len(names)), threads if n_rows >= WORTH_THREADS else 1)
        if targets is not None and of_target.rows:
            part = RowSample.of(table_of(some, view), weights, targets)
            rows = part if rows is None else rows + part
        done += sum(batch.size for batch in some)
        if progress is not None:
            progress(done, max(size, done), some[-1].where)
    summary = TableSummary(map_threads(lambda i: columns[i].summary(), range(len(names)), threads), names, units, rows)
    if len(summary) and summary.n_rows == 0:
        raise ValueError(f"{weight} is zero for every row: give some row a positive weight")
    return summary
