"""The least and the greatest value of columns, whatever the rows' weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbins._threads import map_threads
from boostbins.sources.table import ROWS_AT_ONCE, SparseColumn, Table
from boostbins.sources.values import Floats
from boostbins.summary.table import TableSummary


class Ranges(NamedTuple):
    """What a library sees of the columns, whatever the rows' weights."""

    low: Floats  # NaN if all is missing
    high: Floats
    missing: NDArray[np.bool_]


def ranges_of(table: Table, n_threads: int | None = None) -> Ranges:
    """Return the least and the greatest value of each column, and whether any is missing."""
    if table.array is not None and table.array.flags.c_contiguous:
        return _ranges_of_rows(table.array, n_threads)

    def of_column(i: int) -> tuple[float, float, bool]:
        column = table.read(i)
        values = column.values if isinstance(column, SparseColumn) else column
        low, high, missing = np.nan, np.nan, False
        if len(values):
            low, high = float(values.min()), float(values.max())
            if missing := bool(np.isnan(low)):
                low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
        if isinstance(column, SparseColumn) and len(values) < column.n_rows:
            low, high = float(np.fmin(low, column.rest)), float(np.fmax(high, column.rest))
            missing = missing or bool(np.isnan(column.rest))
        return low, high, missing

    found = map_threads(of_column, range(len(table)), n_threads)
    low, high, missing = zip(*found, strict=True) if found else ((), (), ())
    return Ranges(np.array(low, np.float64), np.array(high, np.float64), np.array(missing, np.bool_))


def ranges_of_summary(summary: TableSummary) -> Ranges:
    """Return the ranges of a table that is summarized, infinities included; rows of weight 0 are not seen."""
    low = [c.min if c.n_cells else np.nan for c in summary]
    high = [c.max if c.n_cells else np.nan for c in summary]
    low = [
        np.fmin(x, -np.inf if c.negative_infinite else np.inf if c.positive_infinite else x)
        for x, c in zip(low, summary, strict=True)
    ]
    high = [
        np.fmax(x, np.inf if c.positive_infinite else -np.inf if c.negative_infinite else x)
        for x, c in zip(high, summary, strict=True)
    ]
    return Ranges(np.array(low), np.array(high), np.array([c.missing > 0 for c in summary], np.bool_))


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
