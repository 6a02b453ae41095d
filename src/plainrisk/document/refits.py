"""The figures that need the training rows: a second fit, prices of rules, challengers, intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec.structs import replace
from sklearn.base import clone

from plainrisk._types import Floats
from plainrisk.document.evidence import Evidence, Sample
from plainrisk.errors import PlainriskError
from plainrisk.explain import SeenRows
from plainrisk.form import form_hash
from plainrisk.measure.evaluation import evaluate_risk
from plainrisk.models.base import RiskClassifier
from plainrisk.validate.challengers import FIGURES, RIVALS, not_fitted
from plainrisk.validate.prices import prices
from plainrisk.validate.refitting import estimator_of
from plainrisk.validate.stability import stability

__all__ = ["refits"]

FOLDS = 3  # of the prices: each line is as many fits; with 5 the intervals are a tenth shorter

Tell = Callable[[str, int, int], None]


def refits(given: Evidence, tell: Tell) -> dict[str, Any] | None:
    """Return what only fits to the training rows can say; None without them."""
    if given.train is None:
        return None
    model = None if given.record is None else estimator_of(given.form, given.record)
    results: dict[str, Any] = {"same_rows": SeenRows(given.form, given.record).add(given.train.rows).are_all}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about models that are thrown away
        results["challengers"] = _challengers(given, given.train, tell)
        if model is None:
            return {**results, "again": None, "stability": None, "prices": None}
        results["again"] = _again(given, given.train, model)
        results["stability"] = _stability(given, given.train, tell)
        try:
            priced = prices(model, *_rows(given, given.train), cv=FOLDS, progress=tell)
        except PlainriskError as error:
            return {**results, "prices": None, "why_no_prices": str(error)}
    return {**results, "prices": priced.to_dict()}


def _rows(given: Evidence, sample: Sample) -> tuple[Any, Any]:
    return sample.rows.select(list(given.form.schema.features)), given.labels(sample)


def _again(given: Evidence, train: Sample, model: RiskClassifier) -> dict[str, Any]:
    """Fit the model to the training rows again, and return whether it is the same."""
    try:
        fitted = clone(model).fit(*_rows(given, train))
    except PlainriskError as error:
        return {"error": str(error)}
    moved = np.abs(fitted.form_.risk(given.test.rows) - given.test.risk)
    form = replace(fitted.form_, columns=given.form.columns)  # further columns of the training file play no part
    return {"same_form": form_hash(form) == form_hash(given.form), "largest_move": float(moved.max())}


def _stability(given: Evidence, train: Sample, tell: Tell) -> dict[str, Any] | None:
    """Fit the model to resampled training rows, and return what that changes on the test rows."""
    try:
        refitted = stability(
            given.model,
            *_rows(given, train),
            new=given.test.rows,
            cutoff=given.cutoff,
            progress=lambda done, total: tell("stability", done, total),
        )
    except PlainriskError:
        return None  # trees have no reasons to compare
    plain: dict[str, Any] = refitted.to_dict()
    return plain


def _challengers(given: Evidence, train: Sample, tell: Tell) -> list[dict[str, Any]]:
    """Fit what others would use to the training rows, and compare it with the model on the test rows."""
    lines = []
    for done, (name, rival) in enumerate(RIVALS.items()):
        tell(name, done, len(RIVALS))
        line: dict[str, Any] = {"name": name, "settings": rival.settings, "note": ""}
        try:
            fitted = rival.build(given.form.schema).fit(*_rows(given, train))
            risk: Floats = fitted.predict_proba(given.test.rows)[:, 1]
        except ImportError:
            line["note"] = f"not installed: {rival.install}"
        except Exception as error:
            line["note"] = not_fitted(error)
        else:
            line |= _compared(given.test, risk)
        lines.append(line)
    return lines


def _compared(test: Sample, risk: Floats) -> dict[str, Any]:
    compared = evaluate_risk(test.outcome, risk, against=test.risk)
    sides = {"figures": compared.figures, "differences": compared.differences}
    plain = {side: {name: vars(found[name]) for name in FIGURES} for side, found in sides.items()}
    return {**plain, "p_value": compared.p_value}
