"""The cuts of a best-first tree on one feature, found in the compiled loops alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.kernels.choice import compiled

__all__ = ["tree_cuts"]

Singles = npt.NDArray[np.float32]

MANY_ROWS = 1 << 15  # from here on cutting rows into segments is faster than sorting them all
SEGMENT_ROWS = 1 << 5  # rows of a segment, unless there would be too many segments


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
