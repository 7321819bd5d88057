"""scikit-learn's gradient boosting with cuts of our own: drop-in estimators, histogram and exact.

Both part `x <= cut`, as we do. The histogram estimators are given the cuts in the place of those of their own bin
mapper. The exact ones, which have no bins, are trained on values that stand for the bins, one for each, and the
thresholds of each tree, which lie between these, are then replaced by the cuts that do, so that they predict from raw
values; they see float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.features import feature_table
from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.library import Library
from boostbins.adapters.params import BINNING_PARAMS, BinningMixin, with_binning_params
from boostbins.adapters.requested import requested_bins
from boostbins.bins import Bins
from boostbins.sources.table import is_sparse
from boostbins.sources.values import Floats

LIBRARY = Library("scikit-learn", "sklearn", "scikit-learn", oldest="1.5.2", newest="1.9.1", below="2")
try:
    from sklearn import ensemble
    from sklearn.model_selection import train_test_split
except ImportError as error:
    raise LIBRARY.missing(error) from error
LIBRARY.check()

_HISTOGRAM = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting:"
_MAPPER = "sklearn.ensemble._hist_gradient_boosting.binning:_BinMapper"
_SPLIT = ("_random_seed", "train_test_split")
_EXACT, _KINDS = "sklearn.ensemble._gb:", ("Regressor", "Classifier")
HOOKS = (
    Hook(
        f"{_HISTOGRAM}BaseHistGradientBoosting",
        "fit",
        calls=("_finalize_sample_weight", "_bin_data", "_bin_mapper", "_BinMapper", "is_categorical_", *_SPLIT),
    ),
    Hook(
        f"{_HISTOGRAM}BaseHistGradientBoosting",
        "_bin_data",
        takes=("X", "is_training_data"),
        calls=("_bin_mapper", "fit_transform", "transform"),
    ),
    *(
        Hook(f"{_HISTOGRAM}HistGradientBoosting{kind}", "_finalize_sample_weight", takes=("sample_weight", "y"))
        for kind in _KINDS
    ),
    *(Hook(f"{_HISTOGRAM}HistGradientBoosting{kind}", "_parameter_constraints") for kind in _KINDS),
    Hook(_MAPPER, "__init__", takes=("n_bins", "is_categorical", "known_categories")),
    Hook(
        _MAPPER,
        "fit",
        fits=("bin_thresholds_", "is_categorical_", "missing_values_bin_idx_", "n_bins_non_missing_"),
    ),
    Hook(
        _MAPPER,
        "transform",
        calls=("bin_thresholds_", "is_categorical_", "missing_values_bin_idx_", "_map_to_bins"),
    ),
    *(Hook(f"{_EXACT}GradientBoosting{kind}", "_parameter_constraints") for kind in _KINDS),
    *(Hook(f"{_EXACT}GradientBoosting{kind}", "fit", calls=("_fit_stages",)) for kind in _KINDS),
    Hook(
        f"{_EXACT}BaseGradientBoosting",
        "_fit_stages",
        takes=("X", "y", "raw_predictions", "sample_weight"),
        calls=("_fit_stage",),
    ),
    Hook(
        f"{_EXACT}BaseGradientBoosting",
        "_fit_stage",
        takes=("i", "X", "y", "raw_predictions", "X_csc", "X_csr"),
        calls=("estimators_", "_update_terminal_regions"),
    ),
)
check_hooks(LIBRARY, HOOKS)

__all__ = [
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "from_native",
]

_HISTOGRAM_LIMIT = 255  # of scikit-learn's codes, without the missing values'
_TOO_CLOSE, _TOO_FAR = 1e-6, 1e37  # values, for the exact estimators: 1e-7 is one value to them


def from_native(model: Any) -> Bins:
    """Return the cuts that a fitted HistGradientBoosting model uses, boostbins' or scikit-learn's own.

    Categorical features are left out.
    """
    kinds = (ensemble.HistGradientBoostingRegressor, ensemble.HistGradientBoostingClassifier)
    if not isinstance(model, kinds):
        raise TypeError(f"model must be a HistGradientBoosting estimator, got {type(model).__name__}")
    mapper = getattr(model, "_bin_mapper", None)
    if mapper is None:
        raise ValueError("model has no cuts yet: fit it first")
    names = _names_of_columns(model)
    numeric = np.flatnonzero(np.asarray(mapper.is_categorical_) == 0)
    cuts = [np.unique(mapper.bin_thresholds_[i]) for i in numeric]  # older versions have some twice
    return Bins(cuts, [names[i] for i in numeric])


def _names_of_columns(model: Any) -> list[str]:
    """Return the names of the columns in the order in which a histogram estimator has them: categorical first."""
    names = getattr(model, "feature_names_in_", [f"x{i}" for i in range(model.n_features_in_)])
    categorical = np.asarray(
        np.zeros(len(names), bool) if model.is_categorical_ is None else model.is_categorical_, bool
    )
    return [*np.asarray(names)[categorical].tolist(), *np.asarray(names)[~categorical].tolist()]


class _BinnedHistogram(BinningMixin):
    """Stands before a histogram estimator: fills its bin mapper."""

    _library = LIBRARY

    def _finalize_sample_weight(self, sample_weight: Any, y: Any) -> Any:
        final = super()._finalize_sample_weight(sample_weight, y)  # type: ignore[misc]
        self._to_be_binned = final, y  # which are not passed on to `_bin_data`
        return final

    def _bin_data(self, X: NDArray[Any], *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("is_training_data", args[-1] if args else False):
            return super()._bin_data(X, *args, **kwargs)  # type: ignore[misc]
        model: Any = self
        weight, y = vars(self).pop("_to_be_binned")
        if len(y) != len(X):
            weight, y = (None if weight is None else _training_part(model, weight, y)), _training_part(model, y, y)
        if not self._begin_fit():
            return super()._bin_data(X, *args, **kwargs)  # type: ignore[misc]
        mapper = model._bin_mapper
        n_features = X.shape[1]
        categorical = np.asarray([0] * n_features if mapper.is_categorical is None else mapper.is_categorical, bool)
        table = feature_table(X, np.flatnonzero(categorical).tolist())
        table = table.renamed(_names_of_columns(model), hasattr(model, "feature_names_in_"))
        bins = requested_bins(
            model.bin_method,
            table,
            [min(mapper.n_bins - 1, _HISTOGRAM_LIMIT)] * len(table),
            sample_weight=weight,
            label=y,
            n_classes=_n_classes(model),
            bin_cache=model.bin_cache,
            total=model._total.of(len(table)),
            limit=f"max_bins={model.max_bins!r}",
        )
        thresholds = dict(zip(table.feature_indices, bins.cuts, strict=True))
        thresholds |= {int(i): mapper.known_categories[i] for i in np.flatnonzero(categorical)}
        mapper.bin_thresholds_ = [np.array(thresholds[i], np.float64) for i in range(n_features)]
        mapper.is_categorical_ = categorical.astype(np.uint8)
        mapper.missing_values_bin_idx_ = mapper.n_bins - 1
        mapper.n_bins_non_missing_ = np.array(
            [len(thresholds[i]) + (not categorical[i]) for i in range(n_features)], np.uint32
        )
        mapper.fit_transform = lambda X, *_, **__: mapper.transform(X)  # it is fitted
        try:
            codes = super()._bin_data(X, *args, **kwargs)  # type: ignore[misc]
        finally:
            del mapper.fit_transform
        LIBRARY.compare(
            dict(zip(table.feature_indices, bins.cuts, strict=True)),
            {i: np.asarray(cuts) for i, cuts in enumerate(mapper.bin_thresholds_)},
            table.names,
        )
        self.bins_ = bins
        return codes


def _n_classes(model: Any) -> int | None:
    return len(model.classes_) if hasattr(model, "classes_") else None


def _training_part(model: Any, numbers: Floats, y: Any) -> Floats:
    """Return a number for each of the rows that early stopping leaves to train on: split as scikit-learn just did."""
    stratify = y if isinstance(model, ensemble.HistGradientBoostingClassifier) else None
    part, _ = train_test_split(
        numbers, test_size=model.validation_fraction, stratify=stratify, random_state=model._random_seed
    )
    return part  # type: ignore[no-any-return]


class _BinnedExact(BinningMixin):
    """Stands before an exact estimator: has its trees grow on values that stand for bins, and predict from any."""

    _library = LIBRARY
    _represented: Any  # while it is trained, as what stands for each bin
    _put_cuts: Callable[[Any], None]

    def _fit_stages(self, X: Any, y: Any, raw_predictions: Any, sample_weight: Any, *args: Any, **kwargs: Any) -> Any:
        model: Any = self
        bins, before = None, [*model.estimators_.ravel()]
        if self._begin_fit():
            table = feature_table(X)
            names = getattr(model, "feature_names_in_", table.names)
            table = table.renamed(list(names), hasattr(model, "feature_names_in_"))
            bins = requested_bins(
                model.bin_method,
                table,
                [model.max_bins] * len(table),
                sample_weight=sample_weight,
                label=y,
                n_classes=_n_classes(model),
                bin_cache=model.bin_cache,
                total=model._total.of(len(table)),
                limit=f"max_bins={model.max_bins!r}",
            )
            table, stand_ins = _represented(X, bins)
            self._put_cuts = partial(_put_cuts, bins=bins, stand_ins=stand_ins)
            self._represented = {"X_csc": table, "X_csr": table.tocsr()} if is_sparse(table) else table
        try:
            n_stages = super()._fit_stages(X, y, raw_predictions, sample_weight, *args, **kwargs)  # type: ignore[misc]
        finally:
            for name in ("_represented", "_put_cuts"):
                vars(self).pop(name, None)
        if bins is not None:
            known = {id(tree) for tree in before}
            _prove([tree.tree_ for tree in model.estimators_[:n_stages].ravel() if id(tree) not in known], bins)
            self.bins_ = bins
        return n_stages

    def _fit_stage(self, i: int, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(self, "_represented"):
            return super()._fit_stage(i, X, *args, **kwargs)  # type: ignore[misc]
        if is_sparse(X):
            kwargs |= self._represented
        raw_predictions = super()._fit_stage(  # type: ignore[misc]
            i, X if is_sparse(X) else self._represented, *args, **kwargs
        )
        for tree in self.estimators_[i]:  # type: ignore[attr-defined]
            self._put_cuts(tree.tree_)
        return raw_predictions


def _represented(X: Any, bins: Bins) -> tuple[Any, list[Floats]]:
    """Return a table with each value replaced by what stands for its bin, and that, by column and code."""
    if not is_sparse(X):
        codes = Bins(bins.cuts).encode(X)
        stand_ins = [_stand_ins(X[:, i], codes[:, i], cuts) for i, cuts in enumerate(bins.cuts)]
        columns = [values[codes[:, i]].astype(np.float32) for i, values in enumerate(stand_ins)]
        return np.column_stack(columns), stand_ins
    table, stand_ins = X.tocsc(copy=True), []
    for i, cuts in enumerate(bins.cuts):
        stored = table.data[table.indptr[i] : table.indptr[i + 1]]
        values = np.append(stored, [0.0] if len(stored) < X.shape[0] else [])
        codes_here = np.searchsorted(cuts, values)
        stand_ins.append(_stand_ins(values, codes_here, cuts))
        stored[:] = stand_ins[i][codes_here[: len(stored)]]
    return table, stand_ins


def _stand_ins(values: NDArray[Any], codes: NDArray[Any], cuts: Floats) -> Floats:
    """Return what stands for each bin of a column: midway between its least and greatest value, as scikit-learn's
    thresholds are between two values; so, if every value is a bin of its own, its trees are those of the values.

    Zero stands for a bin around it, so that a sparse matrix stays sparse. What lies too close together for
    scikit-learn to part is spread by a power of two, which moves nothing else.
    """
    least, greatest = np.full(len(cuts) + 1, np.inf), np.full(len(cuts) + 1, -np.inf)
    np.minimum.at(least, codes, values)
    np.maximum.at(greatest, codes, values)
    there = least <= greatest
    ends = np.concatenate([cuts[:1], cuts, cuts[-1:]]) if len(cuts) else np.zeros(2)
    least, greatest = np.where(there, least, ends[:-1]), np.where(there, greatest, ends[1:])
    middle = (least / 2 + greatest / 2).astype(np.float32).astype(np.float64)
    middle[(least <= 0) & (greatest >= 0)] = 0
    closest = np.diff(middle[there]).min(initial=np.inf)
    if closest > _TOO_CLOSE:
        return middle
    spread = middle * 2.0 ** -np.floor(np.log2(closest))
    by_number = np.arange(len(middle), dtype=np.float64) - np.searchsorted(cuts, 0.0)
    return spread if np.abs(spread).max() < _TOO_FAR else by_number


def _put_cuts(tree: Any, bins: Bins, stand_ins: Sequence[Floats]) -> None:
    """Replace the thresholds of a tree, between what stands for the bins, by the cuts between these."""
    split = tree.children_left != tree.children_right
    for i in np.unique(tree.feature[split]):
        here = split & (tree.feature == i)
        below = np.searchsorted(stand_ins[i], tree.threshold[here], side="right") - 1
        tree.threshold[here] = bins.cuts[i][below]


def _prove(trees: Sequence[Any], bins: Bins) -> None:
    """Refuse trees with thresholds that are no cuts."""
    split = [tree.children_left != tree.children_right for tree in trees]
    features = np.concatenate([tree.feature[here] for tree, here in zip(trees, split, strict=True)])
    thresholds = np.concatenate([tree.threshold[here] for tree, here in zip(trees, split, strict=True)])
    for i, (name, cuts) in enumerate(zip(bins.names, bins.cuts, strict=True)):
        used = np.unique(thresholds[features == i])
        LIBRARY.compare({i: cuts[np.isin(cuts, used)]}, {i: used}, [name])


_UNCHECKED = dict.fromkeys((*BINNING_PARAMS, "max_bins"), "no_validation")  # by scikit-learn: we do


@with_binning_params("`max_bins` is the number of bins")
class HistGradientBoostingRegressor(_BinnedHistogram, ensemble.HistGradientBoostingRegressor):
    """`sklearn.ensemble.HistGradientBoostingRegressor` with cuts by `bin_method`."""

    _parameter_constraints: ClassVar = {**_UNCHECKED, **ensemble.HistGradientBoostingRegressor._parameter_constraints}


@with_binning_params("`max_bins` is the number of bins")
class HistGradientBoostingClassifier(_BinnedHistogram, ensemble.HistGradientBoostingClassifier):
    """`sklearn.ensemble.HistGradientBoostingClassifier` with cuts by `bin_method`."""

    _parameter_constraints: ClassVar = {**_UNCHECKED, **ensemble.HistGradientBoostingClassifier._parameter_constraints}


@with_binning_params("`max_bins`, which it does not have itself, is the number of bins", max_bins=255)
class GradientBoostingRegressor(_BinnedExact, ensemble.GradientBoostingRegressor):
    """`sklearn.ensemble.GradientBoostingRegressor` with cuts by `bin_method`."""

    _parameter_constraints: ClassVar = {**_UNCHECKED, **ensemble.GradientBoostingRegressor._parameter_constraints}


@with_binning_params("`max_bins`, which it does not have itself, is the number of bins", max_bins=255)
class GradientBoostingClassifier(_BinnedExact, ensemble.GradientBoostingClassifier):
    """`sklearn.ensemble.GradientBoostingClassifier` with cuts by `bin_method`."""

    _parameter_constraints: ClassVar = {**_UNCHECKED, **ensemble.GradientBoostingClassifier._parameter_constraints}
