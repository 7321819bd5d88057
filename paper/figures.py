"""The figures: heat maps of the synthetic grids, timing curves, forest plots of gains, critical differences, cuts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import scikit_posthocs
from matplotlib.figure import Figure

import boostbins
from paper import datasets, stats
from paper.binning import UNBINNED
from paper.datasets import BY_KEY
from paper.evidence import Evidence
from paper.stats import ALPHA
from paper.synthetic import GRIDS
from paper.tables import LABELS, PARTIAL, level_text

# Okabe and Ito's colours, told apart by nearly everybody.
BLUE, ORANGE, GREEN, PINK, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#777777"
COLOURS = {
    "quantile": ORANGE,
    "uniform": PINK,
    "kmeans": GREEN,
    "kmeans++": SKY,
    "optimal": BLUE,
    "auto": BLUE,
    "training": GREY,
}
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "boostbins",  # the same picture is the same file
}


@dataclass(frozen=True)
class Picture:
    """A figure with its caption."""

    name: str
    caption: str
    figure: Figure

    def write(self, folder: Path) -> None:
        """Write it as SVG and as PNG."""
        folder.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(STYLE):
            self.figure.savefig(folder / f"{self.name}.svg", metadata={"Date": None}, bbox_inches="tight")
            self.figure.savefig(folder / f"{self.name}.png", dpi=150, bbox_inches="tight")


def all_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Yield every figure that there is evidence for."""
    with mpl.rc_context(STYLE):
        for number in sorted(set(evidence.draws["grid"])):
            yield heat_map(evidence, int(number))
        if len(evidence.timing):
            yield timing(evidence)
        yield from forests(evidence)
        yield from critical_differences(evidence)
        if datasets.local_path(BY_KEY["classification/credit"]):
            yield cuts()


def heat_map(evidence: Evidence, number: int) -> Picture:
    """Draw one grid, ours beside the paper's."""
    grid = GRIDS[number]
    figure = Figure((2.4 + 1.3 * len(grid.cols), 0.9 + 0.42 * len(grid.rows)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, who, frame in zip(axes, ("ours", "the paper's"), (evidence.draws, evidence.published_draws), strict=True):
        frame = frame[frame["grid"] == number]
        cells = stats.reductions(frame).loc[number]
        means = np.array([[_cell(cells, "mean", row, col) for col in grid.cols] for row in grid.rows])
        clear = np.array([[_cell(cells, "adjusted_p", row, col) < ALPHA for col in grid.cols] for row in grid.rows])
        image = ax.imshow(means, cmap="YlGn", vmin=-10, vmax=90, origin="lower", aspect="auto")
        for (i, j), mean in np.ndenumerate(means):
            if not np.isnan(mean):
                text = f"{mean:.0f}" + ("★" if clear[i, j] else "")
                ax.text(j, i, text, ha="center", va="center", fontsize=8, color="white" if mean > 60 else "black")
        ax.set_xticks(range(len(grid.cols)), [level_text(grid.col_factor, col) for col in grid.cols])
        ax.set_yticks(range(len(grid.rows)), [level_text(grid.row_factor, row) for row in grid.rows])
        ax.set_xlabel(LABELS[grid.col_factor])
        ax.set_title(f"{who}, {len(frame) // max(len(cells), 1)} draws", fontsize=9)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel(LABELS[grid.row_factor])
    figure.colorbar(image, ax=axes, label="reduction of the MSE, %", ticks=[0, 30, 60, 90])
    caption = f"Grid {number}: reduction of the MSE by k-means over quantile. ★: adjusted p < {ALPHA}."
    return Picture(f"grid-{number}", caption, figure)


NATIVE_BINS = {"native-63": "63", "native": "255", "native-4095": "4,095"}
SHARED_BINS = {"average-63": "63 on average", "average-255": "255 on average", "auto-bins": "auto"}


def shared(methods: pd.DataFrame, learners: Mapping[str, str]) -> Picture:
    """Draw error against training time: the library's own bins, and bins that columns share.

    `methods` has the setting, the method, and for all datasets the means of both relative to native 255 bins.
    """
    base = pd.DataFrame({"setting": list(learners), "method": "native", "mean": 1.0, "training": 1.0})
    methods = pd.concat([base, methods[methods["half"] == "all"]])
    n = int(methods["datasets"].dropna().min())
    with mpl.rc_context(STYLE):
        figure, axes = _side_by_side(len(learners))
        for axis, (setting, title) in zip(axes, learners.items(), strict=True):
            rows = methods[methods["setting"] == setting].set_index("method")
            for names, colour, label in (
                (NATIVE_BINS, GREY, "the same limit for each column, its own cuts"),
                (SHARED_BINS, GREEN, "shared by what the target needs (boostbins)"),
            ):
                known = rows.loc[[name for name in names if name in rows.index]].sort_values("training")
                change = 100 * (known["mean"] - 1)
                axis.plot(known["training"], change, "o-", color=colour, label=label)
                for name, x, y in zip(known.index, known["training"], change, strict=True):
                    is_left = names is SHARED_BINS and x < 1
                    place = {
                        "xytext": (-7 if is_left else 7, -3 if names is SHARED_BINS else 3),
                        "ha": "right" if is_left else "left",
                    }
                    axis.annotate(names[name], (x, y), textcoords="offset points", color=colour, **place)
            axis.axhline(0, color=GREY, linewidth=0.5, zorder=0)
            axis.set_xscale("log", base=2)
            axis.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
            axis.set_xlim(0.3, 5.6)
            axis.minorticks_off()
            axis.set_xlabel("training time, 255 bins = 1")
            axis.set_title(title)
        axes[0].set_ylabel("change of the test error, %")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    caption = (
        f"Test error and training time with the library's own bins and with bins that columns share, relative to 255 "
        f"of its own: geometric means over {n} datasets. Lower left is better."
    )
    return Picture("budget-frontier", caption, figure)


def _side_by_side(n: int) -> tuple[Figure, list[Any]]:
    """Return a figure with axes side by side, which share the one that goes up."""
    figure = Figure(figsize=(4.2 * n, 3.2), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, n, sharey=True)))


def frontier(methods: pd.DataFrame) -> Picture:
    """Draw what methods gain on the author's grids against what they lose where tails are irrelevant."""
    with mpl.rc_context(STYLE):
        figure = Figure((6, 3.8), layout="constrained")
        ax = figure.subplots()
        for place, method in enumerate(methods.itertuples()):
            colour = COLOURS.get(method.method, GREY)
            before = np.log(methods[["gain", "loss"]].to_numpy(float)[:place] / (method.gain, method.loss))
            below = ((np.abs(before[:, 0]) < 0.2) & (before[:, 1] > 0) & (before[:, 1] < 0.4)).any()  # a name is there
            ax.plot(method.gain, method.loss, "o", color=colour, markersize=7)
            ax.annotate(
                method.method,
                (method.gain, method.loss),
                (0, -16 if below else 7),
                textcoords="offset points",
                ha="center",
                color=colour,
            )
        ax.axhline(1.05, color=GREY, linestyle="--", linewidth=0.8)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.margins(0.12)
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        for axis, low, high in ((ax.xaxis, left, right), (ax.yaxis, bottom, top)):
            ticks = [tick for tick in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50) if low < tick < high]
            axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.set_ticks([], minor=True)
        ax.set_xlabel("MSE relative to quantile where outliers matter: mean over the author's grids")
        ax.set_ylabel("where tails do not: worst cell of grid 7")
        ax.grid(alpha=0.25)
    caption = "MSE relative to quantile: lower left is better. Dashed: 5 % worse than quantile."
    return Picture("auto-frontier", caption, figure)


def _cell(cells: pd.DataFrame, column: str, row: float, col: float) -> float:
    return float(cells[column].get((row, col), np.nan))


def timing(evidence: Evidence) -> Picture:
    """Draw the seconds against the rows."""
    frame = evidence.timing
    shapes = list(dict.fromkeys(frame["shape"]))[::-1]  # the paper's first
    figure = Figure((8.5, 3.6), layout="constrained")
    axes = figure.subplots(1, len(shapes), sharey=True, squeeze=False)[0]
    lines = {"boostbins": "-", "reference": "--", "xgboost": ":"}
    names = {"boostbins": "boostbins {}", "reference": "reference {}", "xgboost": "XGBoost {}"}
    for ax, shape in zip(axes, shapes, strict=True):
        part = frame[frame["shape"] == shape]
        for (implementation, method), points in part.groupby(["implementation", "method"], sort=False):
            ax.loglog(
                points["rows"], points["seconds"], lines[implementation], marker="o", markersize=3,
                color=COLOURS[method], label=names[implementation].format(method),
            )  # fmt: skip
        ax.set_title(f"{shape} column", fontsize=9)
        ax.set_xlabel("rows")
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("seconds")
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=7, frameon=False, handlelength=3)
    return Picture("timing", "Seconds to bin one column into 255 bins, one thread.", figure)


def forests(evidence: Evidence) -> Iterator[Picture]:
    """Draw the gains per dataset with their intervals, a picture per track and number of bins."""
    places = dict.fromkeys((b.track, b.max_bins) for b in evidence.real)
    for track, max_bins in places:
        series = [b for b in evidence.real if (b.track, b.max_bins) == (track, max_bins)]
        series = [b for b in series if b.learner != "xgboost-exact"]
        if not series:
            continue
        names = [t.key for t in datasets.TASKS if t.track == track and t.used]
        figure = Figure((7, 1 + 0.17 * len(names) * max(2, len(series)) / 2), layout="constrained")
        ax = figure.subplots()
        step = 0.8 / len(series)
        for place, benchmark in enumerate(series):
            gains = stats.paired_gain(evidence.real[benchmark], "kmeans", benchmark.base)
            y = np.array([names.index(name) for name in gains.index]) + (place - (len(series) - 1) / 2) * step
            who = f"{benchmark.who}, {benchmark.learner}"
            error = [gains["gain"] - gains["low"], gains["high"] - gains["gain"]]
            colour = [GREY, GREEN, BLUE, ORANGE, PINK, SKY][place % 6]
            ax.errorbar(gains["gain"], y, xerr=error, fmt="o", markersize=3, linewidth=1, color=colour,
                        label=f"{who} (against {benchmark.base})")  # fmt: skip
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xscale("symlog", linthresh=5)
        ax.set_xticks(
            [-50, -20, -5, -2, 0, 2, 5, 20, 50, 100], ["−50", "−20", "−5", "−2", "0", "2", "5", "20", "50", "100"]
        )
        ax.set_xlim(-70, 130)
        marks = [BY_KEY[name].name + (f" {PARTIAL}" if name in evidence.partial else "") for name in names]
        ax.set_yticks(range(len(names)), marks)
        ax.invert_yaxis()
        ax.grid(axis="x", alpha=0.25)
        error_name = "1 − AUC" if track == "classification" else "MSE"
        ax.set_xlabel(f"reduction of the {error_name} by k-means, % (right is better; linear within ±5)")
        figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
        caption = (
            f"{track.capitalize()}, {max_bins} bins: gain of k-means per dataset, 95 % intervals (Nadeau-Bengio). "
            f"{PARTIAL}: our file has fewer rows than the suite."
        )
        yield Picture(f"gains-{track}-{max_bins}", caption, figure)


def critical_differences(evidence: Evidence) -> Iterator[Picture]:
    """Draw the average ranks; methods that a bar joins cannot be told apart."""
    for benchmark, scores in evidence.real.items():
        ranked = scores.without(UNBINNED)
        found = stats.critical_difference(ranked)
        if found is None:
            continue
        figure = Figure((6, 1.7), layout="constrained")
        ax = figure.subplots()
        scikit_posthocs.critical_difference_diagram(
            found.average_rank, found.nemenyi_p, alpha=ALPHA, ax=ax,
            label_fmt_left="{label} ({rank:.2f}) ", label_fmt_right=" ({rank:.2f}) {label}",
        )  # fmt: skip
        caption = (
            f"{benchmark.title}: average rank over {len(ranked.datasets)} datasets (1 is best). A bar joins what "
            f"Nemenyi's test cannot tell apart; Friedman p = {found.friedman_p:.2g}."
        )
        yield Picture(f"ranks-{benchmark.name}", caption, figure)


def cuts() -> Picture:
    """Draw where the cuts of a skewed column are: number 3 of credit, counted from 0, as in the paper."""
    column = datasets.load("classification/credit").X[:, 3]
    figure = Figure((7, 3), layout="constrained")
    ax = figure.subplots()
    ax.hist(column, bins=100, color=SKY, log=True)
    for method, colour, height in (("quantile", ORANGE, (0.0, 0.5)), ("kmeans", GREEN, (0.5, 1.0))):
        (found,) = boostbins.fit_bins(column[:, None], method, 63).cuts
        for cut in found:
            ax.axvline(cut, *height, color=colour, linewidth=0.7)
        far = (found > column.max() / 10).sum()
        label = f"{method}: {len(found) + 1} bins, {far} cuts above a tenth of the largest value"
        ax.plot([], [], color=colour, label=label)
    ax.set_xlabel("feature value")
    ax.set_ylabel("rows")
    figure.legend(loc="outside lower center", fontsize=8, frameon=False)
    return Picture(
        "cuts", "Cuts of a skewed feature (credit, column 3) at 63 bins: by quantiles and by k-means.", figure
    )
