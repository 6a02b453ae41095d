"""The rows of a bootstrap: the distinct rows of a fit as codes, and how often each is drawn.

How often a row is drawn has a Poisson distribution of mean 1. So k equal rows (the same codes, outcome and weight) are
one row here, drawn with a mean of k. A hash of the row, the seed and the number of the resample decides: the same rows
are drawn wherever they live, in whatever order and however often they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, factorial

import numpy as np

from plainrisk._native import look_up
from plainrisk._types import Array, Floats
from plainrisk.data.folds import mixed, text_key
from plainrisk.data.spool import Arrays, Kept
from plainrisk.fit.coding import Encoder, KeptRows
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import Link
from plainrisk.solve import Block, Rows
from plainrisk.totals import identity

__all__ = ["Cells", "Draw", "PartTables"]

# How many rows are searched for equal ones at a time: at some thirty bytes each, tens of megabytes.
_GROUP_ROWS = 1 << 20
# The chances that a row is drawn no more than 0, 1, 2, ... times.
_ONCE = np.cumsum([exp(-1.0) / factorial(k) for k in range(19)])


@dataclass(frozen=True)
class Draw:
    """The number of times every row is drawn in a resample.

    >>> keys, once = np.arange(4, dtype=np.uint64), np.ones(4, np.int64)
    >>> Draw(0, 1)(keys, once).tolist(), Draw(0, 2)(keys, 1_000 * once).tolist()
    ([3.0, 1.0, 0.0, 1.0], [983.0, 1046.0, 1005.0, 1003.0])
    """

    seed: int
    number: int

    def __call__(self, key: Array, count: Array) -> Floats:
        """Return the numbers, given the keys of rows and how often each occurs."""
        from scipy.special import pdtrik

        chance = (mixed(key + np.uint64(text_key(repr((self.seed, self.number))))) >> np.uint64(11)) * 2.0**-53
        times: Floats = np.searchsorted(_ONCE, chance).astype(np.float64)
        many = np.flatnonzero(count > 1)
        times[many] = np.ceil(pdtrik(chance[many], count[many]))
        return times


@dataclass(frozen=True)
class _Encode:
    """From rows to the codes of all parts, the outcome, the weight, and a key that equal rows share."""

    encoders: tuple[Encoder, ...]

    def __call__(self, batch: Training) -> Arrays:
        weight = np.ones(batch.n_rows) if batch.weight is None else batch.weight
        codes = [code for encoder in self.encoders for code in encoder.codes(batch)]
        key = np.zeros(batch.n_rows, np.uint64)
        for values in (*codes, batch.target, weight.view(np.uint64)):
            key = mixed(key + values.astype(np.uint64))
        return (*codes, batch.target, weight, key)


@dataclass(frozen=True)
class _DrawnBlock:
    """From the kept data of rows to those that are drawn, or to all of them, with some of their joint codes."""

    draw: Draw | None
    codes: slice

    def __call__(self, number: int, arrays: Arrays) -> Block:
        *codes, target, weight, key, count = arrays
        times = count if self.draw is None else self.draw(key, count)
        rows = np.flatnonzero(times)
        weight = times[rows] * weight[rows]
        return Block(tuple(code[rows] for code in codes[self.codes]), weight * target[rows], weight, None, number)


@dataclass(frozen=True)
class PartTables:
    """A part as it was fitted to codes.

    Attributes
    ----------
    codes : where its joint codes are among those of all parts
    with_cells : what adds the codes of the cells of its pairs
    tables : the score of every code
    """

    codes: slice
    with_cells: Callable[[Block], Block]
    intercept: float
    tables: Sequence[Floats]
    link: Link

    def risk(self, block: Block) -> Floats:
        """Return the risk that it sees in some rows."""
        own = self.with_cells(replace(block, codes=block.codes[self.codes]))
        return self.link.value(look_up(self.intercept, own.codes, self.tables, len(own)))


@dataclass(frozen=True)
class _RiskBlock:
    """From the kept data of rows to those that are drawn, with the risks of all parts as numeric columns."""

    drawn: _DrawnBlock
    parts: tuple[PartTables, ...]

    def __call__(self, number: int, arrays: Arrays) -> Block:
        block = self.drawn(number, arrays)
        return replace(block, codes=(), dense=np.column_stack([part.risk(block) for part in self.parts]))


@dataclass(frozen=True)
class Cells:
    """The distinct rows of a fit: where they are, or in memory if they are few.

    Two rows that differ have the same key with a chance of 2^-64, and would then count as equal.

    Attributes
    ----------
    kept : by group: the joint codes of all parts, the outcome, what a row weighs, its key, and how often it occurs
    codes : by part, where its joint codes are
    draw : which rows are drawn; None stands for each as often as it occurs
    """

    kept: Kept
    codes: tuple[slice, ...]
    draw: Draw | None = None

    @classmethod
    def of(cls, training: TrainingRows, encoders: Sequence[Encoder]) -> Cells:
        """Code the rows in one pass, and merge equal ones."""
        ends = np.cumsum([0, *(len(encoder.joints) for encoder in encoders)]).tolist()
        groups = -(-training.n_rows // _GROUP_ROWS)
        kept = training.keep(_Encode(tuple(encoders)), task="coding rows", groups=groups)
        return cls(kept, tuple(map(slice, ends[:-1], ends[1:])))

    def rows(self, part: int) -> Rows:
        """Return the rows as a part sees them."""
        return KeptRows(self.kept, _DrawnBlock(self.draw, self.codes[part])).mapped(identity)

    def risks(self, parts: Sequence[PartTables]) -> Rows:
        """Return the rows with the risks of all parts as numeric columns."""
        return KeptRows(self.kept, _RiskBlock(_DrawnBlock(self.draw, slice(None)), tuple(parts))).mapped(identity)
