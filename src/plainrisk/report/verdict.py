"""How the page finds reasons and decides: the `Ranking` of the model as plain data."""

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

    Any reference that can explain the form will do: the result does not depend on it.
    """
    explain = replace(explainer(form, ExplainOptions(reference=reference)), features_only=True)
    ranking = resolve(form, explain, ReasonOptions())
    return {
        "reference": form.schema.policy.reference,
        "candidates": ranking.candidates,
        "subscales": ranking.subscales,
        "words": ranking.sayable,
        "base": ranking.base.tolist(),
        "by_level": [_by_level(ranking, column) for column in range(len(ranking.candidates))],
        "protected": ranking.protected.tolist(),
        "inquiries": ranking.inquiries.tolist(),
        "k": ranking.k,
        "sign": ranking.sign,
        "by_subscale": ranking.by_subscale,
        "cutoff": ranking.cutoff,
    }


def _by_level(ranking: Ranking, column: int) -> dict[str, Any] | None:
    """Return the levels of a candidate and the text of each; None if all have the same text."""
    if column not in ranking.by_level:
        return None
    _, levels, texts = ranking.by_level[column]
    return {"levels": levels, "texts": texts.tolist()}
