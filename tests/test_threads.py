"""Threads, and processes that are forked while threads work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import boostbins.cache
from boostbins import Bins, ColumnSummary, TableSummary, _core, fit_bins, summarize
from boostbins._threads import map_ordered, prefetch
from boostbins.adapters.features import feature_table
from boostbins.adapters.requested import FLOAT64, requested_bins


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_process_forked_while_another_thread_works_can_work_too(monkeypatch):
    points, begun, go_on = _core.points, threading.Event(), threading.Event()

    def slow(state):
        begun.set()
        go_on.wait(60)
        return points(state)

    monkeypatch.setattr(_core, "points", slow)
    working = threading.Thread(target=lambda: ColumnSummary([1.0, 2.0]).points)
    working.start()
    assert begun.wait(60)
    monkeypatch.setattr(_core, "points", points)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for a lock
        os._exit(0 if ColumnSummary([3.0, 4.0]).mean == 3.5 else 1)
    _, status = os.waitpid(child, 0)
    go_on.set()
    working.join()
    assert status == 0


def test_a_fit_of_an_array_imports_nothing():
    # A process forked while another thread imports a module waits forever when it needs that too.
    code = """
import sys
import numpy as np
from boostbins import METHODS, Bins, fit_bins, summarize
X = np.arange(2000.0)[:, None] ** [1, 2]
known = set(sys.modules)
for method in METHODS:
    bins = fit_bins(X, method, 9, y=X[:, 0], n_threads=2)
    bins.decode(bins.encode(X))
    fit_bins(dict(zip("ab", X.T)), method, total_bins=9)
fit_bins(summarize(X) + summarize(iter([X, X])))
assert Bins.from_json(bins.to_json()) == bins
print(*set(sys.modules) - known)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split()


def test_threads_do_not_wait_for_each_others_summaries(monkeypatch):
    points, both = _core.points, threading.Barrier(2)

    def meeting(state):
        both.wait(60)  # passes only if two are at work at once
        return points(state)

    monkeypatch.setattr(_core, "points", meeting)
    found = []
    threads = [
        threading.Thread(target=lambda x=x: found.append(ColumnSummary(x).mean)) for x in (np.ones(3), np.zeros(3))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 1.0]


@pytest.mark.parametrize(
    "begin",
    [lambda make: prefetch(map(make, range(3))), lambda make: map_ordered(make, range(3), 2)],
    ids=["prefetch", "map_ordered"],
)
def test_what_is_dropped_half_read_waits_for_no_thread(begin):
    # The garbage collector drops it at any moment, also where `threading` holds a lock that a thread's end needs.
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def make(item):
        if item > 0:
            begun.set()
            go_on.wait(20)
            ended.set()
        return item

    items = begin(make)
    assert next(items) == 0
    assert begun.wait(20)
    items.close()
    assert not ended.is_set()
    go_on.set()


def test_threads_that_share_everything_get_what_one_alone_does(tmp_path):
    """What is shared is new: all threads ask at once for what is computed when it is first asked for."""
    r = np.random.default_rng(0)
    X = {
        "many": r.lognormal(0, 2, 140_000).astype(np.float32),
        "few": r.integers(0, 50, 140_000).astype(float),
        "missing": np.where(r.random(140_000) < 0.1, np.nan, r.standard_normal(140_000)),
    }
    y = X["many"] + X["few"]
    halves = [{name: column[rows] for name, column in X.items()} for rows in (slice(70_000), slice(70_000, None))]
    parts = [summarize(half, n_threads=1).to_bytes() for half in halves]
    saved = fit_bins(X, "hybrid", 40, y=y, n_threads=1).to_json()

    def cached(cache):
        return requested_bins(
            "kmeans", feature_table(X), [20] * 3, bin_cache=cache, cut_format=FLOAT64, limit="max_bins=20"
        )

    def work(a, b, bins, n_threads):
        total = a + b
        return [
            fit_bins(X, "hybrid", 40, y=y, n_threads=n_threads).to_json(),
            fit_bins(total, "kmeans", 40, n_threads=n_threads).to_json(),
            fit_bins(a, "optimal", 20, n_threads=n_threads).to_json(),
            total.to_bytes(),
            repr([column.points for column in a]) + repr(a),
            bins.encode(X, n_threads=n_threads).tobytes(),
            bins.digest,
            bins.decode(bins.encode(halves[0], n_threads=n_threads)).tobytes(),
            cached("memory").to_json(),
            cached(tmp_path / "cache").to_json(),
        ]

    def shared():
        return [*map(TableSummary.from_bytes, parts), Bins.from_json(saved)]

    boostbins.cache._memory.clear()
    expected = work(*shared(), 1)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(3):
            boostbins.cache._memory.clear()
            for entry in (tmp_path / "cache").iterdir():
                entry.unlink()
            things, together = shared(), threading.Barrier(4)

            def one(i, things=things, together=together):
                together.wait(60)
                return work(*things, 1 + i % 2)

            with ThreadPoolExecutor(4) as pool:
                for i, got in enumerate(pool.map(one, range(4))):
                    assert [k for k, value in enumerate(got) if value != expected[k]] == [], f"thread {i}"
    finally:
        sys.setswitchinterval(before)


def test_the_kernels_need_no_lock_of_the_interpreter():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has the lock")
    code = "import sys, boostbins; sys.exit(sys._is_gil_enabled())"
    assert subprocess.run([sys.executable, "-W", "error", "-c", code]).returncode == 0


WRITTEN_TO = """
import threading, time
import numpy as np
from boostbins import ColumnSummary
a = np.random.default_rng(0).lognormal(0, 1, 400_000)
x, weight, done = a.copy(), np.ones(len(a)), threading.Event()

def write():
    other = -a * 1e300
    while not done.is_set():
        x[:] = other
        x[:] = a

writer = threading.Thread(target=write)
writer.start()
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        ColumnSummary(x, weight, max_cells=1000)
    except RuntimeError as error:
        assert "was changed while it was read" in str(error), error
done.set()
writer.join()
print("the end")
"""


def test_an_array_that_is_written_to_while_it_is_read_breaks_no_memory():
    run = subprocess.run([sys.executable, "-c", WRITTEN_TO], capture_output=True, text=True)
    assert run.stdout == "the end\n", run.stderr
