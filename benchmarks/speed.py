"""How fast, beside a peer that does the comparable thing on the same data in the same run.

    python benchmarks/speed.py [--quick]

Prints ratios: the machine may be slow or busy, both sides are. One thread, 255 bins, best of several, turn by turn.
`--quick` leaves out scikit-learn's KMeans on 1e6 rows, which takes minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import kmeans1d
import lightgbm as lgb
import numpy as np
import xgboost as xgb
from sklearn.cluster import KMeans
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from threadpoolctl import threadpool_limits

from boostbins import fit_bins

B = 255


def columns(n: int) -> dict[str, np.ndarray]:
    r = np.random.default_rng(0)
    return {
        "normal": r.standard_normal(n),
        "lognormal": r.lognormal(0, 1, n),
        "uniform": r.random(n),
        "timestamps": 1.7e9 + 1e5 * r.standard_normal(n),
        "integers": r.poisson(50, n).astype(float),
        "cents, half zero": np.where(r.random(n) < 0.5, 0, np.round(r.lognormal(3, 1, n), 2)),
        "Pareto (heavy)": r.pareto(1.5, n),
        "Cauchy (heavy)": r.standard_cauchy(n),
    }


def best(runs: int, **contenders: Callable[[], Any]) -> dict[str, float]:
    """The least time of each, taking turns."""
    times = {name: float("inf") for name in contenders}
    for _ in range(runs):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def row(what: str, ours: float, theirs: float, goal: str, *, faster: bool = False) -> None:
    ratio = f"{theirs / ours:,.1f}x faster" if faster else f"{ours / theirs:.2f}x"
    print(f"{what:62} {ratio:>16}   goal {goal}", flush=True)


def against_sorting() -> None:
    for n, runs in ((10_000_000, 3), (1_000_000, 7)):
        print(f"\nsummary + cuts, {n:.0e} rows, beside np.sort")
        for name, x in columns(n).items():
            found = best(
                runs,
                sort=lambda x=x: np.sort(x),
                kmeans=lambda x=x: fit_bins(x, "kmeans", B, n_threads=1),
                optimal=lambda x=x: fit_bins(x, "optimal", B, n_threads=1),
                quantile=lambda x=x: fit_bins(x, "quantile", B, n_threads=1),
            )
            goal = "<= 1" if n == 1_000_000 else "<= 0.45" if "heavy" in name else "<= 0.3"
            for method in ("kmeans", "optimal", "quantile"):
                row(f"  {method}, {name}", found[method], found["sort"], goal)
    x = columns(1_000_000)["lognormal"]
    found = best(
        5,
        percentile=lambda: np.percentile(x, np.arange(1, B) / B * 100),
        kmeans=lambda: fit_bins(x, "kmeans", B, n_threads=1),
    )
    row("kmeans, 1e+06 rows, beside np.percentile of 254 cuts", found["kmeans"], found["percentile"], "<= 0.35")


def against_libraries() -> None:
    n = 10_000_000
    X = np.random.default_rng(0).lognormal(0, 1, (n, 1))
    y = np.zeros(n)

    def ours() -> None:
        bins = fit_bins(X, "kmeans", B, n_threads=1)
        bins.encode(X, n_threads=1)

    def lightgbm() -> None:
        lgb.Dataset(X, y, params={"max_bin": B, "num_threads": 1, "verbose": -1}).construct()

    def xgboost() -> None:
        xgb.QuantileDMatrix(X, y, max_bin=B, nthread=1)

    print("\nfit + encode, 1e+07 rows")
    found = best(3, ours=ours, lightgbm=lightgbm, xgboost=xgboost)
    row("  beside LightGBM's Dataset (which bins 200,000 of the rows)", found["ours"], found["lightgbm"], "<= 0.08")
    row("  beside XGBoost's QuantileDMatrix", found["ours"], found["xgboost"], "<= 0.05")


def against_solvers(*, quick: bool) -> None:
    print("\nk-means")
    n = 100_000 if quick else 1_000_000
    x = np.random.default_rng(0).lognormal(0, 1, n)
    seeds = np.quantile(x, np.linspace(0, 1, B))
    kmeans = KMeans(B, init=seeds[:, None], n_init=1, max_iter=300, tol=1e-4)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        theirs = best(1, sklearn=lambda: kmeans.fit(x[:, None]))["sklearn"]
    ours = best(5, ours=lambda: fit_bins(x, "kmeans", B, n_threads=1))["ours"]
    row(f"  kmeans beside scikit-learn's KMeans, same seeds, {n:.0e} rows", ours, theirs, ">= 1000x", faster=True)
    centers = np.sort(kmeans.cluster_centers_.ravel())
    cuts = (centers[1:] + centers[:-1]) / 2
    excess = distortion(x, fit_bins(x, "kmeans", B)[0]) / distortion(x, cuts) - 1
    print(f"{'  its distortion, relative to scikit-learn':62} {excess:>+16.4%}   goal within 0.1 %")
    x = np.random.default_rng(0).lognormal(0, 1, 53_940)
    theirs = best(1, kmeans1d=lambda: kmeans1d.cluster(x, B))["kmeans1d"]
    ours = best(5, ours=lambda: fit_bins(x, "optimal", B, n_threads=1, exact=True))["ours"]
    row("  optimal, exact, beside kmeans1d, 53,940 rows", ours, theirs, ">= 150x", faster=True)
    for name, x in columns(1_000_000).items():
        if name == "integers":
            continue
        exact = distortion(x, fit_bins(x, "optimal", B, exact=True)[0])
        excess = distortion(x, fit_bins(x, "optimal", B)[0]) / exact - 1
        print(f"{f'  optimal on cells beside exact, 1e+06 rows, {name}':62} {excess:>+16.4%}   goal within 0.1 %")


def distortion(x: np.ndarray, cuts: np.ndarray) -> float:
    s = np.sort(x)
    groups = np.split(s, np.searchsorted(s, cuts, side="right"))
    return float(sum(((g - g.mean()) ** 2).sum() for g in groups if len(g)))


def encoding() -> None:
    print("\nencode, 1e+07 values")
    for name in ("normal", "lognormal", "Cauchy (heavy)"):
        X = columns(10_000_000)[name][:, None]
        bins = fit_bins(X, "kmeans", B)
        mapper = _BinMapper(n_bins=256, n_threads=1).fit(X[:100_000])
        mapper.bin_thresholds_ = [bins[0]]
        mapper.n_bins_non_missing_ = np.array([B], np.uint32)
        found = best(
            3,
            ours=lambda X=X, bins=bins: bins.encode(X, n_threads=1),
            searchsorted=lambda X=X, bins=bins: np.searchsorted(bins[0], X[:, 0]),
            sklearn=lambda X=X, mapper=mapper: mapper.transform(X),
        )
        row(f"  {name}, beside np.searchsorted", found["ours"], found["searchsorted"], ">= 10x", faster=True)
        row(f"  {name}, beside scikit-learn's _BinMapper", found["ours"], found["sklearn"], ">= 3x", faster=True)


def threads() -> None:
    print("\ntwo threads beside one, 1e+06 x 20")
    for order in ("F", "C"):
        X = np.asarray(np.random.default_rng(0).lognormal(0, 1, (1_000_000, 20)), order=order)
        bins = fit_bins(X, "kmeans", B)
        found = best(
            3,
            one=lambda X=X: fit_bins(X, "kmeans", B, n_threads=1),
            two=lambda X=X: fit_bins(X, "kmeans", B, n_threads=2),
            encode_one=lambda X=X, bins=bins: bins.encode(X, n_threads=1),
            encode_two=lambda X=X, bins=bins: bins.encode(X, n_threads=2),
        )
        row(f"  fit, {order}-ordered", found["two"], found["one"], ">= 1.7x", faster=True)
        row(f"  encode, {order}-ordered", found["encode_two"], found["encode_one"], ">= 1.7x", faster=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    against_sorting()
    against_libraries()
    encoding()
    threads()
    against_solvers(quick=quick)


if __name__ == "__main__":
    main()
