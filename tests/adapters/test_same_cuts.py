"""The same cuts, the same model: on tables of the paper's benchmark, of both tracks."""

from __future__ import annotations

import os
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn import ensemble

import boostbins.catboost
import boostbins.lightgbm
import boostbins.sklearn
import boostbins.xgboost
from boostbins import Bins

FOLDER = Path(os.environ.get("BOOSTBINS_DATA", "nowhere"))
TABLES = sorted(FOLDER.glob("*/*.parquet"))[1::3]
pytestmark = pytest.mark.skipif(not TABLES, reason="BOOSTBINS_DATA names no folder of the paper's datasets")


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_librarys_own_cuts_train_its_own_model(path):
    table = pd.read_parquet(path).sample(frac=1, random_state=0)[:2000]
    X, y = table.iloc[:, :-1], pd.factorize(table.iloc[:, -1], sort=True)[0].astype(float)
    X.columns = [f"c{i}" for i in range(X.shape[1])]

    few = {"n_estimators": 5, "verbosity": -1, "n_jobs": 1, "extra_trees": True, "colsample_bytree": 0.7}
    own = boostbins.lightgbm.from_native(lightgbm.Dataset(X, y, params={"verbosity": -1}))
    ours = boostbins.lightgbm.LGBMRegressor(bin_method=own, max_bin=257, **few).fit(X, y)
    assert np.array_equal(ours.predict(X), lightgbm.LGBMRegressor(**few).fit(X, y).predict(X))

    few = {"n_estimators": 5, "n_jobs": 1, "subsample": 0.7, "colsample_bytree": 0.6}
    own = boostbins.xgboost.from_native(xgboost.QuantileDMatrix(X, y, max_bin=256))
    ours = boostbins.xgboost.XGBRegressor(bin_method=own, max_bin=257, **few).fit(X, y)
    assert np.array_equal(ours.predict(X), xgboost.XGBRegressor(**few).fit(X, y).predict(X))

    few = {"iterations": 5, "thread_count": 1, "verbose": False, "allow_writing_files": False, "ignored_features": [0]}
    pool = catboost.Pool(X, y)
    pool.quantize(border_count=254)
    found = boostbins.catboost.from_native(pool)
    own = Bins([found[name] if name in found.names else [] for name in X.columns], X.columns)
    ours = boostbins.catboost.CatBoostRegressor(bin_method=own, **few).fit(catboost.Pool(X, y))
    assert np.array_equal(ours.predict(X), catboost.CatBoostRegressor(**few).fit(X, y).predict(X))

    few = {"max_iter": 5, "random_state": 0, "max_features": 0.7}
    native = ensemble.HistGradientBoostingRegressor(**few).fit(X, y)
    ours = boostbins.sklearn.HistGradientBoostingRegressor(bin_method=boostbins.sklearn.from_native(native), **few)
    assert np.array_equal(ours.fit(X, y).predict(X), native.predict(X))
