"""Models behind transformers that keep features apart: Pipeline, ColumnTransformer, FeatureUnion.

Every column that a transformer makes is stored as a function of its one feature, so the sum over the columns that the
last step reads is again a sum over features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plainrisk.data.columns import is_missing, label_of
from plainrisk.data.frame import Frame
from plainrisk.errors import ExtractionError
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect, Piece, add_effects
from plainrisk.extract.reading import Additive, TreeSum, refuse, require_fitted, sklearn_names
from plainrisk.extract.registry import class_names, read_model
from plainrisk.form import RiskForm, TreeInput

__all__ = ["read_pipeline", "read_search"]


# ---- a column between two steps, as a function of one feature


@dataclass(frozen=True)
class Column:
    """A column that a step of a pipeline reads or makes.

    Attributes
    ----------
    feature : the input column it is a function of
    effect : the function; None for the feature as it is, but for the replacements
    replaced : values that an imputer puts in place of others, as (value, new value); None stands for missing
    """

    feature: str
    effect: Effect | None = None
    replaced: tuple[tuple[Any, Any], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether this is the unchanged feature."""
        return self.effect is None and not self.replaced

    def imputed(self, value: Any, new: Any) -> Column:
        """Return the column with one value, or missing (None), replaced by another."""
        new = None if is_missing(new) else new
        if self.effect is None:
            replaced = dict(self.replaced)
            replaced = {old: new if now == value else now for old, now in replaced.items()}
            replaced.setdefault(value, new)
            return replace(self, replaced=tuple(replaced.items()))
        if value is not None:
            raise ExtractionError(
                f"Extract: an imputer replaces {value!r} in feature {self.feature!r} after another step has "
                "changed its values. Put the imputer first."
            )
        if self.effect.missing is not None or new is None:
            return self
        return replace(self, effect=replace(self.effect, missing=_float(new, self.feature)))

    def mapped(self, function: NumberEffect) -> Effect:
        """Return a function of the column's number as a function of the feature."""
        if self.effect is not None:
            return _through(function, self.effect, self.feature)
        special, missing = dict(function.special), function.missing
        for value, new in self.replaced:
            image = function.missing if new is None else function.at(_float(new, self.feature))
            if value is None:
                missing = image
            elif image is not None:
                special[_float(value, self.feature)] = image
        return replace(function, special=special, missing=missing)

    def labeled(self, function: LabelEffect) -> LabelEffect:
        """Return a function of the column's label as a function of the feature's label."""
        if self.effect is not None:
            raise ExtractionError(
                f"Extract: an encoder reads feature {self.feature!r} after another step has changed its "
                "values. Encode the feature as it is."
            )
        scores: dict[str, float | None] = dict(function.scores)
        missing = function.missing
        for value, new in self.replaced:
            image = function.at(None if new is None else label_of(new))
            if value is None:
                missing = image
            else:
                scores[label_of(value)] = image
        return LabelEffect({k: v for k, v in scores.items() if v is not None}, missing, function.unseen)


def _through(function: NumberEffect, inner: Effect, feature: str) -> Effect:
    """Return ``function(inner(x))``, where that is exact."""
    # A missing value stays missing until a step replaces it.
    missing = function.missing if inner.missing is None else function.at(inner.missing)
    if isinstance(inner, LabelEffect):
        return replace(inner.mapped(function.at), missing=missing)
    if function.is_line:
        constant, slope = (*function.pieces[0].moved(0.0).coefficients, 0.0)[:2]
        return replace(inner.scaled(slope, constant), missing=missing)
    if inner.degree > 0:
        # Where a scaled value falls next to an edge depends on how the scaler rounds.
        raise ExtractionError(
            f"Extract: feature {feature!r} is scaled before a step that bins it, so that the edges in its "
            "own unit are not known exactly. Leave the scaler out: binning needs none."
        )
    special = {x: function.at(v) for x, v in inner.special.items()}
    return NumberEffect(
        inner.edges,
        tuple(Piece((function.at(piece.coefficients[0]) or 0.0,)) for piece in inner.pieces),
        {x: v for x, v in special.items() if v is not None},
        missing,
    )


def _float(value: Any, feature: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ExtractionError(
            f"Extract: feature {feature!r} is read as a number, but a step puts {value!r} into it."
        ) from None


# ---- scikit-learn's transformers, one feature at a time


Columns = list[Column]


def _scaler(step: Any, columns: Columns) -> Columns:
    """Any scaler is a line per column: ``slope * x + constant``."""
    require_fitted(step, "n_features_in_")
    if getattr(step, "clip", False):
        raise refuse(step, "clip=True bends the line. Fit it with clip=False.")
    if hasattr(step, "min_"):  # MinMaxScaler
        slopes, constants = step.scale_, step.min_
    else:
        middle = step.mean_ if getattr(step, "with_mean", False) else getattr(step, "center_", None)
        width = np.ones(len(columns)) if step.scale_ is None else step.scale_
        slopes, constants = 1.0 / width, -(np.zeros(len(columns)) if middle is None else middle) / width
    return [
        Column(column.feature, column.mapped(NumberEffect.line(slope, constant)))
        for column, slope, constant in zip(columns, slopes, constants, strict=True)
    ]


def _imputer(step: Any, columns: Columns) -> Columns:
    statistics = require_fitted(step, "statistics_")
    # An imputer fitted to integers truncates the mean.
    kind = getattr(step, "_fill_dtype", statistics.dtype)
    value = None if is_missing(step.missing_values) else step.missing_values
    out = []
    for column, statistic in zip(columns, statistics, strict=True):
        if not is_missing(statistic):
            out.append(column.imputed(value, np.asarray(statistic).astype(kind).item()))
        elif step.keep_empty_features:
            out.append(column.imputed(value, 0))
    indicator = step.indicator_
    flagged = [] if indicator is None else [columns[j] for j in indicator.features_]
    return [*out, *(_indicator(step, column, value) for column in flagged)]


def _indicator(step: Any, column: Column, value: Any) -> Column:
    if not column.is_plain:
        raise refuse(step, f"feature {column.feature!r} was changed before its missing values are marked.")
    special = {} if value is None else {float(value): 1.0}
    effect = replace(NumberEffect.line(0.0), special=special, missing=1.0 if value is None else None)
    return Column(column.feature, effect)


def _one_hot(step: Any, columns: Columns) -> Columns:
    categories = _categories(step)
    unseen = None if step.handle_unknown == "error" else 0.0
    dropped = [None] * len(columns) if step.drop_idx_ is None else list(step.drop_idx_)
    out = []
    for column, labels, drop in zip(columns, categories, dropped, strict=True):
        for label in (label for k, label in enumerate(labels) if k != drop):
            scores = {other: float(other == label) for other in labels if other is not None}
            missing = float(label is None) if None in labels else unseen
            out.append(Column(column.feature, column.labeled(LabelEffect(scores, missing, unseen))))
    return out


def _ordinal(step: Any, columns: Columns) -> Columns:
    categories = _categories(step)
    unseen = None if step.handle_unknown == "error" else float(step.unknown_value)
    if unseen is not None and math.isnan(unseen):
        raise refuse(step, "unknown_value is NaN. Use a number.")
    code = float(step.encoded_missing_value)
    out = []
    for column, labels in zip(columns, categories, strict=True):
        scores = {label: float(k) for k, label in enumerate(labels) if label is not None}
        missing = unseen if None not in labels else None if math.isnan(code) else code
        out.append(Column(column.feature, column.labeled(LabelEffect(scores, missing, unseen))))
    return out


def _categories(step: Any) -> list[list[str | None]]:
    """Return the labels of an encoder's categories, column by column; None is missing."""
    categories = require_fitted(step, "categories_")
    if step.min_frequency is not None or step.max_categories is not None:
        raise refuse(step, "it lumps infrequent categories. Fit it without min_frequency and max_categories.")
    labels = [[None if is_missing(v) else label_of(v) for v in values.tolist()] for values in categories]
    if any(of_column.count(None) > 1 for of_column in labels):
        raise refuse(step, "it tells None from NaN, and here both are missing. Use one of them.")
    return labels


def _bins(step: Any, columns: Columns) -> Columns:
    out = []
    for column, edges in zip(columns, require_fitted(step, "bin_edges_"), strict=True):
        # It puts a value that is equal to an edge on the right.
        inner = [math.nextafter(float(e), -math.inf) for e in edges[1:-1]]
        numbers = np.arange(len(inner) + 1.0)
        rows = [numbers] if step.encode == "ordinal" else np.eye(len(numbers))
        out += [Column(column.feature, column.mapped(NumberEffect.steps(inner, list(r)))) for r in rows]
    return out


def _function(step: Any, columns: Columns) -> Columns:
    if step.func is not None:
        name = getattr(step.func, "__name__", "its function")
        raise refuse(step, f"what {name} does to a column is not known.")
    return columns


def _selector(step: Any, columns: Columns) -> Columns:
    return [columns[j] for j in step.get_support(indices=True)]


TRANSFORMERS: dict[str, Callable[[Any, Columns], Columns]] = {
    "sklearn.feature_selection.SelectorMixin": _selector,
    "sklearn.impute.SimpleImputer": _imputer,
    "sklearn.preprocessing.FunctionTransformer": _function,
    "sklearn.preprocessing.KBinsDiscretizer": _bins,
    "sklearn.preprocessing.MaxAbsScaler": _scaler,
    "sklearn.preprocessing.MinMaxScaler": _scaler,
    "sklearn.preprocessing.OneHotEncoder": _one_hot,
    "sklearn.preprocessing.OrdinalEncoder": _ordinal,
    "sklearn.preprocessing.RobustScaler": _scaler,
    "sklearn.preprocessing.StandardScaler": _scaler,
}


# ---- pipelines


def read_pipeline(model: Any, frame: Frame | None) -> Additive | TreeSum:
    """Read a pipeline: the last step's log odds as a function of the first step's columns."""
    final = model.steps[-1][1]
    first = next((step for _, step in model.steps if hasattr(step, "n_features_in_")), None)
    if first is None:
        raise refuse(model, "it is not fitted. Fit it first.")
    names = sklearn_names(first, frame)
    columns = [Column(name) for name in names]
    for _, step in model.steps[:-1]:
        columns = transformed(step, columns)
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


def transformed(step: Any, columns: Columns) -> Columns:
    """Return the columns a fitted transformer makes of others."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    names = set(class_names(type(step)))
    if "sklearn.pipeline.Pipeline" in names:
        for _, inner in step.steps:
            columns = transformed(inner, columns)
        return columns
    if "sklearn.compose.ColumnTransformer" in names:
        return _column_transformer(step, columns)
    if "sklearn.pipeline.FeatureUnion" in names:
        return _feature_union(step, columns)
    transform = next((TRANSFORMERS[name] for name in class_names(type(step)) if name in TRANSFORMERS), None)
    if transform is None:
        known = ", ".join(name.rpartition(".")[2] for name in TRANSFORMERS)
        raise refuse(
            step,
            "it may mix features, or change them in a way that is not known, so that the log odds are no sum "
            f"over features. Known steps: {known}, ColumnTransformer, FeatureUnion.",
        )
    return transform(step, columns)


def _column_transformer(step: Any, columns: Columns) -> Columns:
    """A ColumnTransformer: every transformer has its own columns."""
    chosen = require_fitted(step, "_transformer_to_input_indices")
    weights = step.transformer_weights or {}
    out: Columns = []
    for name, transformer, _ in step.transformers_:
        mine = [columns[j] for j in chosen[name]]
        if mine and not (isinstance(transformer, str) and transformer == "drop"):
            out += _weighted(transformed(transformer, mine), weights.get(name))
    return out


def _feature_union(step: Any, columns: Columns) -> Columns:
    """A FeatureUnion: every transformer reads all columns."""
    weights = step.transformer_weights or {}
    parts = [(name, transformer) for name, transformer in step.transformer_list if transformer != "drop"]
    return [column for name, t in parts for column in _weighted(transformed(t, columns), weights.get(name))]


def _makes_sparse(step: Any) -> bool:
    """Whether a step returns a sparse matrix."""
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
        inner = column.labeled(effect) if isinstance(effect, LabelEffect) else column.mapped(effect)
        add_effects(effects, column.feature, inner)
    column_of = dict(zip(read.columns, columns, strict=True))
    for pair in read.pairs:
        for name in pair.features:
            if not column_of[name].is_plain:
                raise ExtractionError(
                    f"Extract: feature {column_of[name].feature!r} stands in an interaction after a step has changed "
                    "its values. Interactions can be read of features as they are."
                )
    pairs = tuple(
        replace(p, features=(column_of[p.features[0]].feature, column_of[p.features[1]].feature)) for p in read.pairs
    )
    in_order = {name: effects[name] for name in names if name in effects}
    return replace(read, effects=in_order, pairs=pairs, columns=names)


def _trees_behind(read: TreeSum, columns: Columns, names: tuple[str, ...]) -> TreeSum:
    """Trees read a feature unchanged, or an indicator of one of its categories."""
    column_of = dict(zip(read.columns, columns, strict=True))
    inputs = tuple(_tree_input(source, column_of[source.feature]) for source in read.inputs)
    return replace(read, inputs=inputs, columns=names)


def _tree_input(tree_input: TreeInput, column: Column) -> TreeInput:
    if column.is_plain:
        return TreeInput(feature=column.feature, missing=tree_input.missing)
    effect = column.effect
    if isinstance(effect, LabelEffect) and tree_input.missing is None:
        ones = [label for label, value in effect.scores.items() if value == 1.0]
        others = {*effect.scores.values(), effect.missing or 0.0, effect.unseen or 0.0}
        if len(ones) == 1 and others <= {0.0, 1.0} and not effect.missing and not effect.unseen:
            return TreeInput(feature=column.feature, category=ones[0])
    raise ExtractionError(
        f"Extract: the trees read feature {column.feature!r} after a step has changed its values. Trees can "
        "be read behind a one-hot encoder or none."
    )
