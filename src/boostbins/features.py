"""The columns of any table that a method or a library can use, and what is said of the others."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from boostbins.columns import is_array_like, is_sparse

if TYPE_CHECKING:
    import pandas as pd

Notes = list[str]

_DISTINCT_SHARE = 0.5  # a text that differs in more than this share of the rows is no category


def taken_out(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return the features, the target and the weights, the latter two taken out of the table where they are names."""
    names = [name for name in (y, weight) if isinstance(name, str)]
    if not names:
        return X, y, weight
    import narwhals as nw

    frame = _frame(X)
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"there is no column {name!r}{nearest(name, frame.columns)}")
    if isinstance(weight, str):
        if not _is_number(frame.schema[weight]):
            raise ValueError(f"the weights in column {weight!r} must be numbers, got {frame.schema[weight]}")
        weight = frame.get_column(weight).cast(nw.Float64).to_numpy()
    if isinstance(y, str):
        y = frame.get_column(y).to_numpy()
    return frame.drop(names).to_native(), y, weight


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


def numbers_only(X: Any) -> tuple[Any, Notes]:
    """Return the numeric columns of a table, dates among them as seconds, and notes on what was left out."""
    if not _is_frame(X):
        return X, []
    frame, notes = _dates_as_seconds(_frame(X))
    kept = [name for name, dtype in frame.schema.items() if _is_number(dtype)]
    texts = [name for name, dtype in frame.schema.items() if _is_text(dtype)]
    others = [name for name in frame.columns if name not in {*kept, *texts}]
    notes += _left_out(texts, "text or categories") + _left_out(others, "neither numbers nor text")
    return frame.select(kept).to_native(), notes


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
        elif not _is_text(dtype):
            others.append(name)
        elif series.null_count() == len(series):
            empty.append(name)
        else:
            values = pd.Categorical(series.cast(_text_type()).to_pandas().astype(object))
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
    """Return any table as a narwhals frame."""
    import narwhals as nw
    import pandas as pd

    if isinstance(X, Mapping):
        X = pd.DataFrame({str(name): np.asarray(column) for name, column in X.items()})
    elif is_sparse(X):
        X = pd.DataFrame(X.toarray(), columns=[f"x{i}" for i in range(X.shape[1])])
    elif not _is_frame(X):
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must be a table with rows and columns, got shape {array.shape}")
        X = pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])]).infer_objects()
    if isinstance(X, pd.DataFrame) and not all(isinstance(name, str) for name in X.columns):
        X = X.set_axis([str(name) for name in X.columns], axis=1)
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise TypeError(
            f"X must be an array or a pandas, polars or Arrow table, got {type(X).__module__}.{type(X).__name__}"
        ) from None


def _dates_as_seconds(frame: Any) -> tuple[Any, Notes]:
    import narwhals as nw

    dates = [name for name, dtype in frame.schema.items() if dtype in (nw.Date, nw.Datetime)]
    spans = [name for name, dtype in frame.schema.items() if dtype == nw.Duration]
    if not dates and not spans:
        return frame, []
    frame = frame.with_columns(
        *[nw.col(name).cast(nw.Datetime("us")).dt.timestamp("us").cast(nw.Float64) / 1e6 for name in dates],
        *[nw.col(name).dt.total_microseconds().cast(nw.Float64) / 1e6 for name in spans],
    )
    notes = []
    if dates:
        notes.append(f"dates are taken as seconds since 1970 (month, weekday and age are up to you): {_quoted(dates)}")
    if spans:
        notes.append(f"durations are taken as seconds: {_quoted(spans)}")
    return frame, notes


def _is_number(dtype: Any) -> bool:
    import narwhals as nw

    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def _is_text(dtype: Any) -> bool:
    import narwhals as nw

    return dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object)


def _text_type() -> Any:
    import narwhals as nw

    return nw.String


def _as_numbers(series: Any) -> Any:
    import narwhals as nw

    is_whole = (series.dtype.is_integer() or series.dtype == nw.Boolean) and series.null_count() == 0
    if not is_whole or series.dtype in (nw.Int128, nw.UInt128):
        return series.cast(nw.Float64).to_numpy().astype(np.float64, copy=False)
    values = series.to_numpy()
    return values.astype(np.int8) if values.dtype == bool else values


def _left_out(names: Sequence[str], what: str) -> Notes:
    return [f"left out ({what}): {_quoted(names)}"] if names else []


def _quoted(names: Sequence[str]) -> str:
    return _listed([repr(name) for name in names])


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
