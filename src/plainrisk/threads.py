"""Passes over rows on all cores. Results never depend on how many there are: order and grouping are the caller's."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["n_threads", "side_by_side", "spread"]

MANY_ROWS = 1 << 16  # below, handing work over costs more than it saves

T = TypeVar("T")
R = TypeVar("R")

_this = threading.local()


def n_threads() -> int:
    """Return how many threads to use: OMP_NUM_THREADS if it is set, else the cores this process may run on.

    Work that is itself done by one of these threads gets no others.
    """
    if getattr(_this, "is_worker", False):
        return 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(function: Callable[[T], R], items: Iterable[T], rows: int = MANY_ROWS) -> Iterator[R]:
    """Return the function's results in the order of the items, worked out by several threads where rows are many.

    If it fails, the error is that of the first item that fails, as it is without threads.
    """
    if rows < MANY_ROWS or n_threads() == 1:
        return map(function, items)
    given = list(items)
    results: dict[int, R] = {}
    errors: dict[int, Exception] = {}

    def work(places: Iterator[int]) -> None:
        for k in places:
            if errors:
                return  # those before the failed one are done, or others are at them
            try:
                results[k] = function(given[k])
            except Exception as error:
                errors[k] = error

    spread(work, range(len(given)))
    if errors:
        raise errors[min(errors)]
    return (results[k] for k in range(len(given)))


def spread(work: Callable[[Iterator[int]], None], starts: Sequence[int]) -> None:
    """Work through all starts, where there are several on several threads; each takes the next one that is left."""
    threads = n_threads()
    if min(threads, len(starts)) <= 1:
        work(iter(starts))
        return
    left, lock = iter(starts), threading.Lock()

    def taken() -> Iterator[int]:
        while True:
            with lock:
                start = next(left, None)
            if start is None:
                return
            yield start

    others = _begun(lambda: work(taken()), threads - 1, min(threads, len(starts)) - 1)
    _this.is_worker = True
    try:
        work(taken())  # this thread takes its share, too
    finally:
        _this.is_worker = False
        left = iter(())  # after an error, nobody begins anything new
        others = [other for other in others if not other.cancel()]
        for other in others:
            other.exception()
    for other in others:
        other.result()


def _begun(work: Callable[[], None], size: int, wanted: int) -> list[Future[None]]:
    """Hand work to so many of the pool's threads, or to fewer if the system has no more."""
    begun: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):  # no more threads, or the interpreter is about to end
        begun.extend(_pool(size).submit(work) for _ in range(wanted))
    return begun


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """The threads themselves, kept from call to call: starting them takes as long as a pass over few rows."""
    from concurrent.futures import ThreadPoolExecutor  # most processes score a few rows and never need it

    return ThreadPoolExecutor(threads, "plainrisk", initializer=_begin)


def _begin() -> None:
    _this.is_worker = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not live on in a copy of the process
