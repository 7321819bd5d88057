"""What choosing costs: the time of "auto" and "hybrid" beside that of "kmeans".

    python benchmarks/auto.py [--columns 20] [--repeats 7]

Times of `fit_bins` on skewed columns, one thread, best of several, as ratios to "kmeans" in the same run.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from boostbins import fit_bins

ROWS = (2_000, 20_000, 100_000, 1_000_000)
SHOWN = ("hybrid", "auto", "auto, 63 bins", "auto, 5 classes", "auto, 16 classes")


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lognormal columns in Fortran order, and a target that lives in some of the tails."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.lognormal(0, 2, (columns, rows)).T)
    return X, X[:, 0] + np.log(X[:, 1:3]).sum(axis=1) + rng.normal(size=rows)


def classes(y: np.ndarray, n: int) -> np.ndarray:
    """Return whether a row is of each of some classes, as estimators have them."""
    return np.eye(n, dtype=bool)[np.digitize(y, np.quantile(y, np.arange(1, n) / n))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    print(f"{options.columns} columns, 255 bins, one thread; milliseconds per column, best of {options.repeats}")
    print(f"{'rows':>10} {'kmeans':>8} {''.join(f'{name:>18}' for name in SHOWN)}")
    for rows in ROWS:
        X, y = table(rows, options.columns if rows < 1_000_000 else max(options.columns // 4, 1))
        five, sixteen = classes(y, 5), classes(y, 16)
        calls = {
            "kmeans": lambda X=X: fit_bins(X, "kmeans", n_threads=1),
            "kmeans, 63 bins": lambda X=X: fit_bins(X, "kmeans", 63, n_threads=1),
            "hybrid": lambda X=X: fit_bins(X, "hybrid", n_threads=1),
            "auto": lambda X=X, y=y: fit_bins(X, "auto", y=y, n_threads=1),
            "auto, 63 bins": lambda X=X, y=y: fit_bins(X, "auto", 63, y=y, n_threads=1),
            "auto, 5 classes": lambda X=X, y=five: fit_bins(X, "auto", y=y, n_threads=1),
            "auto, 16 classes": lambda X=X, y=sixteen: fit_bins(X, "auto", y=y, n_threads=1),
        }
        best = dict.fromkeys(calls, np.inf)
        for _ in range(options.repeats):  # in turns, so that all meet the same noise
            for name, call in calls.items():
                begin = time.perf_counter()
                call()
                best[name] = min(best[name], (time.perf_counter() - begin) / X.shape[1] * 1e3)
        ratios = [
            f"{best[name]:6.2f} ({best[name] / best['kmeans, 63 bins' if '63' in name else 'kmeans']:.2f} x)"
            for name in SHOWN
        ]
        print(f"{rows:>10,} {best['kmeans']:>8.2f} {''.join(f'{ratio:>18}' for ratio in ratios)}")


if __name__ == "__main__":
    main()
