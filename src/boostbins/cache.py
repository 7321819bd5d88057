"""Bins by the content that they were found on: in memory, or in a folder."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import threading
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbins._atomic import atomic_write
from boostbins._threads import map_threads
from boostbins.bins import Bins, text_in
from boostbins.methods import METHODS, Method
from boostbins.sources.table import SparseColumn, Table
from boostbins.sources.values import Targets

BinCache: TypeAlias = str | os.PathLike[str] | None

_KIND = f"boostbins {version('boostbins')} cache 4"  # to be counted up when the same request gets other cuts
_IN_MEMORY = 256  # entries; those used least recently go first

_memory: OrderedDict[tuple[str, Any], Bins] = OrderedDict()
_busy: dict[tuple[str, Any], threading.Lock] = {}
_guard = threading.Lock()


def cached_bins(
    cache: BinCache,
    table: Table,
    per_row: Sequence[Targets | None],
    method: Method,
    request: Sequence[Any],
    find: Callable[[], Bins],
    suits: Callable[[Bins], bool],
    n_threads: int | None = None,
) -> Bins:
    """Return what `find` returns, from the cache if the same was asked of the same content before.

    Parameters
    ----------
    cache : None, "memory" or a folder
        "memory" is this process'; a folder is shared by all processes that name it, and outlives them.
    table, per_row, method
        What the bins are found on (the columns; the weights and the targets, if there are any), and how.
    request : sequence
        Whatever else decides about them, as values with a faithful `repr`.
    find : function
        Finds the bins.
    suits : function
        Whether bins can be what is asked for: what a folder holds may come from anywhere.
    n_threads : int, optional
    """
    if cache is None:
        return find()
    name = _name_of(method)
    if cache == "memory":
        if name is None and not isinstance(method, types.FunctionType):
            return find()  # an object may change and stay itself
        # A function of the user's is known by its identity; the key keeps it alive.
        return _from_memory((_content_key(table, per_row, name, request, n_threads), None if name else method), find)
    folder = _checked_folder(cache)
    if name is None:
        raise ValueError(
            f"bin_cache={os.fspath(folder)!r} cannot tell whether {method!r} is still the same function in another "
            f"process: use bin_cache='memory', a method by name, or functools.partial of one of boostbins'"
        )
    return _from_folder(folder, _content_key(table, per_row, name, request, n_threads), find, suits)


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


def _from_folder(folder: Path, key: str, find: Callable[[], Bins], suits: Callable[[Bins], bool]) -> Bins:
    path = folder / f"{key}.json"
    kept = _kept(path, key)
    if kept is not None and suits(kept):
        return kept
    bins = find()
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise FileExistsError("it is no file")
        with atomic_write(path) as file:
            file.write_text(bins.to_json_with({"key": key}), encoding="utf-8")
    except OSError as error:
        warnings.warn(f"bin_cache: {path} could not be written ({error}); the bins are not kept", stacklevel=2)
    return bins


def _kept(path: Path, key: str) -> Bins | None:
    """Return the entry for a key, if it is there, whole, and for that key and no other."""
    try:
        if not path.is_file():
            return None
        text = text_in(path)
        bins = Bins.from_json(text)
    except (OSError, ValueError):
        return None
    return bins if json.loads(text).get("key") == key else None


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
    table: Table, per_row: Sequence[Targets | None], method: str | None, request: Sequence[Any], n_threads: int | None
) -> str:
    parts = [_KIND, table.names, table.n_rows, method, *request]
    sha = hashlib.sha256(repr(parts).encode(errors="surrogatepass"))
    for digest in map_threads(lambda i: _column_digest(table, i), range(len(table)), n_threads):
        sha.update(digest)
    for numbers in per_row:
        sha.update(b"none" if numbers is None else _array_digest(numbers))
    return sha.hexdigest()


def _column_digest(table: Table, i: int) -> bytes:
    column = table.read(i)
    if not isinstance(column, SparseColumn):
        return _array_digest(column)
    return b"".join(map(_array_digest, (column.values, column.rows, np.array([column.rest]))))


def _array_digest(values: NDArray[Any]) -> bytes:
    """Return a digest of an array's type, shape and content."""
    array = np.ascontiguousarray(values)
    sha = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    sha.update(array.data)
    return sha.digest()
