"""Columns of numbers, read once: into levels, or into float32 from which bins are found and levels then made."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = [
    "HALFWAY",
    "HAS_INFINITY",
    "TOO_LARGE",
    "code_singles",
    "count_codes",
    "read_levels",
    "rule_of",
    "steps_of",
]

Codes = npt.NDArray[np.unsignedinteger[Any]]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Outcome = npt.NDArray[np.uint8]
Singles = npt.NDArray[np.float32]

# What a column may hold that needs care: infinity; a measurement beyond float32; a number halfway between two float32.
HAS_INFINITY, TOO_LARGE, HALFWAY = 1, 2, 4

_COMPARISONS: tuple[np.ufunc | None, ...] = (np.greater, np.less, np.equal, np.not_equal, None)
_OUTSIDE, _PAYLOAD = np.uint32(0x7FC00000), np.uint32(0x003FFFFF)
_FEW_EDGES = 12  # up to here, adding up comparisons beats a binary search per value
_MANY_ROWS = 2**31 - 1  # more cannot be counted in the compiled loops
_BLOCK = 1 << 14  # rows read at once: the temporaries stay in the processor's cache


def rule_of(steps: Sequence[tuple[np.ufunc | None, float, int]]) -> Floats:
    """Write steps as numbers: a comparison, what to compare with, and what a hit adds to the code.

    Not equal is asked of a number and itself: only what is not a number differs. No comparison is a hit always.
    """
    rows = [(_COMPARISONS.index(compare), value, by) for compare, value, by in steps]
    return np.array(rows, np.float64).reshape(-1, 3)


def steps_of(levels: Any) -> list[tuple[np.ufunc | None, float, int]]:
    """Return the comparisons that lead from 0 to the level of a number, NaN last."""
    cells = levels.cells
    rises = zip(cells.cuts.tolist(), np.diff(cells.levels[:-1].astype(int)).tolist(), strict=True)
    start = int(cells.levels[0])
    steps: list[tuple[np.ufunc | None, float, int]] = [(None, 0.0, start)] if start else []
    steps += [(np.greater, cut, by) for cut, by in rises if by]
    return [*steps, (np.not_equal, np.nan, levels.missing - start)]


def read_levels(
    columns: Sequence[npt.NDArray[Any]], rules: Sequence[Floats], outs: Sequence[npt.NDArray[Any]]
) -> list[int]:
    """Write the code of every number into `outs`, one array per column, and return flags of what needs care.

    An array of float32 gets the numbers themselves where the code is 0, and else NaN with the code in its bits.

    Parameters
    ----------
    columns : numbers, (n,) each, with any stride
    rules : as from `rule_of`
    outs : uint8, uint16 or float32, (n,) each

    Examples
    --------
    >>> codes, singles = np.empty(3, np.uint8), np.empty(3, np.float32)
    >>> rule = rule_of([(np.less, 0.0, 1), (np.not_equal, np.nan, 2)])
    >>> column = np.array([1.5, -1.0, np.nan])
    >>> read_levels([column, column], [rule, rule], [codes, singles])
    [0, 0]
    >>> codes, singles
    (array([0, 1, 2], dtype=uint8), array([1.5, nan, nan], dtype=float32))
    """
    flags = np.zeros(len(columns), np.uint8)
    if compiled is not None:
        compiled.read_levels(columns, rules, outs, flags)
        return flags.tolist()
    for k, (column, rule, out) in enumerate(zip(columns, rules, outs, strict=True)):
        for start in range(0, len(column), _BLOCK):
            rows = slice(start, start + _BLOCK)
            flags[k] |= _read(column[rows].astype(np.float64), rule, out[rows])
    return flags.tolist()


def _read(x: Floats, rule: Floats, out: npt.NDArray[Any]) -> int:
    code = np.zeros(len(x), np.uint16 if out.dtype == np.float32 else out.dtype)
    for comparison, value, by in rule:
        compare = _COMPARISONS[int(comparison)]
        step = code.dtype.type(int(by) % (1 << 8 * code.itemsize))  # codes wrap round
        hit = True if compare is None else compare(x, x if compare is np.not_equal else value)
        code += np.multiply(hit, step)
    with np.errstate(over="ignore", invalid="ignore"):
        single = x.astype(np.float32)
        all_finite = np.isfinite(np.add.reduce(single))
    if out.dtype == np.float32:
        out[:] = single
        outside = np.flatnonzero(code)
        out.view(np.uint32)[outside] = _OUTSIDE | code[outside]
    else:
        out[:] = code
    flags = HALFWAY * int((x.view(np.int64) & 0x1FFFFFFF == 0x10000000).any())
    if all_finite:  # so is every one of them
        return flags
    large = np.isinf(single) & (code == 0)
    return flags | HAS_INFINITY * int(np.isinf(x).any()) | TOO_LARGE * int(large.any())


def code_singles(
    singles: Sequence[Singles],
    edges: Sequence[Sequence[float]],
    n_levels: Sequence[int],
    outcome: Outcome,
    codes: Sequence[Codes],
) -> Counts:
    """Write the levels of all rows of every column into `codes`, and return how many rows have each level and outcome.

    A number is in bin ``count(edges < x)``. NaN has a level after the bins, as `read_levels` wrote it.

    Parameters
    ----------
    singles : per column, (n,)
    edges : per column, ascending
    n_levels : per column
    outcome : (n,) 0/1
    codes : per column, (n,) uint8 or uint16

    Returns
    -------
    counts : (levels of all columns, 2), one column after the other

    Examples
    --------
    >>> codes = np.empty(3, np.uint8)
    >>> code_singles([np.array([1, 2, 3], np.float32)], [[2.5]], [2], np.array([0, 1, 1], np.uint8), [codes])
    array([[1, 1],
           [0, 1]])
    >>> codes
    array([0, 0, 1], dtype=uint8)
    """
    counts = np.zeros((sum(n_levels), 2), np.int64)
    below = _cut(_single_edges(np.concatenate([np.zeros(0), *edges])), map(len, edges))
    if compiled is not None and len(outcome) < _MANY_ROWS:
        compiled.code_singles(singles, below, np.ascontiguousarray(outcome), codes, _cut(counts, n_levels))
        return counts
    for x, edge, code, count in zip(singles, below, codes, _cut(counts, n_levels), strict=True):
        _code(x, edge, len(count), code)
        count[:] = count_codes(code, len(count), outcome)
    return counts


def _single_edges(edges: Floats) -> Singles:
    """Return the largest float32 up to each edge: a float32 is above the one exactly if it is above the other."""
    near = edges.astype(np.float32)
    return np.where(near > edges, np.nextafter(near, np.float32(-np.inf)), near)


def _cut(array: npt.NDArray[Any], lengths: Iterable[int]) -> list[npt.NDArray[Any]]:
    """Return neighbouring pieces of an array."""
    ends = itertools.accumulate(lengths, initial=0)
    return [array[start:end] for start, end in itertools.pairwise(ends)]


def _code(x: Singles, edges: Singles, n_levels: int, codes: Codes) -> None:
    if len(edges) <= _FEW_EDGES:
        codes[:] = 0
        for edge in edges:
            codes += x > edge
    else:
        codes[:] = np.searchsorted(edges, x)
    outside = np.flatnonzero(np.isnan(x))
    level = (x.view(np.uint32)[outside] & _PAYLOAD).astype(np.int64) + len(edges)
    codes[outside] = np.minimum(level, n_levels - 1)


def count_codes(codes: Codes, n_levels: int, outcome: Outcome) -> Counts:
    """Return how many rows have each level and outcome.

    >>> count_codes(np.array([0, 2, 2], np.uint8), 3, np.array([1, 0, 1], np.uint8))
    array([[0, 1],
           [0, 0],
           [1, 1]])
    """
    counts = np.zeros((n_levels, 2), np.int64)
    if compiled is not None and codes.itemsize <= 2 and len(codes) < _MANY_ROWS:
        compiled.count_codes(np.ascontiguousarray(codes), np.ascontiguousarray(outcome), counts)
        return counts
    for start in range(0, len(codes), _BLOCK):
        rows = slice(start, start + _BLOCK)
        key = codes[rows].astype(np.intp)
        key *= 2
        key += outcome[rows]
        counts += np.bincount(key, minlength=2 * n_levels).reshape(n_levels, 2)
    return counts
