"""What needs the training rows: the model fitted again, prices of its rules, challengers beside it, its intervals."""

from __future__ import annotations

import ast
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
from plainrisk.form import FitRecord, RiskForm, form_hash
from plainrisk.measure.evaluation import evaluate_risk
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.base import RiskClassifier
from plainrisk.models.boosted import BoostedRiskModel
from plainrisk.models.linearise import Linearised
from plainrisk.models.mixture import SubscaleMixture
from plainrisk.models.nnlr import NonnegativeLogisticRegression
from plainrisk.models.two_layer import TwoLayerRiskModel
from plainrisk.validate.challengers import FIGURES, RIVALS, not_fitted
from plainrisk.validate.prices import prices

__all__ = ["estimator_of", "refits"]

FOLDS = 3  # of the prices: each line is as many fits; with 5 the intervals are a tenth shorter
ESTIMATORS = {
    kind.__name__: kind
    for kind in (
        AdditiveRiskModel,
        BoostedRiskModel,
        Linearised,
        NonnegativeLogisticRegression,
        SubscaleMixture,
        TwoLayerRiskModel,
    )
}

Tell = Callable[[str, int, int], None]


def estimator_of(form: RiskForm, record: FitRecord) -> RiskClassifier | None:
    """Return the estimator that fitted a form, not fitted, from what its record says; None where that is not enough.

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    >>> estimator_of(model.form_, model.fit_record_).link
    'bands'
    """
    try:
        parameters = {name: _read(ast.parse(text, mode="eval").body) for name, text in record.parameters.items()}
        model = ESTIMATORS[record.estimator](**parameters)
    except (KeyError, SyntaxError, TypeError, ValueError):
        return None
    inner: Any = model
    while inner is not None and "schema" not in inner.get_params(deep=False):
        inner = getattr(inner, "estimator", None)
    return None if inner is None else _with_schema(model, inner, form)


def _with_schema(model: Any, inner: Any, form: RiskForm) -> Any:
    inner.set_params(schema=form.schema)
    return model


def _read(node: ast.expr) -> Any:
    """Read a parameter as it was written: a literal, or one of our estimators with literals."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.args:
            raise ValueError("not an estimator")
        return ESTIMATORS[node.func.id](**{str(one.arg): _read(one.value) for one in node.keywords})
    return ast.literal_eval(node)


def refits(given: Evidence, tell: Tell) -> dict[str, Any] | None:
    """Return what only fits to the training rows can say; None without them."""
    if given.train is None:
        return None
    model = None if given.record is None else estimator_of(given.form, given.record)
    found: dict[str, Any] = {"same_rows": SeenRows(given.form, given.record).add(given.train.rows).are_all}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about models that nobody keeps, as they come
        found["challengers"] = _challengers(given, given.train, tell)
        if model is None:
            return {**found, "again": None, "prices": None}
        found["again"] = _again(given, given.train, model)
        try:
            priced = prices(model, *_rows(given, given.train), cv=FOLDS, progress=tell)
        except PlainriskError as error:
            return {**found, "prices": None, "why_no_prices": str(error)}
    return {**found, "prices": priced.to_dict()}


def _rows(given: Evidence, sample: Sample) -> tuple[Any, Any]:
    return sample.rows.select(list(given.form.schema.features)), given.labels(sample)


def _again(given: Evidence, train: Sample, model: RiskClassifier) -> dict[str, Any]:
    """Fit the model to the training rows again, and say whether it is the same."""
    try:
        fitted = clone(model).fit(*_rows(given, train))
    except PlainriskError as error:
        return {"error": str(error)}
    moved = np.abs(fitted.form_.risk(given.test.rows) - given.test.risk)
    form = replace(fitted.form_, columns=given.form.columns)  # further columns of the training file play no part
    return {"same_form": form_hash(form) == form_hash(given.form), "largest_move": float(moved.max())}


def _challengers(given: Evidence, train: Sample, tell: Tell) -> list[dict[str, Any]]:
    """Fit what others would use to the training rows, and compare it with the model on the test rows."""
    found = []
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
        found.append(line)
    return found


def _compared(test: Sample, risk: Floats) -> dict[str, Any]:
    compared = evaluate_risk(test.outcome, risk, against=test.risk)
    sides = {"figures": compared.figures, "differences": compared.differences}
    plain = {side: {name: vars(found[name]) for name in FIGURES} for side, found in sides.items()}
    return {**plain, "p_value": compared.p_value}
