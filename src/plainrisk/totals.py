"""Sums of partial results: what a small function returns for some rows, added to its results for others.

Such functions are sent to the rows, which may be on another machine. So they are functions of a module or small
dataclasses with a `__call__`, never closures over a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["Then", "added", "identity", "once", "total_of"]

T = TypeVar("T")


def added(total: Any, part: Any) -> Any:
    """Add two partial results; None represents no rows.

    Tuples are added item by item, and lists in them array by array. A tuple inside a tuple is collected: the tuples of
    all rows are concatenated.

    >>> added((1, [1, 2], ("a",)), (2, [3, 4], ("b",)))
    (3, [4, 6], ('a', 'b'))
    """
    if total is None or part is None:
        return part if total is None else total
    if not isinstance(total, tuple):
        return total + part
    both = zip(total, part, strict=True)
    return tuple([x + y for x, y in zip(a, b, strict=True)] if isinstance(a, list) else a + b for a, b in both)


def total_of(parts: Iterable[Any]) -> Any:
    """Add up partial results in order; return None if there are none."""
    total = None
    for part in parts:
        total = added(total, part)
    return total


def identity(total: Any) -> Any:
    """Return a sum unchanged."""
    return total


@dataclass(frozen=True)
class Then:
    """One function after another; rows that the first leaves out (None) are not given to the second."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, rows: Any) -> Any:
        """Apply the second function to the result of the first."""
        between = self.first(rows)
        return None if between is None else self.second(between)


class once(Generic[T]):  # noqa: N801
    """A property that is computed once and may use sums.

    It is `functools.cached_property` without the lock that this has in Python 3.11: a fit that holds it while it waits
    for a sum would keep other fits from asking for theirs (`plainrisk.data.lockstep`).
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        """Return the value, which from now on is found before this is asked."""
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value
