"""Whether rows are those a model was fitted to."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from plainrisk.explain.monitor import added_by_key
from plainrisk.form import FitRecord, Part, RiskForm, Table
from plainrisk.form.beyond import widen_ranges

__all__ = ["SeenRows"]


class SeenRows:
    """Checks whether rows are the training rows; they are added batch by batch.

    They are taken for the training rows if there are as many, with the same minimum and maximum of every continuous
    feature and, where the form's tables count unweighted rows, as many in every level. A form keeps no rows, so this is
    not a proof.

    Parameters
    ----------
    record : of the fit, which has the number of training rows; without it, the tables have

    Attributes
    ----------
    rows : the number of rows added
    """

    def __init__(self, form: RiskForm, record: FitRecord | None) -> None:
        self.form, self.rows = form, 0
        shapes = {n: s for p in form.parts if isinstance(p, Part) for n, s in p.shapes.items() if isinstance(s, Table)}
        counted = {name: (shape.levels, np.asarray(shape.weights)) for name, shape in shapes.items()}
        totals = [round(float(weights.sum())) for _, weights in counted.values()]
        self._trained = record.rows if record is not None else max(totals, default=0)
        # Sums of weights are not counts if they are not whole numbers or do not add up to the number of rows.
        whole = (np.allclose(weights, weights.round(), rtol=0, atol=1e-6) for _, weights in counted.values())
        self._training = counted if all(whole) and set(totals) <= {self._trained} else {}
        self._counts = {name: np.zeros(len(levels)) for name, (levels, _) in self._training.items()}
        self._ranges: dict[str, tuple[float, float]] = {}

    def add(self, X: Any) -> SeenRows:
        """Add the rows of a batch."""
        frame = self.form.align(X)
        self.rows += frame.n_rows
        if self.rows > self._trained:
            return self
        for name, (levels, _) in self._training.items():
            self._counts[name] += np.bincount(levels.codes(frame, name), minlength=len(levels))
        widen_ranges(self._ranges, self.form.schema, frame, self.form.ranges)
        return self

    def __add__(self, other: SeenRows) -> SeenRows:
        """Return the rows of both."""
        both = copy(self)
        both.rows += other.rows
        both._counts = added_by_key(self._counts, other._counts)
        ends = [*self._ranges.items(), *other._ranges.items()]
        both._ranges = {
            name: (min(low for n, (low, _) in ends if n == name), max(high for n, (_, high) in ends if n == name))
            for name in {**self._ranges, **other._ranges}
        }
        return both

    @property
    def are_all(self) -> bool:
        """Whether the rows that were added are the training rows."""
        if not self.rows or self.rows != self._trained or not (self._training or self.form.ranges):
            return False
        alike = (np.allclose(self._counts[n], weights, rtol=0, atol=1e-6) for n, (_, weights) in self._training.items())
        return self._ranges == self.form.ranges and all(alike)
