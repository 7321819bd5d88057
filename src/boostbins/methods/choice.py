"""`auto`: the mixture of densities that explains the target best, taken only beyond chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbins import _core
from boostbins.methods.density import MIXTURES, Points, mixed, placed_gaps, shares
from boostbins.sources.values import Floats, check_squares, real_numbers
from boostbins.summary.column import ColumnSummary

BEYOND_CHANCE = 3.0
"""Standard deviations of what chance gives, by which another mixture must explain more to be taken."""

_ROUNDING = 1e-12  # of the squares' sum: so much may be left of a constant
_TARGET_RUNS = 128  # of points, whose means of the target are compared
_JOINED_RUNS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Choice:
    """What "auto" chose for a column, and why."""

    chosen: str
    explained: Mapping[str, float]  # by candidate: share of the target's variance between bins, less what chance gives
    noise: Mapping[str, float]  # by candidate but the usual one: how much its share differs from that one's by chance

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Choice:
        """Return what `dataclasses.asdict` gave, where it can be so."""
        choice = cls(**fields)
        unusual = [name for name in choice.explained if name not in choice.noise]
        of_candidates = set(choice.noise) < set(choice.explained) and choice.chosen in choice.explained
        if not isinstance(choice.chosen, str) or (choice.explained and not (of_candidates and len(unusual) == 1)):
            raise ValueError("a choice must be one of its candidates, of which all but one have noise")
        shares = [*choice.explained.values(), *choice.noise.values()]
        if not np.isfinite(real_numbers(shares or [0.0], "a choice")).all():
            raise ValueError("a choice must hold finite shares")
        return choice

    @property
    def usual(self) -> str:
        """The candidate that is taken unless another one explains more beyond chance."""
        return next((name for name in self.explained if name not in self.noise), self.chosen)

    @property
    def why(self) -> str:
        """Return the reason in words."""
        if not self.explained:
            return "the target is constant, or varies too little compared with its size"
        share = f"explains {self.explained[self.chosen]:.3%} of the target"
        if self.chosen == self.usual:
            return f"{share}, and no other explains more beyond chance"
        gain = self.explained[self.chosen] - self.explained[self.usual]
        return f"{share}, {gain:.3%} more than {self.usual} (by chance: {self.noise[self.chosen]:.3%})"


class Chosen(NamedTuple):
    """Cuts, and how they were chosen: what a method may return instead of cuts alone."""

    cuts: Floats
    choice: Choice


def chosen(summary: ColumnSummary, max_bins: int, usual: str, others: Mapping[str, Floats] | None = None) -> Chosen:
    """Return the cuts of the mixture that explains the target best; the usual one, unless another is beyond chance.

    Parameters
    ----------
    summary : ColumnSummary
        With a target.
    max_bins : int
    usual : str
        Of `MIXTURES`, or of `others`.
    others : dict
        Cuts of other candidates, by name.
    """
    column = Points(summary)
    target = TargetSums(summary, column)
    densities = column.densities()
    given = {name: column.gaps_of(cuts) for name, cuts in (others or {}).items()}
    if target.total == 0:
        gaps = given[usual] if usual in given else placed_gaps(mixed(usual, densities), max_bins)
        return Chosen(column.between(gaps), Choice(usual, {}, {}))
    densities.append(target.density(mixed("even hybrid", densities)))
    candidates = given | {name: placed_gaps(mixed(name, densities), max_bins) for name in MIXTURES}
    explained, noise = target.explained(candidates, usual)
    lead = {name: explained[name] - explained[usual] - BEYOND_CHANCE * noise[name] for name in noise}
    best = max(lead, key=lead.__getitem__)
    taken = best if lead[best] > 0 else usual
    return Chosen(column.between(candidates[taken]), Choice(taken, explained, noise))


class TargetSums:
    """The sums of the targets of a summary's points, each target less its mean."""

    def __init__(self, summary: ColumnSummary, column: Points) -> None:
        moments = summary.target_sums
        if len(column.weight) > len(moments):  # the points of a crowded cell share its sums
            cell = np.searchsorted(summary.cell_ends[0], column.low, side="right") - 1
            moments = moments[cell] * (summary.points.weight / moments[cell, 0])[:, None]
        moments = column.in_rows(moments)
        squares = moments[:, -1].sum()
        check_squares(squares)
        # The unit is near the target's size, so that no square overflows; a power of two, so that nothing is rounded.
        unit = np.exp2(np.floor(np.log2(squares) / 2)) if squares > 0 else 1.0
        moments = moments / np.array([1.0, *[unit] * (moments.shape[1] - 2), unit * unit])
        weight, *sums, squares = moments.sum(axis=0)
        mean = np.array(sums) / weight
        total = float(squares - np.square(mean).sum() * weight)
        self.total = total if total > _ROUNDING * squares else 0.0
        self.weight = column.rows
        # What weighs less is rounding, and so are its sums: divided by that they would be of any size.
        self._least = max(float(self.weight.min()), float(np.finfo(np.float64).eps * self.weight.sum()))
        self._before = _core.running_sums(moments, mean)  # a row for each point and the end

    def _held(self, ends: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the weights of runs of points, none empty, between their ends; and the sums, a row for each target."""
        before = self._before[ends].T
        held = before[:, 1:] - before[:, :-1]
        return np.maximum(held[0], self._least), held[1:]

    def change(self, density: Floats) -> Floats:
        """Return by how much the target's mean changes over each gap: zero everywhere, if that may be noise.

        From the means of neighbouring runs of points, joined until they show more change than noise.
        """
        n_points = len(self.weight)
        change = np.zeros(n_points - 1)
        finest = ends_of(placed_gaps(density, min(_TARGET_RUNS, len(change))), n_points)
        for step in _JOINED_RUNS:
            ends = np.append(finest[:-1:step], n_points)
            weight, sums = self._held(ends)
            mean = sums / weight
            within = max(self.total - float((sums * mean).sum()), 0.0) / max(weight.sum() - len(weight), 1.0)
            square = (np.diff(mean) ** 2).sum(axis=0)
            noise = within * (1 / weight[:-1] + 1 / weight[1:])
            if square.sum() > 2 * noise.sum():
                # Evenly over the gaps between the middles of neighbouring runs.
                middle = (ends[:-1] + ends[1:] - 1) // 2
                steps = np.diff(middle)
                change[middle[0] : middle[-1]] = np.repeat(np.sqrt(np.maximum(square - noise, 0.0)) / steps, steps)
                break
        return change

    def density(self, base: Floats) -> Floats:
        """Return the density for the target's mean; that of `base`, where it does not change."""
        change = self.change(base)
        if not change.any():
            return base
        between = (self.weight[:-1] + self.weight[1:]) / 2
        return shares(np.cbrt(between) * np.cbrt(change) ** 2)

    def explained(
        self, candidates: Mapping[str, NDArray[np.intp]], usual: str
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the share of the target's variance between the bins of each candidate, and the noise of its lead.

        Less what bins explain by chance: the variance within bins, for each bin but one. By chance the squares that
        two sets of bins explain differ with a variance of ``2 s^4 trace((P - Q)^2)``, where P and Q project on them.
        (Several targets share the variance within. It counts as one's, which is the noisier case.)
        """
        ends = {name: ends_of(gaps, len(self.weight)) for name, gaps in candidates.items()}
        held = {name: self._held(those) for name, those in ends.items()}
        squares = {name: float((sums**2 / weight).sum()) for name, (weight, sums) in held.items()}
        n_bins = {name: len(those) - 1 for name, those in ends.items()}
        within = max(self.total - squares[usual], 0.0) / max(float(self._before[-1, 0]) - n_bins[usual], 1.0)
        explained = {name: (squares[name] - within * (n_bins[name] - 1)) / self.total for name in candidates}
        noise = {}
        for name in candidates:
            if name != usual:
                both = np.sort(np.concatenate([ends[usual], ends[name][1:-1]]))  # what comes twice holds nothing
                before = self._before[both, 0]
                shared = before[1:] - before[:-1]
                mine, its = (held[n][0][np.searchsorted(ends[n][1:-1], both[:-1], side="right")] for n in (usual, name))
                apart = n_bins[usual] + n_bins[name] - 2 * float(((shared / mine) * (shared / its)).sum())
                noise[name] = within * (2 * max(apart, 0.0)) ** 0.5 / self.total
        return explained, noise


def ends_of(gaps: NDArray[np.intp], n_points: int) -> NDArray[np.intp]:
    """Return where the runs of points between gaps begin and end."""
    return np.concatenate([[0], gaps + 1, [n_points]])
