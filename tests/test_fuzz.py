"""The fuzzers find nothing in a short time; what they would find is told, and can be run again alone."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")

from tests.fuzz import __main__ as command
from tests.fuzz import planted
from tests.fuzz.fuzzers import FUZZERS
from tests.fuzz.running import run

_SECONDS = 12.0  # of each fuzzer


@pytest.mark.parametrize("name", FUZZERS)
def test_nothing_is_found(name):
    [tally] = run({name: FUZZERS[name]}, _SECONDS, seed=0)
    assert tally.cases > 0
    assert not tally.failures, "\n\n".join(f"{f.said}\nAgain: {f.again}" for f in tally.failures)


# ---- what they would find


def numbers_of(tally):
    return [failure.case for failure in tally.failures]


def test_a_broken_law_is_told_with_the_case_that_breaks_it():
    [tally] = run({"fails": planted.fails}, 60, seed=5, cases=range(40))
    found = numbers_of(tally)
    assert tally.cases == 40
    assert 0 < len(found) < 40
    assert "KeyError: 'a law is broken'" in tally.failures[0].said
    assert tally.failures[0].again == f"python -m tests.fuzz fails --seed 5 --only-case {found[0]}"
    [again] = run({"fails": planted.fails}, 60, seed=5, cases=found)
    assert numbers_of(again) == found
    [others] = run({"fails": planted.fails}, 60, seed=5, cases=sorted(set(range(40)) - set(found)))
    assert not others.failures


def test_a_warning_is_a_failure():
    [tally] = run({"warns": planted.warns}, 60, seed=0, cases=[0])
    assert "RuntimeWarning: something" in tally.failures[0].said


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_a_case_that_ends_the_process_is_told_and_the_next_ones_are_tried():
    [tally] = run({"dies": planted.dies}, 60, seed=0, cases=range(6))
    found = numbers_of(tally)
    assert tally.cases == 6
    assert 0 < len(found) < 6
    assert "it ended the process: SIGSEGV" in tally.failures[0].said
    assert "in dies" in tally.failures[0].said  # the stack


def test_a_case_that_leaves_the_process_or_hangs_is_told():
    fuzzers = {"leaves": planted.leaves, "hangs": planted.hangs}
    left, hung = run(fuzzers, 60, seed=0, cases=[0], hang=1)
    assert "it ended the process: exit code 7" in left.failures[0].said
    assert "it hangs: no end after 1 seconds" in hung.failures[0].said
    assert "in hangs" in hung.failures[0].said or sys.platform == "win32"  # the stack


def test_fuzzers_take_turns_until_the_time_is_up():
    told = []
    fuzzers = {"fine": planted.fine, "fails": planted.fails}
    tallies = run(fuzzers, 1, seed=0, tell=lambda tallies, found: told.append([tally.cases for tally in tallies]))
    assert all(tally.cases > 0 for tally in tallies)
    assert told[-1] == [tally.cases for tally in tallies]
    assert sum(tally.seconds for tally in tallies) < 30


@pytest.mark.parametrize(("name", "code"), [("fails", 1), ("fine", 0)])
def test_the_command_says_what_it_found(name, code, monkeypatch, capsys):
    monkeypatch.setattr(command, "FUZZERS", {"fails": planted.fails, "fine": planted.fine})
    assert command.main([name, "--seconds", "2", "--seed", "5"]) == code
    said = capsys.readouterr().out
    assert f"{name}: " in said
    assert (f"Again: python -m tests.fuzz {name} --seed 5 --only-case" in said) == bool(code)
    assert ("KeyError: 'a law is broken'" in said) == bool(code)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lews"], "there is no fuzzer 'lews'; there are laws, partitions, mutants"),
        (["--seconds", "0"], "--seconds must be positive, got 0"),
        (["--only-case", "-1"], "--only-case must not be negative, got -1"),
        (["--seed", "x"], "invalid int value: 'x'"),
    ],
)
def test_a_wrong_command_is_told(arguments, message, capsys):
    with pytest.raises(SystemExit) as left:
        command.main(arguments)
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_the_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as left:
        command.main(["--help"])
    assert left.value.code == 0
    assert "example: python -m tests.fuzz" in capsys.readouterr().out
