"""Features that separate the outcomes by themselves, from what a fit has counted; the limit is that of drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from plainrisk.errors import warn
from plainrisk.fit.training import Training, TrainingRows
from plainrisk.form import Bins, Part, RiskForm, Table
from plainrisk.schema.check import feature_cells, say_leak
from plainrisk.schema.evidence import FEW, Cells, leaks_of, level_cells, spread_rows

__all__ = ["warn_of_leaks"]

_SAMPLE = 5_000  # rows of features that a fit does not count: ten times as many take ten times as long


def warn_of_leaks(form: RiskForm | None, training: TrainingRows) -> None:
    """Warn of features of a model that may be known only after the decision.

    Parameters
    ----------
    form : the fitted form; None where there is none, and all features of the schema are checked
    """
    cells = {} if form is None else _counted(form, training)
    names = training.schema.features if form is None else form.features
    cells |= _sampled([name for name in names if name not in cells], training)
    for name in names:
        for leak in leaks_of(name, cells[name], pure=False) if name in cells else ():
            warn(f"Data: {say_leak(leak)}")


def _counted(form: RiskForm, training: TrainingRows) -> dict[str, Cells]:
    """Return the levels of every table of a form as cells: in rows, however these are weighted."""
    factors = np.ones(2) if training.factors is None else training.factors
    cells: dict[str, Cells] = {}
    for part in form.parts:
        for name, shape in part.shapes.items() if isinstance(part, Part) else ():
            if not isinstance(shape, Table) or name in cells:
                continue
            positive = np.asarray(shape.positives)
            by_outcome = np.array([np.asarray(shape.weights) - positive, positive]) / factors[:, None]
            total = by_outcome.sum(axis=0)
            scale = training.n_rows / total.sum()
            bad = by_outcome[1 if training.schema.worse > 0 else 0]
            numeric = isinstance(shape.levels, Bins)
            labels = [label if numeric or label == "missing" else f"= {label!r}" for label in shape.levels.labels]
            cells[name] = level_cells(labels, scale * total, scale * bad, shape.levels.n_ordered if numeric else 0)
    return cells


def _sampled(names: Sequence[str], training: TrainingRows) -> dict[str, Cells]:
    """Count features of lines and trees in the first batch that has enough rows of both outcomes."""
    if not names:
        return {}
    sample: _FirstCells = training.sum(_FirstCells(tuple(names)), names, "looking for leaks")
    return sample.cells


@dataclass(frozen=True)
class _FirstCells:
    """The cells of features in the first batch that has enough rows of both outcomes; called, it looks at a batch."""

    names: tuple[str, ...]
    cells: dict[str, Cells] = field(default_factory=dict)

    def __call__(self, batch: Training) -> _FirstCells:
        rows, features = spread_rows(batch.n_rows, _SAMPLE), batch.schema.features
        bad = (batch.target[rows] == (batch.schema.worse > 0)).astype(np.float64)
        if not FEW <= bad.sum() <= len(bad) - FEW:
            return self
        return replace(self, cells={n: feature_cells(n, features[n], batch.frame, rows, bad) for n in self.names})

    def __add__(self, other: _FirstCells) -> _FirstCells:
        return self if self.cells else other
