"""XGBoost itself: the versions that were tested, and all that is used of it beyond its public names."""

from __future__ import annotations

from boostbins.adapters.library import Library

LIBRARY = Library("XGBoost", "xgboost", "xgboost", oldest="2.0.3", newest="3.2.0", below="4")
try:
    import xgboost as xgb
    from xgboost.sklearn import XGBModel
except ImportError as error:
    raise LIBRARY.missing() from error
LIBRARY.check()

__all__ = ["LIBRARY", "XGBModel", "xgb"]
