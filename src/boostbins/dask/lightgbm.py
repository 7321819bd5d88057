"""LightGBM's Dask estimators with cuts of our own.

On a cluster, each worker of LightGBM's finds the cuts of some features, from its own rows. It is given codes of bins
instead of values, and made to cut between all of them, whatever it sees: by one list of cuts, the same for all
features. The model that comes back is rewritten: a cut between codes becomes the cut between the values.

The trees are those of one machine as far as LightGBM's own are: on workers with unequal numbers of rows it starts from
another average (`boost_from_average`), and with weights it estimates the number of rows in a leaf.
"""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from lightgbm import dask as native
from numpy.typing import NDArray

from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.params import BINNING_PARAMS, BinningMixin, with_binning_params
from boostbins.adapters.requested import summarized_bins
from boostbins.bins import Bins
from boostbins.dask.fit import requested_bins, with_classes
from boostbins.dask.lightgbm_model import FIRST, in_raw_values
from boostbins.dask.partitions import Replaced, checked_collection, features
from boostbins.dask.training import with_numbers
from boostbins.fit import of_target
from boostbins.lightgbm import LIBRARY
from boostbins.lightgbm.settings import Settings, budgets_of, cut_format_of
from boostbins.methods import Method
from boostbins.sources.table import Table, as_float32
from boostbins.summary.ranges import Ranges, ranges_of_summary
from boostbins.summary.table import TableSummary

__all__ = ["LGBMClassifier", "LGBMRanker", "LGBMRegressor"]

_KINDS = ("Regressor", "Classifier", "Ranker")
_BASE = "lightgbm.dask:_DaskLGBMModel"
HOOKS = (
    *(Hook(f"lightgbm.dask:DaskLGBM{kind}", "fit", calls=("_lgb_dask_fit",)) for kind in _KINDS),
    *(Hook(f"lightgbm.dask:DaskLGBM{kind}", "to_local", calls=("_lgb_dask_to_local",)) for kind in _KINDS),
    Hook(_BASE, "_lgb_dask_fit", takes=("model_factory", "X", "y"), calls=("_train", "_lgb_dask_copy_extra_params")),
    Hook(_BASE, "_lgb_dask_to_local", takes=("model_factory",)),
    Hook("lightgbm.dask", "_get_dask_client", takes=("client",)),
    Hook("lightgbm.dask", "_train", takes=("client", "data", "label", "params", "model_factory")),
    Hook("lightgbm.dask", "_train_part", calls=("fit",)),
    Hook("lightgbm.sklearn:LGBMModel", "__init__", calls=("_other_params", "_Booster")),
)
check_hooks(LIBRARY, HOOKS)


class _Coded(BinningMixin):
    """Stands before a class of LightGBM's: has it train on codes, and rewrites the model."""

    _library = LIBRARY

    def _lgb_dask_fit(self, *, model_factory: Any, X: Any, y: Any, **kwargs: Any) -> Any:
        """Fit as LightGBM's own does; X is read twice, once for the cuts."""
        this: Any = self
        settings = Settings(
            {key: value for key, value in this.get_params().items() if key not in (*BINNING_PARAMS, "client")},
            self._total,
        )
        ours = self._begin_fit(_obstacle(settings, kwargs))
        client = native._get_dask_client(this.client)
        train = partial(native._train, client=client)
        if not ours:
            model = train(data=X, label=y, params=settings.params, model_factory=model_factory, **kwargs)
            self._take_over(model)
            return self
        settings.check()
        X = checked_collection(X)
        kept = of_target(self.bin_method, self._total)
        target = y if any(kept) else None
        per_row = {"sample_weight": kwargs.get("sample_weight"), "y": target}
        parts = features(X, per_row, (), "make it numbers")
        if X.ndim == 2 and parts.reader.dtypes is None and X.dtype not in (np.float32, np.float64):
            parts = parts.map(as_float32)
        if isinstance(self, native.DaskLGBMClassifier):
            parts = with_classes(parts, client)
        cut = partial(_cut, settings=settings)
        bins, ranges = requested_bins(self.bin_method, parts, cut, settings.max_bin, client, kept)
        numbers = Replaced(parts.whole_reader, partial(_codes, bins=bins, missing=ranges.missing))
        X, y, kwargs = with_numbers(X, y, kwargs, numbers, client)
        needed = _needed(bins, ranges)
        model = train(
            data=X,
            label=y,
            params=settings.replaced(**needed),
            model_factory=_ON_CODES[model_factory],
            **kwargs,
        )
        own = {name: _written(settings.get(name, default)) for name, default in _OWN.items()}
        model._Booster = _raw_booster(model._Booster, bins, ranges, own)
        self._take_over(model)
        self.bins_ = bins
        return self

    def _take_over(self, model: Any) -> None:
        """Take what was learnt, but no parameter: those were changed for training only."""
        this: Any = self
        own = this._other_params
        known = {*this.get_params(), *model.get_params(), *model._other_params}
        this.__dict__.update({key: value for key, value in model.__dict__.items() if key not in known})
        this._other_params = own

    def _lgb_dask_to_local(self, model_factory: Any) -> Any:
        return _without_binning_params(super()._lgb_dask_to_local(model_factory))  # type: ignore[misc]

    def to_native(self) -> Any:
        """Return the same model as an estimator of LightGBM's own class, which needs no boostbins."""
        return _without_binning_params(super().to_native())


@with_binning_params("`max_bin` is the number of bins, those for zero and for missing values included", cached=False)
class LGBMRegressor(_Coded, native.DaskLGBMRegressor):
    """`lightgbm.DaskLGBMRegressor` with cuts by `bin_method`."""


@with_binning_params("`max_bin` is the number of bins, those for zero and for missing values included", cached=False)
class LGBMClassifier(_Coded, native.DaskLGBMClassifier):
    """`lightgbm.DaskLGBMClassifier` with cuts by `bin_method`."""


@with_binning_params("`max_bin` is the number of bins, those for zero and for missing values included", cached=False)
class LGBMRanker(_Coded, native.DaskLGBMRanker):
    """`lightgbm.DaskLGBMRanker` with cuts by `bin_method`."""


def _without_binning_params(model: Any) -> Any:
    model._other_params = {key: value for key, value in model._other_params.items() if key not in BINNING_PARAMS}
    for name in (*BINNING_PARAMS, "bins_"):
        model.__dict__.pop(name, None)
    return model


# ---- what cannot be done


def _obstacle(settings: Settings, kwargs: dict[str, Any]) -> str:
    """Return what stands in the way of cuts of ours, if anything does."""
    if obstacle := settings.obstacle():
        return obstacle
    for name, way_out in {
        "linear_tree": "leave it out, or train on one machine with boostbins.lightgbm",
        "zero_as_missing": "replace zeros by NaN in X",
    }.items():
        if settings.is_on(name, False):
            return f"{name}=True does not work with codes of bins: {way_out}"
    if not settings.is_on("use_missing", True):
        return "use_missing=False does not work with codes of bins: fill X"
    named = {name: settings.get(name, "") for name in _NOT_ON_CODES}
    named["categorical_feature"] = named["categorical_feature"] or kwargs.get("categorical_feature") or ""
    for name, value in named.items():
        if str(value) not in ("", "auto", "[]"):
            return f"{name} does not work with codes of bins: leave it out"
    return "init_model has thresholds of its own: leave it out" if kwargs.get("init_model") is not None else ""


_NOT_ON_CODES = ("categorical_feature", "forcedsplits_filename", "max_bin_by_feature", "min_data_in_bin")


# ---- bins and codes


def _cut(bin_method: str | Method | Bins, summary: TableSummary, settings: Settings) -> Bins:
    ranges, feature_indices = ranges_of_summary(summary), range(len(summary))
    budgets = budgets_of(ranges, settings, feature_indices)
    return summarized_bins(
        bin_method,
        summary,
        budgets,
        total=settings.total_of(budgets, feature_indices),
        cut_format=cut_format_of(ranges),
        limit=f"max_bin={settings.max_bin}",
        n_threads=1,
    )


def _codes(table: Table, bins: Bins, missing: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the codes of a table: 0 for a missing value, or that of zero, in a column that had none in training."""
    found = bins.encode([table.read(i) for i in range(len(table))], order="F", n_threads=1)
    out = np.empty(found.shape, np.float32, order="F")
    for i, cuts in enumerate(bins.cuts):
        codes = np.arange(bins.missing_code + 1, dtype=np.float32) + FIRST
        codes[-1] = 0 if missing[i] else np.searchsorted(cuts, 0.0) + FIRST
        out[:, i] = codes[found[:, i]]
    return out


_OWN = {  # with LightGBM's defaults, what is written down again as it was given
    "max_bin": 255,
    "enable_bundle": True,
    "zero_as_missing": False,
    "feature_pre_filter": True,
    "forcedbins_filename": "",
}


def _needed(bins: Bins, ranges: Ranges) -> dict[str, Any]:
    """Return the parameters for codes.

    Where there are missing values, they are LightGBM's zeros: unlike NaN it knows of these in every feature, even if
    a worker has not met one. No bundles, which each worker would make up for itself, and no feature left out.
    """
    return {
        "max_bin": _MORE + max(bins.n_bins),
        "zero_as_missing": bool(ranges.missing.any()),
        "enable_bundle": False,
        "feature_pre_filter": False,
    }


_MORE = 4  # bins than codes: for zero, for what is between it and the first code, and to spare


def _written(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _raw_booster(booster: lgb.Booster, bins: Bins, ranges: Ranges, params: dict[str, Any]) -> lgb.Booster:
    text = in_raw_values(booster.model_to_string(num_iteration=-1), bins, ranges, params, LIBRARY)
    raw = lgb.Booster(model_str=text)
    raw.best_iteration, raw.best_score = booster.best_iteration, booster.best_score
    return raw


# ---- on a worker


class _OnCodes:
    """Cuts between all codes."""

    def fit(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Fit with a file of cuts, which only this worker has."""
        this: Any = self
        highest = this.get_params()["max_bin"] - _MORE + FIRST - 1
        first = 0.5 if this.get_params()["zero_as_missing"] else FIRST + 0.5
        bounds = np.arange(first, max(highest, FIRST + 1)).tolist()
        with tempfile.TemporaryDirectory(prefix="boostbins-") as folder:
            path = Path(folder) / "cuts.json"
            path.write_text(json.dumps([{"feature": i, "bin_upper_bound": bounds} for i in range(X.shape[1])]))
            this.set_params(forcedbins_filename=str(path))
            super().fit(X, *args, **kwargs)  # type: ignore[misc]
            this.set_params(forcedbins_filename="")
        return self


class _RegressorOnCodes(_OnCodes, lgb.LGBMRegressor):
    pass


class _ClassifierOnCodes(_OnCodes, lgb.LGBMClassifier):
    pass


class _RankerOnCodes(_OnCodes, lgb.LGBMRanker):
    pass


_ON_CODES = {
    lgb.LGBMRegressor: _RegressorOnCodes,
    lgb.LGBMClassifier: _ClassifierOnCodes,
    lgb.LGBMRanker: _RankerOnCodes,
}
