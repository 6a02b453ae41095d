"""The cuts of a best-first tree on one feature, found in the compiled loops alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.kernels.choice import compiled

__all__ = ["fold_cuts", "tree_cuts"]

Singles = npt.NDArray[np.float32]

MANY_ROWS = 1 << 15  # from here on cutting rows into segments is faster than sorting them all
SEGMENT_ROWS = 1 << 5  # rows of a segment, unless there would be too many segments
# The same for trees without each fold in turn, which share what they sort.
MANY_DEALT_ROWS = 1 << 12
DEALT_SEGMENT_ROWS = 1 << 5


def tree_cuts(
    x: Singles, bad: npt.NDArray[np.bool_], max_bins: int, criterion: str, min_rows: int
) -> tuple[Singles, Singles] | None:
    """Return the values below and above every cut, ascending; None without the compiled loops.

    They are those of `plainrisk.encode.bins.split_edges`, which is the same in numpy.

    Parameters
    ----------
    x : (n,) rows that are not a number are left out
    bad : (n,) whether the outcome is the positive one

    Examples
    --------
    >>> cuts = tree_cuts(np.array([20, 30, 40, 50], np.float32), np.array([1, 1, 0, 0], np.bool_), 5, "gini", 1)
    >>> cuts is None or (cuts[0].tolist(), cuts[1].tolist()) == ([30.0], [40.0])
    True
    """
    # Sums of up to 2^31 rows are exact in the loops.
    if compiled is None or len(x) >= 2**31 - 1:
        return None
    size = max(0, min(max_bins, len(x)) - 1)
    lower, upper = np.empty(size, np.float32), np.empty(size, np.float32)
    found = compiled.tree_cuts(
        np.ascontiguousarray(x),
        np.ascontiguousarray(bad),
        lower,
        upper,
        min(min_rows, len(x) + 1),
        criterion == "entropy",
        MANY_ROWS,
        SEGMENT_ROWS,
    )
    # Cuts do not overlap, so both sides have the same order.
    return np.sort(lower[:found]), np.sort(upper[:found])


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
        MANY_DEALT_ROWS,
        DEALT_SEGMENT_ROWS,
    )
    return [(np.sort(low[:n]), np.sort(up[:n])) for low, up, n in zip(lower, upper, found.tolist(), strict=True)]
