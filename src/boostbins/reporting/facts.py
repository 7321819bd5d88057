"""The facts on a column and on its bins: plain data, no pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from boostbins.methods import Method, find_chosen
from boostbins.methods.budget import BinShare
from boostbins.methods.choice import Choice
from boostbins.sources.values import Floats
from boostbins.summary.column import ColumnSummary
from boostbins.summary.stats import BinStats, bin_stats, cost_row

BARS = 96  # of a histogram
FAR = 3.0  # an outlier is farther out than this many times the distance from the 1st to the 99th percentile
HIDDEN = 0.01  # of a column's variance: if a single bin loses more, it hides something
EXPLAINED = 0.05  # of the target's variance in a bin: less is noise
TOO_LARGE = 1e300  # to be drawn
RARE = 0.001  # a value of fewer rows is no code for "missing"

Key: TypeAlias = tuple[str, int]  # a method's name and its number of bins


@dataclass(frozen=True)
class Histogram:
    """Bars of equal width on an axis that is linear, logarithmic, or logarithmic on both sides of zero."""

    axis: str  # "linear", "log" or "symlog"
    constant: float  # where a symlog axis turns linear
    edges: Floats
    weight: Floats


@dataclass(frozen=True)
class Sentinel:
    """A value at an end that looks like a code for "missing" or "unknown"."""

    value: float
    share: float


@dataclass(frozen=True)
class Outliers:
    """Rows that are far from all others."""

    rows: float
    share: float
    low: float  # below it,
    high: float  # or above it


@dataclass(frozen=True)
class Binned:
    """The bins of one method, and what they cost."""

    cuts: Floats
    stats: BinStats
    lost: float
    largest_bin: float
    hidden: int
    target: Floats | None  # its mean per bin; NaN where there is no row
    choice: Choice | None = None  # if the method made one


@dataclass(frozen=True)
class Hiding:
    """The quantile bin that hides most of a column, and what lies in it."""

    low: float
    high: float
    share: float  # of the rows
    lost: float  # of the column's variance
    distinct: int
    cuts_inside: int  # of k-means
    target: Floats | None  # its means between k-means' cuts in there
    target_explained: float | None  # the part of its variance in there that these means explain

    def described(self, max_bins: int) -> str:
        """Return it as a sentence."""
        text = (
            f"one of {max_bins} quantile bins, {number(self.low)} to {number(self.high)}, has {percent(self.share)} of "
            f"the rows and hides {percent(self.lost)} of the variance; k-means cuts it {self.cuts_inside:,} times"
        )
        if self.target is not None and (self.target_explained or 0.0) >= EXPLAINED:
            text += f"; the target's mean in it goes from {number(self.target.min())} to {number(self.target.max())}"
        return text


@dataclass(frozen=True)
class ColumnFacts:
    """All that the report says of a column."""

    name: str
    rows: int
    missing: int
    infinite: int
    distinct: int
    is_exact: bool
    low: float
    high: float
    mean: float
    deviation: float
    skew: float
    histograms: tuple[Histogram, ...]
    sentinels: tuple[Sentinel, ...]
    outliers: Outliers | None
    binned: Mapping[Key, Binned]
    hiding: Mapping[int, Hiding]  # by the number of bins, where there is one
    is_date: bool = False  # the numbers are seconds since 1970
    shares: Mapping[int, BinShare] = field(default_factory=dict)  # of a total, by the number of bins on average

    def gain(self, max_bins: int) -> float:
        """Return the part of the variance that quantile bins lose and k-means bins do not."""
        lost = {method: self.binned[method, max_bins].lost for method in ("quantile", "kmeans")}
        return lost["quantile"] - lost["kmeans"]

    def spotted(self, max_bins: int) -> list[str]:
        """Return what to look at, in short."""
        notes = [
            f"{number(s.value)} in {percent(s.share)} of the rows looks like a code for missing" for s in self.sentinels
        ]
        if self.outliers is not None:
            notes.append(f"{percent(self.outliers.share)} of the rows are outliers, beyond {_ends(self)}")
        if max_bins in self.hiding:
            notes.append(self.hiding[max_bins].described(max_bins))
        if self.missing:
            notes.append(f"{percent(self.missing / self.rows)} missing")
        if self.infinite:
            notes.append(f"{self.infinite:,} infinite")
        return notes


def _ends(facts: ColumnFacts) -> str:
    outliers = facts.outliers
    assert outliers is not None
    ends = []
    if facts.low < outliers.low:
        ends.append(number(outliers.low))
    if facts.high > outliers.high:
        ends.append(number(outliers.high))
    return " and ".join(ends)


def number(value: float) -> str:
    """Return a number with four digits, as people write it.

    >>> number(20_000), number(46_335.4), number(1.23456), number(3e12), number(0.00001234)
    ('20,000', '46,340', '1.235', '3e+12', '1.234e-05')
    """
    short = float(f"{value:.4g}")
    return f"{short:,.10g}" if 1e-4 <= abs(short) < 1e9 or short == 0 else f"{short:.4g}"


def percent(share: float) -> str:
    """Return a share as people write it.

    >>> percent(0.1234), percent(0.000012), percent(1e-9), percent(0)
    ('12.3 %', '0.0012 %', 'under 0.0001 %', '0 %')
    """
    if 0 < share < 1e-6:
        return "under 0.0001 %"
    return f"{100 * share:.3g} %" if abs(share) >= 1e-3 or share == 0 else f"{100 * share:.2g} %"


def column_facts(
    name: str,
    summary: ColumnSummary,
    methods: Mapping[str, Method],
    budgets: Sequence[int],
    *,
    is_date: bool = False,
    shown: int = 0,
) -> ColumnFacts:
    """Return the facts on a column; `shown` is the number of the target whose means are shown."""
    sums = _sums_of(summary, shown) if summary.has_target else None
    binned = {}
    for max_bins in budgets:
        for method, find in methods.items():
            cuts, choice = find_chosen(summary, find, max_bins) if summary.n_cells else (np.empty(0), None)
            stats = bin_stats(summary, cuts)
            cost = cost_row(name, stats)
            target = None if sums is None else _target_means(summary, sums, cuts)[0]
            binned[method, max_bins] = Binned(
                cuts, stats, cost["lost"], cost["largest_bin"], cost["hidden"], target, choice
            )
    hiding = {n: found for n in budgets if (found := _hiding(summary, sums, binned, n)) is not None}
    return ColumnFacts(
        name=name,
        rows=summary.n_rows,
        missing=summary.missing,
        infinite=summary.negative_infinite + summary.positive_infinite,
        distinct=summary.n_cells,
        is_exact=summary.is_exact,
        low=summary.min,
        high=summary.max,
        mean=summary.mean,
        deviation=float(np.sqrt(summary.variance)),
        skew=summary.skew,
        histograms=_histograms(summary)[: 1 if is_date else None],
        sentinels=_sentinels(summary),
        outliers=_outliers(summary),
        binned=binned,
        hiding=hiding,
        is_date=is_date,
    )


# ---- the distribution


def _histograms(summary: ColumnSummary) -> tuple[Histogram, ...]:
    low, high = summary.min, summary.max
    if not low < high or max(abs(low), abs(high)) > TOO_LARGE:
        return ()
    found = [_histogram(summary, "linear", 0.0, np.linspace(low, high, BARS + 1))]
    if low > 0:
        found.append(_histogram(summary, "log", 0.0, np.geomspace(low, high, BARS + 1)))
    else:
        size = np.abs(summary.points.middle)
        small = float(np.quantile(size[size > 0], 0.05)) if (size > 0).any() else 1.0
        small = max(small, max(-low, high) / 1e300)  # beyond that scales overflow
        first, last = np.arcsinh(np.array([low, high]) / small).tolist()
        found.append(_histogram(summary, "symlog", small, np.sinh(np.linspace(first, last, BARS + 1)) * small))
    return tuple(found)


def _histogram(summary: ColumnSummary, axis: str, constant: float, edges: Floats) -> Histogram:
    edges[0], edges[-1] = summary.min, summary.max
    # A point is spread over its cell: what lies below an edge is found by interpolation.
    low, high, weight, _ = summary.points
    before = np.concatenate([[0.0], np.cumsum(weight)])
    at = np.searchsorted(low, edges, side="right") - 1
    at = np.clip(at, 0, len(low) - 1)
    width = high[at] - low[at]
    part = np.where(width > 0, (edges - low[at]) / np.where(width > 0, width, 1.0), 1.0)
    below = before[at] + weight[at] * np.clip(part, 0.0, 1.0)
    below[0], below[-1] = 0.0, before[-1]
    return Histogram(axis, constant, edges, np.maximum(np.diff(below), 0.0))


# ---- what is odd


def _sentinels(summary: ColumnSummary) -> tuple[Sentinel, ...]:
    """Return the values at the ends that stand apart, weigh something, and look like codes for "missing"."""
    value, weight = summary.points.middle.copy(), summary.points.weight
    if len(value) < 6:
        return ()
    value[0], value[-1] = summary.min, summary.max
    below, above = (_codes_at_end(values) for values in (value, value[::-1]))
    core = value[below : len(value) - above]
    if len(core) < 4:
        return ()
    reach = core[-1] / 2 - core[0] / 2
    total = summary.weight + sum(summary.special_weights)
    found = []
    for codes, edge in ((range(below), core[0]), (range(len(value) - above, len(value)), core[-1])):
        share = float(sum(weight[i] for i in codes) / total)
        if not len(codes) or share < RARE:
            continue
        gap = min(abs(value[i] / 2 - edge / 2) for i in codes)
        is_apart = gap > reach / 2 or (value[codes[0]] < 0 <= edge and value[codes[0]] <= -99)
        if value[codes[0]] == -1:  # as in the days since what never happened
            is_apart = edge >= 0 and core[-1] >= 20 and share >= 0.01
        if is_apart:
            found += [Sentinel(float(value[i]), float(weight[i] / total)) for i in codes]
    return tuple(found)


def _codes_at_end(values: Floats) -> int:
    """Return how many of the first values look like codes: one, or some of one kind, like 997, 998 and 999."""
    n = 0
    while n < 4 and _looks_like_code(values[n]) and (n == 0 or abs(values[n] - values[n - 1]) == 1):
        n += 1
    return n if n else int(values[0] == -1)


def _looks_like_code(value: float) -> bool:
    """Return whether a value is -9999, 99999, 998, 65535, 1e30 or of that kind."""
    size = abs(value)
    if size != np.floor(size) or size < 96:
        return False
    digits = f"{size:.0f}"
    if set(digits[:-1]) == {"9"} and digits[-1] in "6789":
        return True
    powers = {float(2**k + d) for k in (15, 16, 31, 32, 63) for d in (-1, 0)}
    return size in powers or (size >= 1e10 and size == 10.0 ** round(np.log10(size)))


def _outliers(summary: ColumnSummary) -> Outliers | None:
    if summary.n_cells < 3:
        return None
    first, last = summary.quantile([0.01, 0.99])
    with np.errstate(over="ignore"):
        reach = FAR * (last - first)
        low, high = float(first - reach), float(last + reach)
    if not 0 < reach < np.inf:
        return None
    points = summary.points
    rows = float(points.weight[(points.middle < low) | (points.middle > high)].sum())
    return Outliers(rows, rows / (summary.weight + sum(summary.special_weights)), low, high) if rows > 0 else None


# ---- what the bins hide


def _sums_of(summary: ColumnSummary, shown: int) -> Floats:
    """Return per cell the weight, and the sums of one target and of its squares."""
    sums = summary.target_sums
    # Several targets are whether a row is of a class: they are their own squares.
    return sums[:, [0, 1 + shown, 1 + shown]] if sums.shape[1] > 3 else sums


def _target_means(summary: ColumnSummary, target_sums: Floats, cuts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the target's mean, its weight and the sum of its squares about the mean, per bin."""
    low, high = summary.cell_ends
    which = np.searchsorted(cuts, low + (high - low) / 2, side="left")
    sums = np.zeros((len(cuts) + 1, 3))
    np.add.at(sums, which, target_sums)
    weight, total, square = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(weight > 0, total / weight, np.nan)
    return mean, weight, np.maximum(square - weight * np.nan_to_num(mean) ** 2, 0.0)


def _hiding(summary: ColumnSummary, sums: Floats | None, binned: Mapping[Key, Binned], max_bins: int) -> Hiding | None:
    """Return the quantile bin that loses most, if that is much and k-means loses less of it."""
    by_quantile, by_kmeans = binned.get(("quantile", max_bins)), binned.get(("kmeans", max_bins))
    if by_quantile is None or by_kmeans is None or not by_quantile.lost > 0:
        return None
    stats = by_quantile.stats
    weight, variance = np.array(stats.weight), np.array(stats.variance)
    scale = max(float(np.sqrt(variance.max())), np.finfo(float).tiny)
    parts = weight * (np.sqrt(variance) / scale) ** 2
    worst = int(parts.argmax())
    lost = float(by_quantile.lost * parts[worst] / parts.sum())
    _, infinite_below, infinite_above = summary.special_weights
    weight[0] -= infinite_below
    weight[-1] -= infinite_above
    low = summary.min if worst == 0 else float(by_quantile.cuts[worst - 1])
    high = summary.max if worst == len(weight) - 1 else float(by_quantile.cuts[worst])
    inside = by_kmeans.cuts[(by_kmeans.cuts > low) & (by_kmeans.cuts < high)]
    if lost < HIDDEN or not len(inside) or by_kmeans.lost > by_quantile.lost / 2:
        return None
    target, explained = None, None
    if sums is not None:
        target, explained = _target_inside(summary, sums, low, high, inside)
    share = float(weight[worst] / (summary.weight + sum(summary.special_weights)))
    return Hiding(low, high, share, lost, stats.distinct[worst], len(inside), target, explained)


def _target_inside(
    summary: ColumnSummary, sums: Floats, low: float, high: float, inside: Floats
) -> tuple[Floats, float | None]:
    """Return the target's means between cuts inside a bin, and the part of its variance there that they explain."""
    ends = np.array([np.nextafter(low, -np.inf) if low == summary.min else low, *inside, high])
    mean, weight, within = (values[1:-1] for values in _target_means(summary, sums, ends))
    held = weight > 0
    mean, weight, within = mean[held], weight[held], within[held]
    if len(mean) < 2:
        return mean, None
    between = float((weight * (mean - np.average(mean, weights=weight)) ** 2).sum())
    total = between + float(within.sum())
    freedom = summary.count * float(weight.sum()) / summary.weight - len(mean)  # of rows
    if total <= 0 or freedom <= 0:
        return mean, None
    noise = (len(mean) - 1) * float(within.sum()) / freedom  # what means of chance would explain
    return mean, max(0.0, (between - noise) / total)
