"""What is accepted as numbers, and the errors for what is not."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy import ma
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Targets: TypeAlias = NDArray[np.float64] | NDArray[np.bool_]
"""Of shape (rows, targets). Whether a row is of a class takes a byte, not eight."""

MAX_TARGETS = 16
"""Numbers per row that a target may have; as the kernels have it."""

_MAX_WEIGHT = np.finfo(np.float64).max / 2

_KERNEL_TYPES = ("?", "b", "h", "i", "l", "q", "B", "H", "I", "L", "Q", "f", "d")


def numeric_column(column: ArrayLike) -> NDArray[Any]:
    """Return a 1-D array of a type that the kernels read."""
    if isinstance(column, ma.MaskedArray):
        column = ma.filled(column.astype(np.float64), np.nan)
    values = np.asarray(column)
    if values.ndim != 1:
        raise ValueError(f"a column must have one dimension, got shape {values.shape}")
    if values.dtype.kind not in "biuf":
        raise TypeError(
            f"a column must hold numbers, got dtype {values.dtype}: convert it first, e.g. with .astype(float)"
        )
    if values.dtype.char not in _KERNEL_TYPES or not values.dtype.isnative:
        return values.astype(np.float32 if values.dtype.itemsize < 4 else np.float64)
    # A field of packed records lies at odd places.
    return values if values.strides[0] % values.dtype.itemsize == 0 else values.copy()


def checked_weight(weight: ArrayLike, n_rows: int, name: str) -> Floats:
    """Return weights as float64: one per row, finite, none negative."""
    weights = _row_numbers(weight, n_rows, name)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        bad = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise ValueError(f"{name} must be finite and not negative, got {bad}: remove or fix those rows")
    with np.errstate(over="ignore"):
        check_total(weights.sum(), name)
    return weights


def check_total(total: float, name: str) -> None:
    """Refuse weights whose sum is infinite, or would be if it were added up in another order."""
    if not total <= _MAX_WEIGHT:
        raise ValueError(f"{name} adds up to infinity: divide it by its maximum")


def check_squares(total: float) -> None:
    """Refuse targets whose squares, times the rows' weights, have an infinite sum."""
    if not np.isfinite(total):
        raise ValueError("the target's squares, times the weights, add up to infinity: divide it by its maximum")


def positive_weight(weight: ArrayLike, n_rows: int, name: str) -> Floats:
    """Return weights that are not all zero."""
    weights = checked_weight(weight, n_rows, name)
    if not weights.any():
        raise ValueError(f"{name} is zero for every row: give some row a positive weight")
    return weights


def checked_target(target: ArrayLike, n_rows: int, name: str) -> Targets:
    """Return finite numbers or flags, of shape (rows, targets): several per row may be given as a matrix."""
    values = np.asarray(target)
    if values.shape[:1] != (n_rows,) or values.ndim > 2:
        raise ValueError(f"{name} must have one entry per row, shape ({n_rows},), got {values.shape}")
    if values.ndim == 1:
        values = values[:, None]
    if not 1 <= values.shape[1] <= MAX_TARGETS:
        raise ValueError(f"{name} must have 1 to {MAX_TARGETS} numbers per row, got {values.shape[1]}")
    if values.dtype == bool:
        return np.ascontiguousarray(values)
    if values.dtype.kind in "mM":
        raise ValueError(f"{name}: the target holds dates or durations: make them numbers, e.g. days since the first")
    if values.dtype.kind in "OSUT":
        raise TypeError(
            f"{name} must hold numbers, got dtype {values.dtype}: of classes, give whether a row is of each, as "
            f"labels[:, None] == classes"
        )
    numbers = real_numbers(values, name)
    check_none_missing(int(np.isnan(numbers).any(axis=1).sum()), name)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite, got {numbers[~np.isfinite(numbers)][0]}: remove those rows")
    with np.errstate(over="ignore"):
        if not np.isfinite((numbers**2).sum()):
            raise ValueError(f"{name} has squares that add up to infinity: divide it by its maximum")
    return numbers


def check_none_missing(n_missing: int, name: str) -> None:
    """Refuse a target with missing values; `name` is the argument that it was given as."""
    if n_missing:
        what = "a missing value: remove that row, or fill it in"
        if n_missing > 1:
            what = f"{n_missing:,} missing values: remove those rows, or fill them in"
        raise ValueError(f"{name}: the target has {what}")


def numbers_or_classes(target: ArrayLike, n_rows: int, name: str) -> Targets:
    """Return targets as `checked_target` does; texts and categories are taken as classes."""
    values = np.asarray(target)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "OSUT" or len(values) != n_rows:
        return checked_target(values, n_rows, name)
    if values.dtype == object and all(isinstance(v, Real | Decimal) or is_missing(v) for v in values.tolist()):
        numbers = [float("nan") if is_missing(v) else float(v) for v in values.tolist()]
        return checked_target(np.array(numbers), n_rows, name)
    return class_targets(values, name)


def class_targets(labels: ArrayLike, name: str) -> NDArray[np.bool_]:
    """Return classes as targets: whether a row is of a class, for each of them; of two, for the second.

    Of more than there may be targets, the last ones share one.

    >>> class_targets(["a", "c", "b"], "y").astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    """
    values = np.asarray(labels)
    if values.dtype == object:
        check_none_missing(sum(is_missing(value) for value in values.tolist()), name)
        values = values.astype(str)
    classes, which = np.unique(values, return_inverse=True)
    return numbered_classes(which.reshape(-1), len(classes), name)


def numbered_classes(numbers: NDArray[Any], n_classes: int, name: str) -> NDArray[np.bool_]:
    """Return classes that are numbered from 0 as targets, as `class_targets` does."""
    if isinstance(n_classes, bool) or not isinstance(n_classes, int | np.integer) or n_classes < 1:
        raise ValueError(f"n_classes must be a whole number, at least 1, got {n_classes!r}")
    odd = ~((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers)))
    if odd.any():
        raise ValueError(
            f"{name}, of {n_classes} classes, must hold whole numbers from 0 to {n_classes - 1}, got {numbers[odd][0]}"
        )
    if n_classes <= 2:
        return numbers.astype(np.bool_)[:, None]
    index = np.minimum(numbers.astype(np.intp), MAX_TARGETS - 1)
    targets = np.zeros((len(numbers), min(n_classes, MAX_TARGETS)), np.bool_)
    targets[np.arange(len(numbers)), index] = True
    return targets


def only_numbers(values: NDArray[Any]) -> bool:
    """Return whether objects are numbers, some of them missing perhaps; flags are none, and neither is nothing."""
    found = False
    for value in values.tolist():
        if isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_):
            found = True
        elif not is_missing(value):
            return False
    return found


def is_missing(value: Any) -> bool:
    """Return whether an object stands for a missing value."""
    if isinstance(value, np.ndarray):  # a vector, of a column of these
        return False
    # Of these only None and pandas' NA are not unlike themselves; NA cannot even tell.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _row_numbers(values: ArrayLike, n_rows: int, name: str) -> Floats:
    numbers = real_numbers(values, name)
    if numbers.shape != (n_rows,):
        raise ValueError(f"{name} must have one entry per row, shape ({n_rows},), got {numbers.shape}")
    return numbers


def real_numbers(values: ArrayLike, name: str) -> Floats:
    """Return real numbers as a contiguous array of float64."""
    try:
        numbers = np.asarray(values)
    except ValueError as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from None
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got {type(values).__name__} of dtype {numbers.dtype}")
    return np.ascontiguousarray(numbers, dtype=np.float64)
