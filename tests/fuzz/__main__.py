"""Random cases for the laws of boostbins, until the time is up; what is found can be run again alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.fuzz.fuzzers import FUZZERS
from tests.fuzz.running import Failure, Tally, run

FOUND = 1  # exit code; 2 is argparse's


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        epilog="example: python -m tests.fuzz laws mutants --seconds 600 --seed 3\n"
        "exit codes: 0 nothing was found, 1 something was, 2 the command is wrong",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which fuzzers: {', '.join(FUZZERS)} (all)")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="N", help="for all of them together (60)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the cases (0)")
    parser.add_argument("--only-case", type=int, metavar="K", help="try this case of the seed, and no other")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.names if name not in FUZZERS]:
        parser.error(f"there is no fuzzer {unknown[0]!r}; there are {', '.join(FUZZERS)}")
    if not asked.seconds > 0:
        parser.error(f"--seconds must be positive, got {asked.seconds:g}")
    for option, value in {"--seed": asked.seed, "--only-case": asked.only_case}.items():
        if value is not None and value < 0:
            parser.error(f"{option} must not be negative, got {value}")
    chosen = {name: FUZZERS[name] for name in asked.names or FUZZERS}
    seen: set[str] = set()

    def tell(tallies: list[Tally], found: list[Failure]) -> None:
        _clear()
        for failure in found:
            _print_failure(failure, known=failure.place in seen)
            seen.add(failure.place)
        _show(tallies)

    cases = range(sys.maxsize) if asked.only_case is None else [asked.only_case]
    tallies = run(chosen, asked.seconds, asked.seed, cases=cases, tell=tell)
    _clear()
    for tally in tallies:
        minute = f", {60 * tally.cases / tally.seconds:,.0f} a minute" if tally.seconds else ""
        print(f"{tally.fuzzer}: {tally.cases:,} cases{minute}; {len(tally.failures)} failed")
    return FOUND if any(tally.failures for tally in tallies) else 0


def _print_failure(failure: Failure, *, known: bool) -> None:
    if known:
        print(f"{failure.fuzzer}, case {failure.case}: as before. Again: {failure.again}", flush=True)
    else:
        print(f"{failure.fuzzer}, case {failure.case} of seed {failure.seed}:\n{failure.said.rstrip()}")
        print(f"Again: {failure.again}\n", flush=True)


def _show(tallies: list[Tally]) -> None:
    """Show how it stands, on a terminal."""
    if sys.stderr.isatty():
        stands = [f"{tally.fuzzer} {tally.cases:,} ({len(tally.failures)} failed)" for tally in tallies]
        print(", ".join(stands), end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
