"""What the same-cuts tests of all libraries share: a library's own cuts, given back as `Bins`, train the same model."""

from __future__ import annotations

import numpy as np


def mixed_table(n_rows: int = 1500, *, missing: bool = True, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return columns such as people have, and a target that needs most of them."""
    r = np.random.default_rng(seed)
    zeros = np.where(r.random(n_rows) < 0.8, 0.0, r.lognormal(0, 1, n_rows))
    X = np.column_stack(
        [
            r.standard_normal(n_rows),
            r.lognormal(0, 2, n_rows),
            zeros,
            np.where(r.random(n_rows) < 0.75, 0.0, -r.lognormal(0, 1, n_rows)),
            r.integers(0, 2, n_rows),  # two-valued
            np.full(n_rows, 3.0),  # constant
            np.round(r.gamma(2, 10, n_rows)),  # ties
            r.integers(0, 6, n_rows),  # a category, where one is asked for
            r.uniform(-1, 1, n_rows),
            np.where(r.random(n_rows) < 0.8, 5.0, r.standard_normal(n_rows)),  # mostly one value that is not zero
        ]
    )
    y = X[:, 0] + np.log1p(X[:, 1]) + 2 * X[:, 2] + X[:, 3] + X[:, 4] * X[:, 0] + 0.1 * X[:, 6] + np.sin(X[:, 7])
    if missing:
        X[r.random(n_rows) < 0.1, 0] = np.nan
        X[r.random(n_rows) < 0.8, 8] = np.nan
    return X, y + 0.1 * r.standard_normal(n_rows)
