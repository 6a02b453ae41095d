"""How the page finds reasons and decides: the `Ranking` of the model as plain data, with which the page computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plainrisk.explain.contributions import explainer
from plainrisk.explain.options import ExplainOptions, ReasonOptions
from plainrisk.explain.reasons import resolve
from plainrisk.explain.reference import Reference
from plainrisk.form import RiskForm
from plainrisk.form.ranking import Ranking

__all__ = ["plain_ranking"]


def plain_ranking(form: RiskForm, reference: Reference | dict[str, Any]) -> dict[str, Any]:
    """Return how reasons are ranked, which of them are withheld and who is refused; see `Ranking`.

    Parameters
    ----------
    reference : any that the form can be explained by; what can be named does not depend on it
    """
    explain = replace(explainer(form, ExplainOptions(reference=reference)), features_only=True)
    found = resolve(form, explain, ReasonOptions())
    return {
        "reference": form.schema.policy.reference,
        "candidates": found.candidates,
        "subscales": found.subscales,
        "words": found.sayable,
        "base": found.base.tolist(),
        "by_level": [_by_level(found, column) for column in range(len(found.candidates))],
        "protected": found.protected.tolist(),
        "inquiries": found.inquiries.tolist(),
        "k": found.k,
        "sign": found.sign,
        "by_subscale": found.by_subscale,
        "cutoff": found.cutoff,
    }


def _by_level(ranking: Ranking, column: int) -> dict[str, Any] | None:
    """Return the levels of a candidate and the text of each; None where all have the same."""
    if column not in ranking.by_level:
        return None
    _, levels, texts = ranking.by_level[column]
    return {"levels": levels, "texts": texts.tolist()}
