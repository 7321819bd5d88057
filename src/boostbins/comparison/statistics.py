"""What differences between splits mean: intervals for splits that overlap, and their meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


MATTERS = 1.0  # per cent of the error: a change below it is none worth making
CONFIDENCE = 0.95
ROUNDING = 1e-9  # of the error: what varies less does not vary
TEST_SHARE = 0.2


# ---- the statistics


def mean_error(values: pd.Series) -> float:
    """Return the standard error of a mean over splits that overlap: Nadeau and Bengio, 2003."""
    return float(np.sqrt((1 / len(values) + TEST_SHARE / (1 - TEST_SHARE)) * values.var(ddof=1)))


def reach_of(values: pd.Series, n_intervals: int = 1) -> float:
    """Return half the length of the interval of a mean; of one of `n_intervals`, so that all are right at once."""
    from scipy import stats

    outside = (1 - CONFIDENCE) / max(n_intervals, 1)
    return float(stats.t.ppf(1 - outside / 2, len(values) - 1) * mean_error(values))


def relative_change(error: pd.Series, base: pd.Series, n_intervals: int) -> tuple[float, float, float]:
    """Return the change of the mean error in per cent, and its interval.

    That of a ratio of means, by its linearization; where that has no width, that of the difference. Differences that do
    not vary at all tell nothing of other rows: they have no interval.
    """
    if np.array_equal(error, base):
        return 0.0, 0.0, 0.0
    if base.mean() == 0:
        return np.inf, np.nan, np.nan
    ratio = error.mean() / base.mean()
    reaches = (reach_of(error - ratio * base, n_intervals), reach_of(error - base, n_intervals))
    reach = next((reach for reach in reaches if reach > ROUNDING * base.mean()), np.nan)
    change, spread = 100 * float(ratio - 1), 100 * reach / float(base.mean())
    return change, max(change - spread, -100.0) if spread == spread else np.nan, change + spread


def meaning_of(low: float, high: float) -> str:
    """Return what an interval of a change, in per cent, says."""
    if high < 0:
        return "better"
    if low > 0:
        return "worse"
    return "same" if low > -MATTERS and high < MATTERS else "unclear"
