"""`plainrisk score`, `explain`, `reasons` and `what-if`: what a model says of rows, one shown or all written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

import numpy as np
import typer
from rich.text import Text

from plainrisk._types import Bools, Floats
from plainrisk.checks import NOTHING, PROBABILITY, check_parameters
from plainrisk.cli import show
from plainrisk.cli.options import Adverse
from plainrisk.cli.runner import Request, Work, row_command
from plainrisk.decision import refused
from plainrisk.errors import DataError
from plainrisk.explain import Explanation, Reasons, WhatIf
from plainrisk.explain.contributions import explainer
from plainrisk.explain.options import ExplainOptions, ReasonOptions, WhatIfOptions
from plainrisk.explain.reasons import reasoner
from plainrisk.explain.what_if import planner
from plainrisk.model import RiskModel

__all__ = ["explain", "print_answers", "print_explanation", "reasons", "score", "what_if"]


@row_command()
def score(
    model: RiskModel,
    request: Request,
    decision: Annotated[
        bool,
        typer.Option("--decision", help="Add the decision, approve or refuse, by the cut-off of the model file."),
    ] = False,
    cutoff: Annotated[
        float | None,
        typer.Option(
            "--cutoff",
            metavar="RISK",
            help="Decide by this cut-off: a risk from it on is refused, a good one's below it.",
        ),
    ] = None,
    reasons: Annotated[
        int,
        typer.Option("--reasons", metavar="K", min=0, help="Add up to K reasons; with a decision, of refused rows."),
    ] = 0,
    adverse: Adverse = None,
) -> Work:
    """Show the risk of one row, or write the risk of every row; with decision and reasons if asked for."""
    options = ReasonOptions(k=max(1, reasons), adverse=cast("Any", adverse)).of(model.form_.schema)
    least = _cutoff(model, request, cutoff) if decision or cutoff is not None else None
    find = reasoner(model.form_, options).reasons if reasons else None

    def compute(rows: Any) -> _Scored:
        found = None if find is None else find(rows)
        risk = model.predict_proba(rows)[:, 1] if found is None else found.risk
        against = None if least is None else refused(risk, least, cast("Any", options.adverse))
        return _Scored(risk, against, found)

    return Work(compute, _print_scored)


def _cutoff(model: RiskModel, request: Request, given: float | None) -> float:
    check_parameters("score", {"--cutoff": given}, {"--cutoff": NOTHING | PROBABILITY})
    found = model.cutoff if given is None else given
    if found is None:
        raise DataError(
            f"score: {request.model} holds no cut-off to decide by. Add --cutoff RISK, or keep one in the file: "
            f"plainrisk annotate {request.model} --cutoff RISK."
        )
    return found


@dataclass(frozen=True)
class _Scored:
    """The risks of rows, and if asked for whether each is refused and the reasons."""

    risk: Floats
    refused: Bools | None
    reasons: Reasons | None

    def columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"risk": self.risk}
        if self.refused is not None:
            columns["decision"] = np.where(self.refused, "refuse", "approve").astype(object)
        for name, values in {} if self.reasons is None else self.reasons.columns().items():
            if name.startswith("reason_"):
                columns[name] = values if self.refused is None else np.where(self.refused, values, None)
        return columns

    def to_dict(self, row: int) -> dict[str, Any]:
        found: dict[str, Any] = {"risk": float(self.risk[row])}
        if self.refused is not None:
            found["decision"] = "refuse" if self.refused[row] else "approve"
        if self.reasons is not None:
            found["reasons"] = list(self.reasons.words(row)) if self.refused is None or self.refused[row] else []
        return found


def _print_scored(found: _Scored, row: int) -> None:
    told = found.to_dict(0)
    decision = f", {told['decision']}" if "decision" in told else ""
    show.out().print(f"Row {row}: risk {told['risk']:.4f}{decision}")
    for i, reason in enumerate(told.get("reasons", ()), 1):
        show.out().print(f"  {i}. {reason}")


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
        typer.Option("--threshold", metavar="RISK", help="Write the rows only that this cut-off refuses."),
    ] = None,
) -> Work:
    """Show one row's reasons as a letter, or write the reasons of all rows, or of the refused ones."""
    check_parameters("reasons", {"--threshold": threshold}, {"--threshold": NOTHING | PROBABILITY})
    options = options.of(model.form_.schema)

    def chosen(found: Reasons) -> Bools:
        if threshold is None:
            return np.ones(len(found), np.bool_)
        return refused(found.risk, threshold, cast("Any", options.adverse))

    return Work(reasoner(model.form_, options).reasons, _print_letter, numbered=True, chosen=chosen)


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
