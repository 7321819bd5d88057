"""Every snippet of the README and of the docstrings runs as it stands, and so does the demo."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def run(arguments, folder):
    environment = {**os.environ, "MPLCONFIGDIR": str(folder), "PYTHONWARNINGS": "error"}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippets_run(code, tmp_path):
    pytest.importorskip("sklearn")
    done = run(["-c", code], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


WITH_DOCTESTS = ["bins", "fit", "methods", "summary", "transformer", "adapter", "lightgbm", "xgboost", "catboost"]


@pytest.mark.parametrize("name", WITH_DOCTESTS)
def test_docstrings_are_true(name):
    failed, tried = doctest.testmod(importlib.import_module(f"boostbins.{name}"))
    assert tried > 0
    assert failed == 0


def test_the_demo_prints_tables_and_draws_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    done = run(["-m", "boostbins.demo", "cuts.png"], tmp_path)
    assert done.returncode == 0, done.stderr
    for method in ("kmeans", "optimal", "quantile", "uniform"):
        assert f"\n  {method} " in done.stdout
    assert (tmp_path / "cuts.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_says_what_is_wrong(tmp_path):
    pytest.importorskip("matplotlib")
    unwritable = run(["-m", "boostbins.demo", "no/such/folder.png"], tmp_path)
    assert unwritable.returncode == 1
    assert "cannot write the picture" in unwritable.stderr
    assert "Traceback" not in unwritable.stderr
    assert run(["-m", "boostbins.demo", "--help"], tmp_path).returncode == 0
    assert run(["-m", "boostbins.demo", "a", "b"], tmp_path).returncode == 2
