"""Synthetic data: the paper's six grids; one where tails say nothing, and one where they mislead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

MODE_DISTANCE = 4
NOISE = 0.1
N_FEATURES = 3
TAIL_GRID, MISLEADING_GRID = 7, 8
Level: TypeAlias = float | str
# The paper's text has a learning rate of 0.01; its runs, and its numbers, are with 0.1.
PARAMS = {"n_estimators": 100, "learning_rate": 0.1, "max_depth": 5, "subsample": 0.8}


@dataclass(frozen=True)
class Cell:
    """One cell of a grid: what the data is like, and how many bins it gets."""

    outlier_fraction: float = 0.01
    outlier_scale: float = 5
    n_modes: int = 1
    rows: int = 5000
    max_bins: int = 255

    def draw(self, seed: int | list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return features and target."""
        random = np.random.default_rng(seed)
        shape = (self.rows, N_FEATURES)
        modes = np.linspace(0, MODE_DISTANCE * (self.n_modes - 1), self.n_modes)
        X = random.choice(modes, shape) + random.standard_normal(shape)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        X += np.where(random.random(shape) < self.outlier_fraction, random.exponential(self.outlier_scale, shape), 0)
        return X, X.sum(axis=1) + NOISE * random.standard_normal(self.rows)


Numbers: TypeAlias = NDArray[np.float64]


def _steps(z: Numbers, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    return np.exp(2 * z), np.floor(4 * np.clip(z, -1.5, 1.5))


def _log(z: Numbers, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    return np.exp(2 * z), z


def _clip(z: Numbers, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    far = 1000 * np.abs(random.standard_normal(z.shape))
    X = z + np.where(random.random(z.shape) < 0.01, far, 0)
    return X, np.clip(X, -3, 3)


def _counts(z: Numbers, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    X = random.poisson(np.exp(1 + 1.5 * z)).astype(np.float64)
    return X, np.log1p(X)


SCENARIOS = {"steps": _steps, "log": _log, "clip": _clip, "counts": _counts}
"""From normal values to features with heavy tails, and what each adds to the target: steps in the bulk of a lognormal
feature; its logarithm; a line that ends at 3 sigma, where 1 % of the values are at 1000; the logarithm of a count."""


@dataclass(frozen=True)
class TailCell:
    """One cell of the grid where the tails are irrelevant."""

    scenario: str = "steps"
    rows: int = 5000
    max_bins: int = 255

    def draw(self, seed: int | list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return features and target."""
        random = np.random.default_rng(seed)
        X, added = SCENARIOS[self.scenario](random.standard_normal((self.rows, N_FEATURES)), random)
        return X, added.sum(axis=1) + NOISE * random.standard_normal(self.rows)


def _exposure(rows: int, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    population = np.floor(np.exp(6 + 2 * random.standard_normal(rows)))
    share = 0.5 * random.standard_normal((rows, 4))
    parts = random.poisson(population[:, None] * np.exp(share - 2))
    other = random.standard_normal((rows, 2))
    cases = random.poisson(population * np.exp(share[:, 0] + 0.3 * other[:, 0] - 3))
    return np.column_stack([population, parts, other]), cases.astype(np.float64)


def _rare(rows: int, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    z = random.standard_normal((rows, 6))
    y = z[:, :2].sum(axis=1) + np.sin(2 * z[:, 3]) + NOISE * random.standard_normal(rows)
    huge = 100 * (1 + random.pareto(1.5, rows))
    return np.column_stack([z[:, :3], np.exp(2 * z[:, 3:])]), y + np.where(random.random(rows) < 0.002, huge, 0)


def _claims(rows: int, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    z = random.standard_normal((rows, 4))
    exposure = np.exp(1.5 * z[:, 0])
    number = random.poisson(0.1 * exposure * np.exp(0.5 * z[:, 1]))
    amounts = random.lognormal(0, 2, number.sum())
    y = np.bincount(np.repeat(np.arange(rows), number), amounts, rows)
    return np.column_stack([exposure, z[:, 1:3], np.exp(2 * z[:, 3])]), y


MISLEADING = {"exposure": _exposure, "rare": _rare, "claims": _claims}
"""Features and a target where few rows say much that is not so again: counts that grow with a heavy-tailed exposure; a
target with rare huge values; sums of heavy-tailed amounts whose number grows with a heavy-tailed exposure."""


@dataclass(frozen=True)
class MisleadingCell:
    """One cell of the grid where tails mislead."""

    scenario: str = "exposure"
    rows: int = 5000
    max_bins: int = 255

    def draw(self, seed: int | list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return features and target."""
        return MISLEADING[self.scenario](self.rows, np.random.default_rng(seed))


AnyCell: TypeAlias = Cell | TailCell | MisleadingCell


@dataclass(frozen=True)
class Grid:
    """One experiment: two factors are varied."""

    number: int
    row_factor: str
    rows: tuple[Level, ...]
    col_factor: str
    cols: tuple[float, ...]
    base: AnyCell
    in_paper: bool = True

    @cached_property
    def cells(self) -> dict[tuple[Level, float], AnyCell]:
        """Return the cells by their row and column level."""
        return {
            (row, col): _with(_with(self.base, self.row_factor, row), self.col_factor, col)
            for row in self.rows
            for col in self.cols
        }


def _with(cell: AnyCell, factor: str, level: Level) -> AnyCell:
    if isinstance(level, str):
        return replace(cell, **{factor: level})
    if factor == "obs_per_bin":
        return replace(cell, rows=int(level) * cell.max_bins)
    return replace(cell, **{factor: level if factor.startswith("outlier") else int(level)})


FRACTIONS = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
SCALES = (5, 10, 15, 20)
MODES = (3, 5, 7, 10)
BINS = (16, 32, 64, 128, 256)
GRIDS = {
    grid.number: grid
    for grid in (
        Grid(1, "outlier_fraction", FRACTIONS, "outlier_scale", SCALES, Cell()),
        Grid(2, "n_modes", MODES, "outlier_scale", SCALES, Cell()),
        Grid(3, "outlier_fraction", FRACTIONS, "n_modes", MODES, Cell()),
        Grid(4, "outlier_fraction", FRACTIONS, "obs_per_bin", (8, 16, 32, 64, 128), Cell()),
        Grid(5, "outlier_fraction", (*FRACTIONS, 1.0), "max_bins", BINS, Cell()),
        Grid(6, "n_modes", MODES, "max_bins", BINS, Cell(outlier_fraction=0.0), in_paper=False),
        Grid(TAIL_GRID, "scenario", tuple(SCENARIOS), "max_bins", BINS, TailCell(), in_paper=False),
        Grid(MISLEADING_GRID, "scenario", tuple(MISLEADING), "rows", (1000, 2500, 5000), MisleadingCell(), False),
    )
}
AUTHORS_GRIDS = [grid for grid in GRIDS.values() if grid.number < TAIL_GRID]


def cell_of(data: str) -> AnyCell:
    """Return the cell that "grid/row/column" names."""
    grid, row, col = _named(data)
    return grid.cells[row, col]


def seed_of(data: str, draw: int) -> list[int]:
    """Return a seed: independent data in every cell, the same for every method."""
    grid, row, col = _named(data)
    level = grid.rows.index(row) if isinstance(row, str) else round(row * 100)
    return [grid.number, level, int(col), draw]


def _named(data: str) -> tuple[Grid, Level, float]:
    number, row, col = data.split("/")
    grid = GRIDS[int(number)]
    return grid, level_named(grid, row), float(col)


def level_named(grid: Grid, row: str) -> Level:
    """Return the level of a grid's rows by its text."""
    return row if row in grid.rows else float(row)
