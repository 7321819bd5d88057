"""Our classes in the place of a library's own: where its users, and its tests, find them."""

from __future__ import annotations

import pkgutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType


@dataclass(frozen=True)
class Peer:
    """A library whose tests we run."""

    name: str  # as it is imported, and as our module for it is called
    namespace: str  # where its users find the classes
    classes: tuple[str, ...]
    helpers: str = ""  # a package of its own for its tests
    suite: tuple[str, ...] = ()  # the tests that are installed with it, and use the classes


PEERS = {
    peer.name: peer
    for peer in (
        Peer("lightgbm", "lightgbm", ("LGBMRegressor", "LGBMClassifier", "LGBMRanker", "Dataset")),
        Peer(
            "xgboost",
            "xgboost",
            (
                "XGBRegressor",
                "XGBClassifier",
                "XGBRanker",
                "XGBRFRegressor",
                "XGBRFClassifier",
                "QuantileDMatrix",
                "ExtMemQuantileDMatrix",
            ),
            helpers="xgboost.testing",
        ),
        Peer("catboost", "catboost", ("CatBoostRegressor", "CatBoostClassifier", "CatBoostRanker", "Pool")),
        Peer(
            "sklearn",
            "sklearn.ensemble",
            (
                "HistGradientBoostingRegressor",
                "HistGradientBoostingClassifier",
                "GradientBoostingRegressor",
                "GradientBoostingClassifier",
            ),
            suite=(
                "ensemble/_hist_gradient_boosting/tests",
                "ensemble/tests/test_bagging.py",
                "ensemble/tests/test_gradient_boosting.py",
                "ensemble/tests/test_voting.py",
                "feature_selection/tests/test_from_model.py",
                "feature_selection/tests/test_sequential.py",
                "inspection/_plot/tests/test_plot_partial_dependence.py",
                "inspection/tests/test_partial_dependence.py",
                "model_selection/tests/test_classification_threshold.py",
                "model_selection/tests/test_search.py",
                "tests/test_multioutput.py",
                "tests/test_pipeline.py",
            ),
        ),
    )
}


def substitute(peer: Peer) -> None:
    """Put our classes in the place of a library's own, but not before our own eyes."""
    library, ours = import_module(peer.namespace), import_module(f"boostbins.{peer.name}")
    untouched = ModuleType(library.__name__)
    vars(untouched).update(vars(library))
    for module in [module for name, module in sys.modules.items() if name.split(".")[0] == "boostbins"]:
        _replace(module, {library: untouched})
    there = [name for name in peer.classes if hasattr(library, name)]  # some come and go
    stand_ins = {getattr(library, name): getattr(ours, name) for name in there}
    _replace(library, stand_ins)
    for helper in _modules_of(peer.helpers) if peer.helpers else ():
        _replace(helper, stand_ins)


def _replace(module: ModuleType, stand_ins: dict) -> None:
    for name, value in list(vars(module).items()):
        if isinstance(value, type | ModuleType) and value in stand_ins:
            setattr(module, name, stand_ins[value])


def _modules_of(package: str) -> list[ModuleType]:
    """Return those of a package's modules that can be imported here."""
    found = [import_module(package)]
    for module in pkgutil.iter_modules(found[0].__path__, f"{package}."):
        with suppress(Exception):  # needs something that is not installed
            found.append(import_module(module.name))
    return found
