"""scikit-learn's boosted trees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.extract.collapse import collapse
from plainrisk.extract.nodes import Split, float32_edge_at_most, tree_from
from plainrisk.extract.reading import (
    Additive,
    TreeSum,
    class_pair,
    refuse,
    require_fitted,
    sklearn_names,
)
from plainrisk.form import Tree, TreeInput

__all__ = ["read_gradient_boosting", "read_hist_gradient_boosting"]


def read_hist_gradient_boosting(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a HistGradientBoostingClassifier."""
    rounds = require_fitted(model, "_predictors")
    classes = class_pair(model)
    if model.is_categorical_ is not None and np.any(model.is_categorical_):
        raise refuse(model, "it splits on categories. Encode them as columns of 0 and 1.")
    columns = sklearn_names(model, frame)
    return collapse(
        TreeSum(
            intercept=float(np.ravel(model._baseline_prediction)[0]),
            inputs=tuple(TreeInput(feature=name) for name in columns),
            trees=tuple(_hist_tree(predictor.nodes) for (predictor,) in rounds),
            columns=columns,
            classes=classes,
        )
    )


def _hist_tree(nodes: Any) -> Tree:
    def describe(k: int) -> Split | float:
        node = nodes[k]
        if node["is_leaf"]:
            return float(node["value"])
        return Split(
            int(node["feature_idx"]),
            float(node["num_threshold"]),  # infinite where only missing goes right
            bool(node["missing_go_to_left"]),
            int(node["left"]),
            int(node["right"]),
        )

    return tree_from(0, describe)


def read_gradient_boosting(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a GradientBoostingClassifier; it has no answer where an input is missing."""
    stages = require_fitted(model, "estimators_")
    classes = class_pair(model)
    if model.loss != "log_loss":
        raise refuse(model, f"its loss is {model.loss!r}, which gives no log odds. Use loss='log_loss'.")
    columns = sklearn_names(model, frame)
    return collapse(
        TreeSum(
            intercept=_start(model),
            inputs=tuple(TreeInput(feature=name) for name in columns),
            trees=tuple(_tree(stage[0].tree_, float(model.learning_rate)) for stage in stages),
            columns=columns,
            classes=classes,
            takes_missing=False,
        )
    )


def _start(model: Any) -> float:
    """Where boosting starts: the log odds of the base rate, or zero."""
    if isinstance(model.init_, str) and model.init_ == "zero":
        return 0.0
    if type(model.init_).__name__ != "DummyClassifier" or model.init_.strategy != "prior":
        raise refuse(model, "it starts from a model of its own (init=). Use init=None or 'zero'.")
    tiny = float(np.finfo(np.float64).eps)
    rate = min(max(float(model.init_.class_prior_[1]), tiny), 1 - tiny)
    return math.log(rate / (1 - rate))


def _tree(tree: Any, learning_rate: float) -> Tree:
    def describe(k: int) -> Split | float:
        if tree.children_left[k] == -1:
            return learning_rate * float(tree.value[k, 0, 0])
        # Inputs are rounded to single precision before they are compared with the double threshold.
        edge = float32_edge_at_most(float(tree.threshold[k]))
        return Split(int(tree.feature[k]), edge, False, int(tree.children_left[k]), int(tree.children_right[k]))

    return tree_from(0, describe)
