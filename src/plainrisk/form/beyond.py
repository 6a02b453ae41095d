"""Values that training never saw: beyond the range of a feature's measurements, or a category of their own."""

from __future__ import annotations

import numpy as np

from plainrisk._types import Bools
from plainrisk.data.frame import Frame
from plainrisk.form.form import Part, RiskForm
from plainrisk.form.levels import Bins, Categories

__all__ = ["beyond", "names_beyond"]


def beyond(form: RiskForm, frame: Frame) -> dict[str, Bools]:
    """Return, by feature, which rows have a value beyond training; features without such rows are left out."""
    found = {name: _outside(form, frame, name) for name in form.features}
    return {name: rows for name, rows in found.items() if rows is not None and rows.any()}


def _outside(form: RiskForm, frame: Frame, name: str) -> Bools | None:
    feature = form.schema.features[name]
    if name in form.ranges:
        low, high = form.ranges[name]
        values = frame.numbers(name)
        special = Bins((), tuple(map(float, feature.special_values)), feature.lower_bound)
        return np.asarray((special.code_numbers(values) == 0) & ((values < low) | (values > high)))
    for part in form.parts:
        shape = part.shapes.get(name) if isinstance(part, Part) else None
        if shape is not None and isinstance(shape.levels, Categories):
            return np.asarray(shape.levels.codes(frame, name) == len(shape.levels) - 1)
    return None


def names_beyond(form: RiskForm, frame: Frame) -> list[tuple[str, ...]]:
    """Return, by row, the features whose value is beyond training."""
    found = beyond(form, frame)
    if not found:
        return [()] * frame.n_rows
    return [tuple(name for name, rows in found.items() if rows[i]) for i in range(frame.n_rows)]
