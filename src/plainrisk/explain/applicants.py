"""The rows a what-if search starts from, read once, and scored again with changed values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.explain.moves import FeatureMoves
from plainrisk.explain.places import Value, value_frame
from plainrisk.form import Part, RiskForm

__all__ = ["Applicants"]

Floats = npt.NDArray[np.float64]


class Applicants:
    """Rows under a form.

    Attributes
    ----------
    risk : (n,)
    terms : per part, what each feature adds to the score
    places : the place of every row in each feature that can move
    columns : the values the form reads, numbers or text
    """

    def __init__(self, form: RiskForm, frame: Frame, moves: Mapping[str, FeatureMoves]) -> None:
        self.form = form
        self.risk = form.risk(frame)
        self.terms = [p.terms(frame, form.schema) if isinstance(p, Part) else {} for p in form.parts]
        self.places = {name: m.places.levels.codes(frame, name) for name, m in moves.items()}
        names = dict.fromkeys(name for part in form.parts for name in part.features)
        self.columns = {name: _plain(form, frame, name) for name in names}

    def __len__(self) -> int:
        return len(self.risk)

    def value(self, row: int, name: str) -> Value:
        """Return the value a row has, None where it is missing."""
        value = self.columns[name][row]
        return None if value is None or value != value else value if isinstance(value, str) else float(value)

    def number(self, row: int, name: str) -> float:
        """Return the same as a number, NaN where it is none."""
        value = self.value(row, name)
        return value if isinstance(value, float) else math.nan

    def scored(self, changes: Sequence[tuple[int, Mapping[str, Value]]]) -> Floats:
        """Return the risk of rows with some values changed, by scoring them."""
        values = {
            name: [c[name] if name in c else self.value(row, name) for row, c in changes] for name in self.columns
        }
        return self.form.risk(value_frame(values))


def _plain(form: RiskForm, frame: Frame, name: str) -> npt.NDArray[Any]:
    if form.schema.features[name].kind == "categorical":
        column = frame.labels(name)
        return np.array([*column.labels, None], dtype=object)[column.codes]
    return frame.numbers(name)
