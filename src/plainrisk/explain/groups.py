"""How a model treats groups of applicants, for a validator who knows the group of every applicant.

The model itself never sees the groups. The report has all rows: those without a group form a group of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.checks import LEVEL, PROBABILITY, check_parameters, words
from plainrisk.data.frame import column_of
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.options import Adverse
from plainrisk.intervals import UNKNOWN, Range, auc_range, impact_ratio, is_small, newcombe, normal_quantile, wilson
from plainrisk.schema import label_of
from plainrisk.tables import TableResult, text_table

__all__ = ["GroupReport", "compare_groups"]

FOUR_FIFTHS = 0.8  # an adverse impact ratio below it is, by custom, evidence of adverse impact
RANGES = ("base_rate", "gap", "auc", "approval", "impact", "difference", "opportunity", "opportunity_difference")
GROUP_OPTIONS = {"cutoff": PROBABILITY, "adverse": words("positive", "negative"), "level": LEVEL}


@dataclass(frozen=True)
class GroupFigures:
    """One group.

    Attributes
    ----------
    group, rows : its name and size
    small : whether it has too few rows, or too few of one outcome, for reliable figures
    base_rate : share of the positive outcome, with Wilson's interval
    mean_risk : mean predicted risk
    gap : mean risk minus base rate (calibration in the large), with the interval of the base rate
    auc : with DeLong's interval
    approval : share of applicants who are approved, with Wilson's interval
    impact : the adverse impact ratio, approval rate over that of the reference group
    below_four_fifths : whether this ratio is below 0.8
    difference : approval rate minus that of the reference group, with Newcombe's interval
    opportunity : approval rate among the applicants whose outcome was good, with Wilson's interval
    opportunity_difference : the same minus that of the reference group, with Newcombe's interval (0: equal opportunity)

    Without outcomes, `base_rate`, `gap`, `auc` and the two opportunities are NaN.
    """

    group: str
    rows: int
    small: bool
    base_rate: Range
    mean_risk: float
    gap: Range
    auc: Range
    approval: Range
    impact: Range
    below_four_fifths: bool
    difference: Range
    opportunity: Range
    opportunity_difference: Range


@dataclass(frozen=True, repr=False)
class GroupReport(TableResult):
    """The figures of all groups; together they are all rows.

    Attributes
    ----------
    cutoff, adverse : who is approved: a risk below the cut-off ("positive"), or at least it ("negative")
    level : of the intervals
    reference : the group the others are compared with
    groups : the largest first
    """

    cutoff: float
    adverse: Adverse
    level: float
    reference: str
    groups: tuple[GroupFigures, ...]

    def _headline(self) -> str:
        side = "below" if self.adverse == "positive" else "at least"
        return f"GroupReport, approved {side} {self.cutoff:g}, compared with group {self.reference!r}"

    def __repr__(self) -> str:
        names = ("group", "rows", "small", "mean_risk", "base_rate", "auc", "approval", "impact", "opportunity")
        columns = self.columns()
        return text_table(self._headline(), {name: columns[name] for name in names})

    def columns(self) -> dict[str, Any]:
        """Return one line per group, as columns by name; intervals as _low and _high."""
        plain = ("group", "rows", "small", "mean_risk", "below_four_fifths")
        columns: dict[str, Any] = {name: [getattr(g, name) for g in self.groups] for name in plain}
        for name in RANGES:
            for end, suffix in (("estimate", ""), ("low", "_low"), ("high", "_high")):
                columns[name + suffix] = [getattr(getattr(g, name), end) for g in self.groups]
        return columns

    def plot(self, ax: Any = None) -> Any:
        """Draw the approval rates with intervals; returns the axes."""
        from plainrisk.explain.plots import draw_groups

        return draw_groups(self, ax)


def compare_groups(
    y: Any,
    risk: Any,
    groups: Any,
    *,
    cutoff: float,
    adverse: Adverse = "positive",
    reference: str | None = None,
    level: float = 0.95,
) -> GroupReport:
    """Compare groups: approval, the adverse impact ratio, and with outcomes equal opportunity, calibration and AUC.

    Parameters
    ----------
    y : (n,) 0/1 outcomes, 1 the positive one; None where they are not known
    risk : (n,) predicted probabilities
    groups : (n,) the group of every applicant, or `Labels`; those without one are a group of their own, "(no group)"
    cutoff : applicants below it are approved; with adverse="negative", those at or above it
    reference : the group to compare with; default the largest that has a name
    level : of the intervals

    Examples
    --------
    >>> report = compare_groups([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.7], ["a", "a", "b", "b"], cutoff=0.5)
    >>> report.reference, report.groups[1].impact.estimate
    ('a', 0.0)
    """
    check_parameters("fairness", {"cutoff": cutoff, "adverse": adverse, "level": level}, GROUP_OPTIONS)
    p, column = _numbers("risk", risk), column_of(groups)
    bad = None if y is None else _numbers("y", y)
    if len(p) != len(column.codes) or (bad is not None and len(bad) != len(p)):
        lengths = [len(values) for values in (bad, p, column.codes) if values is not None]
        raise DataError(f"y, risk and groups differ in length: {', '.join(map(str, lengths))}.")
    if not len(p):
        raise DataError("fairness: there are no rows.")
    if bad is not None and not np.isin(bad, (0.0, 1.0)).all():
        raise DataError("y must be 0 or 1; 1 is the positive outcome.")
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError("risk must hold probabilities, from 0 to 1. Pass predict_proba(X)[:, 1].")
    rows = _Rows(p, None if bad is None else bad == 1, cutoff, adverse == "positive", normal_quantile(level))
    members = column.groups()
    named = [name for name in members if name in column.labels] or list(members)
    best = max(named, key=lambda name: len(members[name])) if reference is None else label_of(reference)
    if best not in members:
        raise DataError(f"There is no group {best!r}.{did_you_mean(best, members)}")
    figures = [rows.figures(name, index, members[best]) for name, index in members.items()]
    return GroupReport(float(cutoff), adverse, level, best, tuple(sorted(figures, key=lambda g: -g.rows)))


def _numbers(name: str, values: Any) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"fairness: {name} must hold numbers only.") from None
    if numbers.ndim != 1:
        raise DataError(f"fairness: {name} must have one dimension, not {numbers.ndim}.")
    return numbers


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows: risks, whether the outcome is the positive one (None if not known), and how approval is decided."""

    risk: Floats
    positive: Bools | None
    cutoff: float
    positive_is_bad: bool
    z: float

    def approval(self, rows: Index, *, good_only: bool = False) -> Range:
        """Return the share of approved among rows, or among those of them with the good outcome."""
        if good_only:
            if self.positive is None:
                return UNKNOWN
            rows = rows[self.positive[rows] != self.positive_is_bad]
        below = self.risk[rows] < self.cutoff
        return wilson(int((below if self.positive_is_bad else ~below).sum()), len(rows), self.z)

    def figures(self, name: str, rows: Index, reference: Index) -> GroupFigures:
        """Return the figures of one group, compared with the reference group."""
        positive, mean, is_reference = self.positive, float(self.risk[rows].mean()), rows is reference
        positives = None if positive is None else int(positive[rows].sum())
        base = UNKNOWN if positives is None else wilson(positives, len(rows), self.z)
        approval, other = self.approval(rows), self.approval(reference)
        impact = Range(1.0, 1.0, 1.0) if is_reference else impact_ratio(approval, other)
        opportunity = self.approval(rows, good_only=True)
        equal = newcombe(opportunity, self.approval(reference, good_only=True))
        same = Range(0.0, 0.0, 0.0)
        return GroupFigures(
            group=name,
            rows=len(rows),
            small=is_small(len(rows), positives),
            base_rate=base,
            mean_risk=mean,
            gap=Range(mean - base.estimate, mean - base.high, mean - base.low),
            auc=UNKNOWN if positive is None else auc_range(positive[rows], self.risk[rows], self.z),
            approval=approval,
            impact=impact,
            below_four_fifths=impact.estimate < FOUR_FIFTHS,
            difference=same if is_reference else newcombe(approval, other),
            opportunity=opportunity,
            opportunity_difference=same if is_reference and positive is not None else equal,
        )
