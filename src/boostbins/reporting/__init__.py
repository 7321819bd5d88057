"""What binning does to each column of a table, without any training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins._threads import Progress, cached_property, map_threads
from boostbins.fit import checked_max_bins
from boostbins.methods import METHODS, Method, looks_at_target, named_methods
from boostbins.methods.budget import MAX_SHARED_BINS, needs_by_target, shared_bins, useful_bins
from boostbins.methods.choice import Choice
from boostbins.reporting.facts import ColumnFacts, column_facts, percent
from boostbins.sources.features import notes_on, target_values
from boostbins.sources.reading import in_memory
from boostbins.sources.request import Request
from boostbins.sources.stream import Stream, open_source
from boostbins.sources.table import DATE
from boostbins.sources.values import MAX_TARGETS, Targets, checked_target, class_targets, positive_weight
from boostbins.summary.column import MAX_CELLS
from boostbins.summary.rows import RowSample
from boostbins.summary.stats import frame_of
from boostbins.summary.table import summarize_column

__all__ = ["Report", "report"]

COLORS = {
    "auto": "#b01e68", "hybrid": "#0e7c7b",
    "quantile": "#b3541e", "kmeans": "#1b6ca8", "optimal": "#3d7a37", "uniform": "#7a5195",
    "shared": "#8a6a00", "auto-bins": "#6b4e00",
}  # fmt: skip
_OTHER = "#555555"


@dataclass(frozen=True)
class Report:
    """What the bins of each method hold and cost; show it in a notebook, `plot` a column, `to_html`.

    Attributes
    ----------
    columns : frame
        A row per column, those first that k-means bins would gain most from: its distribution, the gain, how many bins
        it gets where columns share them by what the target needs, and what to look at.
    costs : frame
        A row per column, number of bins and method: the part of the variance that is lost within bins, the share of
        the rows in the largest bin, how many distinct values share it, and what "auto" chose.
    facts : tuple of ColumnFacts
        All of it, as plain data.
    notes : tuple of str
        On columns that were changed or left out.
    """

    facts: tuple[ColumnFacts, ...] = field(repr=False)
    methods: tuple[str, ...]
    max_bins: tuple[int, ...]
    n_rows: int
    target: str | None = None  # what the target's mean is of
    notes: tuple[str, ...] = field(default=(), repr=False)
    title: str = "your data"

    @cached_property
    def columns(self) -> Any:
        """The columns in short, as a frame."""
        return frame_of([self._row(facts) for facts in self.facts])

    def _row(self, facts: ColumnFacts) -> dict[str, Any]:
        return {
            "column": facts.name,
            "rows": facts.rows,
            "missing": facts.missing,
            "distinct": facts.distinct,
            "min": facts.low,
            "max": facts.high,
            "mean": facts.mean,
            "skew": facts.skew,
            "gain": facts.gain(self.max_bins[0]),
            "shared_bins": share.bins if (share := facts.shares.get(self.max_bins[0])) else None,
            "look_at": "; ".join(facts.spotted(self.max_bins[0])),
        }

    @cached_property
    def costs(self) -> Any:
        """What the bins cost, as a frame."""
        return frame_of(
            [
                {
                    "column": facts.name,
                    "max_bins": max_bins,
                    "method": method,
                    "bins": len(binned.cuts) + 1,
                    "lost": binned.lost,
                    "largest_bin": binned.largest_bin,
                    "hidden": binned.hidden,
                    "chosen": "" if binned.choice is None else binned.choice.chosen,
                }
                for facts in self.facts
                for (method, max_bins), binned in facts.binned.items()
            ]
        )

    @property
    def verdict(self) -> str:
        """What it comes to, in a sentence for each number of bins."""
        return "\n".join(self._said(max_bins) for max_bins in self.max_bins)

    def _said(self, max_bins: int) -> str:
        return " ".join(filter(None, [self._lost(max_bins), self._shared(max_bins)]))

    def _shared(self, max_bins: int) -> str:
        shares = {facts.name: facts.shares[max_bins].bins for facts in self.facts if max_bins in facts.shares}
        if len(shares) < 2:
            return ""
        first, *others = sorted(shares, key=lambda name: -shares[name])
        fewest, most = shares[others[-1]], shares[others[0]]
        rest = f"{fewest:,} to {most:,}" if fewest < most else f"{most:,}"
        return (
            f"With as many bins in all, shared by what the target needs (average_bins={max_bins}), {first!r} gets "
            f"{shares[first]:,}, the other columns {rest}."
        )

    def _lost(self, max_bins: int) -> str:
        losing = [facts for facts in self.facts if facts.gain(max_bins) >= 0.01]
        if not losing:
            return f"At {max_bins} bins quantile bins lose next to nothing that k-means bins would keep."
        worst = max(losing, key=lambda facts: facts.gain(max_bins))
        lost = [percent(worst.binned[method, max_bins].lost) for method in ("quantile", "kmeans")]
        return (
            f"At {max_bins} bins quantile bins lose more than 1 % of the variance that k-means bins keep in "
            f"{len(losing)} of {len(self.facts)} columns; most in {worst.name!r}: {lost[0]} lost, by k-means {lost[1]}."
        )

    def __str__(self) -> str:
        top = [
            f"{facts.name}: {'; '.join(facts.spotted(self.max_bins[0])) or 'nothing odd'}" for facts in self.facts[:10]
        ]
        return "\n".join([self.verdict, "", *top])

    def __getitem__(self, column: str) -> ColumnFacts:
        for facts in self.facts:
            if facts.name == column:
                return facts
        raise KeyError(f"no column {column!r}; there are {', '.join(repr(f.name) for f in self.facts[:10])}")

    # ---- to look at

    def plot(self, column: str | None = None, max_bins: int | None = None, axes: Any = None) -> Any:
        """Draw a column's distribution, and below it the cuts of each method; return the axes.

        Parameters
        ----------
        column : str, optional
            The first of the report, if not given.
        max_bins : int, optional
            The last of the report's, if not given.
        axes : matplotlib Axes, optional
        """
        import matplotlib.pyplot as plt
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        facts = self[column] if column is not None else self.facts[0]
        max_bins = self.max_bins[-1] if max_bins is None else max_bins
        if max_bins not in self.max_bins:
            raise ValueError(f"max_bins must be one of {', '.join(map(str, self.max_bins))}, got {max_bins!r}")
        if axes is None:
            _, axes = plt.subplots(figsize=(9, 3.6), layout="tight")
        for histogram in facts.histograms[:1]:
            axes.stairs(histogram.weight, histogram.edges, fill=True, color="#888888")
            axes.set_yscale("log")
        axes.tick_params(axis="x", labelbottom=False, bottom=False)
        rug = make_axes_locatable(axes).append_axes("bottom", f"{12 * len(self.methods)}%", pad=0.08, sharex=axes)
        for row, method in enumerate(self.methods):
            binned, color = facts.binned[method, max_bins], COLORS.get(method, _OTHER)
            rug.vlines(binned.cuts, -row - 0.8, -row, color=color, linewidth=0.8)
            label = f"{method}, {percent(binned.lost)} lost"
            rug.text(1.01, -row - 0.4, label, transform=rug.get_yaxis_transform(), va="center", fontsize=8, color=color)
        rug.set(yticks=[], ylim=(-len(self.methods), 0.2), xlabel=facts.name)
        rug.spines[["left", "top", "right"]].set_visible(False)
        axes.set_ylabel("rows")
        axes.set_title(f"{facts.name}: where {max_bins} bins go", loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        return axes

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "title": self.title,
            "rows": self.n_rows,
            "methods": list(self.methods),
            "max_bins": list(self.max_bins),
            "target": self.target,
            "verdict": self.verdict.split("\n"),
            "notes": list(self.notes),
            "columns": [_column_dict(facts, self.methods, self.max_bins) for facts in self.facts],
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a page that needs nothing else, and write it to a file if one is named."""
        from boostbins.reporting.page import page

        return page(report=self.to_dict(), path=path)

    def _repr_html_(self) -> str:
        from boostbins.reporting.page import framed

        return framed(self.to_html())


def _column_dict(facts: ColumnFacts, methods: Sequence[str], budgets: Sequence[int]) -> dict[str, Any]:
    digits = _digits(facts)

    def short(values: Iterable[float]) -> list[float | int | None]:
        return [_short(value, digits) for value in values]

    return {
        "name": facts.name,
        "is_date": facts.is_date,
        "rows": facts.rows,
        "missing": facts.missing,
        "infinite": facts.infinite,
        "distinct": facts.distinct,
        "is_exact": facts.is_exact,
        "low": _short(facts.low, digits),
        "high": _short(facts.high, digits),
        "mean": _short(facts.mean, digits),
        "deviation": _short(facts.deviation),
        "skew": _short(facts.skew),
        "histograms": [
            {"axis": h.axis, "constant": _short(h.constant), "edges": short(h.edges), "weight": short(h.weight)}
            for h in facts.histograms
        ],
        "sentinels": [{"value": s.value, "share": _short(s.share)} for s in facts.sentinels],
        "outliers": None if facts.outliers is None else {k: _short(v) for k, v in vars(facts.outliers).items()},
        "spotted": {str(max_bins): facts.spotted(max_bins) for max_bins in budgets},
        "shares": {str(max_bins): {"bins": share.bins, "why": share.why} for max_bins, share in facts.shares.items()},
        "binned": {
            str(max_bins): {
                method: {
                    "cuts": short((found := facts.binned[method, max_bins]).cuts),
                    "weight": short(found.stats.weight),
                    "distinct": list(found.stats.distinct),
                    "lost": _short(found.lost),
                    "largest_bin": _short(found.largest_bin),
                    "hidden": found.hidden,
                    "target": None if found.target is None else [_short(value) for value in found.target],
                    "choice": None if found.choice is None else _choice_dict(found.choice),
                }
                for method in methods
            }
            for max_bins in budgets
        },
    }


def _choice_dict(choice: Choice) -> dict[str, Any]:
    return {
        "chosen": choice.chosen,
        "usual": choice.usual,
        "why": choice.why,
        "explained": {name: _short(share) for name, share in choice.explained.items()},
        "noise": {name: _short(share) for name, share in choice.noise.items()},
    }


def _digits(facts: ColumnFacts) -> int:
    """Return how many digits tell the values of a column from each other in a picture."""
    half_range = facts.high / 2 - facts.low / 2
    if not half_range > 0:
        return 17
    offset = max(abs(facts.low), abs(facts.high)) / 2 / half_range
    return min(17, 6 + int(np.ceil(np.log10(max(offset, 1.0)))))


def _short(value: float | None, digits: int = 6) -> float | int | None:
    """Return a number without the digits that no picture shows."""
    if value is None or not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def report(
    X: Any,
    y: ArrayLike | str | None = None,
    methods: Sequence[str | Method] | Mapping[str, str | Method] = tuple(METHODS),
    max_bins: int | Sequence[int] = (255, 63),
    *,
    sample_weight: ArrayLike | str | None = None,
    target: str | None = None,
    title: str = "your data",
    progress: Progress | None = None,
) -> Report:
    """Tell, for each numeric column of a table, where the bins of each method go and what they hide.

    Nothing is trained. Other columns are left out, and dates taken as seconds; `notes` says so.

    Parameters
    ----------
    X : array, frame, sparse matrix, list or dict of columns; file or files; stream
        As for `fit_bins`; what is not in memory is read whole.
    y : array of shape (rows,), or the name of a column of X, optional
        The target: numbers or classes. The report then tells how it varies inside the bins that hide something (of
        more than two classes: the share of the most frequent one), and what "auto" chose and why.
    methods : sequence of str or functions, or dict by name
        As for `fit_bins`; "quantile" and "kmeans" are always among them. Without a target "auto" is "hybrid", and left
        out if that is there too.
    max_bins : int or sequence of int
    sample_weight : array of shape (rows,), or the name of a column of X, optional
    target : str, optional
        What the target is called.
    title : str
        What the data is called on the page.
    progress : function, optional
        Called with the number of columns done, of all columns, and the name of one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> found = report({"income": rng.lognormal(10, 1, 10_000), "rooms": rng.poisson(4, 10_000)}, max_bins=63)
    >>> found.columns["column"].tolist()
    ['income', 'rooms']
    >>> print(found.verdict)  # doctest: +ELLIPSIS
    At 63 bins quantile bins lose more than 1 % of the variance that k-means bins keep in 1 of 2 columns; ...
    """
    budgets = [max_bins] if isinstance(max_bins, int | np.integer) else list(max_bins)
    if not budgets:
        raise ValueError("max_bins must hold a number at least")
    budgets = list(dict.fromkeys(checked_max_bins(budgets, [str(i) for i in range(len(budgets))])))
    found = named_methods(methods, always=("quantile", "kmeans"))
    target = target or (y if isinstance(y, str) else "the target")
    request = Request(None, {"y": y, "sample_weight": sample_weight}, "skip", dates_as_numbers=True, texts=["y"])
    rows = open_source(in_memory(X), request)
    assert not isinstance(rows, Stream)
    table, y, sample_weight = rows.table, rows.per_row.get("y"), rows.per_row.get("sample_weight")
    if not len(table):
        raise ValueError("there is no numeric column: nothing to bin")
    notes, dates = notes_on(table.units, table.left_out), {name for name, unit in table.units.items() if unit == DATE}
    weight = None if sample_weight is None else positive_weight(sample_weight, table.n_rows, "sample_weight")
    targets, meaning, shown = None, None, 0
    if y is not None:
        targets, meaning, shown = _target_numbers(target_values(y, table.n_rows, "y"), target)
    elif "auto" in found and looks_at_target(found["auto"]):
        notes.append("there is no target, without which auto is hybrid")
        if "hybrid" in found:
            del found["auto"]
    done = count(1)

    def of_column(i: int) -> ColumnFacts:
        summary = summarize_column(table, i, weight, targets, max_cells=MAX_CELLS)
        facts = column_facts(table.names[i], summary, found, budgets, is_date=table.names[i] in dates, shown=shown)
        if progress is not None:
            progress(next(done), len(table), table.names[i])
        return facts

    every = map_threads(of_column, range(len(table)), None)
    if targets is not None:
        every = _with_shares(every, RowSample.of(table, weight, targets), budgets)
    ordered = sorted(every, key=lambda facts: -facts.gain(budgets[0]))
    return Report(tuple(ordered), tuple(found), tuple(budgets), table.n_rows, meaning, tuple(notes), title)


def _with_shares(every: Sequence[ColumnFacts], rows: RowSample, budgets: Sequence[int]) -> list[ColumnFacts]:
    """Return the columns with how many bins each gets where all share them, at each number of them on average."""
    most = [useful_bins(MAX_SHARED_BINS, facts.distinct if facts.is_exact else None) for facts in every]
    pilot = needs_by_target(rows, most)
    given = {n: shared_bins(n * len(every), pilot.most, pilot.needs, "target") for n in budgets}
    return [replace(facts, shares={n: given[n][i] for n in budgets}) for i, facts in enumerate(every)]


def _target_numbers(values: NDArray[Any], name: str) -> tuple[Targets, str, int]:
    """Return the target as numbers, the meaning of the mean that is shown, and the place of what it is the mean of."""
    if values.dtype.kind in "biuf":
        return checked_target(values.astype(np.float64), len(values), "y"), name, 0
    texts = values.astype(str)
    classes, counts = np.unique(texts, return_counts=True)
    if len(classes) <= 2:
        return (texts == classes[-1]).astype(np.float64)[:, None], f"{name} = {classes[-1]}", 0
    shown = int(counts[: MAX_TARGETS - 1].argmax())  # the last ones may share a place
    return class_targets(texts, "y"), f"{name} = {classes[shown]}", shown
