"""LightGBM: boosted trees of the binary objective, read from the model's own dump.

LightGBM has three ways with missing values, per split: NaN goes to a default side; zero counts as missing
too and goes there; or there are none, and NaN is read as zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from plainrisk.data.frame import Frame
from plainrisk.extract.collapse import collapse
from plainrisk.extract.nodes import Split, tree_from
from plainrisk.extract.reading import (
    Additive,
    Label,
    TreeSum,
    class_pair,
    input_names,
    refuse,
    require_fitted,
)
from plainrisk.form import Tree, TreeInput

__all__ = ["read_lgbm_booster", "read_lgbm_classifier"]

# LightGBM reads everything as near to zero as this as zero.
_ZERO = float(np.float32(1e-35))
_BELOW_ZERO = math.nextafter(-_ZERO, -math.inf)


def read_lgbm_classifier(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read an LGBMClassifier, up to its best iteration."""
    booster = require_fitted(model, "booster_")
    return _read(model, booster, frame, class_pair(model))


def read_lgbm_booster(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a Booster, up to its best iteration."""
    return _read(model, model, frame, (0, 1))


def _read(model: Any, booster: Any, frame: Frame | None, classes: tuple[Label, Label]) -> Additive | TreeSum:
    content = booster.dump_model()
    objective, _, options = str(content.get("objective", "none")).partition(" ")
    if objective != "binary":
        raise refuse(model, f"its objective is {objective!r}. Use 'binary'.")
    if content["average_output"]:
        raise refuse(model, "it averages its trees (a random forest). Use boosting_type='gbdt'.")
    names = content["feature_names"]
    columns = input_names(model, _spelt_as(frame, names), len(names), frame, made_up=r"Column_\d+")
    slope = _sigmoid(options)
    trees = tuple(_tree(model, t["tree_structure"], slope) for t in content["tree_info"])
    inputs = tuple(TreeInput(feature=name) for name in columns)
    return collapse(TreeSum(intercept=0.0, inputs=inputs, trees=trees, columns=columns, classes=classes))


def _spelt_as(frame: Frame | None, names: list[str]) -> list[str]:
    """LightGBM puts underscores for blanks; the rows have the names as they were."""
    if frame is None or not frame.named:
        return names
    spelling = {name.replace(" ", "_"): name for name in frame.names}
    return [name if name in frame.columns else spelling.get(name, name) for name in names]


def _sigmoid(options: str) -> float:
    """The probability is the sigmoid of a multiple of the sum of trees; it is 1 unless somebody set it."""
    pairs = dict(option.split(":") for option in options.split() if ":" in option)
    return float(pairs.get("sigmoid", 1.0))


def _tree(model: Any, root: Mapping[str, Any], slope: float) -> Tree:
    def describe(node: Mapping[str, Any]) -> Split | float:
        if "leaf_coeff" in node:
            raise refuse(model, "its leaves are lines (linear_tree). Fit it with linear_tree=False.")
        if "split_feature" not in node:
            return slope * float(node["leaf_value"])
        if node["decision_type"] != "<=":
            raise refuse(model, "it splits on categories. Encode them as columns of 0 and 1.")
        return _split(node)

    return tree_from(root, describe)


def _split(node: Mapping[str, Any]) -> Split:
    j, edge = int(node["split_feature"]), float(node["threshold"])
    left, right, default_left = node["left_child"], node["right_child"], bool(node["default_left"])
    if abs(edge) <= _ZERO:
        edge = _ZERO if edge >= 0 else _BELOW_ZERO
    if node["missing_type"] == "None":
        return Split(j, edge, edge >= 0, left, right)
    if node["missing_type"] == "NaN":
        return Split(j, edge, default_left, left, right)
    # Zero is missing. Where it would go to the default side anyway, or next to it, one edge will do.
    if default_left and edge >= _BELOW_ZERO:
        return Split(j, max(edge, _ZERO), True, left, right)
    if not default_left and edge <= _ZERO:
        return Split(j, min(edge, _BELOW_ZERO), False, left, right)
    if default_left:  # left up to the edge, right up to zero, zero left, right again
        zero = Split(j, _ZERO, True, left, right)
        return Split(j, edge, True, left, Split(j, _BELOW_ZERO, False, right, zero))
    above = Split(j, edge, False, left, right)  # left up to zero, zero right, left up to the edge, right
    return Split(j, _BELOW_ZERO, False, left, Split(j, _ZERO, True, right, above))
