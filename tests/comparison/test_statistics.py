"""What differences between splits mean."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from boostbins.comparison.statistics import mean_error, meaning_of, reach_of, relative_change


def test_the_error_of_a_mean_is_that_of_nadeau_and_bengio():
    values = pd.Series([1.0, 2.0, 4.0, 3.0])
    assert mean_error(values) == pytest.approx(np.sqrt((1 / 4 + 0.25) * values.var()))


def test_intervals_that_are_all_right_at_once_are_wider():
    values = pd.Series(np.random.default_rng(0).normal(size=10))
    assert reach_of(values) < reach_of(values, 2) < reach_of(values, 20)
    assert reach_of(values, 0) == reach_of(values)


def test_a_change_is_relative_to_the_mean_error():
    base = pd.Series([1.0, 2.0, 3.0, 2.0])
    assert relative_change(base, base.copy(), 3) == (0.0, 0.0, 0.0)
    change, low, high = relative_change(base * [0.9, 0.91, 0.89, 0.9], base, 1)
    assert low < change < high < 0
    assert change == pytest.approx(-10.125, abs=0.5)


def test_what_does_not_vary_has_no_interval():
    change, low, high = relative_change(pd.Series([0.5] * 4), pd.Series([1.0] * 4), 1)
    assert change == -50
    assert np.isnan([low, high]).all()
    change, low, high = relative_change(pd.Series([1.0, 2.0]), pd.Series([0.0, 0.0]), 1)
    assert change == np.inf
    assert np.isnan([low, high]).all()


def test_nothing_gets_better_than_by_all():
    assert relative_change(pd.Series([0.01, 5.0]), pd.Series([5.0, 5.1]), 1)[1] == -100


@pytest.mark.parametrize(
    ("low", "high", "meaning"),
    [
        (-3, -0.1, "better"),
        (0.1, 3, "worse"),
        (-0.9, 0.9, "same"),
        (-2, 0.5, "unclear"),
        (-0.5, 2, "unclear"),
        (np.nan, np.nan, "unclear"),
    ],
)
def test_what_an_interval_says(low, high, meaning):
    assert meaning_of(low, high) == meaning
