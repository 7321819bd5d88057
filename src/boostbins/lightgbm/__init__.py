"""LightGBM with cuts of our own: drop-in estimators, and a `Dataset` for `lgb.train` and `lgb.cv`.

LightGBM parts `x <= cut` in float64, as we do. It is given the cuts as *forced bins*, with exactly as many bins for
each feature, and builds its dataset as it always does: what is stored how, in which order, and which features are
bundled is its own choice. What it imposes: it parts zero from the rest, by cuts at -1e-35 (where there are values
below) and 1e-35 (where there are values above), and a missing value takes a bin. These count in `max_bin`.
"""

from boostbins.lightgbm._native import LIBRARY
from boostbins.lightgbm.dataset import Dataset, from_native
from boostbins.lightgbm.estimators import LGBMClassifier, LGBMRanker, LGBMRegressor

__all__ = ["LIBRARY", "Dataset", "LGBMClassifier", "LGBMRanker", "LGBMRegressor", "from_native"]
