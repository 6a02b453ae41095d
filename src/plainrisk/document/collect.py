"""The numbers of a document, as plain data: every figure that it shows is here, and stands in the JSON beside it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from plainrisk._version import __version__
from plainrisk.data.columns import label_of
from plainrisk.data.frame import column_of
from plainrisk.document.evidence import Evidence, Sample
from plainrisk.document.limitations import limitations
from plainrisk.document.refits import refits
from plainrisk.errors import DataError, PlainriskError
from plainrisk.explain import SeenRows, certify, decide, diff, drift, overview, recheck
from plainrisk.explain.groups import compare_groups
from plainrisk.exports import ExportOptions, verify_export, write_export
from plainrisk.form import Bands, Levels, Part, RiskForm, Table, form_hash, read_model
from plainrisk.form.beyond import counts
from plainrisk.form.wording import outcome_words, say_levels
from plainrisk.measure.cutoffs import risk_cutoffs
from plainrisk.measure.evaluation import evaluate_risk
from plainrisk.report import described
from plainrisk.schema import Feature
from plainrisk.validate.grouping import groups_by
from plainrisk.validate.periods import periods

__all__ = ["collect"]

FORMAT = 1
BARS = 20  # of the histogram of risks
MOST_GROUPS = 40  # of a column: one of identifiers has thousands
# Exports that are verified wherever Python runs: their engines come with it.
EXPORTS: Mapping[str, dict[str, Any]] = {"score.py": {}, "score.sql": {"dialect": "sqlite"}}

Tell = Callable[[str, int, int], None]


def collect(evidence: Evidence, tell: Tell = lambda *_: None) -> dict[str, Any]:
    """Return all numbers of a document.

    Parameters
    ----------
    tell : called with what is being done, the steps done and all steps
    """
    steps: dict[str, Callable[[Evidence], Any]] = {
        "model": _model,
        "data": _data,
        "schema": _schema,
        "performance": _performance,
        "cutoffs": _cutoffs,
        "groups": _groups,
        "periods": _periods,
        "drift": _drift,
        "reasons": _reasons,
        "shapes": _shapes,
        "example": _example,
        "against": _against,
        "certificate": _certificate,
        "exports": _exports,
        "refits": lambda given: refits(given, tell),
    }
    found: dict[str, Any] = {"format": FORMAT, "plainrisk": __version__}
    for done, (name, step) in enumerate(steps.items()):
        tell(name, done, len(steps))
        found[name] = msgspec.to_builtins(step(evidence), enc_hook=_plain)
    found["limitations"] = limitations(found)
    return found


def _plain(value: Any) -> Any:
    """Turn numpy's numbers and arrays into Python's."""
    return value.tolist()


def _file(path: Path) -> dict[str, Any]:
    return {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


# ---- the model and its rows


def _model(given: Evidence) -> dict[str, Any]:
    form, record = given.form, given.record
    link = form.last_link
    bands = None
    if isinstance(link, Bands):
        bands = {"knots": link.knots, "values": link.values, "rates": link.rates}
    return {
        "name": given.about.get("name", "Risk model"),
        "about": dict(given.about),
        "what": described(form, record),
        "form_sha256": form_hash(form),
        "file": None if given.file is None else _file(given.file),
        "classes": list(form.classes),
        "outcome": outcome_words(form.schema, form.classes[1]),
        "adverse": form.schema.adverse,
        "target": form.schema.target,
        "policy": form.schema.policy,
        "cutoff": _cutoff(given),
        "features": list(form.features),
        "pairs": [pair.features for part in form.parts if isinstance(part, Part) for pair in part.pairs],
        "parts": [part.name for part in form.parts],
        "additive": all(isinstance(part, Part) for part in form.parts),
        "weights": overview(form, given.test.rows).weights,
        "bands": bands,
        "fit": None if record is None else _fit(record),
    }


def _fit(record: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(record, covariance=()))
    for name in ("covariance", "evidence", "risks"):
        plain.pop(name, None)
    return {**plain, "features_left": list(record.features_left)}


def _cutoff(given: Evidence) -> dict[str, Any]:
    """Return the cut-off of the policy; without one the base rate of training is tried."""
    stated = given.form.schema.policy.cutoff
    if stated is not None:
        return {"value": stated, "stated": True}
    rate = float(given.test.outcome.mean()) if given.record is None else given.record.base_rate
    return {"value": round(rate, 2), "stated": False}


def _data(given: Evidence) -> dict[str, Any]:
    return {
        "test": _sample(given, given.test),
        "train": None if given.train is None else _sample(given, given.train),
        "training_missing": {name: _training_missing(given.form, name) for name in given.form.features},
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
        "values": counts(form, rows),
        "constant": [name for name in form.features if _is_constant(form.schema.features[name], rows, name)],
        "duplicates": _duplicates(given, sample),
        "seen_before": SeenRows(form, given.record).add(rows).are_all,
    }


def _is_constant(feature: Feature, rows: Any, name: str) -> bool:
    if feature.kind == "categorical":
        return len(np.unique(rows.labels(name).codes)) == 1
    return len(np.unique(rows.numbers(name))) == 1


def _duplicates(given: Evidence, sample: Sample) -> int:
    """Return how many rows repeat an earlier one in all features of the model and in the outcome."""
    known, key = given.form.schema.features, sample.outcome.astype(np.intp)
    for name in given.form.features:
        numeric = known[name].kind == "continuous"
        values = sample.rows.numbers(name) if numeric else sample.rows.labels(name).codes
        codes = np.unique(values, return_inverse=True)[1]
        key = np.unique(key * (codes.max() + 1) + codes, return_inverse=True)[1]
    return len(key) - len(np.unique(key))


def _training_missing(form: RiskForm, name: str) -> float | None:
    """Return the share of training rows without a value, where the form counts them."""
    shapes = [part.shapes[name] for part in form.parts if isinstance(part, Part) and name in part.shapes]
    weights = np.asarray(shapes[0].weights if shapes and isinstance(shapes[0], Table) else ())
    return float(weights[shapes[0].levels.missing] / weights.sum()) if weights.sum() > 0 else None


def _histogram(sample: Sample) -> dict[str, Any]:
    edges = np.linspace(0.0, 1.0, BARS + 1)
    sides = {"positive": sample.outcome == 1, "other": sample.outcome == 0}
    return {"edges": edges, **{name: np.histogram(sample.risk[side], edges)[0] for name, side in sides.items()}}


def _schema(given: Evidence) -> list[dict[str, Any]]:
    """Return what was stated of every feature of the model, with the modeller's reason."""
    schema = given.form.schema
    homes = {name: [s for s, members in schema.subscales.items() if name in members] for name in schema.features}
    return [
        {
            "feature": name,
            "title": schema.title(name),
            "kind": feature.kind,
            "direction": feature.direction,
            "missing": feature.missing,
            "special_rules": feature.special_rules,
            "special_values": [label_of(special) for special in feature.special_values],
            "below_bound": feature.below_bound,
            "lower_bound": feature.lower_bound,
            "edits": _edits(feature),
            "protected": feature.protected,
            "actionable": feature.actionable,
            "reason": feature.reason,
            "why": feature.why,
            "subscales": homes[name],
            "read": name in given.form.features,
        }
        for name, feature in schema.features.items()
    ]


def _edits(feature: Feature) -> list[str]:
    """Say what was decided by hand about a feature's levels."""
    found = []
    if feature.edges is not None:
        found.append(f"{len(feature.edges)} fixed bin edges")
    if feature.groups:
        found.append(f"{len(feature.groups)} groups of categories")
    if feature.rare is not None:
        found.append(f"categories below {feature.rare:.1%} of the rows pooled")
    return found


# ---- outcomes


def _performance(given: Evidence) -> dict[str, Any]:
    test = given.test
    return evaluate_risk(test.outcome, test.risk).to_dict()


def _cutoffs(given: Evidence) -> dict[str, Any]:
    test, cutoff = given.test, _cutoff(given)["value"]
    found = risk_cutoffs(test.outcome, test.risk, adverse=given.form.schema.adverse, cutoff=cutoff)
    assert found.chosen is not None
    return {**found.to_dict(), "chosen": found.chosen.to_dict()}


def _groups(given: Evidence) -> list[dict[str, Any]]:
    """Compare groups: of protected features, of columns that were asked for, and of the feature that matters most."""
    form, test = given.form, given.test
    asked = {name: ("protected", groups_by("document", test.rows, name, None, form)) for name in form.schema.protected}
    asked |= {name: ("asked", column) for name, column in given.by.items()}
    first = _first_feature(given)
    if first is not None and first not in asked:
        asked[first] = ("leading", _levels_in_words(form, first, test))
    return [_group(given, name, kind, groups) for name, (kind, groups) in asked.items() if _are_few(groups)]


def _are_few(groups: Any) -> bool:
    return len(column_of(groups).groups()) <= MOST_GROUPS


def _group(given: Evidence, name: str, kind: str, groups: Any) -> dict[str, Any]:
    cutoff, adverse = _cutoff(given)["value"], given.form.schema.adverse
    found = compare_groups(given.test.outcome, given.test.risk, groups, cutoff=cutoff, adverse=adverse)
    levels = _levels(given.form, name)
    if kind != "asked" and levels is not None:  # which have an order
        order = {said: k for k, said in enumerate(say_levels(given.form.schema.features[name], levels))}
        found = replace(found, groups=tuple(sorted(found.groups, key=lambda group: order.get(group.group, len(order)))))
    return {
        "column": name,
        "title": given.form.schema.title(name),
        "kind": kind,
        **msgspec.to_builtins(found, enc_hook=_plain),
    }


def _first_feature(given: Evidence) -> str | None:
    """Return the feature that matters most and has levels."""
    tables = {n: s for part in given.form.parts if isinstance(part, Part) for n, s in part.shapes.items()}
    ranked = [one.feature for one in overview(given.form, given.test.rows).importance if one.feature in tables]
    return next((name for name in ranked if name is not None and isinstance(tables[name], Table)), None)


def _levels_in_words(form: RiskForm, name: str, test: Sample) -> Any:
    levels = _levels(form, name)
    assert levels is not None
    names = np.array(say_levels(form.schema.features[name], levels), dtype=object)
    return names[levels.codes(test.rows, name)]


def _levels(form: RiskForm, name: str) -> Levels | None:
    shapes = (part.shapes[name] for part in form.parts if isinstance(part, Part) and name in part.shapes)
    return next((shape.levels for shape in shapes), None)


def _periods(given: Evidence) -> dict[str, Any] | None:
    if given.time is None:
        return None
    (name, column), test = given.time, given.test
    found = periods(given.model, test.rows, given.labels(test), time=column, cutoff=_cutoff(given)["value"])
    if len(found.periods) > MOST_GROUPS:
        many = f"{len(found.periods):,} periods; at most {MOST_GROUPS} fit a document"
        raise DataError(f"document: time: column {name!r} has {many}. Give quarters or years.")
    return {"column": name, **found.to_dict()}


def _drift(given: Evidence) -> dict[str, Any] | None:
    """Compare the test rows with the training rows: as they are, or as the form counts them."""
    train = given.train
    try:
        found = drift(given.form, given.test.rows, None if train is None else train.rows, record=given.record)
    except DataError:
        return None  # the form counts no training rows
    plain: dict[str, Any] = found.to_dict()
    return plain


# ---- explanations


def _reasons(given: Evidence) -> dict[str, Any] | None:
    """Count the reasons that the refused of the test rows would be given."""
    form = given.form
    cutoff = _cutoff(given)["value"]
    policy = msgspec.structs.replace(form.schema.policy, cutoff=cutoff)
    form = msgspec.structs.replace(form, schema=form.schema.replace(policy=policy))
    try:
        found = decide(form, given.test.rows).found
    except DataError:
        return None  # trees are not additive in their features
    assert found.refused is not None
    codes = found.codes[found.refused]
    named = [
        (name, [int((codes[:, r] == c).sum()) for r in range(codes.shape[1])])
        for c, name in enumerate(found.candidates)
    ]
    return {
        "refused": int(found.refused.sum()),
        "k": found.k,
        "reference": found.reference,
        "features": [{"feature": n, "first": at[0], "any": sum(at)} for n, at in named if sum(at)],
        "named": {str(k): int(((codes >= 0).sum(axis=1) == k).sum()) for k in range(codes.shape[1] + 1)},
        "withheld": int((found.withheld[found.refused] > 0).sum()),
    }


def _shapes(given: Evidence) -> dict[str, Any]:
    """Return what every level does, and how much every feature matters on the test rows."""
    form = given.form
    glance = overview(form, given.test.rows)
    plain = glance.to_dict()
    for table in plain["shapes"]:
        feature = form.schema.features.get(table["feature"])
        part = next(part for part in form.parts if part.name == table["part"])
        known = feature is not None and isinstance(part, Part) and table["feature"] in part.shapes
        assert isinstance(part, Part)
        table["names"] = (
            say_levels(feature, part.shapes[table["feature"]].levels) if known and feature else table["labels"]
        )
    return {"tables": plain["shapes"], "importance": plain["importance"]}


def _example(given: Evidence) -> dict[str, Any] | None:
    """Compute the probability of the most frequent level of every feature step by step, as a person could."""
    form = given.form
    part = form.parts[0]
    if len(form.parts) > 1 or not isinstance(part, Part) or part.pairs:
        return None
    terms, total = [], part.intercept
    for name, shape in part.shapes.items():
        if not isinstance(shape, Table):
            return None
        level, feature = int(np.argmax(shape.weights)), form.schema.features[name]
        said = say_levels(feature, shape.levels)[level]
        terms.append({"feature": name, "title": feature.title(name), "level": said, "score": shape.scores[level]})
        total += shape.scores[level]
    return {
        "intercept": part.intercept,
        "terms": terms,
        "sum": total,
        "risk": float(part.link.value(np.array([total]))[0]),
    }


# ---- comparisons and checks


def _against(given: Evidence) -> dict[str, Any] | None:
    if given.against is None:
        return None
    (name, risk, form), test = given.against, given.test
    compared = evaluate_risk(test.outcome, test.risk, against=risk).to_dict()
    cutoff, adverse = _cutoff(given)["value"], given.form.schema.adverse
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
    found = diff(old, given.form, given.test.rows, cutoff=_cutoff(given)["value"])
    assert found.rows is not None
    return {
        "moved": [term.feature for term in found.terms if term.status != "same"],
        "added": found.added,
        "removed": found.removed,
        "lines": list(found.rows.lines),
    }


def _certificate(given: Evidence) -> dict[str, Any]:
    """Certify the form again, and compare with the certificate of its file."""
    if given.file is None:
        return {**certify(given.form).to_dict(), "stored": False, "differences": []}
    found = recheck(read_model(given.file))
    return {**found.fresh.to_dict(), "stored": found.stored is not None, "differences": list(found.differences)}


def _exports(given: Evidence) -> list[dict[str, Any]]:
    """Write the model as Python and as SQL, run both, and compare every answer with the model's."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="plainrisk-") as folder:
        for name, options in EXPORTS.items():
            path = Path(folder) / name
            try:
                write_export(given.form, path, ExportOptions(**options, portfolio=given.test.rows))
                verified = verify_export(path, given.model, portfolio=given.test.rows)
            except PlainriskError as error:
                found.append({"file": name, **options, "error": str(error)})
                continue
            found.append({**_file(path), "file": name, **options, **vars(verified), "agrees": verified.agrees})
    return found
