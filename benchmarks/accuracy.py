"""What bin_method="kmeans" gains, and where it does not: each library with its own bins and with ours, same draws.

python benchmarks/accuracy.py [--draws 10] [--datasets NAME ...] [--libraries NAME ...]

Error is the mean squared error on a held-out fifth, as a share of the target's variance there; libraries with their
default parameters, but for 200 trees of CatBoost. "change" is that of the mean error, "better" the number of draws on
which k-means has the smaller error, and p that of a paired two-sided t-test over the draws. CatBoost is shown with its
UniformAndQuantiles too.

`synthetic` is the generator of Labovich (TMLR 2025): three normal features, to 1 % of the values an Exp(20) is added,
the target is their sum + N(0, 0.1), n = 5000. The others are of the paper's benchmark, from the folder BOOSTBINS_DATA.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel
from sklearn.model_selection import train_test_split

from boostbins.catboost import CatBoostRegressor
from boostbins.lightgbm import LGBMRegressor
from boostbins.sklearn import HistGradientBoostingRegressor
from boostbins.xgboost.estimators import XGBRegressor

REAL = ["Brazilian_houses", "medical_charges", "houses", "diamonds", "elevators", "wine_quality"]
CATBOOST = {"iterations": 200, "verbose": False, "allow_writing_files": False}

LIBRARIES: dict[str, Callable[[Any, int], Any]] = {
    "LightGBM": lambda method, bins: LGBMRegressor(bin_method=method, max_bin=bins, verbosity=-1),
    "XGBoost": lambda method, bins: XGBRegressor(bin_method=method, max_bin=bins),
    "CatBoost": lambda method, bins: CatBoostRegressor(bin_method=method, border_count=bins - 1, **CATBOOST),
    "CatBoost, UniformAndQuantiles": lambda method, bins: CatBoostRegressor(
        bin_method=method,
        border_count=bins - 1,
        **({"feature_border_type": "UniformAndQuantiles"} if method is None else {}),
        **CATBOOST,
    ),
    "scikit-learn": lambda method, bins: HistGradientBoostingRegressor(
        bin_method=method, max_bins=bins, random_state=0
    ),
}


def synthetic(seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = r.standard_normal((5000, 3))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X += np.where(r.random(X.shape) < 0.01, r.exponential(20, X.shape), 0)
    return X, X.sum(axis=1) + 0.1 * r.standard_normal(len(X))


def real(name: str) -> Callable[[int], tuple[np.ndarray, np.ndarray]] | None:
    path = Path(os.environ.get("BOOSTBINS_DATA", "../shared/datasets")) / "regression" / f"{name}.parquet"
    if not path.exists():
        print(f"({name} is not in {path.parent}: left out)")
        return None
    frame = pd.read_parquet(path)
    X, y = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy(float)
    return lambda seed: (X, y)


def errors(draw: Callable[[int], Any], make: Callable[[Any, int], Any], bins: int, draws: int) -> np.ndarray:
    """Return the error of the library's own cuts and of ours, per draw."""
    found = []
    for seed in range(draws):
        X, y = draw(seed)
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
        found.append(
            [
                np.mean((make(method, bins).fit(X_train, y_train).predict(X_test) - y_test) ** 2) / np.var(y_test)
                for method in (None, "kmeans")
            ]
        )
    return np.array(found).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--datasets", nargs="+", default=["synthetic", *REAL])
    parser.add_argument("--libraries", nargs="+", default=list(LIBRARIES), choices=list(LIBRARIES))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    print("| dataset | library | bins | own | kmeans | change | better | p |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.datasets:
        draw = synthetic if name == "synthetic" else real(name)
        for library in options.libraries if draw else ():
            for bins in (255, 63):
                own, ours = errors(draw, LIBRARIES[library], bins, options.draws)
                p = ttest_rel(own, ours).pvalue if options.draws > 1 and (own != ours).any() else 1.0
                change = ours.mean() / own.mean() - 1
                print(
                    f"| {name} | {library} | {bins} | {own.mean():.4f} | {ours.mean():.4f} | {change:+.1%} | "
                    f"{(ours < own).sum()}/{options.draws} | {p:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
