"""The paper's sentences with a number in them: what it states, what its own results give, and what ours do.

A claim is checked by one function, on the paper's published results and on each of our protocols alike. Where the
paper's wording leaves the bound open, `passes` says the one that is used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from paper import stats
from paper.binning import UNBINNED
from paper.datasets import BY_KEY, TASKS
from paper.evidence import OURS, PAPER, Benchmark, Evidence
from paper.stats import ALPHA, Scores
from paper.synthetic import AUTHORS_GRIDS
from paper.tables import PARTIAL_NOTE, Table, marked

FEWEST_SPLITS = 10  # for a statement on a track
PASS, FAIL, NOT_RUN = "PASS", "FAIL", "NOT RUN"
SKEWED = "regression/Brazilian_houses"


@dataclass(frozen=True)
class Run:
    """Whose results: the paper's, or ours with a protocol."""

    source: str
    protocol: str

    @property
    def title(self) -> str:
        """Return a heading."""
        return "the paper's own results" if self.source == PAPER else f"ours, protocol {self.protocol}"


RUNS = (Run(PAPER, "paper"), Run(OURS, "fixed"), Run(OURS, "paper"))


@dataclass(frozen=True)
class Finding:
    """What was measured, and whether the claim holds."""

    measured: str
    holds: bool


Check = Callable[[Evidence, Run], Finding | None]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in our words."""

    text: str
    stated: str
    passes: str
    check: Check
    command: str  # what makes our results, after `python -m paper run`


@dataclass(frozen=True)
class Verdict:
    """A claim checked on one run."""

    claim: Claim
    run: Run
    finding: Finding | None

    @property
    def word(self) -> str:
        """PASS, FAIL or NOT RUN."""
        return NOT_RUN if self.finding is None else PASS if self.finding.holds else FAIL


def on_scores(
    track: str, max_bins: int, check: Callable[[Evidence, Benchmark, Scores], Finding | None], learner: str = "sklearn"
) -> Check:
    """Make a check of a table of scores."""

    def checked(evidence: Evidence, run: Run) -> Finding | None:
        benchmark = evidence.find(track, max_bins, learner, run.source, run.protocol)
        return None if benchmark is None else check(evidence, benchmark, evidence.real[benchmark])

    return checked


def on_all(check: Callable[[Evidence, Benchmark, Scores], Finding | None]) -> Any:
    """Let a check of a whole track be made on nothing less: absence of evidence is no evidence."""

    def checked(evidence: Evidence, benchmark: Benchmark, scores: Scores, **bounds: float) -> Finding | None:
        ranked = scores.without(UNBINNED)
        counts = ranked.table.groupby("dataset").size()
        whole = len(counts) == sum(task.used and task.track == benchmark.track for task in TASKS)
        return check(evidence, benchmark, ranked, **bounds) if whole and counts.min() >= FEWEST_SPLITS else None

    return checked


def _counts(benchmark: Benchmark, scores: Scores) -> str:
    """Say on how much."""
    rows = f", at most {benchmark.max_rows:,} rows" if benchmark.max_rows else ""
    return f"({len(scores.datasets)} datasets, {scores.splits} splits{rows})"


def _names(evidence: Evidence, benchmark: Benchmark, datasets: Iterable[str]) -> str:
    return ", ".join(marked(evidence, benchmark, dataset) for dataset in datasets)


@on_all
def _no_losses(evidence: Evidence, benchmark: Benchmark, scores: Scores) -> Finding:
    test = evidence.winners[benchmark]
    lost = test[(test["adjusted_p"] < ALPHA) & (test["best"] != "kmeans")]
    names = _names(evidence, benchmark, lost.index)
    return Finding(f"{len(lost)} losses{': ' + names if names else ''} {_counts(benchmark, scores)}", lost.empty)


@on_all
def _wins(evidence: Evidence, benchmark: Benchmark, scores: Scores, least: int) -> Finding:
    test = evidence.winners[benchmark]
    won = test[(test["adjusted_p"] < ALPHA) & (test["best"] == "kmeans")]
    names = _names(evidence, benchmark, won.index)
    return Finding(f"{len(won)} wins{': ' + names if names else ''} {_counts(benchmark, scores)}", len(won) >= least)


def _gain(evidence: Evidence, benchmark: Benchmark, scores: Scores, dataset: str, least: float) -> Finding | None:
    if dataset not in scores.datasets:
        return None
    gain = stats.paired_gain(scores, "kmeans", "quantile").loc[dataset]
    if gain["n"] < 3:
        return None
    text = f"{gain['gain']:.1f} % (95 % interval {gain['low']:.0f} to {gain['high']:.0f}, {gain['n']:.0f} splits)"
    return Finding(text, gain["gain"] >= least)


@on_all
def _lead(evidence: Evidence, benchmark: Benchmark, scores: Scores, least: float, most: float) -> Finding:
    """Check by how much k-means leads quantile in mean reciprocal rank."""
    found = stats.mean_reciprocal_ranks(scores)
    text = f"{found['kmeans']:.2f} against {found['quantile']:.2f} {_counts(benchmark, scores)}"
    return Finding(text, least <= found["kmeans"] - found["quantile"] <= most)


@on_all
def _auc_gaps(evidence: Evidence, benchmark: Benchmark, scores: Scores) -> Finding:
    gaps = 100 * (scores.means()["kmeans"] - scores.means()["quantile"])
    where = _names(evidence, benchmark, [str(gaps.abs().idxmax())])
    text = f"at most {gaps.abs().max():.2f} points, on {where} {_counts(benchmark, scores)}"
    return Finding(text, gaps.abs().max() <= 0.2)


@on_all
def _tied(evidence: Evidence, benchmark: Benchmark, scores: Scores) -> Finding:
    gains = stats.paired_gain(scores, "kmeans", "quantile")
    wins, ties, losses = stats.win_tie_loss(gains, "adjusted_naive_p")
    return Finding(f"{wins} wins, {ties} ties, {losses} losses {_counts(benchmark, scores)}", not wins and not losses)


def on_cells(check: Callable[[pd.DataFrame], Finding]) -> Check:
    """Make a check of the synthetic cells."""

    def checked(evidence: Evidence, run: Run) -> Finding | None:
        if run == Run(OURS, "paper") or (run.source == OURS and evidence.draws_are_quick):
            return None  # the synthetic data has one protocol: it stands with the first of ours
        draws = evidence.published_draws if run.source == PAPER else evidence.draws
        cells = stats.reductions(draws)["mean"].reset_index()
        return check(cells) if len(cells) == sum(len(grid.cells) for grid in AUTHORS_GRIDS) else None

    return checked


def _cells(cells: pd.DataFrame, grid: int, rows: Iterable[float], cols: Iterable[float]) -> pd.Series:
    return cells[(cells["grid"] == grid) & cells["row"].isin(list(rows)) & cells["col"].isin(list(cols))]["mean"]


SOME_OUTLIERS = (0.01, 0.02, 0.03, 0.04, 0.05)


def _typical(cells: pd.DataFrame) -> Finding:
    with_outliers = cells[((cells["grid"].isin([1, 3, 4, 5])) & (cells["row"] > 0)) | (cells["grid"] == 2)]["mean"]
    share = (with_outliers > 20).mean()
    return Finding(f"{share:.0%} of the {len(with_outliers)} cells with outliers", share >= 0.9)


def _most(cells: pd.DataFrame) -> Finding:
    return Finding(f"at most {cells['mean'].max():.1f} %", cells["mean"].max() >= 85)


def _one_percent(cells: pd.DataFrame) -> Finding:
    found = _cells(cells, 1, [0.01], [5, 10, 15, 20])
    return Finding(f"{found.min():.1f} to {found.max():.1f} %", found.min() > 50)


def _sixteen_bins(cells: pd.DataFrame) -> Finding:
    (found,) = _cells(cells, 5, [0.0], [16])
    return Finding(f"{found:.1f} %", abs(found - 43) <= 5)


def _few_bins(cells: pd.DataFrame) -> Finding:
    found = _cells(cells, 5, SOME_OUTLIERS, [16, 32])
    return Finding(f"{found.min():.1f} to {found.max():.1f} %, mean {found.mean():.1f} %", abs(found.mean() - 90) <= 5)


def on_ours(check: Callable[[Evidence], Finding | None]) -> Check:
    """Make a check for which the paper published no results; it stands with our first protocol."""
    return lambda evidence, run: check(evidence) if run == Run(OURS, "fixed") else None


def _tried(evidence: Evidence) -> pd.DataFrame:
    """Return the runs of the alternatives, but for quick tries."""
    return evidence.alternatives[evidence.alternatives["protocol"] != "smoke"]


def _milp_bins(evidence: Evidence) -> Finding | None:
    bins = _tried(evidence).query("method == 'milp'")["bins"]
    return None if bins.empty else Finding(f"at most {bins.max():.0f} bins", bins.max() <= 25)


def _optimal_cost(evidence: Evidence) -> Finding | None:
    """The paper's 15x is between two implementations; ours are faster, both."""
    times = _tried(evidence).groupby("method")["bin_seconds"].mean()
    if not {"kmeans", "optimal"} <= set(times.index):
        return None
    ratio = times["optimal"] / times["kmeans"]
    text = f"boostbins' optimal takes {ratio:.1f} x the time of its k-means"
    reference = evidence.timing[(evidence.timing["implementation"] == "reference") & (evidence.timing["rows"] == 10**5)]
    seconds = reference.set_index(["shape", "method"])["seconds"]
    for shape in ("uniform", "lognormal"):
        if {(shape, "kmeans"), (shape, "optimal")} <= set(seconds.index):
            times_as_long = seconds[shape, "optimal"] / seconds[shape, "kmeans"]
            text += f"; kmeans1d {times_as_long:.2g} x that of scikit-learn's Lloyd ({shape}, 100,000 rows)"
    return Finding(text, ratio > 15)


def _plus_plus(evidence: Evidence) -> Finding | None:
    frame = _tried(evidence)
    if not {"kmeans", "kmeans++"} <= set(frame["method"]):
        return None
    times = frame.groupby("method")["bin_seconds"].mean()
    gains = stats.paired_gain(Scores.of(frame[frame["method"].isin(["kmeans", "kmeans++"])]), "kmeans++", "kmeans")
    wins, _, _ = stats.win_tie_loss(gains)
    ratio = times["kmeans++"] / times["kmeans"]
    text = (
        f"{ratio:.1f} x the time, gain {gains['gain'].min():+.1f} to {gains['gain'].max():+.1f} %, {wins} significant"
    )
    return Finding(text, ratio > 1 and wins == 0)


def _ten_million(evidence: Evidence) -> Finding | None:
    frame = evidence.timing[(evidence.timing["rows"] == 10**7) & (evidence.timing["method"] == "kmeans")]
    if frame.empty:
        return None
    seconds = {f"{row.implementation}, {row.shape}": row.seconds for row in frame.itertuples()}
    text = "; ".join(f"{name}: {value:.2f} s" for name, value in seconds.items())
    ours = [value for name, value in seconds.items() if name.startswith("boostbins")]
    return Finding(text, bool(ours) and max(ours) <= 3.5)


def _skews(evidence: Evidence) -> Finding | None:
    frame = evidence.descriptions
    whole = frame[~frame.index.isin(evidence.partial)]
    if whole.empty:
        return None
    off = [key for key, row in whole.iterrows() if abs(row["score"] - (BY_KEY[str(key)].skew or 0)) > 0.0051]
    text = f"{len(whole) - len(off)} of {len(whole)} whole files agree"
    return Finding(text + (f"; not {', '.join(map(str, off))}" if off else ""), not off)


REAL = "real-255 --protocol fixed --max-rows 10000"
FEW = "real-63 --protocol fixed --max-rows 10000"
XGB = "xgboost-exact --protocol fixed"
SYNTHETIC = "synthetic --protocol fixed"
ALT = "alternatives --protocol fixed --max-rows 10000"
TIMING = "timing --protocol paper"
DESCRIBE = "describe --protocol paper"

CLAIMS = (
    Claim(
        "On the 18 regression datasets at 255 bins, k-means is never significantly outperformed.",
        "0 losses", "no loss by the paper's test", on_scores("regression", 255, _no_losses),
        REAL,
    ),
    Claim(
        "It wins in three of them (four, in the first version).",
        "3 wins", "at least 3 wins by the paper's test", on_scores("regression", 255, partial(_wins, least=3)),
        REAL,
    ),
    Claim(
        "The error falls by 55 % on one very skewed dataset (Brazilian_houses).",
        "55 %", "at least 45 %", on_scores("regression", 255, partial(_gain, dataset=SKEWED, least=45)),
        REAL,
    ),
    Claim(
        "The mean reciprocal rank on regression is slightly lower than that of quantile.",
        "0.65 against 0.72", "lower by at most 0.15",
        on_scores("regression", 255, partial(_lead, least=-0.15, most=0)),
        REAL,
    ),
    Claim(
        "On the 15 classification datasets the mean reciprocal ranks are alike.",
        "0.70 against 0.68", "they differ by at most 0.15",
        on_scores("classification", 255, partial(_lead, least=-0.15, most=0.15)),
        REAL,
    ),
    Claim(
        "On classification, k-means and quantile are statistically tied.",
        "15 ties", "no significant difference by the paired t-test, adjusted", on_scores("classification", 255, _tied),
        REAL,
    ),
    Claim(
        "On classification they differ by at most 0.2 points of AUC.",
        "≤ 0.2 points", "no mean differs by more", on_scores("classification", 255, _auc_gaps),
        REAL,
    ),
    Claim(
        "At 63 bins k-means has the better mean reciprocal rank.",
        "0.85 against 0.59", "higher by at least 0.1",
        on_scores("regression", 63, partial(_lead, least=0.1, most=1)),
        FEW,
    ),
    Claim(
        "At 63 bins the error on Brazilian_houses falls by 66 %.",
        "66 %", "at least 56 %", on_scores("regression", 63, partial(_gain, dataset=SKEWED, least=56)),
        FEW,
    ),
    Claim(
        "With XGBoost's exact trees the error on Brazilian_houses falls by 64 %.",
        "64 %", "at least 54 %",
        on_scores("regression", 255, partial(_gain, dataset=SKEWED, least=54), "xgboost-exact"),
        XGB,
    ),
    Claim(
        "On synthetic data with outliers the gains are typically over 20 %.",
        "> 20 %", "in 90 % of the cells", on_cells(_typical),
        SYNTHETIC,
    ),
    Claim("They rise to 90 %.", "90 %", "85 % in some cell", on_cells(_most), SYNTHETIC),
    Claim(
        "With 1 % of outliers the gain is over 50 %, whatever their scale.",
        "> 50 %", "all four scales of grid 1", on_cells(_one_percent),
        SYNTHETIC,
    ),
    Claim(
        "At 16 bins the gain is 43 % on normal data without outliers.",
        "43 %", "within 5 points", on_cells(_sixteen_bins),
        SYNTHETIC,
    ),
    Claim(
        "At 16 to 32 bins with outliers it is about 90 %.",
        "≈ 90 %", "the mean over the cells within 5 points", on_cells(_few_bins),
        SYNTHETIC,
    ),
    Claim(
        "MILP-optimal binning merges to at most 25 bins.",
        "≤ 25 bins", "no column has more", on_ours(_milp_bins),
        ALT,
    ),
    Claim(
        "Optimal k-means by dynamic programming is more than 15 times slower than Lloyd's iteration.",
        "> 15 x", "as stated (boostbins means to refute it)", on_ours(_optimal_cost),
        ALT,
    ),
    Claim(
        "Seeding by k-means++ is slower and gains nothing.",
        "slower, no gain", "more time, no significant gain", on_ours(_plus_plus),
        ALT,
    ),
    Claim(
        "k-means bins 10 million rows of a feature in about 3.5 s on one thread.",
        "≈ 3.5 s", "boostbins takes no more", on_ours(_ten_million),
        TIMING,
    ),
    Claim(
        "The datasets' mean skews (30.23 for Brazilian_houses).",
        "a table", "equal after rounding, where the file is whole", on_ours(_skews),
        DESCRIBE,
    ),
)  # fmt: skip


def verdicts(evidence: Evidence) -> list[Verdict]:
    """Check every claim on every run."""
    return [Verdict(claim, run, claim.check(evidence, run)) for claim in CLAIMS for run in RUNS]


def table(evidence: Evidence) -> Table:
    """Return the claims with what was found."""
    found = verdicts(evidence)
    shown, numbers = [], []
    for place, claim in enumerate(CLAIMS):
        row = {"claim": claim.text, "stated": f"{claim.stated} (passes: {claim.passes})"}
        for verdict in found[place * len(RUNS) : (place + 1) * len(RUNS)]:
            measured = f": {verdict.finding.measured}" if verdict.finding else ""
            row[verdict.run.title] = f"**{verdict.word}**{measured}" if measured else verdict.word
            numbers.append(
                {"claim": claim.text, "stated": claim.stated, "passes": claim.passes, "run": verdict.run.title,
                 "verdict": verdict.word, "measured": verdict.finding.measured if verdict.finding else ""}
            )  # fmt: skip
        row["python -m paper run"] = claim.command
        shown.append(row)
    notes = (
        "NOT RUN: there are no results of that kind, or not on all datasets.",
        *([PARTIAL_NOTE] if evidence.partial else []),
    )
    return Table("claims", "The paper's claims", pd.DataFrame(shown), pd.DataFrame(numbers), notes)
