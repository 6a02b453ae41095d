"""glum: the generalized linear model of the binomial family with the logit link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect
from plainrisk.extract.reading import Additive, input_names, refuse, require_fitted
from plainrisk.schema import label_of

__all__ = ["read_glum"]


def read_glum(model: Any, frame: Frame | None) -> Additive:
    """Read a GeneralizedLinearRegressor, also one chosen by cross validation."""
    coefficients = np.asarray(require_fitted(model, "coef_"), dtype=np.float64)
    family, link = type(model.family_instance).__name__, type(model.link_instance).__name__
    if family != "BinomialDistribution" or link != "LogitLink":
        raise refuse(model, f"it is {family} with {link}. Use family='binomial', whose link is the logit.")
    if hasattr(model, "X_model_spec_"):
        raise refuse(model, "it was fitted with a formula. Make the columns before, and fit those.")
    terms = [str(name) for name in model.term_names_]  # the input column of every coefficient
    own = list(dict.fromkeys(terms))
    columns = input_names(model, own, len(own), frame, made_up=r"_col_\d+")
    levels = getattr(model, "_categorical_levels_", {})
    effects: dict[str, Effect] = {}
    for name, column in zip(own, columns, strict=True):
        mine = coefficients[[term == name for term in terms]]
        effects[column] = _table(model, name, levels[name], mine) if name in levels else _line(mine)
    return Additive(intercept=float(model.intercept_), effects=effects, columns=columns)


def _line(coefficients: Any) -> Effect:
    return NumberEffect.line(float(coefficients[0]))


def _table(model: Any, name: str, levels: Sequence[Any], coefficients: Any) -> Effect:
    """One coefficient per category; the first may be left out, and missing may have one at the end."""
    values = [0.0, *coefficients] if model.drop_first else list(coefficients)
    scores = {label_of(level): float(v) for level, v in zip(levels, values, strict=False)}
    missing = None
    if len(values) > len(levels):
        missing = float(values[-1])
    elif model.cat_missing_method == "zero":
        missing = 0.0
    return LabelEffect(scores, missing)
