"""LightGBM itself: the versions that were tested, and all that is used of it beyond its public names."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.library import Library

LIBRARY = Library("LightGBM", "lightgbm", "lightgbm", oldest="4.3.0", newest="4.7.0", below="5")
try:
    import lightgbm as lgb
except ImportError as error:
    raise LIBRARY.missing(error) from error
LIBRARY.check()

_KINDS = ("Regressor", "Classifier", "Ranker")
_FIELDS = ("_handle", "used_indices", "_predictor", "_start_row", "pandas_categorical", "data", "params", "reference")
_MORE_FIELDS = ("feature_name", "categorical_feature", "free_raw_data", "label", "weight", "init_score")
_MODEL, _DATASET = "lightgbm.sklearn:LGBMModel", "lightgbm.basic:Dataset"
HOOKS = (
    Hook("lightgbm.basic:_ConfigAliases", "get"),
    *(Hook(f"lightgbm.sklearn:LGBM{kind}", "fit", calls=("super", "fit")) for kind in _KINDS),
    Hook(_MODEL, "fit", calls=("Dataset", "_process_params"), plain=True),
    Hook(_MODEL, "_process_params", takes=("stage",)),
    Hook(_MODEL, "__init__", calls=("_other_params", "_Booster")),
    Hook(_DATASET, "__init__", calls=(*_FIELDS, *_MORE_FIELDS)),
    Hook(_DATASET, "construct", calls=("_handle", "used_indices", "_predictor", "_lazy_init", "get_params")),
    Hook(
        _DATASET,
        "_lazy_init",
        takes=("data", "label", "reference", "predictor", "feature_name", "categorical_feature", "params"),
        calls=("pandas_categorical", "_set_init_score_by_predictor", "_Dataset__init_from_seqs"),
    ),
    Hook(_DATASET, "_Dataset__init_from_seqs", calls=("_Dataset__sample", "_init_from_sample", "_push_rows")),
    Hook(_DATASET, "_Dataset__sample", calls=("_create_sample_indices",)),
    Hook(_DATASET, "_push_rows", calls=("_start_row",)),
    Hook(_DATASET, "_create_sample_indices", takes=("total_nrow",), calls=("get_params",)),
    Hook(
        _DATASET,
        "_init_from_sample",
        takes=("sample_data", "sample_indices", "sample_cnt", "total_nrow"),
        calls=("get_params",),
    ),
    Hook(_DATASET, "_set_init_score_by_predictor", takes=("predictor", "data", "used_indices")),
    Hook(_DATASET, "_free_handle"),
)
check_hooks(LIBRARY, HOOKS)
LGBMModel = lgb.LGBMModel

__all__ = ["HOOKS", "LIBRARY", "LGBMModel", "aliases", "lgb", "quietly", "sampled_rows"]

ZERO = float(np.float32(1e-35))
"""LightGBM's kZeroThreshold: what is not beyond it is zero."""

SAMPLED = 200_000
"""LightGBM's bin_construct_sample_cnt, if not given."""

BINARY_FILE = b"______LightGBM_Binary_File_Token______\n"
"""What a file of LightGBM's binary format begins with."""

_T = TypeVar("_T")


def aliases(name: str) -> list[str]:
    """Return all names of a parameter."""
    return [name, *sorted(lgb.basic._ConfigAliases.get(name) - {name})]


def quietly(work: Callable[[], _T]) -> _T:
    """Do something that sets LightGBM's verbosity, and leave no trace of it: LightGBM keeps one for each thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


class _WithAllParameters(lgb.Dataset):
    """Samples with LightGBM's seed, which it itself leaves out of a Dataset's parameters."""

    def get_params(self) -> dict[str, Any]:
        return self.params  # type: ignore[no-any-return]


def sampled_rows(n_rows: int, params: dict[str, Any]) -> NDArray[np.intp]:
    """Return the rows that LightGBM looks at to build a dataset."""
    sampler = _WithAllParameters(None, params={**params, "verbosity": -1})
    return np.asarray(quietly(lambda: sampler._create_sample_indices(total_nrow=n_rows)), np.intp)
