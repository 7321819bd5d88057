"""The libraries as `compare` trains them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from boostbins.comparison import trainers
from boostbins.comparison.trainers import TRAINERS, chosen_trainer

FRAME = pd.DataFrame({"a [1]": [1.0, 2.0, 3.0], "kind": pd.Categorical(["x", None, "y"])})
y = np.array([0, 1, 1])


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("max_bins", [3, 63])
def test_the_budget_is_that_number_of_bins(name, max_bins):
    r = np.random.default_rng(0)
    X = pd.DataFrame({"c0": r.permutation(2000) + 1.0})  # no zero, and nothing missing
    trainer = TRAINERS[name]
    settings = {**trainer.settings, **trainer.own_names({"n_estimators": 2}), **trainer.one_thread}
    model = trainer.estimator("regression")(bin_method="quantile", **settings, **trainer.budget(max_bins))
    model.fit(X, X["c0"])
    cuts = model.bins_.cuts[0]
    zeros = name == "lightgbm"  # which has a bin for them
    assert len(cuts[np.abs(cuts) > 1e-30]) + 1 == max_bins - zeros


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_categories_are_given_as_the_library_takes_them(name, task):
    trainer = TRAINERS[name]
    frame, settings = trainer.data(pd.concat([FRAME] * 20, ignore_index=True))
    assert list(frame) == ["c0", "c1"]
    own = {**trainer.settings, **trainer.own_names({"n_estimators": 2}), **settings}
    model = trainer.estimator(task)(**own).fit(frame, np.tile(y, 20))
    assert len(model.bins_) == 1
    assert len(model.predict(frame)) == 60


def test_parameters_have_the_librarys_own_names():
    catboost = TRAINERS["catboost"].own_names({"n_estimators": 3, "max_depth": 2, "l2_leaf_reg": 1})
    assert catboost == {"iterations": 3, "depth": 2, "l2_leaf_reg": 1}
    assert TRAINERS["sklearn"].own_names({"n_estimators": 3}) == {"max_iter": 3}
    assert TRAINERS["lightgbm"].own_names({"n_estimators": 3}) == {"n_estimators": 3}
    with pytest.raises(ValueError, match="params must not hold 'bin_cache'"):
        TRAINERS["lightgbm"].own_names({"bin_cache": "memory"})
    with pytest.raises(TypeError, match="params must be a dict"):
        TRAINERS["lightgbm"].own_names([("n_estimators", 3)])


def test_the_first_library_that_is_installed_is_chosen(monkeypatch):
    assert chosen_trainer(None) is TRAINERS["lightgbm"]
    assert chosen_trainer("sklearn") is TRAINERS["sklearn"]
    with pytest.raises(ValueError, match="library must be one of 'lightgbm', .*, got 'h2o'"):
        chosen_trainer("h2o")
    there = {"xgboost"}
    monkeypatch.setattr(trainers, "find_spec", lambda module: module if module in there else None)
    assert chosen_trainer(None) is TRAINERS["xgboost"]
    with pytest.raises(ImportError, match=r"LightGBM is not installed: pip install 'boostbins\[lightgbm\]'"):
        chosen_trainer("lightgbm")
    there.clear()
    with pytest.raises(ImportError, match="none of LightGBM, XGBoost, CatBoost and scikit-learn is installed"):
        chosen_trainer(None)
