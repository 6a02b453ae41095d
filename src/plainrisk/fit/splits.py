"""How rows are split: folds, groups that stay together, the past before the future."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from plainrisk._types import Array, Index
from plainrisk.checks import LIST, SEED, Allowed, check_parameters, whole
from plainrisk.data.columns import floats_or_none, is_missing, unmasked
from plainrisk.data.frame import column_of
from plainrisk.errors import DataError

__all__ = ["SPLITS", "Split", "inner_splits", "read_times", "splits_of", "stratified_folds"]


SPLITS = Allowed(
    ("a scikit-learn splitter", "a list of (train, test)"),
    lambda cv: (hasattr(cv, "split") and not isinstance(cv, str | type)) or LIST.accepts(cv),
)
Split = tuple[Index, Index]  # positions of the training rows, and of the held-out ones


def stratified_folds(target: Array, n_folds: int, seed: int = 0) -> Index:
    """Return the fold of every row: shuffled, each outcome spread evenly; fewer folds where an outcome has few rows.

    >>> folds = stratified_folds(np.array([0, 0, 0, 0, 1, 1]), n_folds=2)
    >>> np.bincount(folds).tolist(), np.bincount(folds[4:]).tolist()
    ([3, 3], [1, 1])
    """
    fewest = int(np.bincount(np.asarray(target, dtype=np.intp), minlength=2).min())
    if fewest < 2:
        raise DataError(f"Data: cross validation needs two rows of each outcome; one outcome has {fewest}.")
    fold_of = np.empty(len(target), np.intp)
    for k, (_, test) in enumerate(splits_of(target, min(n_folds, fewest), seed)):
        fold_of[test] = k
    return fold_of


def inner_splits(target: Array, cv: Any, kept: Index | None = None) -> list[Split]:
    """Return the splits inside a fit: as `splits_of`, but with fewer folds where an outcome has few rows.

    Parameters
    ----------
    kept : which rows `target` is of, if a list of splits names more
    """
    if not isinstance(cv, Integral):
        if kept is None or hasattr(cv, "split"):
            return splits_of(target, cv)
        n = int(kept[-1]) + 1
        every = [[np.isin(kept, _positions(rows, n)) for rows in split] for split in cv]
        return splits_of(target, every)
    folds = stratified_folds(target, int(cv))
    return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in np.unique(folds)]


def splits_of(target: Array, cv: Any, seed: int = 0, groups: Any = None, time: Any = None) -> list[Split]:
    """Return the training and held-out rows of every split.

    Parameters
    ----------
    target : (n,)
    cv : int, scikit-learn splitter, or iterable of (train, test)
        A number makes folds stratified by the outcome; with `groups`, rows of a group stay together.
    seed : int, default=0
        Shuffles the rows of numbered folds; a splitter has a seed of its own.
    groups, time : (n,), optional
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    check_parameters("cross validation", {"seed": seed}, {"seed": SEED})
    rows = np.zeros((len(target), 1))
    if time is not None:
        cv = _forward_chains(read_times(time, len(target)), cv, groups)
    if type(cv) is not bool and isinstance(cv, Integral):
        _check_number(int(cv), target)
        _check_groups(int(cv), groups, len(target))
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        cv = kind(int(cv), shuffle=True, random_state=_short_seed(int(seed)))
    if isinstance(cv, str | type) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise DataError(
            f"cv must be a number of folds, a scikit-learn splitter or pairs of rows, not {cv!r}.{_call_hint(cv)}"
        )
    if groups is not None and not hasattr(cv, "split"):
        raise DataError(
            "cross validation: cv names the rows of every split, so groups have no effect. Leave out one of them."
        )
    folds = cv.split(rows, target, groups) if hasattr(cv, "split") else cv
    try:
        splits = [(_positions(train, len(target)), _positions(test, len(target))) for train, test in folds]
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = "groups must have one label per row" if groups is not None else "each split is a pair (train, test)"
        raise DataError(f"cv makes no splits of these rows: {reason}. {error}") from None
    if not splits:
        raise DataError("cv yields no splits.")
    return splits


def _call_hint(cv: Any) -> str:
    return f" Make one: {cv.__name__}(...)." if isinstance(cv, type) else ""


def _check_groups(folds: int, groups: Any, rows: int) -> None:
    """Refuse more folds than groups, since a group's rows stay together."""
    if groups is None or len(groups) != rows:
        return
    held = len(set(column_of(groups).codes.tolist()))
    if held < folds:
        fewer = f", or at most {held} folds" if held > 1 else ""
        raise DataError(
            f"cross validation: {folds} folds need at least {folds} groups, since the rows of a group stay together. "
            f"There {'is' if held == 1 else 'are'} {held}. Use more groups{fewer}."
        )


def _forward_chains(times: Array, cv: Any, groups: Any) -> list[Split]:
    """Return splits that hold out a run of times after all earlier ones: TimeSeriesSplit on the times."""
    from sklearn.model_selection import TimeSeriesSplit

    check_parameters("cross validation", {"cv": cv}, {"cv": whole(2)})
    if groups is not None:
        raise DataError("cross validation: groups and time cannot both be given.")
    distinct, when = np.unique(times, return_inverse=True)
    if len(distinct) <= cv:
        most = len(distinct) - 1
        raise DataError(f"cv={cv}: the rows have {len(distinct)} distinct times, which allow at most {most} folds.")
    runs = TimeSeriesSplit(int(cv)).split(distinct)
    return [(np.flatnonzero(when < test[0]), np.flatnonzero(np.isin(when, test))) for _, test in runs]


def read_times(time: Any, n_rows: int) -> Array:
    """Return times that can be ordered: numbers, or dates, which may be written as 2024-03 or 2024-03-31."""
    times = np.asarray(unmasked(time))
    if times.shape != (n_rows,):
        raise DataError(f"time: must have one entry for each of the {n_rows:,} rows, not the shape {times.shape}.")
    if times.dtype.kind in "OUST":
        cells = times.astype(object)
        numbers = floats_or_none(cells)
        try:
            times = _dates(cells) if numbers is None else numbers
        except (TypeError, ValueError):
            raise DataError(
                "time: must hold numbers, dates, or text such as 2024-03, 2024-03-31 or 2024/3/31."
            ) from None
    unknown = np.isnat(times) if times.dtype.kind in "mM" else ~np.isfinite(times)
    if unknown.any():
        raise DataError(f"time: row {int(unknown.argmax()):,} (counting from 0) has none. Every row needs one.")
    return times


def _dates(cells: Array) -> Array:
    return np.array([None if is_missing(cell) else _iso(cell) for cell in cells], dtype="datetime64[us]")


def _iso(cell: Any) -> Any:
    """Write a date that begins with the year as numpy reads it.

    >>> _iso("2018/5/1"), _iso("2018-12"), _iso("5/1/2018")
    ('2018-05-01', '2018-12', '5/1/2018')
    """
    if not isinstance(cell, str) or not cell[:4].isdigit():
        return cell
    return "-".join(part.zfill(2) for part in cell.replace("/", "-").split("-", 2))


def _short_seed(seed: int) -> int:
    """Return the seed for scikit-learn, which takes 32 bits: short seeds unchanged, longer ones hashed."""
    return seed if seed < 2**32 else int(np.random.SeedSequence(seed).generate_state(1)[0])


def _check_number(n_folds: int, target: Array) -> None:
    fewest = int(np.unique(target, return_counts=True)[1].min())
    if n_folds < 2:
        raise DataError(f"cv must be 2 folds or more, not {n_folds}.")
    if n_folds > fewest:
        raise DataError(f"cv={n_folds}: the rarer outcome has only {fewest:,} rows, and every fold needs one.")


def _positions(rows: Any, n: int) -> Index:
    """Return row positions, ascending; masks are allowed."""
    index = np.asarray(rows)
    if index.ndim != 1 or not index.size or index.dtype.kind not in "biu":
        raise DataError("cv must name rows by whole numbers or a mask, and at least one on each side of a split.")
    if index.dtype == bool and len(index) != n:
        raise DataError(f"cv: a mask must have one entry for each of the {n:,} rows, not {len(index):,}.")
    index = np.flatnonzero(index) if index.dtype == bool else np.sort(index.astype(np.intp))
    if index.size and (index[0] < 0 or index[-1] >= n):
        raise DataError(f"cv names a row that is not among the {n:,} rows.")
    return index
