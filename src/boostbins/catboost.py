"""CatBoost with cuts of our own: drop-in estimators, and a quantized `Pool` for `catboost.train` and `catboost.cv`.

CatBoost rounds values to float32 and sends `x > border` to the right, as we do. It is given the cuts, rounded down to
float32, in the form of a borders file. Where values are missing, one of its borders holds them apart.

A pool of numbers is quantized by that file before CatBoost trains on it. In one with other features this would number
the categories in another order than in training, and so draw another model; there CatBoost is given the file to train
with, and quantizes itself. It then forgets `ignored_features`, so those columns are blanked, and how to process text,
which is why text stands in the way of our cuts.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.features import as_array, feature_table
from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.library import Library
from boostbins.adapters.params import (
    BINNING_PARAMS,
    DEFAULT,
    BinMethod,
    BinningMixin,
    Default,
    check_binning_params,
    checked_afterwards,
    cuts_are_ours,
    threads_of,
    with_binning_params,
)
from boostbins.adapters.requested import FLOAT32, requested_bins
from boostbins.bins import Bins
from boostbins.cache import BinCache
from boostbins.fit import default_bins
from boostbins.methods import MAX_BINS
from boostbins.methods.budget import Total, TotalBins
from boostbins.sources.table import as_float32, is_sparse
from boostbins.sources.values import Floats
from boostbins.summary.ranges import ranges_of

LIBRARY = Library("CatBoost", "catboost", "catboost", oldest="1.2.5", newest="1.2.10", below="2")
try:
    import catboost as cb
except ImportError as error:
    raise LIBRARY.missing(error) from error
LIBRARY.check()

_MODEL, _BASE = "catboost.core:CatBoost", "catboost.core:_CatBoostBase"
HOOKS = (
    *(Hook(f"{_MODEL}{kind}", "fit", calls=("_fit",)) for kind in ("Regressor", "Classifier", "Ranker")),
    Hook(_MODEL, "_fit", calls=("_prepare_train_params", "_train")),
    Hook(
        _MODEL,
        "_prepare_train_params",
        takes=("X", "y", "sample_weight", "eval_set", "init_model"),
        calls=("_build_train_pool", "_dataset_train_eval_split"),
    ),
    Hook(_BASE, "_train", takes=("train_pool", "test_pool", "params", "allow_clear_pool", "init_model")),
    Hook(_MODEL, "grid_search", calls=("_tune_hyperparams",)),
    Hook(_MODEL, "randomized_search", calls=("_tune_hyperparams",)),
    Hook(_MODEL, "_tune_hyperparams", takes=("param_grid", "X", "y")),
    Hook(_MODEL, "select_features", calls=("_prepare_train_params", "_select_features")),
    Hook("catboost.core:Pool", "quantize", takes=("nan_mode", "input_borders", "task_type")),
    Hook(_MODEL, "get_param", takes=("key",)),
    Hook(_BASE, "__getstate__", calls=("_init_params", "_serialize_model")),
    Hook(_BASE, "__setstate__", takes=("state",)),
)
check_hooks(LIBRARY, HOOKS)

__all__ = ["CatBoostClassifier", "CatBoostRanker", "CatBoostRegressor", "Pool", "from_native"]

_GREATEST = float(np.finfo(np.float32).max)  # a border here parts missing values from all others
_CONTRADICTING = ("feature_border_type", "per_float_feature_quantization", "input_borders")


class Pool(cb.Pool):
    """`catboost.Pool`, quantized with cuts by `bin_method`.

    A validation set is a plain `catboost.Pool`, which CatBoost quantizes with the cuts of this one, or, if it has no
    categorical features, one of these with ``bin_method=train.bins_``: CatBoost does not notice if the cuts, or the
    numbers of the categories, differ. The folds of `catboost.cv` share them.
    Categorical and embedding features are left to CatBoost.

    Parameters
    ----------
    data, label, *args, **kwargs
        As for `catboost.Pool`. Of a file, only if all its features are numbers.
    bin_method : str, function, Bins or None
        "auto", "hybrid", "kmeans", "optimal", "quantile", "uniform", a function ``(summary, max_bins) -> cuts``, ready
        bins, or None for no quantization, which CatBoost then does itself.
    bin_cache : None, "memory" or a folder
        Where bins are kept for when the same is asked of the same data again.
    total_bins : int or "auto", optional
        At most this many bins in all columns together: many for those that the target needs finely, few for others;
        "auto" for as many as are enough. See `fit_bins`. A column may then have 4,095, if no `border_count` is given
        (on a GPU: 129).
    average_bins : int, optional
        `total_bins` as an average per column.
    border_count, nan_mode, task_type
        As for `catboost.Pool.quantize`.

    Attributes
    ----------
    bins_ : Bins
        The cuts that CatBoost uses.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).lognormal(0, 2, (1000, 2))
    >>> train = Pool(X, X.sum(axis=1), bin_method="kmeans", border_count=62)
    >>> params = {"loss_function": "RMSE", "iterations": 10, "verbose": False, "allow_writing_files": False}
    >>> model = cb.train(train, params)
    >>> from_native(train).n_bins
    (63, 63)
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        *args: Any,
        bin_method: BinMethod = DEFAULT,
        bin_cache: BinCache = None,
        total_bins: TotalBins = None,
        average_bins: float | None = None,
        border_count: int | None = None,
        nan_mode: str | None = None,
        task_type: str | None = None,
        **kwargs: Any,
    ) -> None:
        asked = _Asked(bin_method, bin_cache, Total(total_bins, average_bins))
        check_binning_params(*asked)
        super().__init__(data, label, *args, **kwargs)
        self.bins_: Bins | None = None
        if cuts_are_ours(bin_method, _obstacle(self, data) or _obstacle_to_quantizing(self), asked.total):
            options = {"border_count": border_count, "nan_mode": nan_mode, "task_type": task_type}
            given = inspect.signature(cb.Pool.__init__).bind(self, data, label, *args, **kwargs).arguments
            n_threads = threads_of(given.get("thread_count"))
            rows = _Rows(data, given.get("weight"), label) if _is_made_of(self, data) else _rows_in(self)
            borders = _borders(self, rows, asked, options, n_threads)
            borders.quantize(self, options)
            self.bins_, self._feature_indices, self._bin_method = borders.bins, borders.feature_indices, bin_method


def from_native(pool: cb.Pool) -> Bins:
    """Return the cuts of a quantized Pool, boostbins' or CatBoost's own; those that only hold missing values apart
    are left out.
    """
    if not isinstance(pool, cb.Pool):
        raise TypeError(f"pool must be a catboost.Pool, got {type(pool).__name__}")
    if not pool.is_quantized():
        raise ValueError("pool has no cuts yet: quantize it first, e.g. with pool.quantize()")
    used = _native_cuts(pool)
    if isinstance(pool, Pool) and pool.bins_ is not None:
        return Bins([used.get(index, []) for index in pool._feature_indices], pool.bins_.names)
    names = pool.get_feature_names()
    return Bins(used.values(), [names[index] or f"x{index}" for index in used])


class _Asked(NamedTuple):
    """The bins that are asked for."""

    method: BinMethod
    cache: BinCache
    total: Total


@dataclass(frozen=True)
class _Borders:
    """The cuts in CatBoost's form."""

    bins: Bins
    feature_indices: tuple[int, ...]
    file: str  # a line for each border, with the place of the feature
    nan_mode: str

    @contextmanager
    def written(self) -> Iterator[str]:
        """Give the path of the borders file."""
        with tempfile.TemporaryDirectory(prefix="boostbins-") as folder:
            path = Path(folder) / "borders.tsv"
            path.write_text(self.file)
            yield str(path)

    def without(self, feature_indices: Iterable[int]) -> _Borders:
        """Return the same cuts without the borders of some features."""
        left_out = {str(index) for index in feature_indices}
        lines = self.file.splitlines(keepends=True)
        return replace(self, file="".join(line for line in lines if line.split("\t")[0] not in left_out))

    def quantize(self, pool: cb.Pool, params: Mapping[str, Any]) -> None:
        """Quantize a pool, and prove it."""
        with self.written() as path:
            pool.quantize(input_borders=path, nan_mode=self.nan_mode, task_type=params.get("task_type"))
        LIBRARY.compare(
            dict(zip(self.feature_indices, self.bins.cuts, strict=True)), _native_cuts(pool), self.bins.names
        )


# ---- what a pool holds


class _Rows(NamedTuple):
    """The rows to cut by."""

    data: Any
    weight: Any
    label: Any


def _is_made_of(pool: cb.Pool, data: Any) -> bool:
    """Return whether the features of a pool are the columns of a table."""
    if isinstance(data, cb.Pool | str | os.PathLike):
        return False
    if isinstance(data, cb.FeaturesData):
        return True
    shape = np.shape(np.array(data, object) if isinstance(data, list) else data)
    return bool(pool.num_col() == (shape[1] if len(shape) > 1 else 1))


def _rows_in(pool: cb.Pool) -> _Rows:
    """Return the rows of a pool that has numbers only."""
    weight, label = np.asarray(pool.get_weight()), pool.get_label()
    with suppress(ValueError):  # numbers that were read from a file are still text
        label = label if label is None else np.asarray(label).astype(np.float64)
    data = _by_name(pool.get_feature_names(), pool.get_features())
    return _Rows(data, None if (weight == 1).all() else weight, label)


def _by_name(names: Sequence[str], values: NDArray[Any]) -> Any:
    """Return columns by their names, if they have any."""
    named = all(names) and 0 < len(set(names)) == len(names)
    return dict(zip(names, values.T, strict=True)) if named else values


def _categories_and_vectors(pool: cb.Pool) -> list[int]:
    return [*pool.get_cat_feature_indices(), *pool.get_embedding_feature_indices()]


def _obstacle(pool: cb.Pool, data: Any, eval_fraction: float = 0) -> str:
    """Return what stands in the way of cuts for a pool that is made of some data, as for `cuts_are_ours`."""
    if pool.num_row() == 0:
        return "there are no rows to cut: give some"
    if pool.is_quantized():
        return "the Pool has cuts of its own: give one that is not quantized"
    if pool.get_text_feature_indices():
        return "CatBoost forgets how to process text features where it is given cuts: leave them out"
    if not _categories_and_vectors(pool):
        return ""
    if eval_fraction:
        return (
            "eval_fraction hides which rows are trained on, if there are categorical or embedding features: give "
            "eval_set instead"
        )
    if not _is_made_of(pool, data):
        return (
            "the numbers in a Pool cannot be read if it has categorical or embedding features too: give X and y, or a "
            "boostbins.catboost.Pool of them"
        )
    return ""


def _obstacle_to_quantizing(pool: cb.Pool) -> str:
    if pool.get_cat_feature_indices() and pool.get_embedding_feature_indices():
        return (
            "CatBoost crashes on a quantized Pool that has embedding features together with categorical ones: fit the "
            "estimators of boostbins.catboost to X and y"
        )
    return ""


def _feature_indices_of(features: Iterable[int | str], pool: cb.Pool) -> list[int]:
    """Return the indices of features that CatBoost takes by index or name, or from one to another: "2-5"."""
    names = pool.get_feature_names()

    def feature_indices(feature: str) -> Iterable[int]:
        if feature.isdigit():
            return [int(feature)]
        if feature in names:
            return [names.index(feature)]
        first, _, last = feature.partition("-")
        if not last:
            raise ValueError(f"ignored_features has {feature!r}, which is no feature of X")
        return range(min(feature_indices(first)), max(feature_indices(last)) + 1)

    return sorted({index for feature in features for index in feature_indices(str(feature))})


def _blanked(X: Any, feature_indices: Iterable[int]) -> Any:
    """Return a table with zeros in some columns, which CatBoost then ignores as constant."""
    X = np.array(X, object) if isinstance(X, list) else as_array(X)
    if is_sparse(X):
        blank = X.tocsc(copy=True)
        for index in feature_indices:
            blank.data[blank.indptr[index] : blank.indptr[index + 1]] = 0
        blank.eliminate_zeros()
        return blank
    if hasattr(X, "isetitem"):
        X = X.copy(deep=False)
        for index in feature_indices:
            X.isetitem(index, 0)
        return X
    if hasattr(X, "with_columns"):
        import narwhals as nw

        return (
            nw.from_native(X).with_columns(nw.lit(0).alias(X.columns[index]) for index in feature_indices).to_native()
        )
    X = np.array(X)
    X[:, list(feature_indices)] = 0
    return X


# ---- the cuts


def _has_probabilities(params: Mapping[str, Any]) -> bool:
    """Return whether a classifier's label is a number: a probability, or what a border makes a class."""
    loss = str(params.get("loss_function"))
    return loss.split(":")[0] == "CrossEntropy" or params.get("target_border") is not None


def _borders(
    pool: cb.Pool,
    rows: _Rows,
    asked: _Asked,
    params: Mapping[str, Any],
    n_threads: int | None,
    n_classes: int | None = None,
) -> _Borders:
    """Return the cuts for the numeric features of a pool."""
    assert asked.method is not None
    border_count = _border_count(params, asked.total)
    nan_mode = params.get("nan_mode") or "Min"
    if nan_mode not in ("Min", "Max", "Forbidden"):
        raise ValueError(f"nan_mode must be 'Min', 'Max' or 'Forbidden', got {nan_mode!r}")
    data, others = rows.data, _categories_and_vectors(pool)
    if isinstance(data, cb.FeaturesData):  # its numbers come first
        values = np.empty((pool.num_row(), 0)) if data.num_feature_data is None else data.num_feature_data
        data, others = _by_name(data.num_feature_names, values), []
    if isinstance(data, list) and others:
        data = np.array(data, object)  # a cell may be a list itself
    table = feature_table(data, others).map(as_float32)
    ranges = ranges_of(table, n_threads)
    bins = requested_bins(
        asked.method,
        table,
        [min(max(int(border_count + 1 - missing), 2), MAX_BINS) for missing in ranges.missing],
        sample_weight=rows.weight,
        label=rows.label,
        n_classes=n_classes,
        bin_cache=asked.cache,
        total=asked.total.of(len(table)),
        cut_format=FLOAT32,
        limit=f"border_count={border_count}",
        n_threads=n_threads,
    )
    if nan_mode == "Forbidden" and ranges.missing.any():
        name = table.names[int(np.argmax(ranges.missing))]
        raise ValueError(f"nan_mode='Forbidden', and column {name!r} has missing values: fill them, or use 'Min'")
    lines = []
    for index, cuts, low, high, missing in zip(table.feature_indices, bins.cuts, *ranges, strict=True):
        borders, mark = cuts.tolist(), ""
        if missing:
            borders, mark = [*borders, _GREATEST if nan_mode == "Max" else -_GREATEST], f"\t{nan_mode}"
        if not borders and low != high:
            borders = [_GREATEST]  # without any, CatBoost would make borders of its own
        lines += [f"{index}\t{border!r}{mark}\n" for border in sorted(borders)]
    return _Borders(bins, table.feature_indices, "".join(lines), nan_mode)


def _border_count(params: Mapping[str, Any], total: Total) -> int:
    """Return the number of borders; if it is not given, CatBoost's default, or more where columns share a total."""
    count = params.get("border_count")
    if count is None:
        pairwise = str(params.get("loss_function")).split(":")[0] in ("PairLogitPairwise", "YetiRankPairwise")
        return 32 if pairwise else 128 if params.get("task_type") == "GPU" else default_bins(total) - 1
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"border_count must be a whole number from 1 on, got {count!r}")
    return int(count)


def _refuse_other_cuts(eval_sets: Iterable[cb.Pool], feature_indices: Sequence[int], bins: Bins) -> None:
    """Refuse quantized validation sets with cuts, or numbers of categories, of their own: CatBoost would not notice."""
    for pool in eval_sets:
        if pool.is_quantized() and pool.get_cat_feature_indices():
            raise ValueError(
                "eval_set is quantized, and so numbers its categories by itself, which CatBoost would take for those "
                "of X: give (X, y), or a catboost.Pool that is not quantized"
            )
        used = _native_cuts(pool) if pool.is_quantized() else None
        if used is not None and not all(map(np.array_equal, (used.get(p, ()) for p in feature_indices), bins.cuts)):
            raise ValueError(
                "eval_set has cuts of its own, which CatBoost would take for those of X: give (X, y), or a "
                "catboost.Pool that is not quantized"
            )


def _native_cuts(pool: cb.Pool) -> dict[int, Floats]:
    with tempfile.TemporaryDirectory(prefix="boostbins-") as folder:
        path = Path(folder) / "borders.tsv"
        pool.save_quantization_borders(str(path))
        lines = [line.split("\t") for line in path.read_text().splitlines()]
    found: dict[int, list[np.float32]] = {}
    for index, border, *_ in lines:
        found.setdefault(int(index), []).append(np.float32(border))
    cuts = {index: np.array(borders, np.float64) + 0.0 for index, borders in sorted(found.items())}
    return {index: borders[np.abs(borders) < _GREATEST] for index, borders in cuts.items()}


# ---- the estimators


class _Binned(BinningMixin):
    """Stands before a class of CatBoost's: quantizes the training pool, and keeps our parameters among the others."""

    _library = LIBRARY

    def _prepare_train_params(self, X: Any = None, y: Any = None, **kwargs: Any) -> Any:
        self.__dict__.pop("_borders_to_train_on", None)
        asked = self._begin_fit()
        prepared = super()._prepare_train_params(X, y, **kwargs)  # type: ignore[misc]
        if asked and self._are_ours(self._obstacle(X, prepared)):
            prepared = self._with_our_cuts(prepared, X, y, **kwargs)
        return prepared

    def _obstacle(self, X: Any, prepared: Mapping[str, Any]) -> str:
        """Return what stands in the way of our cuts, as for `cuts_are_ours`."""
        params, pool = prepared["params"], prepared["train_pool"]
        for name in _CONTRADICTING:
            if (value := params.get(name)) is not None:
                return f"{name}={value!r} contradicts bin_method: leave it out"
        if isinstance(X, Pool) and X.bins_ is not None:
            same = isinstance(self.bin_method, Default) or self.bin_method in (X._bin_method, X.bins_)
            return "" if same else "the Pool has cuts by another bin_method: give it the same one"
        if obstacle := _obstacle(pool, X, params.get("eval_fraction") or 0):
            return obstacle
        if self._quantizes(prepared):
            return _obstacle_to_quantizing(pool)
        try:
            ignored = _feature_indices_of(params.get("ignored_features") or (), pool)
        except ValueError as error:
            return f"{error}: give the indices or names of the features"
        if (ignored and isinstance(X, cb.FeaturesData)) or set(ignored) & {*pool.get_embedding_feature_indices()}:
            return "CatBoost forgets ignored_features where it is given cuts: leave them out of X"
        if ignored and prepared["init_model"] is not None:
            return "CatBoost forgets ignored_features where it is given cuts and an init_model: leave one of them out"
        return ""

    def _quantizes(self, prepared: Mapping[str, Any]) -> bool:
        """Return whether we quantize the pool before training, instead of CatBoost in training, by our borders."""
        numbers_only = not _categories_and_vectors(prepared["train_pool"])
        return "_selecting" in self.__dict__ or (numbers_only and prepared["init_model"] is None)

    def _with_our_cuts(self, prepared: Any, X: Any, y: Any, **kwargs: Any) -> Any:
        """Return what is prepared for training, with our cuts."""
        params, pool = prepared["params"], prepared["train_pool"]
        if isinstance(X, Pool) and X.bins_ is not None:
            self.bins_ = X.bins_
            _refuse_other_cuts(prepared["eval_sets"], X._feature_indices, X.bins_)
            return prepared
        as_given = _is_made_of(pool, X) and not params.get("eval_fraction")
        rows = _Rows(X, kwargs.get("sample_weight"), y) if as_given else _rows_in(pool)
        n_threads = threads_of(params.get("thread_count"))
        n_classes, label = None, rows.label
        if label is not None and isinstance(self, cb.CatBoostClassifier) and not _has_probabilities(params):
            label = np.asarray(label)
            if label.ndim == 1 or label.shape[1] == 1:
                classes, label = np.unique(label, return_inverse=True)
                n_classes, label = len(classes), label.reshape(-1)
        asked = _Asked(self.bin_method, self.bin_cache, self._total)
        borders = _borders(pool, rows._replace(label=label), asked, params, n_threads, n_classes)
        _refuse_other_cuts(prepared["eval_sets"], borders.feature_indices, borders.bins)
        if self._quantizes(prepared):
            if isinstance(X, cb.Pool):  # not the user's own
                prepared["train_pool"] = pool = pool.slice(np.arange(pool.num_row()))
            borders.quantize(pool, params)
            self.bins_ = borders.bins
        else:
            if ignored := _feature_indices_of(params.get("ignored_features") or (), pool):
                borders = borders.without(ignored)
                prepared = super()._prepare_train_params(_blanked(X, ignored), y, **kwargs)  # type: ignore[misc]
            self._borders_to_train_on = borders
        return prepared

    def _train(self, train_pool: Any, test_pool: Any, params: Any, allow_clear_pool: bool, init_model: Any) -> None:
        """Train; where CatBoost cannot do so on a quantized pool, have it quantize by our borders itself."""
        borders: _Borders | None = self.__dict__.pop("_borders_to_train_on", None)
        if borders is None:
            super()._train(train_pool, test_pool, params, allow_clear_pool, init_model)  # type: ignore[misc]
            return
        with borders.written() as path:
            params = {**params, "input_borders": path}
            super()._train(train_pool, test_pool, params, allow_clear_pool, init_model)  # type: ignore[misc]
        used = self.get_borders()  # type: ignore[attr-defined]
        before = {} if init_model is None else init_model.get_borders()
        for index, name, cuts in zip(borders.feature_indices, borders.bins.names, borders.bins.cuts, strict=True):
            new = np.setdiff1d(used[index], [*before.get(index, []), -_GREATEST, _GREATEST])
            LIBRARY.compare({index: cuts[np.isin(cuts, new)]}, {index: new}, [name])
        self.bins_ = borders.bins

    def _tune_hyperparams(self, *args: Any, **kwargs: Any) -> Any:
        asked = self.bin_method
        cuts_are_ours(  # they are not, whatever was asked: this refuses or warns
            asked,
            "grid_search and randomized_search of CatBoost make cuts of their own: use scikit-learn's GridSearchCV",
            self._total,
        )
        self.bin_method = None
        try:
            return super()._tune_hyperparams(*args, **kwargs)  # type: ignore[misc]
        finally:
            self.bin_method = asked

    @checked_afterwards
    def select_features(self, *args: Any, **kwargs: Any) -> Any:
        """Select features, on our cuts."""
        self._selecting = True  # trains elsewhere than in `_train`
        try:
            return super().select_features(*args, **kwargs)  # type: ignore[misc]
        finally:
            del self._selecting

    def load_model(self, *args: Any, **kwargs: Any) -> Any:
        """Load a model; what bins it was trained on is not in it."""
        self.__dict__.pop("bins_", None)
        return super().load_model(*args, **kwargs)  # type: ignore[misc]

    # CatBoost keeps its parameters in a dict that goes to its core as a whole: ours stay out of it.

    def _binning_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in BINNING_PARAMS}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters."""
        return {**super().get_params(deep=deep), **self._binning_params()}  # type: ignore[misc]

    def get_param(self, key: str) -> Any:
        """Return a parameter."""
        return getattr(self, key) if key in BINNING_PARAMS else super().get_param(key)  # type: ignore[misc]

    def set_params(self, **params: Any) -> Any:
        """Set parameters."""
        binning_params = {key: params.pop(key) for key in BINNING_PARAMS if key in params}
        super().set_params(**params)  # type: ignore[misc]
        for name, value in binning_params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = {
            key: value for key, value in self._binning_params().items() if key == "bin_method" or value is not None
        }
        params = {**super().get_params(), **given}  # type: ignore[misc]
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in sorted(params.items()))})"

    def __getstate__(self) -> dict[str, Any]:
        kept = {key: vars(self)[key] for key in (*BINNING_PARAMS, "bins_") if key in vars(self)}
        return {**super().__getstate__(), "__boostbins": kept}  # type: ignore[dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = state.pop("__boostbins", dict.fromkeys(BINNING_PARAMS))
        super().__setstate__(state)  # type: ignore[misc]
        vars(self).update(kept)

    def to_native(self) -> Any:
        """Return the same model as an estimator of CatBoost's own class, which needs no boostbins."""
        plain = self._native_class()
        plain.__setstate__(super().__getstate__())
        return plain


@with_binning_params("`border_count` is the number of bins less one")
class CatBoostRegressor(_Binned, cb.CatBoostRegressor):
    """`catboost.CatBoostRegressor` with cuts by `bin_method`."""


@with_binning_params("`border_count` is the number of bins less one")
class CatBoostClassifier(_Binned, cb.CatBoostClassifier):
    """`catboost.CatBoostClassifier` with cuts by `bin_method`."""


@with_binning_params("`border_count` is the number of bins less one")
class CatBoostRanker(_Binned, cb.CatBoostRanker):
    """`catboost.CatBoostRanker` with cuts by `bin_method`."""
