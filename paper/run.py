"""The runner: jobs spread over cores, each done once, whatever happens in between."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, NoReturn

from tqdm import tqdm

from paper.datasets import BY_KEY, DatasetError, load, local_path
from paper.jobs import ALONE, Job
from paper.measure import Outcome, measure
from paper.store import Row, Store

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass
class Tally:
    """How a run went."""

    done: int = 0
    failed: int = 0
    missing: int = 0  # jobs whose dataset is not at hand
    stopped: str = ""  # why it ended before all was done


def to_do(jobs: Iterable[Job], store: Store, retry: bool, anew: bool = False) -> list[Job]:
    """Return the jobs without a result, and the failed ones on request, or all."""
    done = set(store.rows()) - set(_not_counted(store, retry, anew))
    return [job for job in jobs if job.key not in done]


def _not_counted(store: Store, retry: bool, anew: bool) -> dict[str, Row]:
    return store.rows() if anew else store.failed() if retry else {}


def run(
    jobs: list[Job],
    store: Store,
    n_jobs: int = -1,
    hours: float | None = None,
    retry: bool = False,
    anew: bool = False,
) -> Tally:
    """Do what is missing, and nothing else; on request what has failed, or all."""
    tally = Tally()
    deadline = time.monotonic() + 3600 * hours if hours else float("inf")
    again = _not_counted(store, retry, anew)
    cores = n_jobs if n_jobs > 0 else os.cpu_count() or 1
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    before = signal.signal(signal.SIGTERM, _interrupted)
    every = 0.5 if sys.stderr.isatty() else 60  # seconds; a log file wants few lines
    try:
        work, missing = _with_data(to_do(jobs, store, retry, anew))
        tally.missing = len(missing)
        with tqdm(total=len(work), unit="job", smoothing=0.05, mininterval=every, dynamic_ncols=True) as bar:
            # Nothing may run beside what is timed.
            for part, n in (
                ([job for job in work if job.kind not in ALONE], cores),
                ([job for job in work if job.kind in ALONE], 1),
            ):
                with (
                    contextlib.closing(store.take(part, again)) as claims,
                    contextlib.closing(spread(_until(deadline, claims), n)) as outcomes,
                ):
                    for job, outcome in outcomes:
                        _keep(store, tally, job, outcome)
                        bar.set_postfix_str(f"{tally.failed} failed, {job.data} {job.method}"[-60:], refresh=False)
                        bar.update()
    except KeyboardInterrupt:
        tally.stopped = "interrupted"
    except TimeoutError:
        tally.stopped = f"the {hours:g} hours are over"
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        tally.stopped = f"no space left for {store.folder} (what was finished before is kept): free some"
    finally:
        signal.signal(signal.SIGTERM, before)
    return tally


def spread(jobs: Iterator[Job], n: int) -> Generator[tuple[Job, Outcome]]:
    """Do jobs in `n` processes; yield each outcome as it comes.

    When a process dies, every job at hand is suspect, and is done again alone: the one that dies alone has failed.
    """
    at_hand: dict[Future[Outcome], Job] = {}
    pool = _pool(n)
    is_over = False
    try:
        while True:
            while len(at_hand) < n and not is_over:
                try:
                    job = next(jobs, None)
                except TimeoutError:  # what is at hand is finished first
                    is_over = True
                    break
                if job is None:
                    break
                with _interrupt_later():
                    at_hand[pool.submit(measure, job)] = job
            if not at_hand:
                break
            finished, _ = wait(at_hand, return_when=FIRST_COMPLETED)
            suspects = []
            for future in finished:
                job = at_hand.pop(future)
                try:
                    yield job, future.result()
                except BrokenProcessPool:
                    suspects.append(job)
            if suspects:
                suspects += at_hand.values()
                at_hand.clear()
                pool = _pool(n)
                for job in suspects:
                    yield job, _alone(job)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children() if at_hand else ():
            process.kill()
    if is_over:
        raise TimeoutError


def _alone(job: Job) -> Outcome:
    with _pool(1) as pool:
        with _interrupt_later():
            future = pool.submit(measure, job)
        try:
            return future.result()
        except BrokenProcessPool:
            return Outcome(error="the process died (out of memory?)")


def _pool(n: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(n, multiprocessing.get_context("spawn"), _begin_worker)


@contextlib.contextmanager
def _interrupt_later() -> Iterator[None]:
    """Hold an interrupt back where a process may be started: it must be started whole, and deaf to Ctrl-C at once."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    can_mask = hasattr(signal, "pthread_sigmask")  # not on Windows: there it hears the signal until `_begin_worker`
    if can_mask:
        resource_tracker.ensure_running()  # starting it would lift the mask
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if can_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


def _begin_worker() -> None:
    """Leave Ctrl-C to the runner, and go when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _until(deadline: float, jobs: Iterator[Job]) -> Iterator[Job]:
    for job in jobs:
        if time.monotonic() > deadline:
            raise TimeoutError
        yield job


def _keep(store: Store, tally: Tally, job: Job, outcome: Outcome) -> None:
    store.append(job, outcome)
    tally.done += 1
    if outcome.error:
        tally.failed += 1
        tqdm.write(f"failed: {job.data} {job.learner} {job.method} seed {job.seed}: {outcome.error}", file=sys.stderr)


def _with_data(work: list[Job]) -> tuple[list[Job], list[Job]]:
    """Part the jobs whose data can be had from those whose data cannot; each dataset is looked for once."""
    absent: dict[str, DatasetError] = {}
    for key in dict.fromkeys(job.data for job in work if job.data in BY_KEY):
        if local_path(BY_KEY[key]) is None:
            try:
                load(key)
            except DatasetError as error:
                absent[key] = error
    if absent:
        first, *others = absent
        more = f"; likewise {', '.join(others)}" if others else ""
        print(f"left out: {absent[first]}{more}", file=sys.stderr)
    return [job for job in work if job.data not in absent], [job for job in work if job.data in absent]


def _interrupted(*_: Any) -> NoReturn:
    raise KeyboardInterrupt
