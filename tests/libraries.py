"""The four libraries side by side: what a test needs to know of each, and nothing that a test asserts."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn import ensemble

import boostbins.catboost
import boostbins.lightgbm
import boostbins.sklearn
import boostbins.xgboost


@dataclass(frozen=True)
class Side:
    """An estimator of ours and the library's own next to it."""

    name: str
    ours: Any
    native: Any
    budget: str  # the parameter that limits the bins
    few: dict[str, Any]  # parameters for a small, quiet, reproducible model
    bins_of: Callable[[int], int]  # bins for values, by the budget
    trees: str  # the parameter for the number of trees
    thresholds: Callable[[Any], dict[int, np.ndarray]]  # of the numeric splits, by feature, as x <= threshold
    imposed: Callable[[Any, np.ndarray], dict[int, set[float]]]  # thresholds that are not ours, by feature
    takes: frozenset[str] = frozenset()  # what the library can do

    def __str__(self) -> str:
        return self.name

    def make(self, **params: Any) -> Any:
        return self.ours(**{**self.few, **params})

    def make_native(self, **params: Any) -> Any:
        return self.native(**{**self.few, **params})


# ---- thresholds


def of_lightgbm(model: Any) -> dict[int, np.ndarray]:
    booster = model if isinstance(model, lightgbm.Booster) else model.booster_
    found: dict[int, set[float]] = {}

    def walk(node: dict[str, Any]) -> None:
        if "split_feature" in node:
            if node["decision_type"] == "<=":
                found.setdefault(node["split_feature"], set()).add(node["threshold"])
            walk(node["left_child"])
            walk(node["right_child"])

    for tree in booster.dump_model()["tree_info"]:
        walk(tree["tree_structure"])
    return {place: np.array(sorted(values)) for place, values in found.items()}


def of_xgboost(model: Any) -> dict[int, np.ndarray]:
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    found: dict[int, set[float]] = {}
    learner = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    for tree in learner.get("model", learner.get("gbtree", {}).get("model"))["trees"]:
        nodes = zip(
            tree["left_children"], tree["split_indices"], tree["split_conditions"], tree["split_type"], strict=True
        )
        for left, place, value, kind in nodes:
            if left != -1 and kind == 0:
                below = np.nextafter(np.float32(value), np.float32(-np.inf))
                found.setdefault(place, set()).add(float(below))
    return {place: np.array(sorted(values)) for place, values in found.items()}


def of_catboost(model: Any) -> dict[int, np.ndarray]:
    return {place: np.array(borders) for place, borders in model.get_borders().items() if len(borders)}


def of_histogram(model: Any) -> dict[int, np.ndarray]:
    found: dict[int, set[float]] = {}
    for trees in model._predictors:
        for tree in trees:
            nodes = tree.nodes[(tree.nodes["is_leaf"] == 0) & (tree.nodes["is_categorical"] == 0)]
            for place, value in zip(nodes["feature_idx"], nodes["num_threshold"], strict=True):
                found.setdefault(int(place), set()).add(float(value))
    return {place: np.array(sorted(values)) for place, values in found.items()}


def of_exact(model: Any) -> dict[int, np.ndarray]:
    found: dict[int, set[float]] = {}
    for tree in np.ravel(model.estimators_):
        split = tree.tree_.children_left != -1
        for place, value in zip(tree.tree_.feature[split], tree.tree_.threshold[split], strict=True):
            found.setdefault(int(place), set()).add(float(value))
    return {place: np.array(sorted(values)) for place, values in found.items()}


# ---- what a library imposes


def nothing(model: Any, X: np.ndarray) -> dict[int, set[float]]:
    return {}


def above_all_values(model: Any, X: np.ndarray) -> dict[int, set[float]]:
    """XGBoost parts missing values from all others by a threshold above all of them."""
    return {p: {t for t in ts if t > np.nanmax(X[:, p])} for p, ts in of_xgboost(model).items()}


def missing_borders(model: Any, X: np.ndarray) -> dict[int, set[float]]:
    """CatBoost parts missing values from all others by a border at the end of float32."""
    return {p: {t for t in ts if abs(t) > 3.4e38} for p, ts in of_catboost(model).items()}


def side(**options: Any) -> Side:
    options["takes"] = frozenset(options["takes"].split())
    return Side(**options)


LIGHTGBM = {
    "budget": "max_bin",
    "few": {"n_estimators": 20, "verbosity": -1, "n_jobs": 2, "random_state": 0, "deterministic": True},
    "bins_of": lambda budget: budget,
    "trees": "n_estimators",
    "thresholds": of_lightgbm,
    "imposed": nothing,  # the cuts around zero are in bins_
    "takes": "missing sparse weights categorical monotone interaction early-stopping objective infinite",
}
XGBOOST = {
    "budget": "max_bin",
    "few": {"n_estimators": 20, "n_jobs": 2, "random_state": 0},
    "bins_of": lambda budget: budget - 1,
    "trees": "n_estimators",
    "thresholds": of_xgboost,
    "imposed": above_all_values,
    "takes": "missing sparse weights categorical monotone interaction early-stopping objective float32",
}
CATBOOST = {
    "budget": "border_count",
    "few": {"iterations": 20, "verbose": False, "allow_writing_files": False, "thread_count": 2, "random_seed": 0},
    "bins_of": lambda budget: budget + 1,
    "trees": "iterations",
    "thresholds": of_catboost,
    "imposed": missing_borders,
    "takes": "missing sparse weights categorical monotone early-stopping objective float32",
}
HISTOGRAM = {
    "budget": "max_bins",
    "few": {"max_iter": 20, "random_state": 0},
    "bins_of": lambda budget: budget,
    "trees": "max_iter",
    "thresholds": of_histogram,
    "imposed": nothing,
    "takes": "missing weights categorical monotone interaction early-stopping infinite",
}
EXACT = {
    "budget": "max_bins",
    "few": {"n_estimators": 20, "random_state": 0},
    "bins_of": lambda budget: budget,
    "trees": "n_estimators",
    "thresholds": of_exact,
    "imposed": nothing,
    "takes": "sparse weights early-stopping float32",
}


def pair(kind: dict[str, Any], module: Any, library: Any, *names: str) -> list[Side]:
    return [side(name=name, ours=getattr(module, name), native=getattr(library, name), **kind) for name in names]


REGRESSORS = [
    *pair(LIGHTGBM, boostbins.lightgbm, lightgbm, "LGBMRegressor"),
    *pair(XGBOOST, boostbins.xgboost, xgboost, "XGBRegressor"),
    *pair(CATBOOST, boostbins.catboost, catboost, "CatBoostRegressor"),
    *pair(HISTOGRAM, boostbins.sklearn, ensemble, "HistGradientBoostingRegressor"),
    *pair(EXACT, boostbins.sklearn, ensemble, "GradientBoostingRegressor"),
]
CLASSIFIERS = [
    *pair(LIGHTGBM, boostbins.lightgbm, lightgbm, "LGBMClassifier"),
    *pair(XGBOOST, boostbins.xgboost, xgboost, "XGBClassifier"),
    *pair(CATBOOST, boostbins.catboost, catboost, "CatBoostClassifier"),
    *pair(HISTOGRAM, boostbins.sklearn, ensemble, "HistGradientBoostingClassifier"),
    *pair(EXACT, boostbins.sklearn, ensemble, "GradientBoostingClassifier"),
]
RANKERS = [
    *pair(LIGHTGBM, boostbins.lightgbm, lightgbm, "LGBMRanker"),
    *pair(XGBOOST, boostbins.xgboost, xgboost, "XGBRanker"),
    *pair(CATBOOST, boostbins.catboost, catboost, "CatBoostRanker"),
]
FORESTS = pair(XGBOOST, boostbins.xgboost, xgboost, *[name for name in boostbins.xgboost.__all__ if "RF" in name])
EVERY = [*REGRESSORS, *CLASSIFIERS, *RANKERS, *FORESTS]


def that_take(*abilities: str, among: list[Side] = REGRESSORS) -> list[Side]:
    return [library for library in among if set(abilities) <= library.takes]


def fingerprint(model: Any) -> Any:
    """Return all of a trained model that is not its parameters."""
    if isinstance(model, catboost.CatBoost):
        return model.get_borders(), model.get_leaf_values().tolist(), model.get_all_params()
    if hasattr(model, "booster_"):
        return model.booster_.model_to_string()
    if hasattr(model, "get_booster"):
        return bytes(model.get_booster().save_raw("ubj"))
    if hasattr(model, "_predictors"):
        return [tree.nodes.tobytes() for trees in model._predictors for tree in trees]
    return [pickle.dumps(tree.tree_.__getstate__()["nodes"]) for tree in np.ravel(model.estimators_)]
