"""Rows assigned to folds by their content: the same rows are in the same folds, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from plainrisk._types import Counts, Index
from plainrisk.data.frame import Frame
from plainrisk.data.rows import StoredRows
from plainrisk.data.spool import Arrays, Kept
from plainrisk.data.texts import Reading, read_texts
from plainrisk.errors import DataError
from plainrisk.totals import Then, identity

__all__ = ["FoldRows", "Folds", "dealt", "mixed", "text_key"]


@dataclass(frozen=True)
class Folds:
    """The fold of every row, by a hash of some columns as a model reads them.

    Attributes
    ----------
    n_folds : how many there are
    numbers, texts : columns that are hashed as numbers, and as text
    readings : how texts of features are read
    seed : another deals the rows otherwise

    Examples
    --------
    >>> folds = Folds(5, ("age",), ("job",))
    >>> folds(Frame(("age", "job"), {"age": np.array([31, 31, 40]), "job": np.array(["a", "a", "b"])}, 3)).tolist()
    [1, 1, 2]
    """

    n_folds: int
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    readings: Mapping[str, Reading] | None = None
    seed: tuple[int, ...] = (0,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide."""
        return (*self.numbers, *self.texts)

    def __call__(self, frame: Frame) -> Index:
        """Return the fold of every row."""
        frame = read_texts(frame, self.readings or {})
        key = np.full(frame.n_rows, text_key(repr(self.seed)), np.uint64)
        for name in self.numbers:
            values = frame.numbers(name)
            key = mixed(key + np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64))
        for name in self.texts:
            labels = frame.labels(name)
            # Code -1, a missing value, is the last entry.
            key = mixed(key + np.array([*map(text_key, labels.labels), 0], np.uint64)[labels.codes])
        return (key % np.uint64(self.n_folds)).astype(np.intp)


def text_key(text: str) -> int:
    """Return a whole number of 64 bits for a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def mixed(key: Any) -> Any:
    """Spread every bit over all: the last steps of the generator SplitMix64."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@dataclass(frozen=True)
class _Count:
    """The number of rows of a batch in every fold."""

    folds: Folds

    def __call__(self, frame: Frame) -> Counts:
        return np.bincount(self.folds(frame), minlength=self.folds.n_folds)


@dataclass(frozen=True)
class _Side:
    """The rows of a batch inside or outside a fold; None if there are none."""

    folds: Folds
    fold: int
    inside: bool

    def __call__(self, frame: Frame) -> Frame | None:
        rows = np.flatnonzero((self.folds(frame) == self.fold) == self.inside)
        return replace(frame.rows(rows), first=frame.first) if len(rows) else None


@dataclass(frozen=True)
class FoldRows(StoredRows):
    """The rows of a fold, or all others: a filter of the rows it is part of.

    Attributes
    ----------
    source : all rows
    side : from a batch to its rows that are meant
    n_rows : how many they are
    """

    source: StoredRows
    side: _Side
    n_rows: int

    def __post_init__(self) -> None:
        for name in ("names", "weight", "group"):
            object.__setattr__(self, name, getattr(self.source, name))
        object.__setattr__(self, "depth", self.source.depth + 1)

    def count(self) -> int:
        """Return the number of rows."""
        return self.n_rows

    def first(self, columns: Sequence[str]) -> Frame | None:
        """Return some rows of all folds, which have the same types."""
        return self.source.first(columns)

    def totals(
        self,
        functions: Sequence[Callable[[Any], Any]],
        columns: Sequence[str],
        task: str,
        finish: Callable[[Any], Any] = identity,
        read: Callable[[Frame], Any] = identity,
    ) -> list[Any]:
        """Apply each function to these rows in one pass over all, add up the results and finish every sum."""
        return self.source.totals(functions, self._with_key(columns), task, finish, Then(self.side, read))

    def keep(
        self, function: Callable[[Frame], Arrays | None], columns: Sequence[str], task: str, groups: int = 0
    ) -> Kept:
        """Keep arrays of these rows where they are."""
        return self.source.keep(Then(self.side, function), self._with_key(columns), task, groups)

    def gathered(self, function: Callable[[Frame], Any], columns: Sequence[str], task: str) -> list[Any]:
        """Return a function's result for these rows of every batch."""
        return self.source.gathered(Then(self.side, function), self._with_key(columns), task)

    def free(self) -> None:
        """Release what was kept of the rows."""
        self.source.free()

    def _with_key(self, columns: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*columns, *self.side.folds.columns)))


def dealt(rows: StoredRows, folds: Folds) -> list[tuple[StoredRows, StoredRows]]:
    """Return all rows but those of a fold, and those, for every fold; one pass counts them."""
    folds = replace(folds, seed=(*folds.seed, rows.depth))  # a fold is dealt otherwise than the rows it is part of
    (counts,) = rows.totals([_Count(folds)], folds.columns, "dealing folds")
    if counts is None or not counts.all():
        raise DataError("Data: a fold of the cross validation has no rows. Take fewer folds.")
    total = int(counts.sum())
    return [
        (FoldRows(rows, _Side(folds, k, False), total - n), FoldRows(rows, _Side(folds, k, True), n))
        for k, n in enumerate(counts.tolist())
    ]
