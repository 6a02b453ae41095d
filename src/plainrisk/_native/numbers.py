"""Numeric columns of rows, of which some hold few different numbers: then codes of them, which take little memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Coded", "Numbers"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]

_NOTHING = np.empty(0)


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of few different numbers: that of row i is ``values[codes[i]]``.

    Attributes
    ----------
    codes : (n,), each below the number of values, which nothing checks again
    values : (k,)
    """

    codes: Codes
    values: Floats

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False)
class Numbers:
    """A matrix (n, q) that is kept column by column; ``np.asarray`` writes it out.

    >>> some = Numbers((Coded(np.array([1, 0, 1], np.uint8), np.array([0.25, 0.5])), np.array([1.0, 2.0, 3.0])))
    >>> np.asarray(some[1:])
    array([[0.25, 2.  ],
           [0.5 , 3.  ]])
    """

    columns: tuple[Floats | Coded, ...]

    @classmethod
    def of(cls, matrix: Floats | Numbers | None) -> Numbers:
        """Return the columns of a matrix; without one, none."""
        if isinstance(matrix, Numbers):
            return matrix
        return cls(() if matrix is None else tuple(np.asarray(matrix, np.float64).T))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.columns[0]) if self.columns else 0, len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | npt.NDArray[np.intp]) -> Numbers:
        return self.each(lambda values: values[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        if copy is False:
            raise ValueError("Columns that lie apart become a matrix by copying them only.")
        out = np.empty(self.shape[::-1])
        for row, column in zip(out, self.columns, strict=True):
            row[:] = column.values[column.codes] if isinstance(column, Coded) else column
        return np.asarray(out.T, dtype)

    def each(self, choose: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Numbers:
        """Return some of the rows: those that `choose` takes of every column."""
        return Numbers(
            tuple(
                Coded(choose(column.codes), column.values) if isinstance(column, Coded) else choose(column)
                for column in self.columns
            )
        )

    @cached_property
    def compiled(self) -> tuple[list[npt.NDArray[Any]], list[Floats]]:
        """What the compiled loops read: the columns, and of each the table of its codes, empty for numbers."""
        columns = [
            np.ascontiguousarray(c.codes) if isinstance(c, Coded) else np.asarray(c, np.float64) for c in self.columns
        ]
        coded = [c.values if isinstance(c, Coded) else _NOTHING for c in self.columns]
        return columns, [np.ascontiguousarray(values, np.float64) for values in coded]
