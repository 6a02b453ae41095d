"""interpret: the explainable boosting machine without interactions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect
from plainrisk.extract.reading import Additive, class_pair, input_names, refuse, require_fitted

__all__ = ["read_ebm"]


def read_ebm(model: Any, frame: Frame | None) -> Additive:
    """Read an ExplainableBoostingClassifier: a step function or a table per feature.

    Its scores are numbered: missing, then the bins or categories, then whatever it does not know.
    """
    terms = require_fitted(model, "term_features_")
    classes = class_pair(model)
    if getattr(model, "link_", "logit") != "logit":
        raise refuse(model, f"its link is {model.link_!r}. Use the log loss, whose link is the logit.")
    own = [str(name) for name in model.feature_names_in_]
    pairs = [term for term in terms if len(term) > 1]
    if pairs:
        words = " x ".join(own[j] for j in pairs[0])
        raise refuse(model, f"it has {len(pairs)} interactions (the first is {words}). Fit it with interactions=0.")
    columns = input_names(model, own, len(own), frame, made_up=r"feature_\d+")
    effects: dict[str, Effect] = {name: _flat(model, j) for j, name in enumerate(columns)}
    for (j,), scores in zip(terms, model.term_scores_, strict=True):
        effects[columns[j]] = _effect(model.bins_[j][0], np.asarray(scores, dtype=np.float64))
    intercept = float(np.ravel(model.intercept_)[0])
    return Additive(intercept=intercept, effects=effects, columns=columns, classes=classes)


def _effect(bins: Any, scores: npt.NDArray[np.float64]) -> Effect:
    missing, unknown = float(scores[0]), float(scores[-1])
    if isinstance(bins, dict):
        return LabelEffect({str(label): float(scores[k]) for label, k in bins.items()}, missing, unknown)
    # A value equal to a cut is on its right.
    edges = [math.nextafter(float(cut), -math.inf) for cut in bins]
    return NumberEffect.steps(edges, scores[1:-1].tolist(), missing=missing)


def _flat(model: Any, j: int) -> Effect:
    """A feature that no term uses."""
    if isinstance(model.bins_[j][0], dict):
        return LabelEffect({}, missing=0.0, unseen=0.0)
    return NumberEffect.steps([], [0.0], missing=0.0)
