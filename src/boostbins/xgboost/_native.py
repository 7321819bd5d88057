"""XGBoost itself: the versions that were tested, and all that is used of it beyond its public names."""

from __future__ import annotations

from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.library import Library

LIBRARY = Library("XGBoost", "xgboost", "xgboost", oldest="2.0.3", newest="3.2.0", below="4")
try:
    import xgboost as xgb
except ImportError as error:
    raise LIBRARY.missing(error) from error
LIBRARY.check()

_MATRICES = "_wrap_evaluation_matrices"
HOOKS = (
    Hook("xgboost.sklearn:XGBModel", "fit", calls=(_MATRICES, "_create_dmatrix")),
    Hook("xgboost.sklearn:XGBClassifier", "fit", calls=(_MATRICES, "_create_dmatrix", "n_classes_")),
    Hook("xgboost.sklearn:XGBRanker", "fit", calls=(_MATRICES,)),
    Hook("xgboost.sklearn:XGBRanker", "_create_ltr_dmatrix", calls=("_create_dmatrix",)),
    Hook("xgboost.sklearn", _MATRICES, takes=("X", "y", "create_dmatrix")),
    Hook(
        "xgboost.sklearn:XGBModel",
        "_create_dmatrix",
        takes=("ref", "kwargs"),
        calls=("QuantileDMatrix", "n_jobs", "max_bin"),
    ),
    Hook("xgboost.sklearn:XGBModel", "get_xgb_params"),
    Hook("xgboost:QuantileDMatrix", "__init__", takes=("data", "label", "max_bin", "ref")),
)
check_hooks(LIBRARY, HOOKS)
XGBModel = xgb.XGBModel

__all__ = ["HOOKS", "LIBRARY", "XGBModel", "xgb"]
