"""A table as a library sees it: which columns it cuts, and what their values are to it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy import ma
from numpy.typing import NDArray

from boostbins.sources.request import Request
from boostbins.sources.table import Column, Table, is_array_like, is_sparse, read_table

# ---- the data, as a library sees it


def feature_table(X: Any, leave_out: Collection[int] = ()) -> Table:
    """Return the columns that are to be cut: all but some."""
    X = as_array(X)
    if isinstance(X, ma.MaskedArray):
        X = X.data  # as the libraries see it
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUS" and X.ndim == 2:
        kept = [i for i in range(X.shape[1]) if i not in leave_out]
        names = tuple(f"x{i}" for i in kept)
        return Table(
            names, X.shape[0], False, lambda i: _numbers_in(X[:, kept[i]], names[i]), feature_indices=tuple(kept)
        )
    table = read_table(X, Request(non_numeric="skip")).leaving_out(leave_out)
    if not hasattr(X, "columns") or len(table) + len(leave_out) == X.shape[1]:
        return table
    return _with_odd_columns(X, table, leave_out)


def as_array(X: Any) -> Any:
    """Return lists of rows, and what else can be taken as an array, as one; and anything else as it is."""
    if not isinstance(X, list | tuple) and not is_array_like(X):
        return X
    array = np.asarray(X)
    return np.array(X, object) if array.dtype.kind in "US" else array


def _with_odd_columns(X: Any, table: Table, leave_out: Collection[int]) -> Table:
    """Return the columns of a frame with those of unusual types too, which libraries may take as numbers."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    names = [str(name) for name in frame.columns]
    read: dict[int, Callable[[], Column]] = {
        index: partial(table.read, i) for i, index in enumerate(table.feature_indices)
    }
    for index in range(len(names)):
        if index not in leave_out and index not in read:
            read[index] = partial(lambda p: _numbers_in(frame[:, p].to_numpy(), names[p]), index)
    feature_indices = sorted(read)
    return replace(
        table,
        names=tuple(names[p] for p in feature_indices),
        feature_indices=tuple(feature_indices),
        read=lambda i: read[feature_indices[i]](),
    )


def _numbers_in(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(column).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"X, column {name!r} cannot be cut: {error}. Make it numbers, or categorical, or give bin_method=None"
        ) from None


def first_rows(X: Any, n_rows: int) -> Any:
    """Return the first rows of a table, of its own kind."""
    X = as_array(X)
    if isinstance(X, np.ndarray):
        return X[:n_rows]
    if is_sparse(X):
        return X.tocsr()[:n_rows]
    import narwhals as nw

    return nw.from_native(X, eager_only=True).head(n_rows).to_native()
