"""Dask's collections as partitions, each read by the worker that holds it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.library import Library
from boostbins.sources.request import PLAIN, Request
from boostbins.sources.table import Column, Table, is_sparse, read_table

LIBRARY = Library("Dask", "dask", "dask", oldest="2026.8.0", newest="2026.8.0", below="2027")
HOOKS = (
    Hook("dask.dataframe:DataFrame", "_meta"),
    Hook("dask.dataframe:DataFrame", "_meta_nonempty"),
    Hook("dask.dataframe:Series", "_meta"),
    Hook("dask.array:Array", "_meta"),
    Hook("dask.dataframe:DataFrame", "to_delayed", takes=("optimize_graph",)),
    Hook("dask.dataframe", "from_delayed", takes=("meta", "divisions", "verify_meta")),
)
check_hooks(LIBRARY, HOOKS)

Numbers = Mapping[str, Any]
"""Numbers per row, by their argument: names of columns, series or arrays of Dask's."""


@dataclass(frozen=True)
class Reader:
    """How a partition is read: a pure function of it, so that Dask may run it anywhere, and again."""

    names: tuple[str, ...]  # of the columns to be cut
    feature_indices: tuple[int, ...]  # of these in a partition
    dtypes: tuple[Any, ...] | None  # that a frame's columns should have
    request: Request = PLAIN
    view: Callable[[Column], Column] | None = None  # how a library sees a column

    def __call__(self, part: Any) -> Table | None:
        """Return the columns of a partition; None if it has no rows."""
        if part.shape[0] == 0:
            return None
        if self.dtypes is None:
            table = read_table(part, self.request).chosen(self.feature_indices)
        else:
            if self.feature_indices != tuple(range(part.shape[1])):
                part = part.iloc[:, list(self.feature_indices)]
            table = read_table(self._conformed(part), self.request)
        return table if self.view is None else table.map(self.view)

    def _conformed(self, part: Any) -> Any:
        """Return a frame of the types that it should have: one that is all None here knows no better."""
        assert self.dtypes is not None
        odd = [
            name
            for name, dtype, here in zip(part.columns, self.dtypes, part.dtypes, strict=True)
            if here.kind == "O" and dtype.kind != "O" and part[name].isna().all()
        ]
        return part.astype(dict.fromkeys(odd, np.float64)) if odd else part


@dataclass(frozen=True)
class Parts:
    """A table in partitions: what is read of each, and the numbers per row."""

    reader: Reader
    rows: list[Any]  # delayed partitions, of the columns that are needed
    per_row: dict[str, list[Any]]  # delayed numbers, by argument
    feature_indices: tuple[int, ...]  # in X, of the columns to be cut

    def map(self, view: Callable[[Column], Column]) -> Parts:
        """Return the partitions as a library sees them."""
        return replace(self, reader=replace(self.reader, view=view))

    @property
    def whole_reader(self) -> Reader:
        """How a partition of X itself is read."""
        return replace(self.reader, feature_indices=self.feature_indices)


def opened(X: Any, request: Request) -> Parts:
    """Return a Dask DataFrame or Array as its partitions, with the numbers per row."""
    X = checked_collection(X)
    named = request.named
    if isinstance(X, da.Array):
        if named:
            raise TypeError(f"{next(iter(named))} is given by name, but an array has no names: give a Dask array")
        names = [f"x{i}" for i in range(X.shape[1])]
    else:
        names = [str(name) for name in X.columns]
    chosen = [names.index(name) for name in request.chosen(names)]
    given = {argument: value for argument, value in request.per_row.items() if value is not None}
    others = {argument: _per_row(value, argument, X) for argument, value in given.items() if argument not in named}
    of_rows = Request(dates_as_numbers=request.dates_as_numbers)
    if isinstance(X, da.Array):
        if X.dtype.kind not in "biuf" and not (X.dtype.kind in "mM" and request.dates_as_numbers):
            raise TypeError(f"X must hold numbers, got dtype {X.dtype}: convert it first, e.g. with .astype(float)")
        reader = Reader(tuple(names[i] for i in chosen), tuple(chosen), None, of_rows)
        return Parts(reader, partitions(X), others, tuple(chosen))
    read = read_table(X._meta_nonempty.iloc[:, chosen], replace(request, columns=None, per_row={}))
    kept = [chosen[index] for index in read.feature_indices]
    labels = list(dict.fromkeys([*kept, *(names.index(name) for name in named.values())]))
    frame = X[[X.columns[index] for index in labels]]
    rows = partitions(frame, alone=not others)
    numbers = {
        argument: [dask.delayed(_column)(part, labels.index(names.index(name))) for part in rows]
        for argument, name in named.items()
    }
    dtypes = tuple(frame._meta.dtypes.iloc[: len(kept)])
    reader = Reader(read.names, tuple(range(len(kept))), dtypes, of_rows)
    return Parts(reader, rows, numbers | others, tuple(kept))


def features(X: Any, per_row: Numbers, leave_out: Collection[int], way_out: str) -> Parts:
    """Return the columns that an estimator cuts: all but some; what is no number is refused."""
    if isinstance(X, da.Array) and (is_sparse(X._meta) or type(X._meta).__module__.startswith("sparse")):
        raise TypeError("X holds sparse chunks, which bin_method cannot cut: make them dense, or give bin_method=None")
    names = [f"x{i}" for i in range(X.shape[1])] if isinstance(X, da.Array) else [str(name) for name in X.columns]
    columns = [name for index, name in enumerate(names) if index not in leave_out]
    if not columns:
        raise ValueError("X has no columns to bin: give bin_method=None")
    parts = opened(X, Request(columns, per_row, "skip"))
    if odd := [name for name in columns if name not in parts.reader.names]:
        kind = X._meta.dtypes.iloc[names.index(odd[0])]
        raise TypeError(f"X, column {odd[0]!r} of type {kind} cannot be cut: {way_out}, or give bin_method=None")
    return parts


def checked_collection(X: Any) -> Any:
    """Return a Dask DataFrame, or a 2-D Array with all columns in each chunk."""
    if isinstance(X, dd.Series):
        return X.to_frame(name=X.name if X.name is not None else "x0")
    if isinstance(X, dd.DataFrame):
        return X
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a Dask DataFrame or Array, got {type(X).__module__}.{type(X).__name__}: use boostbins.fit_bins "
            f"for what is in memory or in files, or make it one, e.g. with dask.dataframe.from_pandas"
        )
    if X.ndim == 1:
        X = X[:, None]
    if X.ndim != 2:
        raise ValueError(f"X must be a table with rows and columns, got shape {X.shape}")
    if np.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns: call X.compute_chunk_sizes() first")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def partitions(X: Any, *, alone: bool = False) -> list[Any]:
    """Return the delayed partitions of a collection.

    Dask may merge small ones when it optimizes, and those of other columns of the same data otherwise: it is let to
    only where they stand `alone`.
    """
    if isinstance(X, da.Array):
        return list(X.to_delayed().ravel())
    best = X.optimize()
    return list((best if alone or best.npartitions == X.npartitions else X).to_delayed(optimize_graph=False))


def _per_row(value: Any, argument: str, X: Any) -> list[Any]:
    if not isinstance(value, dd.Series | da.Array) or value.ndim != 1:
        raise TypeError(
            f"{argument} must be the name of a column, or a Dask Series or Array with one entry per row, "
            f"got {type(value).__name__}"
        )
    if value.npartitions != X.npartitions:
        raise ValueError(
            f"{argument} must have the partitions of X: it has {value.npartitions}, and X {X.npartitions}. "
            f"Make it a column of X, and give its name; or repartition"
        )
    return partitions(value)


def _column(part: Any, index: int) -> Any:
    return part.iloc[:, index]


# ---- partitions that are changed before a library sees them


@dataclass(frozen=True)
class Replaced:
    """What a library is trained on instead of a partition: other numbers in some columns, the rest as it was."""

    reader: Reader
    numbers: Callable[[Table], NDArray[np.float32]]  # of the columns that the reader reads

    def __call__(self, part: Any, *per_row: Any) -> Any:
        """Return a partition, and series of numbers per row as its last columns."""
        table = self.reader(part)
        empty = np.empty((0, len(self.reader.names)), np.float32)
        numbers = empty if table is None else self.numbers(table)
        if self.reader.dtypes is None:
            out = np.array(part, np.float32)
            out[:, list(self.reader.feature_indices)] = numbers
            return out
        import pandas as pd

        frame = pd.DataFrame(numbers, part.index, part.columns[list(self.reader.feature_indices)], copy=False)
        for index in range(part.shape[1]):
            if index not in self.reader.feature_indices:
                frame.insert(index, part.columns[index], part.iloc[:, index])
        for number, column in enumerate(per_row):
            if len(column) != len(frame):
                raise ValueError(
                    f"y, and all other numbers per row, must have one entry per row: a partition of X has "
                    f"{len(frame)} rows, and that of {column.name!r} {len(column)}"
                )
            frame[_PER_ROW.format(number)] = column.array  # by position, whatever its index
        return frame


PER_GROUP = ("group", "eval_group")
"""Arguments with an entry per group of rows, not per row."""

_PER_ROW = "beside the columns of X: {}"


def replaced(X: Any, numbers: Replaced, per_row: Numbers, client: Any) -> tuple[Any, dict[str, Any]]:
    """Return a collection with other numbers, and the numbers per row, in the same partitions.

    Frames and series become one frame on the cluster, of which columns are selected: asked for them one by one, Dask
    may part them differently.
    """
    given = {argument: value for argument, value in per_row.items() if value is not None}
    if isinstance(X, da.Array):
        meta = np.empty((0, X.shape[1]), np.float32)
        changed = X.map_blocks(numbers, dtype=np.float32, meta=meta)
        return changed, {argument: _as_it_is(value) for argument, value in given.items()}
    per_row = {argument: value for argument, value in given.items() if argument not in PER_GROUP}
    series = {argument: value for argument, value in per_row.items() if isinstance(value, dd.Series)}
    columns = [_per_row(value, argument, X) for argument, value in series.items()]
    parts = [dask.delayed(numbers)(*rows) for rows in zip(partitions(X), *columns, strict=True)]
    meta = numbers(X._meta, *(value._meta for value in series.values()))
    whole = client.persist(dd.from_delayed(parts, meta=meta, divisions=X.divisions, verify_meta=False))
    for future in distributed.wait(client.futures_of(whole)).done:
        if future.status == "error":
            future.result()  # raises; the libraries would say less
    selected = {argument: whole[_PER_ROW.format(number)] for number, argument in enumerate(series)}
    rest = {argument: _as_it_is(value) for argument, value in given.items() if argument not in series}
    return whole[list(X.columns)], selected | rest


def _as_it_is(value: Any) -> Any:
    """Return a frame or series whose partitions Dask will not merge."""
    if not isinstance(value, dd.DataFrame | dd.Series):
        return value
    return dd.from_delayed(partitions(value), meta=value._meta, divisions=value.divisions, verify_meta=False)
