"""Bin edges that hold equal shares of the rows, without a look at the outcome."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.bins.histogram import Histogram
from plainrisk.errors import SchemaError

__all__ = ["quantile_edges"]


def quantile_edges(h: Histogram, max_bins: int, min_rows: int = 1) -> npt.NDArray[np.float64]:
    """Return the edges that cut the weight into `max_bins` equal shares as nearly as the values allow.

    Edges that would leave a bin with fewer than `min_rows` rows are left out.

    Edges found without the outcome leave nothing for a held-out fold to know, so cross validation of a ridge on
    many such bins is honest.

    Examples
    --------
    >>> from plainrisk.bins.histogram import histogram
    >>> quantile_edges(histogram([1, 2, 3, 4, 4, 4, 4, 4], [0] * 8), max_bins=4)
    array([2.5, 3.5])
    """
    for name, value in {"max_bins": max_bins, "min_rows": min_rows}.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise SchemaError(f"quantile_edges: {name} must be a whole number of at least 1, got {value!r}.")
    if h.values.size < 2:
        return np.zeros(0)
    upto = np.cumsum(h.weight)
    wanted = upto[-1] * np.arange(1, max_bins) / max_bins
    after = np.searchsorted(upto, wanted)
    before = np.maximum(after - 1, 0)
    # A heavy value holds several quantiles; cut on whichever side of it is nearer.
    last = np.unique(np.where(wanted - upto[before] < upto[after] - wanted, before, after))
    kept = _with_rows(h, last[last < h.values.size - 1], min_rows)
    values = h.values.astype(np.float64)
    return np.asarray(values[kept] / 2.0 + values[kept + 1] / 2.0)


def _with_rows(h: Histogram, last: npt.NDArray[np.intp], min_rows: int) -> npt.NDArray[np.intp]:
    """Return the cuts, from below, that leave enough rows on both sides."""
    upto = np.cumsum(h.rows)
    kept, start = [], 0
    for cut in last:
        if min(upto[cut] - start, upto[-1] - upto[cut]) >= min_rows:
            kept.append(cut)
            start = upto[cut]
    return np.array(kept, dtype=np.intp)
