"""The data and the parameters, as XGBoost sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.features import as_array, feature_table, first_rows
from boostbins.fit import default_bins
from boostbins.methods import MAX_BINS, MIN_BINS
from boostbins.methods.budget import Total
from boostbins.sources.table import Column, Table, as_float32, is_sparse, rest_missing, with_missing
from boostbins.summary.ranges import ranges_of
from boostbins.xgboost._native import LIBRARY, xgb
from boostbins.xgboost.reference import reference_matrix

MAX_BIN = 256  # XGBoost's default
_WITH_CUTS = (None, "auto", "hist", "gpu_hist")  # tree methods that take ready cuts


# ---- the data, as XGBoost sees it


def taken_by_quantile_matrices(data: Any) -> Any:
    """Return data that a DMatrix takes as what a QuantileDMatrix takes too."""
    data = as_array(data)
    if hasattr(data, "to_frame") and not hasattr(data, "columns"):
        return data.to_frame()
    if type(data).__name__ == "LazyFrame":
        return data.collect()
    if is_sparse(data):
        from scipy import sparse

        return data if isinstance(data, sparse.csr_matrix) else sparse.csr_matrix(data)
    if type(data).__module__.startswith("polars") and LIBRARY.is_before("3"):
        return data.to_numpy()
    return data


class Features:
    """The names and types of the features, and how many categories: XGBoost says them of a few rows."""

    def __init__(self, data: Any, kwargs: dict[str, Any]) -> None:
        options = {
            key: kwargs[key] for key in ("feature_names", "feature_types", "enable_categorical") if key in kwargs
        }
        missing = np.nan if kwargs.get("missing") is None else kwargs["missing"]
        named = _named_categories(data)
        self.n_threads = kwargs.get("nthread")
        few = xgb.DMatrix(_rows_with_each_category(data, named), missing=missing, nthread=self.n_threads, **options)
        self.names = few.feature_names
        self.types = few.feature_types
        self.n_features = few.num_col()
        self.categorical = [index for index, kind in enumerate(self.types or []) if kind == "c"]
        self.n_categories = {}
        for index in self.categorical:
            if index in named:
                self.n_categories[index] = int(few.get_data()[:, [index]].data.max(initial=0)) + 1
            else:
                self.n_categories[index] = _n_categories(data, index, missing)

    def add(self, other: Features, where: str) -> None:
        """Take in the categories of more rows, which must have the same features."""
        for what in ("n_features", "names", "categorical"):
            mine, others = getattr(self, what), getattr(other, what)
            if mine != others and None not in (mine, others):
                raise ValueError(f"{where} has other features than the first: {what} were {mine}, and are {others}")
        self.n_categories = {index: max(n, other.n_categories[index]) for index, n in self.n_categories.items()}

    def reference(self, columns: dict[int, NDArray[np.float32]], max_bin: int) -> xgb.QuantileDMatrix:
        """Return a matrix whose cuts are these values."""
        columns |= {index: np.arange(n, dtype=np.float32) for index, n in self.n_categories.items()}
        return reference_matrix(
            columns, self.n_features, max_bin, feature_names=self.names, feature_types=self.types,
            enable_categorical=bool(self.categorical), nthread=self.n_threads,
        )  # fmt: skip


def _named_categories(data: Any) -> list[int]:
    """Return the indices of a frame's categorical columns, which XGBoost numbers itself."""
    if not hasattr(data, "columns"):
        return []
    import narwhals as nw

    kinds = nw.from_native(data, eager_only=True).schema.values()
    return [index for index, kind in enumerate(kinds) if isinstance(kind, nw.Categorical | nw.Enum)]


def _rows_with_each_category(data: Any, named: list[int]) -> Any:
    """Return the first rows, and those where a category occurs for the first time."""
    if not named:
        return first_rows(data, 2)
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True)
    chosen = np.zeros(len(frame), bool)
    chosen[:2] = True
    for index in named:
        chosen |= frame[:, index].is_first_distinct().to_numpy()
    return frame.filter(chosen.tolist()).to_native()


def _n_categories(data: Any, index: int, missing: float) -> int:
    """Return how many categories a column of numbers has."""
    everything = seen_by_xgboost(data, [], missing)
    low, high, _ = ranges_of(everything.chosen([everything.feature_indices.index(index)]))
    if low[0] < 0:
        raise ValueError(f"categories must not be negative, and column {index} has {low[0]:g}: number them from 0")
    return int(np.nan_to_num(high[0])) + 1


def seen_by_xgboost(data: Any, categorical: list[int], missing: float | None) -> Table:
    """Return the columns that XGBoost cuts."""
    return feature_table(data, categorical).map(seen_as(missing))


def seen_as(missing: float | None) -> Callable[[Column], Column]:
    """Return how XGBoost sees a column, where a value may stand for missing."""
    if missing is None or np.isnan(missing):
        return lambda column: as_float32(rest_missing(column))
    mark = with_missing(float(np.float32(missing)))
    return lambda column: mark(as_float32(rest_missing(column)))


def checked_max_bin(max_bin: Any, total: Total) -> int:
    """Return max_bin, or what it is where it is not given: XGBoost's default, and more where columns share a total."""
    max_bin = default_bins(total, MAX_BIN - 1) + 1 if max_bin is None else max_bin
    if not isinstance(max_bin, int | np.integer):
        raise TypeError(f"max_bin must be a whole number, got {max_bin!r}")
    return int(max_bin)  # NumPy integers are not JSON-serializable


def row_weight(kwargs: dict[str, Any], n_rows: int) -> NDArray[Any] | None:
    """Return a weight per row: for ranking, XGBoost's are per group."""
    if kwargs.get("weight") is None:
        return None
    weight = np.asarray(kwargs["weight"])
    if kwargs.get("group") is not None:
        sizes = np.asarray(kwargs["group"])
    elif kwargs.get("qid") is not None:
        qid = np.asarray(kwargs["qid"])
        sizes = np.diff(np.flatnonzero(np.r_[True, qid[1:] != qid[:-1], True]))
    else:
        return weight
    return np.repeat(weight, sizes) if len(weight) == len(sizes) != n_rows else weight


# ---- the estimators


def obstacle_in(params: Mapping[str, Any]) -> str:
    """Return what of XGBoost's parameters takes no ready cuts, as the argument of `cuts_are_ours`; empty if nothing."""
    if isinstance(max_bin := params.get("max_bin"), int | np.integer) and not MIN_BINS <= max_bin - 1 <= MAX_BINS:
        return f"max_bin={max_bin} is beyond what a method can do: use {MIN_BINS + 1} to {MAX_BINS + 1}"
    if params.get("booster") == "gblinear":
        return "booster='gblinear' has no bins: use 'gbtree' or 'dart'"
    if (tree_method := params.get("tree_method")) not in _WITH_CUTS:
        return f"tree_method={tree_method!r} takes no ready cuts: use tree_method='hist'"
    if str(device := params.get("device")).startswith("sycl"):
        return f"device={device!r} takes no ready cuts: use 'cpu' or 'cuda'"
    if params.get("process_type") == "update":
        return "process_type='update' looks for no splits, and needs no cuts: leave it out"
    return ""
