"""A model of ours on rows that are not in memory: they are scored and counted where they are, in one pass."""

from __future__ import annotations

from functools import partial
from typing import Any

from plainrisk.data.frame import Frame
from plainrisk.data.rows import StoredRows
from plainrisk.errors import DataError, warn
from plainrisk.explain import Profile, SeenRows
from plainrisk.form import FitRecord, RiskForm
from plainrisk.form.risks import MOST_RISKS, RiskSums
from plainrisk.measure.predictions import check_column
from plainrisk.validate.scored import form_of, target_name

__all__ = ["counted_profile", "counted_risks"]


def counted_risks(
    who: str, model: Any, rows: StoredRows, y: Any, weight: Any = None, value: Any = None
) -> tuple[RiskSums, bool]:
    """Count the probabilities and outcomes of rows, and whether they seem to be the training rows.

    `y`, `weight` and `value` name columns; the defaults are the target of the model's schema, the weight of the rows
    and no value.
    """
    form, target = form_of(model), target_name(model) if y is None else y
    if form is None:
        raise DataError(f"{who}: rows that are not in memory are scored where they are, by a model of plainrisk alone.")
    if target is None:
        raise DataError(f"{who}: give y, the column of the outcomes; the model's schema does not name it.")
    weight = rows.weight if weight is None else weight
    _check_rows(who, rows, y=target, sample_weight=weight, amount=value)
    columns = dict.fromkeys(name for name in (*form.features, target, weight, value) if name is not None)
    counting = partial(_risks, form=form, target=target, weight=weight, value=value)
    looking = partial(_seen, form=form, record=getattr(model, "fit_record_", None))
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
    """Count how rows are spread over the levels of a form; `y` names the outcomes, some of which may be missing."""
    _check_rows("drift", rows, y=y)
    columns = dict.fromkeys(name for name in (*form.features, y) if name is not None)
    counting = partial(_profile, form=form, target=y)
    profile: Profile = rows.read_as(form.schema.kinds).totals([counting], tuple(columns), "drift: counting rows")[0]
    return profile


def _check_rows(who: str, rows: StoredRows, **names: Any) -> None:
    """Refuse input that is not rows, and columns that are not given by name."""
    for option, name in names.items():
        if name is not None and not isinstance(name, str):
            raise DataError(f"{who}: {option} must be the name of a column when rows are not in memory.")
    if not rows.count():
        raise DataError(f"{who}: there are no rows.")


# ---- functions that are sent to the rows, for one batch


def _risks(frame: Frame, *, form: RiskForm, target: str, weight: str | None, value: str | None) -> RiskSums:
    """Sum probabilities by outcome."""
    bad = frame.labels(target).outcomes(form.classes) == 1
    columns = (
        None if name is None else check_column(repr(name), frame.numbers(name), frame.n_rows)
        for name in (weight, value)
    )
    return RiskSums.of(form.risk(form.align(frame)), bad, *columns)


def _seen(frame: Frame, *, form: RiskForm, record: FitRecord | None) -> SeenRows:
    """Count what shows whether rows are the training rows."""
    return SeenRows(form, record).add(frame)


def _profile(frame: Frame, *, form: RiskForm, target: str | None) -> Profile:
    """Count the levels of rows, and the probabilities of those with a known outcome."""
    return Profile(form).add(frame, None if target is None else frame.column(target))
