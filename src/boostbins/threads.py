"""Work in threads; the kernels release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

import numpy as np

WORTH_THREADS = 1_000
"""Rows; on fewer, threads mostly wait for each other."""

T = TypeVar("T")
Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with how much is done, how much there is, and what is at hand."""


def each(function: Callable[[int], T], items: Iterable[int], n_threads: int | None) -> list[T]:
    """Return `function` of all items, in threads: as many as there are processors, if not said otherwise."""
    todo, threads = list(items), checked_threads(n_threads)
    if min(threads, len(todo)) < 2:
        return [function(item) for item in todo]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, todo))


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield the items; while one is worked on, the next is made in a thread."""
    waiting = iter(items)
    end = object()
    with ThreadPoolExecutor(1) as pool:
        following: Future[Any] = pool.submit(next, waiting, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, waiting, end)
            yield item


def checked_threads(n_threads: int | None) -> int:
    """Return the number of threads to use."""
    if n_threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(n_threads, int | np.integer) or isinstance(n_threads, bool) or n_threads < 1:
        raise ValueError(f"n_threads must be a whole number from 1 on, or None for all, got {n_threads!r}")
    return int(n_threads)
