"""`xgboost.spark` with cuts of our own.

Its workers find cuts by themselves and take none from outside: they are given rows whose values stand for their bins,
one distinct value per bin, so that the cuts that they find are these. The thresholds of the model are for raw values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.params import BINNING_PARAMS, DEFAULT, check_binning_params, cuts_are_ours
from boostbins.adapters.stand_ins import for_raw_values
from boostbins.bins import Bins
from boostbins.fit import cells_for, of_target
from boostbins.methods import Method
from boostbins.methods.budget import Total
from boostbins.sources.table import Column, as_float32, with_missing
from boostbins.spark.frames import (
    LIBRARY as PYSPARK,
)
from boostbins.spark.frames import (
    Source,
    check_columns,
    checked_frame,
    flattened,
    packed,
    quoted,
    represented_frame,
    summarized,
)
from boostbins.summary.ranges import Ranges, ranges_of_summary
from boostbins.xgboost import LIBRARY
from boostbins.xgboost.batches import bins_of_summary
from boostbins.xgboost.features import checked_max_bin, obstacle_in
from boostbins.xgboost.reference import last_thresholds

try:
    from pyspark.ml.param import Param, Params
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's own documentation calls it)
    from xgboost import spark as native
except ImportError as error:
    raise ImportError(f"xgboost.spark needs more: pip install 'boostbins[spark,xgboost]' ({error})") from error

_BASE = "xgboost.spark.core:_SparkXGBEstimator"
_COLUMNS = ("labelCol", "weightCol", "validationIndicatorCol", "base_margin_col", "qid_col", "features_cols")
HOOKS = (
    Hook(
        _BASE,
        "_fit",
        takes=("dataset",),
        calls=("_get_xgb_parameters", "_convert_to_sklearn_model", "_prepare_input"),
    ),
    Hook(_BASE, "_get_xgb_parameters", takes=("dataset",)),
    Hook(_BASE, "_convert_to_sklearn_model", takes=("booster", "config")),
    Hook(_BASE, "_gen_xgb_params_dict"),
    Hook(_BASE, "_set_xgb_params_default"),
    Hook(_BASE, "_prepare_input_columns_and_feature_prop", takes=("dataset",)),
    Hook(_BASE, "_col_is_defined_not_empty", takes=("param",)),
    *(Hook(_BASE, name) for name in (*_COLUMNS, "featuresCol", "enable_sparse_data_optim")),
    Hook("xgboost.spark.data", "alias"),
)
PARAM_HOOKS = (Hook("pyspark.ml.param:Params", "_dummy"), Hook("pyspark.ml.param:Params", "_setDefault"))
check_hooks(LIBRARY, HOOKS)
check_hooks(PYSPARK, PARAM_HOOKS)

__all__ = ["SparkXGBClassifier", "SparkXGBRanker", "SparkXGBRegressor"]


class _Training(NamedTuple):
    """What the rows stand for while XGBoost trains on them."""

    raw: Any  # the frame
    bins: Bins
    ranges: Ranges
    feature_indices: list[int]  # of the bins' columns among the features


class _Binned(native.core._SparkXGBEstimator):
    """Stands between a class of `xgboost.spark` and its base: hands it rows whose values stand for their bins."""

    bin_method = Param(
        Params._dummy(),
        "bin_method",
        '"kmeans", "optimal", "quantile", "uniform", a function (summary, max_bins) -> cuts, ready Bins, or None for '
        "XGBoost's own cuts",
    )
    total_bins = Param(
        Params._dummy(), "total_bins", 'at most this many bins in all columns together, "auto" for enough, or None'
    )
    average_bins = Param(Params._dummy(), "average_bins", "total_bins as an average per column, or None")
    _training: _Training | None = None

    def _set_xgb_params_default(self) -> None:
        super()._set_xgb_params_default()
        self._setDefault(bin_method=str(DEFAULT), total_bins=None, average_bins=None)

    def _gen_xgb_params_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        params = super()._gen_xgb_params_dict(*args, **kwargs)
        if self._total() and params.get("max_bin") is None:
            params["max_bin"] = checked_max_bin(None, self._total())
        return {name: value for name, value in params.items() if name not in BINNING_PARAMS}

    def _fit(self, dataset: Any) -> Any:
        # Not the default that Spark keeps: of an estimator that was saved it is text like any other.
        bin_method = self.getOrDefault(self.bin_method) if self.isSet(self.bin_method) else DEFAULT
        check_binning_params(bin_method, None, self._total())
        if not cuts_are_ours(bin_method, self._obstacle(), self._total()):
            return super()._fit(dataset)
        self._prepare_input_columns_and_feature_prop(checked_frame(dataset))  # XGBoost's own words on the columns
        features = self.getOrDefault(self.features_cols) or [self.getOrDefault(self.featuresCol)]
        per_row = self._columns_per_row()
        check_columns(dataset, [*features, *per_row.values()], "features_col")
        for argument, name in per_row.items():
            if name in features:
                raise ValueError(f"{argument}={name!r} is a feature too: give one of the two another name")
        columns = [*features, *dict.fromkeys(per_row.values())]
        rows, elements = flattened(dataset.select(*map(quoted, columns)), features)
        names = [element for name in features for element in elements.get(name, [name])]
        kinds = self.getOrDefault("feature_types") or ["q"] * len(names)
        feature_indices = [index for index, kind in enumerate(kinds) if kind != "c"]
        binned = tuple(names[index] for index in feature_indices)

        views: list[Callable[[Column], Column]] = [as_float32]
        if not np.isnan(missing := float(self.getOrDefault("missing"))):
            views.append(with_missing(float(np.float32(missing))))
        bins, ranges = self._bins(bin_method, rows, binned, per_row, views)
        stand_ins = packed(represented_frame(rows, bins, ranges.low, views), columns, elements)
        training = self.copy()  # so that what is only of this fit stays with it
        training._training = _Training(dataset, bins, ranges, feature_indices)
        model = super(_Binned, training)._fit(stand_ins)
        model.bins_ = bins
        return model

    def _bins(
        self,
        bin_method: str | Method | Bins,
        rows: Any,
        binned: tuple[str, ...],
        per_row: dict[str, str],
        views: Sequence[Callable[[Column], Column]],
    ) -> tuple[Bins, Ranges]:
        """Return the bins of the rows that are trained on, and their ranges."""
        if "validation_indicator_col" in per_row:
            rows = rows.where(~quoted(per_row["validation_indicator_col"]))
        numbers = {"sample_weight": per_row["weight_col"]} if "weight_col" in per_row else {}
        total = self._total()
        kept = of_target(bin_method, total)
        if any(kept):
            numbers["y"] = per_row["label_col"]
        max_bin = checked_max_bin(self.getOrDefault("max_bin"), total)
        n_classes = None
        if "y" in numbers and isinstance(self, native.SparkXGBClassifier):
            # Numbered from 0, or XGBoost refuses them.
            greatest = rows.select(F.max(quoted(numbers["y"])).alias("label")).first()["label"]
            n_classes = int(greatest) + 1 if greatest is not None and greatest >= 0 else None
        summary = summarized(Source(rows, binned, numbers), cells_for(max_bin), kept, views, n_classes)
        for name, column in zip(summary.names, summary, strict=True):
            if column.negative_infinite or column.positive_infinite:
                raise ValueError(
                    f"column {name!r} holds infinite values, or ones beyond float32, which XGBoost does not take: make "
                    f"them null, or clip them"
                )
        return bins_of_summary(bin_method, summary, max_bin, total), ranges_of_summary(summary)

    def _total(self) -> Total:
        return Total(self.getOrDefault(self.total_bins), self.getOrDefault(self.average_bins))

    def _obstacle(self) -> str:
        """Return what takes no cuts of ours, as the argument of `cuts_are_ours`."""
        if self.getOrDefault(self.enable_sparse_data_optim):
            return (
                "enable_sparse_data_optim=True takes no values that stand for bins: give missing=0.0 without it, which "
                "trains the same model"
            )
        if self.getOrDefault("xgb_model") is not None:
            return "xgb_model has thresholds of its own: leave it out"
        return obstacle_in(self._gen_xgb_params_dict())

    def _columns_per_row(self) -> dict[str, str]:
        """Return the columns that are no features, by argument."""
        params = {
            "label_col": self.labelCol,
            "weight_col": self.weightCol,
            "validation_indicator_col": self.validationIndicatorCol,
            "base_margin_col": self.base_margin_col,
            "qid_col": self.qid_col,
        }
        return {
            argument: self.getOrDefault(param)
            for argument, param in params.items()
            if self._col_is_defined_not_empty(param)
        }

    # ---- where XGBoost asks, while it trains

    def _get_xgb_parameters(self, dataset: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        if self._training is None:
            return super()._get_xgb_parameters(dataset)  # type: ignore[no-any-return]
        # It counts the classes: of the raw rows, without all the work for the others.
        labels = self._training.raw.select(quoted(self.getOrDefault(self.labelCol)).alias(native.data.alias.label))
        booster, call, matrix = super()._get_xgb_parameters(labels)
        # What is missing is NaN by now, and what stands for a bin may be the number that stood for missing.
        return booster, call, {**matrix, "missing": np.nan}

    def _convert_to_sklearn_model(self, booster: bytearray, config: str) -> Any:
        if self._training is not None:
            _, bins, ranges, feature_indices = self._training
            above = last_thresholds(ranges, bins)
            booster = bytearray(for_raw_values(bytes(booster), bins, ranges, above, feature_indices))
        return super()._convert_to_sklearn_model(booster, config)


class SparkXGBRegressor(_Binned, native.SparkXGBRegressor):
    """`xgboost.spark.SparkXGBRegressor` with cuts by `bin_method`.

    The model that `fit` returns is XGBoost's own, with thresholds for raw values, and needs no boostbins; its attribute
    `bins_` has the cuts. (They are not saved with it.)

    Parameters
    ----------
    bin_method : str, function, Bins or None
        "auto", "hybrid", "kmeans", "optimal", "quantile", "uniform", a function ``(summary, max_bins) -> cuts``, ready
        bins, or None for XGBoost's own.
    total_bins : int or "auto", optional
        At most this many bins in all columns together: many for those that the target needs finely, few for others;
        "auto" for as many as are enough. See `fit_bins`.
    average_bins : int, optional
        `total_bins` as an average per column.
    **others
        XGBoost's own; `max_bin` less one is the number of bins. Rows of `validation_indicator_col` have no say in the
        cuts, and weights have.
    """


class SparkXGBClassifier(_Binned, native.SparkXGBClassifier):
    """`xgboost.spark.SparkXGBClassifier` with cuts by `bin_method`: as `SparkXGBRegressor`."""


class SparkXGBRanker(_Binned, native.SparkXGBRanker):
    """`xgboost.spark.SparkXGBRanker` with cuts by `bin_method`: as `SparkXGBRegressor`."""
