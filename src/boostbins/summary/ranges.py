"""The least and the greatest value of columns, whatever the rows' weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbins._threads import map_threads
from boostbins.sources.table import ROWS_AT_ONCE, SparseColumn, Table
from boostbins.sources.values import Floats
from boostbins.summary.column import Range
from boostbins.summary.table import TableSummary


class Ranges(NamedTuple):
    """What a library sees of the columns, whatever the rows' weights."""

    low: Floats  # NaN if all is missing
    high: Floats
    missing: NDArray[np.bool_]


def ranges_of(table: Table, n_threads: int | None = None) -> Ranges:
    """Return the ranges of a table, by a look at all its rows.

    For what has no summary: ready bins, and tables in memory, of which a library's room for bins must be known before
    the columns are summarized and cut one at a time. (A summary has the ranges: see `ranges_of_summary`.)
    """
    if table.array is not None and table.array.flags.c_contiguous:
        return _ranges_of_rows(table.array, n_threads)

    def of_column(i: int) -> Range:
        column = table.read(i)
        if not isinstance(column, SparseColumn):
            return Range.of(column)
        found = Range.of(column.values)
        return found if len(column.values) == column.n_rows else found | Range.of(np.array([column.rest]))

    found = map_threads(of_column, range(len(table)), n_threads)
    low, high, missing = zip(*found, strict=True) if found else ((), (), ())
    return Ranges(np.array(low, np.float64), np.array(high, np.float64), np.array(missing, np.bool_))


def ranges_of_summary(summary: TableSummary) -> Ranges:
    """Return the ranges of a table that is summarized, without another look at it."""
    low, high, missing = zip(*(column.range for column in summary), strict=True) if len(summary) else ((), (), ())
    return Ranges(np.array(low, np.float64), np.array(high, np.float64), np.array(missing, np.bool_))


def _ranges_of_rows(array: NDArray[Any], n_threads: int | None) -> Ranges:
    """Return the ranges of an array in C order, which are found faster over rows than over columns."""

    def of_rows(start: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        rows = array[start : start + ROWS_AT_ONCE]
        low, high = rows.min(axis=0), rows.max(axis=0)
        missing = np.isnan(low)
        if missing.any():
            low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
        return low, high, missing

    low, high, missing = zip(*map_threads(of_rows, range(0, len(array), ROWS_AT_ONCE), n_threads), strict=True)
    return Ranges(
        np.fmin.reduce(low).astype(np.float64), np.fmax.reduce(high).astype(np.float64), np.any(missing, axis=0)
    )
