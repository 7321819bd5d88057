"""The commands as people and machines run them: in a pipe, on a terminal, with wrong input, interrupted."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import boostbins
from boostbins.cli import main
from boostbins.comparison.trainers import TRAINERS
from tests.cli.conftest import COMMANDS, QUICK, fit_bins, run


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


@pytest.mark.slow
@pytest.mark.parametrize("library", TRAINERS)
def test_the_demo_with_each_library(tmp_path, library):
    done = run("demo", "--library", library, "--html", "d.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"At 63 bins (auto|auto-bins|shared) lowers the error by .*: worth the change", done.stdout)
    assert f"{TRAINERS[library].title}'s own" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert not re.search(r"Traceback|Warning", done.stderr)
    assert (tmp_path / "d.html").stat().st_size > 0


# ---- wrong input

WRONG = {
    "no such file": (["report", "no.csv"], "there is no file no.csv"),
    "an empty folder": (["report", "empty"], "the folder empty has no files"),
    "an empty file": (["report", "empty.csv"], "empty.csv is empty"),
    "one column": (["compare", "one.csv", "--target", "a"], "no column to train on besides the target"),
    "no such target": (["compare", "data.csv", "--target", "prise"], "no column 'prise': did you mean 'price'?"),
    "no such target, report": (["report", "data.csv", "--target", "Price"], "did you mean 'price'?"),
    "a target with missing values": (["compare", "data.csv", "--target", "age"], r"the target has \d+ missing values"),
    "all text": (["compare", "text.csv", "--target", "b"], "no numeric column: nothing to bin"),
    "all text, report": (["report", "text.csv"], "no numeric column: nothing to bin"),
    "all text, fit": (["fit", "text.csv", "-o", "b.json"], "has no numeric columns"),
    "10 rows": (["compare", "ten.csv", "--target", "price"], "there are 10 rows"),
    "a class with one member": (["compare", "lonely.csv", "--target", "class"], "class 'c' has one row only"),
    "an unknown method": (["compare", "data.csv", "--target", "price", "--methods", "k-means"], "mean 'kmeans'"),
    "an unknown library": (["compare", "data.csv", "--target", "price", "--library", "lgbm"], "mean 'lightgbm'"),
    "an unknown command": (["reprot", "data.csv"], "did you mean 'report'?"),
    "nothing like a library": (["compare", "data.csv", "--target", "price", "--library", "??"], r"got '\?\?' \("),
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
