"""Scorecards of optbinning: a logistic regression on the weight of evidence of every feature's bin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plainrisk.data.columns import label_of
from plainrisk.data.frame import Frame
from plainrisk.extract.additive import read_linear
from plainrisk.extract.effects import Effect, LabelEffect, NumberEffect
from plainrisk.extract.reading import Additive, refuse, require_fitted

__all__ = ["read_optbinning"]

UNKNOWN = "\x00 a category that no file has"


def read_optbinning(card: Any, frame: Frame | None) -> Additive:
    """Read a Scorecard: the coefficient of every feature times the weight of evidence of its bins."""
    estimator, process = require_fitted(card, "estimator_"), require_fitted(card, "binning_process_")
    if process.binning_transform_params:
        raise refuse(card, "its binning_transform_params change how bins are transformed. Leave them out.")
    read = read_linear(estimator, None)
    effects: dict[str, Effect] = {}
    for name, effect in read.effects.items():
        assert isinstance(effect, NumberEffect)
        slope = float(effect.at(1.0) or 0.0)
        binned = process.get_binned_variable(name)
        effects[name] = _effect(card, binned).scaled(slope)
    columns = tuple(map(str, process.variable_names))
    return Additive(intercept=read.intercept, effects=effects, columns=columns, classes=read.classes)


def _effect(card: Any, binned: Any) -> Effect:
    """Return the weight of evidence that a feature's binning gives each of its values."""
    metrics = {"metric_special": card._metric_special, "metric_missing": card._metric_missing}

    def said(values: Sequence[Any], dtype: type) -> list[float]:
        found = binned.transform(np.array(values, dtype=dtype), metric="woe", **metrics)
        return [float(value) for value in found]

    codes = binned.special_codes or ()
    codes = [c for group in codes.values() for c in np.ravel(group)] if isinstance(codes, Mapping) else list(codes)
    if binned.dtype == "numerical":
        splits = [float(split) for split in binned.splits]
        middles = [(a + b) / 2 for a, b in itertools.pairwise(splits)]
        values = [splits[0] - 1.0, *middles, splits[-1] + 1.0] if splits else [0.0]
        special = {float(c): value for c, value in zip(codes, said(codes, float), strict=True)} if codes else {}
        # A value equal to a split is on its right.
        edges = tuple(math.nextafter(split, -math.inf) for split in splits)
        steps = NumberEffect.steps(edges, said(values, float), missing=said([math.nan], float)[0])
        return NumberEffect(steps.edges, steps.pieces, special, steps.missing)
    categories = [category for group in binned.splits for category in np.ravel(group)]
    scores = {label_of(c): value for c, value in zip(categories, said(categories, object), strict=True)}
    if codes:
        scores |= {label_of(c): value for c, value in zip(codes, said(codes, object), strict=True)}
    return LabelEffect(scores, said([None], object)[0], said([UNKNOWN], object)[0])
