"""statsmodels: Logit, and GLM of the binomial family with the logit link."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.extract.linear_models import line_effects
from plainrisk.extract.reading import Additive, input_names, refuse

__all__ = ["read_results"]

# What statsmodels calls the columns of an array.
_MADE_UP = r"const|x\d+"


def read_results(results: Any, frame: Frame | None) -> Additive:
    """Read the results of a fit; the constant column becomes the intercept and is no feature."""
    results = getattr(results, "_results", results)  # inside the wrapper that puts names on arrays
    model = results.model
    _require_logit(model)
    names = [str(name) for name in model.exog_names]
    constant = model.data.const_idx
    others = [name for j, name in enumerate(names) if j != constant]
    _require_plain_columns(model, others)
    if constant is not None and not _shows_constant(names, constant, frame):
        columns = features = input_names(model, others, len(others), frame, made_up=_MADE_UP)
    else:
        columns = input_names(model, names, len(names), frame, made_up=_MADE_UP)
        features = tuple(name for j, name in enumerate(columns) if j != constant)
    parameters = np.asarray(results.params, dtype=np.float64)
    slopes = np.delete(parameters, [] if constant is None else constant)
    intercept = 0.0 if constant is None else float(parameters[constant]) * _level(model, constant)
    return Additive(intercept=intercept, effects=line_effects(features, slopes), columns=columns)


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


def _level(model: Any, constant: int) -> float:
    """The value of the constant column: 1, unless somebody made their own."""
    rows = getattr(model, "exog", None)
    return 1.0 if rows is None else float(rows[0, constant])
