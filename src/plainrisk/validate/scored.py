"""Rows with their probabilities, by a model or as given, their outcomes as 0 and 1, and decisions about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._types import Array, Bools, Floats
from plainrisk.checks import NOTHING, PROBABILITY, check_parameters
from plainrisk.data.columns import Labels
from plainrisk.data.frame import Frame, as_frame, column_of, refuse_other_order
from plainrisk.decision import refused
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain.options import Adverse
from plainrisk.form import FitRecord, RiskForm
from plainrisk.schema import label_of

__all__ = [
    "Scored",
    "adverse_of",
    "classes_of",
    "column_in",
    "cutoff_of",
    "form_of",
    "judged",
    "risks_of",
    "target_name",
    "target_of",
]

DIFFERENT = "evaluate: the two models predict different outcomes, so their risks cannot be compared."


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with their probabilities and, where they are known, their outcomes.

    Attributes
    ----------
    who : the calling function, for error messages
    frame : the rows; without columns if only probabilities were given
    form, record : of a model of ours, else None
    risk : (n,)
    known : (n,) whether the outcome is known
    positive : (n,) whether the outcome is the positive one; False where it is not known
    cutoff : as given, or that of the model's policy; None without either
    adverse : which outcome is the bad one
    """

    who: str
    frame: Frame
    form: RiskForm | None
    record: FitRecord | None
    risk: Floats
    known: Bools
    positive: Bools
    cutoff: float | None
    adverse: Adverse

    @classmethod
    def of(cls, who: str, model: Any, X: Any, y: Any = None, cutoff: float | None = None) -> Scored:
        """Score rows; outcomes may be given, be in the target column, or be missing in some or all rows."""
        check_parameters(who, {"cutoff": cutoff}, {"cutoff": NOTHING | PROBABILITY})
        refuse_other_order(X, y=y)
        classes, form = classes_of(who, [model]), form_of(model)
        risk = risks_of(who, model, X, classes)
        if risk.ndim != 1 or not ((risk >= 0) & (risk <= 1)).all():
            raise DataError(f"{who}: the probabilities must be one column of numbers from 0 to 1.")
        frame = Frame((), {}, len(risk)) if X is None else as_frame(X)
        if frame.n_rows != len(risk):
            raise DataError(f"{who}: there are {len(risk):,} probabilities for {frame.n_rows:,} rows.")
        if not len(risk):
            raise DataError(f"{who}: there are no rows.")
        name = target_name(model)
        if y is None and name is not None and name in frame.columns:
            y = frame.column(name)
        known = positive = np.zeros(len(risk), bool)
        if y is not None:
            outcome = column_of(y)
            if len(outcome.codes) != len(risk):
                raise DataError(f"{who}: there are {len(outcome.codes):,} outcomes for {len(risk):,} rows.")
            known, positive = outcome.codes >= 0, positive.copy()
            codes = Labels(outcome.codes[known], outcome.labels)
            positive[known] = codes.outcomes((0, 1) if classes is None else classes) == 1
        decided = cutoff_of(model) if cutoff is None else float(cutoff)
        record = getattr(model, "fit_record_", None)
        return cls(who, frame, form, record, risk, known, positive, decided, adverse_of(model, None))

    @property
    def bad(self) -> Bools:
        """Whether the outcome is the adverse one; False if it is not known."""
        return self.positive if self.adverse == "positive" else self.known & ~self.positive

    @property
    def bad_risk(self) -> Floats:
        """The probability of the adverse outcome."""
        return self.risk if self.adverse == "positive" else 1 - self.risk

    @property
    def our_form(self) -> RiskForm:
        """The form of a model of ours, or an error."""
        if self.form is None:
            raise DataError(f"{self.who}: needs a model of plainrisk (pr.RiskModel.from_fitted(model) makes one).")
        return self.form

    @property
    def need_cutoff(self) -> float:
        """The cut-off; without one, an error explains how to give it."""
        if self.cutoff is None:
            raise DataError(
                f"{self.who}: give a cutoff; the model has none in its policy (model.annotate(cutoff=0.25))."
            )
        return self.cutoff

    def refused(self, risk: Floats | None = None) -> Bools:
        """Return who is refused at the cut-off, with these probabilities or with others."""
        return refused(self.risk if risk is None else risk, self.need_cutoff, self.adverse)


# ---- a model, or probabilities in its place


def judged(who: str, models: list[Any], X: Any, y: Any) -> tuple[Array, list[Floats]]:
    """Return the outcomes as 0 and 1, and the probabilities of each model."""
    classes = classes_of(who, models)
    outcomes = np.asarray(y) if classes is None else column_of(y).outcomes(classes)
    return outcomes, [risks_of(who, model, X, classes) for model in models]


def form_of(model: Any) -> RiskForm | None:
    """Return the risk form of one of our models, else None."""
    return getattr(model, "form_", None)


def cutoff_of(model: Any) -> float | None:
    """Return the cut-off of a model's policy, or None."""
    form = form_of(model)
    return None if form is None else form.schema.policy.cutoff


def adverse_of(model: Any, given: Any) -> Any:
    """Return which outcome is the bad one: as given, or as in the model's schema."""
    form = form_of(model)
    return given if given is not None else "positive" if form is None else form.schema.adverse


def classes_of(who: str, models: list[Any]) -> Array | None:
    """Return the two outcomes that the models know, the positive one last; None for probabilities."""
    outcomes = [_outcomes(model, models[0]) for model in models if hasattr(model, "predict_proba")]
    for classes in outcomes:
        if len(classes) != 2:
            raise DataError(f"{who}: the model knows {len(classes)} outcomes; two are needed.")
        # The labels decide, independent of the type they are stored as.
        if column_of(classes).labels != column_of(outcomes[0]).labels or str(classes[1]) != str(outcomes[0][1]):
            raise DataError(DIFFERENT)
    forms = [model.form_ for model in models if hasattr(model, "form_")]
    if len(forms) == 2 and not forms[0].predicts_as(forms[1]):
        raise DataError(DIFFERENT)
    return outcomes[0] if outcomes else None


def _outcomes(model: Any, first: Any) -> Array:
    """Return the outcomes of a model, the positive one last; if it names none, that of the first model."""
    classes = np.asarray(model.classes_)
    positive = getattr(model, "positive_", getattr(first, "positive_", classes[-1]))
    return classes[::-1] if len(classes) == 2 and label_of(classes[0]) == label_of(positive) else classes


def risks_of(who: str, model: Any, X: Any, classes: Array | None) -> Floats:
    """Return the probability of the positive outcome, by a model or as given."""
    if not hasattr(model, "predict_proba"):
        return np.asarray(model)
    if X is None:
        raise DataError(f"{who}: a model needs the rows X.")
    labels = [label_of(c) for c in model.classes_]
    return np.asarray(model.predict_proba(X))[:, -1 if classes is None else labels.index(label_of(classes[1]))]


def target_name(model: Any) -> str | None:
    """Return the column of outcomes that the model's schema names, or None."""
    form = form_of(model)
    return None if form is None else form.schema.target


def target_of(who: str, model: Any, X: Any) -> Any:
    """Return the outcomes from the rows, or raise an error if there are none."""
    name = target_name(model)
    if name is None:
        raise DataError(f"{who}: give the outcomes y; the model's schema does not name their column.")
    return column_in(f"{who}: y", name, X)


def column_in(who: str, name: str, X: Any) -> Any:
    """Return a column of the rows, or raise an error if there is no such column."""
    if X is None:
        raise DataError(f"{who}: {name!r} is a column, and there are no rows X to take it from.")
    frame = as_frame(X)
    if name not in frame.columns:
        raise DataError(f"{who}: there is no column {name!r} in the rows.{did_you_mean(name, frame.names)}")
    return frame.column(name)
