"""Any table as named columns of numbers, read one at a time and never copied as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy import ma
from numpy.typing import NDArray

from boostbins.sources.request import PLAIN, Request, listed
from boostbins.sources.values import is_missing, numeric_column, only_numbers

ROWS_AT_ONCE = 16_384
"""Rows of an array to be worked on together: in C order, a block stays in the cache for all columns."""

DATE, SPAN = "seconds since 1970", "seconds"
"""The units of columns that held dates (in UTC, where they had a time zone) and durations."""

NOTHING = ""
"""The unit of a column whose type tells nothing: every value is missing."""


TEXT, OTHER = "text or categories", "neither numbers nor text"


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
    units: Mapping[str, str] = field(default_factory=dict)  # of those that held no numbers
    left_out: Mapping[str, str] = field(default_factory=dict)  # columns that cannot be cut: what they hold

    def __len__(self) -> int:
        return len(self.names)

    def matched(self, names: Sequence[str]) -> Table:
        """Return the columns in the order of `names`: by name if the table has names, else by position."""
        if not self.named:
            if len(self) != len(names):
                raise ValueError(f"X has {len(self)} columns, but the bins are for {len(names)}: {_quoted(names)}")
            return self
        missing = [name for name in names if name not in self.names]
        extra = [name for name in self.names if name not in names]
        if missing or extra:
            found = f"lacks {_quoted(missing)}" if missing else f"has columns that were not binned: {_quoted(extra)}"
            raise ValueError(f"X {found}; the bins are for {_quoted(names)}")
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
        mine = tuple(names[index] for index in self.feature_indices)
        units = {new: self.units[old] for old, new in zip(self.names, mine, strict=True) if old in self.units}
        return replace(self, names=mine, named=named, units=units)

    def leaving_out(self, feature_indices: Collection[int]) -> Table:
        """Return the columns that are not at these indices of the table that was read."""
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


def read_table(X: Any, request: Request = PLAIN) -> Table:
    """Return the columns of an array, a frame, a sparse matrix, a list or a dict of columns.

    Parameters
    ----------
    X : array, frame, sparse matrix, list or dict
        2-D arrays; pandas, polars and Arrow tables; SciPy's sparse matrices; a list of columns or a dict of
        them by name; a single column as a 1-D array or series.
    request : Request
        Whether text is an error, and dates are numbers; the rest has been seen to.
    """
    if is_sparse(X):
        table = _from_sparse(X)
    elif isinstance(X, Mapping):
        table = _from_columns([str(name) for name in X], list(X.values()), request, named=True)
    elif isinstance(X, list | tuple):
        table = _from_columns([f"x{i}" for i in range(len(X))], list(X), request, named=False)
    elif isinstance(X, np.ndarray):
        table = _from_array(X, request)
    elif is_array_like(X):
        table = _from_array(np.asarray(X), request)
    else:
        table = _from_frame(X, request)
    table = _checked(table, request)
    if table.n_rows == 0:
        raise ValueError("X has no rows")
    return table


def lazy_table(X: Any, n_rows: int, read: Callable[[str], Any], request: Request) -> Table:
    """Return the columns of an Arrow table that is not in memory: each is read when it is asked for.

    Parameters
    ----------
    X : pyarrow.Table
        The table without its rows.
    n_rows : int
        How many these are.
    read : function
        Gives a column by its name, as Arrow's chunked array.
    request : Request
        As for `read_table`.
    """
    import narwhals as nw
    from pyarrow import types

    table = _checked(_from_frame(X, request), request)

    def column(i: int) -> NDArray[Any]:
        values = read(table.names[i])
        if types.is_floating(values.type):  # what a narwhals series would give, in a fiftieth of the time
            return numeric_column(values.to_numpy())
        return _numbers(nw.from_native(values, series_only=True))

    return replace(table, n_rows=n_rows, read=column)


def _checked(table: Table, request: Request) -> Table:
    """Return a table with columns, of different names, that know their indices."""
    if len(table) == 0 and request.non_numeric == "error":
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


def _from_array(X: NDArray[Any], request: Request) -> Table:
    if not isinstance(X, ma.MaskedArray):
        X = np.asarray(X)
    if X.ndim == 1 and X.dtype != object:
        X = X[:, None]
    if X.ndim != 2:
        raise ValueError(f"X must be a table with rows and columns, got shape {X.shape} of dtype {X.dtype}")
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    units: dict[str, str] = {}
    if X.dtype.kind in "mM":
        units = dict.fromkeys(names, _unit_of(X, "X", request))
        X = _seconds(X)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold numbers, got dtype {X.dtype}: convert it first, e.g. with .astype(float)")
    array = None if isinstance(X, ma.MaskedArray) else X
    return Table(names, X.shape[0], False, lambda i: numeric_column(X[:, i]), in_memory=True, array=array, units=units)


def _from_columns(names: list[str], columns: list[Any], request: Request, *, named: bool) -> Table:
    arrays: dict[int, NDArray[Any]] = {}
    units: dict[str, str] = {}
    left_out: dict[str, str] = {}
    lengths = {}
    for i, (name, column) in enumerate(zip(names, columns, strict=True)):
        try:
            values = column if isinstance(column, ma.MaskedArray) else np.asarray(column)
            if values.dtype.kind in "mM":
                units[name] = _unit_of(values, f"X, column {name!r}", request)
                values = _seconds(values)
            elif values.dtype == object and only_numbers(values):
                values = np.array([np.nan if is_missing(value) else float(value) for value in values.tolist()])
            elif values.dtype.kind in "OSUT" and request.non_numeric == "skip":
                left_out[name] = TEXT
                lengths[name] = len(values)
                continue
            arrays[i] = numeric_column(values)
            lengths[name] = len(arrays[i])
        except (TypeError, ValueError) as error:
            message = str(error)
            raise type(error)(message if message.startswith("X") else f"X, column {name!r}: {message}") from None
    if len(set(lengths.values())) > 1:
        each = ", ".join(f"{name!r} {n}" for name, n in list(lengths.items())[:5])
        raise ValueError(f"X's columns must have one length, got {each}")
    kept = tuple(arrays)
    return Table(
        tuple(names[i] for i in kept), max(lengths.values(), default=0), named, lambda i: arrays[kept[i]],
        in_memory=True, feature_indices=kept, units=units, left_out=left_out,
    )  # fmt: skip


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


def _from_frame(X: Any, request: Request) -> Table:
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
    kept: list[tuple[int, str]] = []
    units: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for index, (name, dtype) in enumerate(frame.schema.items()):
        unit = DATE if dtype in (nw.Date, nw.Datetime) else SPAN if dtype == nw.Duration else None
        if unit is not None and request.dates_as_numbers:
            units[str(name)] = unit
        elif unit is not None:
            raise _no_dates(f"X, column {name!r} of type {dtype}")
        elif not _holds_numbers(frame, name, dtype):
            if request.non_numeric == "error":
                raise TypeError(
                    f"X, column {name!r} of type {dtype} cannot be cut: encode it as numbers, leave it out, or pass "
                    f"non_numeric='skip'"
                )
            left_out[str(name)] = TEXT if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object) else OTHER
            continue
        elif dtype == nw.Unknown:
            units[str(name)] = NOTHING
        kept.append((index, name))

    def read(i: int) -> NDArray[Any]:
        return _numbers(frame.get_column(kept[i][1]))

    return Table(
        tuple(str(name) for _, name in kept), len(frame), True, read,
        feature_indices=tuple(index for index, _ in kept), units=units, left_out=left_out,
    )  # fmt: skip


def _holds_numbers(frame: Any, name: Any, dtype: Any) -> bool:
    """Return whether a frame's column holds numbers, or nothing at all; pandas may hold numbers as objects."""
    import narwhals as nw

    if dtype == nw.Object:
        return only_numbers(np.array([*frame.get_column(name).to_list(), None], object)[:-1])
    if dtype == nw.Unknown:
        return _is_null(frame.get_column(name))
    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def _numbers(series: Any) -> NDArray[Any]:
    """Return a frame's column, of numbers, dates or nothing."""
    import narwhals as nw

    dtype = series.dtype
    if dtype == nw.Unknown:
        return np.full(len(series), np.nan)
    if dtype.is_temporal():
        return seconds(series)
    plain = dtype.is_integer() or dtype == nw.Boolean
    wide = dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128, nw.Object)
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
        if series.dtype == nw.Object:
            raise ValueError("a cast takes no objects")
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
    except (ValueError, ArithmeticError):  # Arrow refuses whole numbers beyond 2**53
        return np.array([np.nan if is_missing(value) else float(value) for value in series.to_list()])


def seconds(series: Any) -> NDArray[np.float64]:
    """Return dates as seconds since 1970 in UTC, durations as seconds, and NaN for what is missing."""
    import narwhals as nw

    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    values = series.to_numpy()
    if values.dtype.kind not in "mM":  # objects, of dates beyond a library's reach
        values = np.array(series.to_list(), "timedelta64[us]" if series.dtype == nw.Duration else "datetime64[us]")
    return _seconds(values)


def _seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    unit, n = np.datetime_data(values.dtype)
    if unit in ("Y", "M"):
        values, unit, n = values.astype("datetime64[D]"), "D", 1
    per_unit = {"W": 604_800.0, "D": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    scale = per_unit[unit] * n
    counts = values.view(np.int64)
    # Divided where that is exact: 1e-3 is no number of a computer.
    found = counts * scale if scale >= 1 else counts / round(1 / scale)
    return np.where(np.isnat(values), np.nan, found)


def _unit_of(values: NDArray[Any], name: str, request: Request) -> str:
    """Return the unit of an array of dates or durations."""
    if not request.dates_as_numbers:
        raise _no_dates(f"{name} of dtype {values.dtype}")
    return DATE if values.dtype.kind == "M" else SPAN


def _no_dates(column: str) -> TypeError:
    return TypeError(
        f"{column} cannot be cut, for it holds dates or durations: pass dates_as_numbers=True to fit_bins, or convert "
        f"them to numbers that mean something"
    )


def _quoted(names: Sequence[str]) -> str:
    return listed([repr(name) for name in names])
