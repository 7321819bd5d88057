"""The result of a comparison: a table, a verdict, a picture and a page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from boostbins._threads import cached_property
from boostbins.comparison.statistics import CONFIDENCE, MATTERS, meaning_of, reach_of, relative_change
from boostbins.comparison.trainers import TRAINERS
from boostbins.methods import METHODS

if TYPE_CHECKING:
    import pandas as pd


NATIVE = "native"
"""The library's own bins, with which the others are compared."""


# ---- the result


@dataclass(frozen=True)
class Comparison:
    """What each method's bins are worth on one table; `print` it, show it in a notebook, `plot` it, `to_html`.

    Attributes
    ----------
    library, task, metric : str
        What was trained, and what was measured. The *error* is the metric itself where less is better, and 1 minus it
        where more is (so that every method can be compared in per cent).
    scores : pandas.DataFrame
        A row per split, bins and method: `score`, `error` and the seconds of the fit.
    table : pandas.DataFrame
        A row per bins and method: the mean `score` and its interval, the `change` of the error compared with the
        library's own bins in per cent (negative: better) with its interval, what that means, and the time of a fit.
    verdict : str
    notes : tuple of str
        On the columns that were changed or left out, and on what was guessed.
    """

    library: str
    task: str
    metric: str
    scores: pd.DataFrame = field(repr=False)
    n_rows: int
    n_columns: int
    notes: tuple[str, ...] = field(repr=False)
    title: str = "your data"
    target: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    is_complete: bool = True

    @property
    def metric_title(self) -> str:
        """The metric's name, without the sign that scikit-learn gives to errors."""
        return self.metric.removeprefix("neg_")

    @property
    def less_is_better(self) -> bool:
        """Return whether the metric is an error."""
        return self.metric.startswith("neg_")

    @property
    def n_splits(self) -> int:
        """The number of splits."""
        return int(self.scores["split"].nunique())

    @cached_property
    def table(self) -> pd.DataFrame:
        """The scores in short, and the change compared with the library's own bins."""
        import pandas as pd

        groups = {key: part.set_index("split") for key, part in self.scores.groupby(["max_bins", "method"], sort=False)}
        n_changes = sum(method != NATIVE for _, method in groups)
        rows = []
        for (max_bins, method), part in groups.items():
            base = groups[max_bins, NATIVE]
            reach = reach_of(part["score"])
            score = float(part["score"].mean())
            change, low, high = relative_change(part["error"], base["error"], n_changes)
            rows.append(
                {
                    "max_bins": max_bins,
                    "method": method,
                    "score": score,
                    "score_low": score - reach,
                    "score_high": score + reach,
                    "error": float(part["error"].mean()),
                    "change": change,
                    "change_low": low,
                    "change_high": high,
                    "meaning": "" if method == NATIVE else meaning_of(low, high),
                    "seconds": float(part["seconds"].mean()),
                    "time_ratio": float(part["seconds"].sum() / base["seconds"].sum()),
                }
            )
        return pd.DataFrame(rows)

    @cached_property
    def best(self) -> tuple[str, int] | None:
        """The method and the bins to change to: of those worth it, the ones with the least error of all."""
        bin_value = self.table[(self.table["meaning"] == "better") & (self.table["change"] <= -MATTERS)]
        own = self.table[self.table["method"] == NATIVE]
        if bin_value.empty or bin_value["error"].min() > own["error"].min():
            return None
        row = bin_value.loc[bin_value["error"].idxmin()]
        return str(row["method"]), int(row["max_bins"])

    @cached_property
    def verdict(self) -> str:
        """What the table says, in a sentence for each number of bins."""
        parts = self.table.groupby("max_bins", sort=False)
        return "\n".join(self._said(int(max_bins), rows) for max_bins, rows in parts)

    def _said(self, max_bins: int, rows: pd.DataFrame) -> str:
        own = f"{TRAINERS[self.library].title}'s own"
        begin = f"At {max_bins} bins "
        native, rows = rows[rows["method"] == NATIVE].iloc[0], rows[rows["method"] != NATIVE]
        if native["error"] == 0:
            return f"{begin}{own} make no error at all: there is nothing to gain."
        better = rows[rows["meaning"] == "better"]
        if len(better):
            top = better.loc[better["change"].idxmin()]
            reach = f"95 % interval {-top['change_high']:.1f} to {-top['change_low']:.1f} %"
            gain = f"{top['method']} lowers the error by {-top['change']:.1f} % ({reach})"
            if top["change"] > -MATTERS:
                return f"{begin}{gain}: certain, but too little to matter."
            natives = self.table[self.table["method"] == NATIVE]
            least = natives.loc[natives["error"].idxmin()]
            if least["error"] < top["error"]:
                return f"{begin}{gain}; but {own} {least['max_bins']} bins make a lower error still."
            return f"{begin}{gain}: worth the change."
        if (rows["meaning"] == "worse").all():
            top = rows.loc[rows["change"].idxmin()]
            return f"{begin}{own} are the best: {top['method']} raises the error by {top['change']:.1f} %."
        unclear = rows[rows["meaning"] == "unclear"]
        if len(unclear):
            top = unclear.loc[unclear["change"].idxmin()]
            known = top["change_low"] == top["change_low"]
            reach = f"95 % interval {top['change_low']:+.1f} to {top['change_high']:+.1f} %" if known else "no interval"
            return (
                f"{begin}the data cannot tell: {top['method']} changes the error by {top['change']:+.1f} % ({reach}). "
                f"More splits or more rows may."
            )
        return f"{begin}no method lowers the error by {MATTERS:g} % or more: stay with {own}."

    @property
    def snippet(self) -> str:
        """The code of the recommended change; of none, if none is worth it."""
        if self.best is None:
            return ""
        method, max_bins = self.best
        trainer = TRAINERS[self.library]
        name = trainer.regressor if self.task == "regression" else trainer.classifier
        values = {**trainer.binning(method, max_bins), **self.params}
        shown = {
            key: f'"{value}"' if key == "bin_method" and value in METHODS else repr(value)
            for key, value in values.items()
        }
        if shown["bin_method"] == repr(method):
            shown["bin_method"] = method  # a function of the user's
        arguments = ", ".join(f"{key}={value}" for key, value in shown.items())
        return f"from boostbins.{self.library} import {name}\n{name}({arguments})"

    def __str__(self) -> str:
        shown = self.table[["max_bins", "method", "score", "change", "change_low", "change_high", "meaning", "seconds"]]
        return f"{shown.to_string(index=False, float_format=lambda x: f'{x:.4g}')}\n\n{self.verdict}"

    # ---- to look at

    def plot(self, axes: Any = None) -> Any:
        """Draw the change of the error with its interval, per method and number of bins; return the axes."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(layout="constrained", figsize=(7, 0.45 * len(self.table) + 1.2))
        rows = self.table[self.table["method"] != NATIVE].iloc[::-1].reset_index(drop=True)
        colors = {"better": "#1a7f37", "worse": "#b3261e", "same": "#666666", "unclear": "#666666"}
        for index, row in rows.iterrows():
            color = colors[row["meaning"]]
            axes.plot([row["change_low"], row["change_high"]], [index, index], color=color, linewidth=1.5)
            axes.plot(
                row["change"], index, "o", color=color, fillstyle="none" if row["meaning"] == "unclear" else "full"
            )
        axes.axvline(0, color="#999999", linewidth=1)
        axes.set_yticks(range(len(rows)), [f"{row.method}, {row.max_bins} bins" for row in rows.itertuples()])
        axes.set_xlabel(
            f"change of the error ({self.metric_title}) in %, compared with {TRAINERS[self.library].title}'s own bins\n"
            f"with 95 % intervals; left is better"
        )
        axes.spines[["top", "right"]].set_visible(False)
        return axes

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "title": self.title,
            "library": self.library,
            "library_title": TRAINERS[self.library].title,
            "library_version": import_module(self.library).__version__,
            "task": self.task,
            "target": self.target,
            "metric": self.metric_title,
            "less_is_better": self.less_is_better,
            "rows": self.n_rows,
            "columns": self.n_columns,
            "splits": self.n_splits,
            "is_complete": self.is_complete,
            "confidence": CONFIDENCE,
            "matters": MATTERS,
            "table": _plain(self.table),
            "scores": _plain(self.scores),
            "verdict": self.verdict.split("\n"),
            "best": None if self.best is None else {"method": self.best[0], "max_bins": self.best[1]},
            "snippet": self.snippet,
            "notes": list(self.notes),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a page that needs nothing else, and write it to a file if one is named."""
        from boostbins.reporting.page import page

        return page(comparison=self.to_dict(), path=path)

    def _repr_html_(self) -> str:
        from boostbins.reporting.page import framed

        return framed(self.to_html())


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    finite = frame.astype(object).where(frame.notna() & ~frame.isin([np.inf, -np.inf]), None)
    return [{str(key): value for key, value in row.items()} for row in finite.to_dict("records")]
