"""LightGBM's scikit-learn estimators with cuts of our own."""

from __future__ import annotations

import types
from typing import Any

from boostbins.adapters.params import BINNING_PARAMS, BinningMixin, with_binning_params
from boostbins.lightgbm._native import LIBRARY, LGBMModel, lgb
from boostbins.lightgbm.dataset import Dataset
from boostbins.lightgbm.settings import Settings


class _Binned(BinningMixin, LGBMModel):
    """Stands between a class of LightGBM's and `LGBMModel`: has the latter's `fit` build our Datasets."""

    _library = LIBRARY

    def fit(self, X: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        ours = self._begin_fit()
        if ours and isinstance(X, lgb.Dataset):
            raise TypeError("X must be data, not a ready-made Dataset: its cuts are fixed. Give it to lightgbm.train")
        made: list[Dataset] = []

        def dataset(*args: Any, **kwargs: Any) -> Dataset:
            kwargs |= {name: getattr(self, name) for name in BINNING_PARAMS}
            made.append(Dataset(*args, **kwargs))
            return made[-1]

        # The same code with another Dataset among its globals: nothing is patched, so other threads see nothing.
        native = LGBMModel.fit
        fit = types.FunctionType(native.__code__, {**native.__globals__, "Dataset": dataset}, native.__name__)
        fit.__defaults__, fit.__kwdefaults__ = native.__defaults__, native.__kwdefaults__
        fit(self, X, y, *args, **kwargs)
        train = made[0] if made else None  # the training set is the first
        if ours and train is not None and train.bins_ is not None:
            self.bins_ = train.bins_
        elif train is not None and Settings(train.params or {}).obstacle():  # of which it warned
            self._ours = False
        return self

    def _process_params(self, stage: str) -> dict[str, Any]:
        params = super()._process_params(stage)
        return {key: value for key, value in params.items() if key not in BINNING_PARAMS}

    def to_native(self) -> Any:
        """Return the same model as an estimator of LightGBM's own class, which needs no boostbins."""
        plain = super().to_native()
        plain._other_params = {key: value for key, value in plain._other_params.items() if key not in BINNING_PARAMS}
        return plain


@with_binning_params("`max_bin` is the number of bins, those for zero and for missing values included")
class LGBMRegressor(lgb.LGBMRegressor, _Binned):
    """`lightgbm.LGBMRegressor` with cuts by `bin_method`."""


@with_binning_params("`max_bin` is the number of bins, those for zero and for missing values included")
class LGBMClassifier(lgb.LGBMClassifier, _Binned):
    """`lightgbm.LGBMClassifier` with cuts by `bin_method`."""


@with_binning_params("`max_bin` is the number of bins, those for zero and for missing values included")
class LGBMRanker(lgb.LGBMRanker, _Binned):
    """`lightgbm.LGBMRanker` with cuts by `bin_method`."""
