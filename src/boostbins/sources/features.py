"""The columns of any table that a method or a library can use, and what is said of the others."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbins.sources.table import float_values, is_array_like, is_sparse
from boostbins.sources.values import is_missing

if TYPE_CHECKING:
    import pandas as pd

Notes = list[str]

_DISTINCT_SHARE = 0.5  # a text that differs in more than this share of the rows is no category


def split_target(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return the features, the target and the weights, the latter two taken out of the table where they are names."""
    names = [name for name in (y, weight) if isinstance(name, str)]
    if not names:
        return X, y, weight
    if len(set(names)) < len(names):
        raise ValueError(f"column {y!r} cannot be both the target and the weights")
    frame = _frame(X)
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"there is no column {name!r}{nearest(name, frame.columns)}")
    if isinstance(weight, str):
        if not _is_number(frame.schema[weight]):
            raise ValueError(f"the weights in column {weight!r} must be numbers, got {frame.schema[weight]}")
        weight = float_values(frame.get_column(weight))
    if isinstance(y, str):
        y = _values(frame.get_column(y))
    return frame.drop(names).to_native(), y, weight


def _values(series: Any) -> NDArray[Any]:
    """Return a column as an array of numbers, dates, or objects with None for what is missing."""
    import narwhals as nw

    if _is_number(series.dtype):
        is_whole = (series.dtype.is_integer() or series.dtype == nw.Boolean) and series.null_count() == 0
        return np.asarray(series.to_numpy()) if is_whole and not _is_wide(series.dtype) else float_values(series)
    return _texts(series) if _is_text(series.dtype) else np.asarray(series.to_numpy())


def _texts(series: Any) -> NDArray[Any]:
    """Return text or categories as objects, None for what is missing."""
    values = [None if is_missing(value) else value for value in series.to_list()]
    return np.array([*values, None], object)[:-1]  # whatever they are, one dimension


def target_values(y: Any, n_rows: int) -> NDArray[Any]:
    """Return a target as an array of numbers, or of objects that are no numbers; none of them missing."""
    values = np.asarray(y)
    if values.shape != (n_rows,):
        raise ValueError(f"the target must have one entry per row, shape ({n_rows},), got {values.shape}")
    if values.dtype.kind == "f":
        check_none_missing(int(np.isnan(values).sum()))
    elif values.dtype.kind in "mM":
        raise ValueError("the target holds dates or durations: make them numbers, e.g. days since the first")
    elif values.dtype == object:
        check_none_missing(sum(is_missing(value) for value in values))
        if all(isinstance(value, numbers.Number) and not isinstance(value, bool | np.bool_) for value in values):
            return values.astype(np.float64)
    return values


def check_none_missing(n_missing: int) -> None:
    """Refuse a target with missing values."""
    if n_missing:
        what = "a missing value: remove that row, or fill it in"
        if n_missing > 1:
            what = f"{n_missing:,} missing values: remove those rows, or fill them in"
        raise ValueError(f"the target has {what}")


def nearest(name: str, names: Sequence[str]) -> str:
    """Return a suggestion, as the end of a sentence.

    >>> nearest("prize", ["rooms", "price"]), nearest("y", ["rooms"])
    (": did you mean 'price'?", "; there are 'rooms'")
    """
    small = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), small, 1, 0.5)
    return f": did you mean {small[found[0]]!r}?" if found else f"; there are {_quoted(names)}"


class Numbers(NamedTuple):
    """The numeric columns of a table."""

    table: Any
    notes: Notes  # on what was changed or left out
    dates: frozenset[str] = frozenset()  # the columns that were dates


def numbers_only(X: Any) -> Numbers:
    """Return the numeric columns of a table, dates among them as seconds."""
    columns = X.values() if isinstance(X, Mapping) else X if isinstance(X, list | tuple) else []
    is_plain = not _is_frame(X) and all(np.asarray(column).dtype.kind in "biuf" for column in columns)
    if is_plain:
        return Numbers(X, [])
    frame = _frame(X)
    dates = frozenset(_dates_in(frame))
    frame, notes = _dates_as_seconds(frame)
    kept = [name for name, dtype in frame.schema.items() if _is_number(dtype)]
    texts = [name for name, dtype in frame.schema.items() if _is_text(dtype)]
    others = [name for name in frame.columns if name not in {*kept, *texts}]
    notes += _left_out(texts, "text or categories") + _left_out(others, "neither numbers nor text")
    return Numbers(frame.select(kept).to_native(), notes, dates)


def numbers_and_categories(X: Any, most_categories: int) -> tuple[pd.DataFrame, Notes]:
    """Return a pandas frame of numbers and categories, and notes on what was changed or left out."""
    import pandas as pd

    frame, notes = _dates_as_seconds(_frame(X))
    columns: dict[str, Any] = {}
    many, empty, others = [], [], []
    for name, dtype in frame.schema.items():
        series = frame.get_column(name)
        if _is_number(dtype):
            columns[name] = _as_numbers(series)
            if columns[name].dtype.kind == "f" and np.isnan(columns[name]).all():
                del columns[name]
                empty.append(name)
        elif not _is_text(dtype):
            others.append(name)
        elif series.null_count() == len(series):
            empty.append(name)
        else:
            values = pd.Categorical([None if value is None else str(value) for value in _texts(series)])
            if len(values.categories) > min(most_categories, max(2, _DISTINCT_SHARE * len(series))):
                many.append(f"{name!r} ({len(values.categories):,} values)")
            else:
                columns[name] = values
    notes += _left_out(empty, "nothing but missing values") + _left_out(others, "neither numbers nor text")
    if many:
        notes.append(f"left out, as text with too many values to be a category: {_listed(many)}")
    return pd.DataFrame(columns), notes


def _is_frame(X: Any) -> bool:
    plain = isinstance(X, np.ndarray | list | tuple | Mapping)
    return not (plain or is_sparse(X) or is_array_like(X))


def _frame(X: Any) -> Any:
    """Return any table as a narwhals frame; arrays, lists and dicts of columns are read as by `fit_bins`."""
    import narwhals as nw
    import pandas as pd

    if isinstance(X, Mapping):
        X = pd.DataFrame({str(name): np.asarray(column) for name, column in X.items()})
    elif is_sparse(X):
        X = pd.DataFrame(X.toarray(), columns=[f"x{i}" for i in range(X.shape[1])])
    elif isinstance(X, list | tuple):
        X = pd.DataFrame({f"x{i}": np.asarray(column) for i, column in enumerate(X)})
    elif not _is_frame(X):
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must be a table with rows and columns, got shape {array.shape}")
        X = pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])
    if isinstance(X, pd.DataFrame):
        X = _tidy(X)
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise TypeError(
            f"X must be an array or a pandas, polars or Arrow table, got {type(X).__module__}.{type(X).__name__}"
        ) from None


def _tidy(X: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with names that are text, and numbers as such where they were held as objects."""
    X = X.set_axis([str(name) for name in X.columns], axis=1)
    if not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"X has more than one column named {twice!r}: rename one of them")
    objects = [name for name in X.columns if X[name].dtype == object]
    held = {name: X[name].dropna() for name in objects}
    numeric = {
        name: X[name].astype(np.float64)
        for name, values in held.items()
        if len(values) and all(isinstance(v, numbers.Number) and not isinstance(v, bool) for v in values)
    }
    return X.assign(**numeric) if numeric else X


def _dates_in(frame: Any) -> list[str]:
    import narwhals as nw

    return [name for name, dtype in frame.schema.items() if dtype in (nw.Date, nw.Datetime)]


def _dates_as_seconds(frame: Any) -> tuple[Any, Notes]:
    import narwhals as nw

    dates = _dates_in(frame)
    spans = [name for name, dtype in frame.schema.items() if dtype == nw.Duration]
    if not dates and not spans:
        return frame, []
    seconds = [
        nw.new_series(name, _seconds(frame.get_column(name)), nw.Float64, backend=frame.implementation)
        for name in [*dates, *spans]
    ]
    notes = []
    if dates:
        notes.append(f"dates are taken as seconds since 1970 (month, weekday and age are up to you): {_quoted(dates)}")
    if spans:
        notes.append(f"durations are taken as seconds: {_quoted(spans)}")
    return frame.with_columns(*seconds), notes


def _seconds(series: Any) -> NDArray[np.float64]:
    """Return dates as seconds since 1970, durations as seconds, and NaN for what is missing."""
    import narwhals as nw

    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    values = series.to_numpy()
    if values.dtype.kind not in "mM":  # objects, of dates beyond a library's reach
        values = np.array(series.to_list(), "datetime64[us]")
    unit, n = np.datetime_data(values.dtype)
    per_unit = {"D": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit] * n
    counts = values.view(np.int64)
    # Divided where that is exact: 1e-3 is no number of a computer.
    found = counts * per_unit if per_unit >= 1 else counts / round(1 / per_unit)
    return np.where(np.isnat(values), np.nan, found)


def _is_number(dtype: Any) -> bool:
    import narwhals as nw

    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def _is_text(dtype: Any) -> bool:
    import narwhals as nw

    return dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object)


def _is_wide(dtype: Any) -> bool:
    import narwhals as nw

    return dtype in (nw.Int128, nw.UInt128)


def _as_numbers(series: Any) -> Any:
    import narwhals as nw

    is_whole = (series.dtype.is_integer() or series.dtype == nw.Boolean) and series.null_count() == 0
    if not is_whole or _is_wide(series.dtype):
        return float_values(series)
    values = series.to_numpy()
    return values.astype(np.int8) if values.dtype == bool else values


def _left_out(names: Sequence[str], what: str) -> Notes:
    return [f"left out ({what}): {_quoted(names)}"] if names else []


def _quoted(names: Sequence[str]) -> str:
    return _listed([repr(name) for name in names])


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
