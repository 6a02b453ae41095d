"""What a document is made from: a model, rows that it was not fitted to, and other inputs; all are checked first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from plainrisk._types import Floats, Outcome
from plainrisk.checks import NOTHING, check_parameters, instance
from plainrisk.data.frame import Frame, as_frame, column_of, refuse_other_order
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain import Overview, overview
from plainrisk.form import FitRecord, RiskForm
from plainrisk.model import FormMethods

__all__ = ["Evidence", "Sample", "Source", "gather", "plain"]


@dataclass(frozen=True)
class Source:
    """Where rows came from: a name for commands, and name, SHA-256 and rows of every file."""

    name: str
    files: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows with outcomes, 1 for the one whose probability the model predicts, and the predictions."""

    source: Source
    rows: Frame
    outcome: Outcome
    risk: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """All inputs.

    Attributes
    ----------
    model : the model
    file : the model's file, if it is in one
    test : rows that the model was not fitted to
    train : the training rows, if they were given
    against : another model: its name, its probabilities for the test rows, and its form if it is one of ours
    time : the name and the values of the column of periods
    by : columns of groups
    target : the column of outcomes, if it was given
    """

    model: FormMethods
    file: Path | None
    test: Sample
    train: Sample | None = None
    against: tuple[str, Floats, RiskForm | None] | None = None
    time: tuple[str, Any] | None = None
    by: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None

    @property
    def form(self) -> RiskForm:
        """The model's form."""
        return self.model.form_

    @property
    def record(self) -> FitRecord | None:
        """How the model was fitted."""
        return self.model.fit_record_

    @property
    def about(self) -> Mapping[str, str]:
        """The texts about the model."""
        return self.model.about

    @cached_property
    def overview(self) -> Overview:
        """Shapes, weights and importance on the test rows."""
        return overview(self.form, self.test.rows)

    @property
    def cutoff(self) -> float:
        """The cut-off of the policy; without one, the base rate of training, to try."""
        stated = self.form.schema.policy.cutoff
        if stated is not None:
            return stated
        rate = float(self.test.outcome.mean()) if self.record is None else self.record.base_rate
        return round(rate, 2)

    def labels(self, sample: Sample) -> Any:
        """Return the outcomes of rows as the model knows them."""
        return np.array(self.form.classes)[sample.outcome]


def plain(value: Any) -> Any:
    """Turn numpy's numbers and arrays into Python's, for msgspec."""
    return value.tolist()


def gather(
    model: FormMethods,
    data: Any,
    y: Any = None,
    *,
    train: Any = None,
    train_y: Any = None,
    against: Any = None,
    time: str | None = None,
    by: str | Sequence[str] = (),
    target: str | None = None,
    sources: Mapping[str, Source] | None = None,
    file: Path | None = None,
) -> Evidence:
    """Check the inputs of a document, as in `FormMethods.document`; every error comes before any work.

    `sources` say where the rows "test", "train" and "against" came from, for the commands and hashes in the document.
    """
    model._require_form()
    check_parameters("document", {"time": time}, {"time": NOTHING | instance("the name of a column", str)})
    form, names, by = model.form_, dict(sources or {}), [by] if isinstance(by, str) else list(by)
    test = _sample(form, data, y, target, names.get("test", Source("TEST")))
    for option, name in (("time", time), *(("by", name) for name in by)):
        if name is not None:
            _require_column(option, name, test.rows)
    return Evidence(
        model=model,
        file=file,
        test=test,
        train=None if train is None else _sample(form, train, train_y, target, names.get("train", Source("TRAIN"))),
        against=None if against is None else _against(form, against, test.rows, names.get("against")),
        time=None if time is None else (time, test.rows.column(time)),
        by={name: test.rows.column(name) for name in by},
        target=target,
    )


def _sample(form: RiskForm, data: Any, y: Any, target: str | None, source: Source) -> Sample:
    refuse_other_order(data, y=y)
    rows = form.align(data)
    if rows.n_rows == 0:
        raise DataError(f"document: {source.name} has no rows.")
    name = target or form.schema.target
    if y is None:
        if name is None:
            raise DataError("document: which column is the outcome? The model does not name it. Give target.")
        if name not in rows.columns:
            hint = did_you_mean(name, rows.names)
            raise DataError(f"document: {source.name} has no column of outcomes {name!r}.{hint}")
        y = rows.column(name)
    try:
        outcome = column_of(y).outcomes(form.classes)
    except DataError as error:
        raise DataError(f"document: {source.name}: outcome {name!r}: {error}") from None
    if len(outcome) != rows.n_rows:
        raise DataError(f"document: there are {len(outcome):,} outcomes for {rows.n_rows:,} rows.")
    return Sample(source, rows, outcome, form.risk(rows))


def _require_column(option: str, name: str, rows: Frame) -> None:
    if name not in rows.columns:
        raise DataError(f"document: {option}: there is no column {name!r} in the data.{did_you_mean(name, rows.names)}")


def _against(form: RiskForm, against: Any, rows: Frame, source: Source | None) -> tuple[str, Floats, RiskForm | None]:
    """Return the name, the probabilities and the form of another model, or of a column of probabilities."""
    other = getattr(against, "form_", None)
    if other is not None:
        if not form.predicts_as(other):
            raise DataError("document: the two models predict different outcomes, so their risks cannot be compared.")
        return source.name if source else "OLD", other.risk(other.align(as_frame(rows))), other
    if isinstance(against, str):
        _require_column("against", against, rows)
        risk, name = rows.numbers(against), against
    else:
        risk, name = np.asarray(against, dtype=np.float64), "AGAINST"
    if risk.shape != (rows.n_rows,) or not ((risk >= 0) & (risk <= 1)).all():
        raise DataError(f"document: against: {name!r} must hold a probability from 0 to 1 for every row.")
    return name, risk, None
