"""XGBoost: boosted trees (and lines) of the binary logistic objective, read from the model's own JSON.

XGBoost rounds inputs and adds up leaves in single precision. The splits below are exact; the sum is in double
precision, so it agrees with the library's margin to single precision, about 1e-6.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.errors import ExtractionError
from plainrisk.extract.collapse import collapse
from plainrisk.extract.effects import Effect, NumberEffect
from plainrisk.extract.nodes import Split, float32_edge_below, tree_from
from plainrisk.extract.reading import Additive, Label, TreeSum, class_pair, input_names, refuse
from plainrisk.form import Tree, TreeInput

__all__ = ["booster_trees", "read_booster", "read_xgb_classifier"]


def read_xgb_classifier(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read an XGBClassifier as it predicts: up to the best iteration, with its value for missing."""
    if not model.__sklearn_is_fitted__():
        raise refuse(model, "it is not fitted. Fit it first.")
    missing = math.nan if model.missing is None else float(model.missing)
    booster = model.get_booster()
    attributes = _content(booster)["attributes"]
    best = attributes.get("best_iteration")
    rounds = None if best is None else int(best) + 1
    return _read(model, booster, frame, rounds, missing, class_pair(model))


def booster_trees(model: Any) -> tuple[float, tuple[Tree, ...]]:
    """Return the intercept and the trees of a fitted XGBClassifier whose inputs the caller knows."""
    learner = _content(model.get_booster())
    trees = learner["gradient_booster"]["model"]["trees"]
    intercept = _base_margin(learner["learner_model_param"]["base_score"])
    return intercept, tuple(_tree(model, tree) for tree in trees)


def read_booster(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a Booster as it predicts: all iterations, NaN for missing."""
    return _read(model, model, frame, None, math.nan, (0, 1))


def _content(booster: Any) -> Any:
    return json.loads(bytes(booster.save_raw("json")))["learner"]


def _read(
    model: Any,
    booster: Any,
    frame: Frame | None,
    rounds: int | None,
    missing: float,
    classes: tuple[Label, Label],
) -> Additive | TreeSum:
    learner = _content(booster)
    objective = learner["objective"]["name"]
    if objective != "binary:logistic":
        raise refuse(model, f"its objective is {objective!r}. Use 'binary:logistic'.")
    n_inputs = int(learner["learner_model_param"]["num_feature"])
    columns = input_names(model, learner["feature_names"] or None, n_inputs, frame)
    intercept = _base_margin(learner["learner_model_param"]["base_score"])
    sentinel = None if math.isnan(missing) else missing
    kind = learner["gradient_booster"]["name"]
    content = learner["gradient_booster"].get("model")
    if kind == "gblinear":
        return _lines(content["weights"], columns, intercept, sentinel, classes)
    if kind != "gbtree":
        raise refuse(model, f"its booster is {kind!r}, whose trees have weights. Use 'gbtree'.")
    trees = tuple(_tree(model, tree) for tree in content["trees"][: _n_trees(content, rounds)])
    inputs = tuple(TreeInput(feature=name, missing=sentinel) for name in columns)
    return collapse(TreeSum(intercept=intercept, inputs=inputs, trees=trees, columns=columns, classes=classes))


def _base_margin(text: str) -> float:
    """The base score is kept as a probability; its log odds are taken in single precision, as there."""
    base = np.float32(text.strip("[]"))
    one = np.float32(1.0)
    return float(-np.log(one / base - one))


def _n_trees(content: Any, rounds: int | None) -> int:
    if rounds is None:
        return len(content["trees"])
    return int(content["iteration_indptr"][rounds])


def _tree(model: Any, tree: Any) -> Tree:
    if any(tree["split_type"]):
        raise refuse(model, "it splits on categories (enable_categorical). Encode them as columns of 0 and 1.")
    left, right = tree["left_children"], tree["right_children"]
    conditions, inputs, default_left = tree["split_conditions"], tree["split_indices"], tree["default_left"]

    def describe(node: int) -> Split | float:
        value = float(np.float32(conditions[node]))
        if left[node] == -1:
            return value
        edge = float32_edge_below(value)
        return Split(inputs[node], edge, bool(default_left[node]), left[node], right[node])

    return tree_from(0, describe)


def _lines(
    weights: Any,
    columns: tuple[str, ...],
    intercept: float,
    sentinel: float | None,
    classes: tuple[Label, Label],
) -> Additive:
    """Boosted lines: one weight per input and a bias at the end; a missing input adds nothing."""
    if len(weights) != len(columns) + 1:
        raise ExtractionError("Extract: the weights of a linear booster do not fit its inputs.")
    *slopes, bias = (float(np.float32(w)) for w in weights)
    special = {} if sentinel is None else {sentinel: 0.0}
    effects: dict[str, Effect] = {}
    for name, slope in zip(columns, slopes, strict=True):
        line = NumberEffect.line(slope, missing=0.0)
        effects[name] = NumberEffect(pieces=line.pieces, special=special, missing=0.0)
    return Additive(intercept=intercept + bias, effects=effects, columns=columns, classes=classes)
