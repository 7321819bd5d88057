"""The rows of a stream as a library takes them: summarized in a first pass, handed over in a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from boostbins._threads import Progress
from boostbins.fit import cells_for
from boostbins.sources.stream import Batch, PerRow, Stream, open_stream
from boostbins.sources.table import Column, Table, dense
from boostbins.sources.values import Floats
from boostbins.summary.ranges import Ranges, ranges_of
from boostbins.summary.table import TableSummary, summarize_stream

_SAMPLED = 4096  # rows, to show what the columns are like
_SAMPLED_PER_BATCH = 256


def stream_of(data: Any) -> Stream | None:
    """Return what a library is given to train on as a stream that can be read twice; None for what is in memory."""
    stream = open_stream(data)
    if stream is not None and stream.once:
        raise ValueError(
            f"data is read twice, and a {type(data).__name__} can only be read once: give a function that returns a "
            f"new one, or a file"
        )
    return stream


class Rows:
    """The rows of a stream: the columns to train on, and numbers beside them.

    Parameters
    ----------
    stream : Stream
    columns : sequence of str or None
        Those to train on; None for all.
    beside : dict
        Numbers per row by the library's argument: names of columns, or arrays.
    view : function
        How the library sees a column.

    Attributes
    ----------
    n_rows, names, named, extent, numbers, sample
        Known after the first pass: the number of rows; the columns, whether these names are the stream's own, and their
        ranges whatever the weights; the numbers beside them; the columns of some rows, evenly spread.
    """

    def __init__(
        self,
        stream: Stream,
        columns: Sequence[str] | None,
        per_row: Mapping[str, PerRow],
        view: Callable[[Column], Column] = lambda column: column,
    ) -> None:
        self.stream = stream
        self.columns = columns
        self.per_row = per_row
        self.view = view
        self.n_rows = 0

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of a later pass, which has the rows of the first."""
        n_rows = 0
        for batch in self.stream.batches(self.columns, self.per_row):
            n_rows += batch.table.n_rows
            yield batch
        if n_rows != (self.n_rows or n_rows):
            raise ValueError(
                f"data gave {self.n_rows:,} rows the first time, and {n_rows:,} the next: it must give the same rows"
            )
        self.n_rows = n_rows

    def summarize(
        self,
        max_bins: int,
        n_threads: int | None,
        progress: Progress | None,
        supervised: bool = False,
        n_classes: int | None = None,
    ) -> TableSummary:
        """Make the first pass, and return the summary of all columns as the library sees them, for so many bins.

        With the sums of the label, for methods that look at it; `n_classes` is how many classes it numbers, if it does.
        """
        return summarize_stream(
            self._looked_at(),
            weight="weight",
            target="label" if supervised else "",
            n_classes=n_classes,
            max_cells=cells_for(max_bins),
            n_threads=n_threads,
            progress=progress,
            size=self.stream.size,
            view=self.view,
        )

    def look(self) -> None:
        """Make the first pass without a summary."""
        for _ in self._looked_at():
            pass

    def _looked_at(self) -> Iterator[Batch]:
        self.n_rows = 0
        per_row: dict[str, list[Floats]] = {}
        found_ranges, some = [], []
        for batch in self.stream.batches(self.columns, self.per_row):
            table = batch.table.map(self.view)
            self.names, self.named = table.names, table.named
            self.n_rows += table.n_rows
            found_ranges.append(ranges_of(table, 1))
            some.append(_evenly(table, _SAMPLED_PER_BATCH))
            if sum(map(len, some)) > 4 * _SAMPLED:
                some = [np.concatenate(some)[::2]]
            for argument, values in batch.numbers.items():
                per_row.setdefault(argument, []).append(np.array(values))  # a view would hold on to a batch
            yield batch
        low, high, missing = zip(*found_ranges, strict=True)
        self.ranges = Ranges(np.fmin.reduce(low), np.fmax.reduce(high), np.any(missing, axis=0))
        self.numbers = {argument: np.concatenate(parts) for argument, parts in per_row.items()}
        sample = np.concatenate(some)
        self.sample = sample[:: -(-len(sample) // _SAMPLED)]

    def matrix(self, batch: Batch, dtype: DTypeLike) -> NDArray[Any]:
        """Return a batch as an array, as the library sees it."""
        table = batch.table.map(self.view)
        out = np.empty((table.n_rows, len(table)), dtype)
        for i in range(len(table)):
            out[:, i] = dense(table.read(i))
        return out


def _evenly(table: Table, n: int) -> NDArray[np.float64]:
    """Return some rows of a table, evenly spread."""
    rows = np.linspace(0, table.n_rows - 1, min(n, table.n_rows)).astype(np.intp)
    return np.column_stack([dense(table.read(i))[rows].astype(np.float64) for i in range(len(table))])
