"""The paper's boosted trees, 50 trees of depth 2, under the schema's directions if asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from plainrisk._types import Array, Floats
from plainrisk.checks import FLAG, NOTHING, instance, number, parameter, whole
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, SchemaError, missing_extra, quoted, warn
from plainrisk.extract.trees import booster_trees
from plainrisk.fit.coding import learn_levels
from plainrisk.fit.parameters import CLASS_WEIGHT, ClassWeight
from plainrisk.fit.scored import PartScores
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import Alone, Logistic, TreeInput, TreePart
from plainrisk.models.base import RiskClassifier
from plainrisk.schema import Schema

__all__ = ["BoostedRiskModel"]

_FIXED = {
    "objective": "the risk is the sigmoid of the sum of the trees, binary:logistic",
    "booster": "the form holds plain trees, gbtree",
    "missing": "it is the lower bound that the schema gives each feature",
    "early_stopping_rounds": "all trees are in the form. Choose n_estimators",
}


@dataclass(eq=False, repr=False)
class BoostedRiskModel(RiskClassifier):
    """The paper's boosted trees (XGB, MonoXGB): 50 trees of depth 2, whose fitted state is a risk form like any other.

    Grown by the package xgboost, but with the paper's settings, which are small: xgboost with its default settings is
    often ahead of them (`pr.challengers` shows by how much).

    Categorical features enter one-hot; where the schema orders them, by their place in that order. The lower bound of
    a feature is XGBoost's `missing`, as in the paper. Trees of more than one feature are not additive, so contributions
    exist by model or subscale only. Trees may send missing and special values either way, so the schema's rules for
    them do not apply, except "error".

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
        Further parameters of xgboost.XGBClassifier, which take precedence over those above.

    Attributes
    ----------
    booster_ : the fitted xgboost.XGBClassifier
    form_ : RiskForm

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = BoostedRiskModel(german.schema, monotone=True).fit(german.frame, german.target)  # doctest: +SKIP
    >>> model.certify().valid  # doctest: +SKIP
    True
    """

    schema: Schema | None = None
    _: KW_ONLY
    monotone: bool = parameter(False, FLAG)
    max_depth: int = parameter(2, whole(1))
    n_estimators: int = parameter(50, whole(1))
    learning_rate: float = parameter(0.1, number(above=0))
    class_weight: ClassWeight = parameter(None, CLASS_WEIGHT)
    params: Mapping[str, Any] | None = parameter(
        None, NOTHING | instance("a dict of parameters of XGBClassifier", Mapping)
    )

    @property
    def _keeps_rules(self) -> bool:
        return False  # trees may send missing values and codes either way

    def _fit(self, training: TrainingRows) -> PartScores:
        try:
            from xgboost import XGBClassifier
        except ImportError:
            raise missing_extra("xgboost", "boost") from None
        check_params(self.params)
        if self.monotone:
            _warn_of_special_values(training.schema)
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
        try:
            self.booster_ = XGBClassifier(**settings).fit(matrix, target, sample_weight=weight)
        except (TypeError, ValueError) as error:  # an XGBoostError is a ValueError
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise DataError(f"BoostedRiskModel: XGBoost refuses the parameters: {reason}") from error
        intercept, trees = booster_trees(self.booster_)
        part = TreePart(name="all", intercept=intercept, inputs=inputs, trees=trees, link=Logistic())
        return self._keep(training, [part], Alone(), [])


def check_params(params: Mapping[str, Any] | None) -> None:
    """Refuse settings under which the risk would not be the sigmoid of the sum of the trees."""
    for name, fixed in _FIXED.items():
        if params is not None and name in params:
            raise DataError(f"BoostedRiskModel: params cannot set {name!r}: {fixed}.")


def _gathered(inputs: tuple[TreeInput, ...], training: TrainingRows) -> tuple[Any, Any, Any]:
    """Return matrix, outcomes and weights: XGBoost grows its trees in memory, on numbers of four bytes."""
    matrix, target, weights = zip(*training.gathered(_Matrix(inputs)), strict=True)
    return np.concatenate(matrix), np.concatenate(target), None if weights[0] is None else np.concatenate(weights)


@dataclass(frozen=True)
class _Matrix:
    """The input of XGBoost for some rows."""

    inputs: tuple[TreeInput, ...]

    def __call__(self, batch: Training) -> tuple[Any, Any, Any]:
        return _short_numbers(self.inputs, batch.frame), batch.target, batch.weight


def _short_numbers(inputs: tuple[TreeInput, ...], frame: Frame) -> Array:
    """Return the matrix as numbers of four bytes, or name the feature whose numbers are too large for them."""
    with np.errstate(over="ignore"):
        matrix = read_inputs(inputs, frame).astype(np.float32)
    wide = np.isinf(matrix).any(axis=0)
    if wide.any():
        name = inputs[int(wide.argmax())].feature
        raise DataError(
            f"BoostedRiskModel: feature {name!r} has numbers beyond 3.4e38, the largest that XGBoost holds. Divide the "
            "feature by a constant, or take its logarithm."
        )
    return matrix


def tree_inputs(training: TrainingRows) -> tuple[TreeInput, ...]:
    """Return what the trees read: numbers, the places of ordered categories, and an indicator per category."""
    grouped = [n for n, f in training.schema.features.items() if f.groups or f.rare is not None]
    if grouped:
        raise SchemaError(
            f"BoostedRiskModel: trees read categories one by one, not groups or rare ones: {quoted(grouped, 5)}. Merge "
            "the categories in the data, or remove groups and rare."
        )
    inputs: list[TreeInput] = []
    first = training.first()
    levels = learn_levels(training, lines=True)
    seen = _seen_labels(training)
    for name, feature in training.schema.features.items():
        is_number = feature.kind == "continuous"
        if is_number or (feature.sign != 0 and feature.categories is None and first.is_numeric(name)):
            inputs.append(TreeInput(feature=name, missing=feature.lower_bound if is_number else None))
        elif feature.sign != 0:
            ordered = levels[name].labels[: levels[name].n_ordered]
            inputs.append(TreeInput(feature=name, order=tuple(k for k in ordered if k in seen.get(name, ordered))))
        else:
            labels = levels[name].labels[:-2]  # special values are among them, missing and unseen are not
            inputs.extend(TreeInput(feature=name, category=k) for k in labels if k in seen.get(name, labels))
    return tuple(inputs)


def _seen_labels(training: TrainingRows) -> dict[str, set[str]]:
    """Return the categories that training rows have, of the features for which the schema refuses all others."""
    strict = [n for n, f in training.schema.features.items() if f.unseen == "error" and f.kind == "categorical"]
    if not strict:
        return {}
    (seen,) = training.sum(_SeenLabels(tuple(strict)), strict, "looking at categories")
    return {name: set(labels) for name, labels in zip(strict, seen, strict=True)}


@dataclass(frozen=True)
class _SeenLabels:
    """The categories of features in some rows."""

    names: tuple[str, ...]

    def __call__(self, batch: Training) -> tuple[list[tuple[str, ...]]]:
        columns = [batch.frame.labels(name) for name in self.names]
        return ([tuple(column.labels[k] for k in np.unique(column.codes) if k >= 0) for column in columns],)


def _warn_of_special_values(schema: Schema) -> None:
    """Tell the user that a direction orders special values, too, as the numbers they are written as."""
    special = [
        name
        for name, feature in schema.features.items()
        if feature.kind == "continuous" and feature.sign and set(feature.special_values) - {feature.lower_bound}
    ]
    if special:
        warn(
            f"BoostedRiskModel: trees read special values as plain numbers, so that a direction orders them, too: "
            f"{quoted(special, 5)}. Replace them by missing values, or use a model that has a level for each.",
        )


def read_inputs(inputs: tuple[TreeInput, ...], frame: Frame) -> Floats:
    """Return the matrix the trees read, NaN for missing."""
    return np.column_stack([i.read(frame) for i in inputs])
