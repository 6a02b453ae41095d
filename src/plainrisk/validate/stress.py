"""Sensitivity and stress: which inputs move decisions, and what happens to approvals and bad rates if they change."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.checks import SEED, check_parameters, number, whole
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, did_you_mean
from plainrisk.form import Categories, Part, RiskForm
from plainrisk.form.beyond import is_measured
from plainrisk.schema import Feature, label_of
from plainrisk.tables import TableResult
from plainrisk.validate.grouping import Bands, groups_by
from plainrisk.validate.scored import Scored

__all__ = ["FeatureSensitivity", "Sensitivity", "Shock", "Stress", "StressedGroup", "is_coded", "sensitivity", "stress"]

SENSITIVITY = {"change": number(above=0, at_most=1), "repeats": whole(1, 1000), "seed": SEED}
FINEST, COARSEST = -6, 6  # powers of ten to which values may be rounded
ALL_ROWS, TOGETHER = "(all rows)", "(all within their rounding)"


@dataclass(frozen=True)
class Shock:
    """A change of one feature for every applicant; missing and special values stay.

    Attributes
    ----------
    feature : whose
    percent, amount : what is added, in percent of the value or as it is; or
    level : the category that everybody gets
    """

    feature: str
    percent: float = 0.0
    amount: float = 0.0
    level: str | None = None

    @classmethod
    def read(cls, text: str, form: RiskForm) -> Shock:
        """Read "income=-10%", "income=+500" or "housing=rent"."""
        name, equals, change = text.rpartition("=")
        if not equals or not change:
            raise DataError(f"stress: write a shock as income=-10%, income=+500 or housing=rent, not {text!r}.")
        if name not in form.features:
            raise DataError(f"stress: the model reads no feature {name!r}.{did_you_mean(name, form.features)}")
        if form.schema.features[name].kind == "categorical":
            return cls(name, level=_known_level(form, name, change))
        if re.fullmatch(r"[+-](\d+\.?\d*|\.\d+)%?", change) is None:
            raise DataError(f"stress: {text}: a number changes by +500, -500, +10% or -10%; the sign is needed.")
        if change.endswith("%"):
            return cls(name, percent=float(change[:-1]))
        return cls(name, amount=float(change))

    def apply(self, form: RiskForm, frame: Frame) -> Frame:
        """Return aligned rows after the change; a value never falls below the feature's lower bound."""
        if self.level is not None:
            return _with(frame, self.feature, np.array([self.level] * frame.n_rows, dtype=object))
        values = frame.numbers(self.feature)
        return _moved(
            frame, form.schema.features[self.feature], self.feature, values * self.percent / 100 + self.amount
        )


def is_coded(feature: Feature) -> bool:
    """Whether the numbers of a feature are codes with words, of which a tenth more means nothing."""
    return bool(feature.labels.keys() - set(map(label_of, feature.special_values)))


def _known_level(form: RiskForm, name: str, level: str) -> str:
    shapes = [p.shapes[name].levels for p in form.parts if isinstance(p, Part) and name in p.shapes]
    levels = next((lv for lv in shapes if isinstance(lv, Categories)), None)
    if levels is not None and levels.level_of(level) == len(levels) - 1:
        labels = [*levels.categories, *(label for own in levels.groups.values() for label in own)]
        raise DataError(f"stress: feature {name!r} has no level {level!r}.{did_you_mean(level, labels)}")
    return level


def _with(frame: Frame, name: str, values: Any) -> Frame:
    return replace(frame, columns={**frame.columns, name: values})


def _moved(frame: Frame, feature: Feature, name: str, change: Floats) -> Frame:
    """Return rows with the measured values of a feature moved, not below its lower bound."""
    values = frame.numbers(name).copy()
    measured = is_measured(feature, values)
    values[measured] += change[measured]
    if feature.lower_bound is not None:
        values[measured] = np.maximum(values[measured], feature.lower_bound)
    return _with(frame, name, values)


# ---- stress


@dataclass(frozen=True)
class StressedGroup:
    """All rows or a group, before and after.

    Attributes
    ----------
    group, rows : its name and size
    risk, risk_after : mean probability of the adverse outcome
    approval, approval_after : share of approved applicants
    bad_rate, bad_rate_after : expected share of the adverse outcome among the approved; NaN where nobody is
    now_refused, now_approved : applicants whose decision changes
    """

    group: str
    rows: int
    risk: float
    risk_after: float
    approval: float
    approval_after: float
    bad_rate: float
    bad_rate_after: float
    now_refused: int
    now_approved: int


@dataclass(frozen=True, repr=False)
class Stress(TableResult):
    """What a change of the applicants does to decisions by the same model and cut-off.

    Attributes
    ----------
    shocks : in words
    cutoff : who is approved
    beyond : by feature, the rows whose changed value lies outside the range of training, where the model was never seen
    groups : all rows, then each group
    """

    shocks: tuple[str, ...]
    cutoff: float
    beyond: dict[str, int]
    groups: tuple[StressedGroup, ...]

    def _headline(self) -> str:
        outside = ", ".join(f"{n:,} rows beyond training in {name}" for name, n in self.beyond.items())
        return f"{', '.join(self.shocks)} at the cut-off {self.cutoff:g}" + (f" ({outside})" if outside else "")

    def columns(self) -> dict[str, Any]:
        """Return one line per group, as columns by name."""
        return {name: [getattr(g, name) for g in self.groups] for name in StressedGroup.__dataclass_fields__}


def stress(
    model: Any,
    X: Any,
    shocks: str | Sequence[str],
    *,
    by: Any = None,
    bands: Bands = None,
    cutoff: float | None = None,
) -> Stress:
    """Change the applicants, and see what happens to approvals and to the expected bad rate, of groups, too.

    Expected are the model's own probabilities: a shock shows what the model would do, not whether it would be right.

    Parameters
    ----------
    model : a model of ours
    X : rows
    shocks : str or list of str
        All at once: "income=-10%", "income=+500", "housing=rent". Missing and special values stay.
    by : str, tuple of str, or (n,), default=None
        Columns or groups, as in `fairness`.
    bands : list of float, int, or dict by column, default=None
    cutoff : float, default=None
        Who is approved; None takes the cut-off of the model's policy.

    Returns
    -------
    Stress

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(2000, seed=2)
    >>> model = pr.make_classifier("ARM1", credit.schema).fit(credit.frame, credit.target)
    >>> found = pr.stress(model, credit.frame, "income=-10%", cutoff=0.2)
    >>> found.groups[0].now_approved, found.groups[0].approval_after < found.groups[0].approval
    (0, True)
    """
    scored = Scored.of("stress", model, X, None, cutoff)
    form, texts = scored.our_form, [shocks] if isinstance(shocks, str) else list(shocks)
    if not texts:
        raise DataError("stress: give at least one shock, such as income=-10%.")
    read = [Shock.read(text, form) for text in texts]
    before = after = form.align(scored.frame)
    for shock in read:
        after = shock.apply(form, after)
    risk = form.risk(after)
    members = {ALL_ROWS: np.arange(len(risk))}
    if by is not None:
        members |= groups_by("stress", X, by, bands, form).groups()
    groups = tuple(_stressed(name, scored, risk, rows) for name, rows in members.items())
    changed = [shock.feature for shock in read if shock.level is None]
    beyond = {name: _beyond(form, name, before, after) for name in dict.fromkeys(changed)}
    return Stress(tuple(texts), scored.need_cutoff, {name: n for name, n in beyond.items() if n}, groups)


def _stressed(name: str, scored: Scored, risk: Floats, rows: Any) -> StressedGroup:
    refused, later = scored.refused()[rows], scored.refused(risk)[rows]
    bad, bad_after = scored.bad_risk[rows], (risk if scored.adverse == "positive" else 1 - risk)[rows]

    def mean(values: Floats, kept: Bools) -> float:
        return float(values[kept].mean()) if kept.any() else math.nan

    return StressedGroup(
        group=name,
        rows=len(rows),
        risk=float(bad.mean()),
        risk_after=float(bad_after.mean()),
        approval=float(1 - refused.mean()),
        approval_after=float(1 - later.mean()),
        bad_rate=mean(bad, ~refused),
        bad_rate_after=mean(bad_after, ~later),
        now_refused=int((later & ~refused).sum()),
        now_approved=int((refused & ~later).sum()),
    )


def _beyond(form: RiskForm, name: str, before: Frame, after: Frame) -> int:
    """Count the rows that a change has moved out of the range of training."""
    if name not in form.ranges:
        return 0
    low, high = form.ranges[name]
    inside = [(v >= low) & (v <= high) for v in (before.numbers(name), after.numbers(name))]
    return int((inside[0] & ~inside[1]).sum())


# ---- sensitivity


@dataclass(frozen=True)
class FeatureSensitivity:
    """What a feature does to decisions; shares of all rows, NaN where a feature has no numbers.

    Attributes
    ----------
    feature : its name, or all together within their rounding
    shuffled : decisions that change if applicants exchange their values at random: how much the feature decides
    up, down : decisions that change if all its values are greater, or less, by the same share; NaN for codes with words
    approval_up, approval_down : by how much the approval rate then changes
    rounding : the power of ten to which all its values are rounded
    rounded : decisions that change within this rounding
    """

    feature: str
    shuffled: float
    up: float
    down: float
    approval_up: float
    approval_down: float
    rounding: float
    rounded: float


@dataclass(frozen=True, repr=False)
class Sensitivity(TableResult):
    """Which inputs move decisions, the one that moves most first; last all of them within their rounding.

    Attributes
    ----------
    rows, cutoff : whose decisions
    change : the share by which values are moved up and down
    features : one line each
    """

    rows: int
    cutoff: float
    change: float
    features: tuple[FeatureSensitivity, ...]

    def _headline(self) -> str:
        return (
            f"Share of {self.rows:,} decisions that change, at the cut-off {self.cutoff:g}; up, down: {self.change:.0%}"
        )

    def columns(self) -> dict[str, Any]:
        """Return one line per feature, as columns by name."""
        return {name: [getattr(f, name) for f in self.features] for name in FeatureSensitivity.__dataclass_fields__}


def sensitivity(
    model: Any, X: Any, *, change: float = 0.1, cutoff: float | None = None, repeats: int = 5, seed: int = 0
) -> Sensitivity:
    """Measure which input moves decisions most, and how many decisions depend on the rounding of inputs.

    Parameters
    ----------
    model : a model of ours
    X : rows
    change : float, default=0.1
        The share by which all values of a number are moved, up and down.
    cutoff : float, default=None
        Who is approved; None takes the cut-off of the model's policy.
    repeats : int, default=5
        How often values are exchanged, and moved within their rounding.
    seed : int, default=0

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(2000, seed=2)
    >>> model = pr.make_classifier("ARM1", credit.schema).fit(credit.frame, credit.target)
    >>> found = pr.sensitivity(model, credit.frame, cutoff=0.2)
    >>> found.features[0].feature, found.features[-1].feature
    ('bureau_score', '(all within their rounding)')
    """
    check_parameters("sensitivity", {"change": change, "repeats": repeats, "seed": seed}, SENSITIVITY)
    scored = Scored.of("sensitivity", model, X, None, cutoff)
    trials = _Trials(scored, float(change), int(repeats), int(seed))
    lines = sorted((trials.line(name) for name in scored.our_form.features), key=lambda f: -f.shuffled)
    return Sensitivity(len(scored.risk), scored.need_cutoff, float(change), (*lines, trials.together()))


class _Trials:
    """Decisions on changed rows, compared with those on the rows as they are."""

    def __init__(self, scored: Scored, change: float, repeats: int, seed: int) -> None:
        self.scored, self.form, self.change = scored, scored.our_form, change
        self.frame, self.refused = self.form.align(scored.frame), scored.refused()
        self.repeats, self.seed = range(repeats), seed

    def flips(self, frame: Frame) -> tuple[float, float]:
        """Return the share of decisions that change, and by how much the approval rate does."""
        refused = self.scored.refused(self.form.risk(frame))
        return float((refused != self.refused).mean()), float(self.refused.mean() - refused.mean())

    def line(self, name: str) -> FeatureSensitivity:
        """Try out one feature."""
        feature, nan = self.form.schema.features[name], math.nan
        n, column = self.frame.n_rows, self.frame.column(name)
        orders = [np.random.default_rng((self.seed, k)).permutation(n) for k in self.repeats]
        shuffled = float(np.mean([self.flips(_with(self.frame, name, column[order]))[0] for order in orders]))
        if feature.kind == "categorical":
            return FeatureSensitivity(name, shuffled, nan, nan, nan, nan, nan, nan)
        values = self.frame.numbers(name)
        if is_coded(feature):
            return FeatureSensitivity(name, shuffled, nan, nan, nan, nan, nan, nan)
        moves = [self.flips(_moved(self.frame, feature, name, sign * self.change * values)) for sign in (1, -1)]
        (up, approval_up), (down, approval_down) = moves
        rounding = _rounding(values[is_measured(feature, values)])
        rounded = float(np.mean([self.flips(self._rounded(self.frame, name, k))[0] for k in self.repeats]))
        return FeatureSensitivity(name, shuffled, up, down, approval_up, approval_down, rounding, rounded)

    def together(self) -> FeatureSensitivity:
        """Move all numbers within their rounding."""
        shares = []
        for k in self.repeats:
            frame = self.frame
            for name in self.form.features:
                frame = self._rounded(frame, name, k)
            shares.append(self.flips(frame)[0])
        nan = math.nan
        return FeatureSensitivity(TOGETHER, nan, nan, nan, nan, nan, nan, float(np.mean(shares)))

    def _rounded(self, frame: Frame, name: str, k: int) -> Frame:
        """Return rows as they may have been before a number was rounded."""
        feature = self.form.schema.features[name]
        if feature.kind == "categorical" or is_coded(feature):
            return frame
        values = frame.numbers(name)
        half = _rounding(values[is_measured(feature, values)]) / 2
        column = self.form.features.index(name)
        moved = np.random.default_rng((self.seed, k, column)).uniform(-half, half, len(values))
        return _moved(frame, feature, name, moved)


def _rounding(values: Floats) -> float:
    """Return the largest power of ten of which all values are multiples; 0 if there is none.

    >>> _rounding(np.array([1200.0, 900.0])), _rounding(np.array([0.25, 3.0])), _rounding(np.array([1 / 3]))
    (100.0, 0.01, 0.0)
    """
    largest = np.abs(values).max(initial=0.0)
    for power in range(COARSEST, FINEST - 1, -1):
        if 10.0**power > largest:
            continue
        steps = values / 10.0**power
        if (np.abs(steps - np.round(steps)) <= 1e-9 * np.maximum(1.0, np.abs(steps))).all():
            return 10.0**power
    return 0.0
