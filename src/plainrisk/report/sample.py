"""Summaries of rows: how a model does on them, and how far they are from the training rows. No row is kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain import drift, group_report
from plainrisk.explain.options import Adverse
from plainrisk.form import RiskForm
from plainrisk.intervals import Range
from plainrisk.schema import label_of

__all__ = ["summary"]

BARS = 40  # of the histogram of risks


def summary(
    form: RiskForm, rows: Frame, *, target: str | None, by: str | None, cutoff: float, adverse: Adverse
) -> dict[str, Any]:
    """Return what the page says of some rows under a form."""
    if rows.n_rows == 0:
        raise DataError("report: the data have no rows.")
    risk, outcome = form.risk(rows), _outcomes(form, rows, target)
    known = None if outcome is None else ~np.isnan(outcome)
    bad = None if outcome is None else outcome[known]
    return {
        "rows": rows.n_rows,
        "bad": None if bad is None else int(bad.sum()),
        "mean_risk": float(risk.mean()),
        "histogram": _histogram(risk, outcome),
        "metrics": [],
        "calibration": [],
        "cutoffs": [],
        "drift": _drift(form, rows),
        "groups": None if by is None else _groups(rows, by, risk, outcome, cutoff, adverse),
    }


def _outcomes(form: RiskForm, rows: Frame, target: str | None) -> Floats | None:
    """Return 1 for the positive outcome, 0 for the other, NaN where it is missing; None if the data have none."""
    name = target or form.schema.target
    if name is None or name not in rows.columns:
        if target is not None:
            raise DataError(f"report: there is no column {target!r} in the data.{did_you_mean(target, rows.columns)}")
        return None
    column = rows.labels(name)
    classes = [label_of(label) for label in form.classes]
    strange = np.array([*(label not in classes for label in column.labels), False])[column.codes]
    if strange.any():
        raise DataError(
            f"report: column {name!r} holds an outcome in row {int(strange.argmax())} that the model does not know. "
            f"Its outcomes are {classes[0]!r} and {classes[1]!r}."
        )
    values = np.array([*(float(label == classes[1]) for label in column.labels), np.nan])
    return values[column.codes]


def _histogram(risk: Floats, outcome: Floats | None) -> dict[str, Any]:
    edges = np.linspace(0.0, 1.0, BARS + 1)
    bad = None if outcome is None else np.histogram(risk[outcome == 1], edges)[0].tolist()
    return {"edges": edges.tolist(), "rows": np.histogram(risk, edges)[0].tolist(), "bad": bad}


def _drift(form: RiskForm, rows: Frame) -> dict[str, Any] | None:
    """Return how far the rows are from the training rows; None where the form does not count these."""
    try:
        found = drift(form, rows)
    except DataError:
        return None
    return {
        "unit": found.unit,
        "features": [{"feature": f.feature, "psi": f.psi, "shift": f.shift} for f in found.features],
    }


def _groups(
    rows: Frame, by: str, risk: Floats, outcome: Floats | None, cutoff: float, adverse: Adverse
) -> dict[str, Any]:
    if by not in rows.columns:
        raise DataError(f"report: there is no column {by!r} in the data.{did_you_mean(by, rows.columns)}")
    known = None if outcome is None or np.isnan(outcome).any() else outcome
    found = group_report(known, risk, rows.column(by), threshold=cutoff, adverse=adverse)
    ranges = ("base_rate", "auc", "approval", "impact", "opportunity")
    return {
        "column": by,
        "cutoff": found.threshold,
        "reference": found.reference,
        "groups": [
            {"group": g.group, "rows": g.rows, "small": g.small, "mean_risk": g.mean_risk}
            | {name: _plain(getattr(g, name)) for name in ranges}
            for g in found.groups
        ],
    }


def _plain(found: Range) -> dict[str, float]:
    """Return a figure with its interval; msgspec writes what is not a number as null."""
    return {"value": found.estimate, "low": found.low, "high": found.high}
