"""How a model treats groups of applicants: for the validator, who holds the group of every applicant beside the model.

The model itself never sees the groups. All rows are in the report: those without a group are a group of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from plainrisk._types import Floats, Index
from plainrisk.checks import LEVEL, PROBABILITY, check_parameters, words
from plainrisk.data.columns import Labels
from plainrisk.data.frame import column_of
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.explanation import TableResult, text_table
from plainrisk.explain.options import Adverse
from plainrisk.schema import label_of

__all__ = ["GroupReport", "group_report"]

FEW_ROWS = 30  # a share of fewer rows says little: its interval is over a third wide
NO_GROUP = "(no group)"
GROUP_OPTIONS = {"threshold": PROBABILITY, "adverse": words("positive", "negative"), "level": LEVEL}


@dataclass(frozen=True)
class Range:
    """A figure with its confidence interval; NaN where there is nothing to tell it from."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class GroupFigures:
    """One group.

    Attributes
    ----------
    group, rows : its name and size
    small : whether it has so few rows that its figures say little
    base_rate : share of the positive outcome, Wilson's interval
    mean_risk : mean predicted risk
    gap : mean risk less base rate; calibration in the large, with the interval of the base rate
    auc : with DeLong's interval
    approval : share of applicants on the good side of the threshold, Wilson's interval
    impact : approval rate over that of the reference group, the adverse impact ratio
    difference : approval rate less that of the reference group, Newcombe's interval
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
    difference: Range


@dataclass(frozen=True, repr=False)
class GroupReport(TableResult):
    """All groups beside each other; together they are all rows.

    Attributes
    ----------
    threshold, adverse : who is approved: a risk below the threshold ("positive"), or at least it ("negative")
    level : of the intervals
    reference : the group the others are compared with
    groups : the largest first
    """

    threshold: float
    adverse: Adverse
    level: float
    reference: str
    groups: tuple[GroupFigures, ...]

    def _headline(self) -> str:
        side = "below" if self.adverse == "positive" else "at least"
        return f"GroupReport, approved {side} {self.threshold:g}, compared with group {self.reference!r}"

    def __repr__(self) -> str:
        names = ("group", "rows", "small", "mean_risk", "base_rate", "auc", "approval", "impact")
        columns = self.columns()
        return text_table(self._headline(), {name: columns[name] for name in names})

    def columns(self) -> dict[str, Any]:
        """Return one line per group, as columns by name; intervals as _low and _high."""
        plain = ("group", "rows", "small", "mean_risk")
        columns: dict[str, Any] = {name: [getattr(g, name) for g in self.groups] for name in plain}
        for name in ("base_rate", "gap", "auc", "approval", "impact", "difference"):
            for end, suffix in (("estimate", ""), ("low", "_low"), ("high", "_high")):
                columns[name + suffix] = [getattr(getattr(g, name), end) for g in self.groups]
        return columns

    def plot(self, ax: Any = None) -> Any:
        """Draw the approval rates with intervals; returns the axes."""
        from plainrisk.explain.plots import draw_groups

        return draw_groups(self, ax)


def group_report(
    y: Any,
    risk: Any,
    groups: Any,
    *,
    threshold: float,
    adverse: Adverse = "positive",
    reference: str | None = None,
    level: float = 0.95,
) -> GroupReport:
    """Compare groups: rates, AUC, calibration, approval and the adverse impact ratio.

    Parameters
    ----------
    y : (n,) 0/1 outcomes, 1 the positive one
    risk : (n,) predicted probabilities
    groups : (n,) the group of every applicant; those without one are a group of their own, "(no group)"
    threshold : applicants below it are approved; with adverse="negative", those at or above it
    reference : the group to compare with; default the largest that has a name
    level : of the intervals

    Examples
    --------
    >>> report = group_report([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.7], ["a", "a", "b", "b"], threshold=0.5)
    >>> report.reference, report.groups[1].impact.estimate
    ('a', 0.0)
    """
    check_parameters("group_report", {"threshold": threshold, "adverse": adverse, "level": level}, GROUP_OPTIONS)
    bad, p, column = _numbers("y", y), _numbers("risk", risk), column_of(groups)
    if not (len(bad) == len(p) == len(column.codes)):
        raise DataError(f"y, risk and groups differ in length: {len(bad)}, {len(p)}, {len(column.codes)}.")
    if not len(bad):
        raise DataError("group_report: there are no rows.")
    if not np.isin(bad, (0.0, 1.0)).all():
        raise DataError("y must be 0 or 1; 1 is the positive outcome.")
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError("risk must hold probabilities, from 0 to 1. Pass predict_proba(X)[:, 1].")
    approved = p < threshold if adverse == "positive" else p >= threshold
    z = NormalDist().inv_cdf((1 + level) / 2)
    members = _members(column)
    approvals = {name: wilson(int(approved[rows].sum()), len(rows), z) for name, rows in members.items()}
    named = [name for name in members if name in column.labels] or list(members)
    best = max(named, key=lambda name: len(members[name])) if reference is None else label_of(reference)
    if best not in approvals:
        raise DataError(f"There is no group {best!r}.{did_you_mean(best, approvals)}")
    found = [_figures(n, bad[rows], p[rows], approvals[n], approvals[best], z) for n, rows in members.items()]
    return GroupReport(float(threshold), adverse, level, best, tuple(sorted(found, key=lambda g: -g.rows)))


def _numbers(name: str, values: Any) -> Floats:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"group_report: {name} must hold numbers only.") from None
    if found.ndim != 1:
        raise DataError(f"group_report: {name} must have one dimension, not {found.ndim}.")
    return found


def _members(column: Labels) -> dict[str, Index]:
    """Return the rows of every group that has any; rows without a group are the last group."""
    rest = NO_GROUP
    while rest in column.labels:
        rest = f"({rest})"
    members = {name: np.flatnonzero(column.codes == k) for k, name in enumerate((*column.labels, rest))}
    members[rest] = np.flatnonzero(column.codes < 0)
    return {name: rows for name, rows in members.items() if len(rows)}


def _figures(name: str, bad: Floats, p: Floats, approval: Range, other: Range, z: float) -> GroupFigures:
    base = wilson(int(bad.sum()), len(bad), z)
    mean = float(p.mean())
    return GroupFigures(
        group=name,
        rows=len(bad),
        small=len(bad) < FEW_ROWS,
        base_rate=base,
        mean_risk=mean,
        gap=Range(mean - base.estimate, mean - base.high, mean - base.low),
        auc=_auc(bad, p, z),
        approval=approval,
        impact=Range(1.0, 1.0, 1.0) if approval is other else impact_ratio(approval, other),
        difference=Range(0.0, 0.0, 0.0) if approval is other else newcombe(approval, other),
    )


def wilson(successes: int, n: int, z: float = 1.959963984540054) -> Range:
    """Return a share with Wilson's score interval.

    >>> found = wilson(8, 10)
    >>> round(found.low, 4), round(found.high, 4)
    (0.4902, 0.9433)
    """
    if n == 0:
        return Range(math.nan, math.nan, math.nan)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At the ends the formula is exact but for rounding.
    return Range(share, 0.0 if successes == 0 else middle - half, 1.0 if successes == n else middle + half)


def newcombe(a: Range, b: Range) -> Range:
    """Return the difference of two shares with Newcombe's interval, from the two intervals."""
    gap = a.estimate - b.estimate
    low = gap - math.hypot(a.estimate - a.low, b.high - b.estimate)
    high = gap + math.hypot(a.high - a.estimate, b.estimate - b.low)
    return Range(gap, low, high)


def impact_ratio(a: Range, b: Range) -> Range:
    r"""Return the ratio of two shares with Donner and Zou's interval, from the two intervals.

    The limits :math:`r` solve :math:`(p_a - r\,p_b)^2 = (p_a - a)^2 + r^2 (b - p_b)^2` with the limits a, b of the
    two shares that are worst for the ratio: the method of variance estimates recovery.
    """
    if not b.estimate > 0:
        return Range(math.nan, math.nan, math.nan)
    low = _recovered(a.estimate, b.estimate, a.estimate - a.low, b.high - b.estimate, upper=False)
    high = _recovered(a.estimate, b.estimate, a.high - a.estimate, b.estimate - b.low, upper=True)
    return Range(a.estimate / b.estimate, low, high)


def _recovered(p: float, q: float, dp: float, dq: float, *, upper: bool) -> float:
    square, constant = q * q - dq * dq, p * p - dp * dp
    root = math.sqrt(max(0.0, (p * q) ** 2 - square * constant))
    if upper:
        return (p * q + root) / square if square > 0 else math.inf
    # The smaller root, written so that nothing is lost or divided by where the other share is near 0.
    return max(0.0, constant) / (p * q + root) if p > 0 else 0.0


def _auc(bad: Floats, p: Floats, z: float) -> Range:
    """Return the AUC with DeLong's interval, on the logit scale so that it stays inside [0, 1]."""
    from scipy.stats import rankdata  # slow to load, and only needed here

    n_bad, n_good = int(bad.sum()), int(len(bad) - bad.sum())
    if min(n_bad, n_good) == 0:
        return Range(math.nan, math.nan, math.nan)
    high, low = p[bad == 1], p[bad == 0]
    ranks = rankdata(np.concatenate([high, low]))
    v_bad = (ranks[:n_bad] - rankdata(high)) / n_good  # share of good rows below each bad one
    v_good = 1.0 - (ranks[n_bad:] - rankdata(low)) / n_bad
    auc = float(v_bad.mean())
    if min(n_bad, n_good) < 2 or not 0 < auc < 1:
        return Range(auc, math.nan, math.nan)
    error = math.sqrt(v_bad.var(ddof=1) / n_bad + v_good.var(ddof=1) / n_good) / (auc * (1 - auc))
    logit = math.log(auc / (1 - auc))
    return Range(auc, *(1 / (1 + math.exp(-(logit + side * z * error))) for side in (-1, 1)))
