"""`QuantileDMatrix` and `ExtMemQuantileDMatrix`: XGBoost's own, with cuts by `bin_method`."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boostbins._threads import Progress
from boostbins.adapters.params import DEFAULT, BinMethod, check_binning_params, cuts_are_ours, threads_of
from boostbins.adapters.requested import FLOAT32, requested_bins
from boostbins.adapters.two_pass import stream_of
from boostbins.bins import Bins
from boostbins.cache import BinCache
from boostbins.methods.budget import Total, TotalBins
from boostbins.summary.ranges import ranges_of
from boostbins.xgboost._native import LIBRARY, xgb
from boostbins.xgboost.batches import Asked, Iterated, Streamed, check_given_by_batches
from boostbins.xgboost.features import (
    Features,
    checked_max_bin,
    obstacle_in,
    row_weight,
    seen_by_xgboost,
    taken_by_quantile_matrices,
)
from boostbins.xgboost.reference import check_cuts, native_cuts, reference_columns


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
    total_bins : int or "auto", optional
        At most this many bins in all columns together: many for those that the target needs finely, few for others;
        "auto" for as many as are enough. See `fit_bins`. A column may then have 4,095, if no `max_bin` is given: give
        `xgb.train` a `max_bin` of 4096.
    average_bins : int, optional
        `total_bins` as an average per column.
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
        total_bins: TotalBins = None,
        average_bins: float | None = None,
        n_classes: int | None = None,
        max_bin: int | None = None,
        columns: Sequence[str] | None = None,
        progress: Progress | None = None,
        **kwargs: Any,
    ) -> None:
        total = Total(total_bins, average_bins)
        check_binning_params(bin_method, bin_cache, total)
        stream = None if isinstance(data, xgb.DMatrix | xgb.DataIter) else stream_of(data)
        if bin_cache is not None and (stream is not None or isinstance(data, xgb.DataIter)):
            raise ValueError(
                "bin_cache cannot know data that comes in batches: fit_bins once, and give its Bins instead"
            )
        asked = Asked(bin_method, total, n_classes, max_bin)
        if stream is not None:
            streamed = Streamed(stream, label, columns, asked, kwargs, progress)
            super().__init__(streamed.iterator(), max_bin=streamed.max_bin, ref=streamed.ref, **streamed.options)
            streamed.check(self)
            return
        _check_no_columns(columns)
        obstacle = obstacle_in({"max_bin": max_bin})
        if getattr(data, "shape", (1,))[0] == 0:
            obstacle = "data has no rows to find cuts on: give it some"
        if kwargs.get("ref") is not None or not cuts_are_ours(bin_method, obstacle, total):
            super().__init__(data, label, max_bin=max_bin, **kwargs)
            return
        if isinstance(data, xgb.DMatrix):
            raise TypeError(
                f"data must be an array, a frame, a sparse matrix, a file or a DataIter for bin_method, got "
                f"{type(data).__name__}: give the data itself, or bin_method=None"
            )
        if isinstance(data, xgb.DataIter):
            iterated = Iterated(data, asked, {"label": label, **kwargs}, progress)
            super().__init__(data, max_bin=iterated.max_bin, **{**kwargs, "ref": iterated.reference})
            iterated.check(self)
            return
        data = taken_by_quantile_matrices(data)
        max_bin = checked_max_bin(max_bin, total)
        n_threads = threads_of(kwargs.get("nthread"))
        features = Features(data, kwargs)
        table = seen_by_xgboost(data, features.categorical, kwargs.get("missing"))
        ranges = ranges_of(table, n_threads)
        bins = requested_bins(
            bin_method,
            table,
            [max_bin - 1] * len(table),
            sample_weight=row_weight(kwargs, table.n_rows),
            label=label,
            n_classes=n_classes,
            bin_cache=bin_cache,
            total=total.of(len(table)),
            cut_format=FLOAT32,
            limit=f"max_bin={max_bin!r}",
            n_threads=n_threads,
        )
        reference = features.reference(reference_columns(table.feature_indices, bins, ranges), max_bin)
        super().__init__(data, label, max_bin=max_bin, **{**kwargs, "ref": reference})
        check_cuts(self, table.feature_indices, bins, ranges)
        self.bins_ = bins


class ExtMemQuantileDMatrix(getattr(xgb, "ExtMemQuantileDMatrix", object)):  # type: ignore[misc]
    """`xgboost.ExtMemQuantileDMatrix` with cuts by `bin_method`: what XGBoost trains on stays on disk.

    For data that does not fit into memory even as the numbers of its bins; training reads it from disk again for every
    level of a tree, so that `QuantileDMatrix` is the faster one where it fits. Needs XGBoost 3.

    Parameters
    ----------
    data, label, bin_method, total_bins, average_bins, n_classes, max_bin, columns, progress
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
        total_bins: TotalBins = None,
        average_bins: float | None = None,
        n_classes: int | None = None,
        max_bin: int | None = None,
        columns: Sequence[str] | None = None,
        cache: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        **kwargs: Any,
    ) -> None:
        if LIBRARY.is_before("3"):
            raise ImportError(f"ExtMemQuantileDMatrix needs XGBoost 3, and {LIBRARY.version} is installed")
        total = Total(total_bins, average_bins)
        check_binning_params(bin_method, None, total)
        asked = Asked(bin_method, total, n_classes, max_bin)
        if isinstance(data, xgb.DataIter):
            self._init_from_iterator(data, asked, {"label": label, **kwargs}, columns, cache, progress)
            return
        stream = None if isinstance(data, xgb.DMatrix) else stream_of(data)
        if stream is None:
            raise TypeError(
                f"data must come in batches, as a file, a DataIter or a function that returns an iterator of tables, "
                f"got {type(data).__name__}: use QuantileDMatrix for what is in memory"
            )
        streamed = Streamed(stream, label, columns, asked, kwargs, progress)
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
        asked: Asked,
        kwargs: dict[str, Any],
        columns: Sequence[str] | None,
        cache: str | os.PathLike[str] | None,
        progress: Progress | None,
    ) -> None:
        _check_no_columns(columns)
        if cache is not None:
            raise ValueError(f"cache={cache!r} is not for a DataIter: give that a cache_prefix")
        check_given_by_batches(kwargs)
        options = {name: value for name, value in kwargs.items() if value is not None}
        if "ref" in options or not cuts_are_ours(asked.method, obstacle_in({"max_bin": asked.max_bin}), asked.total):
            super().__init__(data, max_bin=asked.max_bin, **options)
            return
        iterated = Iterated(data, asked, options, progress)
        super().__init__(data, max_bin=iterated.max_bin, ref=iterated.reference, **options)
        iterated.check(self)


def _check_no_columns(columns: Sequence[str] | None) -> None:
    if columns is not None:
        raise ValueError("columns is for data that comes in batches, as files or by a function: select them yourself")


def from_native(dmatrix: xgb.DMatrix) -> Bins:
    """Return the cuts that a QuantileDMatrix uses, boostbins' or XGBoost's own; categorical features are left out.

    As `x <= cut`, so that each is the float32 before XGBoost's. The last one of XGBoost, above all values, is left out.
    """
    if not isinstance(dmatrix, xgb.DMatrix):
        raise TypeError(f"dmatrix must be an xgboost.QuantileDMatrix, got {type(dmatrix).__name__}")
    used = native_cuts(dmatrix)
    if (bins := getattr(dmatrix, "bins_", None)) is not None:
        return Bins([used[p][: len(cuts)] for p, cuts in zip(used, bins.cuts, strict=True)], bins.names)
    names = dmatrix.feature_names
    return Bins(used.values(), [f"x{index}" if names is None else names[index] for index in used])


def _existing_folder(cache: str | os.PathLike[str] | None) -> str | None:
    if cache is None:
        return None
    try:
        Path(cache).mkdir(parents=True, exist_ok=True)
    except (OSError, TypeError) as error:
        raise ValueError(f"cache must be a folder; {cache!r} cannot be one: {error}") from None
    return os.fspath(cache)
