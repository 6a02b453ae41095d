r"""Monitoring: has the population moved?

With shares :math:`p_j` of level j in the old and :math:`q_j` in the new sample, the population stability index of a
feature is :math:`\sum_j (q_j - p_j) \ln (q_j / p_j)`; the policy says from where on it is moderate (by custom 0.1)
and large (0.25). The *shift* of a feature is what the move does to the model: :math:`\sum_j (q_j - p_j) f_j` with the
level's effect :math:`f_j`, without what the feature does in pairs; the risks of subscales are compared with all that
they add up. An empty level counts as half a row. With outcomes, performance is compared, too: AUC, and mean risk
less base rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Bools, Floats, Index
from plainrisk.checks import LEVEL, check_parameters
from plainrisk.data.columns import Labels
from plainrisk.data.frame import Frame, column_of, frame_like, refuse_other_order
from plainrisk.errors import DataError
from plainrisk.explain.atoms import atoms_of
from plainrisk.explain.reference import pool_weights
from plainrisk.form import Alone, FitRecord, Levels, Linear, Logistic, Part, RiskForm, Table
from plainrisk.form.beyond import widen_ranges
from plainrisk.form.risks import RiskSums, count_risks
from plainrisk.form.wording import say_levels
from plainrisk.intervals import Placement, Range, newcombe, normal_quantile, wilson
from plainrisk.schema import Limits
from plainrisk.tables import TableResult
from plainrisk.threads import PIECE_ROWS
from plainrisk.totals import added

__all__ = ["Drift", "Performance", "Profile", "SeenRows", "drift", "risk_drift"]


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
    counts : by feature, (levels,)
    sums : (part, feature or pair) to the summed scores
    risks : the counts of probabilities by cell (`count_risks`): of every part by its number, and last of the model
    risk_sums : the sums of these probabilities
    levels : those of each feature that are counted: what its shapes and trees tell apart, or its first pair if none do
    judged : risks and outcomes of the rows whose outcome is known; None while there are none
    """

    form: RiskForm
    rows: float = 0.0
    counts: dict[str, Floats] = field(default_factory=dict)
    sums: dict[tuple[str, str], float] = field(default_factory=dict)
    risks: dict[int, Floats] = field(default_factory=dict)
    risk_sums: dict[int, float] = field(default_factory=dict)
    levels: dict[str, Levels] = field(default_factory=dict)
    judged: RiskSums | None = None

    def __repr__(self) -> str:
        return f"Profile of {self.rows:,.0f} rows in {len(self.levels)} features"

    def __post_init__(self) -> None:
        replace = msgspec.structs.replace
        parts = tuple(replace(p, pairs=()) if isinstance(p, Part) else p for p in self.form.parts)
        of_shapes = {name: atoms.levels for name, atoms in atoms_of(replace(self.form, parts=parts)).items()}
        pairs = [pair for p in self.form.parts if isinstance(p, Part) for pair in reversed(p.pairs)]
        paired = {n: lv for pair in pairs for n, lv in zip(pair.features, pair.levels, strict=True)}
        self.levels = {name: of_shapes.get(name) or paired[name] for name in self.form.features}

    def add(self, X: Any, y: Any = None) -> Profile:
        """Count the rows of a batch too; outcomes may be given, and some of them missing."""
        frame = self.form.align(X)
        refuse_other_order(frame, y=y)
        if y is not None:
            self._judge(frame, column_of(y))
        for start in range(0, frame.n_rows, PIECE_ROWS):
            self._add(frame if frame.n_rows <= PIECE_ROWS else frame.take(start, start + PIECE_ROWS))
        return self

    def __add__(self, other: Profile) -> Profile:
        """Return the counts of the rows of both, which may have been counted apart."""
        return Profile(
            self.form,
            self.rows + other.rows,
            _added(self.counts, other.counts),
            _added(self.sums, other.sums),
            _added(self.risks, other.risks),
            _added(self.risk_sums, other.risk_sums),
            judged=added(self.judged, other.judged),
        )

    def _add(self, frame: Frame) -> None:
        form = self.form
        for name, levels in self.levels.items():
            counts = np.bincount(levels.codes(frame, name), minlength=len(levels))
            self.counts[name] = self.counts.get(name, np.zeros(len(counts))) + counts
        for part in form.parts:
            terms = part.terms(frame, form.schema) if isinstance(part, Part) else {}
            for name, values in terms.items():
                self.sums[part.name, name] = self.sums.get((part.name, name), 0.0) + float(values.sum())
        for k, risk in enumerate([*form.part_risks(frame).T, form.risk(frame)]):
            self.risks[k] = self.risks.get(k, 0.0) + count_risks(risk)
            self.risk_sums[k] = self.risk_sums.get(k, 0.0) + float(risk.sum())
        self.rows += frame.n_rows

    def _judge(self, frame: Frame, outcome: Labels) -> None:
        if len(outcome.codes) != frame.n_rows:
            raise DataError(f"drift: there are {len(outcome.codes):,} outcomes for {frame.n_rows:,} rows.")
        with_outcome = np.flatnonzero(outcome.codes >= 0)
        positive = Labels(outcome.codes[with_outcome], outcome.labels).outcomes(self.form.classes) == 1
        if len(with_outcome):
            self.judged = added(self.judged, RiskSums.of(self.form.risk(frame)[with_outcome], positive))

    def performance(self, level: float = 0.95) -> Performance | None:
        """Return how good the risks were, with intervals; None where no outcome is known."""
        return None if self.judged is None else Performance.of_sums(self.judged, level)

    @classmethod
    def of_training(cls, form: RiskForm, record: FitRecord | None = None) -> Profile:
        """Return the training rows: features as the form counts them, probabilities as the record of the fit does.

        Weights count by their ratios if a record has the number of rows. A feature that no table counts is
        left out if there are probabilities; without these it is an error.
        """
        profile, risks = cls(form), None if record is None else record.risks
        parts = [part for part in form.parts if isinstance(part, Part)]
        shaped = {name for part in parts for name in part.shapes}
        for part in parts:
            for name in part.features:
                if name in part.shapes or name not in shaped:
                    profile._add_training(part, name, None if record is None else record.rows, needed=risks is None)
        if record is not None and risks is not None:
            last, counts = len(form.parts), risks.counts()
            profile.rows = float(record.rows)
            profile.risks[last] = counts * (profile.rows / counts.sum())
            profile.risk_sums[last] = risks.mean * profile.rows
        if not profile.rows:
            raise DataError("The form has no training counts to compare with. Give the old rows.")
        return profile

    def _add_training(self, part: Part, name: str, rows: int | None, *, needed: bool) -> None:
        """Take the training counts of a feature from its shape, or from a pair if it has none, as of so many rows."""
        shape, levels = part.shapes.get(name), self.levels[name]
        counted = [(shape.levels, np.asarray(shape.weights))] if isinstance(shape, Table) else []
        if shape is None:
            counted = [(pair.levels[axis], pair.level_weights(axis)) for _, axis, pair in part.pairs_with(name)]
        weights = next((w for lv, w in counted if lv == levels and w.sum() > 0), None)
        if weights is None:
            if needed:
                raise DataError(
                    f"The form has no training counts of feature {name!r} to compare with. Give the old rows."
                )
            return
        self.rows = float(rows or weights.sum())
        self.counts[name] = weights * (self.rows / weights.sum())
        if shape is not None:
            self.sums[part.name, name] = float(self.counts[name] @ np.asarray(shape.scores))


def _added(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> dict[Any, Any]:
    """Add two tables of sums key by key."""
    return {key: added(one.get(key), other.get(key)) for key in {**one, **other}}


class SeenRows:
    """Whether rows are those of training: as many, with the same least and greatest value of every continuous feature.

    Tables of rows without weights have counted them, and are then asked, too: as many rows in every level of every
    feature. A form keeps no rows, so this is not a proof. Rows may be added batch by batch.

    Parameters
    ----------
    record : of the fit, which has the number of rows; None where there is none, and counts say it

    Attributes
    ----------
    rows : how many were added
    """

    def __init__(self, form: RiskForm, record: FitRecord | None) -> None:
        self.form, self.rows = form, 0
        shapes = {n: s for p in form.parts if isinstance(p, Part) for n, s in p.shapes.items() if isinstance(s, Table)}
        counted = {name: (shape.levels, np.asarray(shape.weights)) for name, shape in shapes.items()}
        totals = [round(float(weights.sum())) for _, weights in counted.values()]
        self._trained = record.rows if record is not None else max(totals, default=0)
        # Sums of weights are not counts if they are not whole numbers or do not add up to the number of rows.
        whole = (np.allclose(weights, weights.round(), rtol=0, atol=1e-6) for _, weights in counted.values())
        self._known = counted if all(whole) and set(totals) <= {self._trained} else {}
        self._counts = {name: np.zeros(len(levels)) for name, (levels, _) in self._known.items()}
        self._ranges: dict[str, tuple[float, float]] = {}

    def add(self, X: Any) -> SeenRows:
        """Look at the rows of a batch too."""
        frame = self.form.align(X)
        self.rows += frame.n_rows
        if self.rows > self._trained:
            return self
        for name, (levels, _) in self._known.items():
            self._counts[name] += np.bincount(levels.codes(frame, name), minlength=len(levels))
        widen_ranges(self._ranges, self.form.schema, frame, self.form.ranges)
        return self

    def __add__(self, other: SeenRows) -> SeenRows:
        """Return what was seen of the rows of both."""
        both = copy(self)
        both.rows += other.rows
        both._counts = _added(self._counts, other._counts)
        ends = [*self._ranges.items(), *other._ranges.items()]
        both._ranges = {
            name: (min(low for n, (low, _) in ends if n == name), max(high for n, (_, high) in ends if n == name))
            for name in {**self._ranges, **other._ranges}
        }
        return both

    @property
    def are_all(self) -> bool:
        """Whether the rows that were added are all rows of training."""
        if not self.rows or self.rows != self._trained or not (self._known or self.form.ranges):
            return False
        alike = (np.allclose(self._counts[n], weights, rtol=0, atol=1e-6) for n, (_, weights) in self._known.items())
        return self._ranges == self.form.ranges and all(alike)


@dataclass(frozen=True)
class FeatureDrift:
    """One feature; old and new shares, and parts of the index, one per level."""

    feature: str
    psi: float
    size: str
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
    size: str
    old_risk: float
    new_risk: float


@dataclass(frozen=True)
class Performance:
    """How good the risks of a sample were.

    Attributes
    ----------
    rows : those whose outcome is known
    mean_risk : of these rows
    base_rate : share of the positive outcome, Wilson's interval
    gap : mean risk less base rate, with the interval of the base rate
    auc : with DeLong's interval
    """

    rows: int
    mean_risk: float
    base_rate: Range
    gap: Range
    auc: Range

    @classmethod
    def of(cls, risk: Floats, positive: Bools, level: float) -> Performance:
        """Judge risks by their outcomes."""
        return cls.of_sums(RiskSums.of(risk, positive), level)

    @classmethod
    def of_sums(cls, sums: RiskSums, level: float) -> Performance:
        """Judge risks that were counted by outcome, none of them weighted."""
        risk, weight, rows, z = sums.risk, sums.weight, int(sums.rows.sum()), normal_quantile(level)
        mean, base = float(risk @ weight) / rows, wilson(int(sums.rows[sums.bad].sum()), rows, z)
        gap = Range(mean - base.estimate, mean - base.high, mean - base.low)
        auc = Placement.of(sums.bad, risk, weight, np.sqrt(weight), sums.rows).range(z)
        return cls(rows, mean, base, gap, auc)


@dataclass(frozen=True, repr=False)
class Drift(TableResult):
    """Two samples compared.

    Attributes
    ----------
    old_rows, new_rows : float
    unit : of the shifts: "probability", "log odds" or "score"
    features : the largest index first, with the size of the shift by the limits of the policy
    subscales : the same, with "risk" for the output, which alone is known of the training rows
    limits : from where on an index is moderate, and large
    new_risk : the mean risk of the new rows
    old_performance, new_performance : where outcomes are known
    auc_change, gap_change : new less old, with intervals, where both are known
    """

    old_rows: float
    new_rows: float
    unit: str
    features: tuple[FeatureDrift, ...]
    subscales: tuple[SubscaleDrift, ...]
    new_risk: float
    limits: Limits
    old_performance: Performance | None = None
    new_performance: Performance | None = None
    auc_change: Range | None = None
    gap_change: Range | None = None

    @property
    def risk(self) -> SubscaleDrift | None:
        """The shift of the risk itself; None against the training rows of a file that does not count their risks."""
        return next((s for s in self.subscales if s.subscale == "risk"), None)

    def _headline(self) -> str:
        moved = "" if self.risk is None else f", mean risk {self.risk.old_risk:.4f} -> {self.risk.new_risk:.4f}"
        return f"Drift of {self.new_rows:,.0f} rows against {self.old_rows:,.0f}{moved}, shifts in {self.unit}"

    def columns(self) -> dict[str, Any]:
        """Return one line per feature, as columns by name."""
        return {name: [getattr(f, name) for f in self.features] for name in ("feature", "psi", "size", "shift")}

    def to_frame(self, like: Any = None, *, levels: bool = False) -> Any:
        """Return a data frame: one line per feature, or with levels=True one per level."""
        if not levels:
            return super().to_frame(like)
        lines = [
            (f.feature, *line) for f in self.features for line in zip(f.levels, f.old, f.new, f.parts, strict=True)
        ]
        names = ("feature", "level", "old_share", "new_share", "psi")
        return frame_like({n: list(c) for n, c in zip(names, zip(*lines, strict=True), strict=True)}, like)

    def to_dict(self) -> Any:
        """Return everything as plain data."""
        return {**asdict(self), "limits": msgspec.structs.asdict(self.limits)}

    def plot(self, ax: Any = None) -> Any:
        """Draw the indices; returns the axes."""
        from plainrisk.explain.plots import draw_drift

        return draw_drift(self, ax=ax)


def drift(
    form: RiskForm,
    new: Any,
    old: Any = None,
    *,
    y: Any = None,
    old_y: Any = None,
    record: FitRecord | None = None,
    level: float = 0.95,
) -> Drift:
    """Compare new rows with old ones, or with the training rows as form and record count them.

    Parameters
    ----------
    new, old : rows, or a `Profile` of them that was added up batch by batch
    y, old_y : the outcomes of the rows, as the form knows them; some may be missing
    record : of the fit, which counts the probabilities of the training rows
    level : of the intervals of performance
    """
    check_parameters("drift", {"level": level}, {"level": LEVEL})
    after = new if isinstance(new, Profile) else Profile(form).add(new, y)
    if old is None:
        before = Profile.of_training(form, record)
    else:
        before = old if isinstance(old, Profile) else Profile(form).add(old, old_y)
    if any(profile.form != form for profile in (before, after)):
        raise DataError("drift: a Profile counts the levels of another model. Make it with this model's form.")
    if not before.rows or not after.rows:
        raise DataError("drift: a sample has no rows.")
    features = [_feature(form, name, before, after) for name in after.counts if name in before.counts]
    return Drift(
        old_rows=before.rows,
        new_rows=after.rows,
        unit=_unit(form),
        features=tuple(sorted(features, key=lambda f: -f.psi)),
        subscales=tuple(_subscales(form, before, after)),
        new_risk=after.risk_sums[len(form.parts)] / after.rows,
        limits=form.schema.policy.drift,
        **_changes(before.performance(level), after.performance(level)),
    )


def risk_drift(new: Any, old: Any, *, y: Any = None, old_y: Any = None, level: float = 0.95) -> Drift:
    """Compare the probabilities of new rows with those of old ones, whatever model they come from.

    Parameters
    ----------
    new, old : (n,), (m,) probabilities
    y, old_y : their outcomes, 0/1, where they are known
    level : of the intervals of performance
    """
    check_parameters("drift", {"level": level}, {"level": LEVEL})
    after, before = _probabilities("new", new), _probabilities("old", old)
    limits = Limits()
    means = float(before.mean()), float(after.mean())
    shift = _risk_shift("risk", count_risks(before), count_risks(after), *means, limits)
    return Drift(
        old_rows=float(len(before)),
        new_rows=float(len(after)),
        unit="probability",
        features=(),
        subscales=(shift,),
        new_risk=float(after.mean()),
        limits=limits,
        **_changes(_judged(before, old_y, level), _judged(after, y, level)),
    )


def _probabilities(name: str, values: Any) -> Floats:
    risk = np.asarray(values, dtype=np.float64)
    if risk.ndim != 1 or not len(risk) or not ((risk >= 0) & (risk <= 1)).all():
        raise DataError(f"drift: the {name} probabilities must be one or more numbers from 0 to 1.")
    return risk


def _judged(risk: Floats, y: Any, level: float) -> Performance | None:
    if y is None:
        return None
    outcomes = np.asarray(y)
    if outcomes.shape != risk.shape or not np.isin(outcomes, (0, 1)).all():
        raise DataError(f"drift: the outcomes of {len(risk):,} probabilities must be as many, each 0 or 1.")
    return Performance.of(risk, outcomes == 1, level)


def _changes(then: Performance | None, now: Performance | None) -> dict[str, Any]:
    """Return both performances, and how they differ."""
    changes: dict[str, Any] = {"old_performance": then, "new_performance": now}
    if then is None or now is None:
        return changes
    # Two samples apart: the intervals are combined as Newcombe does for shares.
    return changes | {"auc_change": newcombe(now.auc, then.auc), "gap_change": newcombe(now.gap, then.gap)}


def _unit(form: RiskForm) -> str:
    if all(rate is not None for rate in _score_rates(form)):
        return "probability"
    return "log odds" if isinstance(form.pool, Alone) and isinstance(form.last_link, Logistic) else "score"


def _score_rates(form: RiskForm) -> list[float | None]:
    """Return what a unit of each part's score is in probability, None where that is not one number."""
    last, link = 1.0, None if isinstance(form.pool, Alone) else form.pool.link
    if link is not None:
        if not isinstance(link, Linear):
            return [None] * len(form.parts)
        last = link.slope
    weights = pool_weights(form)
    return [
        last * weight * part.link.slope if isinstance(part.link, Linear) else None
        for part, weight in zip(form.parts, weights, strict=True)
    ]


def _feature(form: RiskForm, name: str, before: Profile, after: Profile) -> FeatureDrift:
    parts = psi(before.counts[name], after.counts[name])
    rates = _score_rates(form) if _unit(form) == "probability" else pool_weights(form)
    shift = 0.0
    for part, rate in zip(form.parts, rates, strict=True):
        key = (part.name, name)
        if key in after.sums and rate is not None:
            shift += rate * (after.sums[key] / after.rows - before.sums[key] / before.rows)
    return FeatureDrift(
        feature=name,
        psi=float(parts.sum()),
        size=form.schema.policy.drift.size(float(parts.sum())),
        shift=shift,
        levels=say_levels(form.schema.features[name], after.levels[name]),
        old=tuple((before.counts[name] / before.counts[name].sum()).tolist()),
        new=tuple((after.counts[name] / after.counts[name].sum()).tolist()),
        parts=tuple(parts.tolist()),
    )


def _subscales(form: RiskForm, before: Profile, after: Profile) -> list[SubscaleDrift]:
    names = [*(part.name for part in form.parts), "risk"]
    first = 1 if isinstance(form.pool, Alone) else 0  # the one part's risk is the risk
    drifts = []
    for k in range(first, len(names)):
        if k in before.risks:
            means = before.risk_sums[k] / before.rows, after.risk_sums[k] / after.rows
            drifts.append(_risk_shift(names[k], before.risks[k], after.risks[k], *means, form.schema.policy.drift))
    return sorted(drifts, key=lambda s: -s.psi)


def _risk_shift(
    name: str, before: Floats, after: Floats, old_mean: float, new_mean: float, limits: Limits
) -> SubscaleDrift:
    """Compare two samples of risks in ten groups of about equal shares of the old one."""
    groups = _equal_groups(before)
    index = float(psi(np.add.reduceat(before, groups), np.add.reduceat(after, groups)).sum())
    return SubscaleDrift(name, index, limits.size(index), float(old_mean), float(new_mean))


def _equal_groups(counts: Floats) -> Index:
    """Return the first cells of ten groups that hold about equal shares."""
    used = np.flatnonzero(counts)
    below = np.cumsum(counts) - counts
    _, first = np.unique(np.floor(10 * below[used] / counts.sum()), return_index=True)
    return np.concatenate([[0], used[first[1:]]])
