"""The columns of any table that a method or a library can use, and notes on the others."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boostbins.sources.request import listed
from boostbins.sources.table import DATE, SPAN, float_values, is_array_like, is_sparse, seconds
from boostbins.sources.values import check_none_missing, is_missing

if TYPE_CHECKING:
    import pandas as pd

Notes = list[str]

_DISTINCT_SHARE = 0.5  # a text that differs in more than this share of the rows is no category


def _texts(series: Any) -> NDArray[Any]:
    """Return text or categories as objects, None for what is missing."""
    values = [None if is_missing(value) else value for value in series.to_list()]
    return np.array([*values, None], object)[:-1]  # whatever they are, one dimension


def target_values(y: Any, n_rows: int, name: str) -> NDArray[Any]:
    """Return a target as an array of numbers, or of objects that are no numbers; none of them missing."""
    values = np.asarray(y)
    if values.shape != (n_rows,):
        raise ValueError(f"{name}: the target must have one entry per row, shape ({n_rows},), got {values.shape}")
    if values.dtype.kind == "f":
        check_none_missing(int(np.isnan(values).sum()), name)
    elif values.dtype.kind in "mM":
        raise ValueError(f"{name}: the target holds dates or durations: make them numbers, e.g. days since the first")
    elif values.dtype == object:
        check_none_missing(sum(is_missing(value) for value in values), name)
        if all(isinstance(value, numbers.Number) and not isinstance(value, bool | np.bool_) for value in values):
            return values.astype(np.float64)
    return values


def notes_on(units: Mapping[str, str], left_out: Mapping[str, str]) -> Notes:
    """Return notes on columns that hold dates, by their units, and of those that are left out."""
    notes = [
        f"{what}: {_quoted([name for name, unit in units.items() if unit == its])}"
        for its, what in _UNITS.items()
        if its in units.values()
    ]
    for what in dict.fromkeys(left_out.values()):
        notes += _left_out([name for name, held in left_out.items() if held == what], what)
    return notes


_UNITS = {
    DATE: "dates are taken as seconds since 1970 (month, weekday and age are up to you)",
    SPAN: "durations are taken as seconds",
}


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
        notes.append(f"left out, as text with too many values to be a category: {listed(many)}")
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
    converted = [
        nw.new_series(name, seconds(frame.get_column(name)), nw.Float64, backend=frame.implementation)
        for name in [*dates, *spans]
    ]
    units = {**dict.fromkeys(dates, DATE), **dict.fromkeys(spans, SPAN)}
    return frame.with_columns(*converted), notes_on(units, {})


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
    return listed([repr(name) for name in names])
