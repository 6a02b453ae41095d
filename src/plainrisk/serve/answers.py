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
from plainrisk.explain.options import ExplainOptions, ReasonOptions, WhatIfOptions
from plainrisk.explain.reasons import reasoner
from plainrisk.explain.what_if import planner
from plainrisk.serve.served import Served

__all__ = ["Risks", "about", "answer"]

Options = ExplainOptions | ReasonOptions | WhatIfOptions | None


@dataclass(frozen=True)
class Risks:
    """The risks of rows, and, if the model file keeps a cut-off, the decisions."""

    risk: Floats
    decision: list[str] | None

    def columns(self) -> dict[str, Any]:
        """Return the table as columns by name."""
        return {"risk": self.risk} | ({} if self.decision is None else {"decision": self.decision})

    def to_dict(self) -> list[dict[str, Any]]:
        """Return a list of all rows."""
        risk = self.risk.tolist()
        if self.decision is None:
            return [{"risk": one} for one in risk]
        return [{"risk": one, "decision": told} for one, told in zip(risk, self.decision, strict=True)]


def answer(served: Served, options: Options, table: Any) -> Any:
    """Return the result of a verb, which its options tell: it becomes columns or plain data."""
    form = served.model.form_
    if options is None:
        risk, cutoff = np.asarray(form.risk(table)), served.model.cutoff
        against = None if cutoff is None else refused(risk, cutoff, form.schema.adverse)
        return Risks(risk, None if against is None else np.where(against, "refused", "approved").tolist())
    if isinstance(options, ExplainOptions):
        return served.prepared(options, lambda: explainer(form, options)).explain(table)
    if isinstance(options, ReasonOptions):
        return served.prepared(options, lambda: reasoner(form, options)).reasons(table)
    return served.prepared(options, lambda: planner(form, options)).solve(table)


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
