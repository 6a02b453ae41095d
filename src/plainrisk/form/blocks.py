"""Rows in blocks that fit the processor's cache, on all its cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.threads import n_threads, spread

__all__ = ["Evaluate", "Room", "by_blocks"]

Floats = npt.NDArray[np.float64]

# Columns are read from a frame up to so many blocks at a time: asking a library for rows has its price, however few.
_BLOCKS_AT_A_TIME = 8

# A matrix that is stored row by row is turned a tile at a time, and in all only so much of it that it stays near.
_TILE_CELLS = 1 << 14
_MATRIX_CELLS = 1 << 22
_FEWEST_ROWS = 1 << 10

# Threads hand over the interpreter between two sums, which takes as long as a sum over few rows.
_THREAD_ROWS = 1 << 17


class Room:
    """Arrays to work in, kept from block to block: asking for fresh memory would take longer than the sums.

    Attributes
    ----------
    numbers : for a column that must be copied before it can be read quickly
    score : for a part's score
    index, values : for looking up the scores of a column's levels
    columns : for the columns of a matrix that is stored row by row, if there are any to be read
    scores : for the scores of all parts at once, if they are worked out by the compiled loop, else empty
    """

    def __init__(self, rows: int, n_columns: int = 0, n_scores: int = 0) -> None:
        self.numbers = np.empty(rows)
        self.score = np.empty(rows)
        self.index = np.empty(rows, np.intp)
        self.values = np.empty(rows)
        self.columns = np.empty((n_columns, rows))
        self.scores = np.empty((n_scores, rows))

    def by_columns(self, block: Frame) -> Frame:
        """Return the same rows with each column in one piece."""
        matrix = block.matrix
        if matrix is None or not len(self.columns):
            return block
        out = self.columns[:, : len(matrix)]
        rows = _TILE_CELLS // len(out) + 1
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(matrix), rows):
                tile = matrix[start : start + rows]
                # Reading the tile in its own order first brings it to the cache quicker than reading by column.
                np.add.reduce(tile, axis=None)
                out[:, start : start + rows] = tile.T
        return Frame(block.names, dict(zip(block.names, out, strict=True)), block.n_rows, first=block.first)

    def look_up(self, table: Floats, codes: npt.NDArray[np.unsignedinteger[Any]]) -> Floats:
        """Return ``table[codes]``, in an array that the next call uses again."""
        index, values = self.index[: len(codes)], self.values[: len(codes)]
        np.copyto(index, codes)
        # Codes are levels, so nothing is clipped; "raise" would copy the values once more.
        return table.take(index, out=values, mode="clip")


# Fills its last argument, a row per row; does the same to a row in any company.
Evaluate = Callable[[Frame, Room, Floats], None]


def by_blocks(
    frame: Frame,
    wanted: Mapping[str, tuple[str, ...] | None],
    evaluate: Evaluate,
    size: int,
    width: tuple[int, ...],
    n_scores: int = 0,
) -> Floats:
    """Evaluate the rows block by block.

    Parameters
    ----------
    wanted : the columns to read, with the known labels of those that are read as categories
    evaluate : fills in what is found for the rows of a block
    size : rows in a block
    width : shape of what is found for one row
    n_scores : how many scores the compiled loop works out at once; 0 if it is not used

    Notes
    -----
    Every row is worked out by itself, so neither the blocks nor the threads can change a result.
    """
    out = np.empty((frame.n_rows, *width))
    turned = frame.matrix is not None and 4 * len(wanted) >= len(frame.names) and not n_scores
    n_columns = len(frame.names) if turned else 0
    threads = n_threads()
    if threads > 1:
        size = max(size, min(_THREAD_ROWS, frame.n_rows // (4 * threads)))
    if n_columns:
        size = min(size, max(_FEWEST_ROWS, _MATRIX_CELLS // n_columns))
    n_blocks = -(-frame.n_rows // size)
    piece = size * max(1, min(_BLOCKS_AT_A_TIME, n_blocks // (2 * threads)))

    def work(starts: Iterator[int]) -> None:
        room = Room(min(size, frame.n_rows), n_columns, n_scores)
        for start in starts:
            rows = frame.take(start, start + piece).prepared(wanted)
            for a in range(0, rows.n_rows, size):
                block = room.by_columns(rows.take(a, a + size))
                evaluate(block, room, out[start + a : start + a + block.n_rows])

    spread(work, range(0, frame.n_rows, piece))
    return out
