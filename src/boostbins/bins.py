"""The cuts of all columns: what they mean, what they cost, and how they are written down."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins import _core
from boostbins._atomic import atomic_write
from boostbins._threads import cached_property, map_threads
from boostbins.methods import MAX_BINS
from boostbins.methods.budget import BinShare
from boostbins.methods.choice import Choice
from boostbins.sources.request import NonNumeric, Request
from boostbins.sources.table import DATE, NOTHING, ROWS_AT_ONCE, SPAN, SparseColumn, Table, read_table
from boostbins.sources.values import Floats, checked_weight, real_numbers
from boostbins.summary.column import halfway
from boostbins.summary.stats import BinStats, bin_rows, bin_stats, cost_row, frame_of
from boostbins.summary.table import summarize_column

Codes: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]

_FEW_ROWS = 500  # which are encoded before a table for them is made
_ENCODERS = 64  # that are held at a time: each has tables
_FORMAT = "boostbins.bins"
_VERSION = 3  # 2 did not say how columns share a total, 1 not which held dates, and in which unit
_HEAD = 64  # bytes of a file that tell whether it can be JSON


class Bins:
    """The cuts of all columns of a table, immutable.

    **x is in bin i if and only if cuts[i-1] < x <= cuts[i]**, with -inf before the first cut and +inf after the
    last; NaN is in no bin and has a code of its own, `missing_code`.

    Parameters
    ----------
    cuts : sequence of arrays
        One per column, ascending and finite. A column with B bins has B - 1 cuts.
    names : sequence of str, optional
        "x0", "x1", ... if not given.
    stats : sequence of BinStats, optional
        From `fit_bins`.
    choices : sequence of Choice or None, optional
        From `fit_bins`.
    units : dict, optional
        What the cuts of a column count that held dates ("seconds since 1970") or durations ("seconds"), by its name.
    shares : sequence of BinShare or None, optional
        From `fit_bins`.

    Examples
    --------
    >>> bins = Bins([[0.5, 2.0], []], names=["price", "kind"])
    >>> bins["price"]
    array([0.5, 2. ])
    >>> bins.encode([[0.1, 0.5, 3.0, float("nan")], [1, 1, 1, 1]])
    array([[0, 0],
           [0, 0],
           [2, 0],
           [3, 0]], dtype=uint8)
    >>> Bins.from_json(bins.to_json()) == bins
    True
    """

    __slots__ = ("__dict__", "_choices", "_shares", "cuts", "names", "stats", "units")

    cuts: tuple[Floats, ...]
    names: tuple[str, ...]
    stats: tuple[BinStats, ...] | None
    units: Mapping[str, str]
    _choices: tuple[Choice | None, ...]
    _shares: tuple[BinShare | None, ...]

    def __init__(
        self,
        cuts: Iterable[ArrayLike],
        names: Iterable[str] | None = None,
        stats: Iterable[BinStats] | None = None,
        choices: Iterable[Choice | None] | None = None,
        units: Mapping[str, str] | None = None,
        shares: Iterable[BinShare | None] | None = None,
    ) -> None:
        frozen = tuple(_frozen_cuts(c, i) for i, c in enumerate(cuts))
        known = tuple(f"x{i}" for i in range(len(frozen))) if names is None else tuple(map(str, names))
        if len(known) != len(frozen) or len(set(known)) != len(known):
            raise ValueError(f"names must be {len(frozen)} different names, one per column, got {known}")
        held = None if stats is None else tuple(stats)
        if held is not None and [len(s.weight) for s in held] != [len(c) + 1 for c in frozen]:
            raise ValueError(
                f"stats must be one per column, and of its bins, got {len(held)} for {len(frozen)} columns"
            )
        chosen, shared = ((None,) * len(frozen) if given is None else tuple(given) for given in (choices, shares))
        for argument, given in (("choices", chosen), ("shares", shared)):
            if len(given) != len(frozen):
                raise ValueError(f"{argument} must be one per column, got {len(given)} for {len(frozen)} columns")
        set_ = object.__setattr__
        set_(self, "cuts", frozen)
        set_(self, "names", known)
        set_(self, "stats", held)
        set_(self, "_choices", chosen)
        set_(self, "_shares", shared)
        set_(self, "units", {name: unit for name, unit in (units or {}).items() if unit and name in known})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Bins are immutable: make new ones instead of setting {name}")

    # ---- columns

    def __len__(self) -> int:
        return len(self.cuts)

    def __iter__(self) -> Iterator[Floats]:
        return iter(self.cuts)

    def __getitem__(self, column: int | str) -> Floats:
        return self.cuts[self._index(column)]

    def _index(self, column: int | str) -> int:
        if isinstance(column, str):
            if column not in self.names:
                raise KeyError(f"no column {column!r}; there are {', '.join(map(repr, self.names[:10]))}")
            return self.names.index(column)
        return range(len(self))[column]

    @cached_property
    def n_bins(self) -> tuple[int, ...]:
        """The number of bins per column, the missing values' not counted."""
        return tuple(len(c) + 1 for c in self.cuts)

    @cached_property
    def missing_code(self) -> int:
        """The code of missing values, in every column: the largest number of bins."""
        return max(self.n_bins, default=1)

    @property
    def choices(self) -> dict[str, Choice]:
        """What "auto" chose, and why, by column: those that have fewer distinct values than bins had no choice."""
        return {name: choice for name, choice in zip(self.names, self._choices, strict=True) if choice is not None}

    @property
    def shares(self) -> dict[str, BinShare]:
        """How many bins a column got of a total, and why, by column: nothing, if no total was asked for."""
        return {name: share for name, share in zip(self.names, self._shares, strict=True) if share is not None}

    # ---- as a value

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of names, cuts and units: equal for equal bins, on every machine."""
        sha = hashlib.sha256(b"boostbins cuts 1")
        for name, cuts in zip(self.names, self.cuts, strict=True):
            text = name.encode(errors="surrogatepass")
            sha.update(len(text).to_bytes(8, "little") + text)
            sha.update(len(cuts).to_bytes(8, "little") + cuts.astype("<f8").tobytes())
            sha.update(self.units.get(name, "").encode())
        return sha.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bins) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        shown = [f"{name}: {n}" for name, n in zip(self.names, self.n_bins, strict=True)]
        more = [f"and {len(self) - 6} more"] if len(self) > 6 else []
        return f"Bins({', '.join(shown[:6] + more)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Bins, (self.cuts, self.names, self.stats, self._choices, self.units, self._shares)

    # ---- written down

    def to_json(self) -> str:
        """Return the bins as JSON, exact to the last bit."""
        return self.to_json_with({})

    def to_json_with(self, more: Mapping[str, Any]) -> str:
        """Return the bins as JSON with more entries, which `from_json` does not look at, under the same checksum."""
        columns: list[dict[str, Any]] = [
            {"name": name, "cuts": cuts.tolist()} for name, cuts in zip(self.names, self.cuts, strict=True)
        ]
        for column, stats in zip(columns, self.stats or (), strict=False):
            column["stats"] = asdict(stats)
        for column, choice, share in zip(columns, self._choices, self._shares, strict=True):
            if choice is not None:
                column["choice"] = asdict(choice)
            if share is not None:
                column["share"] = asdict(share)
            if column["name"] in self.units:
                column["unit"] = self.units[column["name"]]
        content = {"format": _FORMAT, "version": _VERSION, **more, "columns": columns}
        return json.dumps({**content, "sha256": _checksum(content)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Bins:
        """Return the bins that `to_json` wrote, of this version or an earlier one."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not the JSON of boostbins' bins, or cut short: {error}") from None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f'not the JSON of boostbins\' bins: it has no "format": "{_FORMAT}"')
        if content.get("version") not in range(1, _VERSION + 1):
            raise ValueError(
                f"bins of version {content.get('version')!r}; this boostbins reads up to version {_VERSION}: "
                f"install the boostbins that wrote them, or a newer one"
            )
        if content.pop("sha256", None) != _checksum(content):
            raise ValueError(
                "the JSON was changed after it was written: its checksum is wrong. "
                "To make bins from cuts of your own, use Bins(cuts, names)"
            )
        try:
            columns = content["columns"]
            names = [c["name"] for c in columns]
            if odd := [name for name in names if not isinstance(name, str)]:
                raise ValueError(f"{odd[0]!r} is no name of a column")
            return cls(
                [c["cuts"] for c in columns],
                names,
                [BinStats.from_dict(c["stats"]) for c in columns if "stats" in c] or None,
                [Choice.from_dict(c["choice"]) if "choice" in c else None for c in columns],
                {c["name"]: _checked_unit(c["unit"]) for c in columns if "unit" in c},
                [BinShare.from_dict(c["share"]) if "share" in c else None for c in columns],
            )
        except KeyError as error:
            raise ValueError(f"not the JSON of boostbins' bins: it lacks {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"not the JSON of boostbins' bins: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON to a file: whole, or not at all."""
        with atomic_write(path) as file:
            file.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bins:
        """Return the bins in a file that `save` wrote."""
        try:
            return cls.from_json(text_in(path))
        except UnicodeDecodeError:
            raise ValueError(f"{os.fspath(path)}: not the JSON of boostbins' bins, nor any text") from None
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None

    # ---- values to codes and back

    def encode(
        self,
        X: Any,
        *,
        order: Literal["C", "F"] = "C",
        n_threads: int | None = None,
        non_numeric: NonNumeric = "error",
    ) -> Codes:
        """Return the number of the bin of every value, of shape (rows, columns).

        Frames are matched by column name, arrays by position. Values beyond those seen when fitting, and
        infinities, are in the end bins; NaN becomes `missing_code`. The codes are uint8 if `missing_code` allows.
        Columns that were binned as dates must hold dates, in whatever unit.

        Parameters
        ----------
        X : array, frame, sparse matrix or list of columns
        order : "C" or "F"
            The memory layout of the codes.
        n_threads : int, optional
            As many as there are processors, if not given.
        non_numeric : "error" or "skip"
            As for `fit_bins`.
        """
        if order not in ("C", "F"):
            raise ValueError(f"order must be 'C' or 'F', got {order!r}")
        table = self._read(X, non_numeric)
        codes = self._empty_codes((table.n_rows, len(table)), order)

        way = _core.Encoder if table.n_rows > _FEW_ROWS else _core.Searcher

        def encoder(i: int) -> _core.Encoder | _core.Searcher:
            return way(self.cuts[i], self.missing_code)

        def encode_column(i: int) -> None:
            column = table.read(i)
            if not isinstance(column, SparseColumn):
                return encoder(i).encode(column, codes[:, i])
            stored = self._empty_codes((len(column.values) + 1,))
            encoder(i).encode(np.append(column.values.astype(np.float64), column.rest), stored)
            codes[:, i] = stored[-1]
            codes[column.rows, i] = stored[:-1]
            return None

        if not table.in_memory:
            map_threads(encode_column, range(len(table)), n_threads)
            return codes
        for first in range(0, len(table), _ENCODERS):
            encoders = {i: encoder(i) for i in range(first, min(first + _ENCODERS, len(table)))}

            def encode_rows(start: int) -> None:
                rows = slice(start, start + ROWS_AT_ONCE)
                for i, one in encoders.items():  # noqa: B023 (done before the next)
                    column = table.read(i)
                    assert not isinstance(column, SparseColumn)
                    one.encode(column[rows], codes[rows, i])

            map_threads(encode_rows, range(0, table.n_rows, ROWS_AT_ONCE), n_threads)
        return codes

    def _read(self, X: Any, non_numeric: NonNumeric) -> Table:
        """Return a table's columns in our order; dates must be where they were when the bins were found."""
        table = read_table(X, Request(non_numeric=non_numeric, dates_as_numbers=True))
        if odd := [name for name in self.names if name in table.left_out]:
            raise ValueError(f"X, column {odd[0]!r} holds no numbers, but did when the bins were found")
        table = table.matched(self.names)
        for mine, its in zip(self.names, table.names, strict=True):
            unit, found = self.units.get(mine), table.units.get(its)
            if unit != found and found != NOTHING:
                raise ValueError(
                    f"X, column {its!r} holds {found or 'numbers'}, and these bins are of {unit or 'numbers'}: "
                    f"convert it, or find bins on such columns"
                )
        return table

    def _empty_codes(self, shape: tuple[int, ...], order: Literal["C", "F"] = "C") -> Codes:
        if self.missing_code <= np.iinfo(np.uint8).max:
            return np.empty(shape, np.uint8, order)
        return np.empty(shape, np.uint16, order)

    def decode(self, codes: ArrayLike, *, kind: Literal["mean", "center"] = "mean") -> Floats:
        """Return a value for every code: the mean of what the bin held, or the center of its range.

        NaN for missing ones. The end bins reach to the least and the greatest value seen.
        """
        if kind not in ("mean", "center"):
            raise ValueError(f"kind must be 'mean' or 'center', got {kind!r}")
        numbers = np.asarray(codes)
        if numbers.ndim != 2 or numbers.shape[1] != len(self) or numbers.dtype.kind not in "iu":
            raise ValueError(
                f"codes must be whole numbers of shape (rows, {len(self)}), got {numbers.dtype} of {numbers.shape}"
            )
        out = np.empty(numbers.shape)
        for i, n_bins in enumerate(self.n_bins):
            column = numbers[:, i]
            known = (column >= 0) & ((column < n_bins) | (column == self.missing_code))
            if not known.all():
                raise ValueError(
                    f"codes of column {self.names[i]!r} must be 0 to {n_bins - 1}, or {self.missing_code} for "
                    f"missing, got {column[~known][0]}"
                )
            values = np.full(self.missing_code + 1, np.nan)
            values[:n_bins] = self._representatives(i, kind)
            out[:, i] = values[column]
        return out

    def _representatives(self, column: int, kind: str) -> Floats:
        cuts, stats = self.cuts[column], self._stats(column)
        low = stats.low if stats.low is not None else (cuts[0] if len(cuts) else np.nan)
        high = stats.high if stats.high is not None else (cuts[-1] if len(cuts) else np.nan)
        left = np.concatenate([np.fmin(low, cuts[:1]) if len(cuts) else [low], cuts])
        right = np.concatenate([cuts, np.fmax(high, cuts[-1:]) if len(cuts) else [high]])
        center = halfway(left, right)
        center = np.where(center > left, center, right)  # the left end belongs to the bin before
        if kind == "center":
            return center
        mean = np.array([np.nan if m is None else m for m in stats.mean])
        return np.where(np.isnan(mean), center, mean)

    # ---- what they hold, what they cost

    def _stats(self, column: int) -> BinStats:
        if self.stats is None:
            raise ValueError(
                "these bins were not fitted on data, so what they hold is not known: use fit_bins, or bins.observed(X)"
            )
        return self.stats[column]

    def observed(self, X: Any, sample_weight: ArrayLike | None = None, *, non_numeric: NonNumeric = "error") -> Bins:
        """Return the same cuts with the statistics of another table, e.g. of a test set.

        These are exact; those from `fit_bins` are exact for columns of up to 32,768 distinct values, and for
        others to within the width of a cell (a small part of a bin).
        """
        table = self._read(X, non_numeric)
        weight = None if sample_weight is None else checked_weight(sample_weight, table.n_rows, "sample_weight")
        summaries = (summarize_column(table, i, weight, max_cells=None) for i in range(len(table)))
        stats = [bin_stats(s, c) for s, c in zip(summaries, self.cuts, strict=True)]
        return Bins(self.cuts, self.names, stats, self._choices, self.units, self._shares)

    def table(self, column: int | str | None = None) -> Any:
        """Return what each bin holds, as a frame (pandas if installed, else polars or Arrow).

        A row per bin, `low < x <= high`: its weight (rows, if there were no weights), its share, and the mean and
        the variance within it; of one column or of all.
        """
        chosen = range(len(self)) if column is None else [self._index(column)]
        parts = [bin_rows(self.names[i], self.cuts[i], self._stats(i), self.missing_code) for i in chosen]
        return frame_of([row for part in parts for row in part])

    def costs(self) -> Any:
        """Return what binning costs, as a frame with a row per column.

        `lost` is the part of the column's variance that lies within bins, which no tree can see any more (0:
        nothing is lost); `largest_bin` the share of the weight in the fullest bin, and `hidden` the number of
        distinct values that share that bin.
        """
        return frame_of([cost_row(name, self._stats(i)) for i, name in enumerate(self.names)])


def encode(X: Any, bins: Bins, **options: Any) -> Codes:
    """Return the codes of a table: `bins.encode(X)`."""
    return bins.encode(X, **options)


def text_in(path: str | os.PathLike[str]) -> str:
    """Return the JSON in a file; of one that holds something else, some of that."""
    with Path(path).open("rb") as file:
        data = file.read(_HEAD)
        if data.lstrip().startswith(b"{"):  # else it may be anything, and without end
            data += file.read()
    return data.decode("utf-8")


def _frozen_cuts(cuts: ArrayLike, column: int) -> Floats:
    array = real_numbers(cuts if np.size(cuts) else [], f"cuts of column {column}") + 0.0  # -0.0 is 0.0
    if array.ndim != 1 or not np.isfinite(array).all() or (array[1:] <= array[:-1]).any():
        raise ValueError(f"cuts of column {column} must be finite and ascending, without duplicates, got {array}")
    if len(array) >= MAX_BINS:
        raise ValueError(f"column {column} has {len(array)} cuts; at most {MAX_BINS - 1} are possible")
    array.flags.writeable = False
    return array


def _checked_unit(unit: Any) -> str:
    if unit not in (DATE, SPAN):
        raise ValueError(f"{unit!r} is no unit of dates")
    return str(unit)


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
