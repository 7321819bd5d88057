"""LightGBM with cuts of our own: drop-in estimators, and a `Dataset` for `lgb.train` and `lgb.cv`.

LightGBM parts `x <= cut` in float64, as we do. It is given the cuts through a small *reference* Dataset, whose bins
it takes over for the real one. What it imposes: it parts zero from the rest, by cuts at -1e-35 (where there are values
below) and 1e-35 (where there are values above), and a missing value takes a bin. These count in `max_bin`.
"""

from __future__ import annotations

import json
import os
import tempfile
import types
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbins.adapter import (
    DEFAULT,
    FLAGS,
    BinMethod,
    Flagged,
    Library,
    Ranges,
    Rule,
    check_budgets,
    checked_flag,
    feature_table,
    first_rows,
    ranges,
    requested_bins,
    summarized_bins,
    threads_of,
    with_flag,
)
from boostbins.bins import Bins
from boostbins.cache import BinCache
from boostbins.columns import Column, SparseColumn, Table, as_float32, dense, is_sparse, with_missing
from boostbins.fit import checked_total
from boostbins.inputs import Floats
from boostbins.lightgbm_binary import cuts_by_place
from boostbins.methods import needs_target
from boostbins.stream import Stream
from boostbins.streamed import Rows, stream_of
from boostbins.threads import Progress

LIBRARY = Library("LightGBM", "lightgbm", "lightgbm", oldest="4.3.0", newest="4.7.0", below="5")
try:
    import lightgbm as lgb
    from lightgbm.basic import _ConfigAliases
    from lightgbm.sklearn import LGBMModel
except ImportError as error:
    raise LIBRARY.missing() from error
LIBRARY.check()

__all__ = ["Dataset", "LGBMClassifier", "LGBMRanker", "LGBMRegressor", "from_native"]

_ZERO = float(np.float32(1e-35))  # LightGBM's kZeroThreshold: what is not beyond it is zero
_MOSTLY_ZERO = 0.5  # share of zeros from which LightGBM may bundle a column with others, or store it sparsely
_HEAVY = 0.7  # LightGBM's kSparseThreshold
_SAMPLED = 200_000  # LightGBM's bin_construct_sample_cnt, if not given
_BINARY_FILE = b"______LightGBM_Binary_File_Token______"
_PER_ROW = ("label", "weight", "init_score")
_OF_CLASSES = ("multiclass", "softmax", "multiclassova", "multiclass_ova", "ova", "ovr")  # LightGBM's objectives
_LOOK_AT = 4096  # rows, to see whether a column is mostly zero


class Dataset(lgb.Dataset):
    """`lightgbm.Dataset` with cuts by `bin_method`.

    Like LightGBM's own it is built when first needed, with the parameters of `lgb.train` or `lgb.cv`; `max_bin` is
    one of them. Validation sets made from it (``reference=``, ``create_valid``) and the folds of `lgb.cv` share its
    cuts.

    Parameters
    ----------
    data, label, *args, **kwargs
        As for `lightgbm.Dataset`. `data` is an array, a frame or a sparse matrix. Or it comes in batches, as for
        `fit_bins`: a Parquet file, a folder of them, an Arrow dataset, a function that returns an iterator of tables;
        then `label`, `weight` and `init_score` may be names of columns, and only the bins' numbers are held in memory
        (a byte per value).
    bin_method : str, function, Bins or None
        "auto", "hybrid", "kmeans", "optimal", "quantile", "uniform", a function ``(summary, max_bins) -> cuts``, ready
        bins, or None for LightGBM's own.
    bin_cache : None, "memory" or a folder
        Where bins are kept for when the same is asked of the same data again.
    total_bins : int, optional
        At most so many bins in all columns together, shared by what they gain; see `fit_bins`.
    columns : sequence of str, optional
        Which columns to train on, of data that comes in batches: all but those named otherwise, if not given.
    progress : function, optional
        As for `fit_bins`.

    Attributes
    ----------
    bins_ : Bins
        Once it is built: the cuts that LightGBM uses.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).lognormal(0, 2, (1000, 2))
    >>> train = Dataset(X, X.sum(axis=1), bin_method="kmeans", params={"max_bin": 63, "verbosity": -1})
    >>> booster = lgb.train({"objective": "regression", "verbosity": -1}, train, 10)
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
        total_bins: int | None = None,
        columns: Sequence[str] | None = None,
        progress: Progress | None = None,
        **kwargs: Any,
    ) -> None:
        checked_flag(bin_method, bin_cache)
        super().__init__(data, label, *args, **kwargs)
        self.bin_method = bin_method
        self.bin_cache = bin_cache
        self.total_bins = total_bins
        self.columns = columns
        self.progress = progress
        self.data: Any
        self.reference: lgb.Dataset | None

    def construct(self) -> Dataset:
        """Find the cuts, and build LightGBM's dataset with them."""
        is_new = self._handle is None and self.used_indices is None and self.data is not None
        if is_new and (stream := _stream_of(self.data)) is not None:
            self._construct_from(stream)
            return self
        if is_new and self.columns is not None:
            raise ValueError("columns is for data that comes in batches: select those of a table yourself")
        if not is_new or self.reference is not None or self.bin_method is None:
            super().construct()
            return self
        settings = Settings(self.params or {})
        settings.check()
        categorical = _categorical_places(self)
        table = _seen_by_lightgbm(self.data, settings, categorical)
        extent = ranges(table, settings.n_threads)
        budgets = budgets_of(extent, settings)
        bins = requested_bins(
            self.bin_method,
            table,
            budgets,
            sample_weight=self.weight,
            label=self.label,
            n_classes=settings.n_classes,
            bin_cache=self.bin_cache,
            total_bins=settings.left_of(self.total_bins, budgets),
            rule=rule_of(extent),
            limit=f"max_bin={settings.max_bin}",
            n_threads=settings.n_threads,
        )
        self._construct_with(bins, _Sample(self, table, bins, extent, categorical, settings), settings)
        self._check_cuts(dict(zip(table.places, bins.cuts, strict=True)), bins.names)
        self.bins_ = bins
        return self

    def _construct_from(self, stream: Stream) -> None:
        """Build the dataset from batches: one pass to find the cuts, one to hand over the rows."""
        if self.bin_cache is not None:
            raise ValueError(
                "bin_cache cannot know data that comes in batches: fit_bins once, and give its Bins instead"
            )
        settings = Settings(self.params or {})
        settings.check()
        if settings.is_on("linear_tree", False):
            raise ValueError("linear_tree needs the values themselves: load the data, and give a table")
        categorical = self.categorical_feature, settings.get("categorical_feature", None)
        if any(named not in (None, "auto", "", []) for named in categorical):
            raise ValueError("categorical_feature needs a table in memory: load the data, or leave the columns out")
        if self._predictor is not None:
            raise ValueError("init_model predicts the values themselves: load the data, and give a table")
        if self.reference is None and self.bin_method is None:
            raise ValueError(
                "bin_method=None: LightGBM itself does not find bins for data that comes in batches; load it, or give "
                "bin_method='quantile'"
            )
        before = {name: getattr(self, name) for name in ("data", "reference", "feature_name", "_start_row", *_PER_ROW)}
        try:
            self._read(stream, settings)
        except BaseException:  # it can be built again
            self._free_handle()
            for name, value in before.items():
                setattr(self, name, value)
            raise
        self.reference = before["reference"]

    def _read(self, stream: Stream, settings: Settings) -> None:
        given = self.reference
        columns = self.columns if given is None else _columns_as_in(given, self.columns)
        beside = {name: value for name in _PER_ROW if (value := getattr(self, name)) is not None}
        seen = with_missing(0.0) if settings.zero_as_missing else lambda column: column
        rows = Rows(stream, columns, beside, seen)
        bins: Bins | None
        if given is None:
            bins = self._reference_for(rows, settings)
        else:
            rows.look()
            bins = getattr(given, "bins_", None)
        for name, values in rows.numbers.items():
            if np.isnan(values).any():
                raise ValueError(f"{name} has {np.isnan(values).sum():,} missing values: remove those rows")
            setattr(self, name, values.astype(np.float32) if name == "label" else values)
        if rows.named and self.feature_name == "auto":
            self.feature_name: Any = list(rows.names) if given is None else given.get_feature_name()
        self.data = handed = _Sequence(rows)
        super().construct()
        handed.check_all_read()
        self.data = None
        self._columns_read = rows.names if rows.named else None
        if bins is not None:
            if given is None:
                self._check_cuts(dict(enumerate(bins.cuts)), bins.names)
            self.bins_ = bins

    def _reference_for(self, rows: Rows, settings: Settings) -> Bins:
        """Set a reference Dataset whose cuts are those that the flag asks for, and return them."""
        assert self.bin_method is not None
        check_budgets([max(settings.max_bin - 3, 2)], f"max_bin={settings.max_bin}")
        supervised = needs_target(self.bin_method, self.total_bins)
        summary = rows.summarize(settings.max_bin, settings.n_threads, self.progress, supervised, settings.n_classes)
        extent = rows.extent
        budgets = budgets_of(extent, settings)
        bins = summarized_bins(
            self.bin_method,
            summary,
            budgets,
            total_bins=settings.left_of(self.total_bins, budgets),
            rule=rule_of(extent),
            limit=f"max_bin={settings.max_bin}",
            n_threads=settings.n_threads,
        )
        # Columns are never bundled beside a reference.
        alone = Settings(settings.replaced(enable_bundle=False))
        some = lgb.Dataset(rows.sample, params=dict(self.params or {}))
        sample = _Sample(some, feature_table(rows.sample), bins, extent, [], alone)
        with tempfile.TemporaryDirectory(prefix="boostbins-") as folder:
            forced = _forced(bins, sample, settings, Path(folder) / "cuts.json")
            self.reference = _reference(self, sample, settings.replaced(**forced, verbosity=-1))
        return bins

    def _check_cuts(self, asked: dict[int, Floats], names: Sequence[str]) -> None:
        """Refuse to train on other cuts than those asked for; features that LightGBM does not use have none."""
        used = _native_cuts(self)
        kept = {place: name for place, name in zip(asked, names, strict=True) if place in used}
        LIBRARY.compare({place: asked[place] for place in kept}, used, list(kept.values()))

    def _construct_with(self, bins: Bins, sample: _Sample, settings: Settings) -> None:
        """Have LightGBM build the dataset with these cuts: those of a reference, but where it can bundle columns."""
        with tempfile.TemporaryDirectory(prefix="boostbins-") as folder:
            forced = _forced(bins, sample, settings, Path(folder) / "cuts.json")
            self._bundled = sample.may_bundle
            if self._bundled:  # which it never does beside a reference
                self.params = settings.replaced(**forced)
                try:
                    super().construct()
                finally:
                    self.params = {key: value for key, value in self.params.items() if key not in forced}
                return
            self.reference = _reference(self, sample, settings.replaced(**forced, verbosity=-1))
        if is_sparse(self.data) and settings.is_on("linear_tree", False):
            self.data = self.data.tocsr()  # LightGBM crashes on columns beside a reference
        try:
            super().construct()
        finally:
            self.reference = None  # it has served: what follows treats this as any training set

    def create_valid(self, data: Any, *args: Any, **kwargs: Any) -> lgb.Dataset:
        """Return a validation set with the cuts of this one; of data that comes in batches too."""
        if _stream_of(data) is None:
            return super().create_valid(data, *args, **kwargs)
        kwargs |= dict(zip(("label", "weight", "group", "init_score", "params", "position"), args, strict=False))
        return Dataset(data, reference=self, bin_method=self.bin_method, **kwargs)

    def save_binary(self, filename: Any) -> Dataset:
        """Write LightGBM's binary file."""
        if getattr(self.construct(), "_bundled", False):
            raise ValueError(
                "LightGBM could not load this file: the cuts of bundled columns are set by parameters. Build the "
                "Dataset with enable_bundle=False, or bin_method=None, to save it"
            )
        return super().save_binary(filename)  # type: ignore[no-any-return]


class _Sequence(lgb.Sequence):
    """Hands the rows of a stream over to LightGBM, which asks for them from the first to the last."""

    batch_size = 2**15

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.matrices = (rows.matrix(batch, np.float64) for batch in rows.batches())
        self.at_hand: Any = np.empty((0, len(rows.names)))

    def __len__(self) -> int:
        return self.rows.n_rows

    def __getitem__(self, asked: Any) -> NDArray[Any]:
        n = asked.stop - asked.start
        while len(self.at_hand) < n:
            self.at_hand = np.concatenate([self.at_hand, next(self.matrices)])
        given, self.at_hand = self.at_hand[:n], self.at_hand[n:]
        return np.asarray(given)

    def check_all_read(self) -> None:
        """Refuse a stream that has more rows than the first time."""
        if len(self.at_hand) or next(self.matrices, None) is not None:
            raise ValueError(
                f"data gave {len(self):,} rows the first time, and more the next: it must give the same rows"
            )


def from_native(dataset: lgb.Dataset) -> Bins:
    """Return the cuts that a LightGBM dataset uses, boostbins' or LightGBM's own; builds it if it is not yet built.

    Categorical features are left out. A feature that LightGBM does not use, for it can never be split, has no cuts.
    """
    if not isinstance(dataset, lgb.Dataset):
        raise TypeError(f"dataset must be a lightgbm.Dataset, got {type(dataset).__name__}")
    dataset.construct()
    names = getattr(dataset, "bins_", None)
    used = _native_cuts(dataset, all_features=True)
    if names is not None and len(names) == len(used):
        return Bins(used.values(), names.names)
    known = dataset.get_feature_name()
    return Bins(used.values(), [known[place] for place in used])


# ---- what LightGBM is told


class Settings:
    """The parameters of LightGBM that matter here, by whichever alias."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = dict(params)
        self.max_bin = int(self.get("max_bin", 255))
        self.zero_as_missing = self.is_on("zero_as_missing", False)
        self.missing_has_bin = self.is_on("use_missing", True) and not self.zero_as_missing
        self.n_threads = threads_of(self.get("num_threads", None))
        # What the label numbers. With an objective of one's own it may hold anything.
        self.n_classes = int(self.get("num_class", 1)) if self.get("objective", None) in _OF_CLASSES else None

    def get(self, name: str, default: Any) -> Any:
        """Return a parameter."""
        given = [self.params[alias] for alias in _aliases(name) if self.params.get(alias) is not None]
        return given[0] if given else default

    def is_on(self, name: str, default: bool) -> bool:
        """Return a parameter that is true or false."""
        return str(self.get(name, default)).lower() in ("true", "1", "+", "yes", "t", "on")

    def replaced(self, **values: Any) -> dict[str, Any]:
        """Return the parameters with others in place of these, whatever they were called."""
        hidden = {alias for name in values for alias in _aliases(name)}
        return {**{key: value for key, value in self.params.items() if key not in hidden}, **values}

    def left_of(self, total_bins: int | None, budgets: Sequence[int]) -> int | None:
        """Return what is left of a total for values, without the bins of zeros and of missing values."""
        if total_bins is None:
            return None
        taken = sum(self.max_bin - budget for budget in budgets)
        return checked_total(total_bins, len(budgets), taken, " for zeros and missing values") - taken

    def check(self) -> None:
        """Refuse what contradicts cuts of our own."""
        for name in ("forcedbins_filename", "max_bin_by_feature"):
            if self.get(name, None):
                raise ValueError(
                    f"{name}={self.get(name, None)!r} contradicts bin_method: leave it out, or give bin_method=None"
                )
        if int(self.get("num_machines", 1)) > 1:
            raise ValueError("num_machines > 1: bin_method works on one machine only; give bin_method=None")
        if self.max_bin < 2:
            raise ValueError(f"max_bin must be at least 2, got {self.max_bin}")


def _aliases(name: str) -> list[str]:
    return [name, *sorted(_ConfigAliases.get(name) - {name})]


def _stream_of(data: Any) -> Stream | None:
    """Return data that comes in batches as a stream."""
    if isinstance(data, str | os.PathLike) and Path(data).is_file():
        with Path(data).open("rb") as file:
            if file.read(len(_BINARY_FILE)) == _BINARY_FILE:
                return None  # a Dataset of LightGBM's, whose cuts are fixed
    return None if isinstance(data, lgb.Sequence) else stream_of(data)


def _columns_as_in(training: lgb.Dataset, columns: Sequence[str] | None) -> Sequence[str] | None:
    """Return the columns of a validation set, in the order of the training set's; None for arrays without names."""
    names = training.construct().get_feature_name()
    bins = getattr(training, "bins_", None)
    known: Sequence[str] | None = bins.names if bins is not None and len(bins) == len(names) else names
    known = getattr(training, "_columns_read", known)
    if columns is not None and sorted(columns) != sorted(known or ()):
        raise ValueError(f"columns must be those of the training set, {list(known or ())}, got {list(columns)}")
    return known


def _categorical_places(dataset: lgb.Dataset) -> list[int]:
    """Return which columns LightGBM takes as categorical: it says so of the first rows."""
    if isinstance(dataset.data, lgb.Sequence) or (
        isinstance(dataset.data, list) and isinstance(dataset.data[0], np.ndarray | lgb.Sequence)
    ):
        raise TypeError(
            f"data must be an array, a frame, a sparse matrix or a file for bin_method, "
            f"got {type(dataset.data).__name__}: load it first, or give bin_method=None"
        )
    settings = Settings(dataset.params or {})
    rows = first_rows(dataset.data, 2)
    head = lgb.Dataset(
        rows,
        np.zeros(rows.shape[0]),
        feature_name=dataset.feature_name,
        categorical_feature=dataset.categorical_feature,
        params=_unsaid(settings.replaced(verbosity=-1, feature_pre_filter=False)),
    ).construct()
    given = Settings(head.params).get("categorical_feature", settings.get("categorical_feature", []))
    given = given.split(",") if isinstance(given, str) else given
    places = (int(place) for place in np.atleast_1d(np.array(given, dtype=np.intp)))
    return sorted(place for place in places if place < head.num_feature())


def _unsaid(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters for a dataset that helps, without those that LightGBM has warned, or will warn, of."""
    said = {*signature(lgb.Dataset._lazy_init).parameters, *_aliases("categorical_feature")}
    return {key: value for key, value in params.items() if key not in said}


def _seen_by_lightgbm(data: Any, settings: Settings, categorical: list[int]) -> Table:
    table = feature_table(_with_numbered_order(data), categorical)
    if isinstance(data, np.ndarray) and data.dtype not in (np.float32, np.float64):
        table = table.seen(as_float32)
    return table.seen(with_missing(0.0)) if settings.zero_as_missing else table


def _with_numbered_order(data: Any) -> Any:
    """Return a pandas frame with ordered categories as numbers, which is how LightGBM takes them."""
    if not hasattr(data, "iloc"):
        return data
    ordered = [i for i, dtype in enumerate(data.dtypes) if getattr(dtype, "ordered", False)]
    if ordered:
        data = data.copy(deep=False)
        for place in ordered:
            data.isetitem(place, _category_numbers(data, place, np.arange(len(data))))
    return data


def budgets_of(extent: Ranges, settings: Settings) -> list[int]:
    """Return how many bins are left for the values of each column."""
    zero_cuts = (extent.low < -_ZERO).astype(int) + (extent.high > _ZERO)
    missing = extent.missing & settings.missing_has_bin
    return [int(n) for n in np.maximum(settings.max_bin - zero_cuts - missing, 2)]


def rule_of(extent: Ranges) -> Rule:
    """Return what LightGBM makes of cuts."""
    return Rule("LightGBM", lambda i, cuts: with_zero_cuts(cuts, extent.low[i], extent.high[i]))


def with_zero_cuts(cuts: Floats, low: float, high: float) -> Floats:
    zero_cuts = [-_ZERO] * bool(low < -_ZERO) + [_ZERO] * bool(high > _ZERO)
    return np.unique(np.concatenate([cuts[np.abs(cuts) > _ZERO], zero_cuts]))


# ---- how LightGBM is made to take the cuts


class _WithAllParameters(lgb.Dataset):
    """Samples with LightGBM's seed, which it itself leaves out of a Dataset's parameters."""

    def get_params(self) -> dict[str, Any]:
        return self.params  # type: ignore[no-any-return]


class _Sample:
    """Rows from which LightGBM learns what is not cuts: categories, how to store columns, which ones to bundle."""

    def __init__(
        self,
        dataset: lgb.Dataset,
        table: Table,
        bins: Bins,
        extent: Ranges,
        categorical: list[int],
        settings: Settings,
    ) -> None:
        self.table, self.bins, self.extent, self.categorical = table, bins, extent, categorical
        self.data = dataset.data
        self.n_features = len(table) + len(categorical)
        if hasattr(self.data, "shape"):
            self.n_features = self.data.shape[1]
        self.at_most = int(settings.get("bin_construct_sample_cnt", _SAMPLED))
        some = np.arange(0, table.n_rows, max(1, table.n_rows // _LOOK_AT))
        zero_share = np.array([_zero_share(table, i, some) for i in range(len(table))])
        mostly_zero = np.count_nonzero(zero_share > _MOSTLY_ZERO)
        if categorical or mostly_zero:  # LightGBM's own
            sampler = _WithAllParameters(None, params=dict(dataset.params or {}))
            some = np.asarray(sampler._create_sample_indices(total_nrow=table.n_rows), np.intp)
        self.rows = some
        self.whole = len(some) == table.n_rows
        self.may_bundle = (
            mostly_zero > 1
            and settings.is_on("enable_bundle", True)
            and self._says_all()
            and not any(self._has_heavy_bin(i) for i in np.flatnonzero(zero_share < 1 - _HEAVY))
        )

    def _has_heavy_bin(self, i: int | np.intp) -> bool:
        """Return whether a bin that is not zero's has most rows: LightGBM then errs on which columns can be bundled."""
        codes = np.searchsorted(self.bins.cuts[i], _taken(self.table.read(int(i)), self.rows))
        return bool(_HEAVY * len(codes) <= np.bincount(codes).max() < len(codes))

    def _says_all(self) -> bool:
        """Return whether these rows show what LightGBM must know of each column: both signs, and missing values."""
        if self.whole:
            return True
        low, high, missing = ranges(self.table.seen(lambda column: _taken(column, self.rows)))
        all_low, all_high, all_missing = self.extent
        shown = ((low < -_ZERO) == (all_low < -_ZERO)) & ((high > _ZERO) == (all_high > _ZERO))
        return bool((shown & (missing == all_missing)).all())

    def matrix(self) -> Any:
        """Return the rows as numbers, and after them the ends of each column and a missing value."""
        rows = self.rows[: max(self.at_most - 3, 1)]  # no more in all than LightGBM looks at
        ends = np.zeros((3, self.n_features))
        low, high, missing = self.extent
        for row, values in zip(ends, (low, high, np.where(missing, np.nan, low)), strict=True):
            row[list(self.table.places)] = values
        if is_sparse(self.data):
            from scipy import sparse

            return sparse.vstack([self.data.tocsr()[rows].astype(np.float64), sparse.csr_matrix(ends)], "csr")
        values = np.full((len(rows), self.n_features), np.nan)
        for i, place in enumerate(self.table.places):
            values[:, place] = _taken(self.table.read(i), rows)
        for place in self.categorical:
            values[:, place] = _category_numbers(self.data, place, rows)
        ends[:, self.categorical] = values[0, self.categorical]
        return np.vstack([values, ends])


def _zero_share(table: Table, i: int, rows: NDArray[np.intp]) -> float:
    column = table.read(i)
    if isinstance(column, SparseColumn):
        return 1 - len(column.values) / column.n_rows
    return float(np.mean(column[rows] == 0))


def _taken(column: Column, rows: NDArray[np.intp]) -> NDArray[Any]:
    found: NDArray[Any] = dense(column)[rows]
    return found


def _forced(bins: Bins, sample: _Sample, settings: Settings, path: Path) -> dict[str, Any]:
    """Return the parameters that make LightGBM cut as asked, on rows that show what there is in each column."""
    missing = sample.extent.missing & settings.missing_has_bin
    bounds, max_bin_by_feature = [], [settings.max_bin] * sample.n_features
    for i, place in enumerate(sample.table.places):
        own = bins.cuts[i][np.abs(bins.cuts[i]) > _ZERO]
        # With any bin to spare, LightGBM adds quantiles; with one too few, it drops the last cuts.
        max_bin_by_feature[place] = int(max(len(bins.cuts[i]) + 1, 3 if len(own) else 2) + missing[i])
        if len(own):
            bounds.append({"feature": place, "bin_upper_bound": own.tolist()})
    path.write_text(json.dumps(bounds))
    return {"forcedbins_filename": str(path), "max_bin_by_feature": max_bin_by_feature}


def _reference(dataset: lgb.Dataset, sample: _Sample, params: dict[str, Any]) -> lgb.Dataset:
    """Return a small Dataset that has the cuts, and what LightGBM else learns from rows."""
    matrix = sample.matrix()
    settings = Settings(_unsaid(params))
    params = settings.replaced(feature_pre_filter=False)  # it would count the few rows of the reference
    if sample.at_most < matrix.shape[0]:
        params = Settings(params).replaced(bin_construct_sample_cnt=matrix.shape[0])
    reference = lgb.Dataset(
        matrix, np.zeros(matrix.shape[0]), categorical_feature=sample.categorical or "auto", params=params
    ).construct()
    # As if it were the real data's: these pass on to it, and nothing of the above may.
    reference.params = dict(dataset.params or {})
    reference.categorical_feature = dataset.categorical_feature
    return reference


def _category_numbers(data: Any, place: int, rows: NDArray[np.intp]) -> Floats:
    if hasattr(data, "iloc"):
        column = data.iloc[rows, place]
        if hasattr(column, "cat"):
            codes = column.cat.codes.to_numpy().astype(np.float64)
            return np.where(codes < 0, np.nan, codes)
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    everything = feature_table(data)
    column = everything.read(everything.places.index(place))
    assert not isinstance(column, SparseColumn)
    return column[rows].astype(np.float64)


# ---- what LightGBM uses


def _native_cuts(dataset: lgb.Dataset, all_features: bool = False) -> dict[int, Floats]:
    """Return the cuts by the place of the feature, from a dataset of one row in LightGBM's binary format.

    Without the features that LightGBM does not use, unless `all_features`.
    """
    n_features = dataset.num_feature()
    row = dataset.subset([0], params={**(dataset.params or {}), "verbosity": -1})
    row.free_raw_data = True
    row.construct()
    with tempfile.TemporaryDirectory(prefix="boostbins-") as folder:
        path = Path(folder) / "row.bin"
        row.save_binary(str(path))
        mappers = cuts_by_place(path.read_bytes(), LIBRARY)
    cuts = {place: bounds for place, bounds in mappers.items() if bounds is not None}
    if all_features:
        cuts |= {place: np.empty(0) for place in range(n_features) if place not in mappers}
    return dict(sorted(cuts.items()))


# ---- the estimators


class _Flag(Flagged, LGBMModel):
    """Stands between a class of LightGBM's and `LGBMModel`: has the latter's `fit` build our Datasets."""

    def fit(self, X: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        ours = self._begin_fit()
        if ours and isinstance(X, lgb.Dataset):
            raise TypeError("X must be data, not a ready-made Dataset: its cuts are fixed. Give it to lightgbm.train")
        made: list[Dataset] = []

        def dataset(*args: Any, **kwargs: Any) -> Dataset:
            kwargs |= {name: getattr(self, name) for name in FLAGS}
            made.append(Dataset(*args, **kwargs))
            return made[-1]

        # The same code with another Dataset among its globals: nothing is patched, so other threads see nothing.
        native = LGBMModel.fit
        fit = types.FunctionType(native.__code__, {**native.__globals__, "Dataset": dataset}, native.__name__)
        fit.__defaults__, fit.__kwdefaults__ = native.__defaults__, native.__kwdefaults__
        fit(self, X, y, *args, **kwargs)
        if ours:
            self.bins_ = made[0].bins_  # the training set is the first
        return self

    def _process_params(self, stage: str) -> dict[str, Any]:
        params = super()._process_params(stage)
        return {key: value for key, value in params.items() if key not in FLAGS}

    def to_native(self) -> Any:
        """Return the same model as an estimator of LightGBM's own class, which needs no boostbins."""
        plain = super().to_native()
        plain._other_params = {key: value for key, value in plain._other_params.items() if key not in FLAGS}
        return plain


@with_flag("`max_bin` is the number of bins, those for zero and for missing values included")
class LGBMRegressor(lgb.LGBMRegressor, _Flag):
    """`lightgbm.LGBMRegressor` with cuts by `bin_method`."""


@with_flag("`max_bin` is the number of bins, those for zero and for missing values included")
class LGBMClassifier(lgb.LGBMClassifier, _Flag):
    """`lightgbm.LGBMClassifier` with cuts by `bin_method`."""


@with_flag("`max_bin` is the number of bins, those for zero and for missing values included")
class LGBMRanker(lgb.LGBMRanker, _Flag):
    """`lightgbm.LGBMRanker` with cuts by `bin_method`."""
