"""LightGBM itself: the versions that were tested, and all that is used of it beyond its public names."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.library import Library

LIBRARY = Library("LightGBM", "lightgbm", "lightgbm", oldest="4.3.0", newest="4.7.0", below="5")
try:
    import lightgbm as lgb
    from lightgbm.basic import _ConfigAliases
    from lightgbm.sklearn import LGBMModel
except ImportError as error:
    raise LIBRARY.missing() from error
LIBRARY.check()

__all__ = ["LIBRARY", "LGBMModel", "aliases", "lgb", "quietly", "sampled_rows"]

ZERO = float(np.float32(1e-35))
"""LightGBM's kZeroThreshold: what is not beyond it is zero."""

SAMPLED = 200_000
"""LightGBM's bin_construct_sample_cnt, if not given."""

BINARY_FILE = b"______LightGBM_Binary_File_Token______\n"
"""What a file of LightGBM's binary format begins with."""

_T = TypeVar("_T")


def aliases(name: str) -> list[str]:
    """Return all names of a parameter."""
    return [name, *sorted(_ConfigAliases.get(name) - {name})]


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
