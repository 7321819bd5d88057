"""Results in a folder of CSV files: one appended row per job, which survive a kill and serve several runners.

A row counts once its newline is written. What a killed run left of a row is cut off by the next one that writes, and
that job is run again. Runners announce the jobs that they are at in a file that they hold a lock on, so that none is
done twice; the operating system lets go of a dead runner's lock.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import platform
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from paper.jobs import Job
from paper.measure import Outcome

JOB = [field.name for field in fields(Job)]
OUTCOME = [field.name for field in fields(Outcome)]
COLUMNS = ["key", *JOB, *OUTCOME[:-1], "environment", "error"]
NUMBERS = ["max_bins", "seed", "max_rows", "score", "rows", "features", "bins", "bin_seconds", "train_seconds"]
ENVIRONMENTS = "environments.json"
PACKAGES = (
    "boostbins", "numpy", "scipy", "scikit-learn", "lightgbm", "xgboost", "catboost", "optbinning", "kmeans1d",
)  # fmt: skip


class StoreError(Exception):
    """A folder of results that cannot be used; the message says what to do."""


class Store:
    """The results in a folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.broken = 0
        """Rows that cannot be read: their jobs count as not done."""
        self._rows: dict[str, dict[str, str]] = {}
        self._read_to: dict[Path, int] = {}

    def rows(self) -> dict[str, dict[str, str]]:
        """Return the newest row of every job by its key; reads only what was added since the last call."""
        for path in sorted(self.folder.glob("*.csv")):
            self._read(path)
        return self._rows

    def frame(self) -> pd.DataFrame:
        """Return all rows, failed ones too, as a frame."""
        frame = pd.DataFrame(self.rows().values(), columns=COLUMNS, dtype=str)
        return frame.assign(**{name: pd.to_numeric(frame[name]) for name in NUMBERS})

    def failed(self) -> set[str]:
        """Return the keys of the jobs whose newest row is an error."""
        return {key for key, row in self.rows().items() if row["error"]}

    def append(self, job: Job, outcome: Outcome) -> None:
        """Add a result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / job.file
        values = {"key": job.key, **asdict(job), **asdict(outcome), "environment": environment()[0]}
        values["error"] = " ".join(outcome.error.split())
        with self._lock():
            self._note_environment()
            _repair(path)
            self._read(path)  # checks that it is of this version
            lines = [] if path.exists() else [COLUMNS]
            lines.append([_text(values[name]) for name in COLUMNS])
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(lines)
            with path.open("ab") as file:
                file.write(text.getvalue().encode())
                file.flush()
                os.fsync(file.fileno())

    def take(self, jobs: Iterable[Job], retry: Iterable[str] = ()) -> Iterator[Job]:
        """Yield the jobs that nobody has done or is at, each as it is claimed."""
        retry = set(retry)
        claims = self.folder / ".claims"
        claims.mkdir(parents=True, exist_ok=True)
        mine = claims / uuid.uuid4().hex
        try:
            with FileLock(f"{mine}.lock"):
                for job in jobs:
                    with self._lock():
                        if (job.key in self.rows() and job.key not in retry) or job.key in self._claimed(mine):
                            continue
                        with mine.open("a") as file:
                            file.write(job.key + "\n")
                    yield job
        finally:
            mine.unlink(missing_ok=True)
            Path(f"{mine}.lock").unlink(missing_ok=True)

    def _claimed(self, mine: Path) -> set[str]:
        """Return what other runners are at; what dead ones left is removed."""
        keys: set[str] = set()
        for lock in mine.parent.glob("*.lock"):
            owner = lock.with_suffix("")
            if owner == mine:
                continue
            try:
                with FileLock(lock, timeout=0):
                    owner.unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
            except Timeout:
                with contextlib.suppress(FileNotFoundError):
                    keys.update(owner.read_text().split())
        return keys

    def _lock(self) -> FileLock:
        return FileLock(self.folder / ".lock")

    def _read(self, path: Path) -> None:
        start = self._read_to.get(path, 0)
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < start:  # somebody else's file by now
                start = 0
            file.seek(start)
            data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read_to[path] = start + len(whole)
            lines = csv.reader(io.StringIO(whole.decode("utf-8", "replace")))
            if start == 0 and (header := next(lines, COLUMNS)) != COLUMNS:
                del self._read_to[path]
                raise StoreError(
                    f"{path} was written by another version (its columns are {','.join(header)}): "
                    "move it away, or name another folder with --results"
                )
            for line in lines:
                row = dict(zip(COLUMNS, line, strict=False))
                if len(line) != len(COLUMNS) or not (row["score"] or row["error"]):
                    self.broken += 1
                else:
                    self._rows[row["key"]] = row

    def _note_environment(self) -> None:
        key, facts = environment()
        path = self.folder / ENVIRONMENTS
        known = json.loads(path.read_text()) if path.exists() else {}
        if key not in known:
            temporary = path.with_suffix(".tmp")
            temporary.write_text(json.dumps({**known, key: facts}, indent=1, sort_keys=True) + "\n")
            temporary.replace(path)


def _repair(path: Path) -> None:
    """Cut off what a killed run left of a row."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        data = file.read()
        if data and not data.endswith(b"\n"):
            file.truncate(data.rfind(b"\n") + 1)
    if path.stat().st_size == 0:
        path.unlink()


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


@cache
def environment() -> tuple[str, dict[str, str]]:
    """Return what the numbers were made with, and a short name for it."""
    facts = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}, {_cpu()}"}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            facts[package] = version(package)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:6], facts


def _cpu() -> str:
    model = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{os.cpu_count()} x {model or platform.processor() or 'unknown processor'}"
