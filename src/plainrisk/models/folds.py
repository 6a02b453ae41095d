"""Folds for cross validation: how rows are split, for everybody who splits them."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from plainrisk._types import Array, Index
from plainrisk.errors import DataError

__all__ = ["Split", "splits_of", "stratified_folds"]

Split = tuple[Index, Index]  # positions of the training rows, and of the held-out ones


def stratified_folds(target: Array, n_folds: int, seed: int = 0) -> Index:
    """Return the fold of every row: shuffled, each outcome spread evenly; fewer folds where an outcome has few rows.

    >>> folds = stratified_folds(np.array([0, 0, 0, 0, 1, 1]), n_folds=2)
    >>> np.bincount(folds).tolist(), np.bincount(folds[4:]).tolist()
    ([3, 3], [1, 1])
    """
    fewest = int(np.bincount(np.asarray(target, dtype=np.intp), minlength=2).min())
    if fewest < 2:
        raise DataError(f"Data: cross validation needs two rows of each outcome; of one there is {fewest}.")
    fold_of = np.empty(len(target), np.intp)
    for k, (_, test) in enumerate(splits_of(target, min(n_folds, fewest), seed)):
        fold_of[test] = k
    return fold_of


def splits_of(target: Array, cv: Any, seed: int = 0, groups: Any = None) -> list[Split]:
    """Return the training and held-out rows of every split.

    Parameters
    ----------
    target : (n,)
    cv : int, scikit-learn splitter, or iterable of (train, test)
        A number makes folds stratified by the outcome; with `groups`, rows of a group stay together.
    seed : int, default=0
        Shuffles the rows of numbered folds; a splitter has a seed of its own.
    groups : (n,), optional
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    rows = np.zeros((len(target), 1))
    if isinstance(cv, Integral):
        _check_number(int(cv), target)
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        cv = kind(int(cv), shuffle=True, random_state=seed)
    if hasattr(cv, "split"):
        found = cv.split(rows, target, groups)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        found = cv
    else:
        raise DataError(f"cv must be a number of folds, a scikit-learn splitter or pairs of rows, not {cv!r}.")
    splits = [(_positions(train, len(target)), _positions(test, len(target))) for train, test in found]
    if not splits:
        raise DataError("cv has no splits.")
    return splits


def _check_number(n_folds: int, target: Array) -> None:
    fewest = int(np.unique(target, return_counts=True)[1].min())
    if n_folds < 2:
        raise DataError(f"cv must be 2 folds or more, not {n_folds}.")
    if n_folds > fewest:
        raise DataError(f"cv={n_folds}: the rarer outcome has only {fewest:,} rows, and every fold needs one.")


def _positions(rows: Any, n: int) -> Index:
    """Return row positions, ascending; masks are allowed."""
    index = np.asarray(rows)
    index = np.flatnonzero(index) if index.dtype == bool else np.sort(index.astype(np.intp))
    if index.size and (index[0] < 0 or index[-1] >= n):
        raise DataError(f"cv names a row that is not among the {n:,} rows.")
    return index
