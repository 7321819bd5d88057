"""What to run: a job is a frozen value, an experiment is a list of them, and resuming is a set difference."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from paper import synthetic
from paper.binning import BUDGETS, UNBINNED
from paper.cuts import cuts_of
from paper.datasets import BY_KEY, TASKS, Task, tasks_named
from paper.learners import LEARNERS, NATIVE, SPACE
from paper.rivals import RIVALS
from paper.timing import TABLES, TIMINGS

PAPER_METHODS = ("quantile", "uniform", "kmeans", UNBINNED)


@dataclass(frozen=True)
class Protocol:
    """How a learner is trained and judged on one dataset."""

    name: str
    seeds: int  # splits of real data
    draws: int  # of synthetic data
    search: tuple[int, int] | None  # hyper-parameter draws and folds, or none: `params` are used
    params: Mapping[str, Any] = field(default_factory=dict)
    max_rows: int = 0  # 0: all
    of_learner: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # more of `params`

    def params_of(self, learner: str) -> dict[str, Any]:
        """Return a learner's parameters by scikit-learn's names."""
        return {**self.params, **self.of_learner.get(learner, {})}

    def recipe(self, learner: str) -> dict[str, Any]:
        """Return what a score depends on."""
        space = {name: [spread.dist.name, *map(float, spread.args)] for name, spread in SPACE.items()}
        return {"search": self.search, "space": space} if self.search else {"params": self.params_of(learner)}


_DEEP, _LEAFY = {"learning_rate": 0.2, "max_depth": 6}, {"learning_rate": 0.15}


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("paper", 20, 50, (30, 5)),
        # In the paper's search space; half the rows and three quarters of the features per tree, for speed.
        Protocol(
            "fixed", 20, 20, None,
            {"n_estimators": 100, "learning_rate": 0.1, "max_depth": 4, "subsample": 0.5, "max_features": 0.75},
        ),
        # What bins give is seen by a learner that can use it: no rows or columns are left out at random.
        Protocol(
            "strong", 10, 10, None,
            {"n_estimators": 300, "subsample": 1.0, "max_features": 1.0},
            max_rows=25_000,  # 20,000 to train on
            of_learner={
                **dict.fromkeys(LEARNERS, _DEEP),
                "lightgbm": {**_LEAFY, "num_leaves": 63},
                "hist": {**_LEAFY, "max_leaf_nodes": 63},
            },
        ),
        Protocol(
            "smoke", 2, 2, None,
            {"n_estimators": 10, "learning_rate": 0.3, "max_depth": 3, "subsample": 0.5, "max_features": 0.75},
            max_rows=1000,
        ),
    )
}  # fmt: skip


KINDS_WITH_CUTS = ("real", "synthetic", "speed")
ALONE = ("timing", "speed")
"""Kinds of jobs beside which nothing may run."""


@dataclass(frozen=True)
class Job:
    """One score to be had."""

    kind: str  # real, synthetic, timing, speed or describe
    data: str
    learner: str
    method: str
    max_bins: int
    seed: int
    protocol: str
    max_rows: int = 0  # 0: all

    @cached_property
    def key(self) -> str:
        """Return a digest of the job, of its protocol's settings and of the cuts that its method gives."""
        recipe: Any = None
        if self.kind in ("real", "speed"):
            recipe = PROTOCOLS[self.protocol].recipe(self.learner)
        elif self.kind == "synthetic":
            recipe = [asdict(self.cell), self.synthetic_params]
        config = json.dumps([asdict(self), recipe, *filter(None, [self.cuts])], sort_keys=True)
        return hashlib.sha256(config.encode()).hexdigest()[:12]

    @property
    def cuts(self) -> str:
        """Return a digest of the cuts that its method gives."""
        return cuts_of(self.learner, self.method) if self.kind in KINDS_WITH_CUTS else ""

    @property
    def cell(self) -> synthetic.AnyCell:
        """Return the cell of a synthetic job, whose data is "grid/row/column"."""
        return synthetic.cell_of(self.data)

    @property
    def label(self) -> str:
        """Return its method as tables have it: with the limit of bins, where that is not the usual one."""
        return label(self.method, self.max_bins)

    @property
    def synthetic_params(self) -> dict[str, Any]:
        """Return the learner's parameters on synthetic data: the paper's, or those of another protocol."""
        if self.protocol not in ("paper", "smoke"):
            return PROTOCOLS[self.protocol].params_of(self.learner)
        return {**synthetic.PARAMS, **({"n_estimators": 10} if self.protocol == "smoke" else {})}

    @property
    def file(self) -> str:
        """Return the name of the file that its result is kept in."""
        return f"{self.kind}-{self.protocol}-{self.learner}.csv" if self.kind == "real" else f"{self.kind}.csv"


def label(method: str, max_bins: int) -> str:
    """Return the name of a method with a limit of bins, among methods with other limits."""
    return method if max_bins in (0, DEFAULT_BINS) else f"{method}-{max_bins}"


def _real(protocol: Protocol, learner: str, tasks: Iterable[Task], methods: Iterable[str], max_bins: int) -> list[Job]:
    return [
        Job("real", task.key, learner, method, _limit(method, max_bins), seed, protocol.name, protocol.max_rows)
        for seed in range(protocol.seeds)
        for task in tasks
        if task.used
        for method in methods
    ]  # fmt: skip


def _limit(method: str, max_bins: int) -> int:
    """Return the limit for a column: without bins, or with shared ones, there is one job for all limits."""
    return 0 if method == UNBINNED or method in BUDGETS else max_bins


def _benchmark(max_bins: int) -> Callable[[Protocol, str], list[Job]]:
    def jobs(protocol: Protocol, learner: str) -> list[Job]:
        kind = LEARNERS[learner]
        methods = ("native", "quantile", "uniform", "kmeans") if kind.has_flag else PAPER_METHODS
        return _real(protocol, learner, TASKS, methods, max_bins)

    return jobs


# As in the paper.
EXACT_DATASETS = ("Brazilian_houses", "cpu_act", "superconduct")


def _on(names: Iterable[str], track: str = "regression") -> list[Task]:
    return [task for name in names for task in tasks_named(f"{track}/{name}")]


def _xgboost_exact(protocol: Protocol, learner: str) -> list[Job]:
    return _real(protocol, "xgboost-exact", _on(EXACT_DATASETS), PAPER_METHODS, 255)


ALTERNATIVES = ("quantile", "uniform", "kmeans", "kmeans++", "optimal", "milp")
ALTERNATIVE_DATASETS = ("abalone", "diamonds", "Brazilian_houses")  # the paper's two, and its most skewed one


def _alternatives(protocol: Protocol, learner: str) -> list[Job]:
    methods = [method for method in ALTERNATIVES if method in LEARNERS[learner].methods]
    return _real(protocol, learner, _on(ALTERNATIVE_DATASETS), methods, 255)


def _synthetic(protocol: Protocol, learner: str) -> list[Job]:
    return _drawn(protocol, learner, synthetic.AUTHORS_GRIDS, ("quantile", "kmeans"))


def _drawn(protocol: Protocol, learner: str, grids: Iterable[synthetic.Grid], methods: Iterable[str]) -> list[Job]:
    return [
        Job("synthetic", f"{grid.number}/{_level(row)}/{col:g}", learner, method, cell.max_bins, draw, _one(protocol))
        for draw in range(protocol.draws)
        for grid in grids
        for (row, col), cell in grid.cells.items()
        for method in methods
    ]


def _level(level: synthetic.Level) -> str:
    return level if isinstance(level, str) else f"{level:g}"


FLAG_LEARNERS = ("lightgbm", "xgboost")
AUTO_METHODS = ("quantile", "kmeans", "auto", "hybrid", *RIVALS)


def _auto(max_bins: int) -> Callable[[Protocol, str], list[Job]]:
    def jobs(protocol: Protocol, learner: str) -> list[Job]:
        methods = (NATIVE, *AUTO_METHODS)
        return [job for flag in FLAG_LEARNERS for job in _real(protocol, flag, TASKS, methods, max_bins)]

    return jobs


def _auto_synthetic(protocol: Protocol, learner: str) -> list[Job]:
    grids = (*synthetic.AUTHORS_GRIDS, synthetic.GRIDS[synthetic.TAIL_GRID])
    return _drawn(protocol, learner, grids, AUTO_METHODS)


DEFAULT_BINS = 255
BUDGET_SETTINGS = (
    (NATIVE, DEFAULT_BINS),
    (NATIVE, 63),
    (NATIVE, 4095),
    ("kmeans", DEFAULT_BINS),
    ("kmeans", 63),
    ("tree", DEFAULT_BINS),
    *((method, 0) for method in BUDGETS),
)
"""(method, limit of bins for a column) of what is compared where columns share a total."""
FEW_DATASETS = (
    "regression/Brazilian_houses", "regression/house_16H", "regression/medical_charges",
    "regression/nyc-taxi-green-dec-2016", "regression/cpu_act", "classification/electricity",
    "classification/eye_movements", "classification/california",
)  # fmt: skip
SETTINGS_OF_BUDGETS: dict[str, tuple[tuple[str, int], ...]] = {
    **dict.fromkeys(FLAG_LEARNERS, BUDGET_SETTINGS),
    "catboost": tuple(
        ("uniform+quantile" if method == "tree" else method, max_bins) for method, max_bins in BUDGET_SETTINGS
    ),
    # At most 255 bins of a column.
    "hist": tuple(setting for setting in BUDGET_SETTINGS if setting not in {(NATIVE, 4095), ("average-255", 0)}),
}
"""The same by learner: CatBoost has a rival of its own."""


def _budget(protocol: Protocol, learner: str) -> list[Job]:
    """Return all settings beside each other: their times are compared, and a machine has its moods."""
    few = [BY_KEY[key] for key in FEW_DATASETS]
    return [
        Job("real", task.key, name, method, max_bins, seed, protocol.name, protocol.max_rows)
        for name, settings in SETTINGS_OF_BUDGETS.items()
        for seed in range(protocol.seeds)
        for task in (TASKS if name in FLAG_LEARNERS else few)
        if task.used
        for method, max_bins in settings
    ]


def _budget_synthetic(protocol: Protocol, learner: str) -> list[Job]:
    grid = synthetic.GRIDS[synthetic.MISLEADING_GRID]
    return [
        Job("synthetic", f"{grid.number}/{_level(row)}/{col:g}", name, method, max_bins, draw, protocol.name)
        for name in FLAG_LEARNERS
        for draw in range(protocol.draws)
        for row, col in grid.cells
        for method, max_bins in BUDGET_SETTINGS
    ]


def _budget_speed(protocol: Protocol, learner: str) -> list[Job]:
    quick = protocol.name == "smoke"
    return [
        Job("speed", data, name, method, max_bins, seed, protocol.name)
        for data, (rows, _) in TABLES.items()
        if rows <= 20_000 or not quick
        for name in FLAG_LEARNERS
        for seed in range(1 if quick else 3)
        for method, max_bins in BUDGET_SETTINGS
        if method != "tree"
    ]


def _one(protocol: Protocol) -> str:
    """Return the protocol of what has one way to be run, the paper's; or a quick try of it."""
    return "smoke" if protocol.name == "smoke" else "paper"


def _timing(protocol: Protocol, learner: str) -> list[Job]:
    limit = 10_000 if protocol.name == "smoke" else 10**7
    return [
        Job("timing", f"{shape}/{rows}", implementation, method, 255, 0, "paper")
        for shape, rows, implementation, method in TIMINGS
        if rows <= limit
    ]


def _describe(protocol: Protocol, learner: str) -> list[Job]:
    return [Job("describe", task.key, "", "skew", 0, 0, "paper") for task in TASKS if task.used]


PAPER_EXPERIMENTS: dict[str, Callable[[Protocol, str], list[Job]]] = {
    "real-255": _benchmark(255),
    "real-63": _benchmark(63),
    "xgboost-exact": _xgboost_exact,
    "alternatives": _alternatives,
    "synthetic": _synthetic,
    "timing": _timing,
    "describe": _describe,
}
"""The paper's experiments by name: functions of a protocol and a learner."""

ALL = "all"
"""All of the paper's."""

EXPERIMENTS = {
    **PAPER_EXPERIMENTS,
    "auto-255": _auto(255),
    "auto-63": _auto(63),
    "auto-synthetic": _auto_synthetic,
    "budget": _budget,
    "budget-synthetic": _budget_synthetic,
    "budget-speed": _budget_speed,
}
"""And what is asked of boostbins: of `auto`, and where columns share a total of bins. With LightGBM and XGBoost, and of
the latter with CatBoost and scikit-learn on few datasets."""


def plan(
    experiments: Iterable[str],
    protocol: str,
    learner: str = "sklearn",
    only: Iterable[str] = (),
    seeds: range | None = None,
    max_rows: int | None = None,
) -> list[Job]:
    """Return the jobs of some experiments, each once, in the order in which they are best run: seed by seed."""
    experiments = list(experiments)
    _known("experiment", experiments, {ALL: PAPER_EXPERIMENTS, **EXPERIMENTS})
    experiments = [name for each in experiments for name in (PAPER_EXPERIMENTS if each == ALL else [each])]
    _known("protocol", [protocol], PROTOCOLS)
    _known("learner", [learner], LEARNERS)
    recipe = PROTOCOLS[protocol]
    if seeds is not None:
        recipe = replace(recipe, seeds=seeds.stop, draws=seeds.stop)
    if max_rows is not None:
        if max_rows < 50:
            raise ValueError(f"max_rows must be at least 50, got {max_rows}")
        recipe = replace(recipe, max_rows=max_rows)
    jobs = list(dict.fromkeys(job for name in experiments for job in EXPERIMENTS[name](recipe, learner)))
    jobs = [job for job in jobs if seeds is None or job.seed in seeds]
    jobs = _picked(only, jobs)
    # What the data was, beside every result on it.
    used = {job.data for job in jobs if job.kind == "real"}
    jobs += [job for job in _describe(recipe, learner) if job.data in used and job not in jobs]
    return sorted(jobs, key=lambda job: (job.seed, job.kind != "describe"))


def _known(what: str, names: Iterable[str], table: Mapping[str, Any]) -> None:
    for name in names:
        if name not in table:
            raise ValueError(f"unknown {what} {name!r}: it must be one of {', '.join(map(repr, table))}")


def _data_words(job: Job) -> set[str]:
    """Return what a job's data can be picked by: its whole name; a track, grid or shape; a dataset in either track."""
    return {job.data, job.data.split("/")[0], *([BY_KEY[job.data].name] if job.data in BY_KEY else [])}


def _method_words(job: Job) -> set[str]:
    """Return what a job's method can be picked by: its name, and that which tables have."""
    return {job.method, job.label}


def _picked(only: Iterable[str], jobs: list[Job]) -> list[Job]:
    """Return the jobs whose data is picked, if any is; whose method is, if any is; and whose learner is, if any is."""
    kinds = (
        {word for job in jobs for word in _data_words(job)},
        {word for job in jobs for word in _method_words(job)},
        {job.learner for job in jobs if job.learner},
    )
    known = set().union(*kinds)
    for word in only:
        if word not in known:
            names = sorted(known, key=str.lower)
            raise ValueError(
                f"--only {word!r} picks nothing here: it must be a dataset, a track, a method or a learner, one of "
                + ", ".join(names[:80])
                + (", …" if len(names) > 80 else "")
            )
    by_data, by_method, by_learner = (kind.intersection(only) for kind in kinds)
    return [
        job
        for job in jobs
        if (not by_data or by_data & _data_words(job))
        and (not by_method or by_method & _method_words(job))
        and (not by_learner or job.learner in by_learner)
    ]
