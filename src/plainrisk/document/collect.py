"""The numbers of a document, as plain data: every figure that it shows is here, and in the JSON file next to it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from plainrisk._version import __version__
from plainrisk.data.columns import label_of
from plainrisk.document import measured
from plainrisk.document.evidence import Evidence, plain
from plainrisk.document.limitations import limitations
from plainrisk.document.refits import refits
from plainrisk.errors import PlainriskError
from plainrisk.explain import certify, recheck, verify
from plainrisk.explain.atoms import atoms_of
from plainrisk.explain.certify import level_notes
from plainrisk.exports import ExportOptions, verify_export, write_export
from plainrisk.form import Bands, Certificate, Part, RiskForm, Table, form_hash, read_model
from plainrisk.form.wording import outcome_words, say_levels
from plainrisk.leftovers import temporary_folder
from plainrisk.report import described
from plainrisk.schema import Feature

__all__ = ["collect"]

FORMAT = 1
# Exports whose engines come with Python.
EXPORTS: Mapping[str, dict[str, Any]] = {"score.py": {}, "score.sql": {"dialect": "sqlite"}}

Tell = Callable[[str, int, int], None]


def collect(evidence: Evidence, tell: Tell = lambda *_: None) -> dict[str, Any]:
    """Return all numbers of a document; `tell` is called with the current step, the steps done and all steps."""
    steps: dict[str, Callable[[Evidence], Any]] = {
        "model": _model,
        "data": measured.data,
        "schema": _schema,
        "performance": measured.performance,
        "cutoffs": measured.cutoffs,
        "groups": measured.groups,
        "periods": measured.by_period,
        "drift": measured.shifts,
        "monitoring": measured.watched,
        "weak_spots": measured.weak,
        "sensitivity": measured.sensitive,
        "reasons": measured.reasons,
        "shapes": _shapes,
        "example": _example,
        "against": measured.against,
        "certificate": _certificate,
        "exports": _exports,
        "refits": lambda given: refits(given, tell),
    }
    numbers: dict[str, Any] = {"format": FORMAT, "plainrisk": __version__}
    for done, (name, step) in enumerate(steps.items()):
        tell(name, done, len(steps))
        numbers[name] = msgspec.to_builtins(step(evidence), enc_hook=plain)
    numbers["limitations"] = limitations(numbers)
    return numbers


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
        "limits": msgspec.structs.asdict(form.schema.policy.drift),
        "order": form.schema.policy.order,
        "cutoff": {"value": given.cutoff, "stated": given.form.schema.policy.cutoff is not None},
        "features": list(form.features),
        "pairs": [pair.features for part in form.parts if isinstance(part, Part) for pair in part.pairs],
        "parts": [part.name for part in form.parts],
        "additive": all(isinstance(part, Part) for part in form.parts),
        "weights": given.overview.weights,
        "bands": bands,
        "fit": None if record is None else _fit(record),
    }


def _fit(record: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(record, covariance=()))
    for name in ("covariance", "evidence", "risks"):
        plain.pop(name, None)
    return {**plain, "features_left": list(record.features_left)}


def _schema(given: Evidence) -> list[dict[str, Any]]:
    """Return what was stated of every feature, with the modeler's reason."""
    schema = given.form.schema
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
            "subscales": [s for s, members in schema.subscales.items() if name in members],
            "read": name in given.form.features,
        }
        for name, feature in schema.features.items()
    ]


def _edits(feature: Feature) -> list[str]:
    """Return the manual decisions about a feature's levels."""
    edits = []
    if feature.edges is not None:
        edits.append(f"{len(feature.edges)} fixed bin edges")
    if feature.groups:
        edits.append(f"{len(feature.groups)} groups of categories")
    if feature.rare is not None:
        edits.append(f"categories below {feature.rare:.1%} of the rows pooled")
    return edits


# ---- explanations


def _shapes(given: Evidence) -> dict[str, Any]:
    """Return the effect of every level, and the importance of every feature on the test rows."""
    form, summary = given.form, given.overview.to_dict()
    shapes = {
        (part.name, name): shape for part in form.parts if isinstance(part, Part) for name, shape in part.shapes.items()
    }
    for table in summary["shapes"]:
        shape = shapes.get((table["part"], table["feature"]))  # None for a pair
        words = table["labels"] if shape is None else say_levels(form.schema.features[table["feature"]], shape.levels)
        table["names"] = words
    return {"tables": summary["shapes"], "importance": summary["importance"]}


def _example(given: Evidence) -> dict[str, Any] | None:
    """Compute the probability for the most frequent level of every feature step by step, as one could by hand."""
    form, part = given.form, given.form.parts[0]
    if len(form.parts) > 1 or not isinstance(part, Part) or part.pairs:
        return None
    terms, total = [], part.intercept
    for name, shape in part.shapes.items():
        if not isinstance(shape, Table):
            return None
        level, feature = int(np.argmax(shape.weights)), form.schema.features[name]
        words = say_levels(feature, shape.levels)[level]
        terms.append({"feature": name, "title": feature.title(name), "level": words, "score": shape.scores[level]})
        total += shape.scores[level]
    risk = float(part.link.value(np.array([total]))[0])
    return {"intercept": part.intercept, "terms": terms, "sum": total, "risk": risk}


# ---- comparisons and checks


def _certificate(given: Evidence) -> dict[str, Any]:
    """Certify the form again, and compare with the certificate of its file."""
    if given.file is None:
        fresh = certify(given.form)
        return {**_in_words(given.form, fresh), "stored": False, "differences": [], "checker": None}
    recertified = recheck(read_model(given.file))
    try:
        # By the script that others can run.
        checked = [{"name": n, "holds": holds} for n, holds, _ in verify.claims(verify.read(str(given.file))["form"])]
    except (LookupError, TypeError, ValueError):
        checked = None  # it reads only files of the current format
    return {
        **_in_words(given.form, recertified.fresh),
        "stored": recertified.stored is not None,
        "differences": list(recertified.differences),
        "checker": checked,
    }


def _in_words(form: RiskForm, certificate: Certificate) -> dict[str, Any]:
    """Return a certificate with its levels and notes in words."""
    plain, atoms = certificate.to_dict(), atoms_of(form)
    for outside in plain["outside"]:
        levels = atoms[outside["feature"]].levels
        words = say_levels(form.schema.features[outside["feature"]], levels)
        outside["name"] = words[levels.labels.index(outside["level"])]
    return {**plain, "notes": level_notes(form, certificate.thin, words=True)}


def _exports(given: Evidence) -> list[dict[str, Any]]:
    """Write the model as Python and as SQL, run both, and compare all answers with the model's."""
    exports: list[dict[str, Any]] = []
    with temporary_folder() as folder:
        for name, options in EXPORTS.items():
            path = folder / name
            try:
                write_export(given.form, path, ExportOptions(**options, portfolio=given.test.rows))
                verified = verify_export(path, given.model, portfolio=given.test.rows)
            except PlainriskError as error:
                exports.append({"file": name, **options, "error": str(error)})
                continue
            exports.append({**_file(path), "file": name, **options, **vars(verified), "agrees": verified.agrees})
    return exports
