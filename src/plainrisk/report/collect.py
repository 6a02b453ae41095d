"""The numbers of the page: from the form, the fit record and the certificate, and summaries of rows if given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Floats, Index
from plainrisk._version import __version__
from plainrisk.checks import NOTHING, PROBABILITY, check_parameters, instance, whole
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError
from plainrisk.explain import Effects, Interval, Refits, certify, drawn, effects, overview
from plainrisk.explain.contributions import subscale_of
from plainrisk.explain.options import Adverse
from plainrisk.explain.overview import ShapeTable, curve_of
from plainrisk.explain.reference import Reference, knows_typical, make_reference
from plainrisk.form import (
    Alone,
    Bands,
    Curve,
    FitRecord,
    Layer,
    Line,
    Logistic,
    PairTable,
    Part,
    RiskForm,
    Shape,
    Table,
    TreePart,
    form_hash,
)
from plainrisk.form.wording import outcome_words, say_levels
from plainrisk.report.inputs import inputs, start_row
from plainrisk.report.sample import summary
from plainrisk.report.verdict import plain_ranking

__all__ = ["Subject", "collect", "described", "row_values"]

FORMAT = 1
DRAWS = 200  # of the posterior, for intervals
ALLOWED = {
    "applicants": whole(0),
    "cutoff": NOTHING | PROBABILITY,
    "title": NOTHING | instance("text", str),
}


@dataclass(frozen=True)
class Subject:
    """A model on the page: its name, its form, its fit record, and the texts about it in its file."""

    name: str
    form: RiskForm
    fit: FitRecord | None = None
    about: Mapping[str, str] = field(default_factory=dict)


def collect(
    subjects: Sequence[Subject],
    data: Any = None,
    *,
    title: str | None = None,
    applicants: int = 0,
    by: str | None = None,
    target: str | None = None,
    cutoff: float | None = None,
    shown: Any = None,
) -> dict[str, Any]:
    """Return the payload of a page.

    Parameters
    ----------
    subjects : one model, or two to compare
    data : rows to summarize, or None; the page contains none of them unless `applicants` is given
    title : of the page
    applicants : the number of rows of the data to include as examples, from the least to the greatest risk
    by : a column of the data with groups to compare
    target : the column with the outcomes; None takes the schema's target, if the data have it
    cutoff : a cut-off to try if the model's policy has none; None takes the base rate of training
    shown : rows to include in full; the page opens at the first
    """
    given = {"applicants": applicants, "cutoff": cutoff, "title": title}
    check_parameters("report", given, ALLOWED)
    if data is None and (applicants or by is not None or target is not None):
        raise DataError(
            "report: applicants, by and target are about data. Pass data, too (plainrisk report MODEL DATA)."
        )
    first = subjects[0]
    adverse = first.form.schema.adverse
    cutoff = _cutoff(first, cutoff)
    measure = functools.partial(summary, target=target, by=by, cutoff=cutoff, adverse=adverse)
    subjects = _numbered(subjects)
    models = [_model(s, None if data is None else s.form.align(data), adverse, measure) for s in subjects]
    rows = [] if data is None else _examples(first.form, first.form.align(data), applicants)
    rows += [] if shown is None else _plain_rows(first.form, first.form.align(shown), None)
    return {
        "format": FORMAT,
        "plainrisk": __version__,
        "title": title or first.name,
        "adverse": adverse,
        "outcome": outcome_words(first.form.schema, first.form.classes[1]),
        "cutoff": cutoff,
        "models": models,
        "applicants": rows,
        "start": None if shown is None or not rows else {"view": "applicant", "row": rows[0]["row"]},
    }


def _cutoff(subject: Subject, given: float | None) -> float:
    """Return the cut-off of the policy, or else the one that is given, or else the base rate."""
    stated = subject.form.schema.policy.cutoff
    if stated is not None and given not in (None, stated):
        raise DataError(
            f"report: the model's policy has the cut-off {stated:g}, so the page decides by it. Leave out cutoff, "
            "or change the policy (plainrisk annotate MODEL --cutoff RISK)."
        )
    for cutoff in (stated, given):
        if cutoff is not None:
            return float(cutoff)
    return 0.5 if subject.fit is None else round(subject.fit.base_rate, 2)


def described(form: RiskForm, fit: FitRecord | None = None) -> str:
    """Return the type of a model in words: its pool, its shapes, its link.

    Smooth shapes and steps are both tables; the fit record tells which.
    """
    terms = {type(shape) for part in form.parts if isinstance(part, Part) for shape in part.shapes.values()}
    trees, link = any(isinstance(part, TreePart) for part in form.parts), form.last_link
    if isinstance(form.pool, Alone):
        words = ["Sum of trees" if trees else "Additive model"]
    else:
        words = ["Two-layer model" if isinstance(form.pool, Layer) else "Mixture of subscales", *["trees"] * trees]
    shapes = "" if fit is None else fit.parameters.get("shapes", "")
    if Line in terms:
        words.append("lines")
    elif shapes in ("'smooth'", "'steps'"):
        words.append("smooth shapes" if shapes == "'smooth'" else "steps")
    if isinstance(link, Bands):
        words.append("1 band" if len(link.rates) == 1 else f"{len(link.rates)} bands")
    elif link is not None:
        words.append("logistic" if isinstance(link, Logistic) else "linear")
    return ", ".join(words)


def _numbered(subjects: Sequence[Subject]) -> list[Subject]:
    """Number the models of one page that have the same name."""
    names = [subject.name for subject in subjects]
    return [replace(s, name=f"{s.name} ({i})") if names.count(s.name) > 1 else s for i, s in enumerate(subjects, 1)]


def _model(
    subject: Subject, rows: Frame | None, adverse: Adverse, measure: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    form, fit = subject.form, subject.fit
    typical = _reference(form, "typical", rows, adverse)
    glance = overview(form, rows)
    homes = subscale_of(form)
    left = () if fit is None else fit.features_left
    refits = None if fit is None or not fit.covariance else drawn(form, fit.covariance, DRAWS, 0)
    steps = effects(form, fit)
    start = start_row(form)
    best = _reference(form, "best", rows, adverse)
    return {
        "name": subject.name,
        "form": form,
        "order": {
            "features": list(form.schema.features),
            "subscales": list(form.schema.subscales),
            "shapes": [list(part.shapes) if isinstance(part, Part) else [] for part in form.parts],
        },
        "form_sha256": form_hash(form),
        "about": dict(subject.about),
        "fit": None if fit is None else _fit(fit),
        "certificate": certify(form).to_dict(),
        "typical": start,
        "references": {
            "typical": None if typical is None else _plain_reference(typical),
            "best": None if best is None else _plain_reference(best),
        },
        "ranking": plain_ranking(form, best or typical or start),
        "inputs": (asked := inputs(form, start, homes, left, rows)),
        "shapes": [
            _shape(form, table, homes, typical, refits, {i["feature"]: (i["low"], i["high"]) for i in asked})
            | _steps(steps, table)
            for table in glance.shapes
        ],
        "importance": glance.to_dict()["importance"],
        "weights": glance.weights,
        "data": None if rows is None else measure(form, fit, rows),
    }


def _fit(fit: FitRecord) -> dict[str, Any]:
    """Return the fit record without its covariance, which is large and used here for the intervals."""
    plain = msgspec.to_builtins(msgspec.structs.replace(fit, covariance=()))
    del plain["covariance"]
    return {**plain, "features_left": fit.features_left}


# ---- references


def _reference(form: RiskForm, name: str, rows: Frame | None, adverse: Adverse) -> Reference | None:
    """Return a reference from the training counts of the form, or else from the rows; None without either."""
    if name == "typical" and knows_typical(form):
        return make_reference(form, name)
    try:
        return make_reference(form, name, rows, sign=1 if adverse == "positive" else -1)
    except DataError:
        if rows is not None:
            raise
        return None


def _plain_reference(reference: Reference) -> dict[str, Any]:
    return {
        "name": reference.name,
        "points": [
            {
                "score": point.score,
                "terms": point.terms,
                "shares": {name: [u.tolist(), v.tolist()] for name, (u, v) in point.shares.items()},
            }
            for point in reference.points
        ],
    }


# ---- shapes


def _shape(
    form: RiskForm,
    table: ShapeTable,
    homes: dict[str, str],
    typical: Reference | None,
    refits: Refits | None,
    spans: dict[str, tuple[float, float]],
) -> dict[str, Any]:
    k, part = next((k, part) for k, part in enumerate(form.parts) if part.name == table.part)
    assert isinstance(part, Part)
    term = part.shapes.get(table.feature) or next(pair for pair in part.pairs if pair.name == table.feature)
    pair = term if isinstance(term, PairTable) else None
    interval = None if refits is None or table.effect is None else refits.effects(table.feature, table.part)
    return {
        "feature": table.feature,
        "features": [table.feature] if pair is None else pair.features,
        "part": table.part,
        "subscale": homes[table.feature] if len(form.parts) == 1 else table.part,
        "kind": _KINDS[type(term)],
        "labels": table.labels if pair is None else [*pair.levels[0].labels, *pair.levels[1].labels],
        "names": _level_names(form, term, table.feature),
        "size": None if pair is None else [len(levels) for levels in pair.levels],
        "n_ordered": table.n_ordered,
        "ordered": table.ordered,
        "rows": table.rows.tolist(),
        "bad": table.bad.tolist(),
        "bad_rate": table.bad_rate.tolist(),
        "score": table.score.tolist(),
        "effect": None if table.effect is None else _without_step(term, table.effect),
        **_ends(interval),
        "curve": _curve(curve_of(form, typical, k, table.feature, spans.get(table.feature))),
        "unit": table.unit,
    }


def _level_names(form: RiskForm, term: Shape | PairTable, name: str) -> list[str]:
    """Return the levels in words, in the order of the labels."""
    levels_of = zip(term.features, term.levels, strict=True) if isinstance(term, PairTable) else [(name, term.levels)]
    features = form.schema.features
    return [text for name, levels in levels_of for text in say_levels(features[name], levels)]


def _without_step(term: Shape | PairTable, effect: Floats) -> list[float | None]:
    """Return the effects of the levels; the first effect of a line is of a step, not of a level."""
    return [None, *effect.tolist()[1:]] if isinstance(term, Line) else effect.tolist()


def _steps(effects: Effects, table: ShapeTable) -> dict[str, Any]:
    """Return the effect of a step to each level on the probability, by band, and that of a line in a sentence."""
    rows = [row for row in effects.of(table.feature) if row.part == table.part]
    points = {row.level: row.points_by_band for row in rows if row.level is not None}
    lines = [row for row in rows if row.kind == "line"]
    return {
        "steps": [points.get(level) for level in range(len(table.labels))] if points else None,
        "bands": effects.bands_in_words(table.part),
        "sentence": effects.said(lines[0]) if len(lines) == 1 else None,
    }


_KINDS = {Table: "table", Line: "line", Curve: "curve", PairTable: "pair"}


def _ends(interval: Interval | None) -> dict[str, Any]:
    return {name: None if interval is None else getattr(interval, name).tolist() for name in ("low", "high")}


def _curve(points: tuple[Floats, Floats] | None) -> list[dict[str, float]] | None:
    """Return points of a line or a curve: values, and their effects on the risk of the typical applicant."""
    if points is None:
        return None
    return [{"value": x, "effect": y} for x, y in zip(points[0].tolist(), points[1].tolist(), strict=True)]


# ---- rows


def _examples(form: RiskForm, rows: Frame, n: int) -> list[dict[str, Any]]:
    """Return some rows, from the least to the greatest risk, evenly spaced in rank."""
    order = np.argsort(form.risk(rows), kind="stable")
    return _plain_rows(form, rows, order[np.unique(np.linspace(0, len(order) - 1, n).round().astype(np.intp))])


def _plain_rows(form: RiskForm, rows: Frame, chosen: Index | None) -> list[dict[str, Any]]:
    numbers = range(rows.n_rows) if chosen is None else chosen.tolist()
    columns = {name: row_values(form, rows, name) for name in form.features}
    return [{"name": f"row {i}", "row": {name: column[i] for name, column in columns.items()}} for i in numbers]


def row_values(form: RiskForm, rows: Frame, name: str) -> list[float | str | None]:
    """Return a column as the page reads it: numbers or labels, None where missing."""
    if form.schema.features[name].kind != "categorical":
        return [None if x != x else x for x in rows.numbers(name).tolist()]
    column = rows.labels(name)
    return [None if code < 0 else column.labels[code] for code in column.codes]
