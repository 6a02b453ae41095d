"""The Bayesian signed-rank test: how probable it is that one classifier is better, or that it is all one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.errors import DataError
from plainrisk.evaluate.compare.results import Floats, paired_differences
from plainrisk.evaluate.compare.tables import Cell, Table, Tabular

__all__ = ["BayesianSignedRank", "bayesian_signed_rank"]

_PRIOR_STRENGTH = 0.5
_BLOCK_CELLS = 1 << 20


@dataclass(frozen=True)
class BayesianSignedRank(Tabular):
    """Posterior probabilities of three verdicts; they add up to 1 and unpack as ``left, rope, right``.

    Attributes
    ----------
    left : a is smaller than b by more than the region
    rope : the difference is inside the region of practical equivalence
    right : a is larger than b by more than the region
    width : half the width of that region, as given
    samples : draws from the posterior
    """

    left: float
    rope: float
    right: float
    width: float
    samples: int

    def __iter__(self) -> Iterator[float]:
        return iter((self.left, self.rope, self.right))

    def _table(self) -> Table:
        rows: list[list[Cell]] = [["a < b", self.left], ["equivalent", self.rope], ["a > b", self.right]]
        return Table(("verdict", "probability"), rows, note=f"Equivalent: within {self.width:g}.")


def bayesian_signed_rank(
    a: npt.ArrayLike, b: npt.ArrayLike, rope: float = 0.01, samples: int = 50_000, seed: int = 0
) -> BayesianSignedRank:
    r"""Compare two classifiers over data sets by the Bayesian signed-rank test (Benavoli et al. 2017).

    The differences :math:`z_1, \dots, z_N` and a pseudo observation :math:`z_0 = 0` get random weights
    :math:`w \sim \mathrm{Dirichlet}(s, 1, \dots, 1)` with prior strength :math:`s = 0.5`. One draw says

    .. math:: \theta_{\text{left}} = \sum_{i,j} w_i w_j [z_i + z_j < -2r], \qquad
              \theta_{\text{right}} = \sum_{i,j} w_i w_j [z_i + z_j > 2r]

    and :math:`\theta_{\text{rope}}` is the rest. Each probability is the share of draws in which its
    :math:`\theta` is the largest. A difference of exactly r is inside the region.

    Parameters
    ----------
    a, b : (N,) paired values, one pair per data set
    rope : r, the largest difference that does not matter in practice
    samples : draws from the posterior
    seed : the same seed gives the same figures

    >>> left, rope, right = bayesian_signed_rank([0.84, 0.79, 0.91, 0.88], [0.80, 0.76, 0.88, 0.82])
    >>> right > 0.95
    True
    """
    if not rope >= 0.0:
        raise DataError(f"bayesian_signed_rank: rope is a difference of 0 or more; got {rope!r}.")
    if samples < 1:
        raise DataError(f"bayesian_signed_rank: samples must be 1 or more; got {samples!r}.")
    z = np.concatenate([[0.0], paired_differences(a, b)])
    # Differences carry the rounding of the values they come from; a sum of two on the edge is inside.
    edge = 2.0 * rope + 2.0**-42 * float(max(np.abs(a).max(), np.abs(b).max()))
    wins = _count_wins(z, edge, samples, np.random.default_rng(seed))
    left, middle, right = (float(count) / samples for count in wins)
    return BayesianSignedRank(left, middle, right, float(rope), samples)


def _count_wins(z: Floats, edge: float, samples: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    # With z sorted, the partners j of each i that fall left (or not right) of the region are a prefix, and
    # the double sum is a look-up in the cumulated weights: N operations a draw, not N squared.
    order = np.argsort(z, kind="stable")
    left_of = np.searchsorted(z[order], -edge - z[order], side="left")
    not_right_of = np.searchsorted(z[order], edge - z[order], side="right")
    concentration = np.ones(z.size)
    concentration[0] = _PRIOR_STRENGTH
    wins = np.zeros(3, dtype=np.int64)
    block = max(1, _BLOCK_CELLS // z.size)
    for start in range(0, samples, block):
        size = (min(block, samples - start), z.size)
        # Drawn in the order of the data and sorted after: swapping a and b swaps left and right exactly.
        gamma = rng.standard_gamma(concentration, size=size)[:, order]
        weights = gamma / gamma.sum(axis=1, keepdims=True)
        cumulated = np.concatenate([np.zeros((size[0], 1)), np.cumsum(weights, axis=1)], axis=1)
        left = (weights * cumulated[:, left_of]).sum(axis=1)
        right = 1.0 - (weights * cumulated[:, not_right_of]).sum(axis=1)
        verdict = np.argmax(np.column_stack([left, 1.0 - left - right, right]), axis=1)
        wins += np.bincount(verdict, minlength=3)
    return wins
