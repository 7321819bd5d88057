"""Draw the pictures of the site and of the README, from what the library really does.

Run it with ``python docs/pictures.py [folder]``; the folder is docs/pictures if none is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch

from boostbins import METHODS, Bins, ColumnSummary, fit_bins, kmeans, optimal, quantile, report
from boostbins.cli.demo import skewed_table

COLOR = {
    "quantile": "#b3541e", "kmeans": "#1b6ca8", "optimal": "#2e7d4f", "uniform": "#7a5195",
    "hybrid": "#0e7c7b", "auto": "#b01e68",
}  # fmt: skip
GREY, INK, PALE, PALER = "#777777", "#222222", "#cfe0ee", "#eef4f9"

mpl.rcParams |= {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "savefig.facecolor": "white",  # on a dark page too
    "text.color": INK,
}


def flow() -> Any:
    """The way from a table to a trained model."""
    figure, axes = plt.subplots(figsize=(9, 2.5))
    axes.set(xlim=(-1, 101), ylim=(0, 27))
    axes.axis("off")
    boxes = [
        (0, "your table", "every row,\none column at a time"),
        (21, "ColumnSummary", "at most 32,768 cells,\nadded up with +"),
        (42, "method", "(summary, max_bins)\n→ cuts"),
        (63, "Bins", "the cuts of all columns,\nx <= cut, JSON"),
        (84, "the library", "LightGBM, XGBoost,\nCatBoost, scikit-learn"),
    ]
    for i, (x, title, text) in enumerate(boxes):
        fill = "#ffffff" if i in (0, 4) else PALER
        axes.add_patch(FancyBboxPatch((x, 11), 15.5, 14, "round,pad=0.3", facecolor=fill, edgecolor=COLOR["kmeans"]))
        axes.text(x + 7.75, 21.5, title, ha="center", va="center", weight="bold", fontsize=9.2)
        axes.text(x + 7.75, 15.5, text, ha="center", va="center", fontsize=7.6)
        if i:
            axes.annotate("", (x - 0.5, 18), (x - 5, 18), arrowprops={"arrowstyle": "-|>", "color": INK})
    axes.plot([91.75, 91.75, 70.75, 70.75], [10, 5, 5, 8], color=COLOR["quantile"], linewidth=1.2)
    axes.annotate("", (70.75, 10.5), (70.75, 6), arrowprops={"arrowstyle": "-|>", "color": COLOR["quantile"]})
    axes.text(81.25, 1.6, "read back and compared: a difference is an error", ha="center", color=COLOR["quantile"])
    return figure


def rule() -> Any:
    """Which bin a value is in."""
    cuts = [0.5, 2.0, 3.5]
    bins = Bins([cuts])
    figure, axes = plt.subplots(figsize=(9, 2.4))
    axes.set(xlim=(-1.2, 6.6), ylim=(-0.95, 1.35))
    axes.axis("off")
    for i, (low, high) in enumerate(zip([-1.0, *cuts], [*cuts, 5.0], strict=True)):
        axes.axvspan(low, high, 0.42, 0.62, color=PALE if i % 2 else PALER)
        axes.text((low + high) / 2, 0.98, f"bin {i}", ha="center", weight="bold", color=COLOR["kmeans"])
    for cut in cuts:
        axes.plot([cut, cut], [0.0, 0.75], color=COLOR["kmeans"], linewidth=2)
        axes.text(cut, 0.82, f"cut {cut}", ha="center", color=COLOR["kmeans"], fontsize=8)
    shown = [(-1.0, -np.inf), (0.1, 0.1), (0.5, 0.5), (1.2, 1.2), (2.0, 2.0), (2.9, 2.9), (4.2, 100.0), (5.0, np.inf)]
    for at, value in [*shown, (6.1, np.nan)]:
        code = bins.encode([[value]])[0, 0]
        axes.plot(at, 0.24, "o", color=INK, markersize=6)
        axes.text(at, -0.22, f"{value:g}" if np.isfinite(value) else str(value), ha="center")
        axes.text(at, -0.62, f"code {code}", ha="center", fontsize=8, color=GREY)
    axes.text(6.1, 0.98, "no bin", ha="center", weight="bold", color=GREY)
    axes.set_title("A value at a cut belongs to the bin on its left; infinities to the end bins")
    return figure


def cells() -> Any:
    """Levels of cells, and how wide the cells of a summary are."""
    x = np.random.default_rng(0).lognormal(0, 1, 20_000)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), width_ratios=[1.1, 1])
    for row, limit in enumerate((16, 32, 64, 128)):
        low, high = ColumnSummary(x, max_cells=limit).cell_ends
        fill = [PALE, COLOR["kmeans"]]
        for i, (a, b) in enumerate(zip(low, high, strict=True)):
            left.barh(row, b - a, 0.8, a, color=fill[i % 2], edgecolor="white", linewidth=0.4)
    left.set(xlim=(0, 8.2), xlabel="value", yticks=range(4), title="A coarser cell is a union of finer ones")
    left.set_yticklabels([f"at most {n}\ncells" for n in (16, 32, 64, 128)], fontsize=8)
    left.tick_params(left=False)
    left.spines["left"].set_visible(False)
    summary = ColumnSummary(np.random.default_rng(0).standard_normal(1_000_000))
    low, high = summary.cell_ends
    inner = (low > 0) & (low > summary.min) & (high < summary.max)
    right.loglog(low[inner], (high - low)[inner], ".", markersize=2, color=COLOR["kmeans"])
    right.set(xlabel="value (of 1,000,000 normal ones)", ylabel="width of its cell", xlim=(2e-6, 20), ylim=(3e-9, 4e-3))
    right.set_title(f"A summary of {summary.n_cells:,} cells")
    right.annotate("one width for all", (0.6, 2.7e-4), (3e-3, 1.4e-3), arrowprops={"arrowstyle": "->"}, ha="center")
    right.annotate(
        "in proportion\nto the value", (1.2e-3, 1.6e-6), (4e-2, 4e-8), arrowprops={"arrowstyle": "->"}, ha="center"
    )
    return figure


def merge() -> Any:
    """Summaries of parts add up to that of the whole."""
    x = np.random.default_rng(3).lognormal(0, 0.6, 3000)
    parts = [ColumnSummary(part, max_cells=40) for part in (x[:600], x[600:])]
    whole = parts[0] + parts[1]
    assert whole == ColumnSummary(np.random.default_rng(1).permutation(x), max_cells=40)
    figure, panels = plt.subplots(1, 3, figsize=(9, 2.4), sharex=True)
    titles = ["600 rows", "2,400 other rows", "all 3,000, in any order"]
    for axes, summary, title, sign in zip(panels, [*parts, whole], titles, "+= ", strict=True):
        low, high = summary.cell_ends
        rows = [summary.points.rows[(summary.points.low >= a) & (summary.points.high <= b)].sum() for a, b in
                zip(low, high, strict=True)]  # fmt: skip
        axes.bar(
            low, rows / (high - low), high - low, align="edge", color=PALE, edgecolor=COLOR["kmeans"], linewidth=0.8
        )
        axes.set(title=f"{title}: {summary.n_cells} cells", xlim=(0, 5), yticks=[], xlabel="value")
        axes.spines["left"].set_visible(False)
        axes.text(1.06, 0.45, sign, transform=axes.transAxes, fontsize=20, ha="center", va="center")
    panels[0].set_ylabel("rows per width")
    return figure


def crowded() -> Any:
    """What the sample of values tells of a cell that holds too much."""
    r = np.random.default_rng(0)
    n = 1_000_000
    x = np.where(r.random(n) < 0.5, 1e9 + r.standard_normal(n), 1e9 * r.standard_normal(n))
    summary = ColumnSummary(x)
    low, high = summary.cell_ends
    points = summary.points
    at = int(np.argmax(np.diff(np.searchsorted(np.sort(x), [*low, np.inf]))))
    inside = (points.low >= low[at]) & (points.high <= high[at])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.9))
    left.hist(x / 1e9, bins=200, color=GREY)
    left.set(yscale="log", xlabel="value, in units of 1,000,000,000", ylabel="rows")
    left.set_title("Half of the rows lie within a few units of 1e9")
    edges = np.linspace(-4.5, 4.5, 46)
    right.hist(x[np.abs(x - 1e9) < 10] - 1e9, bins=edges, color=PALE, label="the rows")
    # The points' weight in the same classes, each spread evenly over its range.
    share = np.zeros(len(edges) - 1)
    for a, b, weight in zip(points.low[inside] - 1e9, points.high[inside] - 1e9, points.rows[inside], strict=True):
        part = np.clip(np.minimum(b, edges[1:]) - np.maximum(a, edges[:-1]), 0, None)
        share += weight * (part / (b - a) if b > a else (edges[:-1] <= a) & (a < edges[1:]))
    right.stairs(share, edges, color=COLOR["kmeans"], label=f"the summary: {inside.sum():,} points")
    right.set(xlabel="value - 1e9", ylabel="rows", ylim=(0, share.max() * 1.35))
    right.yaxis.set_major_formatter("{x:,.0f}")
    right.set_title(f"The cell there is {high[at] - low[at]:,.0f} wide")
    right.legend(frameon=False, loc="upper left", ncols=2, fontsize=8.5, handlelength=1.4, columnspacing=1.2)
    return figure


def methods() -> Any:
    """Where each method cuts a skewed column, and what that hides."""
    r = np.random.default_rng(0)
    n = 200_000
    x = r.standard_normal(n) + np.where(r.random(n) < 0.01, r.exponential(20, n), 0)
    order = ("quantile", "hybrid", "kmeans", "optimal", "uniform")
    assert {*order, "auto"} == set(METHODS)  # auto looks at a target: below
    figure, (top, *rows) = plt.subplots(6, 1, figsize=(9, 5), sharex=True, height_ratios=[3, 1, 1, 1, 1, 1])
    top.hist(x, bins=250, color=GREY)
    top.set(yscale="log", ylabel="rows", title="200,000 values, 1 % of them outliers, in 31 bins")
    for axes, method in zip(rows, order, strict=True):
        bins = fit_bins(x, method, 31)
        beyond = int((bins[0] > 3).sum())
        lost = bins.costs()["lost"].iloc[0]
        axes.vlines(bins[0], 0, 1, color=COLOR[method], linewidth=1)
        axes.set_yticks([])
        axes.margins(y=0)
        axes.set_ylabel(method, rotation=0, ha="right", va="center", color=COLOR[method])
        axes.text(
            1.01,
            0.5,
            f"{beyond} cuts above 3\n{lost:.2%} lost",
            transform=axes.transAxes,
            va="center",
            fontsize=8.5,
            color=COLOR[method],
        )
    rows[-1].set_xlabel("value")
    return figure


def auto() -> Any:
    """Where auto cuts a column for targets that need different cuts of it."""
    r = np.random.default_rng(0)
    n = 20_000
    x = r.lognormal(0, 1.5, n)
    noise = 0.1 * r.standard_normal(n)
    targets = {
        "y follows x": x / x.std() + noise,
        "y follows log x": np.log(x) + noise,
        "y is a wave of x < 5": np.sin(np.minimum(x, 5) * 2 * np.pi) + noise,
        "y is noise": noise,
    }
    shown = {name: (COLOR[name], name, fit_bins(x, name, 63)) for name in ("quantile", "kmeans", "hybrid")}
    for said, y in targets.items():
        bins = fit_bins(x, "auto", 63, y=y)
        shown[said] = (COLOR["auto"], f"auto: {said}\n({bins.choices['x0'].chosen})", bins)
    figure, (top, *rows) = plt.subplots(8, 1, figsize=(9, 5.6), sharex=True, height_ratios=[2.6, *[1] * 7])
    top.hist(x, bins=np.geomspace(x.min(), x.max(), 200), color=GREY)
    top.set(xscale="log", ylabel="rows", title="20,000 lognormal values in 63 bins, on a logarithmic axis")
    low, high = np.quantile(x, [0.01, 0.99])
    for axes, (color, label, bins) in zip(rows, shown.values(), strict=True):
        axes.vlines(bins[0], 0, 1, color=color, linewidth=1)
        axes.margins(y=0)
        axes.set(yticks=[], xlim=(low / 4, x.max() * 1.1))
        axes.set_ylabel(label, rotation=0, ha="right", va="center", color=color, fontsize=8.5)
        beyond = int((bins[0] > high).sum())
        axes.text(1.01, 0.5, f"{beyond} cuts in\nthe last 1 %", transform=axes.transAxes, va="center", fontsize=8)
    rows[-1].set_xlabel("value")
    return figure


def lloyd() -> Any:
    """How Lloyd's iteration moves the cuts, and where it stops."""
    x = np.random.default_rng(0).lognormal(0, 1, 20_000)
    summary, k = ColumnSummary(x), 31
    steps = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    path = [partial(kmeans, max_iter=i, tol=0)(summary, k) for i in steps]
    ours = kmeans(summary, k)
    stop = next(i for i in range(1, 301) if np.array_equal(partial(kmeans, max_iter=i, tol=0)(summary, k), ours))
    best = optimal(summary, k)

    def lost(cuts: np.ndarray) -> float:
        return float(Bins([cuts]).observed(x).costs()["lost"].iloc[0])

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=[1.35, 1])
    left.plot(np.array(path), steps, color=COLOR["kmeans"], linewidth=0.9)
    left.plot(quantile(summary, k), np.full(k - 1, 0.5), "|", color=COLOR["quantile"], markersize=11)
    left.plot(ours, np.full(k - 1, stop), "o", color=COLOR["kmeans"], markersize=3)
    left.plot(best, np.full(k - 1, 2048), "|", color=COLOR["optimal"], markersize=11)
    left.set(yscale="log", ylim=(3500, 0.35), xlabel="value", xlim=(0, 52))
    left.set_yticks([0.5, 1, 10, stop, 1024, 2048], ["quantile", "1", "10", f"stop: {stop}", "1024", "optimal"])
    left.set_yticks([], minor=True)
    left.set_title(f"The {k - 1} cuts, step by step")
    right.loglog(steps, [lost(cuts) for cuts in path], color=COLOR["kmeans"], label="Lloyd's iteration")
    right.plot(stop, lost(ours), "o", color=COLOR["kmeans"], label=f"kmeans: stops at step {stop}")
    right.axhline(lost(quantile(summary, k)), color=COLOR["quantile"], linestyle="--", label="quantile")
    right.axhline(lost(best), color=COLOR["optimal"], linestyle="--", label="optimal")
    right.set(xlabel="step", ylabel="part of the variance lost", title="What they hide", ylim=(1.6e-3, 0.3))
    right.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 0.1))
    return figure


def float32() -> Any:
    """A cut between the numbers that a library can hold."""
    cut = 0.1
    near = np.float32(cut)
    grid = [near]
    for _ in range(3):
        grid = [np.nextafter(grid[0], np.float32(-1)), *grid, np.nextafter(grid[-1], np.float32(1))]
    below = max(g for g in grid if float(g) <= cut)
    above = min(g for g in grid if float(g) > cut)
    unit = float(above) - float(below)

    def place(value: float) -> float:
        return (float(value) - cut) / unit

    figure, axes = plt.subplots(figsize=(9, 2.2))
    axes.set(xlim=(-3.1, 3.1), ylim=(-1.25, 1.45))
    axes.axis("off")
    axes.plot([-3.0, 3.0], [0, 0], color=GREY, linewidth=0.8)
    for value in grid:
        if abs(place(value)) > 3:
            continue
        goes_left = float(value) <= cut
        axes.plot(place(value), 0, "o", markersize=9, color=PALE if goes_left else INK, markeredgecolor=INK)
    axes.plot([0, 0], [-0.35, 0.75], color=COLOR["kmeans"], linewidth=2)
    axes.text(
        0, 0.87, "your cut, 0.1 in float64:\nLightGBM, scikit-learn: x <= cut", ha="center", color=COLOR["kmeans"]
    )
    arrow = {"arrowstyle": "->", "color": COLOR["quantile"]}
    for value, at, text, side in [
        (below, -1.75, f"CatBoost: x > {float(below)!r} goes right", "center"),
        (above, 1.75, f"XGBoost: x < {float(above)!r} goes left", "center"),
    ]:
        axes.annotate(
            text, (place(value), -0.12), (at, -1.0), ha=side, va="center", color=COLOR["quantile"], arrowprops=arrow
        )
    axes.text(-3.0, 0.4, "float32 values: these go left ...", fontsize=8.5, color=GREY)
    axes.text(3.0, 0.4, "... and these right", fontsize=8.5, color=GREY, ha="right")
    return figure


def cuts() -> Any:
    """Where the bins of a column with outliers go."""
    found = report(skewed_table(200_000), methods=["quantile", "kmeans"], max_bins=63)
    return found.plot("sensor").figure


def budget() -> Any:
    """What bins that columns share gain, and what they cost: from the results that paper/ keeps."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import paper.budget
    from paper import figures
    from paper.cli import RESULTS
    from paper.evidence import Evidence
    from paper.store import Store

    store = Store(RESULTS)
    found = paper.budget.frontier(paper.budget.all_tables(Evidence(store.frame(), store.before())))
    if found is None:
        raise SystemExit("paper/results has no times of shared bins: python -m paper run budget --protocol strong")
    return figures.shared(*found).figure


PICTURES: list[Callable[[], Any]] = [budget, cuts, flow, rule, cells, merge, crowded, methods, auto, lloyd, float32]


def main(folder: Path) -> None:
    """Write all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw in PICTURES:
        path = folder / f"{draw.__name__}.png"
        figure = draw()
        figure.savefig(path, dpi=120, metadata={"Software": None})
        plt.close(figure)
        print(f"{path}: {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")
