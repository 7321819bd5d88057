"""What is accepted as numbers, and what is said otherwise."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]

_KERNEL_TYPES = ("?", "b", "h", "i", "l", "q", "B", "H", "I", "L", "Q", "f", "d")


def numeric_column(column: ArrayLike) -> NDArray[Any]:
    """Return a 1-D array of a type that the kernels read."""
    if isinstance(column, np.ma.MaskedArray):
        column = np.ma.filled(column.astype(np.float64), np.nan)
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
        raise ValueError(f"{name} must be finite and not negative, got {bad}: remove or mend those rows")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError(f"{name} adds up to infinity: divide it by its maximum")
    return weights


def positive_weight(weight: ArrayLike, n_rows: int, name: str) -> Floats:
    """Return weights that are not all zero."""
    weights = checked_weight(weight, n_rows, name)
    if not weights.any():
        raise ValueError(f"{name} is zero for every row: give some row a positive weight")
    return weights


def checked_target(target: ArrayLike, n_rows: int, name: str) -> Floats:
    """Return targets as float64: one per row, finite."""
    targets = _row_numbers(target, n_rows, name)
    if not np.isfinite(targets).all():
        raise ValueError(f"{name} must be finite, got {targets[~np.isfinite(targets)][0]}: remove those rows")
    return targets


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
