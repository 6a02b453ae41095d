"""XGBoost with the paper's parameters, under the schema's directions if asked: the yardstick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk.bins import line_levels
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, missing_extra
from plainrisk.extract.trees import booster_trees
from plainrisk.form import Alone, Logistic, TreeInput, TreePart
from plainrisk.models.base import RiskClassifier
from plainrisk.models.stream_fit import AnyRows, learn_stream
from plainrisk.models.training import Training
from plainrisk.schema import Schema

__all__ = ["BoostedRiskModel"]

Floats = npt.NDArray[np.float64]

_FIXED = {
    "objective": "the risk is the sigmoid of the sum of the trees, binary:logistic",
    "booster": "the form holds plain trees, gbtree",
    "missing": "it is the lower bound that the schema gives each feature",
    "early_stopping_rounds": "all trees are in the form. Choose n_estimators",
}


class BoostedRiskModel(RiskClassifier):
    """Gradient-boosted trees (XGB, MonoXGB) whose fitted state is a risk form like any other.

    Categorical features enter one-hot; where the schema orders them, by their place in that order. The lower bound of
    a feature is XGBoost's `missing`, as in the paper. Trees of more than one feature are not additive, so contributions
    exist by model or subscale only.

    Parameters
    ----------
    schema : Schema, optional
    monotone : bool, default=False
        Keep the schema's directions.
    max_depth : int, default=2
    n_estimators : int, default=50
    learning_rate : float, default=0.1
    class_weight : None, "balanced" or dict, default=None
    params : dict, optional
        Further parameters of xgboost.XGBClassifier; they go before those above.

    Attributes
    ----------
    booster_ : the fitted xgboost.XGBClassifier
    form_ : RiskForm
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        monotone: bool = False,
        max_depth: int = 2,
        n_estimators: int = 50,
        learning_rate: float = 0.1,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = schema
        self.monotone = monotone
        self.max_depth = max_depth
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.class_weight = class_weight
        self.params = params

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BoostedRiskModel:
        """Fit the trees to rows X and outcomes y."""
        try:
            from xgboost import XGBClassifier
        except ImportError:
            raise missing_extra("xgboost", "boost") from None
        check_params(self.params)
        training = self._read(X, y, sample_weight, self.class_weight)
        inputs = tree_inputs(training)
        signs = tuple(training.schema.features[i.feature].sign if i.category is None else 0 for i in inputs)
        settings = {
            "max_depth": self.max_depth,
            "n_estimators": self.n_estimators,
            "learning_rate": self.learning_rate,
            "eval_metric": "logloss",
            "n_jobs": 1,
            "monotone_constraints": signs if self.monotone else None,
            **(self.params or {}),
        }
        matrix, target, weight = _gathered(inputs, training)
        self.booster_ = XGBClassifier(**settings).fit(matrix, target, sample_weight=weight)
        intercept, trees = booster_trees(self.booster_)
        part = TreePart(name="all", intercept=intercept, inputs=inputs, trees=trees, link=Logistic())
        self._keep(training, [part], Alone(), [])
        return self


def check_params(params: Mapping[str, Any] | None) -> None:
    """Refuse what would make the trees something else than a sum whose sigmoid is the risk."""
    for name, fixed in _FIXED.items():
        if params is not None and name in params:
            raise DataError(f"BoostedRiskModel: params can not set {name!r}: {fixed}.")


def _gathered(inputs: tuple[TreeInput, ...], training: AnyRows) -> tuple[Any, Any, Any]:
    """Return matrix, outcomes and weights: XGBoost grows its trees in memory, on numbers of four bytes."""
    if isinstance(training, Training):
        return read_inputs(inputs, training.frame), training.target, training.weight
    matrix = np.empty((training.n_rows, len(inputs)), np.float32)
    target: list[Any] = []
    weights: list[Any] = []
    done = 0
    for batch in training.batches(task="gathering rows"):
        matrix[done : done + batch.n_rows] = read_inputs(inputs, batch.frame)
        done += batch.n_rows
        target.append(batch.target)
        weights.append(batch.weight)
    weight = None if weights[0] is None else np.concatenate(weights)
    return matrix, np.concatenate(target), weight


def tree_inputs(training: AnyRows) -> tuple[TreeInput, ...]:
    """Return what the trees read: numbers, the places of ordered categories, and an indicator per category."""
    inputs: list[TreeInput] = []
    first = next(training.batches(task="looking at the first rows")).frame
    finders = None if isinstance(training, Training) else {f.name: f for f in learn_stream(training, lines=True)}
    for name, feature in training.schema.features.items():
        if feature.kind == "continuous":
            inputs.append(TreeInput(feature=name, missing=feature.lower_bound))
        elif feature.sign != 0 and feature.categories is None and first.is_numeric(name):
            inputs.append(TreeInput(feature=name))
        elif feature.sign != 0:
            levels = line_levels(first, name, feature) if finders is None else finders[name].levels()
            inputs.append(TreeInput(feature=name, order=levels.labels[: levels.n_ordered]))
        else:
            seen = first.labels(name).labels if finders is None else _sorted(finders[name].labels, first, name)
            labels = feature.category_labels or seen
            inputs.extend(TreeInput(feature=name, category=label) for label in labels)
    return tuple(inputs)


def _sorted(labels: set[str], first: Frame, name: str) -> tuple[str, ...]:
    """Return labels in the order a frame would list them."""
    return tuple(sorted(labels, key=float) if first.is_numeric(name) else sorted(labels))


def read_inputs(inputs: tuple[TreeInput, ...], frame: Frame) -> Floats:
    """Return the matrix the trees read, NaN for missing."""
    return np.column_stack([i.read(frame) for i in inputs])
