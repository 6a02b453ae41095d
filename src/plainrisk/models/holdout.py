"""A fitted model, or two of them, measured on rows they were not fitted to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from plainrisk._types import Array
from plainrisk.data.frame import as_frame, column_of, refuse_other_order
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain import TrainingRows
from plainrisk.measure.evaluation import Evaluation, evaluate_risk
from plainrisk.schema import label_of

__all__ = ["evaluate"]

DIFFERENT = "evaluate: the two models predict different outcomes, so their risks cannot be compared."


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    against: Any = None,
    by: Any = None,
    sample_weight: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Measure a model on rows with known outcomes: AUC, KS, Brier score, log loss and calibration, with intervals.

    Parameters
    ----------
    model : a fitted classifier, or (n,) risks
        One of ours, a loaded one, or any with predict_proba. With risks, outcomes are 0 and 1.
    X : rows
        None where only risks are given.
    y : (n,), default=None
        The outcomes, as the model knows them; None takes the target column of the model's schema from the rows.
    against : a fitted classifier, or (n,) risks, default=None
        Another model to compare with on the same rows: DeLong's test of the AUCs, a paired bootstrap of the rest.
    by : str or (n,), default=None
        A column of the rows, or the group of every row, such as its month: the same figures for every group.
    sample_weight : (n,), default=None
    level : float, default=0.95
        Of the intervals.
    seed : int, default=0
        Of the bootstrap.

    Returns
    -------
    Evaluation
        It prints as a table; ``found["auc"]`` has `.estimate`, `.low` and `.high`.

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> fitted, held_out = german.frame.head(600), german.frame.tail(400)
    >>> model = pr.make_classifier("SmoothARM1", german.schema).fit(fitted, german.target[:600])
    >>> found = pr.evaluate(model, held_out, german.target[600:])
    >>> auc = found["auc"]
    >>> bool(auc.low < auc.estimate < auc.high), found.rows
    (True, 400)
    """
    models = [one for one in (model, against) if one is not None]
    classes = _classes(models)
    refuse_other_order(X, y=y, by=by, sample_weight=sample_weight)
    if y is None:
        y = _target(model, X)
    outcomes = np.asarray(y) if classes is None else column_of(y).outcomes(classes)
    groups = by if not isinstance(by, str) else _column("by", by, X)
    risks = [_risks(one, X, classes) for one in models]
    other = risks[1] if len(risks) > 1 else None
    found = evaluate_risk(
        outcomes, risks[0], against=other, by=groups, sample_weight=sample_weight, level=level, seed=seed
    )
    form = getattr(model, "form_", None)
    return found if form is None else replace(found, seen_before=TrainingRows(form).add(X).are_all)


def _classes(models: list[Any]) -> Array | None:
    """Return the two outcomes that the models know, the positive one last; None for risks."""
    known = [_outcomes(one, models[0]) for one in models if hasattr(one, "predict_proba")]
    for classes in known:
        if len(classes) != 2:
            raise DataError(f"evaluate: the model knows {len(classes)} outcomes; two are needed.")
        # The labels decide, whatever type they are stored as.
        if column_of(classes).labels != column_of(known[0]).labels or str(classes[1]) != str(known[0][1]):
            raise DataError(DIFFERENT)
    forms = [one.form_ for one in models if hasattr(one, "form_")]
    if len(forms) == 2 and not forms[0].predicts_as(forms[1]):
        raise DataError(DIFFERENT)
    return known[0] if known else None


def _outcomes(model: Any, first: Any) -> Array:
    """Return the outcomes of a model, the positive one last: its own, or that of the first model, or the last."""
    classes = np.asarray(model.classes_)
    positive = getattr(model, "positive_", getattr(first, "positive_", classes[-1]))
    return classes[::-1] if len(classes) == 2 and label_of(classes[0]) == label_of(positive) else classes


def _risks(model: Any, X: Any, classes: Array | None) -> Array:
    if not hasattr(model, "predict_proba"):
        return np.asarray(model)
    if X is None:
        raise DataError("evaluate: a model needs the rows X.")
    labels = [label_of(c) for c in model.classes_]
    return np.asarray(model.predict_proba(X))[:, -1 if classes is None else labels.index(label_of(classes[1]))]


def _target(model: Any, X: Any) -> Any:
    form = getattr(model, "form_", None)
    name = None if form is None else form.schema.target
    if name is None:
        raise DataError("evaluate: give the outcomes y; the model's schema does not name their column.")
    return _column("y", name, X)


def _column(who: str, name: str, X: Any) -> Any:
    frame = as_frame(X)
    if name not in frame.columns:
        raise DataError(f"evaluate: {who}: there is no column {name!r} in the rows.{did_you_mean(name, frame.names)}")
    return frame.column(name)
