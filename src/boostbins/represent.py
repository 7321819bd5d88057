"""Tables whose values stand for their bins, so that a library that finds cuts itself finds those asked for.

For where a library takes no ready cuts: on a cluster. XGBoost parts `x < cut` at every distinct value of a column that
has no more of them than bins: replace each value by the least float32 of its bin, and its cuts, and the model's
thresholds, are those that part the raw values so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boostbins.bins import Bins
from boostbins.columns import Table, as_float32
from boostbins.inputs import Floats


def represented(table: Table, bins: Bins, low: Floats) -> NDArray[np.float32]:
    """Return the rows of a table with each value replaced by the least of its bin, missing ones by NaN.

    Parameters
    ----------
    table : Table
        Its columns are those of the bins.
    bins : Bins
        Their cuts are float32.
    low : array
        The least value of each column, over the whole of the data: stands for the first bin.
    """
    seen = table.seen(as_float32).matched(bins.names)
    codes = bins.encode([np.asarray(seen.read(i)) for i in range(len(seen))], order="F")
    out = np.empty(codes.shape, np.float32)
    for i, values in enumerate(least_values(bins, low)):
        out[:, i] = values[codes[:, i]]
    return out


def least_values(bins: Bins, low: Floats) -> list[NDArray[np.float32]]:
    """Return what stands for each bin of each column, by code; NaN for missing values."""
    found = []
    for cuts, least in zip(bins.cuts, low, strict=True):
        values = np.full(bins.missing_code + 1, np.nan, np.float32)
        above = np.nextafter(cuts.astype(np.float32), np.float32(np.inf))
        # Below the first cut, whatever the data that the bins are used on.
        values[0] = np.fmin(np.float32(least), cuts[0].astype(np.float32)) if len(cuts) else np.float32(least)
        values[1 : len(cuts) + 1] = above
        found.append(values)
    return found
