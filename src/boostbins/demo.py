"""The main job on built-in data: a skewed table binned by each method, what each costs, and a picture.

Run it with ``python -m boostbins.demo [picture.png]``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbins import METHODS, Bins, fit_bins

ROWS = 200_000
SHOWN = {"quantile": "#b3541e", "kmeans": "#1b6ca8"}


def skewed_table(n: int = ROWS, seed: int = 0) -> dict[str, NDArray[np.float64]]:
    """Return columns of the kinds that quantile bins handle badly."""
    r = np.random.default_rng(seed)
    outlier = r.random(n) < 0.01
    return {
        "income": r.lognormal(10, 1, n),
        "claim": np.where(r.random(n) < 0.7, 0.0, np.round(r.pareto(1.5, n) * 1000, 2)),
        "sensor": r.standard_normal(n) + np.where(outlier, r.exponential(20, n), 0),
        "rooms": r.poisson(4, n).astype(float),
    }


def table_of_costs(table: dict[str, NDArray[np.float64]], max_bins: int) -> list[str]:
    """Return, as lines, the part of each column's variance that each method's bins lose."""
    lines = [
        f"{'lost variance, ' + str(max_bins) + ' bins':24}" + "".join(f"{name:>12}" for name in table) + f"{'time':>12}"
    ]
    for method in METHODS:
        start = time.perf_counter()
        bins = fit_bins(table, method, max_bins)
        elapsed = time.perf_counter() - start
        lost = bins.explained()["lost"]
        lines.append(f"  {method:22}" + "".join(f"{value:12.4%}" for value in lost) + f"{elapsed * 1000:9.0f} ms")
    return lines


def draw(column: NDArray[np.float64], name: str, bins: dict[str, Bins]) -> Any:
    """Return a figure: the column's histogram, and below it the cuts of each method."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (top, *rows) = plt.subplots(
        1 + len(bins), 1, figsize=(9, 3.6), sharex=True, height_ratios=[4, *[1] * len(bins)], layout="constrained"
    )
    top.hist(column, bins=200, color="#777777")
    top.set_yscale("log")
    top.set_ylabel("rows")
    top.set_title(f"{name}: where {len(next(iter(bins.values()))[name]) + 1} bins go", loc="left")
    for axes, (method, found) in zip(rows, bins.items(), strict=True):
        cuts = found[name]
        axes.vlines(cuts, 0, 1, color=SHOWN[method], linewidth=0.9)
        axes.set_yticks([])
        axes.set_ylabel(method, rotation=0, ha="right", va="center", color=SHOWN[method])
        axes.margins(y=0)
        beyond = int((cuts > np.quantile(column, 0.99)).sum())
        axes.text(
            1.005,
            0.5,
            f"{beyond} cuts in\nthe top 1 %",
            transform=axes.transAxes,
            va="center",
            fontsize=8,
            color=SHOWN[method],
        )
    for axes in (top, *rows):
        axes.spines[["top", "right"]].set_visible(False)
    rows[-1].set_xlabel(name)
    return figure


def main(arguments: list[str]) -> int:
    """Print the tables and write the picture."""
    if "-h" in arguments or "--help" in arguments or len(arguments) > 1:
        print(__doc__)
        return 0 if len(arguments) <= 1 else 2
    path = Path(arguments[0] if arguments else "demo.png")
    table = skewed_table()
    print(f"{ROWS:,} rows of skewed data, every row used. Less lost variance is more that a tree can see.\n")
    for max_bins in (255, 63):
        print("\n".join(table_of_costs(table, max_bins)), end="\n\n")
    print(fit_bins(table, "kmeans", 63).table("sensor"), end="\n\n")
    try:
        draw(table["sensor"], "sensor", {m: fit_bins(table, m, 63) for m in SHOWN}).savefig(path, dpi=150)
    except ImportError:
        print("For the picture: pip install 'boostbins[plot]'")
        return 0
    except OSError as error:
        print(f"cannot write the picture to {path}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"The cuts of quantile and k-means bins on 'sensor': {path.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
