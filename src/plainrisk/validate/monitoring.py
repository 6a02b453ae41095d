"""Monitoring: new rows compared with the limits in the model's policy, and a history of the results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from plainrisk.checks import LEVEL, check_parameters
from plainrisk.errors import DataError
from plainrisk.explain import drift as form_drift
from plainrisk.explain.monitor import Drift, Performance
from plainrisk.files import read_text, write_text
from plainrisk.form import form_hash
from plainrisk.form.beyond import unusual
from plainrisk.intervals import Range, is_small, newcombe, normal_quantile, wilson
from plainrisk.tables import TableResult
from plainrisk.validate.quality import weights_in_training
from plainrisk.validate.scored import Scored
from plainrisk.validate.weak_spots import promised_auc

__all__ = ["Monitoring", "MonitoringCheck", "monitor"]

GROUPS = 10  # of probabilities, whose index is compared
STATES = ("crossed", "watch", "too few rows", "within")
SIZE_LIMIT = 64 * 2**20  # bytes of a history


@dataclass(frozen=True)
class MonitoringCheck:
    """A figure and its limit.

    Attributes
    ----------
    figure : "shift", "missing", "unseen", "AUC", "gap" or "approval"
    feature : whose; empty for the probability
    value, low, high : the figure with its interval, if it has one
    baseline : what it is compared with: training, the value that the policy states, or for the AUC what the
        probabilities of the rows imply; NaN for shifts
    limit : the value at which the limit is crossed
    state : "crossed" if the limit is crossed beyond chance; "too few rows" if chance may explain it; "watch" for a
        moderate shift; else "within"
    """

    figure: str
    feature: str
    value: float
    low: float
    high: float
    baseline: float
    limit: float
    state: str

    @property
    def name(self) -> str:
        """The figure and the feature."""
        return f"{self.figure} of {self.feature}" if self.feature else self.figure


@dataclass(frozen=True, repr=False)
class Monitoring(TableResult):
    """New rows compared with the limits of the model.

    Attributes
    ----------
    label : of the rows, such as their month
    model : the SHA-256 of the form
    rows, known : the number of rows, and of those with a known outcome
    level : of the intervals
    checks : the crossed limits first
    history : the results of earlier runs and of this one, as the history file has them
    """

    _lines: ClassVar = ("checks", MonitoringCheck)
    label: str
    model: str
    rows: int
    known: int
    level: float
    checks: tuple[MonitoringCheck, ...]
    history: tuple[Mapping[str, Any], ...] = ()

    @property
    def crossed(self) -> tuple[str, ...]:
        """The limits that were crossed."""
        return tuple(check.name for check in self.checks if check.state == "crossed")

    def _headline(self) -> str:
        word = f"{len(self.crossed)} limits crossed" if self.crossed else "No limit crossed"
        return f"{word} in {self.rows:,} rows ({self.known:,} outcomes known), {len(self.checks)} checks"

    def record(self) -> dict[str, Any]:
        """Return the line of the history file for this result."""
        names = ("value", "low", "high", "limit", "state")
        checks = {c.name: {name: _without_nan(getattr(c, name)) for name in names} for c in self.checks}
        return {"label": self.label, "model": self.model, "rows": self.rows, "known": self.known, "checks": checks}

    def to_dict(self) -> Any:
        """Return everything as plain data."""
        return {**super().to_dict(), "crossed": list(self.crossed)}

    def plot(self, axes: Any = None) -> Any:
        """Draw the history of the figures of the probability, with their limits; returns the axes."""
        from plainrisk.explain.plots import draw_series

        past = self.history or (self.record(),)
        names = ("shift", "AUC", "gap", "approval")
        lines = {name: [_range(run["checks"].get(name)) for run in past] for name in names}
        shown = {name: line for name, line in lines.items() if any(math.isfinite(r.estimate) for r in line)}
        marks: dict[str, tuple[float, ...]] = {c.name: (c.limit,) for c in self.checks}
        marks |= {c.name: (c.limit, 2 * c.baseline - c.limit) for c in self.checks if c.name in ("gap", "approval")}
        return draw_series([run["label"] for run in past], shown, marks, axes)


def _without_nan(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _range(check: Mapping[str, Any] | None) -> Range:
    values = [math.nan if check is None or check[n] is None else check[n] for n in ("value", "low", "high")]
    return Range(*values)


def monitor(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    cutoff: float | None = None,
    label: str = "",
    history: str | Path | None = None,
    level: float = 0.99,
) -> Monitoring:
    """Compare new rows with the limits in the model's policy.

    The figures are shifts of the probability and of features, missing and unseen values and, if there are outcomes and
    a cut-off, AUC, calibration gap and approval rate. A limit counts as crossed only if chance does not explain it.

    Parameters
    ----------
    model : a model of ours
        The limits are in its policy (`policy.drift`); ``annotate`` changes them.
    X : rows
    y : (n,), default=None
        The outcomes, some of which may be missing; None takes the target column of the model's schema, if the rows have
        it.
    cutoff : float, default=None
        Who is approved; None takes the cut-off of the model's policy, if it has one.
    label : str, default=""
        The name of the rows in the history, such as their month.
    history : path, default=None
        A file of JSON lines to which this result is appended; it is created if it does not exist.
    level : float, default=0.99
        Of the intervals, and of what counts as chance. It is high since many figures are checked.

    Returns
    -------
    Monitoring

    Examples
    --------
    >>> import plainrisk as pr
    >>> credit = pr.datasets.make_credit(2000, seed=2, backend="polars")
    >>> model = pr.make_classifier("ARM1", credit.schema).fit(credit.frame, credit.target)
    >>> pr.monitor(model, credit.frame, credit.target).crossed
    ()
    >>> poorer = credit.frame.sort("bureau_score").head(500)
    >>> pr.monitor(model, poorer).crossed[:2]
    ('shift', 'shift of bureau_score')
    """
    check_parameters("monitor", {"level": level}, {"level": LEVEL})
    scored = Scored.of("monitor", model, X, y, cutoff)
    past = () if history is None else _read_history(history)
    checks = sorted(_Checks(scored, float(level)), key=lambda check: STATES.index(check.state))
    digest, known = form_hash(scored.our_form), int(scored.known.sum())
    monitoring = Monitoring(label, digest, len(scored.risk), known, float(level), tuple(checks))
    if history is None:
        return monitoring
    monitoring = replace(monitoring, history=(*past, monitoring.record()))
    write_text(history, "".join(json.dumps(run, ensure_ascii=False) + "\n" for run in monitoring.history))
    return monitoring


def _read_history(path: str | Path) -> tuple[dict[str, Any], ...]:
    """Return the results in a history file; none if there is no file."""
    if not Path(path).exists():
        return ()
    runs = []
    for number, line in enumerate(read_text(path, limit=SIZE_LIMIT, error=DataError).splitlines(), start=1):
        try:
            run = json.loads(line)
            good = isinstance(run["label"], str) and isinstance(run["checks"], dict)
        except (ValueError, KeyError, TypeError):
            good = False
        if not good:
            raise DataError(f"{path}: line {number} was not written by monitor. Give another file.")
        runs.append(run)
    return tuple(runs)


class _Checks:
    """All figures of some rows, compared with their limits."""

    def __init__(self, scored: Scored, level: float) -> None:
        self.scored, self.form, self.z = scored, scored.our_form, normal_quantile(level)
        self.level, self.limits = level, self.form.schema.policy.drift
        self.rows = len(scored.risk)

    def __iter__(self) -> Iterator[MonitoringCheck]:
        yield from self._shifts()
        yield from self._values()
        yield from self._performance()
        yield from self._approval()

    def _shifts(self) -> Iterator[MonitoringCheck]:
        try:
            shifts = form_drift(self.form, self.scored.frame, record=self.scored.record)
        except DataError:  # an older model file, without the counts of training rows
            return
        if shifts.risk is not None:
            yield self._shift("", shifts.risk.psi, GROUPS, shifts)
        for feature in shifts.features:
            yield self._shift(feature.feature, feature.psi, sum(share > 0 for share in feature.old), shifts)

    def _shift(self, feature: str, psi: float, groups: int, shifts: Drift) -> MonitoringCheck:
        """Compare an index with its quantile under no shift: nearly chi-squared, over the sizes of the two samples."""
        from scipy.special import chdtri

        chance, large = 0.0, self.limits.large
        if groups > 1:
            chance = float(chdtri(groups - 1, 1 - self.level)) * (1 / shifts.old_rows + 1 / shifts.new_rows)
        if psi < self.limits.moderate:
            state = "within"
        else:
            state = "too few rows" if psi <= chance else "crossed" if psi >= large else "watch"
        return MonitoringCheck("shift", feature, psi, math.nan, math.nan, math.nan, large, state)

    def _values(self) -> Iterator[MonitoringCheck]:
        """Compare missing shares with training, and count values unseen in training."""
        frame, nan = self.form.align(self.scored.frame), math.nan
        for name in self.form.features:
            rows = unusual(self.form, frame, name)
            share = wilson(int(rows["missing"].sum()), self.rows, self.z)
            weights = weights_in_training(self.form, name)
            if weights is not None:
                trained = wilson(*weights, self.z)
                rise = newcombe(share, trained)
                state = _state(rise.estimate > self.limits.missing, clear=rise.low > 0)
                yield self._check("missing", name, share, trained.estimate, self.limits.missing, state)
            count = int(sum(rows[what].sum() for what in rows if what != "missing"))
            unseen = wilson(count, self.rows, self.z)
            state = _state(unseen.estimate > self.limits.unseen, clear=count > 1)
            ends = (unseen.estimate, unseen.low, unseen.high)
            yield MonitoringCheck("unseen", name, *ends, nan, self.limits.unseen, state)

    def _performance(self) -> Iterator[MonitoringCheck]:
        with_outcome = self.scored.known
        if not with_outcome.any():
            return
        risk, positive = self.scored.risk[with_outcome], self.scored.positive[with_outcome]
        performance = Performance.of(risk, positive, self.level)
        enough = not is_small(len(positive), int(positive.sum()))
        if math.isfinite(performance.auc.estimate):
            base = promised_auc(risk) if self.limits.auc is None else self.limits.auc
            dropped = performance.auc.estimate < base - self.limits.auc_drop
            state = _state(dropped, clear=enough and performance.auc.high < base)
            yield self._check("AUC", "", performance.auc, base, -self.limits.auc_drop, state)
        clear = enough and not performance.gap.low <= 0 <= performance.gap.high
        state = _state(abs(performance.gap.estimate) > self.limits.gap, clear=clear)
        yield self._check("gap", "", performance.gap, 0.0, self.limits.gap, state)

    def _approval(self) -> Iterator[MonitoringCheck]:
        cutoff = self.scored.cutoff
        if cutoff is None:
            return
        base = self.limits.approval
        if base is None:
            if self.scored.record is None or self.scored.record.risks is None:
                return
            below = self.scored.record.risks.share_below(cutoff)
            base = below if self.scored.adverse == "positive" else 1 - below
        approval = wilson(int((~self.scored.refused()).sum()), self.rows, self.z)
        side = -1 if approval.estimate < base else 1
        beyond = abs(approval.estimate - base) > self.limits.approval_shift
        state = _state(beyond, clear=not approval.low <= base <= approval.high)
        yield self._check("approval", "", approval, base, side * self.limits.approval_shift, state)

    def _check(self, figure: str, feature: str, value: Range, base: float, away: float, state: str) -> MonitoringCheck:
        return MonitoringCheck(figure, feature, value.estimate, value.low, value.high, base, base + away, state)


def _state(beyond: bool, *, clear: bool) -> str:
    return "within" if not beyond else "crossed" if clear else "too few rows"
