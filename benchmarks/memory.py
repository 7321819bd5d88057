"""How much memory beyond the data, as the operating system counts it.

    python benchmarks/memory.py

The goal: at 1e7 x 10 float64, at most 10 % of the data.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np

ROWS, COLUMNS = 10_000_000, 10


def measure(order: str, method: str) -> None:
    """Print the growth of the peak over the data, in a process of its own."""
    from boostbins import fit_bins

    r = np.random.default_rng(0)
    X = np.empty((ROWS, COLUMNS), order=order)
    for i in range(COLUMNS):
        for start in range(0, ROWS, 1_000_000):
            X[start : start + 1_000_000, i] = r.lognormal(0, 1, 1_000_000)
    fit_bins(X[:200_000], method)  # what is loaded and allocated once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fit_bins(X, method, n_threads=2)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    share = more / X.nbytes
    print(f"{method:10} {order}-ordered: {more / 2**20:6.1f} MiB, {share:.1%} of the data   goal <= 10 %", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], sys.argv[2])
    else:
        print(f"peak memory beyond the data, {ROWS:.0e} x {COLUMNS} float64, two threads", flush=True)
        for order in "FC":
            for method in ("kmeans", "optimal"):
                subprocess.run([sys.executable, __file__, order, method], check=True)
