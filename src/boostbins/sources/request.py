"""What is asked of a source of rows, whatever it is: which columns, and which numbers per row."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

NonNumeric: TypeAlias = Literal["error", "skip"]

PerRow: TypeAlias = str | ArrayLike | None
"""A number per row: the name of a column, or an array."""


@dataclass(frozen=True)
class Request:
    """What is asked of a source.

    Parameters
    ----------
    columns : sequence of str, optional
        Those to be cut; all that are not named otherwise, if not given.
    per_row : dict
        Numbers per row, by the argument that they were given as: weights, targets.
    non_numeric : "error" or "skip"
        What to do with columns of text or categories.
    dates_as_numbers : bool
        Whether dates and durations are taken as seconds.
    texts : sequence of str
        The arguments that may hold text.
    """

    columns: Sequence[str] | None = None
    per_row: Mapping[str, PerRow] = field(default_factory=dict)
    non_numeric: NonNumeric = "error"
    dates_as_numbers: bool = False
    texts: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.non_numeric not in ("error", "skip"):
            raise ValueError(f"non_numeric must be 'error' or 'skip', got {self.non_numeric!r}")
        if isinstance(self.columns, str):
            raise TypeError(f"columns must be a list of names, got {self.columns!r}")
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if list(self.columns).count(name) > 1)
            raise ValueError(f"columns names {twice!r} more than once")
        named = list(self.named.values())
        if len(set(named)) < len(named):
            twice = next(name for name in named if named.count(name) > 1)
            raise ValueError(f"column {twice!r} cannot be both the target and the weights")

    @property
    def named(self) -> dict[str, str]:
        """The numbers per row that are columns, by argument."""
        return {argument: value for argument, value in self.per_row.items() if isinstance(value, str)}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The numbers per row that were given as arrays, by argument."""
        given = {argument: value for argument, value in self.per_row.items() if value is not None}
        return {argument: _array(value, argument) for argument, value in given.items() if not isinstance(value, str)}

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Return which of a source's columns are to be cut; those that are asked for must be there."""
        for argument, name in self.named.items():
            check_column(name, names, argument)
        for name in self.columns or ():
            check_column(name, names, "columns")
        others = set(self.named.values())
        return [name for name in (names if self.columns is None else self.columns) if name not in others]

    def needed(self, names: Sequence[str]) -> list[str]:
        """Return which of a source's columns are to be read."""
        return list(dict.fromkeys([*self.chosen(names), *self.named.values()]))


PLAIN = Request()
"""All columns, which must be numbers, and no numbers per row."""


def check_column(name: str, names: Sequence[str], argument: str) -> None:
    """Refuse the name of a column that is not there."""
    if name not in names:
        raise ValueError(f"{argument}: there is no column {name!r}{nearest(name, names)}")


def nearest(name: str, names: Sequence[str]) -> str:
    """Return a suggestion, as the end of a sentence.

    >>> nearest("prize", ["rooms", "price"]), nearest("y", ["rooms"])
    (": did you mean 'price'?", "; there are 'rooms'")
    """
    return meant(name, names) or f"; there are {listed([repr(n) for n in names])}"


def meant(name: str, names: Sequence[str]) -> str:
    """Return what was meant, as the end of a sentence; nothing, if no name is near.

    >>> meant("k-means", ["kmeans", "quantile"]), meant("best", ["kmeans"])
    (": did you mean 'kmeans'?", '')
    """
    small = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), small, 1, 0.5)
    return f": did you mean {small[found[0]]!r}?" if found else ""


def listed(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _array(value: ArrayLike, argument: str) -> NDArray[np.generic]:
    array = np.asarray(value)
    if array.ndim == 0:
        raise ValueError(f"{argument} must be a column's name, or an array with one entry per row, got {value!r}")
    return array
