"""The rows of a stream as a library takes them: summarized in a first pass, handed over in a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from boostbins._threads import Progress
from boostbins.fit import cells_for
from boostbins.sources.request import PerRow, Request
from boostbins.sources.stream import Batch, Stream, open_stream
from boostbins.sources.table import Column, Table, dense
from boostbins.sources.values import Floats
from boostbins.summary.table import OfTarget, TableSummary, summarize_stream

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


class FirstPass(NamedTuple):
    """What is known after the first pass."""

    n_rows: int
    names: tuple[str, ...]  # of the columns
    named: bool  # whether these are the stream's own
    numbers: dict[str, Floats]  # per row, by the library's argument
    sample: NDArray[np.float64]  # the columns of some rows, evenly spread


class Rows:
    """The rows of a stream, which are read twice.

    Parameters
    ----------
    stream : Stream
    columns : sequence of str or None
        Those to train on; None for all.
    per_row : dict
        Numbers per row by the library's argument: names of columns, or arrays.
    view : function
        How the library sees a column.
    """

    def __init__(
        self,
        stream: Stream,
        columns: Sequence[str] | None,
        per_row: Mapping[str, PerRow],
        view: Callable[[Column], Column] = lambda column: column,
    ) -> None:
        self.stream = stream
        self.request = Request(columns, per_row)
        self.view = view
        self._n_rows = 0  # of the first time

    def batches(self) -> Iterator[Batch]:
        """Yield the batches, which must have the rows of the first time."""
        n_rows = 0
        for batch in self.stream.batches(self.request):
            n_rows += batch.table.n_rows
            yield batch
        if n_rows != (self._n_rows or n_rows):
            raise ValueError(
                f"data gave {self._n_rows:,} rows the first time, and {n_rows:,} the next: it must give the same rows"
            )
        self._n_rows = n_rows

    def summarize(
        self,
        max_bins: int,
        n_threads: int | None,
        progress: Progress | None,
        of_target: OfTarget,
        n_classes: int | None = None,
    ) -> tuple[TableSummary, FirstPass]:
        """Make the first pass, and return the summary of all columns as the library sees them, for so many bins.

        `of_target` is what is kept of the label; `n_classes` is how many classes it numbers, if it does.
        """
        notes = _Notes()
        summary = summarize_stream(
            self._looked_at(notes),
            weight="weight",
            target="label" if any(of_target) else "",
            n_classes=n_classes,
            max_cells=cells_for(max_bins),
            of_target=of_target,
            n_threads=n_threads,
            progress=progress,
            size=self.stream.size,
            view=self.view,
        )
        return summary, notes.all()

    def look(self) -> FirstPass:
        """Make the first pass without a summary."""
        notes = _Notes()
        for _ in self._looked_at(notes):
            pass
        return notes.all()

    def _looked_at(self, notes: _Notes) -> Iterator[Batch]:
        """Yield the batches, and note what is kept of them."""
        self._n_rows = 0
        for batch in self.batches():
            notes.add(batch.table.map(self.view), batch.per_row)
            yield batch

    def matrix(self, batch: Batch, dtype: DTypeLike) -> NDArray[Any]:
        """Return a batch as an array, as the library sees it."""
        table = batch.table.map(self.view)
        out = np.empty((table.n_rows, len(table)), dtype)
        for i in range(len(table)):
            out[:, i] = dense(table.read(i))
        return out


class _Notes:
    """What is kept of the batches of the first pass."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.numbers: dict[str, list[Floats]] = {}
        self.sample: list[NDArray[np.float64]] = []

    def add(self, table: Table, per_row: Mapping[str, Any]) -> None:
        self.names, self.named = table.names, table.named
        self.n_rows += table.n_rows
        self.sample.append(_evenly(table, _SAMPLED_PER_BATCH))
        if sum(map(len, self.sample)) > 4 * _SAMPLED:
            self.sample = [np.concatenate(self.sample)[::2]]
        for argument, values in per_row.items():
            self.numbers.setdefault(argument, []).append(np.array(values))  # a view would hold on to a batch

    def all(self) -> FirstPass:
        numbers = {argument: np.concatenate(parts) for argument, parts in self.numbers.items()}
        sample = np.concatenate(self.sample)
        return FirstPass(self.n_rows, self.names, self.named, numbers, sample[:: -(-len(sample) // _SAMPLED)])


def _evenly(table: Table, n: int) -> NDArray[np.float64]:
    """Return some rows of a table, evenly spread."""
    rows = np.linspace(0, table.n_rows - 1, min(n, table.n_rows)).astype(np.intp)
    return np.column_stack([dense(table.read(i))[rows].astype(np.float64) for i in range(len(table))])
