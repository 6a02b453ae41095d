"""The figures that need the training rows: a second fit, refits, prices of rules, challengers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
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

FOLDS = 3  # of the prices, so as many fits per line; with 5 the intervals are a tenth shorter

Tell = Callable[[str, int, int], None]


def refits(given: Evidence, tell: Tell) -> dict[str, Any] | None:
    """Return the figures that need fits to the training rows; None without them."""
    if given.train is None:
        return None
    model = None if given.record is None else estimator_of(given.form, given.record)
    results: dict[str, Any] = {"same_rows": SeenRows(given.form, given.record).add(given.train.rows).are_all}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these models are not kept
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
    """Fit the model to the training rows again, and compare."""
    try:
        fitted = clone(model).fit(*_rows(given, train))
    except PlainriskError as error:
        return {"error": str(error)}
    moved = np.abs(fitted.form_.risk(given.test.rows) - given.test.risk)
    form = replace(fitted.form_, columns=given.form.columns)  # other columns of the training file do not matter
    return {"same_form": form_hash(form) == form_hash(given.form), "largest_move": float(moved.max())}


def _stability(given: Evidence, train: Sample, tell: Tell) -> Any:
    """Fit the model to resampled training rows, and measure the changes on the test rows."""
    options: dict[str, Any] = {"new": given.test.rows, "cutoff": given.cutoff, "progress": partial(tell, "stability")}
    try:
        return stability(given.model, *_rows(given, train), **options)
    except PlainriskError:
        return None  # trees have no reasons to compare


def _challengers(given: Evidence, train: Sample, tell: Tell) -> list[dict[str, Any]]:
    """Fit common alternatives to the training rows, and compare them with the model on the test rows."""
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
