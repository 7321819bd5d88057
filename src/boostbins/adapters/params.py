"""The parameters that the drop-in estimators add to the libraries' own."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeGuard

from boostbins.adapters.library import Library
from boostbins.bins import Bins
from boostbins.cache import BinCache
from boostbins.methods import Method, method_named
from boostbins.methods.budget import NO_TOTAL, Total, TotalBins

BinMethod: TypeAlias = str | Method | Bins | None


# ---- the parameters

BINNING_PARAMS = ("bin_method", "bin_cache", "total_bins", "average_bins")


class Default(str):
    """A method that was not asked for by name: it gives way where a library cannot take cuts.

    Equal to the same text, and as such copied, pickled and printed; so clones and searches know it too.
    """

    __slots__ = ()


DEFAULT = Default("kmeans")


def cuts_are_ours(bin_method: BinMethod, obstacle: str = "", total: Total = NO_TOTAL) -> TypeGuard[str | Method | Bins]:
    """Return whether a model is trained on cuts of ours, where something may stand in the way of that.

    A method, or a total, that was asked for is then refused; the default gives way to the library, with a warning.
    `obstacle` says what, and what else than bin_method=None helps: "booster='gblinear' has no bins: use 'gbtree'".
    """
    if bin_method is None or not obstacle:
        return bin_method is not None
    message = f"{obstacle}, or give bin_method=None"
    if total or not isinstance(bin_method, Default):
        raise ValueError(message)
    warnings.warn(f"{message}. It was not given, so the library goes its own way", stacklevel=_frames_of_libraries())
    return False


def _frames_of_libraries() -> int:
    """Return how far up the stack the user's own code is: a warning should point there."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _LIBRARIES:
        level, frame = level + 1, frame.f_back
    return level


_LIBRARIES = ("boostbins", "lightgbm", "xgboost", "catboost", "_catboost", "sklearn")


_PARAMETERS = """

    Parameters
    ----------
    bin_method : str, function, Bins or None
        "auto", "hybrid", "kmeans", "optimal", "quantile", "uniform", a function ``(summary, max_bins) -> cuts``, ready
        bins, or None for the library's own. One that is given is used, or refused where the library cannot take cuts;
        the default gives way there, with a warning.{cache}
    total_bins : int or "auto", optional
        At most this many bins in all columns together: many for those that the target needs finely, few for others;
        "auto" for as many as are enough. See `fit_bins`.
    average_bins : int, optional
        `total_bins` as an average per column.
    **others
        The library's own; {budget}.

    Attributes
    ----------
    bins_ : Bins
        The cuts that the model was trained on.
    """


_CACHE = """
    bin_cache : None, "memory" or a folder
        Where bins are kept for when the same is asked of the same data again."""


def with_binning_params(budget: str, *, cached: bool = True, **more: Any) -> Callable[[type], type]:
    """Return a decorator for subclasses of a library's estimators: adds our parameters, and more, to its own.

    `budget` says in the documentation what limits the number of bins; `cached` is whether there is a bin_cache.
    """
    own = {
        "bin_method": DEFAULT,
        **({"bin_cache": None} if cached else {}),
        "total_bins": None,
        "average_bins": None,
        **more,
    }

    def decorated(cls: Any) -> type:
        cls._native_class = next(base for base in cls.__bases__ if not base.__module__.startswith("boostbins"))
        cls._own_parameters = own
        cls.__init__ = _init_with_params(cls._native_class, cls._own_parameters)
        cls.fit = checked_afterwards(cls.fit)
        cls.__doc__ += _PARAMETERS.format(budget=budget, cache=_CACHE if cached else "")
        return cls  # type: ignore[no-any-return]

    return decorated


def _init_with_params(base: Any, own: Mapping[str, Any]) -> Callable[..., None]:
    initialize = base.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        binning_params = {name: kwargs.pop(name, default) for name, default in own.items()}
        initialize(self, *args, **kwargs)
        for name, value in binning_params.items():
            setattr(self, name, value)

    signature = inspect.signature(initialize)
    known = list(signature.parameters.values())
    rest = [known.pop()] if known[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    defaults = {name: str(value) if isinstance(value, Default) else value for name, value in own.items()}
    binning_params = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in defaults.items()
    ]
    # The libraries and scikit-learn learn the parameters from the signature.
    __init__.__signature__ = signature.replace(parameters=[*known, *binning_params, *rest])  # type: ignore[attr-defined]
    return __init__


def checked_afterwards(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that refuses, once it has fitted, a library that did not use, or not even ask for, our cuts."""

    @functools.wraps(fit)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            fitted = fit(self, *args, **kwargs)
        finally:
            ours = vars(self).pop("_ours", None)  # None: nobody asked
        if ours is None:
            vars(self).pop("bins_", None)  # an earlier fit's
        if (self.bin_method is not None if ours is None else ours) and "bins_" not in vars(self):
            way = "did not ask for cuts" if ours is None else "did not use the cuts that it was given"
            raise self._library.strayed(f"{way} in {type(self).__name__}.{fit.__name__}, and trained on its own bins")
        return fitted

    return checked


class BinningMixin:
    """What the drop-in estimators have in common."""

    _library: Library
    _ours: bool  # while it is fitted: whether it is to be on cuts of ours
    _native_class: Any
    _own_parameters: Mapping[str, Any]
    bin_method: BinMethod
    bin_cache: BinCache = None
    total_bins: TotalBins = None
    average_bins: float | None = None
    bins_: Bins

    @property
    def _total(self) -> Total:
        return Total(self.total_bins, self.average_bins)

    def _begin_fit(self, obstacle: str = "") -> bool:
        """Check our parameters, forget an earlier fit's bins, and return whether the cuts are to be ours."""
        check_binning_params(self.bin_method, self.bin_cache, self._total)
        self.__dict__.pop("bins_", None)
        return self._are_ours(obstacle)

    def _are_ours(self, obstacle: str) -> bool:
        """Return whether the cuts are to be ours, as `cuts_are_ours`, and note it for the end of `fit`."""
        self._ours = cuts_are_ours(self.bin_method, obstacle, self._total)
        return self._ours

    def to_native(self) -> Any:
        """Return the same model as an estimator of the library's own class, which needs no boostbins."""
        plain = self._native_class.__new__(self._native_class)
        ours = {*self._own_parameters, "bins_"}
        plain.__dict__.update({key: value for key, value in self.__dict__.items() if key not in ours})
        return plain

    def _get_doc_link(self) -> str:
        """Return where the library documents its own class, for scikit-learn's display of an estimator."""
        return str(getattr(self.to_native(), "_get_doc_link", str)())


def check_binning_params(bin_method: BinMethod, bin_cache: BinCache, total: Total = NO_TOTAL) -> None:
    """Refuse what is no bin_method, no bin_cache, or a total that nothing shares, before any work."""
    if total and (bin_method is None or isinstance(bin_method, Bins)):
        given = "None" if bin_method is None else "ready Bins"
        raise ValueError(f"{total} is for cuts by a bin_method, got bin_method={given}: name one, or leave it out")
    if bin_method is not None and not isinstance(bin_method, Bins):
        method_named(bin_method, "bin_method", " or Bins or None")
    if bin_cache is not None and not isinstance(bin_cache, str | os.PathLike):
        raise TypeError(f"bin_cache must be None, 'memory' or a folder, got {bin_cache!r}")


def threads_of(n_jobs: Any) -> int | None:
    """Return a library's number of threads as ours: None for all."""
    if n_jobs is None or int(n_jobs) == 0:
        return None
    if int(n_jobs) > 0:
        return int(n_jobs)
    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
