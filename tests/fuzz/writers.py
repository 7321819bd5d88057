"""Writers that are killed at any moment leave whole files behind, or none."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from boostbins import Bins, TableSummary, fit_bins, summarize
from boostbins.adapters.features import feature_table
from boostbins.adapters.requested import requested_bins
from tests.fuzz.tables import any_column

POSSIBLE = hasattr(os, "fork")
_KINDS = ("lognormal", "ties", "few", "mostly zero", "subnormal", "any numbers")
_LONGEST = 0.03  # seconds until the writer is killed


def case(r):
    n = int(r.integers(10, 3_000))
    tables = [np.column_stack([any_column(r, n, _KINDS) for _ in range(3)]) for _ in range(2)]
    budgets = [int(budget) for budget in r.integers(2, 256, 3)]
    asked = [(X, budget) for X in tables for budget in budgets]
    expected = [fit_bins(X, max_bins=budget, n_threads=1) for X, budget in asked]
    summaries = [summarize(X, n_threads=1) for X in tables]
    expected[0].save("bins.json")
    summaries[0].save("summary")

    def write():
        while True:
            for (X, budget), bins in zip(asked, expected, strict=True):
                cached(X, budget)
                bins.save("bins.json")
                summaries[budget % 2].save("summary")
            for entry in Path("cache").glob("*.json"):  # to be written again
                entry.unlink()

    for _ in range(3):
        killed(write, r.uniform(0, _LONGEST))
        assert Bins.load("bins.json") in expected
        assert TableSummary.load("summary") in summaries
        entries = sorted(Path("cache").glob("*.json"))
        assert all(Bins.load(entry) in expected for entry in entries)
        assert [cached(X, budget) for X, budget in asked] == expected
        assert len(list(Path("cache").glob("*.json"))) == len({(X.tobytes(), budget) for X, budget in asked})


def cached(X, budget):
    table = feature_table(X)
    return requested_bins("kmeans", table, [budget] * 3, bin_cache="cache", limit="max_bins", n_threads=1)


def killed(write, seconds):
    """Run a function in another process, and kill that."""
    child = os.fork()
    if child == 0:
        try:
            write()
        finally:
            os._exit(1)  # it should not come to an end
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the writer ended by itself: {status}"
