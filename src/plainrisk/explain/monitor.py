r"""Drift: has the population moved since the model was fitted?

With shares :math:`p_j` of level j in the old and :math:`q_j` in the new sample, the population stability index (PSI) of
a feature is :math:`\sum_j (q_j - p_j) \ln (q_j / p_j)`; an empty level counts as half a row. The policy states the
limits of a moderate and of a large index, by custom 0.1 and 0.25. The *shift* of a feature is its effect on the mean
score, :math:`\sum_j (q_j - p_j) f_j` with the effect :math:`f_j` of level j, pairs left out. Subscales are compared by
their risks, pairs included. Where outcomes are known, AUC and the gap between mean risk and base rate are compared too.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from plainrisk.form.risks import RiskSums, count_risks
from plainrisk.form.wording import say_levels
from plainrisk.intervals import Placement, Range, newcombe, normal_quantile, wilson
from plainrisk.schema import Limits
from plainrisk.tables import TableResult
from plainrisk.threads import PIECE_ROWS
from plainrisk.totals import added

__all__ = ["Drift", "Performance", "Profile", "drift", "risk_drift"]


def psi(old: Floats, new: Floats) -> Floats:
    """Return what each level adds to the population stability index, from counts.

    >>> round(float(psi(np.array([50.0, 50.0]), np.array([60.0, 40.0])).sum()), 4)
    0.0405
    """
    used = (old > 0) | (new > 0)
    p, q = (np.maximum(c, 0.5) / max(c.sum(), 1.0) for c in (old, new))
    return np.where(used, (q - p) * np.log(q / p), 0.0)


@dataclass
class Profile:
    """Counts of the rows of a sample by level and by risk; rows are added batch by batch.

    Attributes
    ----------
    rows : the number of rows
    counts : by feature, (levels,)
    sums : by part and feature or pair, the sum of the scores
    risks : counts of the risks by cell (`count_risks`): of every part by its number, and last of the model
    risk_sums : the sums of these risks
    levels : by feature, the levels that are counted: those of its shapes and trees, or of its first pair if it has none
    outcomes : risks and outcomes of the rows whose outcome is known; None if there are none
    """

    form: RiskForm
    rows: float = 0.0
    counts: dict[str, Floats] = field(default_factory=dict)
    sums: dict[tuple[str, str], float] = field(default_factory=dict)
    risks: dict[int, Floats] = field(default_factory=dict)
    risk_sums: dict[int, float] = field(default_factory=dict)
    levels: dict[str, Levels] = field(default_factory=dict)
    outcomes: RiskSums | None = None

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
        """Count the rows of a batch, with their outcomes if they are given; some outcomes may be missing."""
        frame = self.form.align(X)
        refuse_other_order(frame, y=y)
        if y is not None:
            self._add_outcomes(frame, column_of(y))
        for start in range(0, frame.n_rows, PIECE_ROWS):
            self._add(frame if frame.n_rows <= PIECE_ROWS else frame.take(start, start + PIECE_ROWS))
        return self

    def __add__(self, other: Profile) -> Profile:
        """Return the counts of the rows of both."""
        return Profile(
            self.form,
            self.rows + other.rows,
            added_by_key(self.counts, other.counts),
            added_by_key(self.sums, other.sums),
            added_by_key(self.risks, other.risks),
            added_by_key(self.risk_sums, other.risk_sums),
            outcomes=added(self.outcomes, other.outcomes),
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

    def _add_outcomes(self, frame: Frame, outcome: Labels) -> None:
        if len(outcome.codes) != frame.n_rows:
            raise DataError(f"drift: there are {len(outcome.codes):,} outcomes for {frame.n_rows:,} rows.")
        with_outcome = np.flatnonzero(outcome.codes >= 0)
        positive = Labels(outcome.codes[with_outcome], outcome.labels).outcomes(self.form.classes) == 1
        if len(with_outcome):
            self.outcomes = added(self.outcomes, RiskSums.of(self.form.risk(frame)[with_outcome], positive))

    def performance(self, level: float = 0.95) -> Performance | None:
        """Return how good the risks are, with intervals; None if no outcome is known."""
        return None if self.outcomes is None else Performance.of_sums(self.outcomes, level)

    @classmethod
    def of_training(cls, form: RiskForm, record: FitRecord | None = None) -> Profile:
        """Return the counts of the training rows: of features from the form, of risks from the record of the fit.

        If the record has the number of rows, weights are scaled to it. A feature that no table counts is left out if
        the record has risks, else it is an error.
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
        """Take the training counts of a feature from its shape, or from a pair if it has none, scaled to `rows`."""
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


def added_by_key(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> dict[Any, Any]:
    """Add two tables of sums key by key."""
    return {key: added(a.get(key), b.get(key)) for key in {**a, **b}}


@dataclass(frozen=True)
class FeatureDrift:
    """One feature: its index, its shift, and by level the old and new shares and what the level adds to the index."""

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
    """One subscale: the index of its risk in ten groups, and its mean risk in the old and in the new rows."""

    subscale: str
    psi: float
    size: str
    old_risk: float
    new_risk: float


@dataclass(frozen=True)
class Performance:
    """How good the risks of a sample are.

    Attributes
    ----------
    rows : the number of rows whose outcome is known
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
        """Compare risks with their outcomes."""
        return cls.of_sums(RiskSums.of(risk, positive), level)

    @classmethod
    def of_sums(cls, sums: RiskSums, level: float) -> Performance:
        """Compare risks with their outcomes, counted without weights."""
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
    features : the largest index first, each small, moderate or large by the limits of the policy
    subscales : the same; "risk" is that of the model, the only one known of training rows
    limits : of a moderate and of a large index
    new_risk : the mean risk of the new rows
    old_performance, new_performance : None where outcomes are not known
    auc_change, gap_change : new minus old, with intervals; None unless both are known
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
        """The drift of the model's risk; None against training rows whose risks the model file does not count."""
        return next((s for s in self.subscales if s.subscale == "risk"), None)

    def _headline(self) -> str:
        moved = "" if self.risk is None else f", mean risk {self.risk.old_risk:.4f} -> {self.risk.new_risk:.4f}"
        return f"Drift of {self.new_rows:,.0f} rows against {self.old_rows:,.0f}{moved}, shifts in {self.unit}"

    def columns(self) -> dict[str, Any]:
        """Return one line per feature, as columns by name."""
        return {name: [getattr(f, name) for f in self.features] for name in ("feature", "psi", "size", "shift")}

    def to_frame(self, like: Any = None, *, levels: bool = False) -> Any:
        """Return a data frame: one line per feature, or one per level with levels=True."""
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
    """Compare new rows with old ones, or with the counts of the training rows in form and record.

    Parameters
    ----------
    new, old : rows, or a `Profile` of them; without old rows, the training rows
    y, old_y : the outcomes of the rows, as in the training data; some may be missing
    record : of the fit, which counts the risks of the training rows
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
    """Compare the probabilities of new rows with those of old ones, from any model.

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
        **_changes(_performance(before, old_y, level), _performance(after, y, level)),
    )


def _probabilities(name: str, values: Any) -> Floats:
    risk = np.asarray(values, dtype=np.float64)
    if risk.ndim != 1 or not len(risk) or not ((risk >= 0) & (risk <= 1)).all():
        raise DataError(f"drift: the {name} probabilities must be one or more numbers from 0 to 1.")
    return risk


def _performance(risk: Floats, y: Any, level: float) -> Performance | None:
    if y is None:
        return None
    outcomes = np.asarray(y)
    if outcomes.shape != risk.shape or not np.isin(outcomes, (0, 1)).all():
        raise DataError(f"drift: the outcomes of {len(risk):,} probabilities must be as many, each 0 or 1.")
    return Performance.of(risk, outcomes == 1, level)


def _changes(old: Performance | None, new: Performance | None) -> dict[str, Any]:
    """Return both performances and their differences."""
    changes: dict[str, Any] = {"old_performance": old, "new_performance": new}
    if old is None or new is None:
        return changes
    # The samples are independent: the intervals are combined as Newcombe does for shares.
    return changes | {"auc_change": newcombe(new.auc, old.auc), "gap_change": newcombe(new.gap, old.gap)}


def _unit(form: RiskForm) -> str:
    if all(rate is not None for rate in _score_rates(form)):
        return "probability"
    return "log odds" if isinstance(form.pool, Alone) and isinstance(form.last_link, Logistic) else "score"


def _score_rates(form: RiskForm) -> list[float | None]:
    """Return the probability that a unit of each part's score is worth; None where that varies."""
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
    """Return the first cells of ten groups with about equal shares."""
    used = np.flatnonzero(counts)
    below = np.cumsum(counts) - counts
    _, first = np.unique(np.floor(10 * below[used] / counts.sum()), return_index=True)
    return np.concatenate([[0], used[first[1:]]])
