"""Boosted trees of scikit-learn, XGBoost (and its lines) and LightGBM, with the logistic loss."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.errors import ExtractionError
from plainrisk.extract.effects import Effect, NumberEffect
from plainrisk.extract.reading import (
    Additive,
    Label,
    TreeSum,
    class_pair,
    input_names,
    refuse,
    require_fitted,
    sklearn_names,
)
from plainrisk.extract.tree_sums import Split, collapse, float32_edge_at_most, float32_edge_below, tree_from
from plainrisk.form import Tree, TreeInput

__all__ = [
    "booster_trees",
    "read_gradient_boosting",
    "read_hist_gradient_boosting",
    "read_lightgbm_booster",
    "read_lightgbm_classifier",
    "read_xgboost_booster",
    "read_xgboost_classifier",
]

# LightGBM takes every number this close to zero for zero.
_ZERO = float(np.float32(1e-35))
_BELOW_ZERO = math.nextafter(-_ZERO, -math.inf)


def _boosted(
    columns: tuple[str, ...],
    classes: tuple[Label, Label],
    intercept: float,
    trees: Iterable[Tree],
    *,
    sentinel: float | None = None,
    takes_missing: bool = True,
) -> Additive | TreeSum:
    """Return a sum of trees whose inputs are the columns; the number `sentinel` represents missing."""
    return collapse(
        TreeSum(
            intercept=intercept,
            inputs=tuple(TreeInput(feature=name, missing=sentinel) for name in columns),
            trees=tuple(trees),
            columns=columns,
            classes=classes,
            takes_missing=takes_missing,
        )
    )


# ---- scikit-learn


def read_hist_gradient_boosting(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a HistGradientBoostingClassifier."""
    rounds = require_fitted(model, "_predictors")
    classes = class_pair(model)
    if model.is_categorical_ is not None and np.any(model.is_categorical_):
        raise refuse(model, "it splits on categories. Encode them as columns of 0 and 1.")
    columns = sklearn_names(model, frame)
    intercept = float(np.ravel(model._baseline_prediction)[0])
    return _boosted(columns, classes, intercept, [_hist_tree(predictor.nodes) for (predictor,) in rounds])


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
    trees = [_sklearn_tree(stage[0].tree_, float(model.learning_rate)) for stage in stages]
    return _boosted(columns, classes, _first_log_odds(model), trees, takes_missing=False)


def _first_log_odds(model: Any) -> float:
    """Return where boosting starts: at the log odds of the base rate, or at zero."""
    if isinstance(model.init_, str) and model.init_ == "zero":
        return 0.0
    if type(model.init_).__name__ != "DummyClassifier" or model.init_.strategy != "prior":
        raise refuse(model, "it starts from a model of its own (init=). Use init=None or 'zero'.")
    tiny = float(np.finfo(np.float64).eps)
    rate = min(max(float(model.init_.class_prior_[1]), tiny), 1 - tiny)
    return math.log(rate / (1 - rate))


def _sklearn_tree(tree: Any, learning_rate: float) -> Tree:
    def describe(k: int) -> Split | float:
        if tree.children_left[k] == -1:
            return learning_rate * float(tree.value[k, 0, 0])
        # Inputs are rounded to single precision before they are compared with the double threshold.
        edge = float32_edge_at_most(float(tree.threshold[k]))
        return Split(int(tree.feature[k]), edge, False, int(tree.children_left[k]), int(tree.children_right[k]))

    return tree_from(0, describe)


# ---- XGBoost


def read_xgboost_classifier(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read an XGBClassifier as it predicts: up to the best iteration, with its value for missing.

    XGBoost rounds inputs and adds up leaves in single precision. The splits read here are exact; the sum is in
    double precision, so it agrees with the library's margin to single precision, about 1e-6.
    """
    if not model.__sklearn_is_fitted__():
        raise refuse(model, "it is not fitted. Fit it first.")
    learner = _learner(model.get_booster())
    best = learner["attributes"].get("best_iteration")
    sentinel = None if model.missing is None or math.isnan(model.missing) else float(model.missing)
    return _read_xgboost(model, learner, frame, class_pair(model), None if best is None else int(best) + 1, sentinel)


def booster_trees(model: Any) -> tuple[float, tuple[Tree, ...]]:
    """Return the intercept and the trees of a fitted XGBClassifier whose inputs the caller knows."""
    learner = _learner(model.get_booster())
    trees = learner["gradient_booster"]["model"]["trees"]
    intercept = _base_margin(learner["learner_model_param"]["base_score"])
    return intercept, tuple(_xgboost_tree(model, tree) for tree in trees)


def read_xgboost_booster(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a Booster as it predicts: all iterations, NaN for missing."""
    return _read_xgboost(model, _learner(model), frame, (0, 1))


def _learner(booster: Any) -> Any:
    return json.loads(bytes(booster.save_raw("json")))["learner"]


def _read_xgboost(
    model: Any,
    learner: Any,
    frame: Frame | None,
    classes: tuple[Label, Label],
    rounds: int | None = None,
    sentinel: float | None = None,
) -> Additive | TreeSum:
    objective = learner["objective"]["name"]
    if objective != "binary:logistic":
        raise refuse(model, f"its objective is {objective!r}. Use 'binary:logistic'.")
    n_inputs = int(learner["learner_model_param"]["num_feature"])
    columns = input_names(model, learner["feature_names"] or None, n_inputs, frame)
    intercept = _base_margin(learner["learner_model_param"]["base_score"])
    kind = learner["gradient_booster"]["name"]
    content = learner["gradient_booster"].get("model")
    if kind == "gblinear":
        return _xgboost_lines(content["weights"], columns, classes, intercept, sentinel)
    if kind != "gbtree":
        raise refuse(model, f"its booster is {kind!r}, whose trees have weights. Use 'gbtree'.")
    n_trees = None if rounds is None else int(content["iteration_indptr"][rounds])
    trees = [_xgboost_tree(model, tree) for tree in content["trees"][:n_trees]]
    return _boosted(columns, classes, intercept, trees, sentinel=sentinel)


def _base_margin(text: str) -> float:
    """The base score is stored as a probability; its log odds are computed in single precision, as in the library."""
    base = np.float32(text.strip("[]"))
    one = np.float32(1.0)
    return float(-np.log(one / base - one))


def _xgboost_tree(model: Any, tree: Any) -> Tree:
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


def _xgboost_lines(
    weights: Any, columns: tuple[str, ...], classes: tuple[Label, Label], intercept: float, sentinel: float | None
) -> Additive:
    """Boosted lines: one weight per input and a bias at the end; a missing input adds nothing."""
    if len(weights) != len(columns) + 1:
        raise ExtractionError("Extract: the weights of a linear booster do not fit its inputs.")
    *slopes, bias = (float(np.float32(w)) for w in weights)
    special = {} if sentinel is None else {sentinel: 0.0}
    effects: dict[str, Effect] = {
        name: replace(NumberEffect.line(slope, missing=0.0), special=special)
        for name, slope in zip(columns, slopes, strict=True)
    }
    return Additive(intercept=intercept + bias, effects=effects, columns=columns, classes=classes)


# ---- LightGBM


def read_lightgbm_classifier(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read an LGBMClassifier, up to its best iteration."""
    booster = require_fitted(model, "booster_")
    return _read_lightgbm(model, booster, frame, class_pair(model))


def read_lightgbm_booster(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a Booster, up to its best iteration."""
    return _read_lightgbm(model, model, frame, (0, 1))


def _read_lightgbm(model: Any, booster: Any, frame: Frame | None, classes: tuple[Label, Label]) -> Additive | TreeSum:
    content = booster.dump_model()
    objective, _, options = str(content.get("objective", "none")).partition(" ")
    if objective != "binary":
        raise refuse(model, f"its objective is {objective!r}. Use 'binary'.")
    if content["average_output"]:
        raise refuse(model, "it averages its trees (a random forest). Use boosting_type='gbdt'.")
    names = content["feature_names"]
    columns = input_names(model, _spelled_as(frame, names), len(names), frame, made_up=r"Column_\d+")
    # The probability is the sigmoid of a multiple of the sum of trees; the factor is 1 unless somebody set it.
    pairs = dict(option.split(":") for option in options.split() if ":" in option)
    factor = float(pairs.get("sigmoid", 1.0))
    trees = [_lightgbm_tree(model, t["tree_structure"], factor) for t in content["tree_info"]]
    return _boosted(columns, classes, 0.0, trees)


def _spelled_as(frame: Frame | None, names: list[str]) -> list[str]:
    """Return the names as the rows have them; LightGBM replaces blanks by underscores."""
    if frame is None or not frame.named:
        return names
    spelling = {name.replace(" ", "_"): name for name in frame.names}
    return [name if name in frame.columns else spelling.get(name, name) for name in names]


def _lightgbm_tree(model: Any, root: Mapping[str, Any], factor: float) -> Tree:
    def describe(node: Mapping[str, Any]) -> Split | float:
        if "leaf_coeff" in node:
            raise refuse(model, "its leaves are lines (linear_tree). Fit it with linear_tree=False.")
        if "split_feature" not in node:
            return factor * float(node["leaf_value"])
        if node["decision_type"] != "<=":
            raise refuse(model, "it splits on categories. Encode them as columns of 0 and 1.")
        return _lightgbm_split(node)

    return tree_from(root, describe)


def _lightgbm_split(node: Mapping[str, Any]) -> Split:
    """Return a split with one of LightGBM's three treatments of missing values.

    NaN goes to a default side; or zero also counts as missing and goes there; or nothing is missing and NaN is zero.
    """
    j, edge = int(node["split_feature"]), float(node["threshold"])
    left, right, default_left = node["left_child"], node["right_child"], bool(node["default_left"])
    if abs(edge) <= _ZERO:
        edge = _ZERO if edge >= 0 else _BELOW_ZERO
    if node["missing_type"] == "None":
        return Split(j, edge, edge >= 0, left, right)
    if node["missing_type"] == "NaN":
        return Split(j, edge, default_left, left, right)
    # Zero is missing. If it goes to the default side anyway, or to the side next to it, one edge suffices.
    if default_left and edge >= _BELOW_ZERO:
        return Split(j, max(edge, _ZERO), True, left, right)
    if not default_left and edge <= _ZERO:
        return Split(j, min(edge, _BELOW_ZERO), False, left, right)
    if default_left:  # left up to the edge, right up to zero, zero left, right again
        zero = Split(j, _ZERO, True, left, right)
        return Split(j, edge, True, left, Split(j, _BELOW_ZERO, False, right, zero))
    above = Split(j, edge, False, left, right)  # left up to zero, zero right, left up to the edge, right
    return Split(j, _BELOW_ZERO, False, left, Split(j, _ZERO, True, right, above))
