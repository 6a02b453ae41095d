"""Special levels: which rule the schema has for each, and scores that keep to it.

Special values, values below the bound and missing values are not measurements, so a direction does not order them.
Rules state their effect instead. "Better" means better for the applicant: a lower risk, or a higher probability if the
positive outcome is the good one.
"""

from __future__ import annotations

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.form.levels import Bins, Levels
from plainrisk.schema import Feature, Rule, label_of

__all__ = ["BOUNDS", "held_scores", "measured_levels", "outside_rules"]

# The rules that bound the effect of a level on the score.
BOUNDS: tuple[Rule, ...] = ("not_better", "worst", "neutral")


def measured_levels(feature: Feature, levels: Levels) -> Index:
    """Return the levels that are measurements: bins, or categories that are no special values."""
    if isinstance(levels, Bins):
        return np.arange(levels.n_ordered)
    special = {label_of(value) for value in feature.special_values}
    return np.flatnonzero([category not in special for category in levels.categories])


def outside_rules(feature: Feature, levels: Levels) -> dict[int, Rule]:
    """Return the rule of every special level in a model; `unseen` has a separate rule.

    >>> feature = Feature(special_values=(-9.0,), missing="worst", special_rules={"-9": "not_better"})
    >>> outside_rules(feature, Bins(edges=(10.0,), special_values=(-9.0,)))
    {2: 'not_better', 3: 'worst'}
    """
    if isinstance(levels, Bins):
        labels = [(levels.n_ordered + k, label_of(value)) for k, value in enumerate(levels.special_values)]
    else:
        inside = set(measured_levels(feature, levels).tolist())
        labels = [(k, label) for k, label in enumerate(levels.categories) if k not in inside]
    rules: dict[int, Rule] = {level: feature.special_rules.get(label, "free") for level, label in labels}
    if isinstance(levels, Bins) and levels.lower_bound is not None:
        rules[levels.missing - 1] = feature.below_bound or "free"
    rules[levels.missing] = feature.missing or "free"
    return rules


def held_scores(scores: Floats, weights: Floats, levels: Levels, feature: Feature, worse: int) -> Floats:
    """Return the scores of a centered shape with every special level where its rule wants it, exactly.

    Measured levels stay as they are. Of a line, the one measured level stands for its center, the mean measurement.

    Parameters
    ----------
    weights : training weight of every level; levels without training rows do not count as the best or the worst
    worse : +1 if a higher probability is worse for the applicant, -1 if it is better

    Examples
    --------
    >>> levels, feature = Bins(edges=(10.0,)), Feature(direction="increasing", missing="not_better")
    >>> held_scores(np.array([-0.5, 0.7, -2.0]), np.ones(3), levels, feature, 1).tolist()
    [-0.5, 0.7, -0.5]
    """
    rules = {level: rule for level, rule in outside_rules(feature, levels).items() if rule in BOUNDS}
    measured = measured_levels(feature, levels)
    seen = measured[weights[measured] > 0]
    among = scores[seen if len(seen) else measured] * worse
    if not rules or not len(among):
        return scores
    held = scores.copy()
    for level, rule in rules.items():
        if rule == "neutral":
            held[level] = 0.0
        elif rule == "worst":
            held[level] = worse * among.max()
        else:
            held[level] = worse * max(worse * held[level], among.min())
    return held
