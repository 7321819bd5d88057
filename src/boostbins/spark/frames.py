"""Spark's frames: their bins, and their rows with values that stand for their bins.

Each partition is summarized where it lies, and the summaries of a column are added up on the cluster, in two rounds;
the driver gets one per column. Rows never move. This is what runs on the executors, and is light to import there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from boostbins.adapters.hooks import Hook, check_hooks
from boostbins.adapters.library import Library
from boostbins.adapters.requested import floor32
from boostbins.adapters.stand_ins import represented
from boostbins.bins import Bins
from boostbins.fit import cells_for, checked_max_bins, default_bins, fit_summary
from boostbins.methods import Method, may_look_at_target, method_named
from boostbins.methods.budget import Total, TotalBins
from boostbins.sources.request import NonNumeric, Request
from boostbins.sources.stream import open_stream
from boostbins.sources.table import Column, Table, read_table
from boostbins.sources.values import Floats
from boostbins.summary.column import MAX_CELLS, ColumnSummary
from boostbins.summary.rows import MAGIC as ROWS_MAGIC
from boostbins.summary.rows import RowSample
from boostbins.summary.table import ALL_OF_TARGET, OfTarget, TableSummary, summarize_stream

try:
    import pyarrow
    from pyspark import TaskContext
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's own documentation calls it)
    from pyspark.sql import types as T  # noqa: N812
    from pyspark.sql.pandas import types as arrow_types
except ImportError as error:
    raise ImportError("PySpark, or its pyarrow, is not installed: pip install 'boostbins[spark]'") from error

LIBRARY = Library("PySpark", "pyspark", "pyspark", oldest="4.3.0", newest="4.3.0", below="5")
HOOKS = (Hook("pyspark.sql.pandas.types", "to_arrow_type"),)
check_hooks(LIBRARY, HOOKS)

_TEAMS = 32  # of partitions, whose summaries are added up first
_SUMMARIES = "column int, part int, summary binary"


def fit_bins(
    df: Any,
    method: str | Method = "kmeans",
    max_bins: int | Sequence[int] | Mapping[str, int] | None = None,
    sample_weight: str | None = None,
    n_threads: int | None = None,
    *,
    y: str | None = None,
    columns: Sequence[str] | None = None,
    total_bins: TotalBins = None,
    average_bins: float | None = None,
    exact: bool = False,
    non_numeric: NonNumeric = "error",
    dates_as_numbers: bool = False,
) -> Bins:
    """Return bins for every column of a Spark frame: those of `boostbins.fit_bins`, whatever the partitions.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Null and NaN are missing. A column of vectors or arrays counts as one column per element, ``features[0]``, ...
    method, max_bins, total_bins, average_bins, exact, non_numeric, dates_as_numbers
        As for `boostbins.fit_bins`.
    sample_weight, y : str, optional
        Names of columns, which are not binned. (With weights that are no whole numbers, sums are rounded by the
        order of the partitions.)
    n_threads : int, optional
        On the driver, where the summaries are cut; a task has one.
    columns : sequence of str, optional
        Which to bin; all, if not given.
    """
    find = method_named(method)
    source = _source(df, Request(columns, {"sample_weight": sample_weight, "y": y}, non_numeric, dates_as_numbers))
    if not source.names:
        raise ValueError("X has no columns to bin")
    total = Total(total_bins, average_bins)
    max_bins = default_bins(total) if max_bins is None else max_bins
    max_cells = None if exact else max(cells_for(n) for n in checked_max_bins(max_bins, source.names))
    needs = OfTarget(sums=may_look_at_target(find), rows=bool(total))
    summary = summarized(source, max_cells, needs)
    return fit_summary(summary, find, max_bins, total=total.of(len(summary)), exact=exact, n_threads=n_threads)


def summarize(
    df: Any,
    sample_weight: str | None = None,
    *,
    y: str | None = None,
    columns: Sequence[str] | None = None,
    max_cells: int | None = MAX_CELLS,
    non_numeric: NonNumeric = "error",
    dates_as_numbers: bool = False,
) -> TableSummary:
    """Return the summary of a Spark frame, for `boostbins.fit_bins`: to be saved, and added to other ones.

    Parameters
    ----------
    df, sample_weight, y, columns, non_numeric, dates_as_numbers
        As for `fit_bins`.
    max_cells : int or None
        Cells per column: enough for a quarter as many bins. None: every distinct value.
    """
    request = Request(columns, {"sample_weight": sample_weight, "y": y}, non_numeric, dates_as_numbers)
    return summarized(_source(df, request), max_cells, ALL_OF_TARGET)


def represent(df: Any, bins: Bins) -> Any:
    """Return a Spark frame where each value of the binned columns is replaced by the least float32 of its bin.

    For training by means of your own: a learner that parts `x < cut` at each of few distinct values finds these cuts.
    Missing values are NaN. The other columns are left as they are.

    The drop-in estimators do this, and correct what comes of it: XGBoost parts missing values from all others at twice
    the greatest *replaced* value, and raw values may lie beyond.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
    bins : Bins
        From `fit_bins`.
    """
    if not isinstance(bins, Bins):
        raise TypeError(f"bins must be Bins, from fit_bins, got {type(bins).__name__}")
    if bins.stats is None:
        raise ValueError("bins must know the least value of each column: take those of fit_bins, which have stats")
    low = np.array([np.nan if stats.low is None else stats.low for stats in bins.stats])
    frame = checked_frame(df)
    vectors = {name.rpartition("[")[0] for name in bins.names}
    flat, elements = flattened(frame, [name for name in frame.columns if name in vectors])
    check_columns(flat, bins.names, "bins")
    native = Bins([floor32(cuts) for cuts in bins.cuts], bins.names)
    return packed(represented_frame(flat, native, low), frame.columns, elements)


# ---- what is asked of a frame


class Source(NamedTuple):
    """The columns of a frame that are to be summarized, and the numbers per row."""

    frame: Any
    names: tuple[str, ...]
    per_row: dict[str, str]  # by argument: the names of weights and targets
    units: Mapping[str, str] = MappingProxyType({})  # of the columns that hold dates


def checked_frame(df: Any) -> Any:
    """Return a frame of Spark's, classic or Connect's."""
    if not (type(df).__module__.startswith("pyspark.sql") and hasattr(df, "mapInArrow")):
        kind = f"{type(df).__module__}.{type(df).__name__}"
        hint = (
            "use its .to_spark()" if kind.startswith("pyspark.pandas") else "for other tables, use boostbins.fit_bins"
        )
        raise TypeError(f"df must be a pyspark.sql.DataFrame, got {kind}: {hint}")
    return df


def check_columns(df: Any, names: Iterable[str], argument: str) -> None:
    """Refuse names of columns that are not there, or there twice."""
    for name in names:
        if name not in df.columns:
            raise ValueError(
                f"{argument}: there is no column {name!r}; there are {', '.join(map(repr, df.columns[:10]))}"
            )
        if df.columns.count(name) > 1:
            raise ValueError(f"X has more than one column named {name!r}: rename one of them")


def quoted(name: str) -> Any:
    """Return the column of that name, dots and all."""
    return F.col("`" + name.replace("`", "``") + "`")


def _source(df: Any, request: Request) -> Source:
    frame = checked_frame(df)
    for argument, name in request.per_row.items():
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{argument} must be the name of a column, got a {type(name).__name__}")
    chosen = request.chosen(frame.columns)
    check_columns(frame, request.needed(frame.columns), "columns")
    frame, elements = flattened(frame.select(*map(quoted, request.needed(frame.columns))), chosen)
    chosen = [element for name in chosen for element in elements.get(name, [name])]
    table = _numeric(frame, chosen, request)
    return Source(frame, table.names, request.named, table.units)


def _numeric(df: Any, names: Sequence[str], request: Request) -> Table:
    """Return which columns can be cut: what is said of the others is said of a row of nulls."""
    kinds = {name: df.schema[name].dataType for name in names}
    arrow = {
        # Spark wants the time zone, and the versions differ in how.
        name: pyarrow.timestamp("us", "UTC") if isinstance(kind, T.TimestampType) else arrow_types.to_arrow_type(kind)
        for name, kind in kinds.items()
    }
    row = pyarrow.table({name: pyarrow.nulls(1, kind) for name, kind in arrow.items()})
    return read_table(row, replace(request, columns=None, per_row={}))


def flattened(df: Any, names: Sequence[str]) -> tuple[Any, dict[str, list[str]]]:
    """Return a frame with a column per element of those that hold vectors or arrays, and these by name.

    The first row that has one tells how many elements there are.
    """
    elements: dict[str, list[str]] = {}
    columns = {name: quoted(name) for name in df.columns}
    for name in names:
        array = _as_array(df.schema[name].dataType, columns[name])
        if array is None:
            continue
        first = df.select(F.size(array).alias("n")).where(F.col("n") > 0).first()
        if first is None:
            raise ValueError(f"X, column {name!r} holds no vector: it is empty in every row")
        elements[name] = [f"{name}[{i}]" for i in range(first["n"])]
        del columns[name]
        columns |= {element: array.getItem(i).alias(element) for i, element in enumerate(elements[name])}
    return (df.select(*columns.values()) if elements else df), elements


def _as_array(kind: Any, column: Any) -> Any:
    """Return a column of vectors, or of arrays of numbers, as arrays; None for any other."""
    if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.NumericType):
        return column
    if isinstance(kind, T.UserDefinedType) and type(kind).__name__ == "VectorUDT":
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(column)
    return None


# ---- summaries, on the executors


def summarized(
    source: Source,
    max_cells: int | None,
    kept: OfTarget,
    views: Sequence[Callable[[Column], Column]] = (),
    n_classes: int | None = None,
) -> TableSummary:
    """Return the summary of some columns of a frame, as a library sees them; `n_classes` if the target numbers some."""
    frame, names, per_row, units = source
    if not names:
        return TableSummary([])
    numbered = [quoted(name).alias(f"x{i}") for i, name in enumerate(names)]  # mapInArrow takes no dots in names
    rows = frame.select(*numbered, *(quoted(name).alias(argument) for argument, name in per_row.items()))
    if "sample_weight" in per_row:
        # Rows of no weight do not count. Where a partition has no others, it has no summary.
        rows = rows.where(~F.col("sample_weight").eqNullSafe(0))
    part = partial(
        _of_partition, per_row=tuple(per_row), max_cells=max_cells, kept=kept, views=views, n_classes=n_classes
    )
    summaries = rows.mapInArrow(part, _SUMMARIES)
    for teams in (_TEAMS, 1):
        team = F.col("part") % teams
        # In order, for weights are rounded by the order that they are added in.
        there = summaries.repartition("column", team).sortWithinPartitions("column", team, "part")
        summaries = there.mapInArrow(partial(_added_up, teams=teams), _SUMMARIES)
    found = {row["column"]: bytes(row["summary"]) for row in summaries.collect()}
    rows_at = len(names)
    if not found and "sample_weight" in per_row and not frame.isEmpty():
        raise ValueError("sample_weight is zero for every row: give some row a positive weight")
    if not found:
        raise ValueError("X has no rows")
    sample = RowSample.from_bytes(found[rows_at]) if rows_at in found else None
    return TableSummary((ColumnSummary.from_bytes(found[i]) for i in range(len(names))), names, units, sample)


def _of_partition(
    batches: Iterator[Any],
    *,
    per_row: Sequence[str],
    max_cells: int | None,
    kept: OfTarget,
    views: Sequence[Callable[[Column], Column]],
    n_classes: int | None,
) -> Iterator[Any]:
    """Yield the summary of each column of a partition, and its sample of rows; nothing, if it has no rows."""
    tables = (pyarrow.Table.from_batches([batch]) for batch in batches if batch.num_rows)
    first = next(tables, None)
    if first is None:
        return

    def as_seen(column: Column) -> Column:
        for view in views:
            column = view(column)
        return column

    stream = open_stream(chain([first], tables))
    assert stream is not None
    # What holds dates that are not to be numbers was refused before.
    rows = stream.batches(Request(per_row={argument: argument for argument in per_row}, dates_as_numbers=True))
    part = TaskContext.get().partitionId()
    table = summarize_stream(rows, n_classes=n_classes, max_cells=max_cells, of_target=kept, n_threads=1, view=as_seen)
    for column, summary in enumerate([*table, *([] if table.rows is None else [table.rows])]):
        yield _record(column, part, summary)


def _added_up(batches: Iterator[Any], *, teams: int) -> Iterator[Any]:
    """Yield the sum of each column's summaries, by teams of partitions; they come one team after the other."""
    at: tuple[int, int] | None = None
    total: Any = None
    for batch in batches:
        for column, part, data in zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True):
            summary: Any = (RowSample if data.startswith(ROWS_MAGIC) else ColumnSummary).from_bytes(data)
            if at == (column, part % teams) and total is not None:
                total = total + summary
                continue
            if at is not None and total is not None:
                yield _record(*at, total)
            at, total = (column, part % teams), summary
    if at is not None and total is not None:
        yield _record(*at, total)


def _record(column: int, part: int, summary: ColumnSummary | RowSample) -> Any:
    arrays = [
        pyarrow.array([column], pyarrow.int32()),
        pyarrow.array([part], pyarrow.int32()),
        pyarrow.array([summary.to_bytes()], pyarrow.binary()),
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, ["column", "part", "summary"])


# ---- values that stand for their bins, on the executors


def represented_frame(df: Any, bins: Bins, low: Floats, views: Sequence[Callable[[Column], Column]] = ()) -> Any:
    """Return a frame with each value of the binned columns replaced by the least of its bin; cuts are float32."""
    names = df.columns
    numbers = [f"x{i}" for i in range(len(names))]  # mapInArrow takes no dots in names
    numbered = Bins(bins.cuts, [numbers[names.index(name)] for name in bins.names])
    fields = [
        T.StructField(number, T.FloatType() if number in numbered.names else field.dataType)
        for number, field in zip(numbers, df.schema, strict=True)
    ]
    stand_ins = partial(_represented, bins=numbered, low=low, views=views)
    return df.toDF(*numbers).mapInArrow(stand_ins, T.StructType(fields)).toDF(*names)


def _represented(
    batches: Iterator[Any], *, bins: Bins, low: Floats, views: Sequence[Callable[[Column], Column]]
) -> Iterator[Any]:
    for batch in batches:
        if not batch.num_rows:
            continue
        table = read_table(pyarrow.Table.from_batches([batch]).select(list(bins.names)))
        for view in views:
            table = table.map(view)
        values = represented(table, bins, low)
        arrays = [
            pyarrow.array(values[:, bins.names.index(name)]) if name in bins.names else batch.column(index)
            for index, name in enumerate(batch.schema.names)
        ]
        yield pyarrow.RecordBatch.from_arrays(arrays, batch.schema.names)


def packed(df: Any, names: Sequence[str], elements: Mapping[str, Sequence[str]]) -> Any:
    """Return a frame with the elements of vectors in arrays again."""
    if not elements:
        return df
    columns = {name: F.array(*map(quoted, elements[name])).alias(name) for name in elements}
    return df.select(*(columns.get(name, quoted(name)) for name in names))
