"""What bins hold of a column, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from boostbins import _core
from boostbins.sources.values import Floats, real_numbers
from boostbins.summary.column import ColumnSummary


@dataclass(frozen=True)
class BinStats:
    """What the bins of a column held of the data that they were fitted on."""

    weight: tuple[float, ...]  # per bin; of rows, if there were no weights
    distinct: tuple[int, ...]  # per bin; a lower bound, in a column with very many
    mean: tuple[float | None, ...]  # per bin, of the finite values; None if there are none
    variance: tuple[float, ...]  # per bin, of the finite values
    low: float | None  # of the column
    high: float | None
    missing: float  # weight

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> BinStats:
        """Return what `dataclasses.asdict` gave, where it can be so."""
        frozen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
        stats = cls(**frozen)
        if len({len(stats.weight), len(stats.distinct), len(stats.mean), len(stats.variance)}) > 1:
            raise ValueError("stats must have an entry for each bin")
        counted = real_numbers([*stats.weight, *stats.distinct, *stats.variance, stats.missing], "stats")
        values = [value for value in (stats.low, stats.high, *stats.mean) if value is not None]
        if not np.isfinite([*counted, *real_numbers(values or [0.0], "stats")]).all() or (counted < 0).any():
            raise ValueError("stats must hold finite numbers, none below 0 for what is counted")
        if not stats._is_possible():
            raise ValueError(
                "stats must hold weights for all means, and means and variances of values from low to high"
            )
        return stats

    def _is_possible(self) -> bool:
        """Return whether what has a mean has a weight, and varies no more than from low to high."""
        held = [(weight, mean) for weight, mean in zip(self.weight, self.mean, strict=True) if mean is not None]
        if self.low is None or self.high is None or not held:
            return self.low is None and self.high is None and not held
        weights, means = zip(*held, strict=True)
        deviation = math.sqrt(max(self.variance))
        return (
            min(weights) > 0
            and math.isfinite(sum(self.weight) + self.missing)
            and self.low <= min(means) <= max(means) <= self.high
            and deviation / 2 <= self.high / 2 - self.low / 2
        )


def bin_stats(summary: ColumnSummary, cuts: Floats) -> BinStats:
    """Return what the bins hold of a column, as far as its summary knows."""
    weights, distinct, means, variances = _core.held_by_bins(summary.points, cuts)
    missing, below, above = summary.special_weights
    weights[0] += below
    weights[-1] += above
    return BinStats(
        weight=tuple(weights.tolist()),
        distinct=tuple(distinct.tolist()),
        mean=tuple([None if mean != mean else mean for mean in means.tolist()]),
        variance=tuple(variances.tolist()),
        low=summary.min if summary.n_cells else None,
        high=summary.max if summary.n_cells else None,
        missing=missing,
    )


def bin_rows(name: str, cuts: Floats, stats: BinStats, missing_code: int) -> list[dict[str, Any]]:
    """Return a row per bin, and one for missing values if there were any."""
    ends = [-np.inf, *cuts.tolist(), np.inf]
    total = sum(stats.weight) + stats.missing or 1.0
    rows = [
        {
            "column": name,
            "bin": i,
            "low": ends[i],
            "high": ends[i + 1],
            "weight": stats.weight[i],
            "share": stats.weight[i] / total,
            "mean": np.nan if (mean := stats.mean[i]) is None else mean,
            "variance": stats.variance[i],
        }
        for i in range(len(stats.weight))
    ]
    if stats.missing:
        unknown = dict.fromkeys(("low", "high", "mean", "variance"), np.nan)
        more = {"bin": missing_code, "weight": stats.missing, "share": stats.missing / total, **unknown}
        rows.append({**rows[0], **more})
    return rows


def cost_row(name: str, stats: BinStats) -> dict[str, Any]:
    """Return what binning a column costs."""
    weight = np.array(stats.weight)
    row = {"column": name, "bins": len(weight), "lost": 0.0, "largest_bin": 0.0, "hidden": 0}
    held = [i for i, mean in enumerate(stats.mean) if mean is not None]
    if not held or stats.low is None or stats.high is None:
        return row
    largest = int(weight.argmax())
    row |= {"largest_bin": float(weight[largest] / weight.sum()), "hidden": stats.distinct[largest]}
    if (half_range := stats.high / 2 - stats.low / 2) == 0:
        return row
    # In units of the range, so that nothing overflows.
    share = weight[held] / weight[held].sum()
    mean = np.array([stats.mean[i] for i in held], np.float64) / 2 / half_range
    within = float((share * (np.sqrt(np.array(stats.variance)[held]) / 2 / half_range) ** 2).sum())
    between = float((share * (mean - (share * mean).sum()) ** 2).sum())
    return row | {"lost": within / (within + between) if within > 0 else 0.0}


def frame_of(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a frame of the first frame library that is installed."""
    import narwhals as nw

    columns = {key: [_as_utf8(row[key]) for row in rows] for key in rows[0]}
    for backend in ("pandas", "polars", "pyarrow"):
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ImportError:
            continue
    raise ImportError("a table needs a frame library: pip install pandas (or polars, or pyarrow)")


def _as_utf8(value: Any) -> Any:
    """Return a value as a frame can hold it: no halves of pairs, which a name from JSON or of a file may have."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
