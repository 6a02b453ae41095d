"""Threads: all cores for passes over rows, one thread for linear algebra on small problems.

Results never depend on the number of threads: the caller fixes the order and the grouping of sums.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["MANY_ROWS", "PIECE_ROWS", "alone", "n_threads", "one_blas_thread", "parallel_for", "parallel_map"]

MANY_ROWS = 1 << 16  # with fewer rows, handing work to another thread costs more than it saves
PIECE_ROWS = 1 << 15  # rows worked on at a time, so that what is computed for them fits the processor's cache

T = TypeVar("T")
R = TypeVar("R")

_this = threading.local()


def n_threads() -> int:
    """Return how many threads to use: OMP_NUM_THREADS if it is set, else the cores this process may run on.

    Work inside one of these threads gets no further ones.
    """
    if getattr(_this, "is_worker", False):
        return 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Use no other thread inside the block, for use where many processes run side by side."""
    before = getattr(_this, "is_worker", False)
    _this.is_worker = True
    try:
        yield
    finally:
        _this.is_worker = before


def parallel_map(function: Callable[[T], R], items: Iterable[T], rows: int = MANY_ROWS) -> Iterator[R]:
    """Map a function over items and return the results in the order of the items.

    Several threads share the items if `rows`, the number of rows behind them, is at least MANY_ROWS.
    If calls fail, the error raised is that of the first failing item, as it is without threads.
    """
    if rows < MANY_ROWS or n_threads() == 1:
        return map(function, items)
    given = list(items)
    results: dict[int, R] = {}
    errors: dict[int, Exception] = {}

    def work(indices: Iterator[int]) -> None:
        for k in indices:
            if errors:
                return  # items before the failed one are done, or other threads are working on them
            try:
                results[k] = function(given[k])
            except Exception as error:
                errors[k] = error

    parallel_for(work, range(len(given)))
    if errors:
        raise errors[min(errors)]
    return (results[k] for k in range(len(given)))


def parallel_for(work: Callable[[Iterator[int]], None], starts: Sequence[int]) -> None:
    """Call `work` on several threads; the iterator each call gets takes the next start that is left."""
    threads = n_threads() if len(starts) > 1 else 1
    if threads <= 1:
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

    others = _submit(lambda: work(taken()), threads - 1, min(threads, len(starts)) - 1)
    _this.is_worker = True
    try:
        work(taken())  # the calling thread takes its share, too
    finally:
        _this.is_worker = False
        left = iter(())  # after an error, no thread begins anything new
        others = [other for other in others if not other.cancel()]
        for other in others:
            other.exception()
    for other in others:
        other.result()


def _submit(work: Callable[[], None], size: int, wanted: int) -> list[Future[None]]:
    """Submit work to `wanted` threads of the pool, or to fewer if the system gives no more."""
    submitted: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):  # no more threads, or the interpreter is about to end
        submitted.extend(_pool(size).submit(copy_context().run, work) for _ in range(wanted))
    return submitted


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return the pool, which is reused between calls: starting threads takes as long as a pass over few rows."""
    from concurrent.futures import ThreadPoolExecutor  # most processes score a few rows and never need it

    return ThreadPoolExecutor(threads, "plainrisk", initializer=_mark_worker)


def _mark_worker() -> None:
    _this.is_worker = True


class _BlasLimit:
    """Limit the linear-algebra libraries to one thread while at least one block requires it.

    The libraries' setting belongs to the process, not to a thread. So the blocks of all threads are counted together:
    the first to begin sets the limit, the last to end restores what was there before.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._before = [library.get_num_threads() for library in _blas_libraries()]
                _set_blas_threads([1] * len(self._before))
            self._blocks += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                _set_blas_threads(self._before)

    def renew_lock(self) -> None:
        """Replace the lock in a forked process, where no thread is left that could release it."""
        self._lock = threading.Lock()


_blas_limit = _BlasLimit()


def one_blas_thread() -> contextlib.AbstractContextManager[None]:
    """Limit linear algebra to one thread inside the block: on small problems, two threads are many times slower.

    Blocks may be nested, and may run in several threads at the same time.
    """
    return _blas_limit


def _set_blas_threads(counts: Sequence[int]) -> None:
    for library, count in zip(_blas_libraries(), counts, strict=True):
        library.set_num_threads(count)
        # Newer versions of threadpoolctl follow only the thread that first set a limit, until it releases control;
        # another thread may restore the limit.
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()


@functools.cache
def _blas_libraries() -> Sequence[Any]:
    """Return controllers of the loaded linear-algebra libraries. Finding them takes a while, so it is done once."""
    from threadpoolctl import ThreadpoolController  # a dependency of scikit-learn

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not live on in a copy of the process
    os.register_at_fork(after_in_child=_blas_limit.renew_lock)
