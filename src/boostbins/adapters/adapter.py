"""What the adapters have in common: the flag, the bins that it asks for, and the proof that they are used."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbins._threads import each
from boostbins.bins import Bins
from boostbins.cache import BinCache, cached_bins
from boostbins.fit import fit_summary, fit_table
from boostbins.methods import MAX_BINS, MIN_BINS, Method, method_named, needs_target
from boostbins.sources.table import ROWS_AT_ONCE, Column, SparseColumn, Table, is_array_like, is_sparse, read_table
from boostbins.sources.values import MOST_TARGETS, Floats, Targets, checked_weight, numbered_classes, numbers_or_classes
from boostbins.summary.table import TableSummary

BinMethod: TypeAlias = str | Method | Bins | None


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

    def missing(self) -> ImportError:
        """Return the error for when it is not installed."""
        return ImportError(f"{self.name} is not installed: pip install 'boostbins[{self.module}]'")

    def compare(self, asked: Mapping[int, Floats], used: Mapping[int, Floats], names: Sequence[str]) -> None:
        """Refuse to train on other cuts than those asked for."""
        for (place, cuts), name in zip(asked.items(), names, strict=True):
            found = used.get(place, np.empty(0))
            if not np.array_equal(cuts, found):
                raise RuntimeError(
                    f"{self.name} {self.version} did not take the cuts of column {name!r}: "
                    f"{len(cuts)} were given and {len(found)} are there, {_first_difference(cuts, found)}. "
                    f"boostbins was tested with {self.name} {self.oldest} and {self.newest}; please report this, "
                    f"and use bin_method=None until it is mended"
                )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in text.split(".")[:3])


def _first_difference(asked: Floats, found: Floats) -> str:
    n = min(len(asked), len(found))
    at = next(iter(np.flatnonzero(asked[:n] != found[:n])), n)
    return f"the first that differs is number {at}"


# ---- the flag

FLAGS = ("bin_method", "bin_cache", "total_bins")


class Default(str):
    """A method that was not asked for by name: it gives way where a library cannot take cuts.

    Equal to the same text, and as such copied, pickled and printed; so clones and searches know it too.
    """

    __slots__ = ()


DEFAULT = Default("kmeans")


def cuts_are_ours(bin_method: BinMethod, obstacle: str = "") -> TypeGuard[str | Method | Bins]:
    """Return whether a model is trained on cuts of ours, where something may stand in the way of that.

    A method that was asked for is then refused; the default one gives way to the library, with a warning.
    `obstacle` says what, and what else than bin_method=None helps: "booster='gblinear' has no bins: use 'gbtree'".
    """
    if bin_method is None or not obstacle:
        return bin_method is not None
    said = f"{obstacle}, or give bin_method=None"
    if not isinstance(bin_method, Default):
        raise ValueError(said)
    warnings.warn(f"{said}. It was not given, so the library goes its own way", stacklevel=_frames_of_libraries())
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
    total_bins : int, optional
        At most so many bins in all columns together, shared by what they gain; see `fit_bins`.
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


def with_flag(budget: str, *, cached: bool = True, **more: Any) -> Callable[[type], type]:
    """Return a decorator for subclasses of a library's estimators: adds the flag's parameters, and more, to its own.

    `budget` says in the documentation what limits the number of bins; `cached` is whether there is a bin_cache.
    """
    own = {"bin_method": DEFAULT, **({"bin_cache": None} if cached else {}), "total_bins": None, **more}

    def decorated(cls: Any) -> type:
        cls._native_class = next(base for base in cls.__bases__ if not base.__module__.startswith("boostbins"))
        cls._own_parameters = own
        cls.__init__ = _flagged_init(cls._native_class, cls._own_parameters)
        cls.__doc__ += _PARAMETERS.format(budget=budget, cache=_CACHE if cached else "")
        return cls  # type: ignore[no-any-return]

    return decorated


def _flagged_init(base: Any, own: Mapping[str, Any]) -> Callable[..., None]:
    initialize = base.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        flags = {name: kwargs.pop(name, default) for name, default in own.items()}
        initialize(self, *args, **kwargs)
        for name, value in flags.items():
            setattr(self, name, value)

    signature = inspect.signature(initialize)
    known = list(signature.parameters.values())
    rest = [known.pop()] if known[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    defaults = {name: str(value) if isinstance(value, Default) else value for name, value in own.items()}
    flags = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in defaults.items()]
    # The libraries and scikit-learn learn the parameters from the signature.
    __init__.__signature__ = signature.replace(parameters=[*known, *flags, *rest])  # type: ignore[attr-defined]
    return __init__


class Flagged:
    """What the drop-in estimators have in common."""

    _native_class: Any
    _own_parameters: Mapping[str, Any]
    bin_method: BinMethod
    bin_cache: BinCache = None
    total_bins: int | None = None
    bins_: Bins

    def _begin_fit(self, obstacle: str = "") -> bool:
        """Check the flag, forget an earlier fit's bins, and return whether the cuts are to be ours."""
        checked_flag(self.bin_method, self.bin_cache)
        self.__dict__.pop("bins_", None)
        return cuts_are_ours(self.bin_method, obstacle)

    def to_native(self) -> Any:
        """Return the same model as an estimator of the library's own class, which needs no boostbins."""
        plain = self._native_class.__new__(self._native_class)
        ours = {*self._own_parameters, "bins_"}
        plain.__dict__.update({key: value for key, value in self.__dict__.items() if key not in ours})
        return plain

    def _get_doc_link(self) -> str:
        """Return where the library documents its own class, for scikit-learn's display of an estimator."""
        return str(getattr(self.to_native(), "_get_doc_link", str)())


# ---- the data, as a library sees it


def feature_table(X: Any, leave_out: Collection[int] = ()) -> Table:
    """Return the columns that are to be cut: all but those at some places."""
    X = as_array(X)
    if isinstance(X, np.ma.MaskedArray):
        X = X.data  # as the libraries see it
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUS" and X.ndim == 2:
        kept = [i for i in range(X.shape[1]) if i not in leave_out]
        names = tuple(f"x{i}" for i in kept)
        return Table(names, X.shape[0], False, lambda i: _numbers_in(X[:, kept[i]], names[i]), places=tuple(kept))
    table = read_table(X, non_numeric="skip").leaving_out(leave_out)
    if not hasattr(X, "columns") or len(table) + len(leave_out) == X.shape[1]:
        return table
    return _with_odd_columns(X, table, leave_out)


def as_array(X: Any) -> Any:
    """Return lists of rows, and what else can be taken as an array, as one; and anything else as it is."""
    if not isinstance(X, list | tuple) and not is_array_like(X):
        return X
    array = np.asarray(X)
    return np.array(X, object) if array.dtype.kind in "US" else array


def _with_odd_columns(X: Any, table: Table, leave_out: Collection[int]) -> Table:
    """Return the columns of a frame with those of unusual types too, which libraries may take as numbers."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    names = [str(name) for name in frame.columns]
    read: dict[int, Callable[[], Column]] = {place: partial(table.read, i) for i, place in enumerate(table.places)}
    for place in range(len(names)):
        if place not in leave_out and place not in read:
            read[place] = partial(lambda p: _numbers_in(frame[:, p].to_numpy(), names[p]), place)
    places = sorted(read)
    return replace(table, names=tuple(names[p] for p in places), places=tuple(places), read=lambda i: read[places[i]]())


def _numbers_in(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(column).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"X, column {name!r} cannot be cut: {error}. Make it numbers, or categorical, or give bin_method=None"
        ) from None


def first_rows(X: Any, n_rows: int) -> Any:
    """Return the first rows of a table, of its own kind."""
    X = as_array(X)
    if isinstance(X, np.ndarray):
        return X[:n_rows]
    if is_sparse(X):
        return X.tocsr()[:n_rows]
    import narwhals as nw

    return nw.from_native(X, eager_only=True).head(n_rows).to_native()


class Ranges(NamedTuple):
    """What a library sees of the columns, whatever the rows' weights."""

    low: Floats  # NaN if all is missing
    high: Floats
    missing: NDArray[np.bool_]


def ranges(table: Table, n_threads: int | None = None) -> Ranges:
    """Return the least and the greatest value of each column, and whether any is missing."""
    if table.array is not None and table.array.flags.c_contiguous:
        return _ranges_of_rows(table.array, n_threads)

    def of_column(i: int) -> tuple[float, float, bool]:
        column = table.read(i)
        values = column.values if isinstance(column, SparseColumn) else column
        low, high, missing = np.nan, np.nan, False
        if len(values):
            low, high = float(values.min()), float(values.max())
            if missing := bool(np.isnan(low)):
                low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
        if isinstance(column, SparseColumn) and len(values) < column.n_rows:
            low, high = float(np.fmin(low, column.rest)), float(np.fmax(high, column.rest))
            missing = missing or bool(np.isnan(column.rest))
        return low, high, missing

    found = each(of_column, range(len(table)), n_threads)
    low, high, missing = zip(*found, strict=True) if found else ((), (), ())
    return Ranges(np.array(low, np.float64), np.array(high, np.float64), np.array(missing, np.bool_))


def summarized_ranges(summary: TableSummary) -> Ranges:
    """Return the ranges of a table that is summarized, infinities included; rows of weight 0 are not seen."""
    low = [c.min if c.n_cells else np.nan for c in summary]
    high = [c.max if c.n_cells else np.nan for c in summary]
    low = [
        np.fmin(x, -np.inf if c.negative_infinite else np.inf if c.positive_infinite else x)
        for x, c in zip(low, summary, strict=True)
    ]
    high = [
        np.fmax(x, np.inf if c.positive_infinite else -np.inf if c.negative_infinite else x)
        for x, c in zip(high, summary, strict=True)
    ]
    return Ranges(np.array(low), np.array(high), np.array([c.missing > 0 for c in summary], np.bool_))


def _ranges_of_rows(array: NDArray[Any], n_threads: int | None) -> Ranges:
    """Return the ranges of an array in C order, which are found faster over rows than over columns."""

    def of_rows(start: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        rows = array[start : start + ROWS_AT_ONCE]
        low, high = rows.min(axis=0), rows.max(axis=0)
        missing = np.isnan(low)
        if missing.any():
            low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
        return low, high, missing

    low, high, missing = zip(*each(of_rows, range(0, len(array), ROWS_AT_ONCE), n_threads), strict=True)
    return Ranges(
        np.fmin.reduce(low).astype(np.float64), np.fmax.reduce(high).astype(np.float64), np.any(missing, axis=0)
    )


class Rule(NamedTuple):
    """What a library makes of cuts."""

    name: str
    settle: Callable[[int, Floats], Floats]  # of a column, its cuts to those that the library uses


def floor32(cuts: Floats) -> Floats:
    """Return cuts that part float32 values as the given ones do, and are float32 themselves.

    The greatest float32 that is not above the cut; cuts beyond the range of float32 part nothing.

    >>> floor32(np.array([0.1, 1.0])).tolist()
    [0.09999999403953552, 1.0]
    """
    with np.errstate(over="ignore"):
        near = cuts.astype(np.float32)
    below = np.where(near.astype(np.float64) <= cuts, near, np.nextafter(near, np.float32(-np.inf)))
    limit = np.finfo(np.float32).max
    return np.unique(below[(below > -limit) & (below < limit)]).astype(np.float64) + 0.0


AS_THEY_ARE = Rule("float64", lambda column, cuts: cuts)
IN_FLOAT32 = Rule("float32", lambda column, cuts: floor32(cuts))


# ---- the bins


def requested_bins(
    bin_method: str | Method | Bins,
    table: Table,
    budgets: Sequence[int],
    *,
    sample_weight: ArrayLike | None = None,
    label: Any = None,
    n_classes: int | None = None,
    bin_cache: BinCache = None,
    total_bins: int | None = None,
    rule: Rule = AS_THEY_ARE,
    limit: str,
    n_threads: int | None = None,
) -> Bins:
    """Return the bins that the flag asks for, as the library will use them.

    Parameters
    ----------
    bin_method : str, function or Bins
    table : Table
        As the library sees it.
    budgets : sequence of int
        How many bins the library has for each column.
    sample_weight : array, optional
    label : array, optional
        What is to be predicted, for methods that look at it.
    n_classes : int, optional
        If it numbers classes, how many there are.
    bin_cache : None, "memory" or a folder
    total_bins : int, optional
    rule : Rule
        What the library makes of cuts.
    limit : str
        What sets the budgets, for messages: e.g. "max_bin=63".
    n_threads : int, optional
    """
    if isinstance(bin_method, Bins):
        return _ready_bins(bin_method, table, budgets, rule.settle, limit)
    method = method_named(bin_method, "bin_method", " or Bins or None")
    check_budgets(budgets, limit)
    weight = None if sample_weight is None else _weight_that_counts(sample_weight, table.n_rows)
    target = target_of(label, table.n_rows, n_classes) if needs_target(method, total_bins) else None
    rooms = _rooms(budgets, rule.settle)

    def suits(bins: Bins) -> bool:
        return bins.names == table.names and all(n <= room for n, room in zip(bins.n_bins, rooms, strict=True))

    return cached_bins(
        bin_cache,
        table,
        (weight, target),
        method,
        [list(budgets), total_bins, rule.name],
        lambda: fit_table(
            table, method, budgets, weight, target, total_bins=total_bins, n_threads=n_threads, settle=rule.settle
        ),
        suits,
        n_threads,
    )


def summarized_bins(
    bin_method: str | Method | Bins,
    summary: TableSummary,
    budgets: Sequence[int],
    *,
    total_bins: int | None = None,
    rule: Rule = AS_THEY_ARE,
    limit: str,
    n_threads: int | None = None,
) -> Bins:
    """Return the bins that the flag asks for, of a table that is summarized as the library sees it.

    As `requested_bins` of the table itself.
    """
    if isinstance(bin_method, Bins):
        names = Table(summary.names, 0, True, lambda i: np.empty(0), places=tuple(range(len(summary))))
        return _ready_bins(bin_method, names, budgets, rule.settle, limit)
    method = method_named(bin_method, "bin_method", " or Bins or None")
    check_budgets(budgets, limit)
    return fit_summary(summary, method, budgets, total_bins=total_bins, n_threads=n_threads, settle=rule.settle)


def target_of(label: Any, n_rows: int, n_classes: int | None = None) -> Targets | None:
    """Return the target for the binning, if there is a label."""
    if label is None:
        return None
    values = np.asarray(label)
    if values.ndim == 2:
        values = values[:, :MOST_TARGETS]
    target = numbers_or_classes(values, n_rows, "label")
    if n_classes is not None and target.shape[1] == 1 and values.dtype.kind in "biuf":
        return numbered_classes(target[:, 0], n_classes, "label")
    return target


def check_budgets(budgets: Sequence[int], limit: str) -> None:
    """Refuse budgets that a method cannot work with."""
    for budget in budgets:
        if not isinstance(budget, int | np.integer):
            raise TypeError(f"{limit} must be a whole number")
        if not MIN_BINS <= budget <= MAX_BINS:
            raise ValueError(
                f"{limit} leaves {budget} bins for the values of a column; bin_method needs {MIN_BINS} to {MAX_BINS}"
            )


def _weight_that_counts(weight: Any, n_rows: int) -> Floats | None:
    """Return the rows' weights for the binning, from any form that a library takes: none, if all are zero.

    Some train on negative weights too; in the binning these count as zero.
    """
    array = np.asarray(weight)
    array = array.astype(np.float64) if array.dtype == object else array
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    try:
        counted = checked_weight(np.maximum(array, 0), n_rows, "sample_weight")
    except ValueError as error:
        raise ValueError(f"{error}, or give bin_method=None") from None
    return counted if counted.any() else None


def _ready_bins(
    bins: Bins, table: Table, budgets: Sequence[int], settle: Callable[[int, Floats], Floats], limit: str
) -> Bins:
    try:
        table.matched(bins.names)
    except ValueError as error:
        raise ValueError(f"bin_method holds bins for other columns: {error}") from None
    order = [bins.names.index(name) for name in table.names] if table.named else range(len(bins))
    cuts = [settle(i, bins.cuts[j]) for i, j in enumerate(order)]
    for i, (settled, room) in enumerate(zip(cuts, _rooms(budgets, settle), strict=True)):
        if len(settled) + 1 > room:
            raise ValueError(
                f"bin_method holds {len(settled) + 1} bins for column {table.names[i]!r}, and {limit} has room for "
                f"{room}: raise it, or make bins with fewer"
            )
    same = bins.stats is not None and all(len(c) == len(bins.cuts[j]) for c, j in zip(cuts, order, strict=True))
    choices = [bins.choices.get(bins.names[j]) for j in order]
    return Bins(cuts, table.names, [bins.stats[j] for j in order] if same and bins.stats else None, choices)


def _rooms(budgets: Sequence[int], settle: Callable[[int, Floats], Floats]) -> list[int]:
    """Return how many bins each column can have, with the cuts that a library adds by itself."""
    return [budget + len(settle(i, np.empty(0))) for i, budget in enumerate(budgets)]


def checked_flag(bin_method: BinMethod, bin_cache: BinCache) -> None:
    """Refuse what is no bin_method, or no bin_cache, before any work."""
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
