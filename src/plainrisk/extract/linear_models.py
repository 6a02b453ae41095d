"""Linear models of scikit-learn, and models that hold a fitted one inside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.extract.effects import Effect, NumberEffect
from plainrisk.extract.reading import (
    Additive,
    class_pair,
    refuse,
    require_fitted,
    sklearn_names,
)

__all__ = ["line_effects", "read_linear", "read_sgd"]


def read_linear(model: Any, frame: Frame | None) -> Additive:
    """Read a binary logistic regression: log odds ``intercept + sum of coefficient * x``."""
    coefficients = require_fitted(model, "coef_")
    classes = class_pair(model)
    if getattr(model, "multi_class", None) == "multinomial":
        raise refuse(model, "multi_class='multinomial' doubles the log odds of two classes. Leave it out.")
    columns = sklearn_names(model, frame)
    if hasattr(coefficients, "toarray"):  # after model.sparsify()
        coefficients = coefficients.toarray()
    slopes = np.asarray(coefficients, dtype=np.float64)
    if slopes.shape != (1, len(columns)):
        raise refuse(model, f"it has {slopes.shape[0]} rows of coefficients, and a binary logistic model has one.")
    intercept = float(np.ravel(model.intercept_)[0])
    return Additive(intercept=intercept, effects=line_effects(columns, slopes[0]), columns=columns, classes=classes)


def read_sgd(model: Any, frame: Frame | None) -> Additive:
    """Read a linear model fitted by stochastic gradient descent, if its loss is logistic."""
    if model.loss != "log_loss":
        raise refuse(model, f"its loss is {model.loss!r}, which gives no log odds. Use loss='log_loss'.")
    return read_linear(model, frame)


def line_effects(columns: Iterable[str], slopes: Iterable[float]) -> dict[str, Effect]:
    """Return one straight line per column; a linear model has no answer for missing values."""
    return {name: NumberEffect.line(float(slope)) for name, slope in zip(columns, slopes, strict=True)}
