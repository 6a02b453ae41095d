"""What is measured on the rows of a document: values, figures, groups, periods, shifts, reasons, comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from plainrisk.data.columns import Labels
from plainrisk.data.frame import Frame
from plainrisk.document.evidence import Evidence, Sample, plain
from plainrisk.errors import DataError
from plainrisk.explain import SeenRows, decide, diff, drift, overview
from plainrisk.explain.groups import compare_groups
from plainrisk.form import Levels, Part, RiskForm, Table
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
MOST_GROUPS = 40  # of a column: one of identifiers has thousands


def data(given: Evidence) -> dict[str, Any]:
    """Describe the rows: how many, with which outcomes, values and probabilities."""
    return {
        "test": _sample(given, given.test),
        "train": None if given.train is None else _sample(given, given.train),
        "quality": msgspec.to_builtins(quality(given.model, given.test.rows, given.labels(given.test)), enc_hook=plain),
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
    """Return the share of rows with an empty field or a code, by feature, compared with the training rows."""
    shares_by_feature = []
    for name in form.features:
        shape = next((part.shapes[name] for part in form.parts if isinstance(part, Part) and name in part.shapes), None)
        if shape is None:
            continue
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
    test = given.test
    return evaluate_risk(test.outcome, test.risk).to_dict()


def cutoffs(given: Evidence) -> dict[str, Any]:
    """Return the effects of cut-offs."""
    test, cutoff = given.test, given.cutoff
    table = risk_cutoffs(test.outcome, test.risk, adverse=given.form.schema.adverse, cutoff=cutoff)
    assert table.chosen is not None
    return {**table.to_dict(), "chosen": table.chosen.to_dict()}


def groups(given: Evidence) -> list[dict[str, Any]]:
    """Compare groups: of protected features, of columns that were asked for, and of the feature that matters most.

    Numbers of many values stand in bands.
    """
    form, rows = given.form, given.test.rows
    kinds = dict.fromkeys(form.schema.protected, "protected") | dict.fromkeys(given.by, "asked")
    first = _first_feature(given)
    labels_by_column = {name: (kind, groups_by("document", rows, name, None, form)) for name, kind in kinds.items()}
    if first is not None and first not in labels_by_column:
        levels = _levels(form, first)
        assert levels is not None
        codes = levels.codes(rows, first).astype(np.intp)
        labels_by_column[first] = ("leading", Labels(codes, say_levels(form.schema.features[first], levels)))
    return [_group(given, name, *of) for name, of in labels_by_column.items() if len(of[1].groups()) <= MOST_GROUPS]


def _group(given: Evidence, name: str, kind: str, groups: Labels) -> dict[str, Any]:
    cutoff, adverse = given.cutoff, given.form.schema.adverse
    report = compare_groups(given.test.outcome, given.test.risk, groups, cutoff=cutoff, adverse=adverse)
    order = {label: k for k, label in enumerate(groups.groups())}
    report = replace(report, groups=tuple(sorted(report.groups, key=lambda group: order[group.group])))
    return {
        "column": name,
        "title": given.form.schema.title(name),
        "kind": kind,
        **msgspec.to_builtins(report, enc_hook=plain),
    }


def _first_feature(given: Evidence) -> str | None:
    """Return the feature that matters most and has levels."""
    tables = {n: s for part in given.form.parts if isinstance(part, Part) for n, s in part.shapes.items()}
    ranked = [one.feature for one in overview(given.form, given.test.rows).importance if one.feature in tables]
    return next((name for name in ranked if name is not None and isinstance(tables[name], Table)), None)


def _levels(form: RiskForm, name: str) -> Levels | None:
    shapes = (part.shapes[name] for part in form.parts if isinstance(part, Part) and name in part.shapes)
    return next((shape.levels for shape in shapes), None)


def by_period(given: Evidence) -> dict[str, Any] | None:
    """Measure the model by time, where a column of periods was given."""
    if given.time is None:
        return None
    (name, column), test = given.time, given.test
    if test.rows.is_numeric(name) and (n := len(np.unique(test.rows.numbers(name)))) > MOST_GROUPS:
        raise DataError(f"document: time: column {name!r} holds {n:,} numbers; at most {MOST_GROUPS} fit a document.")
    measured = periods(given.model, test.rows, given.labels(test), time=column, cutoff=given.cutoff)
    if len(measured.periods) > MOST_GROUPS:
        many = f"{len(measured.periods):,} periods; at most {MOST_GROUPS} fit a document"
        raise DataError(f"document: time: column {name!r} has {many}. Give quarters or years.")
    return {"column": name, **measured.to_dict()}


def watched(given: Evidence) -> dict[str, Any]:
    """Compare the test rows with the limits of the policy, as `plainrisk monitor` does."""
    monitoring: dict[str, Any] = monitor(given.model, given.test.rows, given.labels(given.test)).to_dict()
    return monitoring


def weak(given: Evidence) -> dict[str, Any]:
    """Look for slices in which the model is worse than on the whole."""
    names = [name for name in given.by if name not in given.form.features]
    spots: dict[str, Any] = weak_spots(given.model, given.test.rows, given.labels(given.test), columns=names).to_dict()
    return spots


def sensitive(given: Evidence) -> dict[str, Any]:
    """Return which inputs move decisions, and what happens if all that have a direction move against the applicants."""
    model, rows, form = given.model, given.test.rows, given.form
    results = {"inputs": sensitivity(model, rows, cutoff=given.cutoff).to_dict(), "stress": None}
    numeric = {name: f for name, f in form.schema.features.items() if f.kind == "continuous" and not is_coded(f)}
    sides = {name: f.sign * form.schema.worse for name, f in numeric.items()}
    shocks = [
        f"{name}={'+' if side > 0 else '-'}{SHOCK}%" for name, side in sides.items() if side and name in form.features
    ]
    if shocks:
        by = form.schema.protected[0] if form.schema.protected else None
        results["stress"] = stress(model, rows, shocks, by=by, cutoff=given.cutoff).to_dict()
    return results


def shifts(given: Evidence) -> dict[str, Any] | None:
    """Compare the test rows with the training rows: as they are, or as the form counts them."""
    train = given.train
    try:
        drifted = drift(given.form, given.test.rows, None if train is None else train.rows, record=given.record)
    except DataError:
        return None  # the form counts no training rows
    plain: dict[str, Any] = drifted.to_dict()
    return plain


def reasons(given: Evidence) -> dict[str, Any] | None:
    """Count the reasons that the refused of the test rows would be given."""
    form = given.form
    cutoff = given.cutoff
    policy = msgspec.structs.replace(form.schema.policy, cutoff=cutoff)
    form = msgspec.structs.replace(form, schema=form.schema.replace(policy=policy))
    try:
        ranked = decide(form, given.test.rows).found
    except DataError:
        return None  # trees are not additive in their features
    assert ranked.refused is not None
    codes = ranked.codes[ranked.refused]
    named = [
        (name, [int((codes[:, r] == c).sum()) for r in range(codes.shape[1])])
        for c, name in enumerate(ranked.candidates)
    ]
    return {
        "refused": int(ranked.refused.sum()),
        "k": ranked.k,
        "reference": ranked.reference,
        "features": [{"feature": n, "first": at[0], "any": sum(at)} for n, at in named if sum(at)],
        "named": {str(k): int(((codes >= 0).sum(axis=1) == k).sum()) for k in range(codes.shape[1] + 1)},
        "withheld": int((ranked.withheld[ranked.refused] > 0).sum()),
    }


def against(given: Evidence) -> dict[str, Any] | None:
    """Compare with the other model that was given."""
    if given.against is None:
        return None
    (name, risk, form), test = given.against, given.test
    compared = evaluate_risk(test.outcome, test.risk, against=risk).to_dict()
    cutoff, adverse = given.cutoff, given.form.schema.adverse
    ours, theirs = ((one < cutoff) == (adverse == "positive") for one in (test.risk, risk))
    swapped = {"approved_by_both": ours & theirs, "only_by_this": ours & ~theirs, "only_by_other": theirs & ~ours}
    swapped["refused_by_both"] = ~ours & ~theirs
    return {
        "name": name,
        "is_model": form is not None,
        "figures": compared["against"]["figures"],
        "differences": compared["differences"],
        "p_value": compared["p_value"],
        "decisions": [
            {"which": which, "rows": int(rows.sum()), "positives": int(test.outcome[rows].sum())}
            for which, rows in swapped.items()
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
