"""The inputs of the page: the values that each feature may have, and a row to start from."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.frame import Frame
from plainrisk.explain.atoms import Atoms, atoms_of, nearest_value
from plainrisk.form import Bins, Curve, Levels, Line, Part, RiskForm
from plainrisk.form.wording import say_level, say_value

__all__ = ["inputs", "start_row"]

Value = float | str | None

STEPS = 200  # of a slider, about


def inputs(
    form: RiskForm,
    start: Mapping[str, Value],
    homes: Mapping[str, str],
    left: Collection[str],
    rows: Frame | None,
) -> list[dict[str, Any]]:
    """Return the input of every feature, in the order of the schema.

    `homes` are the subscales of features, and `left` those without evidence; `rows` give features that enter as lines
    their range.
    """
    atoms = atoms_of(form)
    return [
        _input(form, atoms[name], start[name], rows) | {"subscale": homes[name], "left": name in left}
        for name in form.schema.features
        if name in atoms
    ]


def _input(form: RiskForm, atoms: Atoms, start: Value, rows: Frame | None) -> dict[str, Any]:
    name, levels = atoms.feature, atoms.levels
    feature = form.schema.features[name]
    bins = levels if isinstance(levels, Bins) else Bins()
    low, high, step = _slider(form, atoms, start, rows) if isinstance(levels, Bins) else (None, None, None)
    special = [say_level(feature, levels, bins.n_ordered + i) for i in range(len(bins.special_values))]
    categories = () if isinstance(levels, Bins) else levels.categories
    return {
        "feature": name,
        "label": feature.title(name),
        "unit": feature.unit,
        "labels": feature.labels,
        "protected": feature.protected,
        "kind": "continuous" if isinstance(levels, Bins) else "categorical",
        "direction": feature.direction,
        "low": low,
        "high": high,
        "step": step,
        "edges": bins.edges,
        "special_values": bins.special_values,
        "special_names": special,
        "lower_bound": bins.lower_bound,
        "range": form.ranges.get(name),
        "categories": categories,
        "category_names": [say_level(feature, levels, code) for code in range(len(categories))],
        "missing_name": say_value(feature, None),
    }


def _counts(form: RiskForm, name: str) -> tuple[Levels, Floats] | None:
    """Return the levels and training weights of a feature in the first term that has any."""
    for part in form.parts:
        if not isinstance(part, Part):
            continue
        shape = part.shapes.get(name)
        if shape is not None and sum(shape.weights) > 0:
            return shape.levels, np.asarray(shape.weights)
        for _, axis, pair in part.pairs_with(name):
            if pair.level_weights(axis).sum() > 0:
                return pair.levels[axis], pair.level_weights(axis)
    return None


# ---- sliders


def _slider(form: RiskForm, atoms: Atoms, start: Value, rows: Frame | None) -> tuple[float, float, float]:
    """Return ends and step of a slider: a little beyond the edges or, if there are none, the values."""
    levels = atoms.levels
    assert isinstance(levels, Bins)
    low, high = _span(form, atoms, start, rows)
    step = 10.0 ** math.floor(math.log10((high - low) / STEPS))
    if all(float(2 * edge).is_integer() for edge in levels.edges) and levels.edges:
        step = max(1.0, step)  # the edges are halfway between whole numbers
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    if levels.lower_bound is not None:
        low = max(low, levels.lower_bound)
    return _tidy(low), _tidy(max(high, low + step)), _tidy(step)


def _span(form: RiskForm, atoms: Atoms, start: Value, rows: Frame | None) -> tuple[float, float]:
    levels = atoms.levels
    assert isinstance(levels, Bins)
    ends = list(levels.edges)
    for shape in form.shapes_of(atoms.feature):
        if isinstance(shape, Curve):
            ends += [shape.breaks[0], shape.breaks[-1]]
        elif isinstance(shape, Line):
            reach = 3.0 / abs(shape.slope) if shape.slope else 1.0
            ends += [shape.center - reach, shape.center + reach] if rows is None else _middle(rows, atoms)
    if isinstance(start, float) and levels.code_numbers(np.array([start]))[0] < levels.n_ordered:
        ends.append(start)
    ends = ends or [0.0 if levels.lower_bound is None else levels.lower_bound]
    low, high = min(ends), max(ends)
    beyond = (high - low) / 8 or max(1.0, abs(low)) / 2
    return low - beyond, high + beyond


def _middle(rows: Frame, atoms: Atoms) -> list[float]:
    """Return the range of nearly all measurements of some rows."""
    levels = atoms.levels
    assert isinstance(levels, Bins)
    x = rows.numbers(atoms.feature)
    x = x[levels.code_numbers(x) < levels.n_ordered]
    return np.quantile(x, [0.01, 0.99]).tolist() if len(x) else []


def _tidy(x: float) -> float:
    return float(f"{x:.12g}")


# ---- the row to start from


def start_row(form: RiskForm) -> dict[str, Value]:
    """Return a row with a common value of every feature: one of its median bin, or its most frequent category.

    Special or missing values are used where they are more frequent in the training rows than measurements.
    """
    atoms = atoms_of(form)
    return {name: _common_value(form, atoms[name]) for name in form.features}


def _common_value(form: RiskForm, atoms: Atoms) -> Value:
    counts = _counts(form, atoms.feature)
    if counts is None:
        return _unknown(atoms)
    levels, weights = counts
    if not isinstance(levels, Bins):
        code = int(np.argmax(weights[:-1]))  # the last level is unseen
        return None if code == levels.missing else levels.labels[code]
    n = levels.n_ordered
    if weights[n:].max() > weights[:n].sum():
        code = n + int(np.argmax(weights[n:]))
        return None if code == levels.missing else _inside(levels, code)
    code = int(np.searchsorted(np.cumsum(weights[:n]), weights[:n].sum() / 2))
    if not levels.edges:
        for shape in form.shapes_of(atoms.feature):
            if isinstance(shape, Line):
                return _rounded(levels, 0, shape.center)
            if isinstance(shape, Curve):
                return _rounded(levels, 0, (shape.breaks[0] + shape.breaks[-1]) / 2)
    return _inside(levels, code)


def _unknown(atoms: Atoms) -> Value:
    """Return a value of a feature without counts, as trees have none."""
    levels = atoms.levels
    if not isinstance(levels, Bins):
        return levels.categories[0] if levels.categories else None
    return _inside(levels, levels.n_ordered // 2)


def _inside(levels: Bins, code: int) -> float | None:
    """Return a value of a level: for a bin between two edges, a short number near its middle."""
    if code >= levels.n_ordered:
        special = code - levels.n_ordered
        return levels.special_values[special] if special < len(levels.special_values) else None
    if 0 < code < levels.n_ordered - 1:
        return _rounded(levels, code, (levels.edges[code - 1] + levels.edges[code]) / 2)
    return nearest_value(levels, code, math.nan)


def _rounded(levels: Bins, code: int, value: float) -> float:
    """Round a value to the fewest decimals that leave it in its bin."""
    for decimals in range(7):
        short = round(value, decimals)
        if levels.level_of(short) == code:
            return short
    return value
