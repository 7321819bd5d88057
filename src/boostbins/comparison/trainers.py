"""The libraries as `compare` trains them: which estimators, and their own words for what all of them have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


SHARED: dict[str, Callable[[int], dict[str, Any]]] = {
    "shared": lambda max_bins: {"average_bins": max_bins},
    "auto-bins": lambda max_bins: {"total_bins": "auto"},
}
"""k-means bins that columns share by what the target needs: `max_bins` on average; as many as are enough."""

_SET_ELSEWHERE = {
    "bin_method": "it is set by methods",
    "bin_cache": "each fit finds its own bins, and its time is measured",
    "average_bins": "it is set by max_bins, for the method 'shared'",
    "total_bins": "the method 'auto-bins' is total_bins=\"auto\", and 'shared' has max_bins per column on average",
    **dict.fromkeys(("max_bin", "max_bins", "border_count"), "it is set by max_bins"),
}


@dataclass(frozen=True)
class Trainer:
    """A library as it is trained here: by boostbins' estimators, with the library's own defaults."""

    title: str
    module: str  # of boostbins, and the library's own
    regressor: str
    classifier: str
    budget: Callable[[int], dict[str, int]]  # its parameter for n bins
    settings: Mapping[str, Any] = field(default_factory=dict)
    with_categories: Callable[[list[str]], dict[str, Any]] = lambda names: {}  # its parameters, if there are any
    categories_are_text: bool = False
    most_categories: Callable[[int], int] = lambda max_bins: 1000
    aliases: Mapping[str, str] = field(default_factory=dict)  # the other libraries' names for its parameters
    seed: str = "random_state"
    one_thread: Mapping[str, int] = field(default_factory=lambda: {"n_jobs": 1})

    def binning(self, method: Any, max_bins: int) -> dict[str, Any]:
        """Return the estimator's parameters for a method, one of `SHARED` or None, and a number of bins."""
        if isinstance(method, str) and method in SHARED:
            return {"bin_method": "kmeans", **SHARED[method](max_bins)}
        return {"bin_method": method, **self.budget(max_bins)}

    @property
    def is_installed(self) -> bool:
        """Return whether the library can be imported."""
        return find_spec(self.module) is not None

    def estimator(self, task: str) -> Any:
        """Return the class for a task."""
        module = import_module(f"boostbins.{self.module}")
        return getattr(module, self.regressor if task == "regression" else self.classifier)

    def own_names(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters by the library's own names; those that are set elsewhere are refused."""
        if not isinstance(params, Mapping):
            raise TypeError(f"params must be a dict of the library's parameters, got {params!r}")
        for name in params:
            if name in _SET_ELSEWHERE:
                raise ValueError(f"params must not hold {name!r}: {_SET_ELSEWHERE[name]}")
        return {self.aliases.get(name, name): value for name, value in params.items()}

    def data(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the features as the library wants them, and the parameters that say which are categories."""
        # Some libraries refuse some characters in names.
        frame = frame.set_axis([f"c{i}" for i in range(frame.shape[1])], axis=1)
        categories = [name for name in frame.columns if frame[name].dtype == "category"]
        if not categories:
            return frame, {}
        if self.categories_are_text:
            as_text = {name: frame[name].astype(object).where(frame[name].notna(), "missing") for name in categories}
            frame = frame.assign(**as_text)
        return frame, self.with_categories(categories)


TRAINERS = {
    trainer.module: trainer
    for trainer in (
        Trainer(
            "LightGBM", "lightgbm", "LGBMRegressor", "LGBMClassifier", lambda n: {"max_bin": n}, {"verbosity": -1}
        ),
        Trainer(
            "XGBoost", "xgboost", "XGBRegressor", "XGBClassifier",
            lambda n: {"max_bin": n + 1},
            with_categories=lambda names: {"enable_categorical": True},
        ),
        Trainer(
            "CatBoost", "catboost", "CatBoostRegressor", "CatBoostClassifier",
            lambda n: {"border_count": n - 1},
            {"verbose": False, "allow_writing_files": False, "iterations": 200},
            with_categories=lambda names: {"cat_features": names},
            categories_are_text=True,
            aliases={
                "n_estimators": "iterations", "num_boost_round": "iterations", "num_trees": "iterations",
                "random_state": "random_seed", "n_jobs": "thread_count", "max_depth": "depth",
            },
            seed="random_seed",
            one_thread={"thread_count": 1},
        ),
        Trainer(
            "scikit-learn", "sklearn", "HistGradientBoostingRegressor", "HistGradientBoostingClassifier",
            lambda n: {"max_bins": n},
            with_categories=lambda names: {"categorical_features": "from_dtype"},
            aliases={"n_estimators": "max_iter"},
            most_categories=lambda max_bins: max_bins,
            one_thread={},
        ),
    )
}  # fmt: skip


def chosen_trainer(library: str | None) -> Trainer:
    """Return a library by its name, or the first that is installed."""
    if library is None:
        installed = [trainer for trainer in TRAINERS.values() if trainer.is_installed]
        if not installed:
            raise ImportError(
                "none of LightGBM, XGBoost, CatBoost and scikit-learn is installed: pip install 'boostbins[lightgbm]'"
            )
        return installed[0]
    if library not in TRAINERS:
        raise ValueError(f"library must be one of {', '.join(map(repr, TRAINERS))}, got {library!r}")
    if not TRAINERS[library].is_installed:
        raise ImportError(f"{TRAINERS[library].title} is not installed: pip install 'boostbins[{library}]'")
    return TRAINERS[library]
