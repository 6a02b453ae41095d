"""The measurements on the test rows: values, figures, groups, periods, shifts, reasons, comparisons."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from plainrisk.data.columns import Labels
from plainrisk.data.frame import Frame
from plainrisk.decision import refused
from plainrisk.document.evidence import Evidence, Sample
from plainrisk.errors import DataError
from plainrisk.explain import SeenRows, decide, diff, drift
from plainrisk.explain.groups import compare_groups
from plainrisk.form import Levels, RiskForm, Table
from plainrisk.form.wording import say_levels
from plainrisk.measure.cutoffs import risk_cutoffs
from plainrisk.measure.evaluation import evaluate_risk
from plainrisk.validate.grouping import groups_by
from plainrisk.validate.monitoring import monitor
from plainrisk.validate.periods import periods
from plainrisk.validate.quality import quality
from plainrisk.validate.stress import is_coded, sensitivity, stress
from plainrisk.validate.weak_spots import weak_spots

__all__ = [
    "against",
    "by_period",
    "cutoffs",
    "data",
    "groups",
    "performance",
    "reasons",
    "sensitive",
    "shifts",
    "watched",
    "weak",
]

BARS = 20  # of the histogram of risks
SHOCK = 10  # percent by which numbers move against the applicants
MOST_GROUPS = 40  # of a column; identifiers have thousands


def data(given: Evidence) -> dict[str, Any]:
    """Describe the rows: how many, with which outcomes, values and probabilities."""
    return {
        "test": _sample(given, given.test),
        "train": None if given.train is None else _sample(given, given.train),
        "quality": quality(given.model, given.test.rows, given.labels(given.test)),
        "fields": _fields(given.form, given.test.rows),
        "histogram": _histogram(given.test),
    }


def _sample(given: Evidence, sample: Sample) -> dict[str, Any]:
    form, rows = given.form, sample.rows
    return {
        "name": sample.source.name,
        "files": list(sample.source.files),
        "rows": rows.n_rows,
        "columns": len(rows.names),
        "positives": int(sample.outcome.sum()),
        "base_rate": float(sample.outcome.mean()),
        "mean_risk": float(sample.risk.mean()),
        "seen_before": SeenRows(form, given.record).add(rows).are_all,
    }


def _fields(form: RiskForm, rows: Frame) -> list[dict[str, Any]]:
    """Return the shares of rows with an empty field or a code, by feature, in the test rows and in training."""
    shares_by_feature = []
    for name, (shape, *_) in ((name, form.shapes_of(name)) for name in form.features if form.shapes_of(name)):
        levels, trained = shape.levels, np.asarray(shape.weights)
        test = np.bincount(levels.codes(rows, name), minlength=len(levels))
        outside = slice(levels.n_ordered, levels.missing)
        shares = {
            f"{what}_{side}": float(counts[which].sum() / counts.sum()) if counts.sum() else None
            for what, which in (("empty", levels.missing), ("codes", outside))
            for side, counts in (("test", test), ("train", trained))
        }
        shares_by_feature.append({"feature": name, **shares})
    return shares_by_feature


def _histogram(sample: Sample) -> dict[str, Any]:
    edges = np.linspace(0.0, 1.0, BARS + 1)
    sides = {"positive": sample.outcome == 1, "other": sample.outcome == 0}
    return {"edges": edges, **{name: np.histogram(sample.risk[side], edges)[0] for name, side in sides.items()}}


def performance(given: Evidence) -> dict[str, Any]:
    """Measure ranking and calibration."""
    return evaluate_risk(given.test.outcome, given.test.risk).to_dict()


def cutoffs(given: Evidence) -> dict[str, Any]:
    """Return the effects of cut-offs."""
    test, cutoff = given.test, given.cutoff
    table = risk_cutoffs(test.outcome, test.risk, adverse=given.form.schema.adverse, cutoff=cutoff)
    assert table.chosen is not None
    return {**table.to_dict(), "chosen": table.chosen.to_dict()}


def groups(given: Evidence) -> list[dict[str, Any]]:
    """Compare groups of protected features, of the columns that were asked for, and of the leading feature."""
    form, rows = given.form, given.test.rows
    kinds = dict.fromkeys(form.schema.protected, "protected") | dict.fromkeys(given.by, "asked")
    columns = {name: (kind, groups_by("document", rows, name, None, form)) for name, kind in kinds.items()}
    name, levels = _leading_feature(given)
    if levels is not None and name not in columns:
        codes = levels.codes(rows, name).astype(np.intp)
        columns[name] = ("leading", Labels(codes, say_levels(form.schema.features[name], levels)))
    return [_group(given, name, *groups) for name, groups in columns.items() if len(groups[1].groups()) <= MOST_GROUPS]


def _group(given: Evidence, name: str, kind: str, groups: Labels) -> dict[str, Any]:
    cutoff, schema = given.cutoff, given.form.schema
    report = compare_groups(given.test.outcome, given.test.risk, groups, cutoff=cutoff, adverse=schema.adverse)
    order = list(groups.groups())
    sorted_groups = sorted(report.groups, key=lambda group: order.index(group.group))
    return {"column": name, "title": schema.title(name), "kind": kind, **vars(report), "groups": sorted_groups}


def _leading_feature(given: Evidence) -> tuple[str, Levels | None]:
    """Return the table that matters most: its feature and its levels, or None."""
    for line in given.overview.importance:
        shapes = given.form.shapes_of(line.feature or "")
        if line.feature and shapes and isinstance(shapes[0], Table):
            return line.feature, shapes[0].levels
    return "", None


def by_period(given: Evidence) -> dict[str, Any] | None:
    """Measure the model by time, where a column of periods was given."""
    if given.time is None:
        return None
    (name, column), test = given.time, given.test
    n = len(np.unique(test.rows.numbers(name))) if test.rows.is_numeric(name) else 0
    if n > MOST_GROUPS:
        raise DataError(f"document: time: column {name!r} holds {n:,} numbers; at most {MOST_GROUPS} fit a document.")
    measured = periods(given.model, test.rows, given.labels(test), time=column, cutoff=given.cutoff)
    if len(measured.periods) > MOST_GROUPS:
        many = f"{len(measured.periods):,} periods; at most {MOST_GROUPS} fit a document"
        raise DataError(f"document: time: column {name!r} has {many}. Give quarters or years.")
    return {"column": name, **measured.to_dict()}


def watched(given: Evidence) -> Any:
    """Compare the test rows with the limits of the policy, as `plainrisk monitor` does."""
    return monitor(given.model, given.test.rows, given.labels(given.test)).to_dict()


def weak(given: Evidence) -> Any:
    """Search for slices in which the model is worse than overall."""
    names = [name for name in given.by if name not in given.form.features]
    return weak_spots(given.model, given.test.rows, given.labels(given.test), columns=names)


def sensitive(given: Evidence) -> Any:
    """Measure which inputs move decisions, and a stress: all inputs with a direction move against the applicants."""
    model, rows, schema = given.model, given.test.rows, given.form.schema
    features = {name: schema.features[name] for name in schema.features if name in given.form.features}
    sides = {n: f.sign * schema.worse for n, f in features.items() if f.kind == "continuous" and not is_coded(f)}
    shocks = [f"{name}={'+' if side > 0 else '-'}{SHOCK}%" for name, side in sides.items() if side]
    by = schema.protected[0] if schema.protected else None
    return {
        "inputs": sensitivity(model, rows, cutoff=given.cutoff),
        "stress": stress(model, rows, shocks, by=by, cutoff=given.cutoff) if shocks else None,
    }


def shifts(given: Evidence) -> Any:
    """Compare the test rows with the training rows: directly, or through the form's counts."""
    train = given.train
    try:
        return drift(given.form, given.test.rows, None if train is None else train.rows, record=given.record).to_dict()
    except DataError:
        return None  # the form has no counts of training rows


def reasons(given: Evidence) -> dict[str, Any] | None:
    """Count the reasons that the refused applicants among the test rows would get."""
    policy = msgspec.structs.replace(given.form.schema.policy, cutoff=given.cutoff)
    form = msgspec.structs.replace(given.form, schema=given.form.schema.replace(policy=policy))
    try:
        ranked = decide(form, given.test.rows)
    except DataError:
        return None  # trees are not additive in their features
    codes = ranked.codes[ranked.refused]
    counts = [(name, (codes == code).sum(axis=0).tolist()) for code, name in enumerate(ranked.candidates)]
    reasons_given = (codes >= 0).sum(axis=1)
    return {
        "refused": int(ranked.refused.sum()),
        "k": ranked.k,
        "reference": ranked.reference,
        "features": [{"feature": name, "first": n[0], "any": sum(n)} for name, n in counts if sum(n)],
        "named": {str(k): int((reasons_given == k).sum()) for k in range(codes.shape[1] + 1)},
        "withheld": int((ranked.withheld[ranked.refused] > 0).sum()),
    }


def against(given: Evidence) -> dict[str, Any] | None:
    """Compare with the other model that was given."""
    if given.against is None:
        return None
    (name, risk, form), test = given.against, given.test
    compared = evaluate_risk(test.outcome, test.risk, against=risk).to_dict()
    ours, theirs = (~refused(p, given.cutoff, given.form.schema.adverse) for p in (test.risk, risk))
    sides = {"approved_by_both": ours & theirs, "only_by_this": ours & ~theirs, "only_by_other": theirs & ~ours}
    sides["refused_by_both"] = ~ours & ~theirs
    return {
        "name": name,
        "is_model": form is not None,
        "figures": compared["against"]["figures"],
        "differences": compared["differences"],
        "p_value": compared["p_value"],
        "decisions": [
            {"which": which, "rows": int(rows.sum()), "positives": int(test.outcome[rows].sum())}
            for which, rows in sides.items()
        ],
        "diff": None if form is None else _diff(form, given),
    }


def _diff(old: RiskForm, given: Evidence) -> dict[str, Any]:
    difference = diff(old, given.form, given.test.rows, cutoff=given.cutoff)
    assert difference.rows is not None
    return {
        "moved": [term.feature for term in difference.terms if term.status != "same"],
        "added": difference.added,
        "removed": difference.removed,
        "lines": list(difference.rows.lines),
    }
