"""Data that comes in batches: a first pass for the cuts, and the passes that XGBoost makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from boostbins._threads import Progress
from boostbins.adapters.params import BinMethod, threads_of
from boostbins.adapters.requested import FLOAT32, check_budgets, summarized_bins, target_of
from boostbins.adapters.two_pass import Rows
from boostbins.bins import Bins
from boostbins.fit import cells_for, of_target
from boostbins.methods import Method
from boostbins.methods.budget import Total
from boostbins.sources.request import PerRow
from boostbins.sources.stream import Batch, Stream
from boostbins.sources.values import Floats
from boostbins.summary.ranges import ranges_of_summary
from boostbins.summary.table import TableSummary, summarize_stream
from boostbins.xgboost._native import xgb
from boostbins.xgboost.features import (
    Features,
    checked_max_bin,
    row_weight,
    seen_as,
    seen_by_xgboost,
    taken_by_quantile_matrices,
)
from boostbins.xgboost.reference import check_cuts, reference_columns, reference_matrix

NOT_IN_BATCHES = (
    "qid",
    "group",
    "label_lower_bound",
    "label_upper_bound",
    "feature_weights",
    "feature_types",
    "feature_names",
)


class Asked(NamedTuple):
    """The bins that are asked for."""

    method: BinMethod
    total: Total
    n_classes: int | None
    max_bin: int | None


class Streamed:
    """Data that comes in batches: what the first pass tells, and the second pass."""

    def __init__(
        self,
        stream: Stream,
        label: PerRow,
        columns: Sequence[str] | None,
        asked: Asked,
        kwargs: dict[str, Any],
        progress: Progress | None,
    ) -> None:
        self.options = dict(kwargs)
        per_row = {"label": label, **{name: self.options.pop(name, None) for name in ("weight", "base_margin")}}
        if odd := [name for name in NOT_IN_BATCHES if self.options.pop(name, None) is not None]:
            raise ValueError(f"{odd[0]} cannot be given for data that comes in batches: load it, and give a table")
        missing = self.options.get("missing")
        self.ref = self.options.pop("ref", None)
        self.max_bin = checked_max_bin(asked.max_bin, asked.total)
        self.bins: Bins | None = None
        if self.ref is not None:
            self.bins = getattr(self.ref, "bins_", None)
            columns = self.ref.feature_names if columns is None else columns
        self.rows = Rows(stream, columns, per_row, seen_as(missing))
        if self.ref is None and asked.method is not None:
            check_budgets([self.max_bin - 1], f"max_bin={self.max_bin}")  # before anything is read
            n_threads = threads_of(self.options.get("nthread"))
            kept = of_target(asked.method, asked.total)
            summary, found = self.rows.summarize(self.max_bin, n_threads, progress, kept, asked.n_classes)
            self.bins = bins_of_summary(asked.method, summary, self.max_bin, asked.total, n_threads)
            self.ranges = ranges_of_summary(summary)
            values = reference_columns(range(len(summary)), self.bins, self.ranges)
            names = list(summary.names) if found.named else None
            self.ref = reference_matrix(
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
            check_cuts(matrix, range(len(self.bins)), self.bins, self.ranges)
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
        input_data(data=self.rows.matrix(batch, np.float32), feature_names=names, **batch.per_row)
        return True


class Iterated:
    """A `DataIter` of the user's: what a first pass over it tells. The later ones are XGBoost's."""

    features: Features | None = None  # of all batches together
    feature_indices: tuple[int, ...]
    n_rows = 0

    def __init__(self, iterator: xgb.DataIter, asked: Asked, kwargs: dict[str, Any], progress: Progress | None) -> None:
        assert asked.method is not None
        check_given_by_batches(kwargs)
        self.max_bin = checked_max_bin(asked.max_bin, asked.total)
        check_budgets([self.max_bin - 1], f"max_bin={self.max_bin}")  # before anything is read
        n_threads = threads_of(kwargs.get("nthread"))
        kept = of_target(asked.method, asked.total)
        summary = summarize_stream(
            self._looked_at(_given_by(iterator), kwargs, any(kept)),
            weight="weight",
            target="label" if any(kept) else "",
            n_classes=asked.n_classes,
            max_cells=cells_for(self.max_bin),
            of_target=kept,
            n_threads=n_threads,
            progress=progress,
        )
        if self.features is None:
            raise ValueError("data gave no rows: the DataIter's next() must hand over some with input_data")
        self.bins = bins_of_summary(asked.method, summary, self.max_bin, asked.total, n_threads)
        self.ranges = ranges_of_summary(summary)
        self.reference = self.features.reference(
            reference_columns(self.feature_indices, self.bins, self.ranges), self.max_bin
        )

    def _looked_at(self, given: Iterator[dict[str, Any]], kwargs: dict[str, Any], supervised: bool) -> Iterator[Batch]:
        for number, batch in enumerate(given):
            where = f"batch {number} of data"
            data = deepcopy(taken_by_quantile_matrices(batch["data"]))  # the next batch may be in the same memory
            if data.shape[0] == 0:
                continue
            features = Features(data, {**kwargs, **batch})
            table = seen_by_xgboost(data, features.categorical, kwargs.get("missing"))
            numbers = _numbers_per_row(batch, table.n_rows, supervised)
            if self.features is None:
                self.features, self.feature_indices, names, per_row = (
                    features,
                    table.feature_indices,
                    table.names,
                    numbers.keys(),
                )
            self.features.add(features, where)
            for odd in numbers.keys() ^ per_row:  # XGBoost would take that of another batch
                raise ValueError(f"{where}: {odd} must come with all batches, or with none")
            self.n_rows += table.n_rows
            yield Batch(replace(table, names=names), numbers, 0, where)

    def check(self, matrix: Any) -> None:
        """Prove that the cuts are used, of the rows that they were found on, and note them."""
        if matrix.num_row() != self.n_rows:
            raise ValueError(
                f"data gave {self.n_rows:,} rows the first time, and {matrix.num_row():,} the next: after reset() a "
                f"DataIter must give the same rows again"
            )
        check_cuts(matrix, self.feature_indices, self.bins, self.ranges)
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


def _numbers_per_row(batch: dict[str, Any], n_rows: int, supervised: bool) -> dict[str, Floats]:
    """Return what of a batch decides about the cuts, apart from its rows."""
    numbers = {}
    if (weight := row_weight(batch, n_rows)) is not None:
        numbers["weight"] = np.array(weight, np.float64).reshape(-1)
    if supervised and batch.get("label") is not None:
        numbers["label"] = np.array(target_of(batch["label"], n_rows))
    return numbers


def check_given_by_batches(kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that a DataIter gives batch by batch."""
    for name in ("label", "weight", "base_margin", *NOT_IN_BATCHES):
        if kwargs.get(name) is not None:
            raise ValueError(f"{name} of a DataIter is specified as batch argument: its next() gives it to input_data")


def bins_of_summary(
    bin_method: str | Method | Bins,
    summary: TableSummary,
    max_bin: int,
    total: Total,
    n_threads: int | None = None,
) -> Bins:
    """Return the bins that `bin_method` asks for, of a table that is summarized as XGBoost sees it."""
    return summarized_bins(
        bin_method,
        summary,
        [max_bin - 1] * len(summary),
        total=total.of(len(summary)),
        cut_format=FLOAT32,
        limit=f"max_bin={max_bin}",
        n_threads=n_threads,
    )
