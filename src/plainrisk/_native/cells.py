"""Codes of several features as one number: packs of a few levels, and cells of a whole row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = [
    "add_places",
    "cell_counts",
    "cell_sums",
    "list_cells",
    "occupied_cells",
    "pack_seen",
    "recode",
    "small_codes",
]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]
Number = TypeVar("Number", bound=np.integer[Any])


def add_places(codes: Sequence[Codes], places: Sequence[Codes]) -> Codes:
    """Return ``places[0][codes[0]] + places[1][codes[1]] + ...``, of the type of the places.

    >>> add_places([np.array([0, 1, 1], np.uint8)], [np.array([7, 9], np.uint16)])
    array([7, 9, 9], dtype=uint16)
    """
    out: Codes = np.zeros(len(codes[0]), places[0].dtype)
    if compiled is not None:
        compiled.pack([np.ascontiguousarray(c) for c in codes], places, out)
        return out
    for code, place in zip(codes, places, strict=True):
        out += place[code]
    return out


def pack_seen(
    codes: Sequence[Codes], seen: Sequence[npt.NDArray[np.bool_]], size: int
) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Return the codes of several features as one, and (size, features) the level of each that every code stands for.

    Parameters
    ----------
    codes : per feature, (n,), each below the number of its levels, which nothing checks again
    seen : per feature, (levels,): which levels occur; the others take no room
    size : the product of how many were seen, or 1 where none was

    Examples
    --------
    >>> codes, members = pack_seen([np.array([0, 2], np.uint8)], [np.array([True, False, True])], 2)
    >>> codes.tolist(), members.tolist()
    ([0, 1], [[0], [2]])
    """
    members = np.zeros((size, len(codes)), np.int64)
    kind = small_codes(size)
    if compiled is not None:
        packed: Codes = np.empty(len(codes[0]), kind)
        compiled.pack_seen(*([np.ascontiguousarray(c) for c in some] for some in (codes, seen)), members, packed)
        return packed, members
    places: list[Codes] = []
    stride = size
    for column, observed in zip(members.T, seen, strict=True):
        levels = np.flatnonzero(observed)
        place: Codes = np.zeros(len(observed), kind)
        if len(levels):
            stride //= len(levels)
            place[levels] = np.arange(0, stride * len(levels), stride)
            column.reshape(-1, len(levels), stride)[:] = levels[:, None]
        places.append(place)
    return add_places(codes, places), members


def recode(codes: npt.NDArray[np.signedinteger[Any]], table: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return ``table[codes]``, where code -1 stands for the last entry and no other is negative.

    >>> recode(np.array([1, -1, 0], np.int8), np.array([7, 8, 9], np.uint8))
    array([8, 9, 7], dtype=uint8)
    """
    out: npt.NDArray[Number] = np.empty(len(codes), table.dtype)
    if compiled is None or codes.itemsize > 1:
        return table.take(codes, out=out, mode="wrap")
    entries = np.full(256, table[-1])  # a byte of -1 is 255
    entries[: len(table) - 1] = table[:-1]
    compiled.pack([np.ascontiguousarray(codes).view(np.uint8)], [entries], out)
    return out


def cell_counts(codes: Sequence[Codes], sizes: Sequence[int], outcome: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Return how many rows of each outcome, 0 or 1, are in every possible cell: (cells, 2).

    Cells are numbered as ``np.ravel_multi_index`` does.

    >>> cell_counts([np.array([0, 1, 1], np.uint8)], [2], np.array([1, 0, 1], np.uint8))
    array([[0, 1],
           [1, 1]], dtype=uint32)
    """
    grid = math.prod(sizes)
    if compiled is None:
        key = 2 * _keys(codes, sizes) + outcome
        return np.bincount(key, minlength=2 * grid).astype(np.uint32).reshape(grid, 2)
    counts = np.zeros((grid, 2), np.uint32)
    packs = [np.ascontiguousarray(c) for c in codes]
    compiled.cell_counts(packs, _strides(sizes), np.ascontiguousarray(outcome), counts)
    return counts


def list_cells(counts: npt.NDArray[np.uint32], sizes: Sequence[int]) -> tuple[tuple[Codes, ...], Floats, Floats]:
    """Return of every cell that has rows the code of each pack, how many rows it has, and how many of outcome 1.

    >>> list_cells(np.array([[0, 1], [0, 0], [2, 3]], np.uint32), [3])
    ((array([0, 2], dtype=uint8),), array([1., 5.]), array([1., 3.]))
    """
    both = counts.view(np.uint64).ravel()
    if compiled is None:
        used = np.flatnonzero(both)
        good, bad = both[used].view(np.uint32).reshape(-1, 2).T.astype(np.float64)
        at = zip(np.unravel_index(used, tuple(sizes)), sizes, strict=True)
        return tuple(column.astype(small_codes(size)) for column, size in at), good + bad, bad
    n_cells = int(np.count_nonzero(both))
    codes = tuple(np.empty(n_cells, small_codes(size)) for size in sizes)
    total, hits = np.empty(n_cells), np.empty(n_cells)
    compiled.list_cells(counts, np.array(sizes, np.int64), codes, total, hits)
    return codes, total, hits


def small_codes(size: int) -> Any:
    """Return the smallest type of codes from 0 to ``size - 1``."""
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32


def occupied_cells(codes: Sequence[Codes], sizes: Sequence[int]) -> tuple[npt.NDArray[np.int64], Codes]:
    """Return the cells that have rows, ascending, and of every row which of them is its own.

    Cells are numbered as ``np.ravel_multi_index`` does; there must be at most 2^32 - 64.

    >>> occupied_cells([np.array([0, 4, 0], np.uint8), np.array([1, 2, 1], np.uint8)], [5, 3])
    (array([ 1, 14]), array([0, 1, 0], dtype=uint8))
    """
    if compiled is None:
        found, cell = np.unique(_keys(codes, sizes), return_inverse=True)
        return found.astype(np.int64), cell.astype(small_codes(len(found)))
    packs, strides = [np.ascontiguousarray(c) for c in codes], _strides(sizes)
    bits = np.zeros(-(-math.prod(sizes) // 64), np.uint64)
    count = compiled.mark_cells(packs, strides, bits)
    used, number = np.empty(count, np.int64), np.empty(len(packs[0]), small_codes(count))
    compiled.number_cells(packs, strides, bits, used, number)
    return used, number


def cell_sums(
    codes: Sequence[Codes], sizes: Sequence[int], positive: npt.NDArray[Any], weight: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return total and positive weight of every possible cell; those of blocks of rows add up.

    Cells are numbered as ``np.ravel_multi_index`` does.

    >>> cell_sums([np.array([0, 1, 1], np.uint8)], [2], np.array([1, 0, 1], np.uint8))
    (array([1., 2.]), array([1., 1.]))
    """
    grid = int(np.prod(sizes, dtype=np.int64))
    outcome = positive if positive.dtype == np.uint8 else positive.astype(np.float64, copy=False)
    if compiled is None:
        key = _keys(codes, sizes)
        total = np.bincount(key, weight, minlength=grid).astype(np.float64)
        return total, np.bincount(key, outcome.astype(np.float64), minlength=grid).astype(np.float64)
    total, hits = np.zeros(grid), np.zeros(grid)
    mass = None if weight is None else np.ascontiguousarray(weight, np.float64)
    packs = [np.ascontiguousarray(c) for c in codes]
    compiled.cell_sums(packs, _strides(sizes), np.ascontiguousarray(outcome), mass, total, hits)
    return total, hits


def _strides(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return how far apart the cells of neighbouring codes are, for every pack."""
    return np.cumprod([1, *sizes[:0:-1]], dtype=np.int64)[::-1].copy()


def _keys(codes: Sequence[Codes], sizes: Sequence[int]) -> npt.NDArray[np.uint32]:
    key = codes[0].astype(np.uint32)
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        key *= np.uint32(size)
        key += column
    return key
