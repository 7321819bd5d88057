"""Fuzzers that break on purpose: what is told of them is tested."""

from __future__ import annotations

import os
import signal
import time
import warnings


def fine(rng):
    assert rng.random() < 1


def fails(rng):
    if rng.random() < 0.3:
        raise KeyError("a law is broken")


def warns(rng):
    warnings.warn("something", RuntimeWarning, stacklevel=1)


def dies(rng):
    if rng.random() < 0.3:
        os.kill(os.getpid(), signal.SIGSEGV)


def leaves(rng):
    os._exit(7)


def hangs(rng):
    time.sleep(60)
