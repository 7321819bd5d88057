"""What bin_method="kmeans" costs: the fit of each library with it, beside the library's own, in the same run.

python benchmarks/adapters.py [--rows 1000000] [--columns 20] [--trees 100] [--repeats 3] [library ...]

Times alternate between the two, best of several; peak memory is that of a process that does one fit and nothing else.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import subprocess
import sys
import time

import numpy as np

# library: module, class, its parameters, goal for the time
LIBRARIES = {
    "lightgbm": ("lightgbm", "LGBMRegressor", {"n_estimators": "trees", "verbosity": -1}, 1.05),
    "xgboost": ("xgboost", "XGBRegressor", {"n_estimators": "trees"}, 1.05),
    "catboost": (
        "catboost",
        "CatBoostRegressor",
        {"iterations": "trees", "verbose": False, "allow_writing_files": False},
        1.10,
    ),
    "sklearn": (
        "sklearn.ensemble",
        "HistGradientBoostingRegressor",
        {"max_iter": "trees", "early_stopping": False},
        1.10,
    ),
}
MEMORY_GOAL = 1.1


def data(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    X = np.empty((rows, columns))
    for j in range(columns):
        X[:, j] = r.standard_normal(rows) if j % 2 else r.lognormal(0, 1.5, rows)
    return X, np.log1p(X[:, 0]) + X[:, 1] * X[:, 3] + np.sqrt(X[:, 2]) + 0.1 * r.standard_normal(rows)


def model(library: str, ours: bool, trees: int):
    module, name, params, _ = LIBRARIES[library]
    params = {key: trees if value == "trees" else value for key, value in params.items()}
    if not ours:
        return getattr(importlib.import_module(module), name)(**params)
    adapter = importlib.import_module(f"boostbins.{library}")
    return getattr(adapter, name)(bin_method="kmeans", **params)


def child(task: str, library: str, rows: int, columns: int, trees: int, repeats: int) -> None:
    X, y = data(rows, columns)
    if task == "time":
        times = {False: [], True: []}
        for kind in (False, True):  # what is set up once is not counted
            model(library, kind, 2).fit(X[:1000], y[:1000])
        for _ in range(repeats):
            for kind in (False, True):
                start = time.perf_counter()
                model(library, kind, trees).fit(X, y)
                times[kind].append(time.perf_counter() - start)
        print(json.dumps([min(times[False]), min(times[True])]))
    else:
        model(library, task == "ours", min(trees, 5)).fit(X, y)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def run(*arguments: object) -> object:
    command = [sys.executable, "-W", "ignore", __file__, "--child", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", metavar="library", help=f"of {', '.join(LIBRARIES)}; all if none")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if unknown := [name for name in options.libraries if name not in LIBRARIES]:
        parser.error(f"no library {unknown[0]!r}: choose from {', '.join(LIBRARIES)}")
    size = (options.rows, options.columns, options.trees, options.repeats)
    print(f"fit of {options.rows:,} x {options.columns}, {options.trees} trees, best of {options.repeats}")
    print(f"{'library':10} {'own, s':>8} {'kmeans, s':>10} {'ratio':>6} {'goal':>6}   {'peak memory':>11} {'goal':>5}")
    for library in options.libraries or LIBRARIES:
        own, ours = run("time", library, *size)
        memory = run("ours", library, *size) / run("own", library, *size)
        goal = LIBRARIES[library][-1]
        print(
            f"{library:10} {own:8.2f} {ours:10.2f} {ours / own:6.2f} {goal:6.2f}   {memory:11.2f} {MEMORY_GOAL:5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4], *map(int, sys.argv[4:]))
    else:
        main()
