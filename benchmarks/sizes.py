"""How fast at the sizes and on the columns that most people have, beside the peer that one would take instead.

    python benchmarks/sizes.py [--only WORD ...] [--save FILE | --check FILE]

CPU time of one process on one thread (but where threads are the point): the ratio of the best of several turns.
`--save` writes the ratios, `--check` says what got slower than those of a file by more than 15 %, and then ends with
1; `make bench-check` does it with those of the last release.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

from boostbins import fit_bins

SLOWER = 1.15
Run = Callable[[], Any]


class Case(NamedTuple):
    """Something to measure: ours and the peer's, and the ratio to reach."""

    name: str
    goal: float
    make: Callable[[], tuple[Run, Run]]
    repeats: int = 5
    allowance: float = 0.0  # seconds that ours may take longer, whatever the ratio
    clock: Callable[[], float] = time.process_time


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    X = r.standard_normal((rows, columns))
    X[:, ::2] = np.exp(1.5 * X[:, ::2])
    return X, np.log1p(X[:, 0]) + X[:, 1] * X[:, 3] + np.sqrt(X[:, 2]) + 0.1 * r.standard_normal(rows)


# ---- whole fits, and datasets

ESTIMATORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "LightGBM": ("boostbins.lightgbm", "LGBMRegressor", {"n_estimators": 100, "n_jobs": 1, "verbosity": -1}),
    "XGBoost": ("boostbins.xgboost", "XGBRegressor", {"n_estimators": 100, "n_jobs": 1}),
    "CatBoost": (
        "boostbins.catboost", "CatBoostRegressor",
        {"iterations": 100, "thread_count": 1, "verbose": False, "allow_writing_files": False},
    ),
    "HistGradientBoosting": (
        "boostbins.sklearn", "HistGradientBoostingRegressor", {"max_iter": 100, "early_stopping": False},
    ),
}  # fmt: skip
SIZES = ((500, 10), (5000, 10), (20_000, 16), (20_000, 30), (2000, 2000))


def fits() -> Iterator[Case]:
    for library, (module, name, params) in ESTIMATORS.items():
        for rows, columns in SIZES:
            if library != "LightGBM" and (rows, columns) in ((20_000, 30), (2000, 2000)):
                continue
            for method in ("kmeans", "auto"):

                def make(module=module, name=name, params=params, rows=rows, columns=columns, method=method):
                    estimator = getattr(__import__(module, fromlist=[name]), name)
                    X, y = table(rows, columns)
                    return (
                        lambda: estimator(bin_method=method, **params).fit(X, y),
                        lambda: estimator(bin_method=None, **params).fit(X, y),
                    )

                repeats = 2 if columns == 2000 else 7
                yield Case(f"fit, {library}, {rows:,} x {columns:,}, {method}", 1.05, make, repeats, 0.01)


def datasets() -> Iterator[Case]:
    def lightgbm(bin_method: str | None) -> Run:
        from boostbins.lightgbm import Dataset

        X, y = table(2000, 2000)
        return lambda: Dataset(X, y, bin_method=bin_method, params={"num_threads": 1, "verbosity": -1}).construct()

    def xgboost(bin_method: str | None) -> Run:
        from boostbins.xgboost import QuantileDMatrix

        X, y = table(2000, 2000)
        return lambda: QuantileDMatrix(X, y, bin_method=bin_method, nthread=1)

    for name, build in (("LightGBM's Dataset", lightgbm), ("XGBoost's QuantileDMatrix", xgboost)):
        yield Case(f"{name}, 2,000 x 2,000", 1.3, lambda build=build: (build("kmeans"), build(None)), 3)


# ---- codes


def codes() -> Iterator[Case]:
    for columns in (500, 2000, 8000):

        def make(columns=columns):
            X = np.random.default_rng(0).lognormal(0, 1, (1000, columns))
            bins, some = fit_bins(X, "kmeans", n_threads=1), np.ascontiguousarray(X[:100])

            def search() -> None:
                for cuts, column in zip(bins.cuts, some.T, strict=True):
                    np.searchsorted(cuts, column)

            return (lambda: bins.encode(some, n_threads=1)), search

        yield Case(f"encode, 100 x {columns:,}, beside np.searchsorted", 2.0, make, 15)

    def decoded(columns: int):
        X = np.random.default_rng(0).lognormal(0, 1, (1000, columns))
        bins = fit_bins(X, "kmeans", n_threads=1)
        given = bins.encode(X[:100])
        return lambda: bins.decode(given)

    yield Case("decode, 100 x 8,000, beside 100 x 4,000", 2.2, lambda: (decoded(8000), decoded(4000)), 3)

    def one_row():
        X = np.random.default_rng(0).lognormal(0, 1, (1000, 10))
        bins, row = fit_bins(X, "kmeans"), X[:1]

        def ours() -> None:
            for _ in range(1000):
                bins.encode(row, n_threads=1)

        def forty_microseconds() -> None:
            end = time.process_time() + 0.04
            while time.process_time() < end:
                pass

        return ours, forty_microseconds

    yield Case("encode, one row of 10 columns, beside 40 microseconds", 1.0, one_row)

    def zeros():
        x = with_zeros(1_000_000)
        bins = fit_bins(x[:, None], "kmeans")
        return (lambda: bins.encode(x[:, None], n_threads=1)), (lambda: np.searchsorted(bins[0], x))

    yield Case("encode, 1e6 values, 90 % zeros, beside np.searchsorted", 0.2, zeros)


# ---- bins of one column


def with_zeros(n: int) -> np.ndarray:
    r = np.random.default_rng(0)
    return np.where(r.random(n) < 0.9, 0.0, r.lognormal(0, 1, n))


def with_missing(n: int) -> np.ndarray:
    r = np.random.default_rng(0)
    return np.where(r.random(n) < 0.5, np.nan, r.lognormal(0, 1, n))


def prices(n: int) -> np.ndarray:
    return np.round(np.random.default_rng(0).lognormal(3, 1, n), 2)


def lognormal(n: int) -> np.ndarray:
    return np.random.default_rng(0).lognormal(0, 1, n)


COLUMNS: dict[str, Callable[[int], np.ndarray]] = {
    "lognormal": lognormal, "90 % zeros": with_zeros, "50 % NaN": with_missing, "prices": prices,
}  # fmt: skip


def columns() -> Iterator[Case]:
    def kmeans(x: np.ndarray) -> Run:
        return lambda: fit_bins(x[:, None], "kmeans", n_threads=1)

    for exponent, goal in ((6, 1.0), (7, 0.5)):
        for name, column in COLUMNS.items():

            def make(column=column, exponent=exponent):
                x = column(10**exponent)
                return kmeans(x), lambda: np.sort(x)

            yield Case(f"kmeans, 1e{exponent} rows, {name}, beside np.sort", goal, make, 5 if exponent == 6 else 3)
    for name in ("90 % zeros", "50 % NaN"):

        def beside_lognormal(name=name):
            return kmeans(COLUMNS[name](10**6)), kmeans(lognormal(10**6))

        yield Case(f"kmeans, 1e6 rows, {name}, beside lognormal", 1.5, beside_lognormal)
    for exponent in (4, 5, 6, 7):
        for name in ("lognormal", "50 % NaN"):

            def beside_scikit_learn(name=name, exponent=exponent):
                x = COLUMNS[name](10**exponent)
                return kmeans(x), lambda: _BinMapper(n_bins=256, n_threads=1, random_state=0).fit(x[:, None])

            repeats = {4: 40, 5: 15, 6: 5, 7: 3}[exponent]
            yield Case(
                f"kmeans, 1e{exponent} rows, {name}, beside scikit-learn's _BinMapper",
                1.0,
                beside_scikit_learn,
                repeats,
            )
    for exponent, goal in ((4, 1.5), (5, 1.5), (6, 1.5), (7, 2.0)):
        for name in ("lognormal", "prices"):

            def auto(name=name, exponent=exponent):
                x = COLUMNS[name](10**exponent)
                y = np.log1p(x) + np.random.default_rng(1).standard_normal(len(x))
                return (lambda: fit_bins(x[:, None], "auto", y=y, n_threads=1)), kmeans(x)

            yield Case(
                f"auto, 1e{exponent} rows, {name}, beside kmeans", goal, auto, {4: 40, 5: 15, 6: 5, 7: 3}[exponent]
            )

    def two_threads():
        x = lognormal(10**7)[:, None]
        return (lambda: fit_bins(x, "kmeans", n_threads=2)), (lambda: fit_bins(x, "kmeans", n_threads=1))

    yield Case("kmeans, 1e7 rows, two threads beside one (elapsed)", 1 / 1.7, two_threads, 3, clock=time.perf_counter)


# ---- the command line


def commands() -> Iterator[Case]:
    def command(*words: str) -> tuple[Run, Run]:
        folder = tempfile.mkdtemp()
        path = Path(folder) / "small.csv"
        X, y = table(1000, 5)
        pd.DataFrame(X, columns=list("abcde")).assign(target=y).to_csv(path, index=False)

        def run() -> None:
            subprocess.run(
                [sys.executable, "-m", "boostbins", *words, str(path)], check=True, capture_output=True, cwd=folder
            )

        def second() -> None:
            subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"], check=True)

        return run, second

    yield Case(
        "boostbins fit, a small file, beside a second",
        0.6,
        lambda: command("fit", "-o", "bins.json"),
        3,
        clock=of_children,
    )
    yield Case(
        "boostbins report, a small file, beside a second", 0.9, lambda: command("report", "-q"), 3, clock=of_children
    )


def of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


CASES = (fits, datasets, codes, columns, commands)


def measured(case: Case) -> tuple[float, float, float]:
    """Return the ratio, and the least seconds of ours and of the peer's, taking turns."""
    ours, theirs = case.make()
    least = [float("inf")] * 2
    for _ in range(case.repeats):
        for i, run in enumerate((ours, theirs)):
            begin = case.clock()
            run()
            least[i] = min(least[i], case.clock() - begin)
    return least[0] / least[1], *least


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="cases whose names hold one of these")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--save", type=Path, help="write the ratios to a file")
    what.add_argument("--check", type=Path, help="compare with the ratios in a file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    before = json.loads(options.check.read_text()) if options.check else {}
    cases = [case for cases in CASES for case in cases()]
    if options.only:
        cases = [case for case in cases if any(word in case.name for word in options.only)]
    if options.check:
        cases = [case for case in cases if case.name in before]
    found, slower = {}, []
    for case in cases:
        ratio, ours, theirs = measured(case)
        found[case.name] = round(ratio, 3)
        reached = ratio <= case.goal or ours - theirs <= case.allowance
        note = "" if reached else "  NOT REACHED"
        if case.name in before:
            if ratio > SLOWER * before[case.name]:  # once more: a busy machine is no slower code
                ratio = min(ratio, measured(case)[0])
            if ratio > SLOWER * before[case.name]:
                slower.append(case.name)
            note = f"  before {before[case.name]:.2f}" + ("  SLOWER" if case.name in slower else "")
        print(f"{case.name:72} {ratio:7.2f}   goal {case.goal:.2f}{note}   ({ours:.4g} s)", flush=True)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1) + "\n")
    if slower:
        print(f"slower by more than {SLOWER - 1:.0%}: {'; '.join(slower)}", file=sys.stderr)
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
