"""LightGBM's models of codes, rewritten as models of the raw values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from boostbins.adapters.library import Library
from boostbins.bins import Bins
from boostbins.methods import MAX_BINS
from boostbins.summary.ranges import Ranges

FIRST = 1
"""The code of the first bin: 0 is LightGBM's zero, and has a bin of its own."""

_DEFAULT_LEFT = 2  # in a node's decision_type
_NAN_IS_MISSING = 8


def in_raw_values(text: str, bins: Bins, ranges: Ranges, params: Mapping[str, Any], library: Library) -> str:
    """Return the model of raw values that predicts what the model of their codes does.

    Parameters
    ----------
    text : str
        The model of codes: those of the bins, `FIRST` and up; 0 for missing values.
    bins, ranges
        Of all features.
    params : dict
        To be written down instead of those that the codes needed.
    library : Library
    """
    head, *trees = re.split(r"(?m)^(?=Tree=\d+$)", text)
    if not trees:
        return text
    end = trees[-1].index("end of trees")
    trees, tail = [*trees[:-1], trees[-1][:end]], trees[-1][end:]
    trees = [_Tree(tree, library).in_raw_values(bins, ranges) for tree in trees]
    head = _set(head, "tree_sizes", [len(tree.encode()) for tree in trees])
    infos = _get(head, "feature_infos")
    known = [f"[{low:.17g}:{high:.17g}]" for low, high in zip(ranges.low, ranges.high, strict=True)]
    head = _set(head, "feature_infos", [old if old == "none" else new for old, new in zip(infos, known, strict=True)])
    for name, value in params.items():
        tail = re.sub(rf"(?m)^\[{name}: .*\]$", f"[{name}: {value}]", tail)
    return head + "".join(trees) + tail


class _Tree:
    """The text of a tree."""

    def __init__(self, text: str, library: Library) -> None:
        self.text, self.library = text, library

    def in_raw_values(self, bins: Bins, ranges: Ranges) -> str:
        features = _get(self.text, "split_feature")
        if not features:
            return self.text
        thresholds, decisions = _get(self.text, "threshold"), _get(self.text, "decision_type")
        left, right = _get(self.text, "left_child"), _get(self.text, "right_child")
        for node, feature in enumerate(map(int, features)):
            cuts = bins.cuts[feature]
            n_left = self._bins_below(float(thresholds[node]))
            missing_left = bool(int(decisions[node]) & _DEFAULT_LEFT)
            if n_left == 0:  # missing values from all others: as LightGBM says it, the others are left
                left[node], right[node] = right[node], left[node]
                n_left, missing_left = len(cuts) + 1, not missing_left
            thresholds[node] = repr(float(cuts[n_left - 1])) if n_left <= len(cuts) else "inf"
            if ranges.missing[feature]:
                decisions[node] = str(_NAN_IS_MISSING + _DEFAULT_LEFT * missing_left)
            else:  # LightGBM takes a missing value for zero
                decisions[node] = str(_DEFAULT_LEFT)
        text = self.text
        for name, values in {
            "threshold": thresholds,
            "decision_type": decisions,
            "left_child": left,
            "right_child": right,
        }.items():
            text = _set(text, name, values)
        return text

    def _bins_below(self, threshold: float) -> int:
        """Return how many bins' codes are not above a threshold: it lies halfway between two, or at zero."""
        if np.isinf(threshold):
            return MAX_BINS
        n = int(np.floor(threshold)) + 1 - FIRST
        if threshold < 1 or threshold == n + FIRST - 0.5:
            return max(n, 0)
        raise self.library.strayed(f"cut codes at {threshold}, which is no cut of bins_")


def _get(text: str, name: str) -> list[str]:
    found = re.search(rf"(?m)^{name}=(.*)$", text)
    return found[1].split() if found else []


def _set(text: str, name: str, values: list[Any]) -> str:
    return re.sub(rf"(?m)^{name}=.*$", f"{name}={' '.join(map(str, values))}", text)
