"""The end of `plainrisk demo`: a refused applicant's reasons in words, and the cheapest way to approval."""

from __future__ import annotations

from typing import Any

from plainrisk.cli import show
from plainrisk.cli.source import Rows

__all__ = ["decide", "tell_decision"]

APPROVED = 0.5  # these data predict the good outcome
UNMENTIONED = ("Personal status and sex", "Age in years", "foreign worker")
# What nobody changes for a loan: the past, and who one is.
FROZEN = (*UNMENTIONED, "Credit history", "Purpose", "Job", "Present residence since", "Present employment since")
FEW = 10  # training rows a level must have to be held up as an example


def decide(model: Any, rows: Rows, row: int) -> dict[str, Any]:
    """Find the reasons against one applicant, and the cheapest changes that lead to approval."""
    applicant = rows.X[row]
    found = model.reasons(applicant, adverse="negative", barred=UNMENTIONED, min_rows=FEW)
    way = model.what_if(
        applicant, APPROVED, adverse="negative", frozen=FROZEN, answers=2, cost="features", min_rows=FEW
    )
    return {**found.to_dict(0), "letter": found.letter(0), "what_if": way.to_dict()}


def tell_decision(decision: dict[str, Any]) -> None:
    """Print the reasons as a letter, and the ways to approval."""
    console = show.out()
    show.heading("Why was the loan refused, and what would change that?")
    barred = ", ".join(decision["barred"])
    console.print(f"With {APPROVED:.0%} needed, this applicant is refused. The reasons, never naming {barred}:")
    console.print()
    console.print(decision["letter"].strip())
    way = decision["what_if"]
    if not way["reached"]:
        console.print(
            f"No change of the other features is enough; the best they reach is {way['reachable']['risk']:.1%}."
        )
        return
    console.print()
    console.print("The cheapest ways to approval, proved over all combinations of changes:")
    for answer in way["answers"]:
        steps = [f"{c['feature']} {_text(c['value'])} -> {_text(c['to_value'])}" for c in answer["changes"]]
        console.print(f"  {' and '.join(steps)}: {answer['risk']:.1%}")


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
