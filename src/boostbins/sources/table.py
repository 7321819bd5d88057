"""Any table as named columns of numbers, read one at a time and never copied as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbins.sources.values import is_missing, numeric_column

ROWS_AT_ONCE = 16_384
"""Rows of an array to be worked on together: in C order, a block stays in the cache for all columns."""

NonNumeric: TypeAlias = Literal["error", "skip"]


@dataclass(frozen=True)
class SparseColumn:
    """A column that has one value, `rest`, but at some rows."""

    values: NDArray[Any]
    rows: NDArray[np.intp]
    n_rows: int
    rest: float = 0.0

    def copy(self) -> SparseColumn:
        """Return the column in memory of its own."""
        return replace(self, values=self.values.copy(), rows=self.rows.copy())

    def dense(self) -> NDArray[np.float64]:
        """Return all rows."""
        column = np.full(self.n_rows, self.rest)
        column[self.rows] = self.values
        return column


Column: TypeAlias = NDArray[Any] | SparseColumn


@dataclass(frozen=True)
class Table:
    """Named numeric columns of equal length; `read` gives one of them."""

    names: tuple[str, ...]
    n_rows: int
    named: bool  # whether the names are the table's own
    read: Callable[[int], Column]
    in_memory: bool = False  # whether `read` only gives a view of an array
    array: NDArray[Any] | None = None  # that holds all columns, where there is one
    feature_indices: tuple[int, ...] = ()  # of the columns in the table that was read, where some were left out

    def __len__(self) -> int:
        return len(self.names)

    def matched(self, names: Sequence[str]) -> Table:
        """Return the columns in the order of `names`: by name if the table has names, else by position."""
        if not self.named:
            if len(self) != len(names):
                raise ValueError(f"X has {len(self)} columns, but the bins are for {len(names)}: {_listed(names)}")
            return self
        missing = [name for name in names if name not in self.names]
        extra = [name for name in self.names if name not in names]
        if missing or extra:
            found = f"lacks {_listed(missing)}" if missing else f"has columns that were not binned: {_listed(extra)}"
            raise ValueError(f"X {found}; the bins are for {_listed(names)}")
        return self.chosen([self.names.index(name) for name in names])

    def chosen(self, columns: Sequence[int]) -> Table:
        """Return some of the columns, in this order."""
        return replace(
            self,
            names=tuple(self.names[i] for i in columns),
            feature_indices=tuple(self.feature_indices[i] for i in columns),
            read=lambda i: self.read(columns[i]),
            array=None,
        )

    def renamed(self, names: Sequence[str], named: bool = True) -> Table:
        """Return the columns with other names, those of all columns of the table that was read."""
        return replace(self, names=tuple(names[index] for index in self.feature_indices), named=named)

    def leaving_out(self, feature_indices: Collection[int]) -> Table:
        """Return the columns that are not at these places of the table that was read."""
        if not feature_indices:
            return self
        return self.chosen([i for i, index in enumerate(self.feature_indices) if index not in feature_indices])

    def copied(self) -> Table:
        """Return the columns in memory of their own."""
        columns = [self.read(i).copy() for i in range(len(self))]
        return replace(self, read=columns.__getitem__, in_memory=False, array=None)

    def map(self, view: Callable[[Column], Column]) -> Table:
        """Return the columns as a library sees them: each is converted when it is read."""
        return replace(self, read=lambda i: view(self.read(i)), in_memory=False, array=None)


def as_float32(column: Column) -> Column:
    """Return a column rounded to float32."""
    if isinstance(column, SparseColumn):
        return replace(column, values=np.asarray(as_float32(column.values)))
    with np.errstate(over="ignore"):
        return column.astype(np.float32, copy=False)


def dense(column: Column) -> NDArray[Any]:
    """Return all rows of a column."""
    return column.dense() if isinstance(column, SparseColumn) else column


def rest_missing(column: Column) -> Column:
    """Return a column of which what is not stored is missing."""
    return replace(column, rest=np.nan) if isinstance(column, SparseColumn) else column


def with_missing(value: float) -> Callable[[Column], Column]:
    """Return a view of columns where a value stands for missing."""

    def marked(column: Column) -> Column:
        if isinstance(column, SparseColumn):
            rest = np.nan if column.rest == value else column.rest
            return replace(column, values=np.asarray(marked(column.values)), rest=rest)
        if not (here := column == value).any():
            return column
        return np.where(here, np.nan, column)

    return marked


def read_table(X: Any, *, non_numeric: NonNumeric = "error", dates_as_numbers: bool = False) -> Table:
    """Return the columns of an array, a frame, a sparse matrix, a list or a dict of columns.

    Parameters
    ----------
    X : array, frame, sparse matrix, list or dict
        2-D arrays; pandas, polars and Arrow tables; SciPy's sparse matrices; a list of columns or a dict of
        them by name; a single column as a 1-D array or series.
    non_numeric : "error" or "skip"
        What to do with columns of text or categories.
    dates_as_numbers : bool
        Whether dates, times and durations are taken as numbers (of their own unit).
    """
    if non_numeric not in ("error", "skip"):
        raise ValueError(f"non_numeric must be 'error' or 'skip', got {non_numeric!r}")
    if is_sparse(X):
        table = _from_sparse(X)
    elif isinstance(X, Mapping):
        table = _from_columns([str(name) for name in X], list(X.values()), named=True)
    elif isinstance(X, list | tuple):
        table = _from_columns([f"x{i}" for i in range(len(X))], list(X), named=False)
    elif isinstance(X, np.ndarray):
        table = _from_array(X, dates_as_numbers)
    elif is_array_like(X):
        table = _from_array(np.asarray(X), dates_as_numbers)
    else:
        table = _from_frame(X, non_numeric, dates_as_numbers)
    table = _checked(table, non_numeric)
    if table.n_rows == 0:
        raise ValueError("X has no rows")
    return table


def lazy_table(
    X: Any, n_rows: int, read: Callable[[str], Any], non_numeric: NonNumeric, dates_as_numbers: bool
) -> Table:
    """Return the columns of an Arrow table that is not in memory: each is read when it is asked for.

    Parameters
    ----------
    X : pyarrow.Table
        The table without its rows.
    n_rows : int
        How many these are.
    read : function
        Gives a column by its name, as Arrow's chunked array.
    non_numeric, dates_as_numbers
        As for `read_table`.
    """
    import narwhals as nw
    from pyarrow import types

    table = _checked(_from_frame(X, non_numeric, dates_as_numbers), non_numeric)

    def column(i: int) -> NDArray[Any]:
        name = table.names[i]
        values = read(name)
        if types.is_floating(values.type):  # what a narwhals series would give, in a fiftieth of the time
            return numeric_column(values.to_numpy())
        return _numbers(nw.from_native(values, series_only=True), name, dates_as_numbers)

    return replace(table, n_rows=n_rows, read=column)


def _checked(table: Table, non_numeric: NonNumeric) -> Table:
    """Return a table with columns, named apart, that know their places."""
    if len(table) == 0 and non_numeric == "error":
        raise ValueError("X has no columns to bin")
    if len(set(table.names)) < len(table.names):
        twice = next(name for name in table.names if table.names.count(name) > 1)
        raise ValueError(f"X has more than one column named {twice!r}: rename one of them")
    return table if table.feature_indices else replace(table, feature_indices=tuple(range(len(table))))


def is_sparse(X: Any) -> bool:
    """Return whether something is a sparse matrix of SciPy's, without loading it."""
    return type(X).__module__.startswith("scipy.sparse")


def is_array_like(X: Any) -> bool:
    """Return whether something is no array and no frame, but can be taken as an array."""
    return (
        hasattr(X, "__array__")
        and not isinstance(X, np.ndarray)
        and not hasattr(X, "columns")
        and not hasattr(X, "name")
    )


def _from_array(X: NDArray[Any], dates_as_numbers: bool) -> Table:
    if not isinstance(X, np.ma.MaskedArray):
        X = np.asarray(X)
    if X.ndim == 1 and X.dtype != object:
        X = X[:, None]
    if X.ndim != 2:
        raise ValueError(f"X must be a table with rows and columns, got shape {X.shape} of dtype {X.dtype}")
    if X.dtype.kind in "mM":
        X = _dates(X, "X", dates_as_numbers)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold numbers, got dtype {X.dtype}: convert it first, e.g. with .astype(float)")
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    array = None if isinstance(X, np.ma.MaskedArray) else X
    return Table(names, X.shape[0], False, lambda i: numeric_column(X[:, i]), in_memory=True, array=array)


def _from_columns(names: list[str], columns: list[Any], *, named: bool) -> Table:
    arrays: list[NDArray[Any]] = []
    for name, column in zip(names, columns, strict=True):
        try:
            arrays.append(numeric_column(column))
        except (TypeError, ValueError) as error:
            raise type(error)(f"X, column {name!r}: {error}") from None
    lengths = {len(a) for a in arrays}
    if len(lengths) > 1:
        map_threads = ", ".join(f"{name!r} {len(a)}" for name, a in zip(names[:5], arrays, strict=False))
        raise ValueError(f"X's columns must have one length, got {map_threads}")
    return Table(tuple(names), max(lengths, default=0), named, lambda i: arrays[i], in_memory=True)


def _from_sparse(X: Any) -> Table:
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got a sparse array of shape {X.shape}")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold numbers, got a sparse matrix of dtype {X.dtype}")
    matrix = X.tocsc()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()

    def read(i: int) -> SparseColumn:
        stored = slice(matrix.indptr[i], matrix.indptr[i + 1])
        return SparseColumn(numeric_column(matrix.data[stored]), matrix.indices[stored], matrix.shape[0])

    return Table(tuple(f"x{i}" for i in range(X.shape[1])), X.shape[0], False, read)


def _from_frame(X: Any, non_numeric: NonNumeric, dates_as_numbers: bool) -> Table:
    import narwhals as nw

    try:
        frame = nw.from_native(X, eager_only=True, allow_series=True)
    except TypeError:
        kind = f"{type(X).__module__}.{type(X).__name__}"
        hint = "collect it first" if "Lazy" in kind else "convert it to a NumPy array or a frame"
        if kind.startswith("dask."):
            hint = "use boostbins.dask for what lies in partitions, or compute it first"
        raise TypeError(
            f"X must be an array, a pandas, polars or Arrow table, a sparse matrix or a list of columns, "
            f"got {kind}: {hint}"
        ) from None
    if isinstance(frame, nw.Series):
        frame = frame.alias(str(frame.name or "x0")).to_frame()
    kept: list[str] = []
    feature_indices: list[int] = []
    for index, (name, dtype) in enumerate(frame.schema.items()):
        is_number = dtype.is_numeric() or dtype == nw.Boolean or (dtype.is_temporal() and dates_as_numbers)
        if is_number or (dtype == nw.Unknown and _is_null(frame.get_column(name))):
            kept.append(name)
            feature_indices.append(index)
        elif non_numeric == "error" or dtype.is_temporal():
            way_out = (
                "convert it to numbers that mean something, or pass dates_as_numbers=True to fit_bins"
                if dtype.is_temporal()
                else "encode it as numbers, leave it out, or pass non_numeric='skip'"
            )
            raise TypeError(f"X, column {name!r} of type {dtype} cannot be cut: {way_out}")

    def read(i: int) -> NDArray[Any]:
        return _numbers(frame.get_column(kept[i]), kept[i], dates_as_numbers)

    return Table(tuple(str(name) for name in kept), len(frame), True, read, feature_indices=tuple(feature_indices))


def _numbers(series: Any, name: str, dates_as_numbers: bool) -> NDArray[Any]:
    """Return a frame's column, of numbers, dates or nothing."""
    import narwhals as nw

    dtype = series.dtype
    if dtype == nw.Unknown:
        return np.full(len(series), np.nan)
    if dtype.is_temporal():
        return _dates(series.to_numpy(), name, dates_as_numbers)
    plain = dtype.is_integer() or dtype == nw.Boolean
    wide = dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128)
    if wide or (plain and series.null_count() > 0):
        return float_values(series)
    values = series.to_numpy()
    return numeric_column(values if values.dtype != object else values.astype(np.float64))


def _is_null(series: Any) -> bool:
    """Return whether a column is of the type that holds nothing: Arrow's and polars' null."""
    native = series.to_native()
    kind = native.dtype if hasattr(native, "dtype") else native.type
    return str(kind).lower().startswith("null")


def float_values(series: Any) -> NDArray[np.float64]:
    """Return a column of any numbers as float64, NaN for what is missing; each the nearest to what it was."""
    import narwhals as nw

    if series.dtype.is_decimal():  # by its digits: what a cast does with the scale rounds twice
        series = series.cast(nw.String)
    try:
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
    except (ValueError, ArithmeticError):  # Arrow refuses whole numbers beyond 2**53
        return np.array([np.nan if is_missing(value) else float(value) for value in series.to_list()])


def _dates(values: NDArray[Any], name: str, dates_as_numbers: bool) -> NDArray[np.float64]:
    if not dates_as_numbers:
        raise TypeError(
            f"{name} holds dates or durations ({values.dtype}): pass dates_as_numbers=True, "
            f"or convert them to numbers that mean something"
        )
    if values.dtype.kind not in "mM":
        raise TypeError(f"X, column {name!r}: {values.dtype} cannot be taken as numbers; convert it first")
    return np.where(np.isnat(values), np.nan, values.view(np.int64))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
