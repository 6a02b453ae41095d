r"""Monitoring: has the population moved, and how does the model treat groups of applicants?

With shares :math:`p_j` of level j in the old and :math:`q_j` in the new sample, the population stability index of a
feature is :math:`\sum_j (q_j - p_j) \ln (q_j / p_j)`; by custom one looks from 0.1 on and acts from 0.25 on. Its
*shift* is what the move does to the model: :math:`\sum_j (q_j - p_j) f_j` with the level's effect :math:`f_j`. An
empty level counts as half a row.

The group report is for the validator, who holds the group of every applicant beside the model, which never sees it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from plainrisk._types import Counts, Floats, Index
from plainrisk.data.frame import Frame, column_of, frame_like
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.atoms import Atoms, atoms_of
from plainrisk.explain.explanation import TableResult, text_table
from plainrisk.explain.options import Adverse
from plainrisk.explain.overview import score_rates
from plainrisk.explain.reference import pool_weights
from plainrisk.form import Alone, Logistic, Part, RiskForm, Table
from plainrisk.threads import PIECE_ROWS

__all__ = ["Drift", "GroupReport", "Profile", "drift", "group_report"]

GRID = 1000  # bins of [0, 1] in which risks are counted


def psi(old: Floats, new: Floats) -> Floats:
    """Return each level's part of the population stability index, from counts.

    >>> round(float(psi(np.array([50.0, 50.0]), np.array([60.0, 40.0])).sum()), 4)
    0.0405
    """
    used = (old > 0) | (new > 0)
    p, q = (np.maximum(c, 0.5) / max(c.sum(), 1.0) for c in (old, new))
    return np.where(used, (q - p) * np.log(q / p), 0.0)


@dataclass
class Profile:
    """How the rows of a sample are spread over a form's levels; add rows batch by batch.

    Attributes
    ----------
    rows : how many
    counts : by feature, (atoms,)
    sums : (part, feature) to the summed scores
    risks : (parts + 1, GRID) counts of the parts' risks and of the risk itself; None for training counts
    risk_sums : (parts + 1,)
    """

    form: RiskForm
    rows: float = 0.0
    counts: dict[str, Floats] = field(default_factory=dict)
    sums: dict[tuple[str, str], float] = field(default_factory=dict)
    risks: Counts | None = None
    risk_sums: Floats | None = None
    atoms: dict[str, Atoms] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Profile of {self.rows:,.0f} rows in {len(self.atoms)} features"

    def __post_init__(self) -> None:
        self.atoms = atoms_of(self.form)

    def add(self, X: Any) -> Profile:
        """Count the rows of a batch too."""
        frame = self.form.align(X)
        for start in range(0, frame.n_rows, PIECE_ROWS):
            self._add(frame if frame.n_rows <= PIECE_ROWS else frame.take(start, start + PIECE_ROWS))
        return self

    def _add(self, frame: Frame) -> None:
        form, n_parts = self.form, len(self.form.parts)
        if self.risks is None or self.risk_sums is None:
            self.risks, self.risk_sums = np.zeros((n_parts + 1, GRID), np.int64), np.zeros(n_parts + 1)
        for name, atoms in self.atoms.items():
            found = np.bincount(atoms.levels.codes(frame, name), minlength=len(atoms.levels))
            self.counts[name] = self.counts.get(name, np.zeros(len(found))) + found
        for part in form.parts:
            terms = part.terms(frame, form.schema) if isinstance(part, Part) else {}
            for name, values in terms.items():
                self.sums[part.name, name] = self.sums.get((part.name, name), 0.0) + float(values.sum())
        risks = np.column_stack([form.part_risks(frame), form.risk(frame)])
        for k, risk in enumerate(risks.T):
            self.risks[k] += np.bincount(np.minimum((GRID * risk).astype(np.intp), GRID - 1), minlength=GRID)
        self.risk_sums += risks.sum(axis=0)
        self.rows += frame.n_rows

    @classmethod
    def of_training(cls, form: RiskForm) -> Profile:
        """Return the training rows as the form counts them: features only, since it does not keep the risks."""
        found = cls(form)
        for part in form.parts:
            for name, shape in part.shapes.items() if isinstance(part, Part) else ():
                weights = np.asarray(shape.weights)
                if not isinstance(shape, Table) or shape.levels != found.atoms[name].levels or weights.sum() <= 0:
                    raise DataError(
                        f"The form has no training counts of feature {name!r} to compare with. Give the old rows."
                    )
                found.counts[name] = weights
                found.sums[part.name, name] = float(weights @ np.asarray(shape.scores))
                found.rows = float(weights.sum())
        if not found.counts:
            raise DataError("The form has no training counts to compare with. Give the old rows.")
        return found


@dataclass(frozen=True)
class FeatureDrift:
    """One feature; old and new shares, and parts of the index, one per level."""

    feature: str
    psi: float
    shift: float
    levels: tuple[str, ...]
    old: tuple[float, ...]
    new: tuple[float, ...]
    parts: tuple[float, ...]


@dataclass(frozen=True)
class SubscaleDrift:
    """One subscale: the index of its risk in ten groups, and its mean risk then and now."""

    subscale: str
    psi: float
    old_risk: float
    new_risk: float


@dataclass(frozen=True, repr=False)
class Drift(TableResult):
    """Two samples compared.

    Attributes
    ----------
    old_rows, new_rows : float
    unit : of the shifts: "probability", "log odds" or "score"
    features : the largest index first
    subscales : the same, with "risk" for the output; empty against training counts
    """

    old_rows: float
    new_rows: float
    unit: str
    features: tuple[FeatureDrift, ...]
    subscales: tuple[SubscaleDrift, ...]

    def _headline(self) -> str:
        return f"Drift of {self.new_rows:,.0f} rows against {self.old_rows:,.0f}, shifts in {self.unit}"

    def columns(self) -> dict[str, Any]:
        """Return one line per feature, as columns by name."""
        return {name: [getattr(f, name) for f in self.features] for name in ("feature", "psi", "shift")}

    def to_frame(self, like: Any = None, *, levels: bool = False) -> Any:
        """Return a data frame: one line per feature, or with levels=True one per level."""
        if not levels:
            return super().to_frame(like)
        lines = [
            (f.feature, *line) for f in self.features for line in zip(f.levels, f.old, f.new, f.parts, strict=True)
        ]
        names = ("feature", "level", "old_share", "new_share", "psi")
        return frame_like({n: list(c) for n, c in zip(names, zip(*lines, strict=True), strict=True)}, like)

    def plot(self, ax: Any = None) -> Any:
        """Draw the indices; returns the axes."""
        from plainrisk.explain.plots import draw_drift

        return draw_drift(self, ax=ax)


def drift(form: RiskForm, new: Any, old: Any = None) -> Drift:
    """Compare new rows with old ones, or with the training rows as the form counts them.

    Parameters
    ----------
    new, old : rows, or a `Profile` of them that was added up batch by batch
    """
    after = new if isinstance(new, Profile) else Profile(form).add(new)
    before = Profile.of_training(form) if old is None else old if isinstance(old, Profile) else Profile(form).add(old)
    if not before.rows or not after.rows:
        raise DataError("drift: a sample has no rows.")
    features = [_feature(form, name, before, after) for name in after.counts if name in before.counts]
    return Drift(
        old_rows=before.rows,
        new_rows=after.rows,
        unit=_unit(form),
        features=tuple(sorted(features, key=lambda f: -f.psi)),
        subscales=tuple(_subscales(form, before, after)),
    )


def _unit(form: RiskForm) -> str:
    if all(rate is not None for rate in score_rates(form)):
        return "probability"
    return "log odds" if isinstance(form.pool, Alone) and isinstance(form.last_link, Logistic) else "score"


def _feature(form: RiskForm, name: str, before: Profile, after: Profile) -> FeatureDrift:
    parts = psi(before.counts[name], after.counts[name])
    rates = score_rates(form) if _unit(form) == "probability" else pool_weights(form)
    shift = 0.0
    for part, rate in zip(form.parts, rates, strict=True):
        key = (part.name, name)
        if key in after.sums and rate is not None:
            shift += rate * (after.sums[key] / after.rows - before.sums[key] / before.rows)
    return FeatureDrift(
        feature=name,
        psi=float(parts.sum()),
        shift=shift,
        levels=after.atoms[name].levels.labels,
        old=tuple((before.counts[name] / before.counts[name].sum()).tolist()),
        new=tuple((after.counts[name] / after.counts[name].sum()).tolist()),
        parts=tuple(parts.tolist()),
    )


def _subscales(form: RiskForm, before: Profile, after: Profile) -> list[SubscaleDrift]:
    if before.risks is None or after.risks is None or before.risk_sums is None or after.risk_sums is None:
        return []
    names = [*(part.name for part in form.parts), "risk"]
    first = 1 if isinstance(form.pool, Alone) else 0  # the one part's risk is the risk
    found = []
    for k, name in enumerate(names[first:], first):
        groups = _equal_groups(before.risks[k])
        old, new = (np.add.reduceat(risks[k].astype(np.float64), groups) for risks in (before.risks, after.risks))
        means = float(before.risk_sums[k] / before.rows), float(after.risk_sums[k] / after.rows)
        found.append(SubscaleDrift(name, float(psi(old, new).sum()), *means))
    return sorted(found, key=lambda s: -s.psi)


def _equal_groups(counts: Counts) -> Index:
    """Return the first grid bins of ten groups that hold about equal shares."""
    used = np.flatnonzero(counts)
    below = np.cumsum(counts) - counts
    _, first = np.unique((10 * below[used]) // counts.sum(), return_index=True)
    return np.concatenate([[0], used[first[1:]]])


# ---- groups


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


@dataclass(frozen=True, repr=False)
class GroupReport(TableResult):
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

    def _headline(self) -> str:
        side = "below" if self.adverse == "positive" else "at least"
        return f"GroupReport, approved {side} {self.threshold:g}, compared with group {self.reference!r}"

    def __repr__(self) -> str:
        names = ("group", "rows", "mean_risk", "base_rate", "auc", "approval", "impact")
        columns = self.columns()
        return text_table(self._headline(), {name: columns[name] for name in names})

    def columns(self) -> dict[str, Any]:
        """Return one line per group, as columns by name; intervals as _low and _high."""
        columns: dict[str, Any] = {n: [getattr(g, n) for g in self.groups] for n in ("group", "rows", "mean_risk")}
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
    groups : (n,) the group of every applicant; rows without one are left out
    threshold : applicants below it are approved; with adverse="negative", those at or above it
    reference : the group to compare with; default the one with the highest approval rate
    level : of the intervals

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
    z = NormalDist().inv_cdf((1 + level) / 2)
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
    return Range(auc, *(1 / (1 + math.exp(-(logit + side * z * error))) for side in (-1, 1)))
