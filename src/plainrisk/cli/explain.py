"""`plainrisk score`, `explain`, `reasons` and `what-if`: what a model says of rows, one shown or all written."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from rich.text import Text

from plainrisk._types import Bools, Floats
from plainrisk.checks import NOTHING, PROBABILITY, check_parameters
from plainrisk.cli import show
from plainrisk.cli.runner import Request, Work, row_command
from plainrisk.explain import Explanation, Reasons, WhatIf
from plainrisk.explain.contributions import explainer
from plainrisk.explain.options import ExplainOptions, ReasonOptions, WhatIfOptions
from plainrisk.explain.reasons import reasoner
from plainrisk.explain.what_if import planner
from plainrisk.model import RiskModel

__all__ = ["explain", "print_answers", "print_explanation", "reasons", "score", "what_if"]


@row_command()
def score(model: RiskModel, request: Request) -> Work:
    """Show the risk of one row, or write the risk of every row."""
    return Work(
        lambda rows: _Risks(model.predict_proba(rows)[:, 1]),
        lambda found, row: show.out().print(f"Row {row}: risk {found.risk[0]:.4f}"),
    )


@dataclass(frozen=True)
class _Risks:
    """The risks of rows."""

    risk: Floats

    def columns(self) -> dict[str, Floats]:
        return {"risk": self.risk}

    def to_dict(self, row: int) -> dict[str, float]:
        return {"risk": float(self.risk[row])}


# ---- explain


@row_command(ExplainOptions)
def explain(model: RiskModel, request: Request, options: ExplainOptions) -> Work:
    """Show what makes up the risk of one row, or write the contributions of all rows."""
    return Work(explainer(model.form_, options).explain, lambda found, row: print_explanation(found, f"Row {row}"))


def print_explanation(found: Explanation, who: str) -> None:
    """Print the waterfall of the first row: the reference, subscales with their features inside, the risk."""
    one = found.to_dict(0)
    groups = sorted(one["subscales"], key=lambda group: -abs(group["contribution"]))
    largest = max((abs(part["contribution"]) for group in groups for part in [group, *group["features"]]), default=0.0)

    def amount(value: float) -> str:
        return f"{value:+.1%}" if found.unit == "probability" else f"{value:+.2f}"

    def line(name: str | Text, value: str, contribution: float, style: str = "") -> list[str | Text]:
        return [name, value, Text(amount(contribution), style), show.signed_bar(contribution, largest, 8)]

    lines: list[list[str | Text]] = [[found.reference, "", amount(one["constant"]).lstrip("+"), ""]]
    for group in groups:
        lines.append(line(Text(group["subscale"], "bold"), "", group["contribution"], "bold"))
        parts = sorted(group["features"], key=lambda part: -abs(part["contribution"]))
        lines += [line(f"  {part['feature']}", part["value"], part["contribution"]) for part in parts]
    lines.append([Text("risk", "bold"), "", Text(f"{one['risk']:.1%}", "bold"), ""])
    unit = "part" if found.unit == "probability" else "log odds"
    show.print_table(("feature", "value", unit, "effect"), lines, numbers=("value", unit), title=f"{who}, explained")
    for note in one["notes"]:
        show.out().print(note, style="dim")


# ---- reasons


@row_command(ReasonOptions)
def reasons(
    model: RiskModel,
    request: Request,
    options: ReasonOptions,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", metavar="RISK", help="Write refused rows only: those with a risk beyond this."),
    ] = None,
) -> Work:
    """Show one row's reasons as a letter, or write the reasons of all rows, or of the refused ones."""
    check_parameters("reasons", {"--threshold": threshold}, {"--threshold": NOTHING | PROBABILITY})
    options = options.of(model.form_.schema)
    least = -math.inf if threshold is None else options.sign * threshold

    def refused(found: Reasons) -> Bools:
        return options.sign * found.risk > least

    return Work(reasoner(model.form_, options).reasons, _print_letter, numbered=True, chosen=refused)


def _print_letter(found: Reasons, row: int) -> None:
    show.out().print(found.letter(0), soft_wrap=True)
    if found.withheld[0]:
        show.note(f"{found.withheld[0]} barred of {', '.join(found.barred)} would have been among the reasons.")


# ---- what-if


@row_command(WhatIfOptions)
def what_if(model: RiskModel, request: Request, options: WhatIfOptions) -> Work:
    """Show the cheapest changes that bring one row to the target, or write the cheapest of all rows."""
    import polars as pl

    # A table has one line per row, so that the first answer is all it holds.
    plan = planner(model.form_, options if request.output is None else replace(options, answers=1))
    types = {"reached": pl.Boolean(), "features_changed": pl.Int64(), "changes": pl.String()}
    return Work(plan.solve, lambda found, row: print_answers(found[0], f"Row {row}"), types, numbered=True)


def print_answers(found: WhatIf, who: str) -> None:
    """Print the answers of one applicant as small tables."""
    console = show.out()
    word = "at most" if found.adverse == "positive" else "at least"
    goal = f"{who}: risk {found.risk:.1%}, wanted {word} {found.target:.1%}."
    if not found.reached:
        console.print(f"{goal} That cannot be reached; the best that can is {found.reachable.risk:.1%}.")
        return
    if not found.answers[0].changes:
        console.print(f"{goal} Nothing needs to change.")
        return
    console.print(goal)
    for i, answer in enumerate(found.answers, 1):
        lines = [[change.feature, _text(change.value), _text(change.to_value)] for change in answer.changes]
        title = f"{'The cheapest way' if i == 1 else 'Another way'}: risk {answer.risk:.1%}"
        show.print_table(("feature", "now", "to"), lines, whole=("now", "to"), title=title)


def _text(value: Any) -> str:
    return "missing" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
