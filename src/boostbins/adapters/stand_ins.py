"""Tables whose values stand for their bins, so that a library that finds cuts itself finds those asked for.

For where a library takes no ready cuts: on a cluster. XGBoost parts `x < cut` at every distinct value of a column that
has no more of them than bins: replace each value by the least float32 of its bin, and its cuts, and the model's
thresholds, are those that part the raw values so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbins.bins import Bins
from boostbins.sources.table import Table, as_float32
from boostbins.sources.values import Floats
from boostbins.summary.ranges import Ranges


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
    seen = table.map(as_float32).matched(bins.names)
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


def for_raw_values(
    model: bytes, bins: Bins, ranges: Ranges, above: NDArray[Any], feature_indices: Sequence[int]
) -> bytes:
    """Return a model of XGBoost's, trained on represented values, as one for raw values.

    Its thresholds are the cuts, which part raw values as they parted those; anything else is an error. Only where it
    parts missing values from all others, XGBoost places a threshold of its own: below the least value, or at twice the
    greatest *represented* one, which raw values may lie beyond. The latter becomes `above`.

    Parameters
    ----------
    model : bytes
        As JSON.
    bins : Bins
        As the values were represented by.
    ranges : Ranges
        Of the raw values that it was trained on.
    above : array
        A threshold above all values, for each column; NaN where there is no room.
    feature_indices : sequence of int
        Of the bins' columns among the model's features.
    """
    content = json.loads(model)
    booster = content["learner"]["gradient_booster"]
    trees = booster.get("gbtree", booster)["model"]["trees"]  # DART keeps them one level below
    stand_ins = least_values(bins, ranges.low)
    least, greatest = (
        [values[np.searchsorted(cuts, end)] for values, cuts, end in zip(stand_ins, bins.cuts, ends, strict=True)]
        for ends in (ranges.low, ranges.high)
    )
    changed = False
    for tree in trees:
        thresholds = np.array(tree["split_conditions"], np.float32)
        is_number = (np.array(tree["left_children"]) != -1) & (np.array(tree["split_type"]) == 0)
        for node in np.flatnonzero(is_number):
            column, threshold = feature_indices.index(tree["split_indices"][node]), thresholds[node]
            if threshold > greatest[column] and np.isfinite(above[column]):
                tree["split_conditions"][node] = float(above[column])
                changed = True
            elif least[column] < threshold <= greatest[column] and threshold not in stand_ins[column]:
                raise RuntimeError(
                    f"XGBoost split column {bins.names[column]!r} at {threshold}, which is none of its "
                    f"{len(bins.cuts[column])} cuts; please report this, and use bin_method=None until it is fixed"
                )
    return json.dumps(content).encode() if changed else model
