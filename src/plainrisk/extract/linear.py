"""Linear models of other libraries: scikit-learn, glum (binomial, logit link) and statsmodels (Logit, GLM)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.columns import label_of
from plainrisk.data.frame import Frame
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect
from plainrisk.extract.reading import Additive, class_pair, input_names, refuse, require_fitted, sklearn_names

__all__ = ["read_glum", "read_linear", "read_sgd", "read_statsmodels"]

_STATSMODELS_NAMES = r"const|x\d+"  # what statsmodels calls the columns of an array


# ---- scikit-learn


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
    return Additive(intercept=intercept, effects=_lines(columns, slopes[0]), columns=columns, classes=classes)


def read_sgd(model: Any, frame: Frame | None) -> Additive:
    """Read a linear model fitted by stochastic gradient descent, if its loss is logistic."""
    if model.loss != "log_loss":
        raise refuse(model, f"its loss is {model.loss!r}, which gives no log odds. Use loss='log_loss'.")
    return read_linear(model, frame)


def _lines(columns: Iterable[str], slopes: Iterable[float]) -> dict[str, Effect]:
    """Return one straight line per column; a linear model has no answer for missing values."""
    return {name: NumberEffect.line(float(slope)) for name, slope in zip(columns, slopes, strict=True)}


# ---- glum


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
        effects[column] = _table(model, levels[name], mine) if name in levels else NumberEffect.line(float(mine[0]))
    return Additive(intercept=float(model.intercept_), effects=effects, columns=columns)


def _table(model: Any, levels: Sequence[Any], coefficients: Floats) -> Effect:
    """One coefficient per category; the first may be left out, and missing may have one at the end."""
    values = [0.0, *coefficients] if model.drop_first else list(coefficients)
    scores = {label_of(level): float(v) for level, v in zip(levels, values, strict=False)}
    missing = None
    if len(values) > len(levels):
        missing = float(values[-1])
    elif model.cat_missing_method == "zero":
        missing = 0.0
    return LabelEffect(scores, missing)


# ---- statsmodels


def read_statsmodels(results: Any, frame: Frame | None) -> Additive:
    """Read the results of a fit; the constant column becomes the intercept and is no feature."""
    results = getattr(results, "_results", results)  # inside the wrapper that puts names on arrays
    model = results.model
    _require_logit(model)
    names = [str(name) for name in model.exog_names]
    constant = model.data.const_idx
    others = [name for j, name in enumerate(names) if j != constant]
    _require_plain_columns(model, others)
    if constant is not None and not _shows_constant(names, constant, frame):
        columns = features = input_names(model, others, len(others), frame, made_up=_STATSMODELS_NAMES)
    else:
        columns = input_names(model, names, len(names), frame, made_up=_STATSMODELS_NAMES)
        features = tuple(name for j, name in enumerate(columns) if j != constant)
    parameters = np.asarray(results.params, dtype=np.float64)
    slopes = np.delete(parameters, [] if constant is None else constant)
    intercept = 0.0
    if constant is not None:
        # The value of the constant column is 1, unless somebody made their own.
        level = 1.0 if getattr(model, "exog", None) is None else float(model.exog[0, constant])
        intercept = level * float(parameters[constant])
    return Additive(intercept=intercept, effects=_lines(features, slopes), columns=columns)


def _require_logit(model: Any) -> None:
    kind = type(model).__name__
    if kind == "GLM":
        family, link = type(model.family).__name__, type(model.family.link).__name__
        if family != "Binomial" or link != "Logit":
            raise refuse(model, f"it is {family} with a {link} link. Use Binomial with the logit link.")
    elif kind != "Logit":
        raise refuse(model, "it is not a logistic model. Logit and GLM (Binomial, logit link) are.")
    for extra in ("offset", "exposure"):
        if np.any(getattr(model, extra, None)):
            raise refuse(model, f"it was fitted with an {extra}, which is no feature. Make it a column.")


def _require_plain_columns(model: Any, names: list[str]) -> None:
    """A formula may make columns of its own; only those that are a column of the data can be read."""
    if getattr(model, "formula", None) is None:
        return
    made = [name for name in names if not re.fullmatch(r"\w+", name)]
    if made:
        raise refuse(model, f"its formula makes the column {made[0]!r}. Make the columns before, and fit those.")


def _shows_constant(names: list[str], constant: int, frame: Frame | None) -> bool:
    """Whether the rows, if there are any, have the constant column too, as the model's own rows do."""
    if frame is None:
        return True
    if frame.named and any(name in frame.columns for j, name in enumerate(names) if j != constant):
        return names[constant] in frame.columns
    return len(frame.names) == len(names)
