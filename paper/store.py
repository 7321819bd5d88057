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
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from paper.cuts import cuts_of
from paper.jobs import KINDS_WITH_CUTS, Job
from paper.measure import Outcome

JOB = [each.name for each in fields(Job)]
OUTCOME = [each.name for each in fields(Outcome)]
COLUMNS = ["key", *JOB, "cuts", *OUTCOME[:-1], "environment", "run", "error"]
NUMBERS = [
    "max_bins", "seed", "max_rows", "score", "rows", "features", "bins", "mean_bins", "bin_seconds", "train_seconds",
]  # fmt: skip
ENVIRONMENTS = "environments.json"
PACKAGES = (
    "boostbins", "numpy", "scipy", "scikit-learn", "lightgbm", "xgboost", "catboost", "optbinning", "kmeans1d",
)  # fmt: skip


Row = dict[str, str]


class StoreError(Exception):
    """A folder of results that cannot be used; the message says what to do."""


@dataclass
class _File:
    """What has been read of a file so far."""

    inode: int
    end: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    before: list[Row] = field(default_factory=list)  # of jobs that were run again
    broken: int = 0


class Store:
    """The results in a folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.run = uuid.uuid4().hex[:6]  # what is timed in one run is timed alike
        self._files: dict[Path, _File] = {}

    def rows(self) -> dict[str, Row]:
        """Return the newest row of every job by its key; reads only what was added since the last call."""
        found: dict[str, Row] = {}
        paths = sorted(self.folder.glob("*.csv"))
        self._files = {path: file for path, file in self._files.items() if path in paths}
        for path in paths:
            found.update(self._read(path))
        return found

    @property
    def broken(self) -> int:
        """Rows that cannot be read: their jobs count as not done."""
        return sum(file.broken for file in self._files.values())

    def frame(self, older: bool = False) -> pd.DataFrame:
        """Return all rows, failed ones too, as a frame: of the cuts that methods give now.

        `older` is whether rows of other cuts count where there are none of these.
        """
        rows = self.rows().values()
        kept = [row for row in rows if is_older(row)] if older else []
        kept += [row for row in rows if not is_older(row)]
        return _framed(kept).drop_duplicates(JOB, keep="last", ignore_index=True)

    def before(self) -> pd.DataFrame:
        """Return the rows of jobs that were run again, without their newest ones: their times are of other runs."""
        self.rows()
        return _framed([row for file in self._files.values() for row in file.before])

    @property
    def n_older(self) -> int:
        """How many results are of other cuts than the methods give now: their jobs count as not done."""
        return sum(map(is_older, self.rows().values()))

    def failed(self) -> dict[str, Row]:
        """Return the jobs whose newest row is an error."""
        return {key: row for key, row in self.rows().items() if row["error"]}

    def append(self, job: Job, outcome: Outcome) -> None:
        """Add a result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / job.file
        values = {
            "key": job.key,
            **asdict(job),
            **asdict(outcome),
            "cuts": job.cuts,
            "environment": environment()[0],
            "run": self.run,
        }
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

    def take(self, jobs: Iterable[Job], again: Mapping[str, Row] | None = None) -> Generator[Job]:
        """Yield the jobs that nobody has done or is at, each as it is claimed.

        `again` holds rows that do not count: failures as they were found. A row that somebody adds after that does.
        """
        again = again or {}
        claims = self.folder / ".claims"
        claims.mkdir(parents=True, exist_ok=True)
        mine = claims / uuid.uuid4().hex
        held = FileLock(f"{mine}.lock")
        try:
            with self._lock():
                held.acquire()
            for job in jobs:
                with self._lock():
                    row = self.rows().get(job.key)
                    if (row is not None and row != again.get(job.key)) or job.key in self._claimed(mine):
                        continue
                    with mine.open("a") as file:
                        file.write(job.key + "\n")
                yield job
        finally:
            held.release()
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

    def _read(self, path: Path) -> dict[str, Row]:
        """Return a file's rows by key, having read what is new in it."""
        try:
            file = path.open("rb")
        except FileNotFoundError:
            self._files.pop(path, None)
            return {}
        with file:
            facts = os.fstat(file.fileno())
            state = self._files.get(path)
            if state is None or state.inode != facts.st_ino or state.end > facts.st_size:
                state = _File(facts.st_ino)
            file.seek(state.end)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1].decode("utf-8", "replace").splitlines()
        if state.end == 0 and whole and (header := whole.pop(0)) != ",".join(COLUMNS):
            raise StoreError(
                f"{path} was written by another version (its columns are {header}): "
                "move it away, or name another folder with --results"
            )
        for line in whole:
            row = _row(line)
            if row is None:
                state.broken += 1
            else:
                if row["key"] in state.rows:
                    state.before.append(state.rows[row["key"]])
                state.rows[row["key"]] = row
        state.end += data.rfind(b"\n") + 1
        self._files[path] = state
        return state.rows

    def _note_environment(self) -> None:
        key, facts = environment()
        path = self.folder / ENVIRONMENTS
        known = read_environments(self.folder)
        if key not in known:
            temporary = path.with_suffix(".tmp")
            with temporary.open("w", encoding="utf-8") as file:
                file.write(json.dumps({**known, key: facts}, indent=1, sort_keys=True) + "\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)


def read_environments(folder: Path) -> dict[str, dict[str, str]]:
    """Return what the results were made with; nothing, if that cannot be read."""
    try:
        found = json.loads((folder / ENVIRONMENTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _framed(rows: list[Row]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=COLUMNS, dtype=str)
    return frame.assign(**{name: pd.to_numeric(frame[name]) for name in NUMBERS})


def is_older(row: Row) -> bool:
    """Return whether a result is of other cuts than its method gives now, as far as can be told here."""
    if row["kind"] not in KINDS_WITH_CUTS:
        return False
    try:
        return row["cuts"] != cuts_of(row["learner"], row["method"])
    except ImportError:  # the library is not here
        return False


def _row(line: str) -> Row | None:
    """Return a line's fields, if they are whole."""
    fields = next(csv.reader([line]), [])
    row = dict(zip(COLUMNS, fields, strict=False))
    if len(fields) != len(COLUMNS) or not (row["score"] or row["error"]):
        return None
    try:
        for name in NUMBERS:
            float(row[name] or 0)
    except ValueError:
        return None
    return row


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
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{os.cpu_count()} x {model or platform.processor() or 'unknown processor'}"
