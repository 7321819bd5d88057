"""Some rows of a table, the same ones however it is divided: what is known of columns together."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbins import _core
from boostbins.sources.table import ROWS_AT_ONCE, Table, dense
from boostbins.sources.values import MAX_TARGETS, Floats, Targets, check_squares, check_total, numeric_column

MAX_ROWS = 12288
"""Different rows that a sample keeps."""

MAGIC = b"boostbins rows"
_VERSION = 1
_HEADER = struct.Struct("<14sBQQQ")  # ..., rows, columns, moments
_CRC = struct.Struct("<I")
_MAX_COLUMNS = 2**31  # as many as an array may have

Keys = NDArray[np.uint64]


class RowSample:
    """At most 12,288 different rows of a table, with what all rows equal to them sum up to: a bottom-k sample.

    A row's key is a hash of its values, and those of the least keys are kept: which ones depends on the set of rows
    alone, and samples of parts add up to that of the whole. (A row of weight n is n rows; sums of weights and targets
    that are no whole numbers are rounded.) Rows of weight 0 are not in it.

    Parameters
    ----------
    keys : array of shape (rows,)
        Ascending.
    values : array of shape (columns, rows)
    moments : array of shape (rows, targets + 2)
        The sums of each row's weight, targets and squares of targets, as in a `ColumnSummary`.
    """

    __slots__ = ("keys", "moments", "values")

    keys: Keys
    values: Floats
    moments: Floats

    def __init__(self, keys: Keys, values: Floats, moments: Floats) -> None:
        for name, array in (("keys", keys), ("values", values), ("moments", moments)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a RowSample is immutable")

    @classmethod
    def of(cls, table: Table, weight: Floats | None, target: Targets) -> RowSample:
        """Return the sample of a table's rows; weights and targets are checked already."""
        keys = _keys_of(table)
        rows = np.arange(table.n_rows) if weight is None else np.flatnonzero(weight)
        if len(rows) > MAX_ROWS:
            # Equal rows have equal keys: more of the least ones are taken, until enough of these differ.
            n = 2 * MAX_ROWS
            while True:
                limit = np.partition(keys[rows], n - 1)[n - 1] if n < len(rows) else None
                least = rows if limit is None else rows[keys[rows] <= limit]
                if limit is None or len(np.unique(keys[least])) >= MAX_ROWS:
                    break
                n *= 8
            rows = least
        weights = np.ones(len(rows)) if weight is None else weight[rows]
        targets = target[rows].astype(np.float64)
        with np.errstate(over="ignore"):
            moments = np.column_stack([np.ones(len(rows)), targets, np.square(targets).sum(axis=1)]) * weights[:, None]
        least, sums = _least(keys[rows], moments)
        rows = rows[least]
        values = np.empty((len(table), len(rows)))
        for i in range(len(table)):
            with np.errstate(invalid="ignore"):  # of signaling NaN, which are missing like any other
                values[i] = dense(table.read(i))[rows]
        return cls(keys[rows], values + 0.0, sums)  # -0.0 and 0.0 are one value

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: RowSample) -> RowSample:
        """Return the sample of both tables' rows."""
        if not isinstance(other, RowSample):
            return NotImplemented
        keys = np.concatenate([self.keys, other.keys])
        least, sums = _least(keys, np.concatenate([self.moments, other.moments]))
        return RowSample(keys[least], np.concatenate([self.values, other.values], axis=1)[:, least], sums)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowSample) and all(
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name != "keys")
            for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash(self.keys.tobytes())

    @property
    def n_different(self) -> float:
        """How many different rows there are in all: as it is, or as the greatest key of a full sample tells."""
        return len(self) if len(self) < MAX_ROWS else (MAX_ROWS - 1) * 2.0**64 / float(self.keys[-1])

    def first(self, n_rows: int) -> RowSample:
        """Return the sample that would have kept fewer rows."""
        return RowSample(self.keys[:n_rows], self.values[:, :n_rows], self.moments[:n_rows])

    # ---- as bytes

    def to_bytes(self) -> bytes:
        """Return the sample as bytes, for `from_bytes`."""
        header = _HEADER.pack(MAGIC, _VERSION, len(self), len(self.values), self.moments.shape[1])
        arrays = (self.keys.astype("<u8"), self.values.astype("<f8"), self.moments.astype("<f8"))
        body = header + b"".join(array.tobytes() for array in arrays)
        return body + _CRC.pack(zlib.crc32(body))

    @classmethod
    def from_bytes(cls, data: bytes) -> RowSample:
        """Return the sample that `to_bytes` wrote."""
        wrong = "these bytes are not a sample of rows of boostbins', or are damaged"
        if len(data) < _HEADER.size + _CRC.size or not data.startswith(MAGIC):
            raise ValueError(wrong)
        _, version, n_rows, n_columns, n_moments = _HEADER.unpack_from(data)
        if version != _VERSION:
            raise ValueError(f"a sample of rows of version {version}; this boostbins reads version {_VERSION}")
        length = 8 * n_rows * (1 + n_columns + n_moments)
        is_sound = n_rows <= MAX_ROWS and n_columns <= _MAX_COLUMNS and 3 <= n_moments <= MAX_TARGETS + 2
        body = data[: -_CRC.size]
        if not is_sound or len(body) != _HEADER.size + length or _CRC.unpack(data[-_CRC.size :])[0] != zlib.crc32(body):
            raise ValueError(wrong)
        numbers = np.frombuffer(body, "<f8", offset=_HEADER.size)
        keys = np.frombuffer(body, "<u8", n_rows, _HEADER.size).astype(np.uint64)
        values, moments = numbers[n_rows : n_rows * (1 + n_columns)], numbers[n_rows * (1 + n_columns) :]
        sample = cls(keys, values.reshape(n_columns, n_rows).copy(), moments.reshape(n_rows, n_moments).copy())
        if not sample._is_sound():
            raise ValueError(wrong)
        return sample

    def _is_sound(self) -> bool:
        """Return whether a sample can be so."""
        keys = np.zeros(len(self), np.uint64)
        for i, column in enumerate(self.values):
            _core.add_to_keys(column, i, keys)
        moments = self.moments
        return (
            np.array_equal(keys, self.keys)
            and bool((keys[1:] > keys[:-1]).all() and np.isfinite(moments).all())
            and bool((moments[:, 0] > 0).all() and (moments[:, -1] >= 0).all())
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RowSample.from_bytes, (self.to_bytes(),)


def _keys_of(table: Table) -> Keys:
    keys = np.zeros(table.n_rows, np.uint64)
    if table.array is not None and table.array.flags.c_contiguous:  # all columns of a block, while it is in the cache
        for start in range(0, table.n_rows, ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            for i in range(len(table)):
                _core.add_to_keys(numeric_column(table.array[rows, i]), i, keys[rows])
        return keys
    for i in range(len(table)):
        _core.add_to_keys(dense(table.read(i)), i, keys)
    return keys


def _least(keys: Keys, moments: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return where the least keys are, ascending and each once, and the sums over all rows that have them."""
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    first = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1])[: len(keys)])
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(moments[order], first, axis=0) if len(keys) else moments
        check_total(float(sums[:, 0].sum()), "the rows' weight")
        check_squares(float(sums[:, -1].sum()))
    return order[first[:MAX_ROWS]], sums[:MAX_ROWS].copy()
