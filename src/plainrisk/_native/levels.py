"""How the codes of packs stand for levels, and how levels become columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = ["LevelMap"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

_MANY_ENTRIES = 1 << 16  # of all matrices
_NOTHING = np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0)  # starts, columns and weights without features


@dataclass(frozen=True)
class LevelMap:
    """How the codes of packs stand for the levels of features, and how levels become columns.

    Attributes
    ----------
    features : matrices (levels, columns), a row for what each level adds to the feature's columns
    members : per pack, (size, features in it): the level of each feature that a code stands for. Packs hold
        neighbouring features, in their order

    Examples
    --------
    >>> map = LevelMap((np.eye(2), np.array([[0.0], [1.0]])), (np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),))
    >>> map.matrices[0]
    array([[1., 0., 0.],
           [1., 0., 1.],
           [0., 1., 0.],
           [0., 1., 1.]])
    """

    features: tuple[Floats, ...]
    members: tuple[npt.NDArray[np.integer[Any]], ...]

    @cached_property
    def n_columns(self) -> int:
        """The number of columns."""
        return sum(int(m.shape[1]) for m in self.features)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many codes every pack has."""
        return tuple(map(len, self.members))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many columns every pack has."""
        left = iter(self.features)
        return tuple(sum(int(next(left).shape[1]) for _ in range(pack.shape[1])) for pack in self.members)

    @cached_property
    def matrices(self) -> tuple[Floats, ...]:
        """Matrices (size of a pack, number of its columns)."""
        left = iter(self.features)
        return tuple(np.concatenate([next(left)[level] for level in pack.T], axis=1) for pack in self.members)

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """Where the columns of every pack are."""
        ends = list(itertools.accumulate(self.widths, initial=0))
        return tuple(map(slice, ends[:-1], ends[1:]))

    def tables(self, coefficients: Floats) -> list[Floats]:
        """Return the score of every code of every pack, given the columns' coefficients."""
        return self.scores(coefficients)[1]

    def scores(self, coefficients: Floats) -> tuple[list[Floats], list[Floats]]:
        """Return the scores of every feature's levels and of every pack's codes, each added up from left to right.

        A linear-algebra library may take another order for some levels. Two with a step of 0 between them then differ
        in the last digit, and the scores are no longer exactly monotone.
        """
        ends = list(itertools.accumulate(map(len, self.features), initial=0))
        by_level, by_code = np.zeros(ends[-1]), np.zeros(sum(self.sizes))
        if compiled is not None:
            compiled.code_scores(np.ascontiguousarray(coefficients, np.float64), self.compiled, by_level, by_code)
        levels = [by_level[a:b] for a, b in itertools.pairwise(ends)]
        codes = self.split(by_code)
        if compiled is None:
            each = iter(coefficients.tolist())
            for scores, matrix in zip(levels, self.features, strict=True):
                for column in matrix.T:
                    scores += column * next(each)
            left = iter(levels)
            for table, pack in zip(codes, self.members, strict=True):
                for level in pack.T:
                    table += next(left)[level]
        return levels, codes

    def by_column(self, by_code: Sequence[Floats]) -> Floats:
        """Return sums for every column, given the sums of every code of every pack."""
        return np.concatenate([np.zeros(0), *(s @ m for s, m in zip(by_code, self.matrices, strict=True))])

    def split(self, by_code: Floats) -> list[Floats]:
        """Return what is there for the codes of all packs, pack by pack."""
        ends = list(itertools.accumulate(self.sizes, initial=0))
        return [by_code[a:b] for a, b in itertools.pairwise(ends)]

    @cached_property
    def compiled(self) -> tuple[Sequence[Integers], Integers, Integers, Floats]:
        """What the compiled loops read: the members as places among all levels, and the matrices' entries by level."""
        if not self.features:
            return [], *_NOTHING
        if compiled is None:
            return self._map
        features = [np.ascontiguousarray(matrix, np.float64) for matrix in self.features]
        given = [np.ascontiguousarray(pack, np.int64) for pack in self.members]
        most = sum(matrix.size for matrix in features)
        if most > _MANY_ENTRIES:  # most of them are 0, and would take memory
            most = sum(map(np.count_nonzero, features))
        members = [np.empty(pack.shape, np.int32) for pack in given]
        starts = np.empty(1 + sum(map(len, features)), np.int32)
        columns, weights = np.empty(most, np.int32), np.empty(most)
        count = compiled.level_map(features, given, members, starts, columns, weights)
        return members, starts, columns[:count], weights[:count]

    @property
    def _map(self) -> tuple[Sequence[Integers], Integers, Integers, Floats]:
        """The same without the compiled loops."""
        firsts = list(itertools.accumulate(map(len, self.features), initial=0))
        left = iter(firsts)
        members = [(pack + [next(left) for _ in range(pack.shape[1])]).astype(np.int32) for pack in self.members]
        each = [matrix.nonzero() for matrix in self.features]
        first_columns = itertools.accumulate((m.shape[1] for m in self.features), initial=0)
        level = np.concatenate([at + first for (at, _), first in zip(each, firsts, strict=False)])
        column = np.concatenate([at + first for (_, at), first in zip(each, first_columns, strict=False)])
        starts = np.searchsorted(level, np.arange(firsts[-1] + 1))
        weights = np.concatenate([matrix[at] for matrix, at in zip(self.features, each, strict=True)])
        return members, starts.astype(np.int32), column.astype(np.int32), weights
