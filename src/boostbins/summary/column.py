"""A column as weighted cells: built in one pass, merged with ``+``."""

from __future__ import annotations

import struct
import zlib
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins import _core
from boostbins._threads import cached_property, map_threads
from boostbins.sources.values import (
    Floats,
    Targets,
    check_squares,
    check_total,
    checked_target,
    checked_weight,
    numeric_column,
)

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])

MAX_CELLS = 32_768
"""Distinct values that a summary holds exactly; above that, the number of cells that it keeps to."""

_UNBOUNDED = 2**60  # no column has as many rows
_SORTED_ROWS = 4 * MAX_CELLS  # up to here sorting beats the guided pass
_ROWS_AT_ONCE = 2**31  # the kernel counts in 32 bits
_WORTH_A_THREAD = 1_000_000  # rows of a column

_MAGIC = b"boostbins summary"
_VERSION = 2
_HEADER = struct.Struct("<17sBQQQQi3Q3d2d")  # ..., checked by the CRC that ends the bytes
_UNCOUNTED = struct.Struct("<2d?")  # after the arrays, since version 2


class Points(NamedTuple):
    """What a method sees: ascending points, each spread evenly over ``[low, high]``.

    A single value has ``low == high``. Weights and numbers of rows are positive.
    """

    low: Floats
    high: Floats
    weight: Floats
    rows: Floats

    @property
    def middle(self) -> Floats:
        """The points' centers."""
        return self.low + (self.high - self.low) / 2


class _State(NamedTuple):
    """What the kernels keep of a column; of missing, negative and positive infinite values there are three each."""

    cells: NDArray[np.uint64]  # key, rows
    moments: Floats  # per cell: its weight, the sums of its targets, and that of their squares; or nothing
    level: int  # of the cells; 0 if these are single values
    sample: NDArray[np.uint64]  # keys of distinct values
    counts: tuple[int, int, int]
    special_weights: tuple[float, float, float]
    span: tuple[float, float]  # the least and the greatest finite value


class Range(NamedTuple):
    """The least and the greatest of some values, infinities included; NaN if there are none. And if any is missing."""

    low: float
    high: float
    missing: bool

    @classmethod
    def of(cls, values: NDArray[Any]) -> Range:
        """Return the range of an array of numbers."""
        if not len(values):
            return _NOTHING
        low, high = float(values.min()), float(values.max())
        if not np.isnan(low):
            return cls(low, high, False)
        low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
        return _MISSING if np.isnan(low) else cls(low, high, True)

    def __or__(self, other: Range) -> Range:
        """Return the range of the values of both."""
        low, high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        return Range(float(low), float(high), self.missing or other.missing)


_NOTHING, _MISSING = Range(float("nan"), float("nan"), False), Range(float("nan"), float("nan"), True)


class ColumnSummary:
    """All that a binning method needs to know of a column, in bounded space.

    Up to `max_cells` distinct values are held exactly. A column with more is held as at most `max_cells` cells,
    each with its number of rows, together with a sample of the distinct values that shows what lies inside the
    cells that hold much. Both depend on the multiset of values alone: summaries of the same rows are identical
    to the last bit whatever their order, however they were divided, and however the parts were added up. (With
    weights: up to the rounding of their sums.) NaN, -inf and +inf are counted apart.

    Parameters
    ----------
    column : array of shape (n,)
        Any real type, any stride.
    weight : array of shape (n,), optional
        Non-negative; a row of weight 0 is as good as absent, but in `range`.
    target : array of shape (n,) or (n, targets), optional
        Summed up per cell, for methods that look at it. Of classes: whether a row is of each.
    max_cells : int or None
        None: as many as there are distinct values, so that everything is exact. (A cell never spans two
        exponents: values of very many scales may take up to 4,094 cells, even if that is more.)

    Examples
    --------
    >>> a, b = ColumnSummary([1.0, 2.0, 2.0, float("nan")]), ColumnSummary([10.0])
    >>> a + b
    ColumnSummary(4 rows from 1 to 10, mean 3.75, skew 1.11; 3 distinct values, exact; 1 missing)
    >>> (a + b) == ColumnSummary([10.0, 2.0, float("nan"), 1.0, 2.0])
    True
    """

    __slots__ = ("__dict__", "_state", "_uncounted", "max_cells")

    _state: _State
    _uncounted: Range  # of the rows of weight 0

    def __init__(
        self,
        column: ArrayLike,
        weight: ArrayLike | None = None,
        target: ArrayLike | None = None,
        *,
        max_cells: int | None = MAX_CELLS,
    ) -> None:
        values = numeric_column(column)
        weights = None if weight is None else checked_weight(weight, len(values), "weight")
        targets = None if target is None else checked_target(target, len(values), "target")
        self.max_cells = checked_max_cells(max_cells)
        self._state = _checked(_summarized(values, weights, targets, self.max_cells or _UNBOUNDED))
        self._uncounted = _range_of_uncounted(values, weights)

    @classmethod
    def of_checked(
        cls,
        column: NDArray[Any],
        weight: Floats | None,
        target: Targets | None,
        max_cells: int | None,
        n_threads: int = 1,
    ) -> ColumnSummary:
        """Return the summary of what `numeric_column`, `checked_weight` and `checked_target` have seen."""
        state = _summarized(column, weight, target, max_cells or _UNBOUNDED, n_threads)
        return cls._of(state, max_cells, _range_of_uncounted(column, weight))

    @classmethod
    def _of(cls, state: _core.State, max_cells: int | None, uncounted: Range) -> ColumnSummary:
        summary = cls.__new__(cls)
        summary.max_cells = max_cells
        summary._state = _checked(state)
        summary._uncounted = uncounted
        return summary

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        """Return the summary of both columns' rows."""
        if not isinstance(other, ColumnSummary):
            return NotImplemented
        limits = [s.max_cells for s in (self, other) if s.max_cells is not None]
        max_cells = min(limits, default=None)
        width = max(self._state.moments.shape[1], other._state.moments.shape[1])
        merged = _core.merge(self._with_moments(width), other._with_moments(width), max_cells or _UNBOUNDED)
        return ColumnSummary._of(merged, max_cells, self._uncounted | other._uncounted)

    def of_rows(self, n_rows: int) -> ColumnSummary:
        """Return the summary of `n_rows` equal rows, where this one is of a single row: all of them have its weight."""
        cells, moments, level, sample, counts, special_weights, span = self._state
        missing, below, above = (n * n_rows for n in counts)
        counts = (missing, below, above)
        weights = special_weights if moments.shape[1] else (float(missing), float(below), float(above))
        state = (cells * np.array([1, n_rows], np.uint64), moments, level, sample, counts, weights, span)
        return ColumnSummary._of(state, self.max_cells, self._uncounted)

    def _with_moments(self, width: int) -> _State:
        """Return the state with a weight of 1 per row where it had none."""
        cells, moments = self._state.cells, self._state.moments
        if moments.shape[1] == width or len(cells) == 0:
            return self._state._replace(moments=np.zeros((0, width)) if len(cells) == 0 else moments)
        if width > 1:
            raise ValueError("summaries with a target and without, or with other targets, cannot be added")
        return self._state._replace(moments=cells[:, 1:].astype(np.float64))

    # ---- what it says of the column

    @cached_property
    def points(self) -> Points:
        """The finite values, as the methods see them."""
        return Points(*_frozen(_core.points(self._state)))

    @property
    def n_cells(self) -> int:
        """The number of cells: of distinct values, if the summary is exact."""
        return len(self._state.cells)

    @property
    def is_exact(self) -> bool:
        """Whether every cell is a single value."""
        return self._state.level == 0

    @cached_property
    def count(self) -> int:
        """The number of rows with a finite value."""
        return int(self._state.cells[:, 1].sum())

    @property
    def missing(self) -> int:
        """The number of rows with NaN."""
        return self._state.counts[0]

    @property
    def negative_infinite(self) -> int:
        """The number of rows with -inf."""
        return self._state.counts[1]

    @property
    def positive_infinite(self) -> int:
        """The number of rows with +inf."""
        return self._state.counts[2]

    @property
    def n_rows(self) -> int:
        """The number of all rows."""
        return self.count + sum(self._state.counts)

    @property
    def special_weights(self) -> tuple[float, float, float]:
        """The weights of the rows with NaN, with -inf and with +inf: their numbers, if no weights were given."""
        return self._state.special_weights

    @cached_property
    def weight(self) -> float:
        """The weight of the rows with a finite value: their number, if no weights were given."""
        return float(self.points.weight.sum())

    @property
    def has_target(self) -> bool:
        """Whether targets were given."""
        return bool(self._state.moments.shape[1] > 1)

    @property
    def target_sums(self) -> Floats:
        """Per cell the weight, the weighted sum of each target, and that of their squares: (n_cells, targets + 2)."""
        if not self.has_target:
            raise ValueError("this summary has no target: pass target= (or y= to fit_bins)")
        return self._state.moments

    @property
    def cell_ends(self) -> tuple[Floats, Floats]:
        """The lowest and the highest value that each cell can hold (as for target_sums, one per cell)."""
        return _core.cell_ends(self._state)

    @property
    def min(self) -> float:
        """The least finite value; NaN if there is none."""
        return self._state.span[0] if self.n_cells else float("nan")

    @property
    def max(self) -> float:
        """The greatest finite value; NaN if there is none."""
        return self._state.span[1] if self.n_cells else float("nan")

    @cached_property
    def range(self) -> Range:
        """The least and the greatest value of all rows, those of weight 0 too, and whether any is missing."""
        low = -np.inf if self.negative_infinite else self.min if self.n_cells or not self.positive_infinite else np.inf
        high = np.inf if self.positive_infinite else self.max if self.n_cells or not self.negative_infinite else -np.inf
        return Range(float(low), float(high), self.missing > 0) | self._uncounted

    @cached_property
    def mean(self) -> float:
        """The mean of the finite values (here and below: to within a cell's width, if not exact)."""
        if not self.n_cells:
            return float("nan")
        middle, weight = self.points.middle, self.points.weight
        with np.errstate(over="ignore", invalid="ignore"):
            mean = (middle * weight).sum() / weight.sum()
        return float(mean if np.isfinite(mean) else (middle * (weight / weight.sum())).sum())

    @property
    def variance(self) -> float:
        """The variance of the finite values (of the population)."""
        half_unit, second, _ = self._central_moments
        with np.errstate(over="ignore", under="ignore"):
            return float((np.float64(half_unit) * (2 * np.sqrt(second))) ** 2)

    @property
    def skew(self) -> float:
        """The skewness of the finite values (of the population); 0 for a constant column."""
        _, second, third = self._central_moments
        return third / second / second**0.5 if second > 0 else 0.0

    @cached_property
    def _central_moments(self) -> tuple[float, float, float]:
        """Return half a unit, and the second and third central moments in that unit, which cannot overflow."""
        if not self.n_cells:
            return 1.0, float("nan"), float("nan")
        half_range = self.max / 2 - self.min / 2
        if half_range == 0:
            return 1.0, 0.0, 0.0
        x = (self.points.middle / 2 - self.mean / 2) / half_range
        spread = ((self.points.high - self.points.low) / 2 / half_range) ** 2 / 12
        share = self.points.weight / self.weight
        second = float((share * (x * x + spread)).sum())
        third = float((share * (x**3 + 3 * x * spread)).sum())
        return half_range, second, third

    def quantile(self, q: ArrayLike) -> Floats:
        """Return quantiles with linear interpolation, as `np.quantile` of the rows does.

        A weight counts as that many rows. (Weights below 1 on average are scaled to 1 on average.)
        """
        if not self.n_cells:
            raise ValueError("there is no finite value to take a quantile of")
        shares = np.asarray(q, np.float64)
        ascending = shares.ravel()
        order = None if (ascending[1:] >= ascending[:-1]).all() else np.argsort(ascending, kind="stable")
        found = _core.quantiles(self.points, float(self.count), ascending if order is None else ascending[order])
        if order is not None:
            found[order] = found.copy()
        return found.reshape(shares.shape)

    # ---- as a value

    def __eq__(self, other: object) -> bool:
        """Return whether both sum up the same rows; those of weight 0 do not count."""
        return isinstance(other, ColumnSummary) and self._counted_bytes() == other._counted_bytes()

    def __hash__(self) -> int:
        return hash(self._counted_bytes())

    def __repr__(self) -> str:
        special = [
            f"{n:,} {what}"
            for n, what in [
                (self.missing, "missing"),
                (self.negative_infinite, "-inf"),
                (self.positive_infinite, "+inf"),
            ]
            if n
        ]
        if not self.n_cells:
            return f"ColumnSummary({'; '.join(['no finite values', *special])})"
        rows = f"{self.count:,} row{'s' * (self.count != 1)} from {self.min:g} to {self.max:g}"
        if self._state.moments.shape[1]:
            rows += f", weight {self.weight:g}"
        held = f"{self.n_cells:,} distinct values, exact" if self.is_exact else f"{self.n_cells:,} cells"
        return f"ColumnSummary({'; '.join([f'{rows}, mean {self.mean:g}, skew {self.skew:.3g}', held, *special])})"

    def to_bytes(self) -> bytes:
        """Return the summary as bytes, for `from_bytes`."""
        body = self._counted_bytes() + _UNCOUNTED.pack(*self._uncounted)
        return body + struct.pack("<I", zlib.crc32(body))

    def _counted_bytes(self) -> bytes:
        """Return what is kept of the rows that count, as bytes."""
        cells, moments, level, sample, counts, special_weights, span = self._state
        sizes = (len(cells), moments.shape[1], len(sample), self.max_cells or 0)
        head = _HEADER.pack(_MAGIC, _VERSION, *sizes, level, *counts, *special_weights, *span)
        arrays = (cells.astype("<u8"), moments.astype("<f8"), sample.astype("<u8"))
        return head + b"".join(a.tobytes() for a in arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> ColumnSummary:
        """Return the summary that `to_bytes` wrote."""
        body = data[:-4]
        if len(data) < _HEADER.size + 4 or not data.startswith(_MAGIC):
            raise ValueError("these bytes are not a boostbins summary, or are cut short")
        fields = _HEADER.unpack_from(body)
        if not 1 <= fields[1] <= _VERSION:
            raise ValueError(f"a summary of version {fields[1]}; this boostbins reads up to version {_VERSION}")
        if struct.unpack("<I", data[-4:])[0] != zlib.crc32(body):
            raise ValueError("the summary's bytes are damaged or cut short: its checksum is wrong; build it again")
        n, width, n_sample, max_cells, level = fields[2:7]
        end = _HEADER.size + 8 * (2 * n + n * width + n_sample)
        if len(body) != end + (_UNCOUNTED.size if fields[1] > 1 else 0):
            raise ValueError("these bytes are not a boostbins summary: they have another length than they say")
        numbers = np.frombuffer(body[:end], "<u8", offset=_HEADER.size).astype(np.uint64)
        cells, moments, sample = np.split(numbers, [2 * n, 2 * n + n * width])
        state = (
            cells.reshape(n, 2),
            moments.view(np.float64).reshape(n, width),
            level,
            sample[:n_sample],
            fields[7:10],
            fields[10:13],
            fields[13:15],
        )
        uncounted = Range(*_UNCOUNTED.unpack_from(body, end)) if fields[1] > 1 else _NOTHING
        try:
            _core.check(state, max_cells or _UNBOUNDED)
            if not (uncounted.low <= uncounted.high or np.isnan(uncounted[:2]).all()):
                raise ValueError("a range that ends before it begins")
        except ValueError as error:
            raise ValueError(f"these bytes are not a boostbins summary: {error}") from None
        return cls._of(state, max_cells or None, uncounted)

    def __copy__(self) -> ColumnSummary:
        return ColumnSummary._of(self._state, self.max_cells, self._uncounted)

    def __reduce__(self) -> tuple[Any, ...]:
        return ColumnSummary.from_bytes, (self.to_bytes(),)


class GrowingSummary:
    """The summary of rows that come one batch after another: the sum of the batches', and faster.

    From the first large batch on, and once a column has more values than cells, the rows of a batch are counted where
    those before it were, and nothing is added up before the end. Everything is checked already, as for
    `ColumnSummary.of_checked`.
    """

    def __init__(self, max_cells: int | None) -> None:
        self.max_cells = max_cells
        self._sum: ColumnSummary | None = None
        self._growing: _core.Growing | None = None
        self._uncounted = _NOTHING

    def add(self, column: NDArray[Any], weight: Floats | None, target: Targets | None) -> None:
        """Add a batch; either all have weights, or none has, and targets likewise."""
        self._uncounted |= _range_of_uncounted(column, weight)
        if self.max_cells is not None:
            rows = _counted(column, weight, target)
            if self._growing is None and self._sum is None and len(rows[0]) > _SORTED_ROWS:
                n_moments = target.shape[1] + 2 if target is not None else 0 if weight is None else 1
                self._growing = _core.Growing(_guide(rows[0]), n_moments, self.max_cells)
            if self._growing is not None:
                self._growing.add(*rows)
                return
        part = ColumnSummary.of_checked(column, weight, target, self.max_cells)
        self._sum = part if self._sum is None else self._sum + part
        if not self._sum.is_exact and self.max_cells is not None:
            self._growing = _core.Growing(self._sum._state, self.max_cells)
            self._sum = None

    def summary(self) -> ColumnSummary:
        """Return the summary of all batches."""
        if self._growing is not None:
            return ColumnSummary._of(self._growing.state(), self.max_cells, self._uncounted)
        return ColumnSummary([], max_cells=self.max_cells) if self._sum is None else self._sum


_Rows = tuple[NDArray[Any], Floats | None, Targets | None]


def _counted(values: NDArray[Any], weights: Floats | None, targets: Targets | None) -> _Rows:
    """Return the rows that count: those of weight 0 do not."""
    if weights is None or weights.all():
        return values, weights, targets
    counted = np.flatnonzero(weights)
    return values[counted], weights[counted], None if targets is None else targets[counted]


def _range_of_uncounted(values: NDArray[Any], weights: Floats | None) -> Range:
    """Return the range of the rows of weight 0."""
    return _NOTHING if weights is None or weights.all() else Range.of(values[weights == 0])


def _summarized(
    values: NDArray[Any], weights: Floats | None, targets: Targets | None, max_cells: int, n_threads: int = 1
) -> _core.State:
    values, weights, targets = _counted(values, weights, targets)
    n = len(values)
    if n <= _SORTED_ROWS or max_cells == _UNBOUNDED:
        values = _as_floats(values)
        if weights is None and targets is None:
            return _core.summarize(np.sort(values), None, None, None, None, max_cells)
        order = np.argsort(values)
        return _core.summarize(values[order], weights, targets, None, order, max_cells)
    n_parts = -(-n // _ROWS_AT_ONCE)
    if weights is None and targets is None:  # sums of others are rounded, and must not depend on the threads
        n_parts = max(n_parts, min(n_threads, n // _WORTH_A_THREAD))
    step = -(-n // n_parts)

    def summarized(part: int) -> _core.State:
        rows = slice(part * step, (part + 1) * step)
        return _core.summarize(
            values[rows],
            None if weights is None else weights[rows],
            None if targets is None else targets[rows],
            _guide(values[rows]),
            None,
            max_cells,
        )

    return reduce(lambda a, b: _core.merge(a, b, max_cells), map_threads(summarized, range(n_parts), n_threads))


def _guide(values: NDArray[Any]) -> Floats:
    """Return some of the values in ascending order, for the kernel to find its way."""
    return np.sort(_as_floats(values[:: max(1, len(values) // (2 * MAX_CELLS))]))


def _as_floats(values: NDArray[Any]) -> Floats:
    """Return values as float64."""
    with np.errstate(invalid="ignore"):  # of signaling NaN, which are missing like any other
        return values.astype(np.float64, copy=False)


def _checked(state: _core.State) -> _State:
    """Return a summary's state, frozen. Its sums must be finite: those of each of its parts may be, and theirs not."""
    named = _State(*_frozen(state))
    if named.moments.shape[1]:
        with np.errstate(over="ignore"):
            check_total(float(named.moments[:, 0].sum()) + sum(named.special_weights), "the rows' weight")
            check_squares(float(named.moments[:, -1].sum()))
    return named


def _frozen(arrays: _Tuple) -> _Tuple:
    for part in arrays:
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return arrays


def halfway(left: Floats, right: Floats) -> Floats:
    """Return cuts that part ascending, distinct values from those on their right."""
    with np.errstate(over="ignore"):
        middle = (left + right) / 2
    middle = np.where(np.isfinite(middle), middle, left / 2 + right / 2)
    # Never at the right value: a cut belongs to the bin on its left.
    return np.where((middle >= right) | (middle < left), left, middle)


def run_means(middle: Floats, weight: Floats, first: NDArray[np.intp]) -> Floats:
    """Return the weighted means of runs of ascending points, which begin at `first` and are not empty."""
    run = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(middle))))
    share = weight / np.add.reduceat(weight, first)[run]
    # Relative to the first of each run, so that large offsets cost no digits; halved, so that nothing overflows.
    start = middle[first]
    mean = 2 * (start / 2 + np.add.reduceat(share * (middle / 2 - start[run] / 2), first))
    return np.clip(mean, start, middle[np.append(first[1:], len(middle)) - 1])


def checked_max_cells(max_cells: int | None) -> int | None:
    """Return the number of cells that a summary may have, None for all."""
    if max_cells is None:
        return None
    if not isinstance(max_cells, int | np.integer) or isinstance(max_cells, bool) or max_cells < 2:
        raise ValueError(f"max_cells must be a whole number from 2 on, or None for all, got {max_cells!r}")
    return int(max_cells)
