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

import boostbins

ROOT = Path(__file__).parents[1]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def run(arguments, folder):
    environment = {**os.environ, "MPLCONFIGDIR": str(folder), "PYTHONWARNINGS": "error"}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("code", SNIPPETS)
def test_snippets_run(code, tmp_path):
    pytest.importorskip("sklearn")
    done = run(["-c", code], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


SOURCE = Path(boostbins.__file__).parent
WITH_DOCTESTS = [
    ".".join(["boostbins", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_DOCTESTS)
def test_docstrings_are_true(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0
