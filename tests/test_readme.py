"""Every snippet of the README and of the docstrings runs as it stands."""

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


WITH_DOCTESTS = [
    "adapter", "bins", "catboost", "comparison", "features", "fit", "inputs", "lightgbm.dataset", "methods", "mixing",
    "reporting", "reporting.facts", "summary", "transformer", "xgboost",
]  # fmt: skip


@pytest.mark.parametrize("name", WITH_DOCTESTS)
def test_docstrings_are_true(name):
    failed, tried = doctest.testmod(importlib.import_module(f"boostbins.{name}"))
    assert tried > 0
    assert failed == 0
