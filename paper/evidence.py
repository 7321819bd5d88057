"""What was measured, as frames that the statistics take: the paper's own results, and those of a store."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from paper.binning import UNBINNED
from paper.datasets import BY_KEY, TASKS
from paper.jobs import SETTINGS_OF_BUDGETS, label
from paper.learners import LEARNERS, NATIVE
from paper.stats import Scores, adjusted, best_against_runner_up
from paper.synthetic import GRIDS, MISLEADING_GRID, level_named

PUBLISHED = Path(__file__).parent / "published"
PAPER, OURS = "paper", "ours"


@dataclass(frozen=True)
class Benchmark:
    """One table of scores: a learner on all datasets of a track, with a number of bins."""

    track: str
    learner: str
    max_bins: int
    protocol: str = "paper"  # how it was run
    max_rows: int = 0
    source: str = OURS

    @property
    def name(self) -> str:
        """Return a name that files and headings can have."""
        rows = f"-{self.max_rows}rows" if self.max_rows else ""
        return f"{self.track}-{self.max_bins}-{self.learner}-{self.source}-{self.protocol}{rows}"

    @property
    def who(self) -> str:
        """Return whose results these are."""
        rows = f", at most {self.max_rows:,} rows" if self.max_rows else ""
        return "the paper's" if self.source == PAPER else f"ours, {self.protocol}{rows}"

    @property
    def title(self) -> str:
        """Return a heading."""
        return f"{self.track.capitalize()}, {self.max_bins} bins, {self.learner}: {self.who}"

    @property
    def base(self) -> str:
        """Return what k-means is compared with: quantiles, or the library's own bins where it has some."""
        return NATIVE if self.learner in LEARNERS and LEARNERS[self.learner].has_flag else "quantile"


@dataclass(frozen=True)
class Evidence:
    """The paper's results and ours."""

    rows: pd.DataFrame
    """Of the store, as `Store.frame` gives them."""
    before: pd.DataFrame | None = None
    """Of jobs that were run again, as `Store.before` gives them."""

    @cached_property
    def failures(self) -> pd.DataFrame:
        """Return the rows of failed jobs."""
        return self.rows[self.rows["error"] != ""]

    @cached_property
    def _good(self) -> pd.DataFrame:
        return self.rows[self.rows["error"] == ""]

    @cached_property
    def real(self) -> dict[Benchmark, Scores]:
        """Return all tables of scores, the paper's first."""
        found = {}
        published = pd.read_csv(PUBLISHED / "real_world_per_seed.csv")
        published["learner"] = published["learner"].replace({"sklearn-gbdt": "sklearn"})
        published["dataset"] = published["track"] + "/" + published["dataset"]
        for (track, learner, bins), table in published.groupby(["track", "learner", "max_bins"], sort=False):
            found[Benchmark(track, learner, bins, source=PAPER)] = Scores.of(in_suite_order(table))
        ours = self._good[self._good["kind"] == "real"]
        ours = ours[ours["method"].isin(["quantile", "uniform", "kmeans", UNBINNED, NATIVE])]
        ours = ours.assign(track=ours["data"].str.split("/").str[0], dataset=ours["data"])
        for (protocol, rows, learner, track), table in ours.groupby(["protocol", "max_rows", "learner", "track"]):
            for bins in sorted(set(table["max_bins"]) - {0}, reverse=True):
                benchmark = Benchmark(track, learner, int(bins), protocol, int(rows))
                scores = Scores.of(in_suite_order(table[table["max_bins"].isin([bins, 0])]))
                comparable = {"kmeans", "quantile", benchmark.base} <= set(scores.methods)
                if comparable and len(scores.without(UNBINNED).table):
                    found[benchmark] = scores
        return found

    @cached_property
    def winners(self) -> dict[Benchmark, pd.DataFrame]:
        """Return the best against the runner-up per dataset, as the paper tests it.

        It adjusts p over all its tests together: 15 classification, 18 at 63 bins, 18 at 255, 3 with XGBoost. Ours
        are adjusted over all tests with one learner and protocol.
        """
        families: dict[tuple[object, ...], list[Benchmark]] = {}
        for benchmark in self.real:
            ours = benchmark.source == OURS and (benchmark.protocol, benchmark.learner, benchmark.max_rows)
            families.setdefault((benchmark.source, ours), []).append(benchmark)
        found = {}
        for family in families.values():
            tests = {benchmark: best_against_runner_up(self.real[benchmark].without(UNBINNED)) for benchmark in family}
            together = pd.concat(tests)
            together["adjusted_p"] = adjusted(together["p"])
            found.update({benchmark: together.loc[benchmark] for benchmark in family})
        return found

    def find(self, track: str, max_bins: int, learner: str, source: str, protocol: str) -> Benchmark | None:
        """Return a benchmark; of several with other limits of rows, the one with most scores."""
        wanted = (track, max_bins, learner, source, protocol)
        fitting = [b for b in self.real if (b.track, b.max_bins, b.learner, b.source, b.protocol) == wanted]
        return max(fitting, key=lambda benchmark: self.real[benchmark].table.size, default=None)

    def same_splits(self, benchmark: Benchmark) -> frozenset[str]:
        """Return the datasets that were split as the paper split them: those of which all rows were used."""
        limit = benchmark.max_rows or math.inf
        return frozenset(task.key for task in TASKS if task.rows <= limit) - self.partial

    @cached_property
    def published_draws(self) -> pd.DataFrame:
        """Return the paper's synthetic draws: grid, row, col, draw, reduction."""
        names = {"experiment": "grid", "mse_reduction_pct": "reduction"}
        frame = pd.read_csv(PUBLISHED / "synthetic_per_draw.csv").rename(columns=names)
        return frame[["grid", "row", "col", "draw", "reduction"]].astype({"row": float, "col": float})

    @cached_property
    def draws_are_quick(self) -> bool:
        """Whether our draws are of protocol smoke."""
        return not ((self._good["kind"] == "synthetic") & (self._good["protocol"] == "paper")).any()

    @cached_property
    def draws(self) -> pd.DataFrame:
        """Return our synthetic draws, in the same form; a quick try counts where there is nothing else."""
        errors = self.cell_errors[self.cell_errors["grid"].isin(set(self.published_draws["grid"]))]
        errors = errors.reindex(columns=["grid", "row", "col", "draw", "quantile", "kmeans"]).dropna()
        if not len(errors):
            return self.published_draws.iloc[:0]
        return (
            pd.DataFrame(
                {
                    **{name: errors[name] for name in ("grid", "row", "col", "draw")},
                    "reduction": 100 * (1 - errors["kmeans"] / errors["quantile"]),
                }
            )
            .astype({"row": float})
            .sort_values(["grid", "row", "col", "draw"], ignore_index=True)
        )

    @cached_property
    def cell_errors(self) -> pd.DataFrame:
        """Return the errors on our synthetic draws, all grids and methods: grid, row, col, draw, and one per method."""
        rows = self._good[(self._good["kind"] == "synthetic") & (self._good["learner"] == "sklearn")]
        return _errors_by_cell(rows[rows["protocol"] == rows["protocol"].min()], "method")

    @cached_property
    def compared_budgets(self) -> pd.DataFrame:
        """Return our results on real data of all that is compared where columns share a total of bins.

        In suite order, with dataset, track and label.
        """
        return _compared(self._good)

    @cached_property
    def compared_before(self) -> pd.DataFrame:
        """Return the same of jobs that were run again: for their times, which are of other runs."""
        rows = self._good.head(0) if self.before is None else self.before
        return _compared(rows[rows["error"] == ""])

    @cached_property
    def speed(self) -> pd.DataFrame:
        """Return the times of finding the bins and training, with label."""
        return _labelled(self._good[self._good["kind"] == "speed"])

    @cached_property
    def misleading(self) -> dict[tuple[str, str], pd.DataFrame]:
        """Return the errors on the grid where tails mislead, by learner and protocol; one column per label."""
        rows = self._good[
            (self._good["kind"] == "synthetic") & self._good["data"].str.startswith(f"{MISLEADING_GRID}/")
        ]
        parts = _labelled(rows).groupby(["learner", "protocol"])
        return {key: _errors_by_cell(part, "label") for key, part in parts if NATIVE in set(part["label"])}

    @cached_property
    def with_auto(self) -> dict[tuple[str, int], list[Scores]]:
        """Return the scores of all methods on real data by learner and number of bins, one table per track.

        Of the protocol and limit of rows that `auto` was tried with most.
        """
        rows = self._good[self._good["kind"] == "real"]
        tried = rows[rows["method"] == "auto"]
        if tried.empty:
            return {}
        rows = rows[
            (rows[["protocol", "max_rows"]] == list(tried.value_counts(["protocol", "max_rows"]).index[0])).all(axis=1)
        ]
        rows = rows.assign(track=rows["data"].str.split("/").str[0], dataset=rows["data"])
        found: dict[tuple[str, int], list[Scores]] = {}
        for learner, bins in dict.fromkeys(zip(tried["learner"], tried["max_bins"], strict=True)):
            part = in_suite_order(rows[(rows["learner"] == learner) & (rows["max_bins"] == bins)])
            found[learner, int(bins)] = [Scores.of(table) for _, table in part.groupby("track", sort=False)]
        return found

    @cached_property
    def timing(self) -> pd.DataFrame:
        """Return seconds by shape, rows, implementation and method."""
        rows = self._good[self._good["kind"] == "timing"]
        return pd.DataFrame(
            {
                "shape": rows["data"].str.split("/").str[0],
                "rows": rows["rows"].astype(int),
                "implementation": rows["learner"],
                "method": rows["method"],
                "seconds": rows["score"],
            }
        ).sort_values(["shape", "implementation", "method", "rows"], ignore_index=True)

    @cached_property
    def alternatives(self) -> pd.DataFrame:
        """Return the runs on those datasets where the alternatives were tried: in the setting with most of them."""
        rows = self._good[(self._good["kind"] == "real") & self._good["bin_seconds"].notna()]
        setting = ["protocol", "max_rows", "learner", "max_bins"]
        tried = rows[rows["method"] == "milp"]
        if tried.empty:
            return tried
        most = tried.value_counts(setting).index[0]
        rows = rows[(rows[setting] == list(most)).all(axis=1) & rows["data"].isin(set(tried["data"]))]
        return in_suite_order(rows.assign(dataset=rows["data"]))

    @cached_property
    def descriptions(self) -> pd.DataFrame:
        """Return rows, features, skew and checksum of the data that we have, by dataset."""
        rows = self._good[self._good["kind"] == "describe"]
        return in_suite_order(rows.assign(dataset=rows["data"])).set_index("dataset")

    @cached_property
    def mixed(self) -> list[str]:
        """Return the datasets of which there are results on different values."""
        counts = self._good[self._good["checksum"] != ""].groupby("data")["checksum"].nunique()
        return sorted(counts.index[counts > 1])

    @cached_property
    def partial(self) -> frozenset[str]:
        """Return the datasets of which our data has fewer rows than the suite."""
        return frozenset(key for key, rows in self.descriptions["rows"].items() if rows < BY_KEY[str(key)].rows)


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["kind"] == "real"]
    rows = _labelled(rows.assign(track=rows["data"].str.split("/").str[0], dataset=rows["data"]))
    compared = {label(*setting) for settings in SETTINGS_OF_BUDGETS.values() for setting in settings}
    return in_suite_order(rows[rows["label"].isin(compared)])


def _labelled(rows: pd.DataFrame) -> pd.DataFrame:
    settings = zip(rows["method"], rows["max_bins"].fillna(0).astype(int), strict=True)
    return rows.assign(label=[label(method, max_bins) for method, max_bins in settings])


def _errors_by_cell(rows: pd.DataFrame, columns: str) -> pd.DataFrame:
    """Return errors on synthetic draws: grid, row, col, draw, and one column per method."""
    scores = rows.pivot(index=["data", "seed"], columns=columns, values="score").reset_index(names=["data", "draw"])
    cells = scores.pop("data").str.split("/", expand=True).reindex(columns=range(3))
    level = [level_named(GRIDS[int(number)], row) for number, row in zip(cells[0], cells[1], strict=True)]
    scores.insert(0, "grid", cells[0].astype(int))
    scores.insert(1, "row", pd.Series(level, scores.index, dtype=object))
    scores.insert(2, "col", cells[2].astype(float))
    return scores


def in_suite_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by their dataset, as the suites have them, then by their seed."""
    order = {task.key: place for place, task in enumerate(TASKS)}
    return frame.sort_values(
        ["dataset", "seed"], key=lambda column: column.map(order) if column.name == "dataset" else column
    )
