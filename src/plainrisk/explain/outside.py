"""The effect of special levels: how far below the measured levels they can be, and whether rules hold.

An empty or special field and a measured one are compared like two steps of an order (`AtomScores.least`), so the
result holds for all applicants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.explain.atoms import Atoms, AtomScores
from plainrisk.explain.reference import pool_weights
from plainrisk.form import (
    BOUNDS,
    Alone,
    Bands,
    Bins,
    Check,
    Linear,
    Link,
    OutsideLevel,
    Part,
    RiskForm,
    TreePart,
    measured_levels,
    outside_rules,
)
from plainrisk.form.trees import LEAF
from plainrisk.schema import Feature, Rule, label_of

__all__ = ["BindingLevel", "FeatureRules", "binding_levels", "outside_check", "outside_levels"]


def outside_levels(form: RiskForm, atoms: Mapping[str, Atoms]) -> Iterator[OutsideLevel]:
    """Yield the largest possible effect of every special level."""
    for name, feature in form.schema.features.items():
        users = [k for k, part in enumerate(form.parts) if name in part.features]
        if not users:
            continue
        rules = FeatureRules(feature, atoms[name], form.schema.worse)
        for level, rule in rules.rules.items():
            # (measured levels, parts): how far below each of them the level is at most, in the score of every part.
            gaps = np.zeros((len(rules.measured), len(form.parts)))
            for k in users:
                gaps[:, k] = -rules.least(form.parts[k], level)
            gaps = np.maximum(gaps, 0.0)
            risks = np.array([_largest_move(form, row) for row in gaps])
            yield OutsideLevel(
                feature=name,
                level=atoms[name].levels.labels[level],
                rule=rule,
                rows=_rows(form, atoms[name], level),
                below=float(gaps.max(axis=1).min(initial=np.inf)) if len(gaps) else 0.0,
                below_risk=float(risks.min()) if len(risks) else 0.0,
                lowers=float(gaps.max(initial=0.0)),
                lowers_risk=float(risks.max(initial=0.0)),
            )


def outside_check(form: RiskForm, atoms: Mapping[str, Atoms]) -> Check | None:
    """Check that every rule of the schema holds in every part; None if there is no rule."""
    weights, n = pool_weights(form), 0
    for name, feature in form.schema.features.items():
        users = [(part, weights[k]) for k, part in enumerate(form.parts) if name in part.features]
        rules = FeatureRules(feature, atoms[name], form.schema.worse) if users else None
        if rules is not None and (unkept := rules.unkept):
            return Check("empty fields and codes", False, f"{name}: no level is that of the rule for {unkept}")
        for level, rule in rules.rules.items() if rules is not None else ():
            if rule not in BOUNDS:
                continue
            n += 1
            for part, weight in users:
                if rules is not None and (weight < 0 or not rules.keeps(part, level, rule)):
                    label = atoms[name].levels.labels[level]
                    fault = f"{name}, {label}: the rule {rule!r} is broken in part {part.name!r}"
                    return Check("empty fields and codes", False, fault)
    if not n:
        return None
    return Check("empty fields and codes", True, f"all {n} rules, whatever the other features are")


@dataclass(frozen=True)
class BindingLevel:
    """A special level whose rule binds: its score is that of the best or the worst measured level.

    Attributes
    ----------
    feature, level, rule : whose rule it is; "not_better" or "worst"
    rows : training weight of the level
    """

    feature: str
    level: str
    rule: Rule
    rows: float


def binding_levels(form: RiskForm) -> list[BindingLevel]:
    """Return the special levels with training rows whose rule binds in some part of the form."""
    bound: dict[tuple[str, str], BindingLevel] = {}
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            feature, scores = form.schema.features[name], form.schema.worse * np.asarray(shape.scores)
            weights, measured = np.asarray(shape.weights), measured_levels(feature, shape.levels)
            among = scores[measured[weights[measured] > 0]]
            ends = {"not_better": among.min(initial=np.inf), "worst": among.max(initial=-np.inf)}
            for level, rule in outside_rules(feature, shape.levels).items():
                if weights[level] > 0 and scores[level] == ends.get(rule):
                    label = shape.levels.labels[level]
                    bound.setdefault((name, label), BindingLevel(name, label, rule, float(weights[level])))
    return list(bound.values())


@dataclass(frozen=True)
class FeatureRules:
    """A feature with its atoms, and which way is worse for the applicant."""

    feature: Feature
    atoms: Atoms
    worse: int

    @property
    def rules(self) -> dict[int, Rule]:
        """The rule of every special level that a value can have."""
        rules = outside_rules(self.feature, self.atoms.levels)
        missing = self.atoms.levels.missing
        return {k: rule for k, rule in rules.items() if k == missing or self.atoms.values[k] is not None}

    @property
    def unkept(self) -> str | None:
        """Return the values for which the schema has a rule but that no level represents; None if there are none."""
        ruled = {label: rule for label, rule in self.feature.special_rules.items() if rule in BOUNDS}
        levels = self.atoms.levels
        labels = map(label_of, levels.special_values) if isinstance(levels, Bins) else levels.categories
        if self.feature.below_bound in BOUNDS and not (isinstance(levels, Bins) and levels.lower_bound is not None):
            ruled["values below the bound"] = self.feature.below_bound
        existing = set(labels)
        return next((label for label in ruled if label not in existing), None)

    @property
    def measured(self) -> Index:
        """The measured levels that training rows had; if they had none, those that have a value."""
        levels = measured_levels(self.feature, self.atoms.levels)
        levels = levels[[self.atoms.values[k] is not None for k in levels]]
        seen = levels[self.atoms.seen[levels]]
        return seen if len(seen) else levels

    def least(self, part: Part | TreePart, level: int) -> Floats:
        """Return how far above each measured level a level is at least, in the score of a part, where up is worse."""
        if isinstance(part, TreePart):
            return np.full(len(self.measured), -_tree_range(part, self.atoms.feature))
        scores = AtomScores.of(part, self.atoms, self.worse)
        return np.array([scores.least(level, other)[0] for other in self.measured.tolist()])

    def keeps(self, part: Part | TreePart, level: int, rule: Rule) -> bool:
        """Whether a part obeys the rule of a level."""
        if isinstance(part, TreePart):
            return False
        if rule == "neutral":
            scores = AtomScores.of(part, self.atoms, self.worse)
            return not scores.alone[level] and not any(table[level].any() for table in scores.tables)
        least = self.least(part, level) >= 0
        return not len(least) or bool(least.any() if rule == "not_better" else least.all())


def _tree_range(part: TreePart, name: str) -> float:
    """Return how far apart the values of the trees that read a feature can be."""
    reads = [any(j != LEAF and part.inputs[j].feature == name for j in tree.inputs) for tree in part.trees]
    leaves = [tree.leaves_below(0) for tree, read in zip(part.trees, reads, strict=True) if read]
    return math.fsum(max(values) - min(values) for values in leaves)


def _rows(form: RiskForm, atoms: Atoms, level: int) -> float:
    """Return the training weight of a level, from the first shape or pair that counts it."""
    for part in form.parts:
        if isinstance(part, Part) and atoms.feature in part.shapes:
            shape = part.shapes[atoms.feature]
            return float(np.asarray(shape.weights)[atoms.levels_in(shape.levels)[level]])
    return 0.0


def _largest_move(form: RiskForm, gaps: Floats) -> float:
    """Return how far the risk can move if the score of each part moves by its gap."""
    moves = [_largest_rise(part.link, gap) for part, gap in zip(form.parts, gaps.tolist(), strict=True)]
    if isinstance(form.pool, Alone):
        return moves[0]
    total = math.fsum(abs(weight) * move for weight, move in zip(form.pool.weights, moves, strict=True))
    return min(total, 1.0) if form.pool.link is None else _largest_rise(form.pool.link, total)


def _largest_rise(link: Link, run: float) -> float:
    """Return how far a link rises at most while the score rises by `run`."""
    low, high = link.range
    if isinstance(link, Linear):
        return min(link.slope * run, high - low)
    if isinstance(link, Bands):
        return min(max(link.rates) * run, high - low)
    return math.tanh(run / 4.0)  # the sigmoid rises most where the run is centered at 0
