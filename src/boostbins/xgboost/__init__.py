"""XGBoost with cuts of our own: drop-in estimators, and a `QuantileDMatrix` for `xgb.train`.

XGBoost rounds values to float32 and parts `x < cut`; ours are `x <= cut`, so that each becomes the next float32 above.
It is given the cuts as the values of a small *reference* matrix. One of its `max_bin` bins holds a last cut above the
greatest value, without which splits of missing values from all others would be wrong on values as large.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbins._threads import Progress
from boostbins.adapters.adapter import (
    DEFAULT,
    FLAGS,
    IN_FLOAT32,
    BinMethod,
    Flagged,
    Library,
    Ranges,
    as_array,
    check_budgets,
    checked_flag,
    cuts_are_ours,
    feature_table,
    first_rows,
    ranges,
    requested_bins,
    summarized_bins,
    target_of,
    threads_of,
    with_flag,
)
from boostbins.adapters.two_pass import Rows, stream_of
from boostbins.bins import Bins
from boostbins.cache import BinCache
from boostbins.fit import cells_for
from boostbins.methods import MAX_BINS, MIN_BINS, Method, needs_target
from boostbins.sources.stream import Batch, RowNumbers, Stream
from boostbins.sources.table import Column, Table, as_float32, is_sparse, rest_missing, with_missing
from boostbins.sources.values import Floats
from boostbins.summary.table import TableSummary, summarize_stream

LIBRARY = Library("XGBoost", "xgboost", "xgboost", oldest="2.0.3", newest="3.2.0", below="4")
try:
    import xgboost as xgb
    from xgboost.sklearn import XGBModel
except ImportError as error:
    raise LIBRARY.missing() from error
LIBRARY.check()

__all__ = [
    "ExtMemQuantileDMatrix",
    "QuantileDMatrix",
    "XGBClassifier",
    "XGBRanker",
    "XGBRegressor",
    "from_native",
]

MAX_BIN = 256  # XGBoost's default
_GREATEST = np.finfo(np.float32).max
_NOT_IN_BATCHES = (
    "qid",
    "group",
    "label_lower_bound",
    "label_upper_bound",
    "feature_weights",
    "feature_types",
    "feature_names",
)
_WITH_CUTS = (None, "auto", "hist", "gpu_hist")  # tree methods that take ready cuts


class QuantileDMatrix(xgb.QuantileDMatrix):
    """`xgboost.QuantileDMatrix` with cuts by `bin_method`.

    Give `xgb.train` the same `max_bin`. Validation sets made with ``ref=`` share its cuts. (`xgb.cv` takes no
    QuantileDMatrix, of XGBoost's own neither.)

    Parameters
    ----------
    data, label, **kwargs
        As for `xgboost.QuantileDMatrix`. `data` is an array, a frame or a sparse matrix. With `ref`, its cuts are
        taken and `bin_method` is not looked at. Or `data` comes in batches, as for `fit_bins`: a Parquet file, a folder
        of them, an Arrow dataset, a function that returns an iterator of tables; then `label`, `weight` and
        `base_margin` may be names of columns, and only the bins' numbers are held in memory. Or it is a
        `xgboost.DataIter`, which is gone through once more, for the cuts.
    bin_method : str, function, Bins or None
        "auto", "hybrid", "kmeans", "optimal", "quantile", "uniform", a function ``(summary, max_bins) -> cuts``, ready
        bins, or None for XGBoost's own.
    bin_cache : None, "memory" or a folder
        Where bins are kept for when the same is asked of the same data again.
    total_bins : int, optional
        At most so many bins in all columns together, shared by what they gain; see `fit_bins`.
    n_classes : int, optional
        If `label` numbers more than two classes, how many: for "auto".
    columns : sequence of str, optional
        Which columns to train on, of data that comes in batches: all but those named otherwise, if not given.
    progress : function, optional
        As for `fit_bins`.

    Attributes
    ----------
    bins_ : Bins
        The cuts that XGBoost uses.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).lognormal(0, 2, (1000, 2))
    >>> train = QuantileDMatrix(X, X.sum(axis=1), bin_method="kmeans", max_bin=64)
    >>> booster = xgb.train({"max_bin": 64}, train, 10)
    >>> from_native(train).n_bins
    (63, 63)
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        *,
        bin_method: BinMethod = DEFAULT,
        bin_cache: BinCache = None,
        total_bins: int | None = None,
        n_classes: int | None = None,
        max_bin: int | None = None,
        columns: Sequence[str] | None = None,
        progress: Progress | None = None,
        **kwargs: Any,
    ) -> None:
        checked_flag(bin_method, bin_cache)
        stream = None if isinstance(data, xgb.DMatrix | xgb.DataIter) else stream_of(data)
        if bin_cache is not None and (stream is not None or isinstance(data, xgb.DataIter)):
            raise ValueError(
                "bin_cache cannot know data that comes in batches: fit_bins once, and give its Bins instead"
            )
        asked = _Asked(bin_method, total_bins, n_classes, max_bin)
        if stream is not None:
            streamed = _Streamed(stream, label, columns, asked, kwargs, progress)
            super().__init__(streamed.iterator(), max_bin=streamed.max_bin, ref=streamed.ref, **streamed.options)
            streamed.check(self)
            return
        _check_no_columns(columns)
        obstacle = obstacle_in({"max_bin": max_bin})
        if getattr(data, "shape", (1,))[0] == 0:
            obstacle = "data has no rows to find cuts on: give it some"
        if kwargs.get("ref") is not None or not cuts_are_ours(bin_method, obstacle):
            super().__init__(data, label, max_bin=max_bin, **kwargs)
            return
        if isinstance(data, xgb.DMatrix):
            raise TypeError(
                f"data must be an array, a frame, a sparse matrix, a file or a DataIter for bin_method, got "
                f"{type(data).__name__}: give the data itself, or bin_method=None"
            )
        if isinstance(data, xgb.DataIter):
            iterated = _Iterated(data, asked, {"label": label, **kwargs}, progress)
            super().__init__(data, max_bin=iterated.max_bin, **{**kwargs, "ref": iterated.reference})
            iterated.check(self)
            return
        data = _taken_by_quantile_matrices(data)
        max_bin = _checked_max_bin(max_bin)
        n_threads = threads_of(kwargs.get("nthread"))
        features = _Features(data, kwargs)
        table = _seen_by_xgboost(data, features.categorical, kwargs.get("missing"))
        extent = ranges(table, n_threads)
        bins = requested_bins(
            bin_method,
            table,
            [max_bin - 1] * len(table),
            sample_weight=_row_weight(kwargs, table.n_rows),
            label=label,
            n_classes=n_classes,
            bin_cache=bin_cache,
            total_bins=total_bins,
            rule=IN_FLOAT32,
            limit=f"max_bin={max_bin!r}",
            n_threads=n_threads,
        )
        reference = features.reference(_reference_columns(table.places, bins, extent), max_bin)
        super().__init__(data, label, max_bin=max_bin, **{**kwargs, "ref": reference})
        _check_cuts(self, table.places, bins, extent)
        self.bins_ = bins


class ExtMemQuantileDMatrix(getattr(xgb, "ExtMemQuantileDMatrix", object)):  # type: ignore[misc]
    """`xgboost.ExtMemQuantileDMatrix` with cuts by `bin_method`: what XGBoost trains on stays on disk.

    For data that does not fit into memory even as the numbers of its bins; training reads it from disk again for every
    level of a tree, so that `QuantileDMatrix` is the faster one where it fits. Needs XGBoost 3.

    Parameters
    ----------
    data, label, bin_method, total_bins, n_classes, max_bin, columns, progress
        As for `QuantileDMatrix` of data that comes in batches, or of a `xgboost.DataIter`.
    cache : folder, optional
        Where XGBoost keeps its pages, about 5 bytes per value; it is emptied when the matrix is no longer used. A
        temporary folder, if not given. (A `DataIter` has a `cache_prefix` for that.)
    **kwargs
        `weight` and `base_margin`, as `label`; `ref`, of a validation set: the training set, whose cuts are taken.
        Everything else as for XGBoost's own.

    Attributes
    ----------
    bins_ : Bins
        The cuts that XGBoost uses.
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        *,
        bin_method: BinMethod = DEFAULT,
        total_bins: int | None = None,
        n_classes: int | None = None,
        max_bin: int | None = None,
        columns: Sequence[str] | None = None,
        cache: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        **kwargs: Any,
    ) -> None:
        if LIBRARY.is_before("3"):
            raise ImportError(f"ExtMemQuantileDMatrix needs XGBoost 3, and {LIBRARY.version} is installed")
        checked_flag(bin_method, None)
        asked = _Asked(bin_method, total_bins, n_classes, max_bin)
        if isinstance(data, xgb.DataIter):
            self._init_from_iterator(data, asked, {"label": label, **kwargs}, columns, cache, progress)
            return
        stream = None if isinstance(data, xgb.DMatrix) else stream_of(data)
        if stream is None:
            raise TypeError(
                f"data must come in batches, as a file, a DataIter or a function that returns an iterator of tables, "
                f"got {type(data).__name__}: use QuantileDMatrix for what is in memory"
            )
        streamed = _Streamed(stream, label, columns, asked, kwargs, progress)
        folder = tempfile.mkdtemp(prefix="boostbins-", dir=_existing_folder(cache))
        remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        try:
            iterator = streamed.iterator(str(Path(folder) / "pages"))
            super().__init__(iterator, max_bin=streamed.max_bin, ref=streamed.ref, **streamed.options)
            streamed.check(self)
        except BaseException:
            remove()
            raise

    def _init_from_iterator(
        self,
        data: xgb.DataIter,
        asked: _Asked,
        kwargs: dict[str, Any],
        columns: Sequence[str] | None,
        cache: str | os.PathLike[str] | None,
        progress: Progress | None,
    ) -> None:
        _check_no_columns(columns)
        if cache is not None:
            raise ValueError(f"cache={cache!r} is not for a DataIter: give that a cache_prefix")
        _check_given_by_batches(kwargs)
        options = {name: value for name, value in kwargs.items() if value is not None}
        if "ref" in options or not cuts_are_ours(asked.method, obstacle_in({"max_bin": asked.max_bin})):
            super().__init__(data, max_bin=asked.max_bin, **options)
            return
        iterated = _Iterated(data, asked, options, progress)
        super().__init__(data, max_bin=iterated.max_bin, ref=iterated.reference, **options)
        iterated.check(self)


class _Asked(NamedTuple):
    """The bins that are asked for."""

    method: BinMethod
    total: int | None
    n_classes: int | None
    max_bin: int | None


class _Streamed:
    """Data that comes in batches: what the first pass tells, and the second pass."""

    def __init__(
        self,
        stream: Stream,
        label: RowNumbers,
        columns: Sequence[str] | None,
        asked: _Asked,
        kwargs: dict[str, Any],
        progress: Progress | None,
    ) -> None:
        self.options = dict(kwargs)
        beside = {"label": label, **{name: self.options.pop(name, None) for name in ("weight", "base_margin")}}
        if odd := [name for name in _NOT_IN_BATCHES if self.options.pop(name, None) is not None]:
            raise ValueError(f"{odd[0]} cannot be given for data that comes in batches: load it, and give a table")
        missing = self.options.get("missing")
        self.ref = self.options.pop("ref", None)
        self.max_bin = _checked_max_bin(asked.max_bin)
        self.bins: Bins | None = None
        if self.ref is not None:
            self.bins = getattr(self.ref, "bins_", None)
            columns = self.ref.feature_names if columns is None else columns
        self.rows = Rows(stream, columns, beside, _seen_as(missing))
        if self.ref is None and asked.method is not None:
            check_budgets([self.max_bin - 1], f"max_bin={self.max_bin}")  # before anything is read
            n_threads = threads_of(self.options.get("nthread"))
            supervised = needs_target(asked.method, asked.total)
            summary = self.rows.summarize(self.max_bin, n_threads, progress, supervised, asked.n_classes)
            self.bins = bins_of_summary(asked.method, summary, self.max_bin, asked.total, n_threads)
            values = _reference_columns(range(len(summary)), self.bins, self.rows.extent)
            names = list(summary.names) if self.rows.named else None
            self.ref = _reference(
                values, len(summary), self.max_bin, feature_names=names, nthread=self.options.get("nthread")
            )
            self.is_checked = True
        else:
            self.is_checked = False

    def iterator(self, cache_prefix: str | None = None) -> _Batches:
        """Return the second pass."""
        return _Batches(self.rows, cache_prefix)

    def check(self, matrix: Any) -> None:
        """Prove that the cuts are used, and note them."""
        if self.bins is None:
            return
        if self.is_checked:
            _check_cuts(matrix, range(len(self.bins)), self.bins, self.rows.extent)
        matrix.bins_ = self.bins


class _Batches(xgb.DataIter):
    """Hands batches over to XGBoost, as often as it asks."""

    def __init__(self, rows: Rows, cache_prefix: str | None) -> None:
        super().__init__(cache_prefix=cache_prefix)
        self.rows = rows
        self.reset()

    def reset(self) -> None:
        self.batches = self.rows.batches()

    def next(self, input_data: Callable[..., None]) -> bool:
        batch = next(self.batches, None)
        if batch is None:
            return False
        names = list(batch.table.names) if batch.table.named else None
        input_data(data=self.rows.matrix(batch, np.float32), feature_names=names, **batch.numbers)
        return True


class _Iterated:
    """A `DataIter` of the user's: what a first pass over it tells. The later ones are XGBoost's."""

    features: _Features | None = None  # of all batches together
    places: tuple[int, ...]
    extent: Ranges
    n_rows = 0

    def __init__(
        self, iterator: xgb.DataIter, asked: _Asked, kwargs: dict[str, Any], progress: Progress | None
    ) -> None:
        assert asked.method is not None
        _check_given_by_batches(kwargs)
        self.max_bin = _checked_max_bin(asked.max_bin)
        check_budgets([self.max_bin - 1], f"max_bin={self.max_bin}")  # before anything is read
        n_threads = threads_of(kwargs.get("nthread"))
        supervised = needs_target(asked.method, asked.total)
        summary = summarize_stream(
            self._looked_at(_given_by(iterator), kwargs, supervised, n_threads),
            weight="weight",
            target="label" if supervised else "",
            n_classes=asked.n_classes,
            max_cells=cells_for(self.max_bin),
            n_threads=n_threads,
            progress=progress,
        )
        if self.features is None:
            raise ValueError("data gave no rows: the DataIter's next() must hand over some with input_data")
        self.bins = bins_of_summary(asked.method, summary, self.max_bin, asked.total, n_threads)
        self.reference = self.features.reference(_reference_columns(self.places, self.bins, self.extent), self.max_bin)

    def _looked_at(
        self, given: Iterator[dict[str, Any]], kwargs: dict[str, Any], supervised: bool, n_threads: int | None
    ) -> Iterator[Batch]:
        extents = []
        for number, batch in enumerate(given):
            where = f"batch {number} of data"
            data = deepcopy(_taken_by_quantile_matrices(batch["data"]))  # the next batch may be in the same memory
            if data.shape[0] == 0:
                continue
            features = _Features(data, {**kwargs, **batch})
            table = _seen_by_xgboost(data, features.categorical, kwargs.get("missing"))
            numbers = _numbers_beside(batch, table.n_rows, supervised)
            if self.features is None:
                self.features, self.places, names, beside = features, table.places, table.names, numbers.keys()
            self.features.add(features, where)
            for odd in numbers.keys() ^ beside:  # XGBoost would take that of another batch
                raise ValueError(f"{where}: {odd} must come with all batches, or with none")
            extents.append(ranges(table, n_threads))
            self.n_rows += table.n_rows
            yield Batch(replace(table, names=names), numbers, 0, where)
        if extents:
            low, high, missing = zip(*extents, strict=True)
            self.extent = Ranges(np.fmin.reduce(low), np.fmax.reduce(high), np.any(missing, axis=0))

    def check(self, matrix: Any) -> None:
        """Prove that the cuts are used, of the rows that they were found on, and note them."""
        if matrix.num_row() != self.n_rows:
            raise ValueError(
                f"data gave {self.n_rows:,} rows the first time, and {matrix.num_row():,} the next: after reset() a "
                f"DataIter must give the same rows again"
            )
        _check_cuts(matrix, self.places, self.bins, self.extent)
        matrix.bins_ = self.bins


def _given_by(iterator: xgb.DataIter) -> Iterator[dict[str, Any]]:
    """Yield what a DataIter hands over, batch by batch, and leave it as it was."""
    batch: dict[str, Any] = {}

    def input_data(*unnamed: Any, **named: Any) -> None:
        if unnamed or "data" not in named:
            raise TypeError("Keyword arguments are what input_data takes, data among them: input_data(data=X, label=y)")
        batch.update(named)

    iterator.reset()
    while iterator.next(input_data):
        if not batch:
            raise ValueError("data: the DataIter's next() said that there is a batch, and did not call input_data")
        yield batch.copy()
        batch.clear()
    iterator.reset()


def _numbers_beside(batch: dict[str, Any], n_rows: int, supervised: bool) -> dict[str, Floats]:
    """Return what of a batch has a say in the cuts, beside its rows."""
    numbers = {}
    if (weight := _row_weight(batch, n_rows)) is not None:
        numbers["weight"] = np.array(weight, np.float64).reshape(-1)
    if supervised and batch.get("label") is not None:
        numbers["label"] = np.array(target_of(batch["label"], n_rows))
    return numbers


def _check_given_by_batches(kwargs: Mapping[str, Any]) -> None:
    for name in ("label", "weight", "base_margin", *_NOT_IN_BATCHES):
        if kwargs.get(name) is not None:
            raise ValueError(f"{name} of a DataIter is specified as batch argument: its next() gives it to input_data")


def _check_no_columns(columns: Sequence[str] | None) -> None:
    if columns is not None:
        raise ValueError("columns is for data that comes in batches, as files or by a function: select them yourself")


def from_native(dmatrix: xgb.DMatrix) -> Bins:
    """Return the cuts that a QuantileDMatrix uses, boostbins' or XGBoost's own; categorical features are left out.

    As `x <= cut`, so that each is the float32 before XGBoost's. The last one of XGBoost, above all values, is left out.
    """
    if not isinstance(dmatrix, xgb.DMatrix):
        raise TypeError(f"dmatrix must be an xgboost.QuantileDMatrix, got {type(dmatrix).__name__}")
    used = _native_cuts(dmatrix)
    if (bins := getattr(dmatrix, "bins_", None)) is not None:
        return Bins([used[p][: len(cuts)] for p, cuts in zip(used, bins.cuts, strict=True)], bins.names)
    names = dmatrix.feature_names
    return Bins(used.values(), [f"x{place}" if names is None else names[place] for place in used])


# ---- the data, as XGBoost sees it


def _taken_by_quantile_matrices(data: Any) -> Any:
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


class _Features:
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
        self.categorical = [place for place, kind in enumerate(self.types or []) if kind == "c"]
        self.n_categories = {}
        for place in self.categorical:
            if place in named:
                self.n_categories[place] = int(few.get_data()[:, [place]].data.max(initial=0)) + 1
            else:
                self.n_categories[place] = _n_categories(data, place, missing)

    def add(self, other: _Features, where: str) -> None:
        """Take in the categories of more rows, which must have the same features."""
        for said in ("n_features", "names", "categorical"):
            mine, others = getattr(self, said), getattr(other, said)
            if mine != others and None not in (mine, others):
                raise ValueError(f"{where} has other features than the first: {said} were {mine}, and are {others}")
        self.n_categories = {place: max(n, other.n_categories[place]) for place, n in self.n_categories.items()}

    def reference(self, columns: dict[int, NDArray[np.float32]], max_bin: int) -> xgb.QuantileDMatrix:
        """Return a matrix whose cuts are these values."""
        columns |= {place: np.arange(n, dtype=np.float32) for place, n in self.n_categories.items()}
        return _reference(
            columns, self.n_features, max_bin, feature_names=self.names, feature_types=self.types,
            enable_categorical=bool(self.categorical), nthread=self.n_threads,
        )  # fmt: skip


def _named_categories(data: Any) -> list[int]:
    """Return the places of a frame's categorical columns, which XGBoost numbers itself."""
    if not hasattr(data, "columns"):
        return []
    import narwhals as nw

    kinds = nw.from_native(data, eager_only=True).schema.values()
    return [place for place, kind in enumerate(kinds) if isinstance(kind, nw.Categorical | nw.Enum)]


def _rows_with_each_category(data: Any, named: list[int]) -> Any:
    """Return the first rows, and those where a category occurs for the first time."""
    if not named:
        return first_rows(data, 2)
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True)
    chosen = np.zeros(len(frame), bool)
    chosen[:2] = True
    for place in named:
        chosen |= frame[:, place].is_first_distinct().to_numpy()
    return frame.filter(chosen.tolist()).to_native()


def _n_categories(data: Any, place: int, missing: float) -> int:
    """Return how many categories a column of numbers has."""
    everything = _seen_by_xgboost(data, [], missing)
    low, high, _ = ranges(everything.chosen([everything.places.index(place)]))
    if low[0] < 0:
        raise ValueError(f"categories must not be negative, and column {place} has {low[0]:g}: number them from 0")
    return int(np.nan_to_num(high[0])) + 1


def _seen_by_xgboost(data: Any, categorical: list[int], missing: float | None) -> Table:
    return feature_table(data, categorical).seen(_seen_as(missing))


def _seen_as(missing: float | None) -> Callable[[Column], Column]:
    """Return how XGBoost sees a column, where a value may stand for missing."""
    if missing is None or np.isnan(missing):
        return lambda column: as_float32(rest_missing(column))
    mark = with_missing(float(np.float32(missing)))
    return lambda column: mark(as_float32(rest_missing(column)))


def _checked_max_bin(max_bin: Any) -> int:
    max_bin = MAX_BIN if max_bin is None else max_bin
    if not isinstance(max_bin, int | np.integer):
        raise TypeError(f"max_bin must be a whole number, got {max_bin!r}")
    return int(max_bin)  # NumPy's go into no JSON


def bins_of_summary(
    bin_method: str | Method | Bins,
    summary: TableSummary,
    max_bin: int,
    total_bins: int | None,
    n_threads: int | None = None,
) -> Bins:
    """Return the bins that the flag asks for, of a table that is summarized as XGBoost sees it."""
    return summarized_bins(
        bin_method,
        summary,
        [max_bin - 1] * len(summary),
        total_bins=total_bins,
        rule=IN_FLOAT32,
        limit=f"max_bin={max_bin}",
        n_threads=n_threads,
    )


def _existing_folder(cache: str | os.PathLike[str] | None) -> str | None:
    if cache is None:
        return None
    try:
        Path(cache).mkdir(parents=True, exist_ok=True)
    except (OSError, TypeError) as error:
        raise ValueError(f"cache must be a folder; {cache!r} cannot be one: {error}") from None
    return os.fspath(cache)


def _row_weight(kwargs: dict[str, Any], n_rows: int) -> NDArray[Any] | None:
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


# ---- the reference


def _above(extent: Ranges, bins: Bins) -> Floats:
    """Return a last cut for each column, above all values and cuts; NaN where there is no room, or nothing below."""
    last = np.array([cuts[-1] if len(cuts) else np.nan for cuts in bins.cuts])
    high = np.fmax(extent.high, last).astype(np.float32)
    with np.errstate(over="ignore"):
        above = np.minimum(high + np.abs(high) + np.float32(1e-5), _GREATEST)  # as XGBoost places its own
    above = np.nextafter(above, np.float32(-np.inf)).astype(np.float64)
    return np.where(above > np.fmax(last, -np.inf), above, np.nan)


def _reference_columns(places: Sequence[int], bins: Bins, extent: Ranges) -> dict[int, NDArray[np.float32]]:
    """Return the values that make XGBoost cut as asked: one below all cuts, and each cut as XGBoost's."""
    columns = {}
    above = _above(extent, bins)
    for i, place in enumerate(places):
        cuts = _next_up(np.append(bins.cuts[i], above[i][np.isfinite(above[i])]))
        if len(cuts):
            below = np.nextafter(cuts[0], np.float32(-np.inf))
            columns[place] = np.append(np.fmin(np.float32(extent.low[i]), below), cuts)
    return columns


def _reference(
    columns: dict[int, NDArray[np.float32]], n_features: int, max_bin: int, **options: Any
) -> xgb.QuantileDMatrix:
    """Return a matrix whose cuts are these values."""
    matrix = np.full((max(map(len, columns.values()), default=1) or 1, n_features), np.nan, np.float32)
    for place, column in columns.items():
        matrix[: len(column), place] = column
    return xgb.QuantileDMatrix(matrix, max_bin=max_bin, **options)


def _check_cuts(matrix: xgb.DMatrix, places: Sequence[int], bins: Bins, extent: Ranges) -> None:
    """Refuse to train on other cuts than those asked for."""
    asked = {
        place: np.append(cuts, top) if np.isfinite(top) else cuts
        for place, cuts, top in zip(places, bins.cuts, _above(extent, bins), strict=True)
    }
    LIBRARY.compare(asked, _native_cuts(matrix), bins.names)


def last_thresholds(extent: Ranges, bins: Bins) -> NDArray[np.float32]:
    """Return a threshold for each column that parts missing values from all others; NaN where there is no room."""
    return _next_up(_above(extent, bins))


def _next_up(cuts: Floats) -> NDArray[np.float32]:
    return np.nextafter(cuts.astype(np.float32), np.float32(np.inf))


def _native_cuts(dmatrix: xgb.DMatrix) -> dict[int, Floats]:
    """Return the cuts of the numeric features by place, in our form, without XGBoost's ends."""
    start, values = dmatrix.get_quantile_cut()
    types = dmatrix.feature_types or ["float"] * (len(start) - 1)
    found = {place: values[start[place] : start[place + 1]][1:-1] for place, kind in enumerate(types) if kind != "c"}
    return {p: np.nextafter(cuts, np.float32(-np.inf)).astype(np.float64) + 0.0 for p, cuts in found.items()}


# ---- the estimators


def obstacle_in(params: Mapping[str, Any]) -> str:
    """Return what of XGBoost's parameters takes no ready cuts, as `cuts_are_ours` is told; empty if nothing."""
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


class _Flag(Flagged, XGBModel):
    """Stands between a class of XGBoost's and `XGBModel`: makes the training matrix ours."""

    def _create_dmatrix(self, ref: xgb.DMatrix | None, **kwargs: Any) -> xgb.DMatrix:
        if ref is not None or not self._begin_fit(obstacle_in(self.get_xgb_params())):
            return super()._create_dmatrix(ref=ref, **kwargs)
        if isinstance(kwargs["data"], xgb.DMatrix):
            raise TypeError("X must be data, not a ready-made DMatrix: its cuts are fixed. Give it to xgboost.train")
        matrix = QuantileDMatrix(
            bin_method=self.bin_method,
            bin_cache=self.bin_cache,
            total_bins=self.total_bins,
            n_classes=getattr(self, "n_classes_", None),
            nthread=self.n_jobs,
            max_bin=self.max_bin,
            **kwargs,
        )
        if hasattr(matrix, "bins_"):
            self.bins_ = matrix.bins_
        return matrix

    def load_model(self, fname: Any) -> None:
        """Load a model; what bins it was trained on is not in it."""
        self.__dict__.pop("bins_", None)
        super().load_model(fname)

    def get_xgb_params(self) -> dict[str, Any]:
        """Return the parameters for XGBoost's core."""
        params = super().get_xgb_params()
        return {key: value for key, value in params.items() if key not in FLAGS}


@with_flag("`max_bin` less one is the number of bins")
class XGBRegressor(xgb.XGBRegressor, _Flag):
    """`xgboost.XGBRegressor` with cuts by `bin_method`."""


@with_flag("`max_bin` less one is the number of bins")
class XGBClassifier(xgb.XGBClassifier, _Flag):
    """`xgboost.XGBClassifier` with cuts by `bin_method`."""


@with_flag("`max_bin` less one is the number of bins")
class XGBRanker(xgb.XGBRanker, _Flag):
    """`xgboost.XGBRanker` with cuts by `bin_method`."""


if hasattr(xgb, "XGBRFRegressor"):  # deprecated since 3.4, to be removed

    @with_flag("`max_bin` less one is the number of bins")
    class XGBRFRegressor(xgb.XGBRFRegressor, _Flag):
        """`xgboost.XGBRFRegressor` with cuts by `bin_method`."""

    @with_flag("`max_bin` less one is the number of bins")
    class XGBRFClassifier(xgb.XGBRFClassifier, _Flag):
        """`xgboost.XGBRFClassifier` with cuts by `bin_method`."""

    __all__ += ["XGBRFClassifier", "XGBRFRegressor"]
