"""Levels and scores of numbers, by one search.

Cuts in ascending order divide the number line into cells: the cell of a number is the number of cuts below it, and NaN
has its own cell after the last. A table with one entry per cell gives the result for a number: a level or a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._native.choice import compiled
from plainrisk._types import Array, Codes, Floats, Index

__all__ = ["Term", "add_scores", "code_numbers", "code_type", "is_readable"]


@dataclass(frozen=True, eq=False)
class Term:
    """Add the effect of one column to a score.

    Attributes
    ----------
    target : int, the number of the score
    cuts : (k,), ascending
    table : (k + 2,), what a number of each cell adds, NaN last
    """

    target: int
    cuts: Floats
    table: Floats


def code_type(n_codes: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that can hold this many codes, from 0."""
    return np.uint8 if n_codes <= 2**8 else np.uint16 if n_codes <= 2**16 else np.uint32


def code_numbers(x: Array, cuts: Floats, levels: Codes) -> Codes:
    """Return ``levels[cell]`` for the cell of every number.

    Parameters
    ----------
    x : (n,), numbers of any type and any stride
    cuts : (k,), ascending
    levels : (k + 2,) uint8 or uint16, the level of each cell, NaN last

    Examples
    --------
    >>> code_numbers(np.array([5, 6.5, np.nan]), np.array([5.0, 6.0]), np.array([0, 1, 2, 3], np.uint8))
    array([0, 2, 3], dtype=uint8)
    """
    if compiled is None:
        return levels[_cells(x, cuts)]
    out: Codes = np.empty(len(x), levels.dtype)
    numbers = x if is_readable(x) else x.astype(np.float64)
    compiled.code_numbers(numbers, cuts, levels.astype(np.float64), out)
    return out


def add_scores(scores: Sequence[Floats], columns: Sequence[Array], terms: Sequence[Term]) -> None:
    """Add every term to its score, in this order.

    Parameters
    ----------
    scores : (n,) float64 each, in one piece
    columns : one per term, (n,) numbers of a type that `is_readable` knows, of any stride
    terms : what the columns add

    Examples
    --------
    >>> score = np.array([1.0, 1.0])
    >>> add_scores([score], [np.array([3, 7])], [Term(0, np.array([5.0]), np.array([0.5, 2.0, np.nan]))])
    >>> score
    array([1.5, 3. ])
    """
    if compiled is not None:
        targets = np.array([term.target for term in terms], np.int64)
        cuts, tables = [term.cuts for term in terms], [term.table for term in terms]
        compiled.add_scores(len(scores[0]), scores, targets, columns, cuts, tables)
        return
    for column, term in zip(columns, terms, strict=True):
        score = scores[term.target]
        score += term.table[_cells(column, term.cuts)]


def is_readable(x: Array) -> bool:
    """Whether the compiled search supports the type of the numbers: integers, float32 and float64, as stored."""
    readable_type = x.dtype.kind in "iub" or (x.dtype.kind == "f" and x.itemsize in (4, 8))
    return readable_type and x.dtype.isnative and x.flags.aligned


def _cells(x: Array, cuts: Floats) -> Index:
    numbers = x.astype(np.float64, copy=False)
    cells = np.searchsorted(cuts, numbers, side="left")
    cells[np.isnan(numbers)] = len(cuts) + 1
    return cells
