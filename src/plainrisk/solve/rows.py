"""Rows as a solver sees them: joint codes, outcomes, weights, numeric columns.

The score of row i is

    intercept + sum over joint codes k of (matrices[k] @ beta_k)[codes[k][i]] + dense[i] @ beta_dense

Fitting needs only sums over the rows, so rows have one protocol, wherever they are: apply a small function to each
block, and add up the results (`Rows.sum`). A function may be sent to another machine; see `plainrisk.totals`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVarTuple

import numpy as np

from plainrisk._native import code_type, level_sums, pair_sums
from plainrisk._types import Array, Codes, Floats, Index
from plainrisk.threads import PIECE_ROWS, parallel_map
from plainrisk.totals import Then, once, total_of

__all__ = ["Block", "Layout", "MappedRows", "Rows"]

Ts = TypeVarTuple("Ts")


@dataclass(frozen=True)
class Block:
    """Some rows.

    Attributes
    ----------
    codes : arrays (n,) of small integers, one per joint code
    positive : (n,) weight of the positive outcome; bytes of 0 and 1 where rows have no weights
    weight : (n,) total weight, or None where every row weighs 1
    dense : (n, q) numeric columns, or None
    number : which block of all rows this is, wherever they are gone through from
    """

    codes: tuple[Codes, ...]
    positive: Array
    weight: Floats | None = None
    dense: Floats | None = None
    number: int = 0

    def __len__(self) -> int:
        return len(self.positive)

    def take(self, rows: slice | Index) -> Block:
        """Return some of the rows."""
        return Block(
            tuple(code[rows] for code in self.codes),
            self.positive[rows],
            None if self.weight is None else self.weight[rows],
            None if self.dense is None else self.dense[rows],
            self.number,
        )

    def pieces(self) -> list[Block]:
        """Cut the rows into blocks of at most `PIECE_ROWS`, without copying them."""
        if len(self) <= PIECE_ROWS:
            return [self]
        return [self.take(slice(start, start + PIECE_ROWS)) for start in range(0, len(self), PIECE_ROWS)]


class Rows:
    """Rows in memory and the requests to them; subclasses for rows elsewhere override `_total` and `mapped`.

    Parameters
    ----------
    blocks : gone through in order
    """

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        self.blocks = blocks

    def sum(self, function: Callable[[Block], tuple[*Ts]], *, whole_blocks: bool = False) -> tuple[*Ts]:
        """Apply a function to all rows and add up the tuples it returns; see `plainrisk.totals`.

        It is given a piece at a time, on all cores; or whole blocks, if it shares out its work itself. Neither the
        pieces nor the order of additions depend on the number of threads.
        """
        total = self._total(function if whole_blocks else _InPieces(function))
        assert total is not None, "there is at least one block"
        return total  # type: ignore[no-any-return]

    def _total(self, function: Callable[[Block], Any]) -> Any:
        """Apply a function to every block and add up the results."""
        return total_of(map(function, self.blocks))

    def mapped(self, change: Callable[[Block], Block]) -> Rows:
        """Return the same rows with other codes."""
        return Rows([change(block) for block in self.blocks])

    def __iter__(self) -> Iterator[Block]:
        """Go through all blocks, brought here: for few rows."""
        return iter(self.sum(_collect, whole_blocks=True)[0])

    @once
    def totals(self) -> tuple[int, float, float]:
        """Number of rows, total weight, weight of the positive outcome."""
        return self.sum(_totals)


class MappedRows(Rows):
    """Rows that are changed each time they are read."""

    def __init__(self, rows: Rows, change: Callable[[Block], Block]) -> None:
        self.rows, self.change = rows, change

    def _total(self, function: Callable[[Block], Any]) -> Any:
        return self.rows._total(Then(self.change, function))

    def mapped(self, change: Callable[[Block], Block]) -> Rows:
        """Return the same rows with other codes."""
        return MappedRows(self.rows, Then(self.change, change))


@dataclass(frozen=True)
class _InPieces:
    """A function of pieces of a block, on all cores."""

    function: Callable[[Block], Any]

    def __call__(self, block: Block) -> Any:
        return total_of(parallel_map(self.function, block.pieces(), len(block)))


def _collect(block: Block) -> tuple[tuple[Block, ...]]:
    return ((block,),)


def _totals(block: Block) -> tuple[int, float, float]:
    weight = len(block) if block.weight is None else block.weight.sum()
    return len(block), float(weight), float(block.positive.sum(dtype=np.float64))


@dataclass(frozen=True)
class _Joined:
    """Several joint codes as the digits of one number.

    Attributes
    ----------
    which : the positions of the joint codes
    numbers : of each, the number of every code; codes with the same columns share one
    columns : (combinations of these numbers, columns)
    """

    which: tuple[int, ...]
    numbers: tuple[Index, ...]
    columns: Floats

    def with_next(self, other: _Joined) -> _Joined:
        """Return both combined; the second has the last digit."""
        n, m = len(self.columns), len(other.columns)
        columns = np.hstack([np.repeat(self.columns, m, axis=0), np.tile(other.columns, (n, 1))])
        numbers = (*(m * number for number in self.numbers), *other.numbers)
        return _Joined(self.which + other.which, numbers, columns)

    def codes(self, block: Block) -> Codes:
        """Return the numbers of some rows."""
        kind = code_type(len(self.columns))
        first, *others = (
            number.astype(kind)[block.codes[k]] for k, number in zip(self.which, self.numbers, strict=True)
        )
        for other in others:
            first += other
        return first


def _rows_as_bytes(matrix: Floats) -> Array:
    """Return the rows of a matrix, each as one item, which are sorted and compared in one go."""
    rows = np.ascontiguousarray(matrix + 0.0)  # no -0
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel() if rows.size else rows.sum(axis=1)


@dataclass(frozen=True)
class Layout:
    """How the p coefficients become row scores.

    Attributes
    ----------
    matrices : per joint code, (codes, columns) of 0 and 1: the score of a code is its row times the coefficients
    n_dense : number of numeric columns; their coefficients come last
    """

    matrices: tuple[Floats, ...]
    n_dense: int = 0

    @once
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of every joint code."""
        return tuple(len(matrix) for matrix in self.matrices)

    @once
    def columns(self) -> tuple[slice, ...]:
        """The positions of the coefficients of every joint code."""
        ends = np.cumsum([0, *(matrix.shape[1] for matrix in self.matrices)]).tolist()
        return tuple(map(slice, ends[:-1], ends[1:]))

    @once
    def n_coefficients(self) -> int:
        """The number of coefficients, the intercept not counted."""
        return self.n_dense + sum(int(matrix.shape[1]) for matrix in self.matrices)

    @once
    def _distinct(self) -> list[_Joined]:
        """The joint codes; levels that share a bin have the same columns, and are counted together."""
        joints = []
        for k, matrix in enumerate(self.matrices):
            _, first, number = np.unique(_rows_as_bytes(matrix), return_index=True, return_inverse=True)
            joints.append(_Joined((k,), (number,), matrix[first]))
        return joints

    def _joined(self, limit: int) -> list[_Joined]:
        """Return the joint codes, neighbors as one while there are at most so many combinations of their columns.

        There are fewer pairs of them, so a Hessian takes fewer passes over the rows.
        """
        joints: list[_Joined] = []
        for joint in self._distinct:
            if joints and len(joints[-1].columns) * len(joint.columns) <= limit:
                joints[-1] = joints[-1].with_next(joint)
            else:
                joints.append(joint)
        return joints

    def tables(self, beta: Floats) -> list[Floats]:
        """Return the score of every code of every joint code."""
        return [matrix @ beta[where] for matrix, where in zip(self.matrices, self.columns, strict=True)]

    def dense_part(self, beta: Floats) -> Floats:
        """Return the coefficients of the numeric columns."""
        return beta[self.n_coefficients - self.n_dense :]

    def gather(self, by_code: Sequence[Floats], by_dense: Floats | None) -> Floats:
        """Return sums by coefficient, given sums by the codes of every joint code and by numeric column."""
        by_column = [sums @ matrix for sums, matrix in zip(by_code, self.matrices, strict=True)]
        return np.concatenate([np.zeros(0), *by_column, *([] if by_dense is None else [by_dense])])

    def matrix(self, block: Block) -> Floats:
        """Return the columns of some rows, (rows, 1 + p); column 0 is 1."""
        X = np.ones((len(block), 1 + self.n_coefficients))
        for code, table, where in zip(block.codes, self.matrices, self.columns, strict=True):
            X[:, 1:][:, where] = table[code]
        if block.dense is not None and self.n_dense:
            X[:, -self.n_dense :] = block.dense
        return X

    def gram(self, values: Floats | None, block: Block) -> Floats:
        """Return the sums of ``values[i] * x_j[i] * x_k[i]`` over the rows, for all columns j and k; column 0 is 1.

        Without values every row counts 1.
        """
        total = float(len(block)) if values is None else float(values.sum())
        joined = self._joined(int(np.clip(len(block) ** 0.5, 16, 2**8)))
        codes = [joint.codes(block) for joint in joined]
        columns = [joint.columns for joint in joined]
        by_code = level_sums(values, codes, [len(rows) for rows in columns])
        by_dense = None
        if block.dense is not None:
            by_dense = block.dense.sum(axis=0) if values is None else values @ block.dense
        G = np.zeros((1 + self.n_coefficients, 1 + self.n_coefficients))
        G[0, 0] = total
        by_column = [sums @ rows for sums, rows in zip(by_code, columns, strict=True)]
        slopes = [] if by_dense is None else [by_dense]
        G[0, 1:] = G[1:, 0] = np.concatenate([np.zeros(0), *by_column, *slopes])
        self._add_pairs(values, codes, by_code, columns, G[1:, 1:])
        if block.dense is not None and self.n_dense:
            self._add_dense(values, block, block.dense, G[1:, 1:])
        return G

    def _add_pairs(
        self,
        values: Floats | None,
        codes: Sequence[Codes],
        by_code: Sequence[Floats],
        columns: Sequence[Floats],
        out: Floats,
    ) -> None:
        """Fill in the sums for pairs of columns of joint codes; a task is one joint code with those after it."""
        ends = np.cumsum([0, *(rows.shape[1] for rows in columns)]).tolist()
        places = list(map(slice, ends[:-1], ends[1:]))

        def add(k: int) -> None:
            matrix, where = columns[k], places[k]
            # A code is never together with another of the same joint code.
            out[where, where] = matrix.T @ (by_code[k][:, None] * matrix)
            others = range(k + 1, len(columns))
            sizes = [len(columns[other]) for other in others]
            tables = pair_sums(values, codes[k], [codes[other] for other in others], len(matrix), sizes)
            for other, table in zip(others, tables, strict=True):
                both = matrix.T @ table @ columns[other]
                out[where, places[other]] = both
                out[places[other], where] = both.T

        n = len(columns)
        for _ in parallel_map(add, range(n), n * (len(codes[0]) if n else 0)):  # each fills in rows of its own
            pass

    def _add_dense(self, values: Floats | None, block: Block, dense: Floats, out: Floats) -> None:
        """Fill in the sums for pairs of which one or both are numeric columns."""
        first = self.n_coefficients - self.n_dense
        weighted = dense if values is None else values[:, None] * dense
        out[first:, first:] = dense.T @ weighted
        for k, (matrix, where) in enumerate(zip(self.matrices, self.columns, strict=True)):
            sums = [level_sums(np.ascontiguousarray(x), [block.codes[k]], [self.sizes[k]])[0] for x in weighted.T]
            out[where, first:] = matrix.T @ np.stack(sums, axis=1)
            out[first:, where] = out[where, first:].T
