"""How a model treats groups of applicants, with intervals.

For the validator, who holds the group of every applicant beside the model, which never sees it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from plainrisk.data.frame import column_of, frame_like
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.options import Adverse

__all__ = ["GroupFigures", "GroupReport", "Range", "group_report", "impact_ratio", "wilson"]

Floats = npt.NDArray[np.float64]


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
    base_rate: Range
    mean_risk: float
    gap: Range
    auc: Range
    approval: Range
    impact: Range
    difference: Range


@dataclass(frozen=True)
class GroupReport:
    """All groups beside each other.

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

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)

    def to_frame(self, like: Any = None) -> Any:
        """Return a data frame, one line per group."""
        columns: dict[str, list[Any]] = {"group": [g.group for g in self.groups], "rows": [g.rows for g in self.groups]}
        columns["mean_risk"] = [g.mean_risk for g in self.groups]
        for name in ("base_rate", "gap", "auc", "approval", "impact", "difference"):
            for end, suffix in (("estimate", ""), ("low", "_low"), ("high", "_high")):
                columns[name + suffix] = [getattr(getattr(g, name), end) for g in self.groups]
        return frame_like(columns, like)

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
    groups : (n,) the group of every applicant; rows without one are left out
    threshold : float
        Applicants below it are approved; with adverse="negative", those at or above it.
    reference : the group to compare with; default the one with the highest approval rate
    level : float, default=0.95

    Examples
    --------
    >>> report = group_report([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.7], ["a", "a", "b", "b"], threshold=0.5)
    >>> report.reference, report.groups[1].impact.estimate
    ('a', 0.0)
    """
    if adverse not in ("positive", "negative"):
        raise DataError(f"adverse must be 'positive' or 'negative', not {adverse!r}.")
    bad, p = np.asarray(y, dtype=np.float64), np.asarray(risk, dtype=np.float64)
    column = column_of(groups)
    if not (len(bad) == len(p) == len(column.codes)):
        raise DataError(f"y, risk and groups differ in length: {len(bad)}, {len(p)}, {len(column.codes)}.")
    if not np.isin(bad, (0.0, 1.0)).all():
        raise DataError("y must be 0 or 1; 1 is the positive outcome.")
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level!r}.")
    approved = p < threshold if adverse == "positive" else p >= threshold
    z = float(ndtri((1 + level) / 2))
    members = {name: np.flatnonzero(column.codes == k) for k, name in enumerate(column.labels)}
    approvals = {name: wilson(int(approved[rows].sum()), len(rows), z) for name, rows in members.items()}
    best = reference if reference is not None else max(approvals, key=lambda name: approvals[name].estimate)
    if best not in approvals:
        raise DataError(f"There is no group {best!r}.{did_you_mean(best, approvals)}")
    found = [_figures(n, bad[rows], p[rows], approvals[n], approvals[best], z) for n, rows in members.items()]
    return GroupReport(float(threshold), adverse, level, best, tuple(sorted(found, key=lambda g: -g.rows)))


def _figures(name: str, bad: Floats, p: Floats, approval: Range, other: Range, z: float) -> GroupFigures:
    base = wilson(int(bad.sum()), len(bad), z)
    mean = float(p.mean())
    return GroupFigures(
        group=name,
        rows=len(bad),
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
    ends = (float(expit(logit + side * z * error)) for side in (-1, 1))
    return Range(auc, *ends)
