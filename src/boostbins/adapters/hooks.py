"""What the adapters use of a library beyond its public names, and the check that it is still as they know it.

What we call fails by itself when it changes. What calls us, such as a method that we override, does not: the library
would quietly train on bins of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from pkgutil import resolve_name
from types import CodeType
from typing import Any

from boostbins.adapters.library import Library


@dataclass(frozen=True)
class Hook:
    """A name of a library's, and what is relied on."""

    owner: str  # "package.module:Class", or a module
    name: str
    takes: tuple[str, ...] = ()  # parameters that it must have, in this order
    calls: tuple[str, ...] = ()  # names that its code must use
    fits: tuple[str, ...] = ()  # the names ending in "_" that its code uses: these and no others
    plain: bool = False  # neither decorated nor a closure: its code is run with other globals

    def __str__(self) -> str:
        return f"{self.owner.replace(':', '.')}.{self.name}"

    def change(self) -> str:
        """Return what is no longer as it was, in words; empty if nothing."""
        try:
            found: Any = resolve_name(self.owner)
            found = getattr(found, self.name)
        except (ImportError, AttributeError):
            return f"{self} is gone"
        if self.takes:
            has = list(inspect.signature(found).parameters)
            if [name for name in has if name in self.takes] != list(self.takes):
                return f"{self} takes ({', '.join(has)}), and no longer ({', '.join(self.takes)}) in this order"
        if self.plain and (hasattr(found, "__wrapped__") or getattr(found, "__closure__", None) is not None):
            return f"{self} is wrapped in another function"
        used = _names_in(getattr(inspect.unwrap(found), "__code__", None))
        if missing := [name for name in (*self.calls, *self.fits) if name not in used]:
            return f"{self} no longer uses {', '.join(missing)}"
        if self.fits and (new := {name for name in used if name.strip("_") + "_" == name} - {*self.fits}):
            return f"{self} now uses {', '.join(sorted(new))} too"
        return ""


def check_hooks(library: Library, hooks: Iterable[Hook]) -> None:
    """Refuse a library that is not as it was when it was tested, before anything is trained."""
    if changes := [change for hook in hooks if (change := hook.change())]:
        raise ImportError(
            f"{library.name} {library.version} is not as boostbins knows it: {'; '.join(changes)}. {library.tested}; "
            f"bin_method cannot be used with this version: "
            f"pip install '{library.package}>={library.oldest},<={library.newest}'"
        )


def _names_in(code: CodeType | None) -> set[str]:
    """Return the globals and attributes that a function's code names, and the functions in it."""
    if code is None:
        return set()
    return {*code.co_names}.union(*(_names_in(inner) for inner in code.co_consts if isinstance(inner, CodeType)))
