"""The covariance of what a smooth fit found, for `posterior`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plainrisk._types import Floats
from plainrisk.errors import DataError
from plainrisk.fit.plan import Fitted

__all__ = ["covariance_of"]

# Coefficients whose covariance is written out at most: a matrix of 200 MB.
_MOST_COVARIANCE = 5000


def covariance_of(fitted: Fitted, means: Sequence[Floats], cells: Sequence[Floats]) -> tuple[float, ...]:
    """Return the covariance of intercept, levels and cells, its lower triangle row by row.

    All of them are sums of coefficients, so their covariance follows from that of the coefficients.

    Parameters
    ----------
    means : per feature, (rows of the merged table, levels): each row's score is a mean of levels
    cells : per pair, the scores; pairs without any are not in the form
    """
    basis, evidence = fitted.basis, fitted.evidence
    assert evidence is not None
    n = len(evidence.free)
    if n > _MOST_COVARIANCE:
        raise DataError(
            f"intervals: the model has {n:,} coefficients; for at most {_MOST_COVARIANCE:,} they are found."
        )
    at, first = 1, np.zeros((1, n))
    first[0, 0] = 1.0
    rows = [first]
    for contrast, weight, mean in zip(basis.contrasts, basis.coded.weights, means, strict=True):
        size = len(contrast.keys)
        row, centre = np.zeros((len(mean), n)), weight @ contrast.matrix / weight.sum()
        seen = weight > 0
        seen |= False if contrast.centred is None else contrast.centred
        row[:, at : at + size] = mean @ (seen[:, None] * (contrast.matrix - centre))
        first[0, at : at + size] = centre
        rows.append(row)
        at += size
    expansions = [] if basis.pairs is None else basis.pairs.expansions()
    for contrast, expand, scores in zip(basis.pair_contrasts, expansions, cells, strict=True):
        size = len(contrast.keys)
        if scores.any():
            row = np.zeros((len(expand), n))
            row[:, at : at + size] = contrast.matrix[expand]
            rows.append(row)
        at += size
    matrix = np.vstack(rows)
    whole = matrix @ evidence.covariance() @ matrix.T
    return tuple(whole[np.tril_indices(len(whole))].tolist())
