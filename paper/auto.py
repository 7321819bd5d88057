"""What is asked of boostbins' `auto`, what was measured, and whether it holds; beside it its rivals, by the same rules.

Being worse than "the better of two" is tested against each of the two: the better mean of two noisy ones is better in
part by luck, which would count against `auto`. Intervals are not adjusted for how many there are, which does so too:
some of so many comparisons are beyond noise by chance alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from paper import stats
from paper.binning import OUR_METHODS
from paper.claims import FAIL, FEWEST_SPLITS, NOT_RUN, PASS, Finding
from paper.datasets import BY_KEY, TASKS
from paper.evidence import Evidence
from paper.learners import NATIVE
from paper.rivals import RIVALS
from paper.stats import Interval, Scores
from paper.synthetic import AUTHORS_GRIDS, GRIDS, TAIL_GRID
from paper.tables import LABELS, Table, level_text

BASES = ("quantile", "kmeans")
METHODS = (*BASES, *OUR_METHODS, NATIVE, *RIVALS)
TOLERATED = 1.005  # of the error on a dataset, relative to each of the bases
TOLERATED_TAIL = 1.05  # of the error in a cell of the grid where tails are irrelevant, relative to quantile
FRONTIER = "auto-frontier"
FEWEST_DRAWS = 3  # of a cell, for a statement on it
FACTOR, FAR = 2.0, 20  # by which the error is lower than with k-means where outliers are at this scale


def all_tables(evidence: Evidence) -> Iterator[Table]:
    """Yield the bars, and the tables that they are read from, as far as there is evidence."""
    has_cells = "auto" in evidence.cell_errors
    if evidence.with_auto or has_cells:
        yield bars(evidence)
    if evidence.with_auto:
        yield from filter(None, (means_table(evidence), same_means_table(evidence), worst_table(evidence)))
    if has_cells:
        yield from filter(None, (grids_table(evidence), tails_table(evidence), frontier(evidence)))


# ---- the bars


def bars(evidence: Evidence) -> Table:
    """Return what is asked, what was measured, and PASS or FAIL."""
    rows = []
    for (learner, bins), tracks in evidence.with_auto.items():
        where = f"{learner}, {bins} bins"
        rows.append(("Geometric mean of the error below that of quantile and of kmeans", where, lower_mean(tracks)))
        text = "On no dataset worse than either by more than 0.5 % beyond noise"
        rows.append((text, where, no_dataset_worse(tracks)))
    errors = evidence.cell_errors
    rows += [
        ("In no cell worse than kmeans beyond noise", "grids 1 to 6", no_cell_worse(errors)),
        (f"Error at least {FACTOR:g} x lower than with kmeans", f"outliers at scale {FAR}", lower_far_out(errors)),
        ("In no cell more than 5 % worse than quantile", f"grid {TAIL_GRID}", safe_tails(errors)),
    ]
    order = list(dict.fromkeys(text for text, _, _ in rows))
    rows.sort(key=lambda row: order.index(row[0]))  # one bar's lines together
    frame = pd.DataFrame(
        [
            {
                "asked of auto": text,
                "where": where,
                "": NOT_RUN if finding is None else f"**{PASS if finding.holds else FAIL}**",
                "measured": "" if finding is None else finding.measured,
            }
            for text, where, finding in rows
        ]
    )
    return Table("auto-bars", "What is asked of auto", frame, frame)


def lower_mean(tracks: list[Scores], method: str = "auto") -> Finding | None:
    """Check the geometric mean over all datasets; whether its interval is below 1 too is told, not asked."""
    ratios = {base: stats.error_ratios(tracks, method, base) for base in BASES}
    if not all(_is_whole(table) for table in ratios.values()):
        return None
    means = {base: stats.geometric_mean(table["ratio"]) for base, table in ratios.items()}
    text = "; ".join(f"{_interval(mean)} of {base}'s" for base, mean in means.items())
    text += f" ({_range(ratios['kmeans']['n'].min(), ratios['kmeans']['n'].max())} splits)"
    return Finding(text, all(mean.mean < 1 for mean in means.values()))


def no_dataset_worse(tracks: list[Scores], method: str = "auto") -> Finding | None:
    """Check every dataset against each of the two: the whole interval above the bound is a failure."""
    table = behind(tracks, method)
    if not all(_is_whole(table[table["base"] == base]) for base in BASES):
        return None
    worse = table[table["low"] > TOLERATED]
    listed = worse if len(worse) else table[table["ratio"] == table["ratio"].max()].head(1)
    text = ("" if len(worse) else "at worst ") + "; ".join(_dataset(row) for row in listed.itertuples())
    # Noise that hides a loss is no proof that there is none.
    unknown = table.loc[(table["low"] <= TOLERATED) & (table["high"] > TOLERATED), "dataset"].nunique()
    splits = _range(table["n"].min(), table["n"].max())
    return Finding(f"{text}; neither shown nor ruled out on {unknown} datasets ({splits} splits)", worse.empty)


def no_cell_worse(errors: pd.DataFrame, method: str = "auto") -> Finding | None:
    """Check every cell of the author's grids against k-means, over paired draws."""
    cells = _cells(errors, method, "kmeans", tail=False)
    if len(cells) < sum(len(grid.cells) for grid in AUTHORS_GRIDS) or cells["n"].min() < FEWEST_DRAWS:
        return None
    worse = cells[cells["low"] > 1].sort_values("ratio", ascending=False)
    certain = int((worse["adjusted_p"] < stats.ALPHA).sum())
    better = int((cells["high"] < 1).sum())
    above = int((cells["ratio"] > 1).sum())
    text = (
        f"better beyond noise in {better} of {len(cells)} cells, above 1 in {above}, worse beyond noise in {len(worse)}"
    )
    if len(worse):
        text += f" ({certain} after adjustment): " + "; ".join(
            f"{_cell(cell)} {row.ratio:.2f}" for cell, row in zip(worse.index, worse.itertuples(), strict=True)
        )
    return Finding(f"{text} ({_draws(cells)})", worse.empty)


def lower_far_out(errors: pd.DataFrame, method: str = "auto") -> Finding | None:
    """Check the cells with outliers at the farthest scale."""
    cells = _far_cells(errors, method)
    if cells.empty or cells["n"].min() < FEWEST_DRAWS:
        return None
    factor = 1 / cells["ratio"]
    least = factor.idxmin()
    text = (
        f"{factor.min():.2f} to {factor.max():.2f} x, least at {_cell(least)} "
        f"({1 / cells.loc[least, 'high']:.2f} to {1 / cells.loc[least, 'low']:.2f}), "
        f"reached in {(factor >= FACTOR).sum()} of {len(cells)} cells ({_draws(cells)})"
    )
    return Finding(text, bool((factor >= FACTOR).all()))


def safe_tails(errors: pd.DataFrame, method: str = "auto") -> Finding | None:
    """Check the grid where tails are irrelevant against quantile."""
    cells = _cells(errors, method, "quantile", tail=True)
    if len(cells) < len(GRIDS[TAIL_GRID].cells) or cells["n"].min() < FEWEST_DRAWS:
        return None
    worse = cells[cells["ratio"] > TOLERATED_TAIL].sort_values("ratio", ascending=False)
    listed = worse if len(worse) else cells[cells["ratio"] == cells["ratio"].max()].head(1)
    text = "; ".join(
        f"{_cell(cell)} bins {row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})"
        for cell, row in zip(listed.index, listed.itertuples(), strict=True)
    )
    prefix = f"{len(worse)} of {len(cells)} cells: " if len(worse) else "at worst "
    return Finding(f"{prefix}{text} ({_draws(cells)})", worse.empty)


def behind(tracks: Iterable[Scores], method: str) -> pd.DataFrame:
    """Return the error on each dataset relative to each of the bases, with its interval."""
    tracks = list(tracks)
    found = [stats.error_ratios(tracks, method, base).assign(base=base) for base in BASES if base != method]
    return pd.concat(found).rename_axis("dataset").reset_index()


def _is_whole(ratios: pd.DataFrame) -> bool:
    return len(ratios) == sum(task.used for task in TASKS) and ratios["n"].min() >= FEWEST_SPLITS


def _cells(errors: pd.DataFrame, method: str, base: str, tail: bool) -> pd.DataFrame:
    if method == base or not {method, base} <= set(errors):  # the base is 1 everywhere, which tells nothing
        return pd.DataFrame(columns=["ratio", "low", "high", "n"], dtype=float)
    return stats.cell_ratios(errors[(errors["grid"] == TAIL_GRID) == tail], method, base)


def _far_cells(errors: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return the cells that have outliers, at the farthest scale, relative to k-means."""
    cells = _cells(errors, method, "kmeans", tail=False)
    data = [GRIDS[grid].cells[row, col] for grid, row, col in cells.index]
    return cells[[cell.outlier_scale == FAR and cell.outlier_fraction > 0 for cell in data]]


# ---- the tables that they are read from


def means_table(evidence: Evidence) -> Table:
    """Return the geometric mean over the datasets of each method's error relative to quantile."""
    title = "Real data: geometric mean of the error (MSE, 1 − AUC) relative to quantile, over the datasets"
    return _means_table("auto-means", title, evidence.with_auto)


def same_means_table(evidence: Evidence) -> Table | None:
    """Return the same on the splits that all methods have, where some were run on fewer."""
    same = {where: [scores.without() for scores in tracks] for where, tracks in evidence.with_auto.items()}
    if all(len(a.table) == len(b.table) for w in same for a, b in zip(same[w], evidence.with_auto[w], strict=True)):
        return None
    title = "Real data: the same, on the datasets and splits that all methods were run on"
    return _means_table("auto-same", title, same)


def _means_table(name: str, title: str, settings: dict[tuple[str, int], list[Scores]]) -> Table:
    numbers = []
    for (learner, bins), tracks in settings.items():
        for method in METHODS[1:]:
            ratios = stats.error_ratios(tracks, method, "quantile")
            if len(ratios):
                mean = stats.geometric_mean(ratios["ratio"])
                numbers.append({"learner": learner, "bins": bins, "method": method, **vars(mean), **_amount(ratios)})
    frame = pd.DataFrame(numbers)
    shown = _wide(frame, [_interval(Interval(*row)) for row in frame[["mean", "low", "high"]].to_numpy()])
    note = "In brackets: the 95 % interval, bootstrapped over the datasets. Below 1 is better."
    return Table(name, title, shown, frame, (note, _amounts(frame)))


def worst_table(evidence: Evidence) -> Table:
    """Return each method's worst dataset relative to the better of quantile and k-means."""
    numbers = []
    for (learner, bins), tracks in evidence.with_auto.items():
        for method in METHODS:
            table = behind(tracks, method)
            if len(table):
                worst = table.loc[table["ratio"].idxmax()]
                failed = table.loc[table["low"] > TOLERATED, "dataset"].nunique()
                numbers.append(
                    {"learner": learner, "bins": bins, "method": method, **worst, "failed": failed, **_amount(table)}
                )
    frame = pd.DataFrame(numbers)
    shown = _wide(frame, [f"{row.failed}; {_dataset(row)}" for row in frame.itertuples()])
    title = "Real data: datasets that are worse than quantile or kmeans by more than 0.5 % beyond noise; the worst one"
    note = (
        "The number of such datasets, and the one with the greatest mean error relative to the better of the two, with "
        "its Nadeau-Bengio interval: being the worst of many, it is worse in part by luck."
    )
    return Table("auto-worst", title, shown, frame, (note, _amounts(frame)))


def grids_table(evidence: Evidence) -> Table | None:
    """Return each method on the author's grids relative to k-means."""
    errors, numbers = evidence.cell_errors, []
    for method in METHODS:
        cells = _cells(errors, method, "kmeans", tail=False)
        if method == "kmeans" or cells.empty:
            continue
        far = 1 / _far_cells(errors, method)["ratio"]
        by_grid = np.exp(np.log(cells["ratio"]).groupby("grid").mean())
        numbers.append(
            {
                "method": method,
                **{f"grid {grid}": ratio for grid, ratio in by_grid.items()},
                "worst": cells["ratio"].max(),
                "worst cell": _cell(cells["ratio"].idxmax()),
                "worse": int((cells["low"] > 1).sum()),
                "cells": len(cells),
                "fewest": cells["n"].min(),
                "least": far.min(),
                "most": far.max(),
                "draws": _range(cells["n"].min(), cells["n"].max()),
            }
        )
    if not numbers:
        return None
    frame = pd.DataFrame(numbers)
    grids = [name for name in frame if name.startswith("grid ")]
    shown = frame[["method"]].assign(
        **{name: [_number(ratio) for ratio in frame[name]] for name in grids},
        **{
            "worst cell": [f"{row['worst']:.2f} ({row['worst cell']})" for row in numbers],
            "worse beyond noise": [
                f"{row['worse']} of {row['cells']}" if row["fewest"] >= FEWEST_DRAWS else "too few draws"
                for row in numbers
            ],
            f"× lower at scale {FAR}": [
                "" if np.isnan(row["least"]) else f"{row['least']:.2f} to {row['most']:.2f}" for row in numbers
            ],
            "draws": frame["draws"],
        },
    )
    title = "The author's grids: geometric mean of the MSE relative to kmeans, over the cells"
    return Table("auto-grids", title, shown, frame, ("Below 1 is better; noise: paired over the draws, not adjusted.",))


def tails_table(evidence: Evidence) -> Table | None:
    """Return each method on the grid where tails are irrelevant relative to quantile."""
    grid, numbers = GRIDS[TAIL_GRID], []
    for method in METHODS[1:]:
        cells = _cells(evidence.cell_errors, method, "quantile", tail=True).reset_index()
        numbers.append(cells.assign(method=method))
    frame = pd.concat(numbers)
    if frame.empty:
        return None
    shown = []
    for method in dict.fromkeys(frame["method"]):
        cells = frame[frame["method"] == method].set_index(["row", "col"])
        for row in grid.rows:
            line = {"method": method, LABELS[grid.row_factor]: level_text(grid.row_factor, row)}
            for col in grid.cols:
                if (row, col) in cells.index:
                    cell = cells.loc[(row, col)]
                    text = f"{cell['ratio']:.2f} ({cell['low']:.2f} to {cell['high']:.2f})"
                    line[f"{col:g} bins"] = f"**{text}**" if cell["ratio"] > TOLERATED_TAIL else text
            shown.append({**line, "draws": _range(cells["n"].min(), cells["n"].max())})
    title = f"Grid {TAIL_GRID}, where tails are irrelevant: geometric mean of the MSE relative to quantile"
    note = "In brackets: the 95 % interval, paired over the draws. Bold: more than 5 % worse."
    return Table("auto-tails", title, pd.DataFrame(shown).fillna(""), frame, (note,))


def frontier(evidence: Evidence) -> Table | None:
    """Return what a method gains on the author's grids beside what it loses where tails are irrelevant."""
    errors = evidence.cell_errors
    errors = errors.dropna(subset=[method for method in METHODS if method in errors])  # the same draws for all
    gains = {method: _cells(errors, method, "quantile", tail=False) for method in METHODS}
    losses = {method: _cells(errors, method, "quantile", tail=True) for method in METHODS}
    both = [method for method in METHODS if len(gains[method]) and len(losses[method])]
    if "auto" not in both:
        return None
    shared = gains["auto"].index
    where = "grids " + ", ".join(map(str, sorted(set(shared.get_level_values("grid")))))
    numbers = [
        {
            "method": method,
            "gain": float(np.exp(np.log(gains[method]["ratio"]).mean())),
            "loss": losses[method]["ratio"].max(),
            "worst cell": _cell(losses[method]["ratio"].idxmax()),
        }
        for method in both
    ]
    numbers.insert(0, {"method": "quantile", "gain": 1.0, "loss": 1.0, "worst cell": ""})
    frame = pd.DataFrame(numbers)
    shown = pd.DataFrame(
        {
            "method": frame["method"],
            where: [f"{gain:.2f}" for gain in frame["gain"]],
            f"worst cell of grid {TAIL_GRID}": [
                f"{row['loss']:.2f} ({row['worst cell']} bins)" if row["loss"] > 1 else f"{row['loss']:.2f}"
                for row in numbers
            ],
        }
    )
    title = "The trade-off: MSE relative to quantile"
    note = (
        f"{where.capitalize()}: geometric mean over {len(shared)} cells. On the draws that all methods were run on "
        f"({_draws(gains['auto'])}, and {_draws(losses['auto'])} of grid {TAIL_GRID}). Lower is better in both."
    )
    return Table(FRONTIER, title, shown, frame, (note,))


# ---- texts


def _wide(frame: pd.DataFrame, texts: list[str]) -> pd.DataFrame:
    """Return one line per method and one column per learner and number of bins."""
    lines: dict[str, dict[str, str]] = {}
    for row, text in zip(frame.itertuples(), texts, strict=True):
        lines.setdefault(row.method, {"method": row.method})[f"{row.learner}, {row.bins} bins"] = text
    return pd.DataFrame([lines[method] for method in METHODS if method in lines]).fillna("")


def _amount(ratios: pd.DataFrame) -> dict[str, int]:
    n_datasets = len(ratios) if "dataset" not in ratios else ratios["dataset"].nunique()
    return {"datasets": n_datasets, "splits": int(ratios["n"].min()), "most_splits": int(ratios["n"].max())}


def _amounts(frame: pd.DataFrame) -> str:
    """Say how many datasets and splits each method was run on."""
    found: dict[str, list[str]] = {}
    for method, part in frame.groupby("method", sort=False):
        splits = _range(part["splits"].min(), part["most_splits"].max())
        datasets = _range(part["datasets"].min(), part["datasets"].max())
        found.setdefault(f"{datasets} datasets, {splits} splits", []).append(str(method))
    return "; ".join(f"{', '.join(methods)}: {amount}" for amount, methods in found.items()) + "."


def _draws(cells: pd.DataFrame) -> str:
    return f"{_range(cells['n'].min(), cells['n'].max())} draws"


def _range(low: float, high: float) -> str:
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def _interval(mean: Interval) -> str:
    return f"{mean.mean:.3f}" if np.isnan(mean.low) else f"{mean.mean:.3f} ({mean.low:.3f} to {mean.high:.3f})"


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def _dataset(row: object) -> str:
    """Say how a dataset fares relative to a base, in percent."""
    name = BY_KEY[row.dataset].title  # type: ignore[attr-defined]
    ratio, low, high = (100 * (getattr(row, name) - 1) for name in ("ratio", "low", "high"))
    interval = "" if np.isnan(low) else f" ({low:+.1f} to {high:+.1f})"
    return f"{name} {ratio:+.1f} % against {row.base}{interval}"  # type: ignore[attr-defined]


def _cell(cell: tuple[int, float | str, float]) -> str:
    grid, row, col = cell
    factors = (GRIDS[grid].row_factor, row), (GRIDS[grid].col_factor, col)
    levels = " x ".join(level_text(factor, level) for factor, level in factors)
    return levels if grid == TAIL_GRID else f"grid {grid}: {levels}"
