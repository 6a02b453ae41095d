"""Several tasks on the same rows, in step: one pass answers the next requests of all of them.

Each task has its own thread, but only one thread runs at a time, until it asks for a sum or ends. When all tasks have
asked, one pass answers them. So a task is written as if it were alone, and gets the same results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.data.rows import StoredRows
from plainrisk.data.spool import Arrays, Kept
from plainrisk.totals import added, identity

__all__ = ["kept_in_step", "rows_in_step"]

T = TypeVar("T")
S = TypeVar("S")

# From the requests of several tasks at one place to the answers.
Answer = Callable[[Sequence[Any]], Sequence[Any]]


def rows_in_step(rows: StoredRows, works: Sequence[Callable[[StoredRows], T]]) -> list[T]:
    """Do several pieces of work on rows in step, and return their results."""
    answer = _RowSums(rows)
    return _in_step(works, lambda turn: _RowsInStep(rows, turn, answer))


def kept_in_step(kept: Kept, works: Sequence[Callable[[Kept], T]]) -> list[T]:
    """Run several tasks on kept arrays in step, and return their results."""
    answer = _KeptSums(kept)
    return _in_step(works, lambda turn: _KeptInStep(kept, turn, answer))


class _StoppedError(BaseException):
    """Another piece of work has failed."""


class _Turn:
    """A task in a separate thread, which runs while the caller waits.

    Attributes
    ----------
    asked : whom it asks and what, None if it has ended
    """

    def __init__(self) -> None:
        self.asked: tuple[Any, Any] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._answer: Any = None
        self._is_stopped = False
        self._mine, self._callers = threading.Semaphore(0), threading.Semaphore(0)

    def start(self, work: Callable[[], Any]) -> None:
        """Run until the task asks for something, or ends."""

        def run() -> None:
            self._mine.acquire()
            try:
                self.result = work()
            except BaseException as error:  # it goes on in the thread of the caller
                self.error = error
            self.asked = None
            self._callers.release()

        threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
        self.go_on(None)

    def go_on(self, answer: Any) -> None:
        """Continue with an answer, until the task asks for more or ends."""
        self._answer = answer
        self._mine.release()
        self._callers.acquire()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """End the work where it waits, and wait for its end."""
        self._is_stopped = True
        self._mine.release()
        if self.asked is not None:
            self._callers.acquire()

    def ask(self, whom: Answer, what: Any) -> Any:
        """Wait for an answer; called by the work."""
        self.asked = whom, what
        self._callers.release()
        self._mine.acquire()
        if self._is_stopped:
            raise _StoppedError
        return self._answer


def _in_step(works: Sequence[Callable[[S], T]], view: Callable[[_Turn], S]) -> list[T]:
    """Run tasks on views of the same rows; one round is one pass over all their requests."""
    turns = [_Turn() for _ in works]
    try:
        for turn, work in zip(turns, works, strict=True):
            turn.start(lambda turn=turn, work=work: work(view(turn)))  # type: ignore[misc]
        while waiting := [turn for turn in turns if turn.asked is not None]:
            together: dict[Any, list[_Turn]] = {}
            for turn in waiting:
                assert turn.asked is not None
                together.setdefault(turn.asked[0], []).append(turn)
            for whom, asking in together.items():
                answers = whom([turn.asked[1] for turn in asking if turn.asked is not None])
                for turn, answer in zip(asking, answers, strict=True):
                    turn.go_on(answer)
    finally:
        for turn in turns:
            turn.stop()
    return [turn.result for turn in turns]


# ---- sums of kept arrays


@dataclass(frozen=True, eq=False)
class _KeptSums:
    """Answers with sums over kept arrays."""

    kept: Kept

    def __call__(self, asked: Sequence[Callable[[int, Arrays], Any]]) -> Sequence[Any]:
        total = self.kept.total(_All(tuple(asked)))
        return [None] * len(asked) if total is None else total.each


@dataclass(frozen=True)
class _Each:
    """Sums of several functions, added separately."""

    each: tuple[Any, ...]

    def __add__(self, other: _Each) -> _Each:
        return _Each(tuple(map(added, self.each, other.each)))


@dataclass(frozen=True)
class _All:
    """Several functions of the same arrays."""

    functions: tuple[Callable[[int, Arrays], Any], ...]

    def __call__(self, number: int, arrays: Arrays) -> _Each:
        return _Each(tuple(function(number, arrays) for function in self.functions))


@dataclass(frozen=True)
class _KeptInStep:
    """Kept arrays, or those that one task has kept; see `Kept`."""

    kept: Kept
    turn: _Turn
    answer: _KeptSums
    number: int | None = None

    def total(self, function: Callable[[int, Arrays], Any]) -> Any:
        """Ask for the sum of a function."""
        return self.turn.ask(self.answer, function if self.number is None else _OfOwn(self.number, function))

    @property
    def only(self) -> Arrays | None:
        """The arrays, if they are one group in memory."""
        only = self.kept.only
        return only if only is None or self.number is None else _own(only, self.number)


# ---- rows


@dataclass(frozen=True)
class _OfOwn:
    """A function of the arrays that one task has kept."""

    number: int
    function: Callable[[int, Arrays], Any]

    def __call__(self, number: int, arrays: Arrays) -> Any:
        own = _own(arrays, self.number)
        return self.function(number, own) if own else None


def _own(arrays: Arrays, number: int) -> Arrays:
    """Return the arrays of one piece of work, as `_KeepAll` has put them together."""
    ends = 1 + np.cumsum(arrays[0])
    return arrays[int(ends[number] - arrays[0][number]) : int(ends[number])]


@dataclass(frozen=True)
class _KeepAll:
    """The arrays that several functions make of a batch, after how many each makes; none of a batch it leaves out."""

    functions: tuple[Callable[[Frame], Arrays | None], ...]

    def __call__(self, frame: Frame) -> Arrays | None:
        each = [function(frame) or () for function in self.functions]
        return (np.array([len(own) for own in each]), *(array for own in each for array in own)) if any(each) else None


@dataclass(frozen=True)
class _ReadAll:
    """A batch as several pieces of work read it."""

    reads: tuple[Callable[[Frame], Any], ...]

    def __call__(self, frame: Frame) -> tuple[Any, ...]:
        return tuple(read(frame) for read in self.reads)


@dataclass(frozen=True)
class _OfRead:
    """A function of a batch as one piece of work reads it."""

    number: int
    function: Callable[[Any], Any]

    def __call__(self, rows: tuple[Any, ...]) -> Any:
        own = rows[self.number]
        return None if own is None else self.function(own)


@dataclass(frozen=True)
class _Asked:
    """What one piece of work asks of rows: sums, or with no way to finish them, to keep what one function returns."""

    functions: Sequence[Callable[[Any], Any]]
    columns: Sequence[str]
    task: str
    finish: Callable[[Any], Any] | None = None
    read: Callable[[Frame], Any] = identity


@dataclass(frozen=True, eq=False)
class _RowSums:
    """Answers requests for sums over rows, with one pass for all requests of the same kind."""

    rows: StoredRows

    def __call__(self, asked: Sequence[_Asked]) -> Sequence[Any]:
        answers: dict[int, Any] = {}
        for finish in dict.fromkeys(one.finish for one in asked):
            alike = {k: one for k, one in enumerate(asked) if one.finish is finish}
            columns = tuple(dict.fromkeys(name for one in alike.values() for name in one.columns))
            answer = self._kept if finish is None else self._sums
            answers.update(zip(alike, answer(list(alike.values()), columns), strict=True))
        return [answers[k] for k in range(len(asked))]

    def _sums(self, asked: Sequence[_Asked], columns: Sequence[str]) -> Sequence[Any]:
        functions = [_OfRead(k, function) for k, one in enumerate(asked) for function in one.functions]
        read, finish = _ReadAll(tuple(one.read for one in asked)), asked[0].finish
        assert finish is not None
        totals = iter(self.rows.totals(functions, columns, asked[0].task, finish, read))
        return [[next(totals) for _ in one.functions] for one in asked]

    def _kept(self, asked: Sequence[_Asked], columns: Sequence[str]) -> Sequence[Any]:
        together = _KeepAll(tuple(function for one in asked for function in one.functions))
        kept = self.rows.keep(together, columns, asked[0].task)
        answer = _KeptSums(kept)
        return [(kept, answer, k) for k in range(len(asked))]


class _RowsInStep(StoredRows):
    """The rows that one task sees."""

    def __init__(self, rows: StoredRows, turn: _Turn, answer: _RowSums) -> None:
        self.rows, self.turn, self.answer = rows, turn, answer
        self.names, self.weight, self.group = rows.names, rows.weight, rows.group
        self.numbered, self.depth = rows.numbered, rows.depth

    def count(self) -> int:
        """Return the number of rows."""
        return self.rows.count()

    def first(self, columns: Sequence[str]) -> Frame | None:
        """Return some of the rows."""
        return self.rows.first(columns)

    def totals(
        self,
        functions: Sequence[Callable[[Any], Any]],
        columns: Sequence[str],
        task: str,
        finish: Callable[[Any], Any] = identity,
        read: Callable[[Frame], Any] = identity,
    ) -> list[Any]:
        """Ask for sums over all rows."""
        found: list[Any] = self.turn.ask(self.answer, _Asked(functions, columns, task, finish, read))
        return found

    def keep(
        self, function: Callable[[Frame], Arrays | None], columns: Sequence[str], task: str, groups: int = 0
    ) -> Kept:
        """Ask to keep arrays of every batch; distinct rows are brought together alone."""
        if groups:
            return self.rows.keep(function, columns, task, groups)
        kept, answer, number = self.turn.ask(self.answer, _Asked([function], columns, task))
        return _KeptInStep(kept, self.turn, answer, number)

    def gathered(self, function: Callable[[Frame], Any], columns: Sequence[str], task: str) -> list[Any]:
        """Return a function's result for every batch."""
        return self.rows.gathered(function, columns, task)

    def free(self) -> None:
        """Leave kept data to the other users."""
