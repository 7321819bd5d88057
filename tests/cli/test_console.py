"""What terminals, pipes and signals get to see, and what the command line leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from boostbins.cli import main
from tests.cli.conftest import COMMAND, COMMANDS, QUICK, fit_bins, run

pty = pytest.importorskip("pty")  # not on Windows


def run_on_terminal(*arguments, cwd, columns=120):
    """Return the exit code and all that a terminal got to see."""
    main_end, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    seen = b""
    while True:
        try:
            part = os.read(main_end, 65536)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        seen += part
    os.close(main_end)
    return process.wait(60), seen.decode()


WRITES = {
    "compare": "page.html",
    "report": "boostbins-report.html",
    "fit": "bins.json",
    "encode": "codes.parquet",
}


QUICK_COMMANDS = [name for name in COMMANDS if name != "demo"]  # which is run once with each library


@pytest.mark.parametrize("name", QUICK_COMMANDS)
def test_in_a_pipe(folder, name):
    fit_bins(pd.read_parquet(folder / "data.parquet")[["area", "age"]]).save(folder / "bins.json")
    arguments, said = COMMANDS[name]
    done = run(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert not re.search(r"Traceback|Warning", done.stderr)
    if name in WRITES:
        assert (folder / WRITES[name]).stat().st_size > 0
        assert WRITES[name] in done.stderr
    assert not list(folder.glob(".*"))  # nothing half written stays


@pytest.mark.parametrize("name", [pytest.param("demo", marks=pytest.mark.slow), *QUICK_COMMANDS])
def test_on_a_terminal(folder, name):
    fit_bins(pd.read_parquet(folder / "data.parquet")[["area", "age"]]).save(folder / "bins.json")
    arguments, said = COMMANDS[name]
    code, seen = run_on_terminal(*arguments, cwd=folder)
    assert code == 0, seen
    assert said in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen).replace("\r\n", "\n")
    assert "\x1b[" in seen  # colours, or at least dim notes
    if name in ("demo", "compare"):
        assert "left:" in seen  # the estimate
    assert "Traceback" not in seen


# ---- for machines


@pytest.mark.parametrize("name", QUICK_COMMANDS)
def test_json_is_all_there_is_on_standard_output(folder, name):
    fit_bins(pd.read_parquet(folder / "data.parquet")[["area", "age"]]).save(folder / "bins.json")
    done = run(*COMMANDS[name][0], "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if name == "compare":
        assert {row["method"] for row in found["table"]} == {"native", "kmeans"}
    if name == "report":
        assert found["columns"][0]["name"] == "area"
    if name == "fit":
        assert {row["column"] for row in found} == {"area", "age", "sold", "weight"}


@pytest.mark.parametrize("name", QUICK_COMMANDS)
def test_quiet_is_quiet(folder, name):
    fit_bins(pd.read_parquet(folder / "data.parquet")[["area", "age"]]).save(folder / "bins.json")
    done = run(*COMMANDS[name][0], "--quiet", cwd=folder)
    assert done.returncode == 0
    assert done.stderr == ""
    verdicts = done.stdout.splitlines()
    assert len(verdicts) == (2 if name in ("compare", "report") else 0)
    assert all(line.startswith("At ") for line in verdicts)


def test_a_reader_that_has_seen_enough_of_the_table(folder):
    command = f"{' '.join(COMMAND)} report data.parquet --html page.html | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "page.html").exists()


def test_a_reader_that_has_seen_enough(folder):
    command = " ".join([*COMMAND, "report", "data.parquet", "--json"])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -c 10; exit ${{PIPESTATUS[0]}}"], cwd=folder, capture_output=True
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert b"Broken" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-"])
def test_closed_streams(folder, closed):
    command = f"{' '.join(COMMAND)} report data.csv --html page.html {closed}"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "page.html").exists()


def test_with_the_debug_variable_there_is_a_traceback(tmp_path):
    done = run("report", "no.csv", cwd=tmp_path, env={**os.environ, "BOOSTBINS_DEBUG": "1"})
    assert "Traceback" in done.stderr


def test_without_rich_it_says_what_to_install(tmp_path):
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("raise ImportError")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = run("report", "data.csv", cwd=tmp_path, env=environment)
    assert done.returncode == 1
    assert done.stderr == "boostbins: the command line needs rich: pip install 'boostbins[cli]'\n"


# ---- names from anywhere

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\u202eb\u2066c\u2028d\re\nf\x9bg"


SHOWN = r"a\x1b]0;owned\x07\x1b[2J\u202eb\u2066c\u2028d\re\nf\x9bg"


OBEYED = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"


def test_a_terminal_obeys_nothing_that_a_name_says(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    frame = pd.read_parquet(folder / "data.parquet").rename(columns={"area": HOSTILE})
    frame.to_parquet(folder / "evil.parquet", index=False)
    frame.to_parquet(folder / f"{HOSTILE}.parquet", index=False)
    for command, needed in {"fit": ["-o", "bins.json"], "report": ["-q"], "show": []}.items():
        _, seen = run_on_terminal(command, f"{HOSTILE}.parquet", *needed, cwd=folder, columns=400)
        assert r"owned\x07" in seen or command == "report"
        assert "\x1b[2J" not in seen
        assert not re.search(OBEYED, re.sub(r"\x1b\[[0-9;?]*[AKhlm]", "", seen).replace("\r", ""))
    for arguments in (
        ["fit", "evil.parquet", "--method", "auto", "--target", "price", "-o", f"{HOSTILE}.json"],
        ["show", f"{HOSTILE}.json"],
        ["show", f"{HOSTILE}.json", "--column", HOSTILE],
        ["encode", "evil.parquet", "bins.json", "-o", f"{HOSTILE}.csv"],
        ["report", f"{HOSTILE}.parquet", "--target", "price", "--html", f"{HOSTILE}.html"],
        ["compare", "evil.parquet", "--target", "price", *QUICK, "--html", f"{HOSTILE}.html"],
        ["compare", "evil.parquet", "--target", HOSTILE, *QUICK],
        ["fit", HOSTILE, "-o", "bins.json"],
        ["show", HOSTILE],
        ["show", "bins.json", HOSTILE],
        ["fit", "data.csv", "-o", f"no folder {HOSTILE}/x"],
    ):
        with suppress(SystemExit):
            main(arguments)
        seen = "".join(capsys.readouterr())
        assert seen
        assert not re.search(OBEYED, seen), (arguments, seen)
    assert main(["show", f"{HOSTILE}.json"]) == 0
    assert SHOWN in capsys.readouterr().out


def test_names_of_files_that_are_not_utf8(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    name = os.fsdecode(b"b\xffd")
    (folder / "data.csv").rename(folder / f"{name}.csv")
    (folder / "data.parquet").rename(folder / f"{name}.parquet")
    for arguments in (
        ["fit", f"{name}.csv", "-o", f"{name}.json"],
        ["show", f"{name}.json"],
        ["encode", f"{name}.csv", f"{name}.json", "-o", f"{name}.feather"],
        ["summarize", f"{name}.csv", "-o", f"{name}.bin"],
        ["fit", f"{name}.bin", "-o", "bins.json"],
        ["report", f"{name}.csv", "--html", f"{name}.html"],
    ):
        assert main(arguments) == 0, capsys.readouterr().err
    (folder / name).mkdir()
    assert main(["encode", f"{name}.csv", f"{name}.json", "-o", f"{name}/codes.parquet"]) == 0
    capsys.readouterr()
    for arguments in (["show", f"no{name}"], ["fit", f"no{name}", "-o", "x"], ["fit", f"{name}.html", "-o", "x"]):
        assert main(arguments) == 2
        assert re.fullmatch(r"boostbins: .*b\\udcffd.*\n", capsys.readouterr().err)
    assert main(["fit", f"{name}.parquet", "-o", "x.json"]) == 2
    assert r"'b\udcffd.parquet' is not UTF-8: rename it" in capsys.readouterr().err


# ---- interrupted


def interrupted(arguments, cwd, after):
    """Run a command, press Ctrl-C when its output on a terminal satisfies `after`."""
    main_end, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd, env={**os.environ, "TERM": "xterm"}, stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    os.close(terminal)
    seen, is_pressed = "", False
    until = time.monotonic() + 100
    while time.monotonic() < until:
        try:
            part = os.read(main_end, 65536).decode()
        except OSError:
            break
        seen += part
        if not is_pressed and after(seen):
            is_pressed = True
            os.killpg(process.pid, signal.SIGINT)
    os.close(main_end)
    assert is_pressed
    return process.wait(60), seen


def test_ctrl_c_ends_it_cleanly(folder):
    long = ["compare", "data.csv", "--target", "price", "--library", "sklearn", "--splits", "500"]
    code, seen = interrupted([*long, "--html", "page.html"], folder, lambda seen: re.search(r"\b[1-9]/8000", seen))
    assert code == 130
    assert "boostbins: stopped" in seen
    assert "Traceback" not in seen
    assert not (folder / "page.html").exists()
    assert not list(folder.glob(".*"))


def test_ctrl_c_while_modules_are_loaded(folder):
    (folder / "modules" / "numpy").mkdir(parents=True)
    (folder / "modules" / "numpy" / "__init__.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(folder / "modules"), os.environ.get("PYTHONPATH", "")])
    entry = re.search(r'^boostbins = "(.*):(.*)"$', (Path(__file__).parents[2] / "pyproject.toml").read_text(), re.M)
    script = f"import sys; from {entry[1]} import {entry[2]}; sys.exit({entry[2]}())"
    for command in (COMMAND, [sys.executable, "-c", script]):
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run([*command, "--version"], cwd=folder, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "boostbins: stopped\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_writer_that_is_told_to_end_leaves_nothing(tmp_path, number):
    writer = """
import argparse, time
from boostbins.cli.console import Screen
from boostbins._atomic import atomic_write
with Screen(argparse.Namespace(quiet=True, json=False)).interrupts(), atomic_write("out"):
    print("writing", flush=True)
    time.sleep(60)
"""
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    process = subprocess.Popen(
        [sys.executable, "-c", writer], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(number, usual),  # whoever runs the tests may ignore it, as nohup does
    )  # fmt: skip
    with process.stdout:
        assert process.stdout.readline() == b"writing\n"
    process.send_signal(number)
    assert process.wait(60) == (-number if number == signal.SIGINT else 128 + number)
    assert not list(tmp_path.iterdir())


def test_an_interrupt_that_a_library_swallows_is_raised_again(folder, monkeypatch, capsys):
    from boostbins.sklearn import HistGradientBoostingRegressor

    fit = HistGradientBoostingRegressor.fit

    def swallowing(self, *args, **kwargs):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            pass
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", swallowing)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
    try:
        assert main(["compare", str(folder / "data.csv"), "--target", "price", *QUICK]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert "boostbins: stopped" in capsys.readouterr().err


def test_ctrl_c_after_some_splits_tells_what_is_known(folder):
    arguments = ["compare", "data.csv", "--target", "price", "--splits", "500", "--library", "sklearn",
                 "--param", "max_iter=5", "--methods", "kmeans", "--max-bins", "31", "--html", "page.html"]  # fmt: skip
    code, seen = interrupted(arguments, folder, lambda seen: re.search(r"\b[1-9]\d/1000", seen))
    assert code == 130
    assert re.search(r"interrupted: \d+ of 500 splits", seen)
    assert "At 31 bins" in seen
    assert (folder / "page.html").exists()
