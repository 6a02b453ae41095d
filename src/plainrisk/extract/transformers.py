"""How scikit-learn's transformers change a column, one feature at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.extract.columns import Column, is_missing
from plainrisk.extract.effects import LabelEffect, NumberEffect
from plainrisk.extract.reading import refuse, require_fitted
from plainrisk.schema import label_of

__all__ = ["PUSHERS", "Columns"]

Columns = list[Column]
Floats = npt.NDArray[np.float64]


def _standard(step: Any, columns: Columns) -> Columns:
    require_fitted(step, "n_samples_seen_")
    return _affine(columns, center=step.mean_ if step.with_mean else None, scale=step.scale_)


def _robust(step: Any, columns: Columns) -> Columns:
    return _affine(columns, center=step.center_, scale=step.scale_)


def _min_max(step: Any, columns: Columns) -> Columns:
    _refuse_clip(step)
    slopes = require_fitted(step, "scale_")
    return _lines(columns, slopes, step.min_)


def _max_abs(step: Any, columns: Columns) -> Columns:
    _refuse_clip(step)
    return _affine(columns, center=None, scale=require_fitted(step, "scale_"))


def _refuse_clip(step: Any) -> None:
    if getattr(step, "clip", False):
        raise refuse(step, "clip=True bends the line. Fit it with clip=False.")


def _affine(columns: Columns, center: Floats | None, scale: Floats | None) -> Columns:
    middle = np.zeros(len(columns)) if center is None else np.asarray(center, dtype=np.float64)
    width = np.ones(len(columns)) if scale is None else np.asarray(scale, dtype=np.float64)
    return _lines(columns, 1.0 / width, -middle / width)


def _lines(columns: Columns, slopes: Iterable[float], constants: Iterable[float]) -> Columns:
    return [
        Column(column.feature, column.mapped(NumberEffect.line(slope, constant)))
        for column, slope, constant in zip(columns, slopes, constants, strict=True)
    ]


def _imputer(step: Any, columns: Columns) -> Columns:
    statistics = require_fitted(step, "statistics_")
    # An imputer fitted to whole numbers cuts the mean to one.
    kind = getattr(step, "_fill_dtype", statistics.dtype)
    value = None if is_missing(step.missing_values) or _is_na(step.missing_values) else step.missing_values
    out = []
    for column, statistic in zip(columns, statistics, strict=True):
        if not is_missing(statistic):
            out.append(column.imputed(value, np.asarray(statistic).astype(kind).item()))
        elif step.keep_empty_features:
            out.append(column.imputed(value, 0))
    indicator = step.indicator_
    found = [] if indicator is None else [columns[j] for j in indicator.features_]
    return [*out, *(_indicator(step, column, value) for column in found)]


def _is_na(value: Any) -> bool:
    return type(value).__name__ == "NAType"


def _indicator(step: Any, column: Column, value: Any) -> Column:
    if not column.is_plain:
        raise refuse(step, f"feature {column.feature!r} was changed before its missing values are marked.")
    special = {} if value is None else {float(value): 1.0}
    effect = replace(NumberEffect.line(0.0), special=special, missing=1.0 if value is None else None)
    return Column(column.feature, effect)


def _one_hot(step: Any, columns: Columns) -> Columns:
    categories = require_fitted(step, "categories_")
    if step.min_frequency is not None or step.max_categories is not None:
        raise refuse(step, "it lumps infrequent categories. Fit it without min_frequency and max_categories.")
    unseen = None if step.handle_unknown == "error" else 0.0
    dropped = [None] * len(columns) if step.drop_idx_ is None else list(step.drop_idx_)
    out = []
    for column, values, drop in zip(columns, categories, dropped, strict=True):
        labels = [None if is_missing(v) else label_of(v) for v in values.tolist()]
        _refuse_two_missing(step, labels)
        for k, label in enumerate(labels):
            if k == drop:
                continue
            scores = {other: float(other == label) for other in labels if other is not None}
            missing = float(label is None) if None in labels else unseen
            out.append(Column(column.feature, column.labelled(LabelEffect(scores, missing, unseen))))
    return out


def _ordinal(step: Any, columns: Columns) -> Columns:
    categories = require_fitted(step, "categories_")
    if step.min_frequency is not None or step.max_categories is not None:
        raise refuse(step, "it lumps infrequent categories. Fit it without min_frequency and max_categories.")
    unseen = None if step.handle_unknown == "error" else float(step.unknown_value)
    if unseen is not None and math.isnan(unseen):
        raise refuse(step, "unknown_value is NaN. Use a number.")
    out = []
    for column, values in zip(columns, categories, strict=True):
        labels = [None if is_missing(v) else label_of(v) for v in values.tolist()]
        _refuse_two_missing(step, labels)
        scores = {label: float(k) for k, label in enumerate(labels) if label is not None}
        stands = float(step.encoded_missing_value)
        missing = unseen if None not in labels else None if math.isnan(stands) else stands
        out.append(Column(column.feature, column.labelled(LabelEffect(scores, missing, unseen))))
    return out


def _refuse_two_missing(step: Any, labels: list[str | None]) -> None:
    if labels.count(None) > 1:
        raise refuse(step, "it tells None from NaN, and here both are missing. Use one of them.")


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


PUSHERS: dict[str, Callable[[Any, Columns], Columns]] = {
    "sklearn.feature_selection.SelectorMixin": _selector,
    "sklearn.impute.SimpleImputer": _imputer,
    "sklearn.preprocessing.FunctionTransformer": _function,
    "sklearn.preprocessing.KBinsDiscretizer": _bins,
    "sklearn.preprocessing.MaxAbsScaler": _max_abs,
    "sklearn.preprocessing.MinMaxScaler": _min_max,
    "sklearn.preprocessing.OneHotEncoder": _one_hot,
    "sklearn.preprocessing.OrdinalEncoder": _ordinal,
    "sklearn.preprocessing.RobustScaler": _robust,
    "sklearn.preprocessing.StandardScaler": _standard,
}
