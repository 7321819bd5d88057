"""The tables: the paper's, ours in its form, and ours beside the paper's. As Markdown, LaTeX and CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from paper import stats
from paper.binning import UNBINNED
from paper.datasets import BY_KEY, TASKS
from paper.evidence import OURS, PAPER, Benchmark, Evidence
from paper.stats import ALPHA, Scores
from paper.synthetic import GRIDS

STAR, PARTIAL = "★", "†"
PARTIAL_NOTE = f"{PARTIAL} our file has fewer rows than the suite."
METHOD_ORDER = ("native", "quantile", "uniform", "kmeans", UNBINNED)


@dataclass(frozen=True)
class Table:
    """A table to show (cells are text, `**bold**` marks a winner) and its numbers."""

    name: str
    title: str
    shown: pd.DataFrame
    numbers: pd.DataFrame
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """Return it as Markdown."""
        lines = [f"### {self.title}", "", self.shown.to_markdown(index=False, disable_numparse=True), ""]
        return "\n".join([*lines, *(f"{note}\n" for note in self.notes)])

    def latex(self) -> str:
        """Return it as a LaTeX table."""
        cells = self.shown.map(_latex).rename(columns=_latex)
        caption = _latex(" ".join((self.title + ".", *self.notes)))
        return cells.to_latex(index=False, escape=False, caption=caption, label=f"tab:{self.name}")

    def write(self, folder: Path) -> None:
        """Write all three forms."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")
        (folder / f"{self.name}.tex").write_text(self.latex(), encoding="utf-8")
        self.numbers.to_csv(folder / f"{self.name}.csv", index=False, float_format="%.9g")


_LATEX = {
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "…": r"\dots{}",
    "±": r"$\pm$",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
    PARTIAL: r"$\dagger$",
    STAR: r"$\star$",
}
_LATEX_TOKEN = re.compile(r"\*\*(?P<bold>.+?)\*\*|10\^(?P<power>-?\d+)|(?P<sign>.)", re.DOTALL)


def _latex(text: object) -> str:
    def translated(token: re.Match[str]) -> str:
        if token["bold"]:
            return rf"\textbf{{{_latex(token['bold'])}}}"
        return f"$10^{{{token['power']}}}$" if token["power"] else _LATEX.get(token["sign"], token["sign"])

    return _LATEX_TOKEN.sub(translated, str(text))


def all_tables(evidence: Evidence) -> Iterator[Table]:
    """Yield every table that there is evidence for."""
    yield descriptions(evidence)
    yield reciprocal_ranks(evidence)
    for benchmark, scores in evidence.real.items():
        yield score_table(evidence, benchmark, scores)
    for benchmark, scores in evidence.real.items():
        yield pair_table(evidence, benchmark, scores)
    yield summary(evidence)
    for benchmark in evidence.real:
        if benchmark.source == OURS and (table := beside_table(evidence, benchmark)):
            yield table
    if len(evidence.alternatives):
        yield alternatives(evidence)
    if len(evidence.draws):
        yield agreement(evidence)
        for grid in GRIDS:
            if (evidence.draws["grid"] == grid).any():
                yield grid_table(evidence, grid)
    if len(evidence.timing):
        yield timing(evidence)
    if len(evidence.failures):
        yield failures(evidence)


def marked(evidence: Evidence, benchmark: Benchmark | None, dataset: str) -> str:
    """Return a dataset's name, marked where our results are of a part of it."""
    ours = benchmark is None or benchmark.source == OURS
    return BY_KEY[dataset].name + (PARTIAL if ours and dataset in evidence.partial else "")


def _notes(evidence: Evidence, datasets: list[str], benchmark: Benchmark) -> tuple[str, ...]:
    partial = benchmark.source == OURS and evidence.partial & set(datasets)
    return (PARTIAL_NOTE,) if partial else ()


def descriptions(evidence: Evidence) -> Table:
    """Return the datasets: rows, features and mean skew, the paper's and ours."""
    shown, numbers = [], []
    for task in TASKS:
        here = evidence.descriptions.loc[task.key] if task.key in evidence.descriptions.index else None
        shown.append(
            {
                "dataset": marked(evidence, None, task.key),
                "track": task.track,
                "OpenML task": task.openml_task,
                "rows": f"{task.rows:,}",
                "our rows": "" if here is None else f"{here['rows']:,.0f}",
                "features": task.features,
                "mean skew": "" if task.skew is None else f"{task.skew:.2f}",
                "our mean skew": "" if here is None else f"{here['score']:.2f}",
                "checksum": ("" if task.used else "not used") if here is None else here["checksum"],
            }
        )
        numbers.append(
            {**vars(task), **({} if here is None else {"our_rows": here["rows"], "our_skew": here["score"],
             "checksum": here["checksum"]})}
        )  # fmt: skip
    notes = (PARTIAL_NOTE,) if evidence.partial else ()
    return Table("datasets", "The datasets", pd.DataFrame(shown), pd.DataFrame(numbers), notes)


def reciprocal_ranks(evidence: Evidence) -> Table:
    """Return the mean reciprocal ranks of all benchmarks."""
    numbers = []
    for benchmark, scores in evidence.real.items():
        found = stats.mean_reciprocal_ranks(scores.without(UNBINNED))
        numbers.append({**vars(benchmark), "datasets": len(scores.datasets), **found})
    frame = pd.DataFrame(numbers)
    methods = [method for method in METHOD_ORDER if method in frame]
    shown = frame[["track", "learner"]].assign(
        bins=frame["max_bins"],
        results=[benchmark.who for benchmark in evidence.real],
        datasets=frame["datasets"],
        **{method: frame[method].map(lambda value: "" if np.isnan(value) else f"{value:.2f}") for method in methods},
    )
    return Table("mrr", f"Mean reciprocal rank over the datasets ({UNBINNED} not ranked)", shown, frame)


def score_table(evidence: Evidence, benchmark: Benchmark, scores: Scores) -> Table:
    """Return the paper's table: mean and standard error, bold where the best beats the runner-up."""
    means, errors = scores.means(), scores.standard_errors()  # of each method's own splits
    tests = evidence.winners[benchmark]
    methods = [method for method in METHOD_ORDER if method in means]
    shown, numbers = [], []
    for dataset in tests.index:
        exponent = 0 if scores.larger_is_better else math.floor(math.log10(means.loc[dataset, "quantile"]))
        test = tests.loc[dataset]
        clear = test["adjusted_p"] < ALPHA
        row = {"dataset": marked(evidence, benchmark, dataset)}
        if not scores.larger_is_better:
            row["dataset"] += f" (10^{exponent})"
        number = {"dataset": dataset, "best": test["best"], "adjusted_p": test["adjusted_p"], "bold": clear}
        for method in methods:
            mean, error = means.loc[dataset, method], errors.loc[dataset, method]
            if np.isnan(mean):
                row[method] = ""
                continue
            text = f"{mean / 10.0**exponent:.3f} ± {error / 10.0**exponent:.3f}"
            row[method] = f"**{text}**" if clear and method == test["best"] else text
            number |= {method: mean, f"{method}_se": error}
        shown.append(row)
        numbers.append(number)
    metric = "ROC AUC" if scores.larger_is_better else "MSE"
    title = f"{benchmark.title}. {metric}, mean ± standard error over {scores.splits} splits"
    note = f"Bold: the best beats the runner-up (paired t-test, Benjamini-Hochberg, p < {ALPHA})."
    notes = (note, *_notes(evidence, scores.datasets, benchmark))
    return Table(f"scores-{benchmark.name}", title, pd.DataFrame(shown), pd.DataFrame(numbers), notes)


def pair_table(evidence: Evidence, benchmark: Benchmark, scores: Scores) -> Table:
    """Return k-means against quantiles (or the library's own bins), with the correction for overlapping splits."""
    gains = stats.paired_gain(scores, "kmeans", benchmark.base)
    shown = pd.DataFrame(
        {
            "dataset": [marked(evidence, benchmark, name) for name in gains.index],
            "gain": [_percent(gain) for gain in gains["gain"]],
            "95 % interval": [f"{_percent(low)} … {_percent(high)}" for low, high in gains[["low", "high"]].to_numpy()],
            "better": [f"{wins}/{n}" for wins, n in gains[["wins", "n"]].to_numpy()],
            "p": [_bold_p(p) for p in gains["p"]],
            "adjusted p": [_bold_p(p) for p in gains["adjusted_p"]],
            "naive p": [_bold_p(p) for p in gains["naive_p"]],
        }
    )
    error = "1 − AUC" if scores.larger_is_better else "MSE"
    title = f"k-means against {benchmark.base}. {benchmark.title}"
    note = (
        f"Gain: reduction of the mean {error}. Interval (of the ratio of means) and p (of their difference): "
        "Nadeau-Bengio; adjusted: Benjamini-Hochberg; naive: the plain paired t-test."
    )
    notes = (note, *_notes(evidence, scores.datasets, benchmark))
    return Table(f"pair-{benchmark.name}", title, shown, gains.reset_index(), notes)


def summary(evidence: Evidence) -> Table:
    """Return one line per benchmark: wins, ties, losses, and the mean gain."""
    numbers = []
    for benchmark, scores in evidence.real.items():
        gains = stats.paired_gain(scores, "kmeans", benchmark.base)
        mean = stats.mean_gain(gains)
        numbers.append(
            {
                "benchmark": benchmark.title,
                "base": benchmark.base,
                "datasets": len(gains),
                "splits": scores.splits,
                "corrected": "/".join(map(str, stats.win_tie_loss(gains))),
                "naive": "/".join(map(str, stats.win_tie_loss(gains, "adjusted_naive_p"))),
                "mean_gain": mean.mean,
                "low": mean.low,
                "high": mean.high,
                "median_gain": gains["gain"].median(),
            }
        )
    frame = pd.DataFrame(numbers)
    shown = frame[["benchmark", "base", "datasets", "splits"]].assign(
        **{
            "win/tie/loss": frame["corrected"],
            "by the naive test": frame["naive"],
            "mean gain": [_percent(gain) for gain in frame["mean_gain"]],
            "95 % interval": [
                f"{_percent(low)} … {_percent(high)}" for low, high in zip(frame["low"], frame["high"], strict=True)
            ],
            "median gain": [_percent(gain) for gain in frame["median_gain"]],
        }
    )
    note = (
        "Win/tie/loss: datasets with an adjusted Nadeau-Bengio p < 0.05; by the naive test: with the adjusted p of the "
        "plain paired t-test. Interval: BCa bootstrap over the datasets."
    )
    return Table("summary", "k-means against the base, over all datasets", shown, frame, (note,))


def beside_table(evidence: Evidence, benchmark: Benchmark) -> Table | None:
    """Return our gains beside the paper's, and whether they differ by more than noise."""
    published = evidence.find(benchmark.track, benchmark.max_bins, benchmark.learner, PAPER, "paper")
    if published is None:
        return None
    same = evidence.same_splits(benchmark)
    frame = stats.gains_beside(evidence.real[benchmark], evidence.real[published], "kmeans", "quantile", same)
    shown = pd.DataFrame(
        {
            "dataset": [marked(evidence, benchmark, name) for name in frame.index],
            "splits": [
                f"the same {row.our_splits}" if row.paired else f"{row.paper_splits}, other {row.our_splits}"
                for row in frame.itertuples()
            ],
            "quantile, paper": [f"{score:.4g}" for score in frame["paper_base"]],
            "quantile, ours": [f"{score:.4g}" for score in frame["our_base"]],
            "gain, paper": [_percent(value) for value in frame["paper_gain"]],
            "gain, ours": [_percent(value) for value in frame["our_gain"]],
            "difference": [_percent(value) for value in frame["difference"]],
            "within noise": ["" if np.isnan(p) else "yes" if p >= ALPHA else "**no**" for p in frame["p"]],
        }
    )
    title = f"Ours beside the paper's, k-means against quantile. {benchmark.title}"
    note = (
        f"Within noise: the difference of the gains has p ≥ {ALPHA}, not adjusted; split by split where the splits are "
        "the same, by Welch's test where they are others (of fewer rows), with Nadeau-Bengio variances."
    )
    notes = (note, *_notes(evidence, list(frame.index), benchmark))
    return Table(f"beside-{benchmark.name}", title, shown, frame.reset_index(), notes)


def alternatives(evidence: Evidence) -> Table:
    """Return the other ways to bin: score, bins, and what they cost."""
    setting = ["protocol", "max_rows", "learner", "max_bins"]
    frame = (
        evidence.alternatives.groupby(["dataset", *setting, "method"], sort=False)
        .agg(
            splits=("score", "size"),
            mse=("score", "mean"),
            mse_se=("score", "sem"),
            most_bins=("bins", "max"),
            bin_seconds=("bin_seconds", "mean"),
            train_seconds=("train_seconds", "mean"),
        )
        .reset_index()
    )
    shown = pd.DataFrame(
        {
            "dataset": [marked(evidence, None, name) for name in frame["dataset"]],
            "method": frame["method"],
            "MSE": [f"{mean:.4g} ± {se:.2g}" for mean, se in frame[["mse", "mse_se"]].to_numpy()],
            "most bins of a column": [f"{bins:.0f}" for bins in frame["most_bins"]],
            "binning, s": [f"{seconds:.4f}" for seconds in frame["bin_seconds"]],
            "training, s": [f"{seconds:.2f}" for seconds in frame["train_seconds"]],
        }
    )
    protocol, max_rows, learner, max_bins = frame.loc[0, setting]
    how = f"{learner}, {max_bins} bins, protocol {protocol}"
    title = f"Other ways to bin: {how}, {frame['splits'].max()} splits"
    if max_rows:
        title += f", at most {max_rows:,} rows"
    note = (
        "kmeans, kmeans++ and optimal are boostbins'; milp is optbinning's ContinuousOptimalBinning. "
        "Seconds of one core, with other jobs beside it."
    )
    return Table("alternatives", title, shown, frame, (note,))


def agreement(evidence: Evidence) -> Table:
    """Return how many synthetic cells agree with the paper's, and which do not."""
    cells = stats.cells_beside(evidence.draws, evidence.published_draws)
    shown = [
        {
            "grid": number,
            "cells": len(part),
            "agree": int(part["agrees"].sum()),
            "not": "; ".join(
                f"{level_text(GRIDS[number].row_factor, cell.row)} x {level_text(GRIDS[number].col_factor, cell.col)}: "
                f"{cell.ours:.1f} ({cell.paper:.1f})"
                for cell in part[~part["agrees"]].itertuples()
            ),
        }
        for number, part in cells.groupby("grid")
    ]
    agreed = int(cells["agrees"].sum())
    title = f"{agreed} of {len(cells)} cells agree with the paper's ({agreed / max(len(cells), 1):.0%})"
    note = (
        "Agree: the 95 % interval (Welch) of the difference of the means has 0. Not: row x column: ours (the paper's)."
    )
    return Table("agreement", title, pd.DataFrame(shown), cells, (note,))


def grid_table(evidence: Evidence, number: int) -> Table:
    """Return one synthetic grid: our mean reduction, the paper's, and whether they agree."""
    grid = GRIDS[number]
    ours, paper = (frame[frame["grid"] == number] for frame in (evidence.draws, evidence.published_draws))
    beside = stats.cells_beside(ours, paper)
    stars = stats.reductions(ours)["adjusted_p"] < ALPHA
    cells = beside.set_index(["row", "col"])
    shown = []
    for row in grid.rows:
        line = {f"{LABELS[grid.row_factor]} / {LABELS[grid.col_factor]}": level_text(grid.row_factor, row)}
        for col in grid.cols:
            if (row, col) in cells.index:
                cell = cells.loc[(row, col)]
                star = STAR if stars.get((number, row, col), False) else ""
                text = f"{cell['ours']:.1f}{star} ({cell['paper']:.1f})"
                line[level_text(grid.col_factor, col)] = text if cell["agrees"] else f"**{text}**"
        shown.append(line)
    agreed = f"{beside['agrees'].sum()} of {len(beside)} cells agree with the paper's"
    title = f"Grid {number}: reduction of the MSE by k-means over quantile, %, ours (the paper's)"
    if not grid.in_paper:
        title += ". Run by the author, not in the paper"
    draws = ours.groupby(["row", "col"]).size().min()
    note = f"{draws} draws ({agreed}; bold: not within the joint 95 % interval). {STAR}: adjusted p < {ALPHA}."
    return Table(f"grid-{number}", title, pd.DataFrame(shown), beside, (note,))


LABELS = {
    "outlier_fraction": "outliers",
    "outlier_scale": "outlier scale",
    "n_modes": "modes",
    "obs_per_bin": "rows per bin",
    "max_bins": "bins",
    "scenario": "scenario",
    "rows": "rows",
}


def level_text(factor: str, level: float | str) -> str:
    """Return a factor's level as it is read."""
    if isinstance(level, str):
        return level
    return f"{level:.0%}" if factor == "outlier_fraction" else f"{level:g}"


def timing(evidence: Evidence) -> Table:
    """Return the seconds to bin one column."""
    frame = evidence.timing
    wide = frame.pivot_table(index=["shape", "method", "implementation"], columns="rows", values="seconds", sort=False)
    shown = wide.map(lambda seconds: "" if np.isnan(seconds) else f"{seconds:.3g}").reset_index()
    shown.columns = [name if isinstance(name, str) else f"{name:,} rows" for name in shown.columns]
    note = (
        "Cuts and codes, 255 bins, one thread, best of three. Reference: NumPy; scikit-learn's KMeans; kmeans1d. "
        "boostbins finds the cuts on at most 32,768 cells of the column, the references on every row. "
        "Training: XGBoost hist, 100 trees on that column. Blank: takes many minutes, or more memory than there is."
    )
    return Table("timing", "Seconds to bin one column", shown, frame, (note,))


def failures(evidence: Evidence) -> Table:
    """Return what failed, with its error."""
    frame = evidence.failures[["data", "learner", "method", "max_bins", "seed", "protocol", "error"]]
    return Table("failures", "Failed jobs", frame.astype(str), frame)


def _percent(value: float) -> str:
    return "" if np.isnan(value) else f"{value:+.1f} %".replace("-", "−")


def _bold_p(p: float) -> str:
    text = "< 0.001" if p < 0.001 else f"{p:.3f}"
    return f"**{text}**" if p < ALPHA else text
