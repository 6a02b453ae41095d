"""Bin edges that hold equal shares of the rows, without a look at the outcome."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.encode.histogram import Histogram

__all__ = ["quantile_edges"]


def quantile_edges(h: Histogram, max_bins: int) -> npt.NDArray[np.float64]:
    """Return the edges that cut the weight into `max_bins` equal shares as nearly as the values allow.

    Edges found without the outcome leave nothing for a held-out fold to know, so cross validation of a ridge on
    many such bins is honest.

    Examples
    --------
    >>> from plainrisk.encode.histogram import histogram
    >>> quantile_edges(histogram([1, 2, 3, 4, 4, 4, 4, 4], [0] * 8), max_bins=4)
    array([2.5, 3.5])
    """
    if h.values.size < 2:
        return np.zeros(0)
    upto = np.cumsum(h.weight)
    wanted = upto[-1] * np.arange(1, max_bins) / max_bins
    after = np.searchsorted(upto, wanted)
    before = np.maximum(after - 1, 0)
    # A heavy value holds several quantiles; cut on whichever side of it is nearer.
    last = np.unique(np.where(wanted - upto[before] < upto[after] - wanted, before, after))
    last = last[(upto[last] > 0) & (last < h.values.size - 1)]
    values = h.values.astype(np.float64)
    return np.asarray(values[last] / 2.0 + values[last + 1] / 2.0)
