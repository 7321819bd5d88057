"""A library as far as it was tested, and the proof that it uses the cuts that it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from boostbins.sources.values import Floats

# ---- the libraries


@dataclass(frozen=True)
class Library:
    """A library as far as it was tested."""

    name: str  # as it calls itself
    module: str  # as it is imported
    package: str  # as it is installed
    oldest: str
    newest: str
    below: str  # the first version that is not tried at all

    @property
    def version(self) -> str:
        """The installed version."""
        return str(import_module(self.module).__version__)

    def is_before(self, version: str) -> bool:
        """Return whether the installed version is older than another."""
        return _numbers(self.version) < _numbers(version)

    def check(self) -> None:
        """Refuse a version that is not supported."""
        if self.is_before(self.oldest) or not self.is_before(self.below):
            raise ImportError(
                f"boostbins supports {self.name} from {self.oldest} to before {self.below} "
                f"(tested: {self.oldest} and {self.newest}), and {self.version} is installed: "
                f"pip install '{self.package}>={self.oldest},<{self.below}'"
            )

    def missing(self, error: ImportError) -> ImportError:
        """Return the error for when it cannot be imported."""
        is_there = not isinstance(error, ModuleNotFoundError) or error.name != self.module
        state = f"is installed, but cannot be imported ({error})" if is_there else "is not installed"
        return ImportError(f"{self.name} {state}: pip install 'boostbins[{self.module}]'")

    @property
    def tested(self) -> str:
        """Which versions were tested, as a sentence without its end."""
        versions = " and ".join(dict.fromkeys([self.oldest, self.newest]))
        return f"boostbins was tested with {self.name} {versions}"

    def strayed(self, what: str) -> RuntimeError:
        """Return the error for when it went its own way, as `what` describes, and raised nothing."""
        return RuntimeError(
            f"{self.name} {self.version} {what}. {self.tested}; "
            f"please report this, and use bin_method=None until it is fixed"
        )

    def compare(self, asked: Mapping[int, Floats], used: Mapping[int, Floats], names: Sequence[str]) -> None:
        """Refuse to train on other cuts than those asked for."""
        for (index, cuts), name in zip(asked.items(), names, strict=True):
            found = used.get(index, np.empty(0))
            if not np.array_equal(cuts, found):
                raise self.strayed(
                    f"did not take the cuts of column {name!r}: "
                    f"{len(cuts)} were given and {len(found)} are there, {_first_difference(cuts, found)}"
                )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in text.split(".")[:3])


def _first_difference(asked: Floats, found: Floats) -> str:
    n = min(len(asked), len(found))
    at = next(iter(np.flatnonzero(asked[:n] != found[:n])), n)
    return f"the first that differs is number {at}"
