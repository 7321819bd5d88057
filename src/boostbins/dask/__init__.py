"""boostbins on Dask: the cuts of all rows of a cluster, found where the rows lie, and models trained on them.

Each partition is summarized by the worker that holds it; summaries are added up, and cut, on the cluster. Cuts are the
same to the last bit whatever the partitions, and the same as in memory.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    for _needed in ("dask.array", "dask.dataframe", "distributed"):
        import_module(_needed)
except ImportError as error:
    raise ImportError(f"Dask is not installed, or not all of it ({error}): pip install 'boostbins[dask]'") from error

from boostbins.dask.fit import fit_bins, summarize

if TYPE_CHECKING:
    from boostbins.dask.lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor
    from boostbins.dask.xgboost import XGBClassifier, XGBRanker, XGBRegressor

__all__ = [
    "LGBMClassifier",
    "LGBMRanker",
    "LGBMRegressor",
    "XGBClassifier",
    "XGBRanker",
    "XGBRegressor",
    "fit_bins",
    "summarize",
]


# Each library is loaded when it is asked for: none needs the other.
_LATER = {"LGBM": "boostbins.dask.lightgbm", "XGB": "boostbins.dask.xgboost"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(next(module for start, module in _LATER.items() if name.startswith(start))), name)
    raise AttributeError(f"module 'boostbins.dask' has no attribute {name!r}")
