"""Built-in data for a first look: a skewed table of which the tails matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROWS = 10_000


def skewed_table(n: int = ROWS, seed: int = 0) -> dict[str, NDArray[np.float64]]:
    """Return columns of the kinds that quantile bins handle badly, and one that all handle well."""
    r = np.random.default_rng(seed)
    outlier = r.random(n) < 0.01
    return {
        "income": r.lognormal(10, 1, n),
        "claim": np.where(r.random(n) < 0.7, 0.0, np.round(r.pareto(1.5, n) * 1000, 2)),
        "sensor": r.standard_normal(n) + np.where(outlier, r.exponential(20, n), 0),
        "rooms": r.poisson(4, n).astype(float),
    }


def skewed_target(table: dict[str, NDArray[np.float64]], seed: int = 0) -> NDArray[np.float64]:
    """Return a cost that grows with the tails of the table's columns, and noise."""
    noise = np.random.default_rng([seed, 1]).standard_normal(len(table["income"]))
    return table["income"] / 30_000 + np.sqrt(table["claim"]) / 30 + table["sensor"] + table["rooms"] / 4 + noise
