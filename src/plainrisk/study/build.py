"""From a name and options to an unfitted classifier, and what it needs to be there."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from plainrisk.errors import DataError
from plainrisk.models.classifiers import CLASSIFIERS, make_classifier
from plainrisk.schema import Schema
from plainrisk.study.plan import ClassifierSpec
from plainrisk.study.rivals import RIVALS

__all__ = ["build", "missing_package"]


def build(spec: ClassifierSpec, schema: Schema, conventions: str) -> Any:
    """Return the unfitted classifier of a study.

    >>> from plainrisk import Feature, Schema
    >>> build(ClassifierSpec(name="LinARM1"), Schema(features={"age": Feature()}), "paper").estimator.ridge
    0.0
    """
    if spec.kind in CLASSIFIERS:
        return make_classifier(spec.kind, schema, **spec.settings(conventions))
    if spec.kind in RIVALS:
        return RIVALS[spec.kind].make(schema, **spec.options)
    module, _, name = spec.kind.partition(":")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise DataError(f"Classifier {spec.name!r}: {spec.kind!r} cannot be found: {error}.") from None
    return factory(schema, **spec.options)


def missing_package(spec: ClassifierSpec) -> str | None:
    """Return the package a classifier needs and that is not installed, or None.

    >>> missing_package(ClassifierSpec(name="ARM1")) is None
    True
    """
    needed: tuple[str, ...] = ()
    if spec.kind in RIVALS:
        needed = RIVALS[spec.kind].needs
    elif spec.kind in CLASSIFIERS and "XGB" in spec.kind:
        needed = ("xgboost",)
    return next((package for package in needed if find_spec(package) is None), None)
