"""Bins by the content that they were found on: in memory, or in a folder."""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from boostbins.bins import Bins
from boostbins.columns import SparseColumn, Table
from boostbins.inputs import Targets
from boostbins.methods import METHODS, Method
from boostbins.threads import each

BinCache: TypeAlias = str | os.PathLike[str] | None

_KIND = b"boostbins cache 2"  # to be counted up when the same request gets other cuts
_IN_MEMORY = 256  # entries; those used least recently go first

_memory: OrderedDict[tuple[str, Any], Bins] = OrderedDict()
_busy: dict[tuple[str, Any], threading.Lock] = {}
_guard = threading.Lock()


def cached_bins(
    cache: BinCache,
    table: Table,
    beside: Sequence[Targets | None],
    method: Method,
    request: Sequence[Any],
    find: Callable[[], Bins],
    n_threads: int | None = None,
) -> Bins:
    """Return what `find` returns, from the cache if the same was asked of the same content before.

    Parameters
    ----------
    cache : None, "memory" or a folder
        "memory" is this process'; a folder is shared by all processes that name it, and outlives them.
    table, beside, method
        What the bins are found on (the columns; the weights and the targets, if there are any), and how.
    request : sequence
        Whatever else decides about them, as values with a faithful `repr`.
    find : function
        Finds the bins.
    n_threads : int, optional
    """
    if cache is None:
        return find()
    name = _name_of(method)
    if cache == "memory":
        if name is None and not isinstance(method, types.FunctionType):
            return find()  # an object may change and stay itself
        # A function of the user's is known by its identity; the key keeps it alive.
        return _from_memory((_content_key(table, beside, name, request, n_threads), None if name else method), find)
    folder = _checked_folder(cache)
    if name is None:
        raise ValueError(
            f"bin_cache={os.fspath(folder)!r} cannot tell whether {method!r} is still the same function in another "
            f"process: use bin_cache='memory', a method by name, or functools.partial of one of boostbins'"
        )
    return _from_folder(folder / f"{_content_key(table, beside, name, request, n_threads)}.json", find)


def _from_memory(key: tuple[str, Any], find: Callable[[], Bins]) -> Bins:
    with _guard:
        lock = _busy.setdefault(key, threading.Lock())
    with lock:  # a second thread that asks the same waits for the first
        try:
            with _guard:
                if key in _memory:
                    _memory.move_to_end(key)
                    return _memory[key]
            bins = find()
            with _guard:
                _memory[key] = bins
                while len(_memory) > _IN_MEMORY:
                    _memory.popitem(last=False)
            return bins
        finally:
            with _guard:
                _busy.pop(key, None)


def _forget_locks() -> None:
    """Begin anew in a forked process: no thread is there to give back what was held."""
    global _guard
    _guard = threading.Lock()
    _busy.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def _from_folder(path: Path, find: Callable[[], Bins]) -> Bins:
    try:
        return Bins.load(path)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not there, or not whole: found anew
    bins = find()
    try:
        bins.save(path)
    except OSError as error:
        warnings.warn(f"bin_cache: {path} could not be written ({error}); the bins are not kept", stacklevel=2)
    return bins


def _checked_folder(cache: str | os.PathLike[str]) -> Path:
    try:
        if not os.fspath(cache):
            raise ValueError("it has no name")
        folder = Path(cache)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ValueError(f"bin_cache must be None, 'memory' or a folder; {cache!r} cannot be one: {error}") from None
    return folder


def _name_of(method: Method) -> str | None:
    """Return a name that says all of a method, if there is one."""
    arguments: tuple[Any, ...] = ()
    function: Any = method
    if isinstance(function, partial):
        function, arguments = function.func, (function.args, sorted(function.keywords.items()))
    for name, known in METHODS.items():
        if function is known:
            return name + (hashlib.sha256(pickle.dumps(arguments)).hexdigest() if arguments else "")
    return None


def _content_key(
    table: Table, beside: Sequence[Targets | None], method: str | None, request: Sequence[Any], n_threads: int | None
) -> str:
    said = [table.names, table.n_rows, method, *request]
    sha = hashlib.sha256(_KIND + repr(said).encode(errors="surrogatepass"))
    for digest in each(lambda i: _column_digest(table, i), range(len(table)), n_threads):
        sha.update(digest)
    for numbers in beside:
        sha.update(b"none" if numbers is None else hashlib.sha256(np.ascontiguousarray(numbers).data).digest())
    return sha.hexdigest()


def _column_digest(table: Table, i: int) -> bytes:
    column = table.read(i)
    parts = [column]
    if isinstance(column, SparseColumn):
        parts = [column.values, column.rows, np.array([column.rest])]
    sha = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        sha.update(f"{array.dtype.str} {array.shape}".encode())
        sha.update(array.data)
    return sha.digest()
