"""Summaries of rows: the model's performance, and shifts since training. No row is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from plainrisk._types import Floats, Outcome
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError, did_you_mean
from plainrisk.explain import SeenRows, drift
from plainrisk.explain.groups import compare_groups
from plainrisk.explain.options import Adverse
from plainrisk.form import FitRecord, RiskForm
from plainrisk.intervals import Range
from plainrisk.measure.cutoffs import Cutoff, risk_cutoffs
from plainrisk.measure.evaluation import evaluate_risk

__all__ = ["LABELS", "summary"]

BARS = 40  # of the histogram of risks
LABELS = {
    "auc": "AUC",
    "gini": "Gini",
    "h_measure": "H-measure",
    "ks": "KS",
    "brier": "Brier score",
    "log_loss": "Log loss",
    "ece": "Expected calibration error",
    "gap": "Mean prediction less observed rate",
    "slope": "Calibration slope",
    "intercept": "Calibration intercept",
}


def summary(
    form: RiskForm,
    fit: FitRecord | None,
    rows: Frame,
    *,
    target: str | None,
    by: str | None,
    cutoff: float,
    adverse: Adverse,
) -> dict[str, Any]:
    """Return the page's data for some rows under a form."""
    if rows.n_rows == 0:
        raise DataError("report: the data have no rows.")
    risk, outcome = form.risk(rows), _outcomes(form, rows, target)
    seen_before = outcome is not None and SeenRows(form, fit).add(rows).are_all
    return {
        "rows": rows.n_rows,
        "bad": None if outcome is None else int(outcome.sum()),
        "mean_risk": float(risk.mean()),
        "histogram": _histogram(risk, outcome),
        **_measured(risk, outcome, adverse, seen_before),
        "drift": _drift(form, rows),
        "groups": None if by is None else _groups(rows, by, risk, outcome, cutoff, adverse),
    }


def _outcomes(form: RiskForm, rows: Frame, target: str | None) -> Outcome | None:
    """Return 1 for the outcome whose probability the model predicts; None if the data have no outcomes."""
    name = target or form.schema.target
    if name is None or name not in rows.columns:
        if target is not None:
            raise DataError(f"report: there is no column {target!r} in the data.{did_you_mean(target, rows.columns)}")
        return None
    try:
        return rows.labels(name).outcomes(form.classes)
    except DataError as error:
        raise DataError(f"report: outcome {name!r}: {error}") from None


def _measured(risk: Floats, outcome: Outcome | None, adverse: Adverse, seen_before: bool) -> dict[str, Any]:
    """Return metrics, the calibration table and cut-offs, all with intervals; without outcomes they are empty."""
    if outcome is None:
        return {"metrics": [], "calibration": [], "cutoffs": [], "notes": []}
    evaluation = replace(evaluate_risk(outcome, risk), seen_before=seen_before)
    bins = evaluation.calibration.to_dict()
    names = {"low": "lower", "high": "upper", "rows": "count", "predicted": "predicted", "observed": "observed"}
    names |= {"observed_low": "low", "observed_high": "high"}
    columns = zip(*map(bins.get, names.values()), strict=True)
    return {
        "metrics": [{"name": name, "label": LABELS[name], **_plain(evaluation[name])} for name in LABELS],
        "calibration": [dict(zip(names, line, strict=True)) for line in columns],
        "cutoffs": [_cutoff(line, len(risk)) for line in risk_cutoffs(outcome, risk, adverse=adverse).shown()],
        "notes": evaluation.notes,
    }


def _cutoff(line: Cutoff, rows: int) -> dict[str, Any]:
    return {
        "cutoff": line.cutoff,
        "approved": round(line.approval.estimate * rows),
        "approval_rate": line.approval.estimate,
        "bad_rate": line.bad_rate.estimate,
        "bad_rate_low": line.bad_rate.low,
        "bad_rate_high": line.bad_rate.high,
        "bad_refused": line.bads_refused.estimate,
        "good_refused": line.goods_refused.estimate,
    }


def _histogram(risk: Floats, outcome: Outcome | None) -> dict[str, Any]:
    edges = np.linspace(0.0, 1.0, BARS + 1)
    bad = None if outcome is None else np.histogram(risk[outcome == 1], edges)[0].tolist()
    return {"edges": edges.tolist(), "rows": np.histogram(risk, edges)[0].tolist(), "bad": bad}


def _drift(form: RiskForm, rows: Frame) -> dict[str, Any] | None:
    """Return the shifts since training; None if the form has no counts of training rows."""
    try:
        shifts = drift(form, rows)
    except DataError:
        return None
    limits = form.schema.policy.drift
    return {
        "unit": shifts.unit,
        "moderate": limits.moderate,
        "large": limits.large,
        "features": [{"feature": f.feature, "psi": f.psi, "shift": f.shift} for f in shifts.features],
    }


def _groups(
    rows: Frame, by: str, risk: Floats, outcome: Outcome | None, cutoff: float, adverse: Adverse
) -> dict[str, Any]:
    if by not in rows.columns:
        raise DataError(f"report: there is no column {by!r} in the data.{did_you_mean(by, rows.columns)}")
    report = compare_groups(outcome, risk, rows.column(by), cutoff=cutoff, adverse=adverse)
    ranges = ("base_rate", "auc", "approval", "impact", "opportunity")
    return {
        "column": by,
        "cutoff": report.cutoff,
        "reference": report.reference,
        "groups": [
            {"group": g.group, "rows": g.rows, "small": g.small, "mean_risk": g.mean_risk}
            | {name: _plain(getattr(g, name)) for name in ranges}
            for g in report.groups
        ],
    }


def _plain(figure: Range) -> dict[str, float]:
    return {"value": figure.estimate, "low": figure.low, "high": figure.high}
