"""What extractors return, and the checks of a model that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.errors import ExtractionError
from plainrisk.extract.effects import Effect, PairEffect
from plainrisk.form import RiskForm, Tree, TreeInput

__all__ = [
    "Additive",
    "Extractor",
    "Label",
    "Sigmoid",
    "TreeSum",
    "class_pair",
    "input_names",
    "refuse",
    "require_fitted",
    "sklearn_names",
]

Label = str | int | float | bool
Sigmoid = Literal["logistic", "probit", "cloglog"]


@dataclass(frozen=True, kw_only=True)
class Additive:
    """Log odds that are a sum over features: ``intercept + sum over u of effects[u](x_u)``.

    Attributes
    ----------
    columns : the model's input columns in order; those without an effect are not features
    classes : the two outcomes; the log odds are those of the last
    pairs : what pairs of features add
    sigmoid : from the sum to the probability, "logistic" unless the sum is no log odds
    """

    intercept: float
    effects: Mapping[str, Effect]
    columns: tuple[str, ...]
    classes: tuple[Label, Label] = (0, 1)
    pairs: tuple[PairEffect, ...] = ()
    sigmoid: Sigmoid = "logistic"


@dataclass(frozen=True, kw_only=True)
class TreeSum:
    """Log odds that are a sum of trees: ``intercept + sum of trees(inputs)``.

    Attributes
    ----------
    takes_missing : whether the model has an answer where an input is missing
    """

    intercept: float
    inputs: tuple[TreeInput, ...]
    trees: tuple[Tree, ...]
    columns: tuple[str, ...]
    classes: tuple[Label, Label] = (0, 1)
    takes_missing: bool = True


Extractor = Callable[[Any, Frame | None], Additive | TreeSum | RiskForm]


def refuse(model: Any, reason: str) -> ExtractionError:
    """Return the error that names the model and says why it cannot be read."""
    return ExtractionError(f"Extract: {type(model).__name__} cannot be read: {reason}")


def require_fitted(model: Any, attribute: str) -> Any:
    """Return an attribute that fitting sets, or raise that the model is not fitted."""
    # The libraries' own errors for unfitted models are all AttributeErrors.
    value = getattr(model, attribute, None)
    if value is None:
        raise refuse(model, "it is not fitted. Fit it first.")
    return value


def class_pair(model: Any) -> tuple[Label, Label]:
    """Return the two outcomes of a fitted classifier, or refuse one with more."""
    classes = np.asarray(require_fitted(model, "classes_"))
    if classes.ndim != 1 or len(classes) != 2:
        raise refuse(
            model,
            f"it is multi-class ({len(classes)} outcomes), and a risk is the probability of one of two.",
        )
    first, last = (c if isinstance(c, str | int | float | bool) else str(c) for c in classes.tolist())
    return first, last


def sklearn_names(model: Any, frame: Frame | None) -> tuple[str, ...]:
    """Return the input columns of a fitted scikit-learn model."""
    names = getattr(model, "feature_names_in_", None)
    return input_names(model, None if names is None else list(names), int(model.n_features_in_), frame)


def input_names(
    model: Any, names: Sequence[Any] | None, n_inputs: int, frame: Frame | None, *, made_up: str | None = None
) -> tuple[str, ...]:
    """Return the names of a model's inputs: its own, or by position those of the rows it is shown.

    `made_up` is the pattern of the names that a library invents for rows without names.
    """
    stated = _own_names(names, made_up)
    numbered = tuple(f"x{j}" for j in range(n_inputs))
    if frame is None:
        return stated or numbered
    if stated is not None and frame.named:
        absent = [name for name in stated if name not in frame.columns]
        if absent:
            raise refuse(model, f"its input {absent[0]!r} is not a column of the rows it was shown.")
        return stated
    if len(frame.names) != n_inputs:
        raise refuse(model, f"it reads {n_inputs} columns, and the rows it was shown have {len(frame.names)}.")
    return stated or (frame.names if frame.named else numbered)


def _own_names(names: Sequence[Any] | None, made_up: str | None) -> tuple[str, ...] | None:
    if names and made_up and all(re.fullmatch(made_up, str(name)) for name in names):
        return None
    return None if names is None else tuple(map(str, names))
