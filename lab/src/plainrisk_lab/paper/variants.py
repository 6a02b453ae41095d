"""Variants of our models that answer one question each: what would have been, had this been done otherwise."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

import plainrisk as pr
from plainrisk._types import Array
from plainrisk.data.frame import as_frame
from plainrisk_lab.paper import slsqp

__all__ = ["CodesAsNumbers", "codes_as_numbers", "refitted_line", "without_order"]


def without_order(schema: pr.Schema, *, make: str) -> Any:
    """Return a classifier under the paper's conventions that ignores the directions of categorical features."""
    features = {
        name: msgspec.structs.replace(feature, direction="none") if feature.kind == "categorical" else feature
        for name, feature in schema.features.items()
    }
    return pr.make_classifier(make, msgspec.structs.replace(schema, features=features), paper=True)


def refitted_line(schema: pr.Schema, *, ridge: Any = 0.0) -> Any:
    """Return LinARM2, balanced, whose second layer is fitted on the linearised risks of the first.

    Ours is ARM2 with both links replaced after the fit.
    """
    inner = pr.Linearised(pr.AdditiveRiskModel(ridge=ridge, min_bin_rows=1))
    return pr.Linearised(pr.TwoLayerRiskModel(inner, schema, ridge=ridge, class_weight="balanced"))


def codes_as_numbers(schema: pr.Schema, *, make: str, **options: Any) -> Any:
    """Return a classifier that reads a code for "missing" as the number it is, with no bin of its own.

    `make` is one of the factories of `slsqp`, by name, or a classifier under the paper's conventions.
    """
    plain = {
        name: msgspec.structs.replace(feature, special_values=(), lower_bound=None)
        if feature.kind == "continuous"
        else feature
        for name, feature in schema.features.items()
    }
    plain_schema = msgspec.structs.replace(schema, features=plain)
    factory = getattr(slsqp, make, None)
    model = pr.make_classifier(make, plain_schema, paper=True) if factory is None else factory(plain_schema, **options)
    return CodesAsNumbers(model, schema)


class CodesAsNumbers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is given each feature's first special value wherever a value is missing.

    Parameters
    ----------
    estimator : classifier
    schema : Schema
    """

    def __init__(self, estimator: Any, schema: pr.Schema) -> None:
        self.estimator = estimator
        self.schema = schema

    def fit(self, X: Any, y: Any) -> CodesAsNumbers:
        """Fit to rows and outcomes."""
        self.model_ = clone(self.estimator).fit(self._filled(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both outcomes."""
        return np.asarray(self.model_.predict_proba(self._filled(X)))

    def _filled(self, X: Any) -> dict[str, Any]:
        frame, columns = as_frame(X), {}
        for name, feature in self.schema.features.items():
            columns[name] = frame.column(name)
            if feature.kind == "continuous" and feature.special_values:
                numbers = frame.numbers(name)
                columns[name] = np.where(np.isnan(numbers), float(feature.special_values[0]), numbers)
        return columns
