"""Threads: one for linear algebra on small problems, where two are many times slower; all for passes over rows."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from plainrisk.kernels import COMPILED
from plainrisk.threads import MANY_ROWS, side_by_side, spread

__all__ = ["one_thread", "over_rows", "spread_rows"]

T = TypeVar("T")
R = TypeVar("R")


@functools.cache
def _controller() -> Any:
    # A dependency of scikit-learn. Finding the loaded libraries takes a while, so it is done once.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _Limit:
    """What is limited at most once, however many ask for it: the limit is that of the whole process."""

    def __init__(self) -> None:
        self._lock, self._asking, self._limit = threading.Lock(), 0, contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._asking == 0:
                self._limit.enter_context(_controller().limit(limits=1, user_api="blas"))
            self._asking += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._asking -= 1
            if self._asking == 0:
                self._limit.close()


_limit = _Limit()


def one_thread() -> contextlib.AbstractContextManager[None]:
    """Limit linear algebra to one thread inside the block."""
    return _limit


def over_rows(function: Callable[[T], R], items: Iterable[T], rows: int) -> Iterator[R]:
    """Return the function's results in the order of the items, for functions that mostly sum by level.

    Without the compiled loops, summing holds the interpreter, so threads would only wait for each other.
    """
    return side_by_side(function, items, rows) if COMPILED else map(function, items)


def spread_rows(work: Callable[[Iterable[int]], None], tasks: Sequence[int], rows: int) -> None:
    """Work through all tasks, several threads side by side where rows are many."""
    if COMPILED and rows >= MANY_ROWS:
        spread(work, tasks)
    else:
        work(tasks)
