"""The script that runs the libraries' own tests with our classes: on a small suite, and in each library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.__main__ import Result, compared

ROOT = Path(__file__).parents[1]
SUITE = """
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

def is_sklearns():
    return HistGradientBoostingRegressor.__module__.startswith("sklearn")

def test_alike():
    X = np.arange(50.0)[:, None]
    assert np.ptp(HistGradientBoostingRegressor(max_iter=2).fit(X, X[:, 0]).predict(X)) > 0

def test_fails_in_any_case():
    assert HistGradientBoostingRegressor is None

@pytest.mark.parametrize("number", [1, 2])
def test_told(number):
    assert is_sklearns()

def test_news():
    assert is_sklearns(), "it is ours"
"""


def peers(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.peers", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_tests_that_differ_are_known_or_a_failure_and_known_ones_must_differ(tmp_path):
    suite, known = tmp_path / "suite", tmp_path / "known.toml"
    suite.mkdir()
    (suite / "test_small.py").write_text(SUITE)
    known.write_text(
        '[sklearn]\n"test_small.py::test_told" = "asks who"\n"test_small.py::test_alike" = "was so once"\n'
    )
    done = peers("sklearn", "--tests", suite, "--known", known)
    assert done.returncode == 1
    assert "4 of 5 tests pass, and with boostbins all of these but 3, 2 of which are known" in done.stdout
    assert "known: asks who\n    test_small.py::test_told[1]\n    test_small.py::test_told[2]\n" in done.stdout
    assert "NOT KNOWN: test_small.py::test_news\n    failed: AssertionError: it is ours" in done.stdout
    assert "NO LONGER: test_small.py::test_alike\n    differs from the library's own: take it out of" in done.stdout


def test_an_entry_of_the_list_stands_for_all_that_it_is_the_beginning_of():
    native = {name: Result("passed", "") for name in ("a.py::one", "a.py::two[1]", "a.py::two[2]", "a.py::twofold")}
    ours = {
        "a.py::one": Result("passed", ""),
        "a.py::two[1]": Result("failed", "so"),
        "a.py::twofold": Result("skipped", ""),
    }
    found = compared(native, ours, {"a.py::two": "known so", "b.py": "elsewhere"}, whole=True)
    assert found.known == {"known so": ["a.py::two[1]", "a.py::two[2]"]}  # one fails, one is not there
    assert list(found.unknown) == ["a.py::twofold"]
    assert found.mended == ["b.py"]
    found = compared(native, ours, {"a.py": "all of it", "b.py": "elsewhere"}, whole=False)
    assert (len(found.known["all of it"]), found.unknown, found.mended) == (3, {}, [])


@pytest.mark.slow
def test_what_cannot_be_run_is_said(tmp_path):
    for arguments, code, said in (
        (("lightgbm",), 2, "lightgbm is installed without its tests: give --tests"),
        (("sklearn", "--tests", tmp_path / "none"), 2, "there are no tests at"),
        (("sklearn", "--tests", tmp_path), 3, "pytest ended with 5"),
        (("sklearn", "--tests", tmp_path, "--timeout", "0.01"), 3, "take longer than --timeout=0.01 seconds"),
        (("--help",), 0, "example: python -m tests.peers lightgbm --tests"),
    ):
        done = peers(*arguments)
        assert done.returncode == code, done.stderr
        assert said in done.stdout + done.stderr


FIT_BOTH = """
import numpy as np
from tests.peers.substitution import PEERS, substitute

peer = PEERS[{name!r}]
substitute(peer)
import {namespace} as library

X = np.random.default_rng(0).random((200, 2))
model = library.{estimator}(**{quiet!r}).fit(X, X[:, 0])
assert model.bins_.n_bins == library.{estimator}(bin_method="kmeans", **{quiet!r}).fit(X, X[:, 0]).bins_.n_bins
{dataset}
for name in peer.classes:
    assert getattr(library, name).__module__.startswith("boostbins.{name}")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "namespace", "estimator", "quiet", "dataset"),
    [
        (
            "lightgbm",
            "lightgbm",
            "LGBMRegressor",
            {"verbosity": -1},
            "library.train({}, library.Dataset(X, X[:, 0]), 2)",
        ),
        (
            "xgboost",
            "xgboost",
            "XGBRegressor",
            {"n_estimators": 2},
            "library.train({}, library.QuantileDMatrix(X, X[:, 0]), 2)",
        ),
        (
            "catboost",
            "catboost",
            "CatBoostRegressor",
            {"iterations": 2, "allow_writing_files": False, "verbose": False},
            "library.train(library.Pool(X, X[:, 0]), {'iterations': 2, 'allow_writing_files': False})",
        ),
        ("sklearn", "sklearn.ensemble", "GradientBoostingRegressor", {}, ""),
    ],
)
def test_our_classes_stand_in_for_a_librarys_own(name, namespace, estimator, quiet, dataset):
    code = FIT_BOTH.format(name=name, namespace=namespace, estimator=estimator, quiet=quiet, dataset=dataset)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
