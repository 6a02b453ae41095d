"""The estimator that a fitted model came from, not fitted: to fit it again to other rows."""

from __future__ import annotations

import ast
from typing import Any

from sklearn.base import clone

from plainrisk.errors import DataError
from plainrisk.form import FitRecord, RiskForm
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.base import RiskClassifier
from plainrisk.models.boosted import BoostedRiskModel
from plainrisk.models.linearise import Linearised
from plainrisk.models.mixture import SubscaleMixture
from plainrisk.models.nnlr import NonnegativeLogisticRegression
from plainrisk.models.two_layer import TwoLayerRiskModel
from plainrisk.validate.scored import form_of

__all__ = ["estimator_of", "unfitted"]

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


def unfitted(model: Any) -> Any:
    """Return an estimator like the one that was fitted; of a model from a file, by its fit record."""
    form = form_of(model)
    if form is None:
        raise DataError("stability: needs a fitted model of plainrisk.")
    if hasattr(model, "get_params"):
        return clone(model)
    record: FitRecord | None = model.fit_record_
    estimator = None if record is None else estimator_of(form, record)
    if estimator is None:
        raise DataError(
            "stability: the file does not say all of how the model was fitted. Give the estimator fitted in Python."
        )
    return estimator


def estimator_of(form: RiskForm, record: FitRecord) -> RiskClassifier | None:
    """Return the estimator that fitted a form, unfitted, from the record; None where that is not enough.

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
    if inner is None:
        return None
    inner.set_params(schema=form.schema)
    return model


def _read(node: ast.expr) -> Any:
    """Parse a parameter from its text: a literal, or one of our estimators with literals."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.args:
            raise ValueError("not an estimator")
        return ESTIMATORS[node.func.id](**{str(one.arg): _read(one.value) for one in node.keywords})
    return ast.literal_eval(node)
