"""`Dataset`: LightGBM's own, built with cuts by `bin_method`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbins._threads import Progress
from boostbins.adapters.params import DEFAULT, BinMethod, Default, check_binning_params, cuts_are_ours
from boostbins.adapters.requested import check_budgets, requested_bins, summarized_bins
from boostbins.adapters.two_pass import FirstPass, Rows, stream_of
from boostbins.bins import Bins
from boostbins.cache import BinCache
from boostbins.fit import of_target
from boostbins.lightgbm._native import LIBRARY, ZERO, aliases, lgb, quietly, sampled_rows
from boostbins.lightgbm.binary_format import StoredFeature, is_binary, stored_features, write_parameters
from boostbins.lightgbm.features import (
    TableRows,
    batches_of,
    categorical_indices,
    head_of,
    rows_at,
    seen_by_lightgbm,
    sequences_in,
)
from boostbins.lightgbm.settings import Settings, budgets_of, cut_format_of, of_enough_rows
from boostbins.lightgbm.text_files import COLUMN_PARAMETERS, categorical_in_text, is_text, read_text
from boostbins.methods.budget import Total, TotalBins
from boostbins.sources.stream import Stream
from boostbins.sources.table import Table, dense, is_sparse, with_missing
from boostbins.sources.values import check_none_missing
from boostbins.summary.ranges import Ranges, ranges_of, ranges_of_summary

_ENOUGH = 1000  # rows, to see what share a bin has
_NEARLY_HALF = 0.4
_PER_ROW = ("label", "weight", "init_score")
_SET_WHEN_BUILT = ("data", "params", "reference", "feature_name", "pandas_categorical", "_predictor", *_PER_ROW)


class Cuts(NamedTuple):
    """The cuts of a dataset's features."""

    bins: Bins
    feature_indices: Sequence[int]  # of the columns of the bins among all features
    ranges: Ranges
    n_features: int


class Dataset(lgb.Dataset):
    """`lightgbm.Dataset` with cuts by `bin_method`.

    Like LightGBM's own it is built when first needed, with the parameters of `lgb.train` or `lgb.cv`; `max_bin` is
    one of them. Validation sets made from it (``reference=``, ``create_valid``) and the folds of `lgb.cv` share its
    cuts.

    Parameters
    ----------
    data, label, *args, **kwargs
        As for `lightgbm.Dataset`. `data` is all that LightGBM takes; a text file is read as LightGBM does, by its
        parameters (`header`, `label_column`, ...), and a binary one has its cuts. Or it comes in batches, as for
        `fit_bins`: a Parquet file, a folder of them, an Arrow dataset, a function that returns an iterator of tables;
        then `label`, `weight` and `init_score` may be names of columns (in a text file too), and only the bins' numbers
        are held in memory (a byte per value).
    bin_method : str, function, Bins or None
        "auto", "hybrid", "kmeans", "optimal", "quantile", "uniform", a function ``(summary, max_bins) -> cuts``, ready
        bins, or None for LightGBM's own.
    bin_cache : None, "memory" or a folder
        Where bins are kept for when the same is asked of the same data again.
    total_bins : int or "auto", optional
        At most this many bins in all columns together: many for those that the target needs finely, few for others;
        "auto" for as many as are enough. See `fit_bins`. A column may then have 4,095, if no `max_bin` is given (on a
        GPU: 255).
    average_bins : int, optional
        `total_bins` as an average per column.
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
        total_bins: TotalBins = None,
        average_bins: float | None = None,
        columns: Sequence[str] | None = None,
        progress: Progress | None = None,
        **kwargs: Any,
    ) -> None:
        check_binning_params(bin_method, bin_cache, Total(total_bins, average_bins))
        super().__init__(data, label, *args, **kwargs)
        self.bin_method = bin_method
        self.bin_cache = bin_cache
        self.total_bins = total_bins
        self.average_bins = average_bins
        self.columns = columns
        self.progress = progress
        self.bins_: Bins | None = None
        self.data: Any
        self.feature_name: Any
        self.params: Any
        self.reference: lgb.Dataset | None
        self._sample: NDArray[np.float64] | None = None  # from which LightGBM is to learn of the columns

    def construct(self) -> Dataset:
        """Find the cuts, and build LightGBM's dataset with them."""
        is_new = self._handle is None and self.used_indices is None and self.data is not None
        if not is_new:
            super().construct()
            return self
        if self.params:  # LightGBM compares them
            self.params = {key: v.tolist() if isinstance(v, np.ndarray) else v for key, v in self.params.items()}
        settings = Settings(self.params or {}, Total(self.total_bins, self.average_bins))
        path = Path(self.data) if isinstance(self.data, str | os.PathLike) and Path(self.data).is_file() else None
        if path is not None and is_binary(path):
            self._load_binary(path)
            return self
        read_by_lightgbm = path is not None and is_text(path) and not self._names_columns(settings)
        stream = None if read_by_lightgbm or sequences_in(self.data) else stream_of(self.data)
        if stream is not None:
            self._construct_from(stream, settings)
            return self
        if self.columns is not None:
            raise ValueError("columns is for data that comes in batches: select those of a table yourself")
        if self.reference is not None or not cuts_are_ours(self.bin_method, settings.obstacle(), settings.total):
            super().construct()
            return self
        settings.check()
        if path is not None:
            self._construct_text(path, settings)
        elif (sequences := sequences_in(self.data)) is not None:
            self._construct_sequences(sequences, settings)
        else:
            self._construct_table(settings)
        return self

    def _names_columns(self, settings: Settings) -> bool:
        """Return whether columns of a file are named, which is our way to read text, and not LightGBM's."""
        named = [name for name in _PER_ROW if isinstance(getattr(self, name), str)]
        named += ["columns"] * (self.columns is not None)
        if self.reference is not None and getattr(self.reference, "_columns_read", None) is not None:
            named.append("reference")
        read_by = [name for name in COLUMN_PARAMETERS if settings.get(name, None) is not None]
        if named and read_by:
            raise ValueError(
                f"{read_by[0]}={settings.get(read_by[0], None)!r} tells LightGBM how to read the file, and {named[0]} "
                f"tells boostbins: leave out one of them"
            )
        return bool(named)

    # ---- what the cuts are found on

    def _construct_table(self, settings: Settings) -> None:
        """Build the dataset from a table in memory."""
        head = head_of(self, settings)
        categorical = categorical_indices(head, settings)
        data, table = self.data, seen_by_lightgbm(self.data, settings, categorical)
        n_features = head.num_feature()
        cuts = self._cuts_of(table, settings, n_features, self.weight, self.label)
        if not categorical and not is_sparse(data) and (enough := _few_rows(table, cuts, settings)):
            self._build(cuts, settings, bin_construct_sample_cnt=enough)
            return
        if table.n_rows <= settings.n_sampled:
            self._build(cuts, settings)
            return
        some = sampled_rows(table.n_rows, settings.params)
        if _shows_all(table, some, cuts.ranges):
            self._build(cuts, settings)
        elif is_sparse(data) or settings.is_on("linear_tree", False):  # cannot be handed over
            self._build(cuts, settings, bin_construct_sample_cnt=table.n_rows)
        else:
            rows = TableRows(table, data, categorical, n_features)
            with self._changed(categorical_feature=categorical or "auto", _predictor=None) as before:
                if hasattr(data, "columns"):
                    self.feature_name = head.get_feature_name()
                self._hand_over(rows, rows[some], cuts, settings)
                if before["_predictor"] is not None:
                    self._set_init_score_by_predictor(predictor=before["_predictor"], data=data, used_indices=None)
                self.pandas_categorical = head.pandas_categorical

    def _construct_sequences(self, sequences: list[lgb.Sequence], settings: Settings) -> None:
        """Build the dataset from LightGBM's Sequences, which are read once more than LightGBM does."""
        head = head_of(self, settings)
        categorical = categorical_indices(head, settings)
        numbers = [index for index in range(head.num_feature()) if index not in categorical]
        stream = stream_of(lambda: (batch[:, numbers] for batch in batches_of(sequences)))
        rows = self._rows(stream, None, settings, ("label", "weight"))
        cuts, found = self._cuts_of_rows(rows, settings, numbers)
        cuts = cuts._replace(n_features=head.num_feature())
        if found.n_rows > settings.n_sampled:
            sample = rows_at(sequences, sampled_rows(found.n_rows, self.get_params()))
            if not _shows_all(seen_by_lightgbm(sample, settings, categorical), np.arange(len(sample)), cuts.ranges):
                with self._changed():
                    self._hand_over(sequences, sample, cuts, settings)
                return
        self._build(cuts, settings)

    def _construct_text(self, path: Path, settings: Settings) -> None:
        """Have LightGBM load a text file, with cuts for what it holds."""
        text = read_text(path, settings)
        categorical = categorical_in_text(settings, self.categorical_feature, text.names)
        table = seen_by_lightgbm(text.data, settings, sorted({*categorical, *text.left_out}))
        table = table.renamed(text.names)
        weight = text.weight if self.weight is None else self.weight
        label = text.label if self.label is None else self.label
        cuts = self._cuts_of(table, settings, text.data.shape[1], weight, label)
        del text
        self._build(cuts, settings, bin_construct_sample_cnt=max(table.n_rows, settings.n_sampled))
        if self.num_data() != table.n_rows:
            raise RuntimeError(f"LightGBM reads {self.num_data():,} rows of {path}, and boostbins {table.n_rows:,}")

    def _load_binary(self, path: Path) -> None:
        """Load a file of LightGBM's own, in which the cuts are fixed."""
        own = f"{path} is a Dataset that was saved, and has its cuts: give the data itself"
        if self.columns is not None:
            raise ValueError(f"columns: {own}")
        if self.reference is None and not isinstance(self.bin_method, Default):
            cuts_are_ours(self.bin_method, own, Total(self.total_bins, self.average_bins))
        super().construct()
        if self.bin_method is not None:
            self.bins_ = from_native(self)

    def _cuts_of(self, table: Table, settings: Settings, n_features: int, weight: Any, label: Any) -> Cuts:
        """Return the cuts that `bin_method` asks for, of a table as LightGBM sees it."""
        assert self.bin_method is not None
        ranges = ranges_of(table, settings.n_threads)
        budgets = budgets_of(ranges, settings, table.feature_indices)
        bins = requested_bins(
            self.bin_method,
            table,
            budgets,
            sample_weight=weight,
            label=label,
            n_classes=settings.n_classes,
            bin_cache=self.bin_cache,
            total=settings.total_of(budgets, table.feature_indices),
            cut_format=cut_format_of(ranges)
            if isinstance(self.bin_method, Bins)
            else of_enough_rows(table, ranges, settings),
            limit=settings.limit(),
            n_threads=settings.n_threads,
        )
        return Cuts(bins, table.feature_indices, ranges, n_features)

    def _rows(
        self,
        stream: Stream | None,
        columns: Sequence[str] | None,
        settings: Settings,
        arguments: Sequence[str] = _PER_ROW,
    ) -> Rows:
        assert stream is not None
        per_row = {name: value for name in arguments if (value := getattr(self, name)) is not None}
        return Rows(stream, columns, per_row, with_missing(0.0) if settings.zero_as_missing else lambda column: column)

    def _cuts_of_rows(
        self, rows: Rows, settings: Settings, feature_indices: Sequence[int] | None = None
    ) -> tuple[Cuts, FirstPass]:
        """Return the cuts that `bin_method` asks for, of rows that come in batches: this is the first pass."""
        assert self.bin_method is not None
        check_budgets([max(settings.max_bin - 3, 2)], f"max_bin={settings.max_bin}")
        if self.bin_cache is not None:
            raise ValueError(
                "bin_cache cannot know data that comes in batches: fit_bins once, and give its Bins instead"
            )
        if settings.min_data_in_bin > 1 and not isinstance(self.bin_method, Bins):
            raise ValueError(
                f"min_data_in_bin={settings.min_data_in_bin} needs a table in memory: load the data, or leave it out"
            )
        kept = of_target(self.bin_method, settings.total)
        summary, found = rows.summarize(settings.max_bin, settings.n_threads, self.progress, kept, settings.n_classes)
        ranges = ranges_of_summary(summary)
        feature_indices = range(len(summary)) if feature_indices is None else feature_indices
        budgets = budgets_of(ranges, settings, feature_indices)
        bins = summarized_bins(
            self.bin_method,
            summary,
            budgets,
            total=settings.total_of(budgets, feature_indices),
            cut_format=cut_format_of(ranges),
            limit=settings.limit(),
            n_threads=settings.n_threads,
        )
        return Cuts(bins, feature_indices, ranges, len(summary)), found

    # ---- LightGBM builds

    def _build(self, cuts: Cuts, settings: Settings, **parameters: Any) -> None:
        """Have LightGBM build the dataset from the data that it was given, and prove that it has the cuts."""
        before = {name: getattr(self, name) for name in _SET_WHEN_BUILT}
        self._construct_forced(cuts, settings, parameters)
        if _is_bundled_wrongly(stored := _stored(self)):
            self._free_handle()
            self.__dict__.update(before)
            self._construct_forced(cuts, settings, {**parameters, "enable_bundle": False})
            stored = _stored(self)
        self._prove(cuts, stored)

    def _construct_forced(self, cuts: Cuts, settings: Settings, parameters: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(prefix="boostbins-") as folder:
            changed = {**_forced(cuts, settings, Path(folder) / "cuts.json"), **parameters}
            self.params = settings.replaced(**changed)
            self.data = list(self.data) if isinstance(self.data, list) else self.data  # which LightGBM 4.3 changes
            try:
                super().construct()
            finally:  # nothing of ours may pass on
                names = {alias for name in changed for alias in aliases(name)}
                given = {name: value for name, value in settings.params.items() if name in names}
                self.params = {key: value for key, value in self.params.items() if key not in changed} | given

    def _prove(self, cuts: Cuts, stored: Sequence[StoredFeature]) -> None:
        """Refuse to train on other cuts than those asked for; features that LightGBM does not use have none."""
        used = {feature.feature_index: feature.cuts for feature in stored if feature.cuts is not None}
        asked = dict(zip(cuts.feature_indices, zip(cuts.bins.names, cuts.bins.cuts, strict=True), strict=True))
        kept = {index: asked[index] for index in asked if index in used}
        LIBRARY.compare({p: c for p, (_, c) in kept.items()}, used, [name for name, _ in kept.values()])
        self.bins_ = cuts.bins

    # ---- or is handed the rows, and a sample of them

    def _construct_from(self, stream: Stream, settings: Settings) -> None:
        """Build the dataset from batches: one pass to find the cuts, one to hand over the rows."""
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
        if self.reference is None and (obstacle := settings.obstacle()):
            raise ValueError(obstacle)
        given = self.reference
        rows = self._rows(stream, self.columns if given is None else _columns_as_in(given, self.columns), settings)
        cuts, found = self._cuts_of_rows(rows, settings) if given is None else (None, rows.look())
        with self._changed():
            for name, values in found.numbers.items():
                if name == "label":
                    check_none_missing(int(np.isnan(values).sum()), name)
                if np.isnan(values).any():
                    raise ValueError(f"{name} has {np.isnan(values).sum():,} missing values: remove those rows")
                setattr(self, name, values.astype(np.float32) if name == "label" else values)
            if found.named and self.feature_name == "auto":
                self.feature_name = list(found.names) if given is None else given.get_feature_name()
            self._hand_over(_StreamRows(rows, found), found.sample, cuts, settings)
        if given is not None:
            self.bins_ = getattr(given, "bins_", None)
        self.data = None
        self._columns_read = found.names if found.named else None

    def _hand_over(
        self,
        rows: lgb.Sequence | list[lgb.Sequence],
        sample: NDArray[np.float64],
        cuts: Cuts | None,
        settings: Settings,
    ) -> None:
        """Build the dataset from rows that are handed to LightGBM, by a sample of them; or as the reference is."""
        if settings.is_on("linear_tree", False):
            raise ValueError("linear_tree needs the values themselves: load the data, and give a table")
        self.data, self._start_row = rows, 0
        if cuts is None:
            super().construct()
        else:
            self._sample = np.vstack([sample, _ends(cuts)])
            try:  # a bundle would be found out on the few rows of the sample
                self._construct_forced(cuts, settings, {"enable_bundle": False})
            finally:
                self._sample = None
            self._prove(cuts, _stored(self))
        if isinstance(rows, _StreamRows):
            rows.check_all_read()

    @contextmanager
    def _changed(self, **attributes: Any) -> Iterator[dict[str, Any]]:
        """Set attributes for the time of building; afterwards they are as before, as those given here are.

        Where it fails, all are, and the dataset can be built again.
        """
        before = {name: getattr(self, name) for name in (*_SET_WHEN_BUILT, "categorical_feature", "_start_row")}
        given = {name: before[name] for name in ("data", "reference", *attributes)}
        self.__dict__.update(attributes)
        try:
            yield given
        except BaseException:
            self._free_handle()
            self.__dict__.update(before)
            raise
        if self.free_raw_data:
            given["data"] = None
        self.__dict__.update(given)

    def get_params(self) -> dict[str, Any]:
        """Return the parameters that are for datasets."""
        return super().get_params() if self._sample is None else self.params  # type: ignore[no-any-return]

    def _create_sample_indices(self, total_nrow: int) -> NDArray[Any]:
        return super()._create_sample_indices(total_nrow=total_nrow) if self._sample is None else np.empty(0, np.int32)

    def _init_from_sample(self, sample_data: Any, sample_indices: Any, sample_cnt: int, total_nrow: int) -> Any:
        """Have LightGBM learn of the columns from our sample; LightGBM's warning that it is small is left out."""
        if self._sample is None:
            return super()._init_from_sample(sample_data, sample_indices, sample_cnt, total_nrow)
        sample, start = self._sample, super()._init_from_sample
        rows = [np.flatnonzero((np.abs(column) > ZERO) | np.isnan(column)) for column in sample.T]
        values = [np.ascontiguousarray(column[some]) for column, some in zip(sample.T, rows, strict=True)]
        self.params, params = {**self.params, "verbosity": -1}, self.params
        try:
            return quietly(lambda: start(values, [some.astype(np.int32) for some in rows], len(sample), total_nrow))
        finally:
            self.params = params

    # ---- what follows from it

    def create_valid(self, data: Any, *args: Any, **kwargs: Any) -> lgb.Dataset:
        """Return a validation set with the cuts of this one; of data that comes in batches too."""
        kwargs |= dict(zip(("label", "weight", "group", "init_score", "params", "position"), args, strict=False))
        return Dataset(data, reference=self, bin_method=self.bin_method, **kwargs)

    def save_binary(self, filename: Any) -> Dataset:
        """Write LightGBM's binary file."""
        is_new = not Path(filename).exists()  # or LightGBM warns, and does not write
        super().save_binary(filename)
        if is_new and self.bins_ is not None:
            settings = Settings(self.params or {})
            write_parameters(Path(filename), settings.n_sampled, settings.max_bin_by_feature)
        return self


class _StreamRows(lgb.Sequence):
    """Hands the rows of a stream over to LightGBM, which asks for them from the first to the last."""

    batch_size = 2**15

    def __init__(self, rows: Rows, found: FirstPass) -> None:
        self.n_rows = found.n_rows
        self.matrices = (rows.matrix(batch, np.float64) for batch in rows.batches())
        self.at_hand: Any = np.empty((0, len(found.names)))

    def __len__(self) -> int:
        return self.n_rows

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
    bins = getattr(dataset, "bins_", None)
    stored = {feature.feature_index: feature.cuts for feature in _stored(dataset)}
    every = {index: stored.get(index, np.empty(0)) for index in range(dataset.num_feature())}
    used = {index: cuts for index, cuts in every.items() if cuts is not None}
    if bins is not None and len(bins) == len(used):
        return Bins(used.values(), bins.names)
    known = dataset.get_feature_name()
    return Bins(used.values(), [known[index] for index in used])


# ---- how LightGBM is made to take the cuts


def _forced(cuts: Cuts, settings: Settings, path: Path) -> dict[str, Any]:
    """Return the parameters that make LightGBM cut as asked, on rows that show what there is in each column."""
    missing = cuts.ranges.missing & settings.missing_has_bin
    bounds, max_bin_by_feature = [], [settings.max_bin_of(index) for index in range(cuts.n_features)]
    for index, asked, has_missing in zip(cuts.feature_indices, cuts.bins.cuts, missing, strict=True):
        own = asked[np.abs(asked) > ZERO]
        # With any bin to spare, LightGBM adds quantiles; with one too few, it drops the last cuts.
        max_bin_by_feature[index] = int(max(len(asked) + 1, 3 if len(own) else 2) + has_missing)
        if len(own):
            bounds.append({"feature": index, "bin_upper_bound": own.tolist()})
    path.write_text(json.dumps(bounds))
    return {"forcedbins_filename": str(path), "max_bin_by_feature": max_bin_by_feature}


def _ends(cuts: Cuts) -> NDArray[np.float64]:
    """Return rows that show what LightGBM must know of each column: both signs, and missing values."""
    low, high, missing = cuts.ranges
    rows = np.zeros((3, cuts.n_features))
    for row, values in zip(rows, (low, high, np.where(missing, np.nan, low)), strict=True):
        row[list(cuts.feature_indices)] = values
    return rows


def _few_rows(table: Table, cuts: Cuts, settings: Settings) -> int:
    """Return how many rows are enough for LightGBM to look at, 0 if it needs all that it would: it sorts them.

    What it learns from rows, besides the cuts that it has, is which bin not to store (one with most rows), which
    columns to bundle (with mostly zeros) and which to leave out (without two parts that are large enough). In a table
    where no bin has nearly half of a column these questions do not arise.
    """
    n_rows = max(table.n_rows // 5 + 1, _ENOUGH)  # of fewer, LightGBM warns
    n_rows = min(n_rows, 100_000)
    if n_rows > min(table.n_rows, settings.n_sampled) // 2 or n_rows < 4 * settings.number("min_data_in_leaf", 20):
        return 0
    some = sampled_rows(table.n_rows, settings.replaced(bin_construct_sample_cnt=n_rows))
    if not _shows_all(table, some, cuts.ranges):
        return 0
    some = some[:: max(1, n_rows // (4 * _ENOUGH))]
    codes = (np.searchsorted(bounds, dense(table.read(i))[some]) for i, bounds in enumerate(cuts.bins.cuts))
    # Missing values are in the last bin here.
    return 0 if any(np.bincount(of_column).max() > _NEARLY_HALF * len(some) for of_column in codes) else n_rows


def _shows_all(table: Table, rows: NDArray[np.intp], ranges: Ranges) -> bool:
    """Return whether some rows show what LightGBM must know of each column: both signs, and missing values."""
    low, high, missing = ranges_of(table.map(lambda column: dense(column)[rows]))
    shown = ((low < -ZERO) == (ranges.low < -ZERO)) & ((high > ZERO) == (ranges.high > ZERO))
    return bool((shown & (missing == ranges.missing)).all())


# ---- what LightGBM uses


def _stored(dataset: lgb.Dataset) -> list[StoredFeature]:
    """Return the features that LightGBM uses, from a dataset of one row in its binary format."""
    row = dataset.subset([0], params={**(dataset.params or {}), "verbosity": -1})
    row.free_raw_data = True

    def read() -> bytes:
        row.construct()
        with tempfile.TemporaryDirectory(prefix="boostbins-") as folder:
            path = Path(folder) / "row.bin"
            row.save_binary(str(path))
            return path.read_bytes()

    return stored_features(quietly(read))


def _is_bundled_wrongly(stored: Sequence[StoredFeature]) -> bool:
    """Return whether LightGBM has put features into a bundle that may both have a value in one row.

    It errs where a bin that is not zero's has most rows of a feature, and is not stored for that: LightGBM then looks
    for the rows of the other bins among values that it has sorted meanwhile.
    """
    return any(feature.is_bundled and not feature.is_about_zero for feature in stored)


def _columns_as_in(training: lgb.Dataset, columns: Sequence[str] | None) -> Sequence[str] | None:
    """Return the columns of a validation set, in the order of the training set's; None for arrays without names."""
    names = training.construct().get_feature_name()
    bins = getattr(training, "bins_", None)
    known: Sequence[str] | None = bins.names if bins is not None and len(bins) == len(names) else names
    known = getattr(training, "_columns_read", known)
    if columns is not None and sorted(columns) != sorted(known or ()):
        raise ValueError(f"columns must be those of the training set, {list(known or ())}, got {list(columns)}")
    return known
