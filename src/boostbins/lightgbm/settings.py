"""The parameters of LightGBM that matter for bins, and what it makes of cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.params import threads_of
from boostbins.adapters.requested import CutFormat
from boostbins.fit import default_bins
from boostbins.lightgbm._native import SAMPLED, ZERO, aliases
from boostbins.methods import DEFAULT_BINS
from boostbins.methods.budget import NO_TOTAL, Total, TotalBins
from boostbins.sources.table import Table, dense
from boostbins.sources.values import Floats
from boostbins.summary.ranges import Ranges

_OF_CLASSES = ("multiclass", "softmax", "multiclassova", "multiclass_ova", "ova", "ovr")  # LightGBM's objectives


class Settings:
    """The parameters of LightGBM that matter here, by whichever alias."""

    def __init__(self, params: Mapping[str, Any], total: Total = NO_TOTAL) -> None:
        self.params = dict(params)
        self.total = total
        on_gpu = str(self.get("device_type", "cpu")).lower() in ("gpu", "cuda")
        self.max_bin = self.number("max_bin", DEFAULT_BINS if on_gpu else default_bins(total))
        self.max_bin_by_feature = self.numbers("max_bin_by_feature")
        self.min_data_in_bin = self.number("min_data_in_bin", 1)  # kept to if it is given: its default is not
        self.zero_as_missing = self.is_on("zero_as_missing", False)
        self.missing_has_bin = self.is_on("use_missing", True) and not self.zero_as_missing
        self.n_sampled = self.number("bin_construct_sample_cnt", SAMPLED)
        self.n_threads = threads_of(self.get("num_threads", None))
        # What the label numbers. With an objective of one's own it may hold anything.
        self.n_classes = int(self.get("num_class", 1)) if self.get("objective", None) in _OF_CLASSES else None

    def get(self, name: str, default: Any) -> Any:
        """Return a parameter."""
        given = [self.params[alias] for alias in aliases(name) if self.params.get(alias) is not None]
        return given[0] if given else default

    def is_on(self, name: str, default: bool) -> bool:
        """Return a parameter that is true or false."""
        return str(self.get(name, default)).lower() in ("true", "1", "+", "yes", "t", "on")

    def number(self, name: str, default: int) -> int:
        """Return a parameter that is a whole number."""
        given = self.get(name, default)
        try:
            return int(given)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a whole number, got {given!r}") from None

    def numbers(self, name: str) -> list[int]:
        """Return a parameter that is a list of whole numbers, in any form that LightGBM takes."""
        given = self.get(name, ())
        parts = [part for part in given.split(",") if part.strip()] if isinstance(given, str) else np.ravel(given)
        try:
            return [int(part) for part in parts]
        except ValueError:
            raise ValueError(f"{name} must be whole numbers, got {given!r}") from None

    def replaced(self, **values: Any) -> dict[str, Any]:
        """Return the parameters with others in place of these, whatever they were called."""
        hidden = {alias for name in values for alias in aliases(name)}
        return {**{key: value for key, value in self.params.items() if key not in hidden}, **values}

    def max_bin_of(self, index: int) -> int:
        """Return the limit on the bins of a feature."""
        if not self.max_bin_by_feature:
            return self.max_bin
        if index >= len(self.max_bin_by_feature):
            raise ValueError(
                f"max_bin_by_feature has {len(self.max_bin_by_feature)} numbers, and there is a feature {index}: "
                f"give one for each feature"
            )
        return self.max_bin_by_feature[index]

    def limit(self) -> str:
        """Return what limits the number of bins, for messages."""
        return "max_bin_by_feature" if self.max_bin_by_feature else f"max_bin={self.max_bin}"

    def total_of(self, budgets: Sequence[int], feature_indices: Sequence[int]) -> TotalBins:
        """Return what is left of the total for values, without the bins of zeros and of missing values."""
        taken = sum(self.max_bin_of(index) - budget for index, budget in zip(feature_indices, budgets, strict=True))
        return self.total.of(len(budgets), taken, " for zeros and missing values")

    def obstacle(self) -> str:
        """Return what stands in the way of cuts of ours, if anything does."""
        if path := self.get("forcedbins_filename", None):
            return (
                f"forcedbins_filename={str(path)!r} sets cuts of its own: give them as bin_method=Bins(...), or "
                f"leave it out"
            )
        if path := self.get("parser_config_file", None):
            return f"parser_config_file={str(path)!r} makes columns that only LightGBM sees: load the data"
        return ""

    def check(self) -> None:
        """Refuse what cannot be done with cuts of ours."""
        if int(self.get("num_machines", 1)) > 1:
            raise ValueError(
                "num_machines > 1: LightGBM gives each machine cuts for other features. For several machines use "
                "boostbins.dask, or give bin_method=None"
            )
        for max_bin in (self.max_bin, *self.max_bin_by_feature):
            if max_bin < 2:
                raise ValueError(f"{self.limit()} must be at least 2, got {max_bin}")


def budgets_of(ranges: Ranges, settings: Settings, feature_indices: Sequence[int]) -> list[int]:
    """Return how many bins are left for the values of each column."""
    zero_cuts = (ranges.low < -ZERO).astype(int) + (ranges.high > ZERO)
    missing = ranges.missing & settings.missing_has_bin
    limits = np.array([settings.max_bin_of(index) for index in feature_indices], int)
    return [int(n) for n in np.maximum(limits - zero_cuts - missing, 2)]


def cut_format_of(
    ranges: Ranges, merge: Callable[[int, Floats], Floats] = lambda i, cuts: cuts, name: str = ""
) -> CutFormat:
    """Return what LightGBM makes of cuts, after `merge` has dropped some of them."""
    return CutFormat(
        f"LightGBM{name}", lambda i, cuts: with_zero_cuts(merge(i, cuts), float(ranges.low[i]), float(ranges.high[i]))
    )


def with_zero_cuts(cuts: Floats, low: float, high: float) -> Floats:
    """Return cuts with those that LightGBM sets around zero."""
    zero_cuts = [-ZERO] * bool(low < -ZERO) + [ZERO] * bool(high > ZERO)
    return np.unique(np.concatenate([cuts[np.abs(cuts) > ZERO], zero_cuts]))


def of_enough_rows(table: Table, ranges: Ranges, settings: Settings) -> CutFormat:
    """Return the rule for a table, which keeps to `min_data_in_bin`."""
    least = settings.min_data_in_bin
    if least <= 1:
        return cut_format_of(ranges)

    def merge(i: int, cuts: Floats) -> Floats:
        column = dense(table.read(i))
        counts = np.bincount(np.searchsorted(cuts, column[~np.isnan(column)]), minlength=len(cuts) + 1)
        return cuts[_kept(counts, least)]

    return cut_format_of(ranges, merge, f" min_data_in_bin={least}")


def _kept(counts: NDArray[np.intp], least: int) -> list[int]:
    """Return which cuts to keep, so that every bin has enough rows, if all have: a bin of too few joins the next."""
    kept, below, above = [], 0, int(np.sum(counts))
    for i, count in enumerate(counts[:-1]):
        below, above = below + int(count), above - int(count)
        if below >= least and above >= least:
            kept.append(i)
            below = 0
    return kept
