"""The cuts of best-first trees on single features, found in the compiled loops alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = ["tree_cuts"]

Singles = npt.NDArray[np.float32]

MANY_ROWS = 1 << 15  # from here on cutting rows into segments is faster than sorting them all
SEGMENT_ROWS = 1 << 5  # rows of a segment, unless there would be too many segments


def tree_cuts(
    columns: Sequence[Singles], bad: npt.NDArray[np.bool_], max_bins: Sequence[int], criterion: str, min_rows: int
) -> tuple[Singles, Singles, list[int]] | None:
    """Return for every column the values below and above its cuts, ascending, and how many cuts it has.

    They are those of `plainrisk.bins.edges.split_edges`, which is the same in numpy. None without the compiled loops.

    Parameters
    ----------
    columns : (n,) each; rows that are not a number are left out
    bad : (n,) whether the outcome is the positive one
    max_bins : at most so many bins, for every column

    Returns
    -------
    lower, upper : (columns, most cuts), filled up with infinity
    found : the number of cuts of every column

    Examples
    --------
    >>> columns = [np.array([20, 30, 40, 50], np.float32), np.zeros(4, np.float32)]
    >>> cuts = tree_cuts(columns, np.array([1, 1, 0, 0], np.bool_), [5, 2], "gini", 1)
    >>> cuts is None or (cuts[0][0, 0], cuts[1][0, 0], cuts[2]) == (30.0, 40.0, [1, 0])
    True
    """
    # Sums of up to 2^31 rows are exact in the loops.
    if compiled is None or len(bad) >= 2**31 - 1:
        return None
    splits = np.array([max(0, min(most, len(bad)) - 1) for most in max_bins], np.int64)
    shape = (len(columns), int(splits.max(initial=0)))
    lower, upper = np.empty(shape, np.float32), np.empty(shape, np.float32)
    compiled.tree_cuts(
        [np.ascontiguousarray(x) for x in columns],
        np.ascontiguousarray(bad),
        lower,
        upper,
        splits,
        min(min_rows, len(bad) + 1),
        criterion == "entropy",
        MANY_ROWS,
        SEGMENT_ROWS,
    )
    # Cuts do not overlap, so both sides have the same order.
    return np.sort(lower), np.sort(upper), splits.tolist()
