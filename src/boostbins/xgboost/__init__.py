"""XGBoost with cuts of our own: drop-in estimators, and a `QuantileDMatrix` for `xgb.train`.

XGBoost rounds values to float32 and parts `x < cut`; ours are `x <= cut`, so that each becomes the next float32 above.
It is given the cuts as the values of a small *reference* matrix. One of its `max_bin` bins holds a last cut above the
greatest value, without which splits of missing values from all others would be wrong on values as large.
"""

from boostbins.xgboost import estimators
from boostbins.xgboost._native import LIBRARY
from boostbins.xgboost.dmatrix import ExtMemQuantileDMatrix, QuantileDMatrix, from_native
from boostbins.xgboost.estimators import XGBClassifier, XGBRanker, XGBRegressor

__all__ = [
    "LIBRARY",
    "ExtMemQuantileDMatrix",
    "QuantileDMatrix",
    "XGBClassifier",
    "XGBRanker",
    "XGBRegressor",
    "from_native",
]

if hasattr(estimators, "XGBRFRegressor"):  # deprecated since XGBoost 3.4, to be removed
    XGBRFClassifier, XGBRFRegressor = estimators.XGBRFClassifier, estimators.XGBRFRegressor
    __all__ += ["XGBRFClassifier", "XGBRFRegressor"]
