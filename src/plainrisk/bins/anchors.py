"""What holds special levels, as the schema's rules say.

With a direction the best and the worst measured levels are the two ends of the order, known before the fit; without
one they are known only from scores. "not_better" is a bound, kept by an active set: the level is free at first, and
where it breaks the bound, the optimum under it is on the bound, so the fit is done again with the level held at the
best measured one. So a rule that is not broken changes nothing. (A nonnegative step up from the best level would be a
bound as well, but shrinking that step would draw levels with few rows to the best one.)
"""

from __future__ import annotations

import numpy as np

from plainrisk._types import Floats
from plainrisk.bins.coding import Anchor
from plainrisk.form import BOUNDS, Levels, measured_levels, outside_rules
from plainrisk.schema import Feature

__all__ = ["end_levels", "level_anchors"]


def end_levels(sign: int, n_ordered: int, worse: int) -> tuple[int, int]:
    """Return the best and the worst level of an order for the applicant.

    >>> end_levels(sign=1, n_ordered=5, worse=1), end_levels(sign=1, n_ordered=5, worse=-1)
    ((0, 4), (4, 0))
    """
    ends = (0, n_ordered - 1)
    return ends if sign * worse > 0 else ends[::-1]


def level_anchors(
    feature: Feature,
    levels: Levels,
    weights: Floats,
    worse: int,
    scores: Floats | None = None,
) -> dict[int, Anchor]:
    """Return what holds the special levels that training rows have.

    Parameters
    ----------
    weights : training weight of every level
    worse : +1 if a higher probability is worse for the applicant, -1 if it is better
    scores : of the levels after a fit in which they were free, or None before
    """
    measured = measured_levels(feature, levels)
    seen = measured[weights[measured] > 0]
    anchors: dict[int, Anchor] = {}
    for level, rule in outside_rules(feature, levels).items():
        if rule not in BOUNDS or not weights[level] or not len(seen):
            continue
        if rule == "neutral":
            anchors[level] = Anchor("mean")
            continue
        if feature.sign:
            best, worst = end_levels(feature.sign, levels.n_ordered, worse)
        elif scores is None:
            continue
        else:
            best, worst = (int(seen[pick(worse * scores[seen])]) for pick in (np.argmin, np.argmax))
        if rule == "worst":
            anchors[level] = Anchor("at", worst)
        elif scores is not None and worse * (scores[level] - scores[best]) <= 0:
            anchors[level] = Anchor("at", best)
    return anchors
