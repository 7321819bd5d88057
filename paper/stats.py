"""The statistics: the paper's own, and beside them those that overlapping splits call for.

Everything takes and gives plain frames: scores are `Scores`, one row per dataset and seed and one column per method.
Nothing here knows of runs or files.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scikit_posthocs
from scipy import stats
from statsmodels.stats.multitest import multipletests

ALPHA = 0.05
TEST_TO_TRAIN = 0.25  # a fifth is held out
FEWEST = 5  # datasets for a statement on all of them


@dataclass(frozen=True)
class Scores:
    """Scores by dataset and seed (rows) and method (columns); NaN where there is none."""

    table: pd.DataFrame
    metric: str

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Scores:
        """Take a frame with dataset, method, seed, metric and score."""
        (metric,) = frame["metric"].unique()
        rows = frame[["dataset", "seed"]].drop_duplicates()
        table = frame.pivot(index=["dataset", "seed"], columns="method", values="score")
        return cls(table.loc[pd.MultiIndex.from_frame(rows)], metric)

    @property
    def larger_is_better(self) -> bool:
        """AUC is; errors are not."""
        return self.metric == "roc_auc"

    @property
    def datasets(self) -> list[str]:
        """Return the datasets in their order."""
        return list(self.table.index.unique("dataset"))

    @property
    def methods(self) -> list[str]:
        """Return the methods."""
        return list(self.table.columns)

    @property
    def splits(self) -> str:
        """Return how many splits the datasets have, as text."""
        counts = self.table.groupby("dataset").size()
        return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"

    def among(self, *methods: str) -> Scores:
        """Keep some methods, and the splits that all of them have: what can be compared."""
        return Scores(self.table[list(methods)].dropna(), self.metric)

    def without(self, *methods: str) -> Scores:
        """Compare all methods but these."""
        return self.among(*[method for method in self.methods if method not in methods])

    def means(self) -> pd.DataFrame:
        """Return the mean per dataset and method."""
        return self.table.groupby("dataset", sort=False).mean()

    def standard_errors(self) -> pd.DataFrame:
        """Return the standard error of each mean as the paper has it: of the population, and of independent splits."""
        return self.table.groupby("dataset", sort=False).sem(ddof=0)

    def errors(self) -> pd.DataFrame:
        """Return what is to be made small: the error itself, or 1 - AUC."""
        return 1 - self.table if self.larger_is_better else self.table


def ranks(scores: Scores) -> pd.DataFrame:
    """Return each method's rank per dataset, 1 for the best mean; equal ones share the mean of their ranks."""
    return scores.means().rank(axis=1, method="average", ascending=not scores.larger_is_better)


def mean_reciprocal_ranks(scores: Scores) -> pd.Series:
    """Return the MRR over datasets per method."""
    return (1 / ranks(scores)).mean()


def best_against_runner_up(scores: Scores) -> pd.DataFrame:
    """Return per dataset the best method, the runner-up, and the p-value of the paired two-sided t-test."""
    found = []
    for dataset, table in scores.table.groupby("dataset", sort=False):
        order = table.mean().sort_values(ascending=not scores.larger_is_better, kind="stable").index
        best, second = order[0], order[1]
        found.append((dataset, best, second, _paired_p(table[best], table[second])))
    return pd.DataFrame(found, columns=["dataset", "best", "runner_up", "p"]).set_index("dataset")


def _alike(a: pd.Series, b: pd.Series) -> bool:
    """Whether two methods have the same scores, but for rounding."""
    return np.allclose(a, b, rtol=1e-12, atol=0)


def _paired_p(a: pd.Series, b: pd.Series) -> float:
    if len(a) < 2 or _alike(a, b):
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a difference that never varies
        return float(stats.ttest_rel(a, b).pvalue)


def adjusted(p: pd.Series) -> pd.Series:
    """Return the p-values adjusted by Benjamini and Hochberg."""
    return pd.Series(multipletests(p.to_numpy(float), method="fdr_bh")[1], p.index) if len(p) else p


def paired_gain(scores: Scores, method: str, base: str) -> pd.DataFrame:
    """Compare two methods, declared before looking, on every dataset.

    The gain is the relative reduction of the mean error (1 - AUC for classification), in %: one minus a ratio of
    means, whose standard error is that of its linearization. `p` is of the mean difference. (The two can disagree,
    where one split outweighs the others.) Splits of one dataset overlap, so all variances of means are those of Nadeau
    and Bengio (2003), (1/n + test/train) s²; `naive_p` is the plain paired t-test's.
    """
    found = []
    for dataset, table in scores.among(method, base).errors().groupby("dataset", sort=False):
        mine, theirs = table[method], table[base]
        difference = theirs - mine
        n, same = len(difference), _alike(mine, theirs)
        gain, moved = _gain(mine, theirs)
        error = _mean_error(moved)
        reach = stats.t.ppf(1 - ALPHA / 2, n - 1) * error if n > 1 else np.nan
        p = 1.0 if same or n < 2 else _p_of(difference.mean(), difference)
        found.append(
            {
                "dataset": dataset,
                "gain": gain,
                "low": gain - reach,
                "high": gain + reach,
                "standard_error": error,
                "wins": int((difference > 0).sum()),
                "n": n,
                "p": p,
                "naive_p": _paired_p(table[base], table[method]),
            }
        )
    table = pd.DataFrame(found).set_index("dataset")
    return table.assign(adjusted_p=adjusted(table["p"]), adjusted_naive_p=adjusted(table["naive_p"]))


def _mean_error(values: pd.Series) -> float:
    """Return the standard error of a mean over overlapping splits."""
    return float(np.sqrt((1 / len(values) + TEST_TO_TRAIN) * values.var(ddof=1))) if len(values) > 1 else np.nan


def _gain(mine: pd.Series, theirs: pd.Series) -> tuple[float, pd.Series]:
    """Return the relative reduction of the mean error in %, and by how much each split moves it (linearized)."""
    ratio = 1.0 if _alike(mine, theirs) else mine.mean() / theirs.mean()
    return 100 * (1 - ratio), 100 * (ratio * theirs - mine) / theirs.mean()


def _p_of(mean: float, moved: pd.Series) -> float:
    """Return the p-value of a mean that overlapping splits move by so much; NaN, of a single one."""
    with np.errstate(divide="ignore", invalid="ignore"):  # of what never varies
        return float(2 * stats.t.sf(np.divide(abs(mean), _mean_error(moved)), len(moved) - 1))


def gains_beside(ours: Scores, paper: Scores, method: str, base: str, same_splits: Iterable[str] = ()) -> pd.DataFrame:
    """Put the scores of the base and the gains of two runs beside each other, dataset by dataset.

    `p` is of the difference of the gains, with the variances of `paired_gain`. On the datasets in `same_splits` what
    makes a split easy or hard is in both runs, so that they are compared split by split, on those that both have.
    Elsewhere it is Welch's test.
    """
    found = {}
    our_tables, paper_tables = (
        dict(list(scores.among(method, base).table.groupby("dataset", sort=False))) for scores in (ours, paper)
    )
    for dataset in [name for name in our_tables if name in paper_tables]:
        mine, theirs = our_tables[dataset], paper_tables[dataset]
        paired = dataset in same_splits
        if paired:
            mine, theirs = mine.align(theirs, join="inner", axis=0)
        errors = [Scores(table, ours.metric).errors() for table in (mine, theirs)]
        (our_gain, our_moved), (paper_gain, paper_moved) = (_gain(run[method], run[base]) for run in errors)
        if our_gain == paper_gain:
            p = 1.0
        elif paired:
            p = _p_of(our_gain - paper_gain, our_moved - paper_moved)
        else:
            p = _welch_p(our_gain, our_moved, paper_gain, paper_moved)
        found[dataset] = {
            "paper_base": theirs[base].mean(),
            "our_base": mine[base].mean(),
            "paper_gain": paper_gain,
            "our_gain": our_gain,
            "difference": our_gain - paper_gain,
            "our_splits": len(mine),
            "paper_splits": len(theirs),
            "paired": paired,
            "p": p,
        }
    return pd.DataFrame(found.values(), pd.Index(found, name="dataset"))


def _welch_p(gain: float, moved: pd.Series, other: float, other_moved: pd.Series) -> float:
    deviations = [_mean_error(each) * np.sqrt(len(each)) for each in (moved, other_moved)]
    with np.errstate(divide="ignore", invalid="ignore"):  # of what never varies
        found = stats.ttest_ind_from_stats(
            gain, deviations[0], len(moved), other, deviations[1], len(other_moved), equal_var=False
        )
    return float(found.pvalue)


def win_tie_loss(gains: pd.DataFrame, p: str = "adjusted_p") -> tuple[int, int, int]:
    """Count the datasets with a significant gain, none, and a significant loss."""
    clear = gains[p] < ALPHA
    wins, losses = int((clear & (gains["gain"] > 0)).sum()), int((clear & (gains["gain"] < 0)).sum())
    return wins, len(gains) - wins - losses, losses


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


def mean_gain(gains: pd.DataFrame) -> Interval:
    """Return the mean of the datasets' gains, bootstrapped over the datasets."""
    return _bootstrapped(gains["gain"])


def geometric_mean(ratios: pd.Series) -> Interval:
    """Return the geometric mean of the datasets' ratios, bootstrapped over the datasets."""
    found = _bootstrapped(np.log(ratios))
    return Interval(*(float(np.exp(value)) for value in (found.mean, found.low, found.high)))


def _bootstrapped(values: pd.Series) -> Interval:
    numbers = values.to_numpy(float)
    if len(numbers) < FEWEST or np.ptp(numbers) == 0:
        return Interval(float(numbers.mean()), np.nan, np.nan)
    found = stats.bootstrap(
        (numbers,), np.mean, confidence_level=1 - ALPHA, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    return Interval(float(numbers.mean()), float(found.low), float(found.high))


def error_ratios(tracks: Iterable[Scores], method: str, base: str) -> pd.DataFrame:
    """Return each dataset's mean error relative to that of another method, with the interval of `paired_gain`."""
    found = []
    for scores in tracks:
        if {method, base} <= set(scores.methods) and len(scores.among(method, base).table):
            gains = paired_gain(scores, method, base)
            columns = {
                "ratio": "gain",
                "low": "high",
                "high": "low",
            }  # the most that is gained is the least that is left
            ratios = {name: 1 - gains[column] / 100 for name, column in columns.items()}
            found.append(pd.DataFrame({**ratios, "n": gains["n"]}))
    return pd.concat(found) if found else pd.DataFrame(columns=["ratio", "low", "high", "n"], dtype=float)


def cell_ratios(errors: pd.DataFrame, method: str, base: str) -> pd.DataFrame:
    """Return each synthetic cell's geometric mean ratio of two methods' errors over its draws, which are independent.

    `errors` has one row per draw: grid, row, col and a column per method. With the 95 % interval of the paired t-test
    of the logarithms, and its p, also adjusted over all cells.
    """
    both = errors[["grid", "row", "col"]].assign(log=np.log(errors[method] / errors[base])).dropna()
    cells = both.groupby(["grid", "row", "col"], sort=False)["log"].agg(["mean", "sem", "size"])
    reach = stats.t.ppf(1 - ALPHA / 2, np.maximum(cells["size"] - 1, 1)) * cells["sem"]
    with np.errstate(divide="ignore", invalid="ignore"):  # of what never varies
        p = 2 * stats.t.sf(abs(cells["mean"] / cells["sem"]), np.maximum(cells["size"] - 1, 1))
    p = pd.Series(p, cells.index).fillna(1.0)
    return pd.DataFrame(
        {
            "ratio": np.exp(cells["mean"]),
            "low": np.exp(cells["mean"] - reach),
            "high": np.exp(cells["mean"] + reach),
            "n": cells["size"],
            "p": p,
            "adjusted_p": adjusted(p),
        }
    )


@dataclass(frozen=True)
class CriticalDifference:
    """Methods by their average rank over the datasets, and which of them can be told apart (Demšar 2006)."""

    average_rank: pd.Series
    friedman_p: float
    nemenyi_p: pd.DataFrame


def critical_difference(scores: Scores) -> CriticalDifference | None:
    """Compare all methods at once: Friedman's test, then Nemenyi's; for three or more on enough datasets."""
    found = ranks(scores)
    if len(found.columns) < 3 or len(found) < FEWEST:
        return None
    return CriticalDifference(
        found.mean().sort_values(),
        float(stats.friedmanchisquare(*found.to_numpy().T).pvalue),
        scikit_posthocs.posthoc_nemenyi_friedman(found.reset_index(drop=True)),
    )


def reductions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each synthetic cell's mean reduction of the MSE in %, its standard error, and p (adjusted per grid).

    `frame` has one row per draw: grid, row, col, reduction.
    """
    cells = frame.groupby(["grid", "row", "col"], sort=False)["reduction"].agg(
        mean="mean",
        standard_error="sem",
        n="size",
        p=lambda draws: stats.ttest_1samp(draws, 0).pvalue if len(draws) > 1 else 1.0,
    )
    return cells.assign(adjusted_p=cells.groupby("grid")["p"].transform(adjusted))


def cells_beside(ours: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Compare the cells of two frames of draws: the difference of the means, and its 95 % interval (Welch)."""
    found = []
    theirs = dict(iter(paper.groupby(["grid", "row", "col"])["reduction"]))
    for cell, draws in ours.groupby(["grid", "row", "col"], sort=False)["reduction"]:
        if cell not in theirs or len(draws) < 2:
            continue
        interval = stats.ttest_ind(draws, theirs[cell], equal_var=False).confidence_interval(1 - ALPHA)
        found.append(
            {
                **dict(zip(("grid", "row", "col"), cell, strict=True)),
                "ours": draws.mean(),
                "paper": theirs[cell].mean(),
                "low": interval.low,
                "high": interval.high,
                "agrees": bool(interval.low <= 0 <= interval.high),
            }
        )
    return pd.DataFrame(found, columns=["grid", "row", "col", "ours", "paper", "low", "high", "agrees"])
