"""A model over time: ranking, calibration, approvals and shifts by month or quarter, and vintages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np

from plainrisk._types import Array, Bools, Floats, Index
from plainrisk.checks import LEVEL, NOTHING, check_parameters, words
from plainrisk.data.frame import refuse_other_order
from plainrisk.errors import DataError
from plainrisk.explain import Profile
from plainrisk.explain import drift as form_drift
from plainrisk.explain.monitor import Performance, risk_drift
from plainrisk.fit.splits import read_times
from plainrisk.intervals import UNKNOWN, Range, is_small, normal_quantile, wilson
from plainrisk.measure.calibration import calibration_line
from plainrisk.measure.predictions import Predictions
from plainrisk.schema import Limits
from plainrisk.tables import TableResult
from plainrisk.validate.scored import Scored, column_in

__all__ = ["Period", "Periods", "Vintage", "periods"]

EVERY = ("month", "quarter", "year", "value")
OPTIONS = {"every": NOTHING | words(*EVERY), "level": LEVEL}
MARKS = (3, 6, 12, 18, 24, 36, 48, 60, 84, 120)  # months on book at which a vintage is read


@dataclass(frozen=True)
class Period:
    """One month, quarter or year.

    Attributes
    ----------
    period, rows : its name, and the number of rows
    known : the number of rows with a known outcome: base rate, gap, slope and AUC are of these
    small : whether there are so few outcomes that the figures say little
    mean_risk : the mean probability
    base_rate : share of the positive outcome, Wilson's interval
    gap : mean probability less base rate, with the interval of the base rate
    slope : of the calibration line, 1 if calibrated, with a sandwich interval
    auc : with DeLong's interval
    approval : share of approved applicants, Wilson's interval; NaN without a cut-off
    psi, size : population stability index of the probability, and its size in words
    features : the index of every feature
    """

    period: str
    rows: int
    known: int
    small: bool
    mean_risk: float
    base_rate: Range
    gap: Range
    slope: Range
    auc: Range
    approval: Range
    psi: float
    size: str
    features: Mapping[str, float]


@dataclass(frozen=True)
class Vintage:
    """The loans of one period, some months later.

    Attributes
    ----------
    period : when they were made
    months : on book
    at_risk : the number of loans observed for so long without going bad before
    bad : the share that is bad by then (Kaplan and Meier: a loan counts for as long as it was observed)
    expected : the mean probability of the adverse outcome of all loans of the period
    """

    period: str
    months: int
    at_risk: int
    bad: float
    expected: float


@dataclass(frozen=True, repr=False)
class Periods(TableResult):
    """A model over time.

    Attributes
    ----------
    every : "month", "quarter", "year", or "value" where every value is a period
    level : of the intervals
    cutoff : who is approved; None without one
    against : the base of the indices: "training", or the first period if the model has no counts of training rows
    limits : the indices from which a shift is moderate, and large
    periods : in the order of time
    vintages : by period and months on book, if the months of the outcomes were given
    """

    _lines: ClassVar = ("periods", Period)
    every: str
    level: float
    cutoff: float | None
    against: str
    limits: Limits
    periods: tuple[Period, ...]
    vintages: tuple[Vintage, ...] = ()

    def _headline(self) -> str:
        against = "the training rows" if self.against == "training" else self.against
        return f"{len(self.periods)} periods, shifts against {against}, intervals of {self.level:.0%}"

    def columns(self) -> dict[str, Any]:
        """Return one line per period, as columns by name; intervals as _low and _high, features as "psi of"."""
        names = self.periods[0].features
        return super().columns() | {f"psi of {name}": [p.features[name] for p in self.periods] for name in names}

    def to_dict(self) -> Any:
        """Return everything as plain data."""
        return {**asdict(self), "limits": msgspec.structs.asdict(self.limits)}

    def plot(self, axes: Any = None) -> Any:
        """Draw AUC, calibration gap, approval rate and shift over time; returns the axes."""
        from plainrisk.explain.plots import draw_series

        labels = {"auc": "AUC", "gap": "mean risk less base rate", "approval": "approval rate"}
        lines = {label: [getattr(p, name) for p in self.periods] for name, label in labels.items()}
        lines["PSI of the risk"] = [Range(p.psi, math.nan, math.nan) for p in self.periods]
        shown = {label: line for label, line in lines.items() if any(math.isfinite(r.estimate) for r in line)}
        marks = {"mean risk less base rate": (0.0,), "PSI of the risk": (self.limits.moderate, self.limits.large)}
        return draw_series([p.period for p in self.periods], shown, marks, axes)


def periods(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    time: Any,
    every: str | None = None,
    months: Any = None,
    cutoff: float | None = None,
    level: float = 0.95,
) -> Periods:
    """Measure a model month by month: AUC, calibration, approval rate, and shifts of the rows since training.

    Parameters
    ----------
    model : a fitted classifier, or (n,) probabilities
        Shifts of features need a model of ours.
    X : rows
        None where only probabilities are given.
    y : (n,), default=None
        The outcomes, some of which may be missing; None takes the target column of the model's schema, if the rows have
        it.
    time : str or (n,)
        A column of the rows, or when each row happened: dates, text such as 2024-03-31, or numbers.
    every : {"month", "quarter", "year", "value"}, default=None
        The length of a period; None is a month for dates, and every value for numbers.
    months : str or (n,), default=None
        For vintages: the months on book at which a bad loan became bad, or up to which a good one was observed.
    cutoff : float, default=None
        Who is approved; None takes the cut-off of the model's policy, if it has one.
    level : float, default=0.95
        Of the intervals.

    Returns
    -------
    Periods

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    >>> time = ["2024-01"] * 400 + ["2024-02"] * 300 + ["2024-04"] * 300
    >>> found = pr.periods(model, german.frame, german.target, time=time, every="quarter")
    >>> [(p.period, p.rows, p.size) for p in found.periods]
    [('2024-Q1', 700, 'small'), ('2024-Q2', 300, 'small')]
    """
    check_parameters("periods", {"every": every, "level": level}, OPTIONS)
    refuse_other_order(X, time=time, months=months)
    scored = Scored.of("periods", model, X, y, cutoff)
    given = column_in("periods: time", time, X) if isinstance(time, str) else time
    times = read_times(given.to_numpy() if hasattr(given, "to_numpy") else given, len(scored.risk))
    how = every or ("month" if times.dtype.kind == "M" else "value")
    groups = _groups(times, how)
    measure = _Measure(scored, next(iter(groups.values())), level)
    measured = tuple(measure.period(name, rows) for name, rows in groups.items())
    against = "training" if measure.counts_training else measured[0].period
    vintages: list[Vintage] = []
    if months is not None:
        ages = _ages(column_in("periods: months", months, X) if isinstance(months, str) else months, scored)
        for name, rows in groups.items():
            vintages += _vintages(name, scored, rows, ages)
    return Periods(how, level, scored.cutoff, against, measure.limits, measured, tuple(vintages))


def _groups(times: Array, every: str) -> dict[str, Index]:
    """Return the rows of every period, in the order of time."""
    if every == "value":
        values, codes = np.unique(times, return_inverse=True)
        names = [str(v)[:10] if times.dtype.kind == "M" else f"{v:.12g}" for v in values]
    elif times.dtype.kind != "M":
        raise DataError(f"periods: every={every!r} needs dates, and the time holds numbers. Leave it out.")
    else:
        units, codes = np.unique(times.astype("M8[Y]" if every == "year" else "M8[M]"), return_inverse=True)
        if every == "quarter":
            quarters, of_month = np.unique(units.astype(int) // 3, return_inverse=True)
            names, codes = [f"{1970 + q // 4}-Q{q % 4 + 1}" for q in quarters.tolist()], of_month[codes]
        else:
            names = [str(unit) for unit in units]
    return {name: np.flatnonzero(codes == k) for k, name in enumerate(names)}


class _Measure:
    """The measures of a period; shifts are against training if its probabilities are counted, else the first period."""

    def __init__(self, scored: Scored, first: Index, level: float) -> None:
        self.scored, self.level, self.first = scored, level, first
        self.limits = Limits() if scored.form is None else scored.form.schema.policy.drift
        self.counts_training = bool(scored.form and scored.record and scored.record.risks is not None)
        self.before: Profile | None = None
        if scored.form is not None and scored.record is not None and self.counts_training:
            self.before = Profile.of_training(scored.form, scored.record)
        elif scored.form is not None:
            self.before = Profile(scored.form).add(scored.frame.rows(first))

    def period(self, name: str, rows: Index) -> Period:
        """Return the figures of one period."""
        scored, z = self.scored, normal_quantile(self.level)
        risk, known = scored.risk[rows], scored.known[rows]
        positive = scored.positive[rows][known]
        base_rate = gap = slope = auc = approval = UNKNOWN
        if known.any():
            performance = Performance.of(risk[known], positive, self.level)
            base_rate, gap, auc = performance.base_rate, performance.gap, performance.auc
            slope = _slope(risk[known], positive, z)
        if scored.cutoff is not None:
            approval = wilson(int((~scored.refused(risk)).sum()), len(rows), z)
        psi, features = self._shifts(rows)
        return Period(
            period=name,
            rows=len(rows),
            known=int(known.sum()),
            small=is_small(int(known.sum()), int(positive.sum())),
            mean_risk=float(risk.mean()),
            base_rate=base_rate,
            gap=gap,
            slope=slope,
            auc=auc,
            approval=approval,
            psi=psi,
            size=self.limits.size(psi),
            features=features,
        )

    def _shifts(self, rows: Index) -> tuple[float, dict[str, float]]:
        """Return the index of the probability, and of every feature."""
        form, risk = self.scored.form, self.scored.risk
        if form is None or self.before is None:
            moved = risk_drift(risk[rows], risk[self.first]).risk
            return (math.nan if moved is None else moved.psi), {}
        shifts = form_drift(form, Profile(form).add(self.scored.frame.rows(rows)), self.before)
        by_name = {f.feature: f.psi for f in shifts.features}
        features = {name: by_name[name] for name in form.features if name in by_name}
        return (math.nan if shifts.risk is None else shifts.risk.psi), features


def _slope(risk: Floats, positive: Bools, z: float) -> Range:
    """Return the slope of the calibration line with a sandwich interval."""
    line = calibration_line(Predictions.of_rows(positive, risk))
    half = z * math.sqrt(float((line.influence[1] ** 2).sum()))
    return Range(line.slope, line.slope - half, line.slope + half)


def _ages(given: Any, scored: Scored) -> Floats:
    values = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
    if values.shape != scored.risk.shape or values.dtype.kind not in "iuf":
        raise DataError(f"periods: months must be one number for each of the {len(scored.risk):,} rows.")
    ages = values.astype(np.float64)
    wrong = scored.known & ~(ages >= 0)
    if wrong.any():
        raise DataError(
            f"periods: months must be 0 or more where the outcome is known, and row {int(wrong.argmax()):,} "
            "(counting from 0) has none."
        )
    return ages


def _vintages(name: str, scored: Scored, rows: Index, ages: Floats) -> list[Vintage]:
    """Return the loans of a period at every number of months that some of them have reached."""
    rows = rows[scored.known[rows]]
    if not len(rows):
        return []
    age, bad, expected = ages[rows], scored.bad[rows], float(scored.bad_risk[rows].mean())
    marks = [(mark, int((age >= mark).sum())) for mark in MARKS]
    return [Vintage(name, mark, seen, _bad_by(age, bad, mark), expected) for mark, seen in marks if seen]


def _bad_by(age: Floats, bad: Bools, mark: float) -> float:
    """Return the Kaplan-Meier share of loans that are bad by an age."""
    good = 1.0
    for month in np.unique(age[bad & (age <= mark)]):
        good *= 1 - float((bad & (age == month)).sum()) / float((age >= month).sum())
    return 1 - good
