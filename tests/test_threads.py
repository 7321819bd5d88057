"""Threads, and processes that are forked while threads work."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from boostbins import ColumnSummary, _core


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
