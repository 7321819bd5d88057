"""How XGBoost is made to take the cuts: as the values of a small matrix, and what it then uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbins.bins import Bins
from boostbins.sources.values import Floats
from boostbins.summary.ranges import Ranges
from boostbins.xgboost._native import LIBRARY, xgb

_GREATEST = np.finfo(np.float32).max


# ---- the reference


def _above(ranges: Ranges, bins: Bins) -> Floats:
    """Return a last cut for each column, above all values and cuts; NaN where there is no room, or nothing below."""
    last = np.array([cuts[-1] if len(cuts) else np.nan for cuts in bins.cuts])
    high = np.fmax(ranges.high, last).astype(np.float32)
    with np.errstate(over="ignore"):
        above = np.minimum(high + np.abs(high) + np.float32(1e-5), _GREATEST)  # as XGBoost places its own
    above = np.nextafter(above, np.float32(-np.inf)).astype(np.float64)
    return np.where(above > np.fmax(last, -np.inf), above, np.nan)


def reference_columns(feature_indices: Sequence[int], bins: Bins, ranges: Ranges) -> dict[int, NDArray[np.float32]]:
    """Return the values that make XGBoost cut as asked: one below all cuts, and each cut as XGBoost's."""
    columns = {}
    above = _above(ranges, bins)
    for i, index in enumerate(feature_indices):
        cuts = next_up(np.append(bins.cuts[i], above[i][np.isfinite(above[i])]))
        if len(cuts):
            below = np.nextafter(cuts[0], np.float32(-np.inf))
            columns[index] = np.append(np.fmin(np.float32(ranges.low[i]), below), cuts)
    return columns


def reference_matrix(
    columns: dict[int, NDArray[np.float32]], n_features: int, max_bin: int, **options: Any
) -> xgb.QuantileDMatrix:
    """Return a matrix whose cuts are these values."""
    matrix = np.full((max(map(len, columns.values()), default=1) or 1, n_features), np.nan, np.float32)
    for index, column in columns.items():
        matrix[: len(column), index] = column
    return xgb.QuantileDMatrix(matrix, max_bin=max_bin, **options)


def check_cuts(matrix: xgb.DMatrix, feature_indices: Sequence[int], bins: Bins, ranges: Ranges) -> None:
    """Refuse to train on other cuts than those asked for."""
    asked = {
        index: np.append(cuts, top) if np.isfinite(top) else cuts
        for index, cuts, top in zip(feature_indices, bins.cuts, _above(ranges, bins), strict=True)
    }
    LIBRARY.compare(asked, native_cuts(matrix), bins.names)


def last_thresholds(ranges: Ranges, bins: Bins) -> NDArray[np.float32]:
    """Return a threshold for each column that parts missing values from all others; NaN where there is no room."""
    return next_up(_above(ranges, bins))


def next_up(cuts: Floats) -> NDArray[np.float32]:
    """Return cuts of the form `x <= cut` as XGBoost's, `x < cut`."""
    return np.nextafter(cuts.astype(np.float32), np.float32(np.inf))


def native_cuts(dmatrix: xgb.DMatrix) -> dict[int, Floats]:
    """Return the cuts of the numeric features by place, in our form, without XGBoost's ends."""
    start, values = dmatrix.get_quantile_cut()
    types = dmatrix.feature_types or ["float"] * (len(start) - 1)
    found = {index: values[start[index] : start[index + 1]][1:-1] for index, kind in enumerate(types) if kind != "c"}
    return {p: np.nextafter(cuts, np.float32(-np.inf)).astype(np.float64) + 0.0 for p, cuts in found.items()}
