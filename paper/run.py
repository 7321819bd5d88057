"""The runner: jobs spread over cores, each done once, whatever happens in between."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from tqdm import tqdm

from paper.datasets import BY_KEY, DatasetError, load, local_path
from paper.jobs import Job
from paper.measure import Outcome, measure
from paper.store import Store

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass
class Tally:
    """How a run went."""

    done: int = 0
    failed: int = 0
    missing: int = 0  # jobs whose dataset is not at hand
    stopped: str = ""  # why it ended before all was done

    @property
    def is_complete(self) -> bool:
        """Whether all jobs have a score."""
        return not (self.failed or self.missing or self.stopped)


def to_do(jobs: Iterable[Job], store: Store, retry: bool) -> list[Job]:
    """Return the jobs without a result, and the failed ones on request."""
    done = set(store.rows()) - (store.failed() if retry else set())
    return [job for job in jobs if job.key not in done]


def run(jobs: list[Job], store: Store, n_jobs: int = -1, hours: float | None = None, retry: bool = False) -> Tally:
    """Do what is missing, and nothing else."""
    tally = Tally()
    work, missing = _with_data(to_do(jobs, store, retry))
    tally.missing = len(missing)
    deadline = time.monotonic() + 3600 * hours if hours else float("inf")
    again = store.failed() if retry else set()
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    before = signal.signal(signal.SIGTERM, _interrupted)
    every = 0.5 if sys.stderr.isatty() else 60  # seconds; a log file wants few lines
    try:
        with tqdm(total=len(work), unit="job", smoothing=0.05, mininterval=every, dynamic_ncols=True) as bar:
            # Nothing may run beside what is timed.
            for part, cores in (
                ([job for job in work if job.kind != "timing"], n_jobs),
                ([job for job in work if job.kind == "timing"], 1),
            ):
                _spread(store.take(part, again), cores, deadline, store, tally, bar)
    except KeyboardInterrupt:
        tally.stopped = "interrupted"
    except TimeoutError:
        tally.stopped = f"the {hours:g} hours are over"
    except TerminatedWorkerError:
        tally.stopped = "a worker died (out of memory?)"
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        tally.stopped = f"no space left for {store.folder} (what was finished before is kept): free some"
    finally:
        signal.signal(signal.SIGTERM, before)
    return tally


def _spread(claims: Iterator[Job], n_jobs: int, deadline: float, store: Store, tally: Tally, bar: tqdm[Any]) -> None:
    """Do jobs in so many processes, and keep each result as it comes."""
    at_hand: dict[str, Job] = {}
    is_over = False

    def claimed() -> Iterator[Any]:
        nonlocal is_over
        for job in claims:
            if is_over := time.monotonic() > deadline:
                return
            at_hand[job.key] = job
            yield delayed(_measured)(job)

    try:
        with parallel_config("loky", inner_max_num_threads=1), contextlib.closing(claims):
            parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
            for job, outcome in parallel(claimed()):
                _keep(store, tally, job, outcome)
                del at_hand[job.key]
                bar.set_postfix_str(f"{tally.failed} failed, {job.data} {job.method}"[-60:], refresh=False)
                bar.update()
    except TerminatedWorkerError:
        for job in at_hand.values():
            _keep(store, tally, job, Outcome(error="the worker died (out of memory?)"))
        raise
    if is_over:
        raise TimeoutError


def _measured(job: Job) -> tuple[Job, Outcome]:
    return job, measure(job)


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
