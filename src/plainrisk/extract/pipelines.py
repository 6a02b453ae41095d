"""Models behind transformers that keep features apart: Pipeline, ColumnTransformer, FeatureUnion.

Every column a transformer makes is kept as a function of the one feature it comes from, so the sum over the
columns that the last step reads is again a sum over features.
"""

from __future__ import annotations

from typing import Any

from plainrisk.data.frame import Frame
from plainrisk.errors import ExtractionError
from plainrisk.extract.columns import Column
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect, add_effects
from plainrisk.extract.reading import Additive, TreeSum, refuse, require_fitted, sklearn_names
from plainrisk.extract.registry import class_names, read_model
from plainrisk.extract.transformers import PUSHERS, Columns
from plainrisk.form import RiskForm, TreeInput

__all__ = ["push", "read_pipeline", "read_search"]


def read_pipeline(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a pipeline: the last step's log odds as a function of the first step's columns."""
    final = model.steps[-1][1]
    first = next((step for _, step in model.steps if hasattr(step, "n_features_in_")), None)
    if first is None:
        raise refuse(model, "it is not fitted. Fit it first.")
    names = sklearn_names(first, frame)
    columns = [Column(name) for name in names]
    for _, step in model.steps[:-1]:
        columns = push(step, columns)
    if type(final).__module__.startswith("xgboost") and any(_makes_sparse(s) for _, s in model.steps[:-1]):
        raise refuse(model, "XGBoost takes the zeros of a sparse matrix for missing. Use sparse_output=False.")
    read = read_model(final, None)
    if isinstance(read, RiskForm):
        raise refuse(model, "its last step is a risk form already. Read the step itself.")
    if len(read.columns) != len(columns):
        raise refuse(model, f"{len(columns)} columns reach its last step, which reads {len(read.columns)}.")
    if isinstance(read, TreeSum):
        return _trees_behind(read, columns, names)
    return _sum_behind(read, columns, names)


def read_search(model: Any, frame: Frame | None) -> Additive | TreeSum | RiskForm:
    """Read the best model of a fitted search."""
    return read_model(require_fitted(model, "best_estimator_"), frame)


def push(step: Any, columns: Columns) -> Columns:
    """Return the columns a fitted transformer makes of others."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    names = set(class_names(type(step)))
    if "sklearn.pipeline.Pipeline" in names:
        for _, inner in step.steps:
            columns = push(inner, columns)
        return columns
    if "sklearn.compose.ColumnTransformer" in names:
        return _push_apart(step, columns)
    if "sklearn.pipeline.FeatureUnion" in names:
        weights = step.transformer_weights or {}
        parts = [(n, t) for n, t in step.transformer_list if t != "drop"]
        return [c for n, t in parts for c in _weighted(push(t, columns), weights.get(n))]
    pusher = next((PUSHERS[name] for name in class_names(type(step)) if name in PUSHERS), None)
    if pusher is None:
        known = ", ".join(name.rpartition(".")[2] for name in PUSHERS)
        raise refuse(
            step,
            "it may mix features, or change them in a way that is not known, so that the log odds are no sum "
            f"over features. Known steps: {known}, ColumnTransformer, FeatureUnion.",
        )
    return pusher(step, columns)


def _push_apart(step: Any, columns: Columns) -> Columns:
    """A ColumnTransformer: every transformer has its own columns."""
    chosen = require_fitted(step, "_transformer_to_input_indices")
    weights = step.transformer_weights or {}
    out: Columns = []
    for name, transformer, _ in step.transformers_:
        mine = [columns[j] for j in chosen[name]]
        if mine and not (isinstance(transformer, str) and transformer == "drop"):
            out += _weighted(push(transformer, mine), weights.get(name))
    return out


def _makes_sparse(step: Any) -> bool:
    """Whether a step hands on a sparse matrix."""
    if hasattr(step, "sparse_output_"):  # a ColumnTransformer decides by how sparse the result is
        return bool(step.sparse_output_)
    inner = getattr(step, "steps", None) or getattr(step, "transformer_list", None)
    if inner:
        return any(_makes_sparse(part) for _, part in inner)
    return bool(getattr(step, "sparse_output", False)) or getattr(step, "encode", None) == "onehot"


def _weighted(columns: Columns, weight: float | None) -> Columns:
    if weight is None:
        return columns
    return [Column(c.feature, c.mapped(NumberEffect.line(weight))) for c in columns]


def _sum_behind(read: Additive, columns: Columns, names: tuple[str, ...]) -> Additive:
    effects: dict[str, Effect] = {}
    for name, column in zip(read.columns, columns, strict=True):
        if name not in read.effects:
            continue
        effect = read.effects[name]
        inner = column.labelled(effect) if isinstance(effect, LabelEffect) else column.mapped(effect)
        add_effects(effects, column.feature, inner)
    in_order = {name: effects[name] for name in names if name in effects}
    return Additive(intercept=read.intercept, effects=in_order, columns=names, classes=read.classes)


def _trees_behind(read: TreeSum, columns: Columns, names: tuple[str, ...]) -> TreeSum:
    """Trees read a feature as it is, or whether it has one category."""
    place = dict(zip(read.columns, columns, strict=True))
    inputs = tuple(_tree_input(i, place[i.feature]) for i in read.inputs)
    return TreeSum(
        intercept=read.intercept,
        inputs=inputs,
        trees=read.trees,
        columns=names,
        classes=read.classes,
        takes_missing=read.takes_missing,
    )


def _tree_input(own: TreeInput, column: Column) -> TreeInput:
    if column.is_plain:
        return TreeInput(feature=column.feature, missing=own.missing)
    effect = column.effect
    if isinstance(effect, LabelEffect) and own.missing is None:
        ones = [label for label, value in effect.scores.items() if value == 1.0]
        others = {*effect.scores.values(), effect.missing or 0.0, effect.unseen or 0.0}
        if len(ones) == 1 and others <= {0.0, 1.0} and not effect.missing and not effect.unseen:
            return TreeInput(feature=column.feature, category=ones[0])
    raise ExtractionError(
        f"Extract: the trees read feature {column.feature!r} after a step has changed its values. Trees can "
        "be read behind a one-hot encoder or none."
    )
