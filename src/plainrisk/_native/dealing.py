"""Folds: cards are shuffled, rows put in the order of their folds, and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = ["fold_counts", "fold_order", "shuffle"]

Codes = npt.NDArray[np.unsignedinteger[Any]]
Counts = npt.NDArray[np.int64]
Outcome = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_MANY_ROWS = 2**31 - 1  # more cannot be counted in the compiled loops


def fold_order(fold: npt.NDArray[np.uint8 | np.uint16], n_folds: int) -> tuple[Places, Places]:
    """Return the rows of fold 0 in their order, then those of fold 1, and so on; and where those of each fold end.

    Parameters
    ----------
    fold : (n,) from 0 to n_folds - 1

    Examples
    --------
    >>> fold_order(np.array([1, 0, 1], np.uint8), 2)
    (array([1, 0, 2]), array([1, 3]))
    """
    if compiled is None:
        ends = np.cumsum(np.bincount(fold, minlength=n_folds))
        return np.argsort(fold, kind="stable").astype(np.int64, copy=False), ends.astype(np.int64, copy=False)
    order, ends = np.empty(len(fold), np.int64), np.empty(n_folds, np.int64)
    compiled.fold_order(np.ascontiguousarray(fold), order, ends)
    return order, ends


def shuffle(cards: npt.NDArray[np.uint8 | np.uint16], rng: np.random.RandomState) -> None:
    """Shuffle cards as ``rng.shuffle(cards)`` does.

    >>> cards = np.arange(5, dtype=np.uint8)
    >>> shuffle(cards, np.random.RandomState(0))
    >>> cards
    array([2, 0, 1, 3, 4], dtype=uint8)
    """
    state = dict(rng.get_state(legacy=False))
    if compiled is None or state["bit_generator"] != "MT19937":
        rng.shuffle(cards)
        return
    twister = state["state"]
    state["state"] = {"key": twister["key"], "pos": compiled.shuffle(cards, twister["key"], twister["pos"])}
    rng.set_state(state)


def fold_counts(codes: Codes, n_levels: int, outcome: Outcome, ends: npt.NDArray[np.int64]) -> Counts:
    """Return how many rows of every fold have each level and outcome: (folds, levels, outcome).

    Parameters
    ----------
    codes : (n,) uint8, uint16 or uint32
    ends : (folds,) where the rows of each fold end, which stand together

    Examples
    --------
    >>> fold_counts(np.array([0, 1, 1], np.uint8), 2, np.array([1, 0, 1], np.uint8), np.array([1, 3])).tolist()
    [[[0, 1], [0, 0]], [[0, 0], [1, 1]]]
    """
    counts = np.zeros((len(ends), n_levels, 2), np.int64)
    if compiled is not None and len(codes) < _MANY_ROWS:
        compiled.fold_counts(np.ascontiguousarray(codes), np.ascontiguousarray(outcome), ends, counts)
        return counts
    for k, start in enumerate([0, *ends[:-1]]):
        key = codes[start : ends[k]].astype(np.intp)
        key *= 2
        key += outcome[start : ends[k]]
        counts[k] = np.bincount(key, minlength=2 * n_levels).reshape(n_levels, 2)
    return counts
