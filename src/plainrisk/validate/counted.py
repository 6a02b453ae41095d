"""A model of ours on rows that are not in memory: they are scored and counted where they are, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plainrisk.data.frame import Frame
from plainrisk.data.rows import StoredRows
from plainrisk.errors import DataError, warn
from plainrisk.explain import Profile, SeenRows
from plainrisk.form import FitRecord, RiskForm
from plainrisk.form.risk_sums import MOST_RISKS, RiskSums
from plainrisk.measure.predictions import check_column
from plainrisk.validate.scored import form_of, target_name

__all__ = ["counted_profile", "counted_risks"]


@dataclass(frozen=True)
class _Risks:
    """Probabilities by outcome; `target`, `weight` and `value` name columns."""

    form: RiskForm
    target: str
    weight: str | None
    value: str | None

    def __call__(self, frame: Frame) -> RiskSums:
        """Count the rows of a batch."""
        bad = frame.labels(self.target).outcomes(self.form.classes) == 1
        weight, value = (
            None if name is None else check_column(repr(name), frame.numbers(name), frame.n_rows)
            for name in (self.weight, self.value)
        )
        return RiskSums.of(self.form.risk(self.form.align(frame)), bad, weight, value)


@dataclass(frozen=True)
class _Seen:
    """Whether rows are the training rows."""

    form: RiskForm
    record: FitRecord | None

    def __call__(self, frame: Frame) -> SeenRows:
        """Look at the rows of a batch."""
        return SeenRows(self.form, self.record).add(frame)


@dataclass(frozen=True)
class _Profiled:
    """How rows are spread over the levels of a form, and the probabilities of those whose outcome is known."""

    form: RiskForm
    target: str | None

    def __call__(self, frame: Frame) -> Profile:
        """Count the rows of a batch."""
        return Profile(self.form).add(frame, None if self.target is None else frame.column(self.target))


def counted_risks(
    who: str, model: Any, rows: StoredRows, y: Any, weight: Any = None, value: Any = None
) -> tuple[RiskSums, bool]:
    """Count the probabilities and outcomes of rows, and whether they seem to be the training rows.

    Parameters
    ----------
    y, weight, value : names of columns; without them the target of the model's schema, the weight of the rows, none
    """
    form, target = _form(who, model), target_name(model) if y is None else y
    weight = rows.weight if weight is None else weight
    if target is None:
        raise DataError(f"{who}: give y, the column of the outcomes; the model's schema does not name it.")
    _refuse_arrays(who, y=target, sample_weight=weight, amount=value)
    _require_rows(who, rows)
    columns = dict.fromkeys(name for name in (*form.features, target, weight, value) if name is not None)
    counting, looking = _Risks(form, target, weight, value), _Seen(form, getattr(model, "fit_record_", None))
    sums, seen = rows.read_as(form.schema.kinds).totals([counting, looking], tuple(columns), f"{who}: scoring rows")
    if not len(sums.risk):
        raise DataError(f"{who}: all weights are 0.")
    if sums.dropped:
        warn(
            f"{who}: there are more than {MOST_RISKS:,} distinct probabilities. Those that agree to one part in "
            f"{1 << 52 - sums.dropped:,} count as equal."
        )
    return sums, seen.are_all


def counted_profile(form: RiskForm, rows: StoredRows, y: Any = None) -> Profile:
    """Count how rows are spread over the levels of a form; `y` names the outcomes, some of them missing."""
    _refuse_arrays("drift", y=y)
    columns = dict.fromkeys(name for name in (*form.features, y) if name is not None)
    _require_rows("drift", rows)
    functions = [_Profiled(form, y)]
    profile: Profile = rows.read_as(form.schema.kinds).totals(functions, tuple(columns), "drift: counting rows")[0]
    return profile


def _refuse_arrays(who: str, **given: Any) -> None:
    """Refuse a column that is not given by its name, for rows that are not in memory."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise DataError(f"{who}: {name} must be the name of a column when rows are not in memory.")


def _require_rows(who: str, rows: StoredRows) -> None:
    if not rows.count():
        raise DataError(f"{who}: there are no rows.")


def _form(who: str, model: Any) -> RiskForm:
    form = form_of(model)
    if form is None:
        raise DataError(f"{who}: rows that are not in memory are scored where they are, by a model of plainrisk alone.")
    return form
