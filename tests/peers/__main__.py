"""The libraries' own tests, run with our classes in the place of theirs.

Each test that passes with the library's own classes must pass with ours, or be in known.toml with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tests.peers.substitution import PEERS, Peer

KNOWN = Path(__file__).with_name("known.toml")
DIFFERS, CANNOT_RUN = 1, 3  # exit codes; 2 is argparse's


class Suite(NamedTuple):
    """Tests of a library."""

    peer: Peer
    root: Path  # names of tests are relative to it
    tests: tuple[Path, ...]


class Result(NamedTuple):
    """What became of a test."""

    outcome: str  # as pytest calls it, or "missing"
    said: str


class CannotRunError(Exception):
    """The tests did not come to an end."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.peers",
        description=__doc__,
        epilog="example: python -m tests.peers lightgbm --tests ~/LightGBM/tests/python_package_test -n 4",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("library", choices=sorted(PEERS))
    parser.add_argument(
        "--tests", type=Path, metavar="PATH", help="a folder of tests, if they are not installed with it"
    )
    parser.add_argument("-k", metavar="EXPRESSION", help="only some tests, as for pytest")
    parser.add_argument("-n", metavar="N", help="in so many processes, or 'auto'")
    parser.add_argument("--timeout", type=float, default=3600, metavar="SECONDS", help="for each of two runs (3600)")
    parser.add_argument("--known", type=Path, default=KNOWN, metavar="FILE", help="the tests that are known to differ")
    given = parser.parse_args(arguments)
    suite = suite_of(PEERS[given.library], given.tests)
    if missing := [str(path) for path in suite.tests if not path.exists()]:
        parser.error(f"there are no tests at {', '.join(missing)}: give --tests")
    if not suite.tests:
        parser.error(f"{given.library} is installed without its tests: give --tests, a folder of them in a checkout")
    known = tomllib.loads(given.known.read_text()).get(given.library, {})
    more = [*(["-k", given.k] if given.k else []), *(["-n", given.n] if given.n else [])]
    try:
        native, ours = (run(suite, with_ours, more, given.timeout) for with_ours in (False, True))
    except CannotRunError as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN
    found = compared(native, ours, known, whole=given.k is None)
    print(f"{given.library} {import_module(given.library).__version__}: {found.told(given.known)}")
    return DIFFERS if found.unknown or found.mended else 0


def suite_of(peer: Peer, folder: Path | None) -> Suite:
    """Return the tests in a folder, or else those that are installed."""
    if folder is not None:
        return Suite(peer, folder.resolve(), (folder.resolve(),))
    root = Path(import_module(peer.name).__file__).parent
    return Suite(peer, root, tuple(root / path for path in peer.suite))


def run(suite: Suite, with_ours: bool, more: Sequence[str], timeout: float) -> dict[str, Result]:
    """Return what becomes of each test."""
    with tempfile.TemporaryDirectory(prefix="boostbins-peers-") as folder:
        settings, results = Path(folder) / "pytest.ini", Path(folder) / "results"
        settings.write_text("[pytest]\npython_files = test*.py\n")  # none of ours
        results.touch()
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
        command += [
            "-p",
            "tests.peers.plugin",
            f"--peer-results={results}",
            f"--rootdir={suite.root}",
            "-c",
            str(settings),
        ]
        command += [f"--peer={suite.peer.name}"] if with_ours else []
        paths = [Path(__file__).parents[2], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        environment = {  # from whatever folder
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",  # some make their parameters from sets
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in paths),
        }
        try:
            done = subprocess.run(
                [*command, *more, *map(str, suite.tests)],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CannotRunError(
                f"{suite.peer.name}: the tests take longer than --timeout={timeout:g} seconds"
            ) from None
        if done.returncode not in (0, 1):
            said = f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
            raise CannotRunError(f"{suite.peer.name}: pytest ended with {done.returncode}, and said:\n{said}")
        found: dict[str, Result] = {}
        for line in map(json.loads, results.read_text().splitlines()):
            if found.get(line["test"], Result("passed", "")).outcome == "passed":  # the first trouble counts
                found[line["test"]] = Result(line["outcome"], line["said"])
        if not with_ours and not any(result.outcome == "passed" for result in found.values()):
            raise CannotRunError(f"{suite.peer.name}: no test passes at all. pytest said:\n{done.stdout[-3000:]}")
        return found


@dataclass(frozen=True)
class Comparison:
    """Two runs of the same tests."""

    n_tests: int
    n_native: int  # that pass with the library's own classes
    known: dict[str, list[str]]  # tests that differ, by the reason
    unknown: dict[str, Result]
    mended: list[str]  # entries of the list that are no longer true

    def told(self, file: Path) -> str:
        """Return all of it, to read."""
        n_known = sum(map(len, self.known.values()))
        text = f"{self.n_native} of {self.n_tests} tests pass, and with boostbins all of these "
        text += f"but {n_known + len(self.unknown)}, {n_known} of which are known\n"
        for reason, tests in self.known.items():
            text += f"\nknown: {reason}\n" + "".join(f"    {test}\n" for test in tests)
        for test, result in self.unknown.items():
            text += f"\nNOT KNOWN: {test}\n    {result.outcome}: {' '.join(result.said.split())[:300]}\n"
        for test in self.mended:
            text += f"\nNO LONGER: {test}\n    differs from the library's own: take it out of {file}\n"
        return text


def compared(native: dict[str, Result], ours: dict[str, Result], listed: dict[str, str], *, whole: bool) -> Comparison:
    """Return the tests that pass with the library's own classes and not with ours.

    `whole` is whether all tests were run, so that each of those that are listed must be among them.
    """
    passing = [test for test, result in native.items() if result.outcome == "passed"]
    results = {test: ours.get(test, Result("missing", "there is no such test with our classes")) for test in passing}
    differing = {test: result for test, result in results.items() if result.outcome != "passed"}
    known: dict[str, list[str]] = {}
    seen = set()
    for test in differing:
        for entry in (entry for entry in listed if is_of(test, entry)):
            known.setdefault(listed[entry], []).append(test)
            seen.add(entry)
            break
    told = {test for tests in known.values() for test in tests}
    unknown = {test: result for test, result in differing.items() if test not in told}
    run_here = [entry for entry in listed if whole or any(is_of(test, entry) for test in native)]
    return Comparison(len(native), len(passing), known, unknown, [entry for entry in run_here if entry not in seen])


def is_of(test: str, entry: str) -> bool:
    """Return whether an entry of the list means a test: it, or all that are made of it.

    >>> is_of("test_a.py::test_b[1]", "test_a.py::test_b"), is_of("test_a.py::test_bc", "test_a.py::test_b")
    (True, False)
    """
    return test == entry or test.startswith((f"{entry}[", f"{entry}::"))


if __name__ == "__main__":
    sys.exit(main())
