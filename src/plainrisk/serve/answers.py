"""What the service answers: for each verb, from a served model, rows and options to a result with columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from plainrisk._types import Floats
from plainrisk._version import __version__
from plainrisk.decision import refused
from plainrisk.explain.contributions import explainer
from plainrisk.explain.options import DecideOptions, ExplainOptions, ReasonOptions, WhatIfOptions
from plainrisk.explain.reasons import Decisions, decider, reasoner
from plainrisk.explain.what_if import planner
from plainrisk.form.beyond import names_beyond
from plainrisk.serve.requests import ScoreOptions
from plainrisk.serve.served import Served

__all__ = ["Risks", "about", "answer"]

Options = ScoreOptions | ExplainOptions | ReasonOptions | WhatIfOptions


@dataclass(frozen=True)
class Risks:
    """The risks of rows, the decisions if the model has a cut-off, and what is beyond training if asked for."""

    risk: Floats
    decision: list[str] | None
    beyond: list[tuple[str, ...]] | None

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        columns: dict[str, Any] = {"risk": self.risk}
        if self.decision is not None:
            columns["decision"] = self.decision
        if self.beyond is not None:
            columns["beyond"] = [list(names) for names in self.beyond]
        return columns

    def to_dict(self) -> list[dict[str, Any]]:
        """Return a list of all rows."""
        columns = {**self.columns(), "risk": self.risk.tolist()}
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@dataclass(frozen=True)
class Letters:
    """Decisions, each with its letter."""

    found: Decisions

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        return {**self.found.columns(), "letter": [self.found.letter(i) for i in range(len(self.found))]}

    def to_dict(self) -> list[dict[str, Any]]:
        """Return a list of all rows."""
        return [{**self.found.to_dict(i), "letter": self.found.letter(i)} for i in range(len(self.found))]


def answer(served: Served, options: Options, table: Any) -> Any:
    """Return the result of a verb, which its options tell: it becomes columns or plain data."""
    form = served.model.form_
    if isinstance(options, ScoreOptions):
        return _risks(served, options, table)
    if isinstance(options, ExplainOptions):
        return served.prepared(options, lambda: explainer(form, options)).explain(table)
    if isinstance(options, DecideOptions):
        return Letters(Decisions(served.prepared(options, lambda: decider(form, options)).reasons(table)))
    if isinstance(options, ReasonOptions):
        return served.prepared(options, lambda: reasoner(form, options)).reasons(table)
    return served.prepared(options, lambda: planner(form, options)).solve(table)


def _risks(served: Served, options: ScoreOptions, table: Any) -> Risks:
    form, cutoff = served.model.form_, served.model.cutoff
    risk = np.asarray(form.risk(table))
    against = None if cutoff is None else refused(risk, cutoff, form.schema.adverse)
    decision = None if against is None else np.where(against, "refused", "approved").tolist()
    return Risks(risk, decision, names_beyond(form, form.align(table)) if options.beyond else None)


def about(served: Served) -> dict[str, Any]:
    """Return what is known of a model: its features, how it was fitted, what is certain about it."""
    model, form = served.model, served.model.form_
    fit = model.fit_record_
    # The covariance is as large as the square of the model, and serves intervals alone.
    kept = None if fit is None else msgspec.to_builtins(msgspec.structs.replace(fit, covariance=()))
    return {
        "model": served.identity,
        "plainrisk": __version__,
        "cutoff": model.cutoff,
        "about": dict(model.about),
        "classes": list(form.classes),
        "features": list(form.features),
        "parts": [part.name for part in form.parts],
        "schema": form.schema.to_dict(),
        "fit": kept,
        "certificate": served.certificate.to_dict(),
    }
