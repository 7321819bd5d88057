"""Cases of a fuzzer, one after another in a process of their own, so that one that kills it is known."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Fuzzer = Callable[[np.random.Generator], None]
"""Tries one case; raises if a law is broken."""

_MOST_SECONDS = 120.0  # of a case: then it hangs
_TURN = 2.0  # seconds of a fuzzer, before it is another's turn


@dataclass(frozen=True)
class Failure:
    """A case that broke a law, or its process."""

    fuzzer: str
    seed: int
    case: int
    said: str

    @property
    def again(self) -> str:
        """The command that runs this case alone."""
        return f"python -m tests.fuzz {self.fuzzer} --seed {self.seed} --only-case {self.case}"

    @property
    def place(self) -> str:
        """What tells one cause from another, as far as that can be told: where it was raised, and what."""
        lines = [line.strip() for line in self.said.splitlines()]
        where = [line for line in lines if line.startswith("File ")]
        kinds = [line.split(":")[0] for line in lines if line and line.split(":")[0].endswith(("Error", "Warning"))]
        return "; ".join([*where[-2:], *kinds[-1:]]) or self.said


@dataclass
class Tally:
    """What came of a fuzzer."""

    fuzzer: str
    cases: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)


@contextlib.contextmanager
def telling(what: Any) -> Iterator[None]:
    """Add to whatever is raised what it was about."""
    try:
        yield
    except Exception as error:
        error.add_note(f"of {what!r}" if not isinstance(what, str) else f"of {what}")
        raise


def run(
    fuzzers: dict[str, Fuzzer],
    seconds: float,
    seed: int,
    *,
    cases: Sequence[int] = range(sys.maxsize),
    tell: Callable[[list[Tally], list[Failure]], None] = lambda tallies, found: None,
    hang: float = _MOST_SECONDS,
) -> list[Tally]:
    """Try cases of the fuzzers in turns until the time is up.

    Parameters
    ----------
    fuzzers : dict
        By name; functions of modules, for another process imports them.
    seconds : float
        For all of them together, once their processes are there; each tries one case at least.
    seed : int
    cases : sequence of int
        Which to try; case 7 of a seed is the same whenever it is tried.
    tell : function
        Called after each turn with how it stands, and the failures of the turn.
    hang : float
        Seconds after which a case is said to hang.
    """
    tallies = [Tally(name) for name in fuzzers]
    workers = {name: _Worker(name, fuzzer, hang) for name, fuzzer in fuzzers.items()}
    try:
        for worker in workers.values():
            worker.start()
        for worker in workers.values():
            worker.wait()
        end = time.monotonic() + seconds
        turn = min(_TURN, seconds / len(fuzzers))
        waiting = deque(tallies)
        while waiting:
            tally = waiting.popleft()
            begun, known = time.monotonic(), len(tally.failures)
            for case in cases[tally.cases :]:
                tally.cases += 1
                failure = workers[tally.fuzzer].tried(seed, case)
                if failure is not None:
                    tally.failures.append(failure)
                if time.monotonic() >= min(begun + turn, end):
                    break
            tally.seconds += time.monotonic() - begun
            tell(tallies, tally.failures[known:])
            if tally.cases < len(cases) and time.monotonic() < end:
                waiting.append(tally)
    except KeyboardInterrupt:  # what was found until then counts
        pass
    finally:
        for worker in workers.values():
            worker.close()
    return tallies


class _Worker:
    """The process in which a fuzzer's cases are tried, and the next one if it dies."""

    def __init__(self, name: str, fuzzer: Fuzzer, hang: float) -> None:
        self._name, self._fuzzer, self._hang = name, fuzzer, hang
        self._process: Any = None
        self._folder = tempfile.TemporaryDirectory(prefix="boostbins-fuzz-")
        self._stack = Path(self._folder.name) / "stack"

    def start(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_work, args=(self._fuzzer, theirs, str(self._stack)))
        self._process.start()
        theirs.close()

    def wait(self) -> None:
        """Wait until the process is ready; that may take longer than cases do."""
        try:
            self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"the process of the fuzzer {self._name} ended before its first case") from None

    def tried(self, seed: int, case: int) -> Failure | None:
        """Try a case; return what is wrong with it."""
        if self._process is None:
            self.start()
            self.wait()
        try:
            self._pipe.send((seed, case))
            if self._pipe.poll(self._hang):
                said = self._pipe.recv()
            else:
                if hasattr(os, "fork"):
                    os.kill(self._process.pid, signal.SIGABRT)  # of which the stack is written
                    self._process.join(5)
                said = f"it hangs: no end after {self._hang:g} seconds\n{self._end()}"
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            said = f"it ended the process: {ended}\n{self._end()}"
        return None if said is None else Failure(self._name, seed, case, said.rstrip())

    def _end(self) -> str:
        """End the process; return where it was, if it could say so."""
        self._process.kill()
        self._process.join()
        self._pipe.close()
        self._process = None
        return self._stack.read_text(errors="replace")

    def close(self) -> None:
        if self._process is not None:
            self._end()
        self._folder.cleanup()


def _work(fuzzer: Fuzzer, pipe: Any, stack: str) -> None:
    """Try the cases that are asked for, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    with Path(stack).open("w") as file, contextlib.suppress(EOFError, OSError):
        faulthandler.enable(file)
        pipe.send("ready")
        while True:
            pipe.send(_said(fuzzer, *pipe.recv()))


def _said(fuzzer: Fuzzer, seed: int, case: int) -> str | None:
    """Return what a case raises, if it does."""
    try:
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            warnings.simplefilter("error")
            fuzzer(np.random.default_rng([seed, case]))
    except Exception as error:
        return "".join(traceback.format_exception(error))
    return None
