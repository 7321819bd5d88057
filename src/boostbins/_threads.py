"""Work in threads; the kernels release the interpreter's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np

WORTH_THREADS = 1_000
"""Rows; on fewer, threads mostly wait for each other."""

S = TypeVar("S")
T = TypeVar("T")
Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with how much is done, how much there is, and what is at hand."""


class cached_property(Generic[T]):  # noqa: N801
    """A property that is computed once, when it is first asked for; by two threads at once, perhaps twice.

    As in `functools` from Python 3.12 on. Before, that one holds a lock: threads wait for each other, and a process
    that is forked while another thread holds it waits forever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def map_threads(function: Callable[[int], T], items: Iterable[int], n_threads: int | None) -> list[T]:
    """Return `function` of all items, in threads: as many as there are processors, by default."""
    todo, threads = list(items), checked_threads(n_threads)
    if min(threads, len(todo)) < 2:
        return [function(item) for item in todo]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, todo))


def spare_threads(n_items: int, n_threads: int | None) -> int:
    """Return how many threads there are for each of some items that are worked on in threads."""
    return max(checked_threads(n_threads) // max(n_items, 1), 1)


def map_ordered(function: Callable[[S], T], items: Iterable[S], n_threads: int) -> Iterator[T]:
    """Yield `function` of all items, in their order; `n_threads` are made, or held, at a time."""
    with _pool(n_threads) as pool:
        at_hand: deque[Future[T]] = deque()
        for item in items:
            at_hand.append(pool.submit(function, item))
            if len(at_hand) == n_threads:
                yield at_hand.popleft().result()
        while at_hand:
            yield at_hand.popleft().result()


def prefetch(items: Iterable[T]) -> Iterator[T]:
    """Yield the items; while one is worked on, the next is made in a thread."""
    waiting = iter(items)
    end = object()
    with _pool(1) as pool:
        following: Future[Any] = pool.submit(next, waiting, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, waiting, end)
            yield item


@contextmanager
def _pool(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Give a generator threads, whose end is waited for, unless the generator is dropped.

    That may be by the garbage collector: at any moment, also in a thread that holds a lock of `threading` which the end
    of another thread needs.
    """
    pool = ThreadPoolExecutor(n_threads)
    is_dropped = False
    try:
        yield pool
    except GeneratorExit:
        is_dropped = True
        raise
    finally:
        pool.shutdown(wait=not is_dropped, cancel_futures=True)


def checked_threads(n_threads: int | None) -> int:
    """Return the number of threads to use."""
    if n_threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(n_threads, int | np.integer) or isinstance(n_threads, bool) or n_threads < 1:
        raise ValueError(f"n_threads must be a whole number from 1 on, or None for all, got {n_threads!r}")
    return int(n_threads)
