"""The features of a Dataset as LightGBM sees them: which are categorical, and the values of the others."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbins.adapters.features import feature_table, first_rows
from boostbins.lightgbm._native import aliases, lgb, quietly
from boostbins.lightgbm.settings import Settings
from boostbins.sources.table import SparseColumn, Table, as_float32, dense, with_missing
from boostbins.sources.values import Floats


def sequences_in(data: Any) -> list[lgb.Sequence] | None:
    """Return data as LightGBM's Sequences, if it is one or a list of them."""
    some = [data] if isinstance(data, lgb.Sequence) else data
    if isinstance(some, list) and some and all(isinstance(one, lgb.Sequence) for one in some):
        return some
    return None


def arrays_in(data: Any) -> list[NDArray[Any]] | None:
    """Return data as arrays below each other, if it is a list of them."""
    is_list = isinstance(data, list) and data and all(isinstance(a, np.ndarray) and a.ndim == 2 for a in data)
    return data if is_list else None


def batches_of(sequences: list[lgb.Sequence]) -> Iterator[NDArray[Any]]:
    """Yield the rows of Sequences."""
    for sequence in sequences:
        size = getattr(sequence, "batch_size", None) or lgb.Sequence.batch_size
        for start in range(0, len(sequence), size):
            yield np.asarray(sequence[start : min(start + size, len(sequence))])


def rows_at(sequences: list[lgb.Sequence], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return some rows of Sequences, one by one, as LightGBM reads them."""
    ends = np.cumsum([len(sequence) for sequence in sequences])
    which = np.searchsorted(ends, rows, side="right")
    starts = np.concatenate([[0], ends])
    return np.array([sequences[i][int(row - starts[i])] for i, row in zip(which, rows, strict=True)], np.float64)


def head_of(dataset: lgb.Dataset, settings: Settings) -> lgb.Dataset:
    """Return a Dataset of the first rows, which tells what LightGBM makes of the columns."""
    arrays, sequences = arrays_in(dataset.data), sequences_in(dataset.data)
    is_odd = isinstance(dataset.data, list) and arrays is None and sequences is None
    if is_odd and not all(isinstance(row, list | tuple) for row in dataset.data or [None]):
        raise TypeError("data is a list, and holds neither rows, arrays with rows and columns, nor Sequences")
    if sequences is not None and not all(map(len, sequences)):
        raise ValueError("data has a Sequence without rows: leave it out")
    if sequences is not None:
        rows = np.asarray(sequences[0][0 : min(2, len(sequences[0]))])
    else:
        rows = first_rows(dataset.data if arrays is None else arrays[0], 2)
    _check_arrow(rows)
    head = lgb.Dataset(
        rows,
        np.zeros(rows.shape[0]),
        feature_name=dataset.feature_name,
        categorical_feature=dataset.categorical_feature,
        params=_without_warned_params(
            settings.replaced(verbosity=-1, feature_pre_filter=False, max_bin_by_feature=None, linear_tree=False)
        ),
    )
    return quietly(head.construct)


def _check_arrow(rows: Any) -> None:
    """Refuse columns of Arrow's and polars' tables at whose types LightGBM ends the whole process."""
    if hasattr(rows, "iloc") or not hasattr(rows, "__arrow_c_stream__"):
        return
    import narwhals as nw

    readable = {nw.Boolean, nw.Float32, nw.Float64, nw.Int8, nw.Int16, nw.Int32, nw.Int64,
                nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64}  # fmt: skip
    for name, kind in nw.from_native(rows, eager_only=True).schema.items():
        if kind not in readable:
            raise TypeError(
                f"data, column {name!r} is of a type that LightGBM cannot read ({kind}): make it numbers, or "
                "leave it out"
            )


def categorical_indices(head: lgb.Dataset, settings: Settings) -> list[int]:
    """Return which columns LightGBM takes as categorical."""
    given = Settings(head.params).get("categorical_feature", settings.get("categorical_feature", []))
    given = given.split(",") if isinstance(given, str) else given
    feature_indices = (int(index) for index in np.atleast_1d(np.array(given, dtype=np.intp)))
    return sorted(index for index in feature_indices if index < head.num_feature())


def _without_warned_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters for a dataset that helps, without those that LightGBM has warned, or will warn, of."""
    warned = {*signature(lgb.Dataset._lazy_init).parameters, *aliases("categorical_feature")}
    return {key: value for key, value in params.items() if key not in warned and value is not None}


def seen_by_lightgbm(data: Any, settings: Settings, leave_out: list[int]) -> Table:
    """Return the columns that are to be cut."""
    arrays = arrays_in(data)
    if arrays is not None:
        table = _below_each_other(arrays).leaving_out(leave_out)
    else:
        table = feature_table(_with_numbered_categories(data, leave_out), leave_out)
        arrays = [data] if isinstance(data, np.ndarray) else []
    if any(array.dtype not in (np.float32, np.float64) for array in arrays):
        table = table.map(as_float32)
    return table.map(with_missing(0.0)) if settings.zero_as_missing else table


def _below_each_other(arrays: list[NDArray[Any]]) -> Table:
    n_columns = {array.shape[1] for array in arrays}
    if len(n_columns) > 1:
        raise ValueError(f"data is a list of arrays with {sorted(n_columns)} columns: give all the same")
    (n,) = n_columns
    names = tuple(f"x{i}" for i in range(n))
    n_rows = sum(map(len, arrays))
    return Table(
        names, n_rows, False, lambda i: np.concatenate([a[:, i] for a in arrays]), feature_indices=tuple(range(n))
    )


def _with_numbered_categories(data: Any, categorical: list[int]) -> Any:
    """Return a pandas frame with numbers for the categories that LightGBM takes as such: ordered ones, and all that are
    not among its categorical features.
    """
    if not hasattr(data, "iloc"):
        return data
    numbered = [i for i, column in enumerate(data.dtypes) if hasattr(column, "categories") and i not in categorical]
    if numbered:
        data = data.copy(deep=False)
        for index in numbered:
            data.isetitem(index, category_numbers(data, index))
    return data


def category_numbers(data: Any, index: int) -> Floats:
    """Return a categorical column as LightGBM numbers it."""
    if hasattr(data, "iloc"):
        column = data.iloc[:, index]
        if hasattr(column, "cat"):
            codes = column.cat.codes.to_numpy().astype(np.float64)
            return np.where(codes < 0, np.nan, codes)
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    table = seen_by_lightgbm(data, Settings({}), [])
    column = table.read(table.feature_indices.index(index))
    assert not isinstance(column, SparseColumn)
    return column.astype(np.float64)


class TableRows(lgb.Sequence):
    """All features of a table as numbers, some rows at a time."""

    batch_size = 2**15

    def __init__(self, table: Table, data: Any, categorical: list[int], n_features: int) -> None:
        self.n_rows, self.n_features = table.n_rows, n_features
        self.columns = {index: dense(table.read(i)) for i, index in enumerate(table.feature_indices)}
        self.columns |= {index: category_numbers(data, index) for index in categorical}

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: Any) -> NDArray[np.float64]:
        n_rows = len(range(*rows.indices(self.n_rows))) if isinstance(rows, slice) else len(rows)
        matrix = np.zeros((n_rows, self.n_features))
        for index, column in self.columns.items():
            matrix[:, index] = column[rows]
        return matrix
