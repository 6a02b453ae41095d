"""The cuts of best-first trees on one feature without each fold in turn, found in the compiled loops alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = ["fold_cuts"]

Singles = npt.NDArray[np.float32]

MANY_ROWS = 1 << 12  # from here on cutting rows into segments is faster than sorting them all
SEGMENT_ROWS = 1 << 5  # rows of a segment, unless there would be too many segments


def fold_cuts(
    x: Singles,
    bad: npt.NDArray[np.bool_],
    fold: npt.NDArray[np.uint8 | np.uint16],
    n_folds: int,
    max_bins: int,
    criterion: str,
    min_rows: int,
) -> list[tuple[Singles, Singles]] | None:
    """Return what `tree_cuts` does of the rows outside each fold in turn; None without the compiled loops.

    Parameters
    ----------
    fold : (n,) from 0 to n_folds - 1

    Examples
    --------
    >>> x, bad = np.array([20, 30, 40, 50], np.float32), np.array([1, 1, 0, 0], np.bool_)
    >>> cuts = fold_cuts(x, bad, np.array([0, 1, 0, 1], np.uint8), 2, 5, "gini", 1)
    >>> cuts is None or [float(upper[0]) for _, upper in cuts] == [50.0, 40.0]
    True
    """
    if compiled is None or len(x) >= 2**31 - 1:
        return None
    size = max(0, min(max_bins, len(x)) - 1)
    lower, upper = np.empty((n_folds, size), np.float32), np.empty((n_folds, size), np.float32)
    found = np.zeros(n_folds, np.int64)
    compiled.fold_cuts(
        np.ascontiguousarray(x),
        np.ascontiguousarray(bad),
        np.ascontiguousarray(fold),
        lower,
        upper,
        found,
        min(min_rows, len(x) + 1),
        criterion == "entropy",
        MANY_ROWS,
        SEGMENT_ROWS,
    )
    return [(np.sort(low[:n]), np.sort(up[:n])) for low, up, n in zip(lower, upper, found.tolist(), strict=True)]
