"""Spark: the bins of its frames, and `xgboost.spark` with cuts of our own.

`fit_bins`, `summarize` and `represent` need PySpark only, the estimators XGBoost too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from boostbins.spark.frames import fit_bins, represent, summarize

if TYPE_CHECKING:
    from boostbins.spark.xgboost import SparkXGBClassifier, SparkXGBRanker, SparkXGBRegressor

__all__ = ["SparkXGBClassifier", "SparkXGBRanker", "SparkXGBRegressor", "fit_bins", "represent", "summarize"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("boostbins.spark.xgboost"), name)
    raise AttributeError(f"module 'boostbins.spark' has no attribute {name!r}")
