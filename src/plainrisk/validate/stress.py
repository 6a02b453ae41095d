"""Sensitivity and stress: which inputs move decisions, and what changed applicants do to approvals and bad rates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.checks import SEED, check_parameters, number, whole
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, did_you_mean
from plainrisk.form import Categories, RiskForm
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
    """A change of one feature for every applicant: a percentage, an amount or a new category.

    Missing and special values stay.
    """

    feature: str
    percent: float = 0.0
    amount: float = 0.0
    level: str | None = None

    @classmethod
    def read(cls, text: str, form: RiskForm) -> Shock:
        """Parse "income=-10%", "income=+500" or "housing=rent"."""
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
        change = frame.numbers(self.feature) * self.percent / 100 + self.amount
        return _moved(frame, form.schema.features[self.feature], self.feature, change)


def is_coded(feature: Feature) -> bool:
    """Whether the numbers of a feature are codes with labels, so that adding a tenth has no meaning."""
    return bool(feature.labels.keys() - set(map(label_of, feature.special_values)))


def _known_level(form: RiskForm, name: str, level: str) -> str:
    levels = next((s.levels for s in form.shapes_of(name) if isinstance(s.levels, Categories)), None)
    if levels is not None and levels.level_of(level) == len(levels) - 1:
        labels = [*levels.categories, *(label for group in levels.groups.values() for label in group)]
        raise DataError(f"stress: feature {name!r} has no level {level!r}.{did_you_mean(level, labels)}")
    return level


def _with(frame: Frame, name: str, values: Any) -> Frame:
    return replace(frame, columns={**frame.columns, name: values})


def _moved(frame: Frame, feature: Feature, name: str, change: Floats) -> Frame:
    """Return rows with a change added to the measured values of a feature, limited by its lower bound."""
    values = frame.numbers(name).copy()
    measured = is_measured(feature, values)
    values[measured] += change[measured]
    if feature.lower_bound is not None:
        values[measured] = np.maximum(values[measured], feature.lower_bound)
    return _with(frame, name, values)


# ---- stress


@dataclass(frozen=True)
class StressedGroup:
    """All rows, or a group of them, before and after the change.

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
    """Decisions on changed applicants, by the same model and cut-off.

    Attributes
    ----------
    shocks : the changes, as they were given
    cutoff : who is approved
    beyond : by feature, the number of rows whose changed value lies outside the range of the training rows
    groups : all rows, then each group
    """

    _lines: ClassVar = ("groups", StressedGroup)
    shocks: tuple[str, ...]
    cutoff: float
    beyond: dict[str, int]
    groups: tuple[StressedGroup, ...]

    def _headline(self) -> str:
        outside = ", ".join(f"{n:,} rows beyond training in {name}" for name, n in self.beyond.items())
        return f"{', '.join(self.shocks)} at the cut-off {self.cutoff:g}" + (f" ({outside})" if outside else "")


def stress(
    model: Any,
    X: Any,
    shocks: str | Sequence[str],
    *,
    by: Any = None,
    bands: Bands = None,
    cutoff: float | None = None,
) -> Stress:
    """Change the applicants, and measure approvals and the expected bad rate, overall and by group.

    Bad rates are expected by the model's own probabilities: they show what the model would do, not whether it would be
    right.

    Parameters
    ----------
    model : a model of ours
    X : rows
    shocks : str or list of str
        Changes that are made together: "income=-10%", "income=+500", "housing=rent". Missing and special values stay.
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
    """How decisions depend on a feature: shares of all rows, NaN if a feature has no numbers.

    Attributes
    ----------
    feature : its name; for the last line, all features within their rounding
    shuffled : decisions that change if its values are shuffled among the applicants
    up, down : decisions that change if all its values rise, or fall, by the same percentage; NaN for codes with labels
    approval_up, approval_down : the change of the approval rate then
    rounding : the power of ten to which all its values are rounded
    rounded : decisions that change within this rounding
    """

    feature: str
    shuffled: float = math.nan
    up: float = math.nan
    down: float = math.nan
    approval_up: float = math.nan
    approval_down: float = math.nan
    rounding: float = math.nan
    rounded: float = math.nan


@dataclass(frozen=True, repr=False)
class Sensitivity(TableResult):
    """Which inputs move decisions.

    Attributes
    ----------
    rows, cutoff : the number of decisions, and who is approved
    change : the share by which values are moved up and down
    features : the one that moves most decisions first; last, all of them within their rounding
    """

    _lines: ClassVar = ("features", FeatureSensitivity)
    rows: int
    cutoff: float
    change: float
    features: tuple[FeatureSensitivity, ...]

    def _headline(self) -> str:
        return (
            f"Share of {self.rows:,} decisions that change, at the cut-off {self.cutoff:g}; up, down: {self.change:.0%}"
        )


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
        How often values are shuffled, and moved within their rounding.
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
    trials = _Trials(scored, scored.our_form.align(scored.frame), float(change), range(repeats), int(seed))
    lines = sorted((trials.line(name) for name in scored.our_form.features), key=lambda f: -f.shuffled)
    together = FeatureSensitivity(TOGETHER, rounded=trials.flips_within_rounding(scored.our_form.features))
    return Sensitivity(len(scored.risk), scored.need_cutoff, float(change), (*lines, together))


@dataclass(frozen=True)
class _Trials:
    """Decisions on changed rows, compared with those on the original rows."""

    scored: Scored
    frame: Frame
    change: float
    repeats: range
    seed: int

    def flips(self, frame: Frame) -> tuple[float, float]:
        """Return the share of decisions that change, and the change of the approval rate."""
        before, after = self.scored.refused(), self.scored.refused(self.scored.our_form.risk(frame))
        return float((after != before).mean()), float(before.mean() - after.mean())

    def line(self, name: str) -> FeatureSensitivity:
        """Change one feature in every way."""
        feature, column = self.scored.our_form.schema.features[name], self.frame.column(name)
        orders = [np.random.default_rng((self.seed, k)).permutation(self.frame.n_rows) for k in self.repeats]
        shuffled = float(np.mean([self.flips(_with(self.frame, name, column[order]))[0] for order in orders]))
        if not _has_measurements(feature):
            return FeatureSensitivity(name, shuffled)
        values = self.frame.numbers(name)
        moves = [self.flips(_moved(self.frame, feature, name, sign * self.change * values)) for sign in (1, -1)]
        (up, approval_up), (down, approval_down) = moves
        rounding, rounded = _rounding(feature, values), self.flips_within_rounding([name])
        return FeatureSensitivity(name, shuffled, up, down, approval_up, approval_down, rounding, rounded)

    def flips_within_rounding(self, names: Sequence[str]) -> float:
        """Return the share of decisions that change on rows as they may have been before numbers were rounded."""
        form, shares = self.scored.our_form, []
        for k in self.repeats:
            frame = self.frame
            for name in names:
                feature = form.schema.features[name]
                if _has_measurements(feature):
                    half = _rounding(feature, frame.numbers(name)) / 2
                    rng = np.random.default_rng((self.seed, k, form.features.index(name)))
                    frame = _moved(frame, feature, name, rng.uniform(-half, half, frame.n_rows))
            shares.append(self.flips(frame)[0])
        return float(np.mean(shares))


def _has_measurements(feature: Feature) -> bool:
    return feature.kind != "categorical" and not is_coded(feature)


def _rounding(feature: Feature, values: Floats) -> float:
    """Return the largest power of ten that divides all measured values, or 0 if there is none.

    >>> [_rounding(Feature(), np.array(values)) for values in ([1200.0, 900.0], [0.25, 3.0], [1 / 3])]
    [100.0, 0.01, 0.0]
    """
    values = values[is_measured(feature, values)]
    largest = np.abs(values).max(initial=0.0)
    for power in range(COARSEST, FINEST - 1, -1):
        if 10.0**power > largest:
            continue
        steps = values / 10.0**power
        if (np.abs(steps - np.round(steps)) <= 1e-9 * np.maximum(1.0, np.abs(steps))).all():
            return 10.0**power
    return 0.0
