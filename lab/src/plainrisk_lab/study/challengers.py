"""From a name and options to an unfitted classifier: ours, a factory's, or any of scikit-learn's kind."""

from __future__ import annotations

from importlib import import_module
from inspect import isclass, signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from plainrisk._types import Array, Floats
from plainrisk.data.frame import Frame, as_frame
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError, MissingExtraError
from plainrisk.form import TreeInput
from plainrisk.models.registry import CLASSIFIERS, make_classifier
from plainrisk.schema import Schema
from plainrisk.study.plan import ClassifierSpec

__all__ = ["OnNumbers", "build"]


def build(spec: ClassifierSpec, schema: Schema) -> Any:
    """Return the unfitted classifier of a study.

    >>> from plainrisk import Feature, Schema
    >>> schema = Schema(features={"age": Feature()})
    >>> build(ClassifierSpec(name="LinARM1", options={"ridge": 0.0}), schema).estimator.ridge
    0.0
    >>> build(ClassifierSpec(name="bayes", make="sklearn.naive_bayes:GaussianNB"), schema).estimator
    GaussianNB()
    """
    if spec.kind in CLASSIFIERS:
        return make_classifier(spec.kind, schema, **spec.options)
    module, _, name = spec.kind.partition(":")
    try:
        factory = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed.") from None
    except (ImportError, AttributeError, ValueError) as error:
        raise DataError(f"Classifier {spec.name!r}: {spec.kind!r} cannot be found: {error}.") from None
    if isclass(factory) and issubclass(factory, BaseEstimator) and "schema" not in signature(factory).parameters:
        return OnNumbers(factory(**spec.options), schema)
    return factory(schema, **spec.options)


class OnNumbers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any scikit-learn classifier on a matrix of numbers that the schema's features become.

    Numbers stay as they are, with NaN for missing values and for the lower bound, which stands for missing. A
    category with a direction becomes its position in the order; any other an indicator per category.

    Parameters
    ----------
    estimator : classifier
    schema : Schema
    """

    def __init__(self, estimator: Any, schema: Schema) -> None:
        self.estimator = estimator
        self.schema = schema

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnNumbers:
        """Fit to rows and outcomes."""
        frame = read_texts(as_frame(X), self.schema.readings)
        self.inputs_ = _inputs(frame, self.schema)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(self._matrix(frame), y, **weight)
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both outcomes."""
        return np.asarray(self.estimator_.predict_proba(self._matrix(read_texts(as_frame(X), self.schema.readings))))

    def _matrix(self, frame: Frame) -> Floats:
        return np.column_stack([one.read(frame) for one in self.inputs_])


def _inputs(frame: Frame, schema: Schema) -> list[TreeInput]:
    inputs: list[TreeInput] = []
    for name, feature in schema.features.items():
        if feature.kind == "continuous":
            inputs.append(TreeInput(feature=name, missing=feature.lower_bound))
        else:
            labels = feature.category_labels or frame.labels(name).labels
            if feature.sign:
                inputs.append(TreeInput(feature=name, order=labels))
            else:
                inputs.extend(TreeInput(feature=name, category=label) for label in labels)
    return inputs
