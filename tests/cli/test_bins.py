"""fit, encode and show."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import boostbins
from boostbins import Bins
from boostbins.cli import main
from boostbins.sources import files, stream
from boostbins.sources.reading import read_files
from tests.cli.conftest import COMMAND, fit_bins, run

resource = pytest.importorskip("resource")


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


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["--average-bins", "63"], {"average_bins": 63}),
        (["--average-bins", "20.5", "--max-bins", "100"], {"average_bins": 20.5, "max_bins": 100}),
        (["--total-bins", "auto"], {"total_bins": "auto"}),
        (["--total-bins", "400", "--method", "auto"], {"total_bins": 400, "method": "auto"}),
    ],
    ids=str,
)
def test_columns_share_a_total_in_files_and_in_summaries(parts, tmp_path, monkeypatch, capsys, arguments, asked):
    monkeypatch.chdir(tmp_path)
    known = fit_bins(numbers_of(parts), y=parts["w"], **asked)
    assert main(["fit", "parts", "--target", "w", *arguments, "-o", "bins.json"]) == 0
    assert main(["summarize", "parts", "--target", "w", "-o", "s.bin"]) == 0
    assert main(["fit", "s.bin", *arguments, "-o", "of_summary.json"]) == 0
    capsys.readouterr()
    for name in ("bins.json", "of_summary.json"):
        assert Bins.load(name) == known
        assert Bins.load(name).shares == known.shares
    assert main(["show", "bins.json", "--column", "a"]) == 0
    assert known.shares["a"].why in capsys.readouterr().out
    assert main(["show", "bins.json", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out):
        assert row["share"] == {**asdict(known.shares[row["column"]]), "why": known.shares[row["column"]].why}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--total-bins", "many"], "argument --total-bins: a whole number or auto, got 'many'"),
        (["--total-bins", "63.5"], "argument --total-bins: a whole number or auto, got '63.5'"),
        (["--average-bins", "auto"], "argument --average-bins: invalid float value: 'auto'"),
        (["--average-bins", "1"], "average_bins must be a number from 2 to 65535, got 1.0"),
        (["--average-bins", "nan"], "average_bins must be a number from 2 to 65535, got nan"),
        (
            ["--total-bins", "5"],
            'total_bins must be "auto", or a whole number, at least 2 for each of 3 columns, got 5',
        ),
        (["--total-bins", "auto", "--average-bins", "9"], "total_bins='auto' and average_bins=9.0 contradict"),
        (["--total-bins", "auto"], "--total-bins auto needs a target, for which bins are enough: give --target COLUMN"),
    ],
)
def test_totals_that_cannot_be_shared_are_refused(parts, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["fit", "parts", "--without", "w", *arguments, "-o", "bins.json"])
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "bins.json").exists()


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
