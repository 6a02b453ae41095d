"""What is fitted to coded rows (`Plan`), the result (`Fitted`), and the loop between them (`fit_plan`).

The loop is the inner one of `fit/layer.py`: until no rule is broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from plainrisk._types import Floats
from plainrisk.bins import Axis
from plainrisk.fit.basis import Basis, LineBounds, line_basis, smooth_basis, step_basis
from plainrisk.fit.coding import CodedRows, Held, rule_anchors
from plainrisk.fit.pairs import PairRows
from plainrisk.fit.parameters import LayerSettings, LinkName
from plainrisk.form import GroupEvidence, Linear, Logistic
from plainrisk.schema import Schema
from plainrisk.solve import (
    Evidence,
    LogisticLoss,
    Moments,
    Rows,
    Solution,
    maximize_evidence,
    minimize,
    minimize_squares,
    polished,
)

__all__ = ["Chosen", "Fitted", "Plan", "fit_plan", "fitted_link", "link_of", "polish"]

# By feature, the levels that a step leads to.
Cuts = Mapping[str, frozenset[int]]

# What another update of the precisions would raise the log marginal likelihood by, for each of them, where one stops:
# while the basis may change, and at the end.
_ROUGHLY, _EXACTLY = 2e-3, 2e-4
# Groups with fewer effective degrees of freedom are said to have no evidence.
_NOTHING = 0.01


@dataclass(frozen=True)
class Chosen:
    """What the data chose in a smooth fit, besides bins and pairs; a refit keeps it.

    Attributes
    ----------
    groups : the groups of coefficients, with their precisions
    scale : phi; see `Evidence`
    held : the special levels that a rule constrains
    cuts : by feature, the cuts that have a step
    total : how many rows the weights stood for
    pairs, axes : the pairs that were fitted, and the coarse levels of their features
    """

    groups: tuple[GroupEvidence, ...]
    scale: float
    total: float | None
    held: Held
    cuts: Mapping[str, tuple[int, ...]]
    pairs: tuple[tuple[str, str], ...] = ()
    axes: Mapping[str, Axis] | None = None

    @classmethod
    def of(cls, plan: Plan, fitted: Fitted) -> Chosen:
        """Return the choices of a fit."""
        basis, evidence = fitted.basis, fitted.evidence
        assert evidence is not None
        precision = evidence.precision[basis.precision_of].tolist()
        edf = np.bincount(basis.group_of, evidence.edf, minlength=len(basis.groups)).tolist()
        groups = tuple(
            GroupEvidence(group.names, group.kind, group.size, its_precision, its_edf, its_edf < _NOTHING)
            for group, its_precision, its_edf in zip(basis.groups, precision, edf, strict=True)
        )
        pairs = plan.pairs
        kept = ((), None) if pairs is None else (pairs.pairs, pairs.axes)
        cuts = {name: tuple(sorted(cuts)) for name, cuts in plan.cuts.items()}
        return cls(groups, evidence.scale, plan.total, basis.held, cuts, *kept)


@dataclass(frozen=True)
class Plan:
    """What to fit to coded rows.

    Attributes
    ----------
    shapes : which basis
    ridge : what the mean loss is penalized by; None if the evidence decides
    total : how many rows the weights stand for, where the evidence decides; see `rows_meant`
    cuts : of smooth shapes, by feature: the cuts that have a step; all where a feature is not named
    pairs : of smooth shapes, fitted together with the features
    lines : bounds of the slopes of numeric columns
    held : special levels that are constrained from the beginning
    known : the precisions of groups, and phi, where they are given
    weighted : the rows with other weights
    rough : whether rough precisions are enough, since the basis may change
    """

    coded: CodedRows
    schema: Schema
    link: LinkName
    shapes: Literal["steps", "smooth", "lines"]
    ridge: float | None = None
    total: float | None = None
    cuts: Cuts = field(default_factory=dict)
    pairs: PairRows | None = None
    lines: LineBounds | None = None
    held: Held = field(default_factory=dict)
    known: Chosen | None = None
    weighted: Rows | None = None
    rough: bool = False

    def basis(self, held: Held) -> Basis:
        """Return the coefficients, given the levels that rules constrain."""
        if self.shapes == "steps":
            basis = step_basis(self.coded, self.schema, held)
        elif self.lines is not None:
            basis = line_basis(self.coded, self.schema, held, self.lines)
        else:
            basis = smooth_basis(self.coded, self.schema, held, self.cuts, self.pairs)
        return basis if self.weighted is None else replace(basis, weighted=self.weighted)


@dataclass(frozen=True)
class Fitted:
    """Fitted coefficients.

    Attributes
    ----------
    point : the intercept and the coefficients
    evidence : where the evidence decided how much they are shrunk
    solution : the solver's certificate; None before a smooth fit is polished
    """

    basis: Basis
    point: Floats
    evidence: Evidence | None = None
    solution: Solution | None = None

    @property
    def precisions(self) -> dict[tuple[tuple[str, ...], str], tuple[float, int]]:
        """The precision and the size of every group, by names and kind."""
        if self.evidence is None:
            return {}
        precisions = self.evidence.precision[self.basis.precision_of].tolist()
        groups = zip(self.basis.groups, precisions, strict=True)
        return {(group.names, group.kind): (precision, group.size) for group, precision in groups}


def fit_plan(plan: Plan, start: Fitted | None = None) -> Fitted:
    """Fit, and as long as a special level breaks its rule, constrain it and fit again.

    A level that is constrained stays so, and there are finitely many.
    """
    earlier = [plan.held, {} if start is None else start.basis.held]
    held = {name: dict(anchors) for name, anchors in rule_anchors(plan.coded, plan.schema).items()}
    for name, anchors in held.items():
        for before in earlier:
            anchors.update(before.get(name, {}))
    while True:
        basis = plan.basis(held)
        fitted = _penalized(plan, basis, start)
        breaking = rule_anchors(plan.coded, plan.schema, basis.level_scores(fitted.point[1:]))
        if all(breaking[name].keys() <= anchors.keys() for name, anchors in held.items()):
            return fitted
        held = {name: {**breaking[name], **anchors} for name, anchors in held.items()}
        start = fitted


def _penalized(plan: Plan, basis: Basis, start: Fitted | None) -> Fitted:
    """Fit the coefficients: shrunk by a ridge, at known precisions, or as the evidence asks."""
    point = None if start is None else _carried(start, basis)
    if plan.ridge is not None or plan.known is not None:
        solution = _solved(plan, basis, point)
        return Fitted(basis, solution.point, solution=solution)
    precision = np.full(int(basis.precision_of.max(initial=-1)) + 1, np.nan)
    before = {} if start is None else start.precisions
    for at, group in zip(basis.precision_of, basis.groups, strict=True):
        value, size = before.get((group.names, group.kind), (np.nan, 0))
        if size and group.size:
            # With twice as many steps, each has half the variance.
            precision[at] = value * (group.size / size if group.kind != "outside" else 1.0)
    evidence = maximize_evidence(
        _loss(plan, basis),
        basis.precision_of[basis.group_of],
        hyperprior=basis.hyperprior(),
        total=plan.total,
        lower=basis.lower,
        point=point,
        precision=precision,
        population=None if start is None or start.evidence is None else (start.evidence.mean, start.evidence.variance),
        tolerance=_ROUGHLY if plan.rough else _EXACTLY,
    )
    return Fitted(basis, evidence.point, evidence)


def _carried(start: Fitted, basis: Basis) -> Floats:
    """Return the coefficients of an earlier fit where they are in the new basis, and 0 elsewhere."""
    point = np.zeros(1 + basis.layout.n_coefficients)
    point[0] = start.point[0]
    for key, place in basis.places.items():
        before = start.basis.places.get(key)
        if before is not None:
            point[1 + place] = start.point[1 + before]
    n_lines = basis.layout.n_dense
    if n_lines:
        point[-n_lines:] = start.point[-n_lines:]
    return point


def _loss(plan: Plan, basis: Basis) -> LogisticLoss | Moments:
    return (Moments.of if plan.link == "linear" else LogisticLoss)(basis.layout, basis.rows)


def _solved(plan: Plan, basis: Basis, point: Floats | None) -> Solution:
    """Minimize the mean loss plus a penalty that is known."""
    loss = _loss(plan, basis)
    ridge: float | Floats = 0.0 if plan.ridge is None else plan.ridge * basis.scale
    if plan.known is not None:
        precision_of = {(group.features, group.kind): group.precision for group in plan.known.groups}
        precision = np.array([precision_of[group.names, group.kind] for group in basis.groups])[basis.group_of]
        # Half the sum of squared errors is what the evidence sees of a linear model.
        total = basis.rows.totals[1] if plan.total is None else plan.total
        ridge = plan.known.scale * precision / total / (1.0 if plan.link == "linear" else 2.0)
    lower, upper = basis.lower, basis.upper
    if isinstance(loss, Moments):
        return minimize_squares(loss, ridge=ridge, lower=lower, upper=upper, start=point)
    return minimize(loss, ridge=ridge, lower=lower, upper=upper, box=basis.box, start=point)


def polish(plan: Plan, fitted: Fitted) -> Fitted:
    """Return the exact optimum at the precisions that were found, with the solver's certificate."""
    basis, evidence = fitted.basis, fitted.evidence
    assert evidence is not None
    groups = basis.precision_of[basis.group_of]
    solution = polished(_loss(plan, basis), groups, evidence, basis.lower, plan.total)
    return replace(fitted, point=solution.point, solution=solution)


def link_of(name: LinkName) -> Logistic | Linear:
    """Return the link that scores are fitted under."""
    return Logistic() if name == "logistic" else Linear()


def fitted_link(settings: LayerSettings) -> LinkName:
    """Return the link that scores are fitted under: bands take the place of a sigmoid afterward."""
    return "linear" if settings.link == "linear" else "logistic"
