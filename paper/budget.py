"""What is asked where columns share a total of bins, what was measured, and whether it holds.

All errors are relative to the library's own 255 bins, on the same splits. The intervals are not adjusted for how many
there are: some of so many comparisons are beyond noise by chance alone, and the worst of many is so in part by luck.
Constants were tuned on the development half of the datasets only; the other half is shown apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from paper import stats
from paper.binning import BUDGETS
from paper.claims import FAIL, FEWEST_SPLITS, NOT_RUN, PASS, Finding
from paper.datasets import BY_KEY, DEVELOPMENT, KEPT_ASIDE, TASKS
from paper.evidence import Evidence
from paper.jobs import BUDGET_SETTINGS, FLAG_LEARNERS, label
from paper.learners import NATIVE
from paper.stats import Scores
from paper.synthetic import GRIDS, MISLEADING_GRID
from paper.tables import Table, level_text

FINE, COARSE = "native-4095", "native-63"
METHODS = tuple(dict.fromkeys([*(label(*setting) for setting in BUDGET_SETTINGS), "uniform+quantile"]))
ALL = "all"
SUMMARY = "budget-summary-"
NAMES = {"average-63": "63 on average", "average-255": "255 on average", "auto-bins": "auto-bins"}
HALVES = (ALL, DEVELOPMENT, KEPT_ASIDE)
FEWEST_DRAWS, FEWEST_REPEATS = 3, 3  # of a cell, and of a time, for a statement on it
WITH_HEADROOM = ("classification/electricity", "regression/nyc-taxi-green-dec-2016")
HEADROOM = 0.7  # of what native 4,095 bins gain on these
SECONDS_63 = {"lightgbm": 0.85, "xgboost": 0.70}  # of those of training with native 255 bins
SECONDS_255, SECONDS_AUTO = 1.15, 0.9
WHOLE_SECONDS = 1.1  # of finding the bins and training
BINS_AUTO = 63


@dataclass(frozen=True)
class Setting:
    """All results of a learner with a protocol and a limit of rows, by what was compared."""

    learner: str
    protocol: str
    max_rows: int
    rows: pd.DataFrame
    """As the store gives them, with dataset and label."""
    before: pd.DataFrame | None = None
    """Likewise, of jobs that were run again."""

    @property
    def name(self) -> str:
        """Return a name that files can have."""
        return f"{self.learner}-{self.protocol}" + (f"-{self.max_rows}rows" if self.max_rows else "")

    @property
    def title(self) -> str:
        """Return a heading."""
        rows = f", at most {self.max_rows:,} rows" if self.max_rows else ""
        return f"{self.learner}, protocol {self.protocol}{rows}"

    @cached_property
    def tracks(self) -> list[Scores]:
        """Return the scores, one table per track."""
        named = self.rows.assign(method=self.rows["label"])
        return [Scores.of(table) for _, table in named.groupby("track", sort=False)]

    @property
    def methods(self) -> list[str]:
        """Return what was compared, in the order of tables."""
        return [method for method in METHODS if method in set(self.rows["label"])]

    def ratios(self, method: str, base: str = NATIVE, half: str = ALL) -> pd.DataFrame:
        """Return the error on each dataset of a half relative to that of another method, with its interval."""
        found = stats.error_ratios(self.tracks, method, base)
        return found.loc[[dataset for dataset in found.index if half in (ALL, BY_KEY[dataset].half)]]

    def seconds(self, method: str) -> pd.DataFrame:
        """Return the seconds on each dataset relative to native 255 bins: of training, and of all with the bins.

        Medians over the splits that both were timed on in one run, and how many these are.
        """
        return seconds(pd.concat([self.rows.head(0) if self.before is None else self.before, self.rows]), method)

    def bins(self, method: str) -> pd.Series:
        """Return the average number of bins per column on each dataset."""
        rows = self.rows[self.rows["label"] == method]
        return rows.groupby("dataset", sort=False)["mean_bins"].mean().dropna()


def seconds(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return how long a method takes on the data of some rows, relative to native 255 bins in the same run."""
    parts = ["bin_seconds", "train_seconds"]
    rows = rows[rows["run"].fillna("").ne("")]
    mine, base = (rows[rows["label"] == name].set_index(["data", "seed", "run"])[parts] for name in (method, NATIVE))
    both = mine.join(base.add_suffix("_base"), how="inner")
    whole, whole_base = (both[[part + end for part in parts]].sum(axis=1) for end in ("", "_base"))
    apart = both["bin_seconds"].notna()  # else it is not known
    ratios = pd.DataFrame(
        {
            "training": (both["train_seconds"] / both["train_seconds_base"]).where(apart),
            "whole": whole / whole_base,
        }
    )
    grouped = ratios.groupby("data", sort=False)
    return grouped.median().assign(n=grouped.size())


def settings(evidence: Evidence) -> list[Setting]:
    """Return all settings in which columns shared a total of bins."""
    rows, before = evidence.compared_budgets, evidence.compared_before
    tried = rows[rows["method"].isin(list(BUDGETS))]
    keys = ["learner", "protocol", "max_rows"]
    found = []
    for key in sorted(set(tried[keys].itertuples(index=False, name=None))):
        part = rows[(rows[keys] == list(key)).all(axis=1)]
        if NATIVE in set(part["label"]):
            found.append(Setting(*key, part, before[(before[keys] == list(key)).all(axis=1)]))
    return found


def all_tables(evidence: Evidence) -> Iterator[Table]:
    """Yield the bars, and the tables that they are read from, as far as there is evidence."""
    found = settings(evidence)
    cells = evidence.misleading
    speed = evidence.speed
    if found or cells or len(speed):
        yield bars(found, cells, speed)
    for setting in found:
        yield summary(setting)
    for setting in found:
        yield datasets_table(setting)
    for (learner, protocol), errors in cells.items():
        yield grid_table(learner, protocol, errors)
    if len(speed):
        yield speed_table(speed)


# ---- the bars


Bar = Callable[[Setting], Finding | None]


def bars(found: list[Setting], cells: dict[tuple[str, str], pd.DataFrame], speed: pd.DataFrame) -> Table:
    """Return what is asked, what was measured, and PASS or FAIL."""
    lines: list[tuple[str, str, Finding | None]] = []
    asked = [setting for setting in found if setting.learner in FLAG_LEARNERS]
    for text, bar in BARS:
        lines += [(text, setting.title, bar(setting)) for setting in asked]
    for text, method, base in CELL_BARS:
        lines += [
            (text, f"grid {MISLEADING_GRID}, {learner}, protocol {protocol}", no_cell_worse(errors, method, base))
            for (learner, protocol), errors in cells.items()
        ]
    for method, name in NAMES.items():
        text = f"{name}: bins and training together at most {WHOLE_SECONDS:g} of native 255"
        lines += [(text, where, quick_enough(rows, method)) for where, rows in _speeds(speed)]
    frame = pd.DataFrame(
        [
            {
                "asked": text,
                "where": where,
                "": NOT_RUN if finding is None else f"**{PASS if finding.holds else FAIL}**",
                "measured": "" if finding is None else finding.measured,
            }
            for text, where, finding in lines
        ]
    )
    note = (
        "Beyond noise: the whole 95 % interval (Nadeau-Bengio; on the grid, paired over the draws) is. "
        f"NOT RUN: not on all datasets, or on less than {FEWEST_SPLITS} splits of one."
    )
    return Table("budget-bars", "What is asked of a total of bins", frame, frame, (note,))


def mean_at_most(setting: Setting, method: str, most: float, below: str = "") -> Finding | None:
    """Check the geometric mean over all datasets, and whether it is below that of another method."""
    names = [method, *filter(None, [below])]
    ratios = {name: setting.ratios(name) for name in names}
    if not all(map(_is_whole, ratios.values())):
        return None
    means = {name: stats.geometric_mean(table["ratio"]) for name, table in ratios.items()}
    halves = (
        f"{half} {_percent(stats.geometric_mean(setting.ratios(method, half=half)['ratio']).mean)}"
        for half in HALVES[1:]
    )
    mean = means[method]
    text = f"{_percent(mean.mean)} ({_signed(mean.low)} to {_signed(mean.high)}; {', '.join(halves)})"
    text += f"; {below} {_percent(means[below].mean)}" if below else ""
    holds = mean.mean <= most and (not below or mean.mean < means[below].mean)
    return Finding(f"{text} ({_splits(ratios[method])})", holds)


def no_dataset_worse(setting: Setting, method: str, base: str, tolerated: float = 1.0) -> Finding | None:
    """Check every dataset: the whole interval above the bound is a failure."""
    table = setting.ratios(method, base)
    if not _is_whole(table):
        return None
    worse = table[table["low"] > tolerated].sort_values("ratio", ascending=False)
    listed = worse if len(worse) else table.nlargest(1, "ratio")
    text = ("" if len(worse) else "at worst ") + "; ".join(map(_dataset, listed.itertuples()))
    # Noise that hides a loss is no proof that there is none.
    unknown = int(((table["low"] <= tolerated) & (table["high"] > tolerated)).sum())
    text += f"; neither shown nor ruled out on {unknown} datasets ({_splits(table)})"
    return Finding(text, worse.empty)


def headroom(setting: Setting, method: str) -> Finding | None:
    """Check what a method has of that which the finest native bins gain, where they gain much; of `strong` only."""
    if setting.protocol != "strong":
        return None
    tables = [setting.ratios(name).reindex(WITH_HEADROOM) for name in (method, FINE)]
    if any(table["ratio"].isna().any() or table["n"].min() < FEWEST_SPLITS for table in tables):
        return None
    texts, holds = [], True
    for dataset in WITH_HEADROOM:
        gain, possible = (1 - table.loc[dataset, "ratio"] for table in tables)
        holds &= bool(gain >= HEADROOM * possible)
        part = f", {gain / possible:.0%} of it" if possible > 0 else ""
        texts.append(f"{BY_KEY[dataset].title} {_percent(1 - gain)}, {FINE} {_percent(1 - possible)}{part}")
    return Finding(f"{'; '.join(texts)} ({_splits(tables[0])})", holds)


def training_at_most(setting: Setting, method: str, most: float) -> Finding | None:
    """Check the geometric mean over the datasets of the time of training relative to native bins."""
    found = setting.seconds(method)
    ratios = found.loc[found["n"] >= FEWEST_SPLITS, "training"].dropna()
    if len(ratios) < _all_tasks():
        return None
    mean = stats.geometric_mean(ratios).mean
    worst = ratios.idxmax()
    return Finding(f"{mean:.2f} (most on {BY_KEY[worst].title}: {ratios.max():.2f})", mean <= most)


def few_bins(setting: Setting, method: str) -> Finding | None:
    """Check the median over the datasets of the average number of bins per column."""
    bins = setting.bins(method)
    if not _is_whole(setting.ratios(method)):
        return None
    return Finding(f"{bins.median():.0f} per column ({bins.min():.0f} to {bins.max():.0f})", bins.median() < BINS_AUTO)


def no_cell_worse(errors: pd.DataFrame, method: str, base: str) -> Finding | None:
    """Check every cell of the grid where tails mislead, over paired draws."""
    cells = _cells(errors, method, base)
    if len(cells) < len(GRIDS[MISLEADING_GRID].cells) or cells["n"].min() < FEWEST_DRAWS:
        return None
    worse = cells[cells["low"] > 1].sort_values("ratio", ascending=False)
    listed = worse if len(worse) else cells.nlargest(1, "ratio")
    text = "; ".join(
        f"{_cell(cell)} {_percent(row.ratio)} ({_signed(row.low)} to {_signed(row.high)})"
        for cell, row in zip(listed.index, listed.itertuples(), strict=True)
    )
    return Finding(f"{'' if len(worse) else 'at worst '}{text} ({cells['n'].min()} draws)", worse.empty)


def quick_enough(rows: pd.DataFrame, method: str) -> Finding | None:
    """Check the time of finding the bins and training on a table."""
    found = seconds(rows, method)
    if found.empty or found["n"].min() < FEWEST_REPEATS:
        return None
    ratio = found["whole"].iloc[0]
    return Finding(f"{ratio:.2f} ({found['n'].iloc[0]} repeats)", bool(ratio <= WHOLE_SECONDS))


def _speeds(speed: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the timed tables: what was timed where, and its rows."""
    for (data, learner, protocol), rows in speed.groupby(["data", "learner", "protocol"], sort=False):
        yield f"{data.replace('x', ' x ')}, {learner}, protocol {protocol}", rows


def _seconds_63(setting: Setting) -> Finding | None:
    return training_at_most(setting, "average-63", SECONDS_63[setting.learner])


BARS: tuple[tuple[str, Bar], ...] = (
    ("63 on average: geometric mean of the error at most that of native 255",
     lambda s: mean_at_most(s, "average-63", 1.0)),
    ("63 on average: no dataset worse than native 255 by more than 5 % beyond noise",
     lambda s: no_dataset_worse(s, "average-63", NATIVE, 1.05)),
    ("63 on average: no dataset worse than native 63 beyond noise",
     lambda s: no_dataset_worse(s, "average-63", COARSE)),
    ("63 on average: no dataset worse than kmeans with 63 each beyond noise",
     lambda s: no_dataset_worse(s, "average-63", "kmeans-63")),
    ("63 on average: training time at most 0.85 (lightgbm), 0.70 (xgboost) of native 255", _seconds_63),
    ("255 on average: geometric mean of the error at least 1.5 % below native 255, and below native 4,095",
     lambda s: mean_at_most(s, "average-255", 0.985, FINE)),
    ("255 on average: no dataset worse than native 255 by more than 1 % beyond noise",
     lambda s: no_dataset_worse(s, "average-255", NATIVE, 1.01)),
    ("255 on average: no dataset worse than kmeans with 255 each beyond noise",
     lambda s: no_dataset_worse(s, "average-255", "kmeans")),
    ("255 on average: at least 70 % of what native 4,095 gain on electricity and nyc-taxi, protocol strong",
     lambda s: headroom(s, "average-255")),
    ("255 on average: training time at most 1.15 of native 255",
     lambda s: training_at_most(s, "average-255", SECONDS_255)),
    ("auto-bins: no dataset worse than native 255 by more than 0.5 % beyond noise",
     lambda s: no_dataset_worse(s, "auto-bins", NATIVE, 1.005)),
    ("auto-bins: median of the bins per column below 63", lambda s: few_bins(s, "auto-bins")),
    ("auto-bins: training time at most 0.9 of native 255",
     lambda s: training_at_most(s, "auto-bins", SECONDS_AUTO)),
)  # fmt: skip
"""(what is asked, its check)."""

CELL_BARS = (
    ("63 on average: in no cell worse than kmeans with 63 each beyond noise", "average-63", "kmeans-63"),
    ("255 on average: in no cell worse than kmeans with 255 each beyond noise", "average-255", "kmeans"),
    ("auto-bins: in no cell worse than native 255 beyond noise", "auto-bins", NATIVE),
)
"""(what is asked, of which method, against which)."""


def _all_tasks() -> int:
    return sum(task.used for task in TASKS)


def _is_whole(ratios: pd.DataFrame) -> bool:
    return len(ratios) == _all_tasks() and bool(ratios["n"].min() >= FEWEST_SPLITS)


# ---- the tables that they are read from


def summary(setting: Setting) -> Table:
    """Return each method's error, time and bins over the datasets, of both halves apart."""
    numbers, shown = [], []
    for half in HALVES:
        for method in setting.methods[1:]:
            ratios = setting.ratios(method, half=half)
            if ratios.empty:
                continue
            mean, seconds = stats.geometric_mean(ratios["ratio"]), setting.seconds(method)
            kept = [dataset for dataset in seconds.index if dataset in ratios.index]
            times = {part: _geometric(seconds.loc[kept, part]) for part in ("training", "whole")}
            bins = setting.bins(method)
            bins = bins[bins.index.isin(ratios.index)].median()
            worst = next(ratios.nlargest(1, "ratio").itertuples())
            lost, won = int((ratios["low"] > 1).sum()), int((ratios["high"] < 1).sum())
            numbers.append(
                {"half": half, "method": method, **vars(mean), "median": ratios["ratio"].median(),
                 "worst": worst.ratio, "worst_dataset": worst.Index, "worst_low": worst.low, "worst_high": worst.high,
                 "better": won, "worse": lost, **times, "bins": bins, "datasets": len(ratios),
                 "splits": ratios["n"].min()}
            )  # fmt: skip
            interval = "" if np.isnan(mean.low) else f" ({_signed(mean.low)} to {_signed(mean.high)})"
            shown.append(
                {
                    "datasets": f"{half}, {len(ratios)}",
                    "method": method,
                    "geometric mean": f"{_percent(mean.mean)}{interval}",
                    "median": _percent(ratios["ratio"].median()),
                    "worst": _dataset(worst),
                    "better, worse beyond noise": f"{won}, {lost}",
                    "training": _number(times["training"]),
                    "bins + training": _number(times["whole"]),
                    "bins per column": "" if np.isnan(bins) else f"{bins:.0f}",
                    "splits": _range(ratios["n"].min(), ratios["n"].max()),
                }
            )
    note = (
        "Error (MSE, 1 − AUC) relative to native 255 bins. In brackets: 95 % intervals, of the mean bootstrapped over "
        "the datasets, of a dataset Nadeau-Bengio. Times: relative to native 255 bins, geometric mean over datasets "
        "of the median over the splits; empty where they were not timed in one run. Bins per column: median over the "
        f"datasets. Constants were tuned on the half called {DEVELOPMENT}."
    )
    title = f"A total of bins against native 255: {setting.title}"
    return Table(f"{SUMMARY}{setting.name}", title, pd.DataFrame(shown), pd.DataFrame(numbers), (note,))


LIBRARIES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}


def frontier(tables: Iterable[Table]) -> tuple[pd.DataFrame, dict[str, str]] | None:
    """Return the summaries with protocol `strong`, and the libraries' names by setting, where times are known."""
    found = {
        table.name.removeprefix(SUMMARY): table.numbers
        for table in tables
        if table.name.startswith(SUMMARY) and "-strong" in table.name and "training" in table.numbers
    }
    found = {name: numbers for name, numbers in found.items() if numbers["training"].notna().any()}
    learners = {name: LIBRARIES[name.split("-")[0]] for name in found if name.split("-")[0] in LIBRARIES}
    if not learners:
        return None
    return pd.concat(found[name].assign(setting=name) for name in learners), learners


def datasets_table(setting: Setting) -> Table:
    """Return each method's error on each dataset."""
    ratios = {method: setting.ratios(method) for method in setting.methods[1:]}
    datasets = [task for task in TASKS if any(task.key in table.index for table in ratios.values())]
    datasets.sort(key=lambda task: task.half != DEVELOPMENT)
    shown, numbers = [], []
    for task in datasets:
        line = {"dataset": task.title, "half": task.half}
        for method, table in ratios.items():
            if task.key in table.index:
                row = table.loc[task.key]
                numbers.append({"dataset": task.key, "half": task.half, "method": method, **row})
                text = f"{_percent(row['ratio'])}{_interval(row['low'], row['high'])}"
                line[method] = f"**{text}**" if row["low"] > 1 else text
        shown.append(line)
    bins = {method: setting.bins(method) for method in ratios}
    numbers = [{**row, "bins": bins[row["method"]].get(row["dataset"], np.nan)} for row in numbers]
    note = "In brackets: Nadeau-Bengio, 95 %, not adjusted. Bold: worse beyond noise."
    title = f"Error on each dataset against native 255: {setting.title}"
    frame = pd.DataFrame(shown).fillna("")
    return Table(f"budget-datasets-{setting.name}", title, frame, pd.DataFrame(numbers), (note,))


def grid_table(learner: str, protocol: str, errors: pd.DataFrame) -> Table:
    """Return each method on the grid where tails mislead."""
    grid, numbers, shown = GRIDS[MISLEADING_GRID], [], []
    for method in [name for name in METHODS[1:] if name in errors]:
        cells = _cells(errors, method, NATIVE)
        numbers.append(cells.reset_index().assign(method=method))
        line = {"method": method}
        for row, col in grid.cells:
            if (grid.number, row, col) in cells.index:
                cell = cells.loc[(grid.number, row, col)]
                text = f"{_percent(cell['ratio'])}{_interval(cell['low'], cell['high'])}"
                line[_cell((grid.number, row, col))] = f"**{text}**" if cell["low"] > 1 else text
        shown.append({**line, "draws": _range(cells["n"].min(), cells["n"].max())})
    note = (
        "In brackets: the 95 % interval, paired over the draws. Bold: worse beyond noise. Few rows hold most of the "
        "error, so that few draws tell little."
    )
    title = f"Grid {grid.number}, where tails mislead: MSE against native 255. {learner}, protocol {protocol}"
    frame = pd.DataFrame(shown).fillna("")
    return Table(f"budget-grid-{grid.number}-{learner}-{protocol}", title, frame, pd.concat(numbers), (note,))


def speed_table(speed: pd.DataFrame) -> Table:
    """Return the times of finding the bins and of training, on tables of two sizes."""
    shown, numbers = [], []
    for where, rows in _speeds(speed):
        for method in [name for name in METHODS if name in set(rows["label"])]:
            own = rows[rows["label"] == method]
            found = seconds(rows, method)
            ratio = found["whole"].iloc[0] if len(found) else np.nan
            middle = own[["bin_seconds", "train_seconds", "mean_bins"]].median()
            numbers.append({"where": where, "method": method, **middle, "whole": ratio, "repeats": len(own)})
            shown.append(
                {
                    "table": where,
                    "method": method,
                    "bins, s": f"{middle['bin_seconds']:.3g}",
                    "training, s": f"{middle['train_seconds']:.3g}",
                    "bins + training": _number(ratio),
                    "bins per column": f"{middle['mean_bins']:.0f}",
                    "repeats": len(own),
                }
            )
    title = "Finding the bins, and training: one thread, nothing beside it"
    note = "Medians. Bins + training: relative to native 255 bins in the same run."
    return Table("budget-speed", title, pd.DataFrame(shown), pd.DataFrame(numbers), (note,))


def _cells(errors: pd.DataFrame, method: str, base: str) -> pd.DataFrame:
    if not {method, base} <= set(errors):
        return pd.DataFrame(columns=["ratio", "low", "high", "n"], dtype=float)
    return stats.cell_ratios(errors, method, base)


def _geometric(ratios: pd.Series) -> float:
    return float(np.exp(np.log(ratios.dropna()).mean())) if ratios.notna().any() else np.nan


# ---- texts


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}"


def _percent(ratio: float) -> str:
    return f"{_signed(ratio)} %"


def _interval(low: float, high: float) -> str:
    return "" if np.isnan(low) else f" ({_signed(low)} to {_signed(high)})"


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def _range(low: float, high: float) -> str:
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def _splits(ratios: pd.DataFrame) -> str:
    return f"{_range(ratios['n'].min(), ratios['n'].max())} splits"


def _dataset(row: object) -> str:
    """Say how a dataset fares, in percent."""
    ratio, low, high = (getattr(row, name) for name in ("ratio", "low", "high"))
    return f"{BY_KEY[row.Index].title} {_percent(ratio)}{_interval(low, high)}"  # type: ignore[attr-defined]


def _cell(cell: tuple[int, float | str, float]) -> str:
    grid, row, col = cell
    return f"{level_text(GRIDS[grid].row_factor, row)}, {col:g} rows"
