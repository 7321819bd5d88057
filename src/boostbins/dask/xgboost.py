"""XGBoost's Dask estimators with cuts of our own.

On Dask, XGBoost takes no ready cuts, but it finds those at every distinct value of a column that has few: it is trained
on values that stand for their bins (`boostbins.adapters.stand_ins`), and its thresholds part the raw values so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from xgboost import dask as native

from boostbins.adapters.params import BINNING_PARAMS, BinningMixin, with_binning_params
from boostbins.adapters.stand_ins import for_raw_values, represented
from boostbins.bins import Bins
from boostbins.dask.fit import requested_bins, with_classes
from boostbins.dask.partitions import Replaced, checked_collection, features
from boostbins.dask.training import with_numbers
from boostbins.fit import of_target
from boostbins.methods import Method
from boostbins.methods.budget import Total
from boostbins.sources.table import Column, as_float32, with_missing
from boostbins.summary.ranges import Ranges
from boostbins.summary.table import TableSummary
from boostbins.xgboost import LIBRARY
from boostbins.xgboost.batches import bins_of_summary
from boostbins.xgboost.features import checked_max_bin, obstacle_in
from boostbins.xgboost.reference import last_thresholds

__all__ = ["XGBClassifier", "XGBRanker", "XGBRegressor"]


class _Represented(BinningMixin):
    """Stands before a class of XGBoost's: has it train on values that stand for their bins."""

    _library = LIBRARY

    def fit(self, X: Any, y: Any, **kwargs: Any) -> Any:
        """Fit as XGBoost's own does; X is read twice, once for the cuts."""
        this: Any = self
        obstacle = obstacle_in(self.get_xgb_params())
        if kwargs.get("xgb_model") is not None:
            obstacle = "xgb_model has thresholds of its own: leave it out"
        if not self._begin_fit(obstacle):
            return super().fit(X, y, **kwargs)  # type: ignore[misc]
        X, client = checked_collection(X), this.client
        max_bin, kept = checked_max_bin(this.max_bin, self._total), of_target(self.bin_method, self._total)
        parts = features(
            X,
            {"sample_weight": kwargs.get("sample_weight"), "y": y if any(kept) else None},
            _categorical(this, X),
            "make it numbers, or categorical with enable_categorical=True",
        ).map(partial(_seen, missing=this.missing))
        if isinstance(self, native.DaskXGBClassifier):
            parts = with_classes(parts, client)
        cut = partial(_cut, max_bin=max_bin, total=self._total)
        bins, ranges = requested_bins(self.bin_method, parts, cut, max_bin, client, kept)
        _check_finite(ranges, bins)
        numbers = Replaced(parts.whole_reader, partial(represented, bins=bins, low=ranges.low))
        X, y, kwargs = with_numbers(X, y, kwargs, numbers, client)
        given = this.missing, this.max_bin
        this.missing, this.max_bin = np.nan, max_bin  # what was missing is NaN by now
        try:
            super().fit(X, y, **kwargs)  # type: ignore[misc]
        finally:
            this.missing, this.max_bin = given
        _to_raw_values(this.get_booster(), parts.feature_indices, bins, ranges)
        self.bins_ = bins
        return self

    def load_model(self, fname: Any) -> None:
        """Load a model; what bins it was trained on is not in it."""
        self.__dict__.pop("bins_", None)
        super().load_model(fname)  # type: ignore[misc]

    def get_xgb_params(self) -> dict[str, Any]:
        """Return the parameters for XGBoost's core."""
        params = super().get_xgb_params()  # type: ignore[misc]
        return {key: value for key, value in params.items() if key not in BINNING_PARAMS}


@with_binning_params("`max_bin` less one is the number of bins", cached=False)
class XGBRegressor(_Represented, native.DaskXGBRegressor):
    """`xgboost.dask.DaskXGBRegressor` with cuts by `bin_method`."""


@with_binning_params("`max_bin` less one is the number of bins", cached=False)
class XGBClassifier(_Represented, native.DaskXGBClassifier):
    """`xgboost.dask.DaskXGBClassifier` with cuts by `bin_method`."""


@with_binning_params("`max_bin` less one is the number of bins", cached=False)
class XGBRanker(_Represented, native.DaskXGBRanker):
    """`xgboost.dask.DaskXGBRanker` with cuts by `bin_method`."""


# ---- the data, as XGBoost sees it


def _categorical(model: Any, X: Any) -> set[int]:
    """Return the indices of categorical columns, which XGBoost gets as they are."""
    types = model.feature_types if isinstance(model.feature_types, Sequence) else ()
    feature_indices = {index for index, kind in enumerate(types) if kind == "c"}
    if model.enable_categorical and not isinstance(X, da.Array):
        feature_indices |= {index for index, dtype in enumerate(X._meta.dtypes) if str(dtype) == "category"}
    return feature_indices


def _seen(column: Column, missing: float | None) -> Column:
    column = as_float32(column)
    return column if missing is None or np.isnan(missing) else with_missing(float(np.float32(missing)))(column)


def _cut(bin_method: str | Method | Bins, summary: TableSummary, max_bin: int, total: Total) -> Bins:
    return bins_of_summary(bin_method, summary, max_bin, total, n_threads=1)


def _check_finite(ranges: Ranges, bins: Bins) -> None:
    """Refuse what XGBoost refuses: it would not see it any more."""
    infinite = np.isinf(ranges.low) | np.isinf(ranges.high)
    if infinite.any():
        name = bins.names[int(np.argmax(infinite))]
        raise ValueError(
            f"X, column {name!r} holds infinite values, or some too large for float32, which XGBoost does not take: "
            f"replace them, e.g. by NaN"
        )


# ---- the model


def _to_raw_values(booster: Any, feature_indices: Sequence[int], bins: Bins, ranges: Ranges) -> None:
    """Have the model part raw values as it parted those that stood for them."""
    model = bytes(booster.save_raw("json"))
    native = for_raw_values(model, bins, ranges, last_thresholds(ranges, bins), feature_indices)
    if native != model:
        booster.load_model(bytearray(native))
