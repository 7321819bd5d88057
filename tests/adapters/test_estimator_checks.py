"""scikit-learn's estimator checks: ours fail in none that the library's own class passes, and for no other reason."""

from __future__ import annotations

import warnings
from unittest import SkipTest

import pytest
from sklearn.utils import estimator_checks

import boostbins.catboost
from tests.libraries import CLASSIFIERS, FORESTS, REGRESSORS


def checks(estimator):
    if hasattr(estimator_checks, "estimator_checks_generator"):  # scikit-learn 1.6
        return estimator_checks.estimator_checks_generator(estimator, legacy=True)
    return estimator_checks.check_estimator(estimator, generate_only=True)


def failures(estimator):
    """The names of the checks that an estimator fails, with the reason."""
    failed = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for instance, check in checks(estimator):
            name = getattr(check, "func", check).__name__ + str(getattr(check, "keywords", ""))
            try:
                check(instance)
            except SkipTest:
                continue
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"[:120]  # what differs in size comes later
    return failed


OTHERWISE = {"check_complex_data{}": "TypeError: X must hold numbers, got dtype complex128"}
"""Checks that CatBoost fails too, and ours with an error that says more."""


@pytest.mark.parametrize("library", [*REGRESSORS, *CLASSIFIERS, *FORESTS], ids=str)
def test_only_the_librarys_own_failures(library):
    few = {library.trees: 3}
    if library.name.startswith("Cat") and boostbins.catboost.LIBRARY.is_before("1.2.10"):
        pytest.skip("scikit-learn's checks cannot be run on CatBoost's own class")
    known = failures(library.make_native(**few))
    found = failures(library.make(**few))
    otherwise = {name: reason for name, reason in found.items() if known.get(name) != reason}
    if library.name.startswith("Cat"):
        for name, reason in OTHERWISE.items():
            assert name in known
            assert otherwise.pop(name).startswith(reason)
    assert otherwise == {}
