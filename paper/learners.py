"""The learners by name: how each is made, what is tuned, and which ways to bin it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from scipy.stats import loguniform, randint, uniform
from sklearn.pipeline import Pipeline

from boostbins import Bins
from paper.binning import BUDGETS, METHODS, OUR_METHODS, UNBINNED, PaperBinner
from paper.rivals import RIVALS

NATIVE = "native"
"""The library's own bins."""

# The paper's search space, by the names of scikit-learn's GradientBoosting.
SPACE: dict[str, Any] = {
    "n_estimators": randint(20, 300),
    "learning_rate": loguniform(1e-3, 0.5),
    "max_depth": randint(3, 6),
    "subsample": uniform(0.5, 0.5),
    "max_features": uniform(0.5, 0.5),
}


def _lightgbm_begins(model: Any, note: Callable[[], None]) -> dict[str, Any]:
    def begin(now: Any) -> None:
        if now.iteration == now.begin_iteration:
            note()

    begin.before_iteration = True  # type: ignore[attr-defined]
    return {"callbacks": [begin]}


def _xgboost_begins(model: Any, note: Callable[[], None]) -> dict[str, Any]:
    class Begin(import_module("xgboost.callback").TrainingCallback):  # type: ignore[misc]
        def before_training(self, model: Any) -> Any:
            note()
            return model

    model.set_params(callbacks=[Begin()])
    return {}


def _lightgbm_bins(model: Any, X: Any, max_bins: int) -> Bins:
    library = import_module("boostbins.lightgbm")
    params = {"max_bin": max_bins, "verbosity": -1, "num_threads": 1}
    return library.from_native(library.Dataset(X, params=params, bin_method=None))


def _xgboost_bins(model: Any, X: Any, max_bins: int) -> Bins:
    library = import_module("boostbins.xgboost")
    return library.from_native(library.QuantileDMatrix(X, max_bin=max_bins, bin_method=None, nthread=1))


def _catboost_bins(model: Any, X: Any, max_bins: int) -> Bins:
    library = import_module("boostbins.catboost")
    pool = library.Pool(X, bin_method=None)
    pool.quantize(border_count=max_bins - 1)
    return library.from_native(pool)


def _hist_bins(model: Any, X: Any, max_bins: int) -> Bins:
    return import_module("boostbins.sklearn").from_native(model)


def _unknown_bins(model: Any, X: Any, max_bins: int) -> None:
    return None


@dataclass(frozen=True)
class Learner:
    """A learner of one library, with its own names for what the paper tunes."""

    name: str
    module: str
    regressor: str
    classifier: str
    has_flag: bool  # boostbins' estimators: bin_method is a parameter. Else a step before the learner bins.
    max_bins: Callable[[int], dict[str, int]] = lambda bins: {}
    renamed: Mapping[str, str | None] = field(default_factory=dict)  # of SPACE; None: it has no such thing
    settings: Mapping[str, Any] = field(default_factory=dict)
    native_bins: Callable[[Any, Any, int], Bins | None] = _unknown_bins  # of a trained model, its data and limit
    # Parameters for `fit`, so that a function is called when the first tree is begun: then the bins are there.
    first_tree: Callable[[Any, Callable[[], None]], dict[str, Any]] | None = None

    @property
    def methods(self) -> list[str]:
        """Return the ways to bin that it can be trained with."""
        own = [NATIVE, "quantile", "uniform", "kmeans", "optimal", *OUR_METHODS, *BUDGETS, *RIVALS]
        return own if self.has_flag else [*METHODS, UNBINNED]

    def make(self, track: str, method: str, max_bins: int, seed: int, params: Mapping[str, Any]) -> Any:
        """Return an estimator that bins by `method`, with the parameters by scikit-learn's names."""
        kind = getattr(import_module(self.module), self.regressor if track == "regression" else self.classifier)
        own = {"random_state": seed, **self.settings, **self.translated(params)}
        if method in BUDGETS:
            return kind(bin_method="kmeans", **BUDGETS[method], **own)
        if self.has_flag:
            flag = None if method == NATIVE else RIVALS.get(method, method)
            return kind(bin_method=flag, **self.max_bins(max_bins), **own)
        steps = [] if method == UNBINNED else [("bin", PaperBinner(method, max_bins, seed))]
        return Pipeline([*steps, ("learn", kind(**own))])

    def space(self) -> dict[str, Any]:
        """Return the search space by the names of what `make` returns."""
        prefix = "" if self.has_flag else "learn__"
        return {prefix + name: spread for name, spread in self.translated(SPACE).items()}

    def translated(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters by this library's names."""
        named = {self.renamed.get(name, name): value for name, value in params.items()}
        return {name: value for name, value in named.items() if name is not None}


LEARNERS = {
    learner.name: learner
    for learner in (
        Learner("sklearn", "sklearn.ensemble", "GradientBoostingRegressor", "GradientBoostingClassifier", False),
        Learner(
            "xgboost-exact", "xgboost", "XGBRegressor", "XGBClassifier", False,
            renamed={"max_features": "colsample_bytree"},
            settings={"tree_method": "exact", "n_jobs": 1},
        ),
        Learner(
            "lightgbm", "boostbins.lightgbm", "LGBMRegressor", "LGBMClassifier", True,
            lambda bins: {"max_bin": bins},
            renamed={"max_features": "colsample_bytree"},
            settings={"n_jobs": 1, "verbosity": -1, "subsample_freq": 1},
            native_bins=_lightgbm_bins,
            first_tree=_lightgbm_begins,
        ),
        Learner(
            "xgboost", "boostbins.xgboost", "XGBRegressor", "XGBClassifier", True,
            lambda bins: {"max_bin": bins},
            renamed={"max_features": "colsample_bytree"},
            settings={"n_jobs": 1},
            native_bins=_xgboost_bins,
            first_tree=_xgboost_begins,
        ),
        Learner(
            "catboost", "boostbins.catboost", "CatBoostRegressor", "CatBoostClassifier", True,
            lambda bins: {"border_count": bins - 1},
            renamed={"max_features": "rsm"},
            settings={
                "thread_count": 1, "verbose": False, "allow_writing_files": False, "bootstrap_type": "Bernoulli",
            },
            native_bins=_catboost_bins,
        ),
        Learner(
            "hist", "boostbins.sklearn", "HistGradientBoostingRegressor", "HistGradientBoostingClassifier", True,
            lambda bins: {"max_bins": bins},
            renamed={"n_estimators": "max_iter", "subsample": None},
            settings={"early_stopping": False},  # by itself it would, above 10,000 rows
            native_bins=_hist_bins,
        ),
    )
}  # fmt: skip
