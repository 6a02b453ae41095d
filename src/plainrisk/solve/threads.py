"""Threads: one for linear algebra on small problems, where two are many times slower; all for passes over rows."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from plainrisk._native import COMPILED
from plainrisk.threads import MANY_ROWS, side_by_side, spread

__all__ = ["one_thread", "over_rows", "spread_rows"]

_this = threading.local()
T = TypeVar("T")
R = TypeVar("R")


@functools.cache
def _controller() -> Any:
    """What sets the threads of the libraries for linear algebra."""
    # A dependency of scikit-learn. Finding the loaded libraries takes a while, so it is done once.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread inside the block."""
    if getattr(_this, "limited", False):  # by a block around this one
        yield
        return
    _this.limited = True
    try:
        with _controller().limit(limits=1):
            yield
    finally:
        _this.limited = False


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
