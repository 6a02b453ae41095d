"""The H-measure: what a ranking saves of the cost of wrong decisions, whatever the cut-off."""

from __future__ import annotations

import math

import numpy as np

from plainrisk._types import Floats

__all__ = ["SEVERITIES", "h_of_counts"]

SEVERITIES = ("symmetric", "class ratio")


def h_of_counts(goods: Floats, bads: Floats, severity: str = "symmetric") -> float:
    r"""Return the H-measure, given the good and the bad rows at every distinct risk, from the least to the greatest.

    Refusing a good applicant costs c, approving a bad one 1 - c, and c has a beta distribution u. Neighbouring risks
    are joined until their bad rates r rise (the convex hull of the ROC curve), and every block b is then decided
    rightly for its rate:

    .. math:: L = \sum_b \Big( g_b \int_0^{r_b} c\,u(c)\,dc + n_b \int_{r_b}^1 (1 - c)\,u(c)\,dc \Big), \qquad
              H = 1 - L / L_{one\ block}

    with good rows g and bad rows n of a block. "symmetric" is beta(2, 2) of Hand (2009), "class ratio" beta(1 + bad
    share, 1 + good share) of Hand and Anagnostopoulos (2014). Not a number where an outcome has no rows.
    """
    from scipy.optimize import isotonic_regression
    from scipy.special import betainc

    total, n_bad = float(goods.sum() + bads.sum()), float(bads.sum())
    if not 0 < n_bad < total:
        return math.nan
    rows = goods + bads
    used = rows > 0
    blocks = isotonic_regression(bads[used] / rows[used], weights=rows[used]).blocks[:-1]
    good, bad = (np.add.reduceat(counts[used], blocks) for counts in (goods, bads))
    share = n_bad / total
    a, b = (2.0, 2.0) if severity == "symmetric" else (1 + share, 2 - share)

    def cost(good: Floats, bad: Floats) -> float:
        rate = bad / (good + bad)
        refused = a / (a + b) * betainc(a + 1, b, rate)
        approved = b / (a + b) * betainc(b + 1, a, 1 - rate)
        return float((good * refused + bad * approved).sum())

    return 1 - cost(good, bad) / cost(np.array([total - n_bad]), np.array([n_bad]))
