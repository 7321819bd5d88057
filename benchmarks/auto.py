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


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lognormal columns in Fortran order, and a target that lives in some of the tails."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.lognormal(0, 2, (columns, rows)).T)
    return X, X[:, 0] + np.log(X[:, 1:3]).sum(axis=1) + rng.normal(size=rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    print(f"{options.columns} columns, 255 bins, one thread; milliseconds per column, best of {options.repeats}")
    print(f"{'rows':>10} {'kmeans':>8} {'hybrid':>14} {'auto':>14} {'auto, 5 classes':>16} {'auto, 63 bins':>15}")
    for rows in ROWS:
        X, y = table(rows, options.columns if rows < 1_000_000 else max(options.columns // 4, 1))
        classes = np.eye(5, dtype=bool)[np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))]  # as estimators have them
        calls = {
            "kmeans": lambda X=X: fit_bins(X, "kmeans", n_threads=1),
            "kmeans, 63 bins": lambda X=X: fit_bins(X, "kmeans", 63, n_threads=1),
            "hybrid": lambda X=X: fit_bins(X, "hybrid", n_threads=1),
            "auto": lambda X=X, y=y: fit_bins(X, "auto", y=y, n_threads=1),
            "auto, 5 classes": lambda X=X, y=classes: fit_bins(X, "auto", y=y, n_threads=1),
            "auto, 63 bins": lambda X=X, y=y: fit_bins(X, "auto", 63, y=y, n_threads=1),
        }
        best = dict.fromkeys(calls, np.inf)
        for _ in range(options.repeats):  # in turns, so that all meet the same noise
            for name, call in calls.items():
                begin = time.perf_counter()
                call()
                best[name] = min(best[name], (time.perf_counter() - begin) / X.shape[1] * 1e3)
        ratios = [
            f"{best[name]:6.2f} ({best[name] / best['kmeans, 63 bins' if '63' in name else 'kmeans']:.2f} x)"
            for name in ("hybrid", "auto", "auto, 5 classes", "auto, 63 bins")
        ]
        print(f"{rows:>10,} {best['kmeans']:>8.2f} {ratios[0]:>14} {ratios[1]:>14} {ratios[2]:>16} {ratios[3]:>15}")


if __name__ == "__main__":
    main()
