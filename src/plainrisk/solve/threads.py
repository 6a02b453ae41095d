"""Former names of plainrisk.threads, until the solver's callers have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from plainrisk._native import COMPILED
from plainrisk.threads import MANY_ROWS, one_blas_thread, parallel_for, parallel_map

__all__ = ["one_thread", "over_rows", "spread_rows"]

one_thread = one_blas_thread
T = TypeVar("T")
R = TypeVar("R")


def over_rows(function: Callable[[T], R], items: Iterable[T], rows: int) -> Iterator[R]:
    """Map a function that mostly sums by level over items; results come in the order of the items.

    Without the compiled loops, summing holds the interpreter, so threads would only wait for each other.
    """
    return parallel_map(function, items, rows) if COMPILED else map(function, items)


def spread_rows(work: Callable[[Iterable[int]], None], tasks: Sequence[int], rows: int) -> None:
    """Work through all tasks, on several threads if there are many rows."""
    if COMPILED and rows >= MANY_ROWS:
        parallel_for(work, tasks)
    else:
        work(tasks)
