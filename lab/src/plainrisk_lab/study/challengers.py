"""From a name and options to an unfitted classifier: ours, a factory's, or any of scikit-learn's kind."""

from __future__ import annotations

from importlib import import_module
from inspect import isclass, signature
from typing import Any

from sklearn.base import BaseEstimator

from plainrisk.errors import DataError, MissingExtraError
from plainrisk.models.registry import CLASSIFIERS, make_classifier
from plainrisk.schema import Schema
from plainrisk.validate.challengers import RivalModel
from plainrisk_lab.study.plan import ClassifierSpec

__all__ = ["build"]


def build(spec: ClassifierSpec, schema: Schema) -> Any:
    """Return the unfitted classifier of a study.

    A class of scikit-learn's kind that takes no schema gets the columns as challengers do, see `RivalModel`.

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
        return RivalModel(factory(**spec.options), schema)
    return factory(schema, **spec.options)
