"""A quadratic of few variables in a box, the quick way; `plainrisk.solve.box` has the one that always ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = ["MOST_VARIABLES", "BoxMinimum", "minimise_in_box"]

Floats = npt.NDArray[np.float64]

# Of more variables than this, a library's factors are quicker.
MOST_VARIABLES = 192


@dataclass(frozen=True)
class BoxMinimum:
    """Where a quadratic in a box is least.

    Attributes
    ----------
    d : (n,)
    state : (n,) -1 at the lower bound, 0 free, 1 at the upper bound
    factor : (m, m), the Cholesky factor of the m free variables in its lower triangle; above it is anything
    """

    d: Floats
    state: npt.NDArray[np.int8]
    factor: Floats

    def solve(self, right: Floats) -> Floats:
        """Solve ``H d = right`` in the free variables, one at least."""
        d = np.array(right, np.float64)
        compiled.solve_factored(self.factor, d)  # a factor was made by the loops
        return d


def minimise_in_box(H: Floats, g: Floats, lower: Floats, upper: Floats, flat: float) -> BoxMinimum | None:
    """Return the d that minimises ``g'd + d'Hd/2`` subject to ``lower <= d <= upper``, or None if that takes more care.

    Parameters
    ----------
    H : (n, n), symmetric positive definite
    flat : a pivot of less than this share of its diagonal entry is rounding
    """
    n = len(g)
    if compiled is None or n > MOST_VARIABLES:
        return None
    d, state, factor = np.empty(n), np.empty(n, np.int8), np.empty(n * n)
    arrays = [np.ascontiguousarray(a, np.float64) for a in (H, g, lower, upper)]
    if not compiled.minimise_in_box(*arrays, d, state, factor, flat):
        return None
    m = n - int(np.count_nonzero(state))
    return BoxMinimum(d, state, factor[: m * m].reshape(m, m))
