"""The commands as people and machines run them: in a pipe, on a terminal, with wrong input, interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import boostbins
from boostbins import Bins
from boostbins.cli import main
from boostbins.comparison.trainers import TRAINERS
from boostbins.sources import files, stream
from boostbins.sources.reading import read_files

pty = pytest.importorskip("pty")  # not on Windows
resource = pytest.importorskip("resource")

COMMAND = [sys.executable, "-m", "boostbins"]
QUICK = ["--splits", "2", "--library", "sklearn", "--param", "max_iter=10", "--methods", "kmeans"]


def run(*arguments, cwd, **options):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=120, **options
    )


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


@pytest.fixture
def folder(tmp_path):
    r = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "area": r.lognormal(3, 2, n),
            "age": np.where(r.random(n) < 0.1, np.nan, r.integers(0, 90, n)),
            "kind": r.choice(["flat", "house"], n),
            "sold": pd.date_range("2020-01-01", periods=n, freq="D"),
            "weight": r.integers(1, 4, n),
        }
    )
    frame["price"] = frame["area"] + r.standard_normal(n)
    frame.to_parquet(tmp_path / "data.parquet", index=False)
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


COMMANDS = {
    "demo": (["demo", "--library", "xgboost"], "auto lowers the error by"),
    "compare": (["compare", "data.parquet", "--target", "price", *QUICK, "--html", "page.html"], "At 63 bins"),
    "report": (["report", "data.parquet", "--target", "price"], "area: "),
    "fit": (["fit", "data.parquet", "--without", "price", "-o", "bins.json"], "variance lost"),
    "encode": (["encode", "data.csv", "bins.json", "-o", "codes.parquet"], ""),
    "show": (["show", "bins.json"], "variance lost"),
}
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


@pytest.mark.parametrize("name", [*COMMANDS, None])
def test_help_has_an_example(tmp_path, name):
    done = run(*[name] if name else [], "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert re.search(r"examples?:\n  boostbins " + (name or ""), done.stdout)


def test_version_and_no_command(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == f"boostbins {boostbins.__version__}\n"
    alone = run(cwd=tmp_path)
    assert alone.returncode == 2
    assert "examples:" in alone.stdout


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


# ---- the results


def test_fit_encode_and_show_agree_with_the_library(folder):
    frame = pd.read_parquet(folder / "data.parquet")
    assert main(["fit", str(folder / "data.csv"), "--columns", "area,age", "--method", "optimal", "--max-bins", "31",
                 "--weight", "weight", "-o", str(folder / "b.json"), "-q"]) == 0  # fmt: skip
    numbers = frame[["area", "age"]]
    expected = fit_bins(numbers, "optimal", 31, frame["weight"])
    assert Bins.load(folder / "b.json") == expected
    for ending in ("parquet", "feather", "csv"):
        out = folder / f"codes.{ending}"
        assert main(["encode", str(folder / "data.parquet"), str(folder / "b.json"), "-o", str(out), "-q"]) == 0
        codes = {"parquet": pd.read_parquet, "feather": pd.read_feather, "csv": pd.read_csv}[ending](out)
        assert np.array_equal(codes[["area", "age"]].to_numpy(), expected.encode(numbers))


def test_dates_have_the_same_codes_from_csv_and_parquet(folder):
    bins = str(folder / "b.json")
    assert main(["fit", str(folder / "data.csv"), "--columns", "sold", "-o", bins, "-q"]) == 0
    codes = []
    for source in ("data.csv", "data.parquet"):
        assert main(["encode", str(folder / source), bins, "-o", str(folder / "c.csv"), "-q"]) == 0
        codes.append((folder / "c.csv").read_text())
    assert codes[0] == codes[1]


def test_show_a_column(folder, capsys):
    bins = fit_bins(pd.read_parquet(folder / "data.parquet")[["area", "age"]], max_bins=4)
    bins.save(folder / "bins.json")
    assert main(["show", str(folder / "bins.json"), "--column", "age", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["weight"] for row in rows] == bins.table("age")["weight"].tolist()
    assert main(["show", str(folder / "bins.json"), "--column", "age"]) == 0
    assert "missing" in capsys.readouterr().out
    Bins([[1.0, 2.0]], names=["a"]).save(folder / "plain.json")
    assert main(["show", str(folder / "plain.json"), "--column", "a"]) == 0
    assert main(["show", str(folder / "plain.json")]) == 0


@pytest.mark.slow
def test_standard_input_and_patterns(folder):
    with (folder / "data.csv").open() as file:
        piped = run("report", "-", "--json", cwd=folder, stdin=file)
    named = run("report", "data.c*", "--json", cwd=folder)
    twice = run("report", "data.csv", "data.parquet", "--json", cwd=folder)
    first, second, both = (json.loads(done.stdout) for done in (piped, named, twice))
    assert first["title"] == "standard input"
    assert first["columns"] == second["columns"]
    assert both["rows"] == 2 * first["rows"]


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


@pytest.mark.slow
@pytest.mark.parametrize("library", TRAINERS)
def test_the_demo_with_each_library(tmp_path, library):
    done = run("demo", "--library", library, "--html", "d.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"At 63 bins auto lowers the error by .*: worth the change", done.stdout)
    assert f"{TRAINERS[library].title}'s own" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert not re.search(r"Traceback|Warning", done.stderr)
    assert (tmp_path / "d.html").stat().st_size > 0


# ---- files of any size


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MAX_ROWS", 700)
    monkeypatch.setattr(files, "_MIN_ROWS", 500)
    monkeypatch.setattr(stream, "_ROWS_TOGETHER", 500)
    rng = np.random.default_rng(0)
    n = 4000
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]")
    frame = pd.DataFrame(
        {"a": rng.lognormal(0, 2, n), "b": rng.poisson(3, n), "day": days, "text": ["x", "y"] * (n // 2)}
    )
    frame["w"] = rng.integers(0, 3, n)
    (tmp_path / "parts").mkdir()
    for i in range(4):
        frame[i * 1000 : (i + 1) * 1000].to_parquet(tmp_path / "parts" / f"{i}.parquet")
    return frame


def numbers_of(frame):
    return frame[["a", "b", "day"]]


fit_bins = partial(boostbins.fit_bins, dates_as_numbers=True)  # as the commands do


def test_fit_reads_a_folder_in_batches(parts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "parts", "--weight", "w", "--max-bins", "63", "-o", "bins.json"]) == 0
    assert Bins.load("bins.json") == fit_bins(numbers_of(parts), max_bins=63, sample_weight=parts["w"])
    said = capsys.readouterr().err
    assert said.count("left out (text or categories): 'text'") == 1
    assert main(["fit", "parts/*.parquet", "--columns", "b,a", "-o", "bins.json"]) == 0
    assert Bins.load("bins.json") == fit_bins(parts[["b", "a"]])


def test_summaries_are_fitted_without_the_data(parts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = sorted(str(path) for path in (tmp_path / "parts").iterdir())
    assert main(["summarize", *files[:3], "--without", "w", "-o", "yesterday.bin"]) == 0
    assert "3,000 rows of 3 columns in " in capsys.readouterr().err
    assert main(["summarize", files[3], "--without", "w", "-o", "today.bin", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1000
    assert main(["fit", "today.bin", "yesterday.bin", "-o", "bins.json"]) == 0
    known = fit_bins(numbers_of(parts))
    assert Bins.load("bins.json") == known
    assert main(["summarize", "yesterday.bin", "today.bin", "--columns", "a", "-o", "both.bin"]) == 0
    assert main(["fit", "both.bin", "-o", "bins.json"]) == 0
    assert Bins.load("bins.json")["a"].tobytes() == known["a"].tobytes()


def test_auto_looks_at_the_target_in_files_and_in_summaries(parts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = sorted(str(path) for path in (tmp_path / "parts").iterdir())
    options = {"max_bins": 63, "y": parts["w"]}
    known = fit_bins(numbers_of(parts), "auto", **options)
    arguments = ["--method", "auto", "--max-bins", "63", "-o", "bins.json"]
    assert main(["fit", "parts", "--target", "w", *arguments]) == 0
    found = Bins.load("bins.json")
    assert found == known
    assert found.choices == known.choices
    assert main(["summarize", *files[:2], "--target", "w", "-o", "s1.bin"]) == 0
    assert main(["summarize", *files[2:], "--target", "w", "-o", "s2.bin"]) == 0
    capsys.readouterr()
    assert main(["fit", "s1.bin", "s2.bin", *arguments]) == 0
    assert Bins.load("bins.json") == known
    assert "hybrid (" not in capsys.readouterr().err
    assert main(["fit", "parts", "--target", "w", "--total-bins", "70", *arguments]) == 0
    assert Bins.load("bins.json") == fit_bins(numbers_of(parts), "auto", total_bins=70, **options)
    assert main(["fit", "parts", "--target", "w", "-o", "bins.json"]) == 0  # kmeans: the target is left out
    assert Bins.load("bins.json") == fit_bins(numbers_of(parts))


def test_a_target_of_classes(parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numbers = numbers_of(parts).assign(w=parts["w"])
    assert main(["fit", "parts", "--method", "auto", "--target", "text", "-o", "bins.json"]) == 0
    assert Bins.load("bins.json") == fit_bins(numbers, "auto", y=parts["text"])
    weighted = ["--weight", "w", "--max-bins", "15"]
    assert main(["fit", "parts", "--method", "auto", "--target", "text", *weighted, "-o", "bins.json"]) == 0
    assert Bins.load("bins.json") == fit_bins(numbers_of(parts), "auto", 15, parts["w"], y=parts["text"])


def test_auto_without_a_target_says_what_it_does(parts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["summarize", "parts", "--without", "w", "-o", "s.bin"]) == 0
    for data, way in (("parts", "give"), ("s.bin", "summarize with")):
        without = ["--without", "w"] if data == "parts" else []
        assert main(["fit", data, *without, "--method", "auto", "-o", "bins.json"]) == 0
        said = f"auto looks at the target, and there is none: it does as hybrid ({way} --target COLUMN)"
        assert said in capsys.readouterr().err
        assert Bins.load("bins.json") == fit_bins(numbers_of(parts), "hybrid")


def test_show_tells_what_auto_chose(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    frame = pd.read_parquet("data.parquet")
    bins = fit_bins(frame[["area", "age", "weight"]], "auto", 63, y=frame["price"])
    bins.save("bins.json")
    choice = bins.choices["area"]
    assert main(["show", "bins.json"]) == 0
    said = capsys.readouterr().out
    assert f"area: {choice.chosen}, which {choice.why}" in said
    assert re.search(r"weight +3 .*–", said)
    assert main(["show", "bins.json", "--json"]) == 0
    area, _, weight = json.loads(capsys.readouterr().out)
    assert area["choice"]["why"] == choice.why
    assert area["choice"]["explained"] == choice.explained
    assert "choice" not in weight
    assert main(["show", "bins.json", "--column", "area"]) == 0
    said = capsys.readouterr().out
    assert f"auto chose {choice.chosen}, which {choice.why}" in said
    assert all(f"{share:.3%}" in said for share in choice.explained.values())
    fit_bins(frame[["area"]], "auto", 63, y=np.ones(len(frame))).save("bins.json")
    assert main(["show", "bins.json"]) == 0
    assert "area: hybrid: the target is constant" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_encode_writes_in_batches(parts, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "parts", "--without", "w", "-o", "bins.json"]) == 0
    assert main(["encode", "parts", "bins.json", "-o", f"codes.{kind}"]) == 0
    codes = read_files(f"codes.{kind}").to_pandas().to_numpy()
    np.testing.assert_array_equal(codes, Bins.load("bins.json").encode(numbers_of(parts)))


def test_encode_that_fails_leaves_nothing_and_nothing_is_replaced(parts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "parts", "--columns", "a,b", "-o", "bins.json"]) == 0
    (tmp_path / "codes.parquet").write_text("what was there")
    path = tmp_path / "parts" / "3.parquet"
    data = path.read_bytes()
    column = pyarrow.parquet.read_metadata(path).row_group(0).column(0)
    at = column.dictionary_page_offset or column.data_page_offset
    path.write_bytes(data[:at] + b"\xff" * 40 + data[at + 40 :])
    assert main(["encode", "parts", "bins.json", "-o", "codes.parquet"]) == 2
    assert re.search(r"boostbins: .*3\.parquet, row group 1 of 1 cannot be read", capsys.readouterr().err)
    assert (tmp_path / "codes.parquet").read_text() == "what was there"
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("data", ["parts", "parts/*.parquet"])
def test_no_file_of_a_folder_is_replaced(parts, tmp_path, monkeypatch, capsys, data):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "parts", "--columns", "a,b", "-o", "bins.json"]) == 0
    before = (tmp_path / "parts" / "1.parquet").read_bytes()
    for command in (["encode", data, "bins.json"], ["fit", data], ["summarize", data], ["report", data]):
        output = "--html" if command[0] == "report" else "-o"
        assert main([*command, output, "parts/1.parquet"]) == 2
        assert "would replace the data that is read from it" in capsys.readouterr().err
    assert (tmp_path / "parts" / "1.parquet").read_bytes() == before


def test_encode_without_rows_is_told(parts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "parts", "--columns", "a,b", "-o", "bins.json"]) == 0
    parts[:0].to_parquet("empty.parquet")
    capsys.readouterr()
    assert main(["encode", "empty.parquet", "bins.json", "-o", "codes.parquet"]) == 2
    assert "there are no rows to be written" in capsys.readouterr().err
    assert not (tmp_path / "codes.parquet").exists()


@pytest.mark.slow
def test_a_full_disk_leaves_what_was_there(parts, tmp_path):
    assert run("fit", "parts", "--columns", "a", "-o", "bins.json", cwd=tmp_path).returncode == 0

    def no_room():  # for more than that in a file: the system then answers as with a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    for name, command in {
        "s.bin": ["summarize", "parts"],
        "new.json": ["fit", "parts"],
        "codes.parquet": ["encode", "parts", "bins.json"],
        "codes.csv": ["encode", "parts", "bins.json"],
    }.items():
        (tmp_path / name).write_text("what was there")
        done = run(*command, "-o", name, cwd=tmp_path, preexec_fn=no_room)
        assert done.returncode == 1, done.stderr
        assert re.fullmatch(r"(?s).*boostbins: .*File too large.*\n", done.stderr)
        assert "Traceback" not in done.stderr
        assert (tmp_path / name).read_text() == "what was there"
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "s.bin", "parts"], "parts is no summary, and the others are: summarize it first"),
        (["fit", "s.bin", "--weight", "w"], "--weight, --target and --without are for data"),
        (["fit", "s.bin", "--target", "w"], "--weight, --target and --without are for data"),
        (["summarize", "parts", "--target", "text"], "--target: column 'text' must hold numbers, for parts"),
        (["fit", "s.bin", "cut.bin"], "cut.bin: .*cut short"),
        (["fit", "s.bin", "--max-bins", "9000"], "max_bins=9000 needs a summary of 36000 cells"),
        (["summarize", "parts", "--max-cells", "1"], "max_cells must be a whole number from 2 on"),
    ],
)
def test_summaries_that_cannot_be_used_are_named(parts, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    big = pd.DataFrame({"a": np.random.default_rng(0).random(50_000)})
    boostbins.summarize(big).save("s.bin")
    (tmp_path / "cut.bin").write_bytes((tmp_path / "s.bin").read_bytes()[:-100])
    assert main([*arguments, "-o", "out"]) == 2
    assert re.fullmatch(f"boostbins: {message}.*\n", capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


# ---- wrong input

WRONG = {
    "no such file": (["report", "no.csv"], "there is no file no.csv"),
    "an empty folder": (["report", "empty"], "the folder empty has no files"),
    "an empty file": (["report", "empty.csv"], "empty.csv is empty"),
    "one column": (["compare", "one.csv", "--target", "a"], "no column to train on beside the target"),
    "no such target": (["compare", "data.csv", "--target", "prise"], "no column 'prise': did you mean 'price'?"),
    "no such target, report": (["report", "data.csv", "--target", "Price"], "did you mean 'price'?"),
    "a target with missing values": (["compare", "data.csv", "--target", "age"], r"the target has \d+ missing values"),
    "all text": (["compare", "text.csv", "--target", "b"], "no numeric column: nothing to bin"),
    "all text, report": (["report", "text.csv"], "no numeric column: nothing to bin"),
    "all text, fit": (["fit", "text.csv", "-o", "b.json"], "has no numeric columns"),
    "10 rows": (["compare", "ten.csv", "--target", "price"], "there are 10 rows"),
    "a class with one member": (["compare", "lonely.csv", "--target", "class"], "class 'c' has one row only"),
    "an unknown method": (["compare", "data.csv", "--target", "price", "--methods", "kmean"], "got 'kmean'"),
    "an unknown library": (["compare", "data.csv", "--target", "price", "--library", "lgbm"], "invalid choice: 'lgbm'"),
    "no target": (["compare", "data.csv"], "required: --target"),
    "no number": (["compare", "data.csv", "--target", "price", "--max-bins", "many"], "got 'many'"),
    "too few bins": (["report", "data.csv", "--max-bins", "1"], "max_bins must be .*got 1"),
    "no parameter": (["compare", "data.csv", "--target", "price", "--param", "x"], "NAME=VALUE"),
    "an unknown parameter": (["compare", "data.csv", "--target", "price", *QUICK, "--param", "xyz=1"], "'xyz'"),
    "an unknown metric": (["compare", "data.csv", "--target", "price", "--metric", "auc"], "did you mean 'roc_auc'"),
    "an unknown ending": (["encode", "data.csv", "good.json", "-o", "codes.xls"], "must end in .parquet"),
    "no columns": (["fit", "data.csv", "--columns", ",", "-o", "b.json"], "has no numeric columns"),
    "no such target, fit": (["fit", "data.csv", "--target", "prise", "-o", "b.json"], "did you mean 'price'?"),
    "a target with missing values, fit": (
        ["fit", "data.csv", "--method", "auto", "--target", "age", "-o", "b.json"], r"the target has \d+ missing values"
    ),
    "classes with missing values, fit": (
        ["fit", "text.parquet", "--method", "auto", "--target", "b", "-o", "b.json"], "the target has a missing value"
    ),
    "a target of dates, fit": (
        ["fit", "data.parquet", "--method", "auto", "--target", "sold", "-o", "b.json"], "the target holds dates"
    ),
    "the target as weights, fit": (
        ["fit", "data.csv", "--target", "price", "--weight", "price", "-o", "b.json"], "cannot be both the target and"
    ),
    "too few bins in all": (["fit", "data.csv", "--total-bins", "3", "-o", "b.json"], "total_bins must be .*got 3"),
    "no such target, summarize": (
        ["summarize", "data.csv", "--target", "prise", "-o", "s.bin"], "did you mean 'price'?"
    ),
    "weights of text": (["fit", "data.csv", "--weight", "kind", "-o", "b.json"], "column 'kind' must hold numbers"),
    "the number of bins as a parameter": (
        ["compare", "data.csv", "--target", "price", "--param", "max_bin=7"], "must not hold 'max_bin'"
    ),
    "bins that are no text": (["show", "data.parquet"], "data.parquet: not the JSON of boostbins' bins"),
    "no bins": (["encode", "data.csv", "data.csv", "-o", "codes.csv"], "not the JSON of boostbins' bins"),
    "bins of other columns": (["encode", "one.csv", "good.json", "-o", "codes.csv"], "there is no column 'area'"),
    "bins that are a folder": (["show", "empty"], "cannot read empty: Is a directory"),
    "bins that are nothing": (["encode", "data.csv", "empty.csv", "-o", "c.csv"], "empty.csv: not the JSON of"),
    "bins without end": (["show", "/dev/zero"], "/dev/zero: not the JSON of boostbins' bins"),
    "no such bins": (["show", "no.json"], "cannot read no.json"),
    "no such column": (["show", "good.json", "--column", "aera"], "did you mean 'area'"),
}  # fmt: skip


@pytest.fixture
def wrong(folder):
    (folder / "empty.csv").touch()
    (folder / "empty").mkdir()
    (folder / "one.csv").write_text("a\n" + "".join(f"{i}\n" for i in range(200)))
    (folder / "text.csv").write_text("a,b\n" + "x,y\nz,w\n" * 100)
    pd.DataFrame({"a": range(9), "b": ["x", None, *"yyyyxxx"]}).to_parquet(folder / "text.parquet")
    (folder / "lonely.csv").write_text("a,class\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(200)) + "7,c\n")
    frame = pd.read_parquet(folder / "data.parquet")
    frame.head(10).to_csv(folder / "ten.csv", index=False)
    fit_bins(frame[["area"]]).save(folder / "good.json")
    return folder


@pytest.mark.parametrize("what", WRONG)
def test_wrong_input_is_named_in_one_line(wrong, monkeypatch, capsys, what):
    monkeypatch.chdir(wrong)
    before = set(wrong.iterdir())
    arguments, message = WRONG[what]
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    seen = capsys.readouterr()
    assert code == 2
    assert seen.out == ""
    assert re.fullmatch(f"boostbins: .*{message}.*\n", seen.err), seen.err
    assert set(wrong.iterdir()) == before


@pytest.mark.parametrize("command", ["report", "compare", "fit", "encode", "demo"])
@pytest.mark.parametrize("path", ["/nonexistent/folder/out.csv", "."])
def test_an_output_that_cannot_be_written_is_told_before_the_work(wrong, monkeypatch, capsys, command, path):
    monkeypatch.chdir(wrong)
    path = "x.csv/" if path == "." and command == "encode" else path
    if path == "x.csv/":
        (wrong / "x.csv").mkdir()
    where = ["--html", path] if command in ("report", "compare", "demo") else ["-o", path]
    inputs = {"compare": ["data.csv", "--target", "price"], "encode": ["data.csv", "good.json"], "demo": []}
    monkeypatch.setattr("boostbins.cli.compare.read_files", None)  # nothing is read before
    monkeypatch.setattr("boostbins.cli.bins.open_stream", None)
    assert main([command, *inputs.get(command, ["data.csv"]), *where]) == 1
    seen = capsys.readouterr()
    assert seen.out == ""
    assert re.fullmatch("boostbins: cannot write .*\n", seen.err), seen.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "data.csv", "--html", "data.csv"],
        ["compare", "data.csv", "--target", "price", "--html", "./data.csv"],
        ["fit", "data.csv", "-o", "data.csv"],
        ["encode", "data.csv", "good.json", "-o", "data.csv"],
    ],
)
def test_the_input_is_never_replaced(wrong, monkeypatch, capsys, arguments):
    monkeypatch.chdir(wrong)
    before = (wrong / "data.csv").read_bytes()
    assert main(arguments) == 2
    assert "would replace the data" in capsys.readouterr().err
    assert (wrong / "data.csv").read_bytes() == before


def test_links_pipes_devices_and_rights_are_kept(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "real.html").touch()
    (folder / "link.html").symlink_to("real.html")
    old = os.umask(0o077)
    try:
        assert main(["report", "data.csv", "-q", "--html", "link.html"]) == 0
        assert main(["report", "data.csv", "-q", "--html", "new.html"]) == 0
    finally:
        os.umask(old)
    assert (folder / "link.html").is_symlink()
    assert (folder / "real.html").stat().st_size > 1000
    assert (folder / "new.html").stat().st_mode & 0o777 == 0o600
    os.mkfifo(folder / "pipe")
    with (folder / "read").open("wb") as file, subprocess.Popen(["cat", "pipe"], stdout=file, cwd=folder) as reader:
        assert main(["report", "data.csv", "-q", "--html", "pipe"]) == 0
        assert reader.wait(60) == 0
    assert (folder / "read").read_bytes().startswith(b"<!doctype html>")
    assert main(["report", "data.csv", "-q", "--html", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


def test_the_file_that_is_written_has_standard_output_for_itself(folder):
    command = " ".join(COMMAND)

    def done(line):
        return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True)

    assert run("fit", "data.csv", "-o", "bins.json", cwd=folder).returncode == 0
    fit = done(f"{command} fit data.csv -o /dev/stdout | cat")
    assert fit.stdout == (folder / "bins.json").read_bytes()
    assert b"variance lost" in fit.stderr
    for name in ("/dev/stdout", "/dev/fd/1", ">(cat)"):
        assert done(f"{command} fit data.csv -q -o {name} | cat").stdout == fit.stdout
    done(f"(echo first; {command} summarize data.csv -o /dev/stdout; echo last) > both")
    both = (folder / "both").read_bytes()
    assert both.startswith(b"first\n")
    assert both.endswith(b"last\n")
    assert run("summarize", "data.csv", "-o", "s.bin", cwd=folder).returncode == 0
    assert both[6:-5] == (folder / "s.bin").read_bytes()
    assert done(f"{command} report data.csv --html /dev/stdout | cat").stdout.startswith(b"<!doctype html>")
    twice = done(f"{command} fit data.csv --json -o /dev/stdout")
    assert (twice.returncode, twice.stdout) == (2, b"")
    assert b"cannot both be standard output" in twice.stderr


def test_codes_go_into_a_pipe_as_csv(folder):
    assert run("fit", "data.csv", "-o", "bins.json", cwd=folder).returncode == 0
    assert run("encode", "data.csv", "bins.json", "-o", "codes.csv", cwd=folder).returncode == 0
    line = f"{' '.join(COMMAND)} encode data.csv bins.json -o /dev/stdout"
    piped = subprocess.run(["bash", "-c", f"{line} | cat"], cwd=folder, capture_output=True)
    assert piped.stdout == (folder / "codes.csv").read_bytes()
    enough = subprocess.run(["bash", "-c", f"{line} | true; exit ${{PIPESTATUS[0]}}"], cwd=folder, capture_output=True)
    assert enough.returncode == 0
    assert b"Traceback" not in enough.stderr


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
    code, seen = interrupted([*long, "--html", "page.html"], folder, lambda seen: re.search(r"\b[1-9]/6000", seen))
    assert code == 130
    assert "boostbins: stopped" in seen
    assert "Traceback" not in seen
    assert not (folder / "page.html").exists()
    assert not list(folder.glob(".*"))


def test_ctrl_c_while_modules_are_loaded(folder):
    (folder / "modules" / "numpy").mkdir(parents=True)
    (folder / "modules" / "numpy" / "__init__.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(folder / "modules"), os.environ.get("PYTHONPATH", "")])
    entry = re.search(r'^boostbins = "(.*):(.*)"$', (Path(__file__).parents[1] / "pyproject.toml").read_text(), re.M)
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
