"""`plainrisk score`, `explain`, `reasons` and `what-if`: a model's answers for one row or for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer
from rich.text import Text

from plainrisk._types import Bools, Floats
from plainrisk.checks import NOTHING, PROBABILITY, check_parameters
from plainrisk.cli import show, source, tables
from plainrisk.cli.options import Conf, Master, option, switch
from plainrisk.cli.runner import Request, Work, row_command
from plainrisk.decision import refused
from plainrisk.errors import DataError
from plainrisk.explain import Effects, Explanation, Reasons, WhatIf
from plainrisk.explain.contributions import ACROSS, NO_SUBSCALE, explainer
from plainrisk.explain.options import ExplainOptions, ReasonOptions, WhatIfOptions
from plainrisk.explain.reasons import reasoner
from plainrisk.explain.what_if import planner
from plainrisk.form import RiskForm
from plainrisk.form.beyond import counts, names_beyond
from plainrisk.form.wording import outcome_words, say_value
from plainrisk.model import RiskModel, load

__all__ = ["explain", "print_answers", "print_explanation", "reasons", "score", "what_if"]


Cutoff = Annotated[
    float | None,
    typer.Option("--cutoff", metavar="RISK", help="The cut-off to decide by, for a model file that has none."),
]


def _score_elsewhere(
    request: Request,
    decision: bool,
    cutoff: float | None,
    reasons: int,
    beyond: bool,
    master: str | None,
    conf: Sequence[str] | None,
) -> None:
    """Score rows where they are, and write them there."""
    from plainrisk.spark import score_table

    if request.output is None or beyond or request.rejects is not None:
        raise DataError(
            "score: rows in Spark are written, all of them: add -o OUT.parquet, and leave out --beyond and --rejects."
        )
    model = load(request.model)
    if decision or cutoff is not None:
        model = with_cutoff("score", model, request, cutoff)
    rows = score_table(
        model,
        request.data,
        str(request.output),
        keep=request.keep or (),
        reasons=reasons,
        decision=decision or cutoff is not None,
        master=master,
        conf=conf or (),
    )
    result = {"model": str(request.model), "data": request.data, "file": str(request.output), "rows": rows}
    show.result(result, request.json, lambda _: show.out().print(f"{rows:,} rows scored: wrote {request.output}"))


@row_command(elsewhere=_score_elsewhere)
def score(
    model: RiskModel,
    request: Request,
    decision: bool = switch("--decision", "Add the decision, approved or refused, by the cut-off of the model file."),
    cutoff: Cutoff = None,
    reasons: int = option("Add up to K reasons; with --decision, for refused rows only.", 0, metavar="K", min=0),
    beyond: bool = switch("--beyond", "Add the features with values outside the training range."),
    master: Master = None,
    conf: Conf = None,
) -> Work:
    """Show the risk of one row, or write the risk of every row, with decision and reasons if requested."""
    decided = decision or cutoff is not None
    model = with_cutoff("score", model, request, cutoff) if decided else model
    find = reasoner(model.form_, ReasonOptions(k=reasons)).reasons if reasons else None

    def compute(batch: Any) -> _Scored:
        rows = model.form_.align(batch)
        found = None if find is None else find(rows)
        risk = model.form_.risk(rows) if found is None else found.risk
        against = refused(risk, cast("float", model.cutoff), model.form_.schema.adverse) if decided else None
        outside = names_beyond(model.form_, rows) if beyond else None
        return _Scored(risk, against, found, outside, counts(model.form_, rows))

    outcome = outcome_words(model.form_.schema, model.form_.classes[1])
    return Work(compute, lambda found, row: _print_scored(found, row, outcome), counts=lambda found: found.counts)


def with_cutoff(who: str, model: RiskModel, request: Request, given: float | None) -> RiskModel:
    """Return the model with a cut-off: its own or, if it has none, the given one."""
    check_parameters(who, {"--cutoff": given}, {"--cutoff": NOTHING | PROBABILITY})
    kept_cutoff = model.cutoff
    if kept_cutoff is not None and given not in (None, kept_cutoff):
        raise DataError(
            f"{who}: {request.model} decides by the cut-off {kept_cutoff:g}. Leave out --cutoff, or change the policy: "
            f"plainrisk annotate {request.model} --cutoff {given:g}."
        )
    if kept_cutoff is None and given is None:
        raise DataError(
            f"{who}: {request.model} has no cut-off to decide by. Add --cutoff RISK, or keep one in the file: "
            f"plainrisk annotate {request.model} --cutoff RISK."
        )
    return model if kept_cutoff is not None else model.annotate(cutoff=given)


@dataclass(frozen=True)
class _Scored:
    """The risks of rows, how many values are beyond training, and if asked for decisions, reasons and which values."""

    risk: Floats
    refused: Bools | None
    reasons: Reasons | None
    beyond: list[tuple[str, ...]] | None
    counts: dict[str, dict[str, int]]

    def columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"risk": self.risk}
        if self.refused is not None:
            columns["decision"] = np.where(self.refused, "refused", "approved").astype(object)
        for name, values in {} if self.reasons is None else self.reasons.columns().items():
            if name.startswith("reason_"):
                columns[name] = values if self.refused is None else np.where(self.refused, values, None)
        if self.beyond is not None:
            columns["beyond"] = np.array([", ".join(names) or None for names in self.beyond], dtype=object)
        return columns

    def to_dict(self, row: int) -> dict[str, Any]:
        answer: dict[str, Any] = {"risk": float(self.risk[row])}
        if self.refused is not None:
            answer["decision"] = "refused" if self.refused[row] else "approved"
        if self.reasons is not None:
            answer["reasons"] = list(self.reasons.words(row)) if self.refused is None or self.refused[row] else []
        if self.beyond is not None:
            answer["beyond"] = list(self.beyond[row])
        return answer


def _print_scored(scored: _Scored, row: int, outcome: str) -> None:
    facts = scored.to_dict(0)
    decision = f"; {facts['decision']}" if "decision" in facts else ""
    show.out().print(f"Row {row}: {facts['risk']:.1%} probability that {outcome}{decision}")
    for i, reason in enumerate(facts.get("reasons", ()), 1):
        show.out().print(f"  {i}. {reason}")
    if facts.get("beyond"):
        show.note(f"Outside the training range: {', '.join(facts['beyond'])}.")


# ---- explain


def _print_effects(model: RiskModel, request: Request) -> None:
    """Show what every step of every feature adds to the probability, or write it."""
    tables.check_table(request.output)
    rows = None if request.data is None else source.rows_of_model(request.data, request.missing, model)
    effects = model.effects(rows)
    if request.output is not None:
        tables.write_table(effects.columns(), request.output)
    result = {"model": str(request.model), "file": request.output and str(request.output), **effects.to_dict()}
    show.result(result, request.json, lambda _: _show_effects(effects, request.output))


def _show_effects(effects: Effects, output: Path | None) -> None:
    if output is not None:
        show.out().print(f"Wrote {output}: {len(effects.rows)} steps.")
        return
    table = effects.table()
    lines = [list(line) for line in zip(*table.values(), strict=True)]
    title = f"Points of the probability that {effects.outcome}"
    columns = "".join("p" if name in ("part", "feature", "step") else "r" for name in table)
    show.print_table(tuple(table), lines, columns, title)
    for note in effects.notes:
        show.remark(note)


@row_command(
    ExplainOptions,
    model_alone=(
        "effects",
        "Show what one more unit, bin or category adds to the probability. Ranges are over the rows of DATA, if given.",
        _print_effects,
    ),
)
def explain(model: RiskModel, request: Request, options: ExplainOptions) -> Work:
    """Show the contributions to the risk of one row, or write those of all rows."""
    return Work(
        explainer(model.form_, options).explain, lambda found, row: print_explanation(found, f"Row {row}", model.form_)
    )


def print_explanation(explanation: Explanation, who: str, form: RiskForm) -> None:
    """Print the waterfall of the first row: the reference, subscales with their features inside, the risk."""
    row = explanation.to_dict(0)
    features = form.schema.features

    def named(part: dict[str, Any]) -> str:
        title = explanation.in_words(0, part["feature"])[0]
        return f"  {title} (protected)" if "protected" in part else f"  {title}"

    groups = sorted(row["subscales"], key=lambda group: -abs(group["contribution"]))
    largest = max((abs(part["contribution"]) for group in groups for part in [group, *group["features"]]), default=0.0)

    def amount(value: float) -> str:
        return f"{value:+.1%}" if explanation.unit == "probability" else f"{value:+.2f}"

    def line(name: str | Text, value: str, contribution: float, style: str = "") -> list[str | Text]:
        return [name, value, Text(amount(contribution), style), show.signed_bar(contribution, largest, 8)]

    lines: list[list[str | Text]] = [[_REFERENCES[explanation.reference], "", amount(row["constant"]).lstrip("+"), ""]]
    for group in groups:
        alone = f"{group['risk']:.1%} by itself" if "risk" in group else ""  # of a mixture, before its weight
        lines.append(line(Text(_subscale_title(group["subscale"], form), "bold"), alone, group["contribution"], "bold"))
        parts = sorted(group["features"], key=lambda part: -abs(part["contribution"]))
        lines += [
            line(named(part), explanation.in_words(0, part["feature"])[1], part["contribution"]) for part in parts
        ]
    lines.append([Text("probability", "bold"), "", Text(f"{row['risk']:.1%}", "bold"), ""])
    outcome = outcome_words(form.schema, form.classes[1])
    title = f"{who}: {row['risk']:.1%} probability that {outcome}"
    unit = "contribution" if explanation.unit == "probability" else "log odds"
    show.print_table(("feature", "value", unit, "effect"), lines, "pprl", title)
    for note in row["notes"]:
        show.remark(note)
    if row["beyond"]:
        show.note(f"Outside the training range: {', '.join(features[name].title(name) for name in row['beyond'])}.")


# The reference of an explanation, in words.
_REFERENCES = {
    "typical": "the typical applicant",
    "best": "the best levels",
    "row": "the other applicant",
    "zero": "start, from zero",
}


def _subscale_title(name: str, form: RiskForm) -> str:
    """Return a subscale's name; results have a special mark for features in no subscale or in two."""
    if name == ACROSS:
        return "Combinations"
    return name if name != NO_SUBSCALE else "Other features" if form.schema.subscales else "All features"


# ---- reasons


@row_command(ReasonOptions)
def reasons(
    model: RiskModel,
    request: Request,
    options: ReasonOptions,
    cutoff: Cutoff = None,
    only_refused: bool = switch("--refused", "Write only the rows that are refused."),
) -> Work:
    """Show the letter to one row, or write the reasons of all rows, or of the refused ones."""
    if request.output is None or only_refused or cutoff is not None:
        model = with_cutoff("reasons", model, request, cutoff)

    def chosen(found: Reasons) -> Bools:
        return np.ones(len(found), np.bool_) if not only_refused or found.refused is None else found.refused

    return Work(reasoner(model.form_, options).reasons, _print_letter, numbered=True, chosen=chosen)


def _print_letter(reasons: Reasons, row: int) -> None:
    show.out().print(reasons.letter(0), soft_wrap=True)
    withheld = int(reasons.withheld[0])
    if withheld and reasons.refused is not None and reasons.refused[0]:
        verb = "feature also counts; it is" if withheld == 1 else "features also count; they are"
        show.note(f"{withheld} protected {verb} never given as a reason.")


# ---- what-if


@row_command(WhatIfOptions)
def what_if(model: RiskModel, request: Request, options: WhatIfOptions) -> Work:
    """Show the cheapest changes that get one row approved, or write the cheapest of all rows."""
    import polars as pl

    if options.target is None and model.cutoff is None:
        raise DataError(
            f"what-if: {request.model} has no cut-off. Add --cutoff RISK, or keep one in the file: "
            f"plainrisk annotate {request.model} --cutoff RISK."
        )
    # A table has one line per row, so the first answer is the whole content.
    plan = planner(model.form_, options if request.output is None else replace(options, answers=1))
    types = {"reached": pl.Boolean(), "features_changed": pl.Int64(), "changes": pl.String()}
    form = model.form_
    return Work(plan.solve, lambda found, row: print_answers(found[0], f"Row {row}", form), types, numbered=True)


def _beside(risk: float, target: float) -> str:
    """Write a probability with enough digits to distinguish it from the target."""
    digits = (n for n in range(1, 6) if f"{risk:.{n}%}" != f"{target:.{n}%}")
    return f"{risk:.{next(digits, 1)}%}"


def print_answers(what_if: WhatIf, who: str, form: RiskForm) -> None:
    """Print the answers of one applicant as small tables, in the words of the schema."""
    console = show.out()
    features = form.schema.features
    word = "below" if what_if.adverse == "positive" else "at least"
    outcome = outcome_words(form.schema, form.classes[1])
    risk, target = _beside(what_if.risk, what_if.target), f"{what_if.target:.1%}"
    goal = f"{who}: {risk} probability that {outcome}; approved if {word} {target}."
    if not what_if.reached:
        console.print(
            f"{goal} That cannot be reached; the closest is {_beside(what_if.reachable.risk, what_if.target)}."
        )
        return
    if not what_if.answers[0].changes:
        console.print(f"{goal} Nothing needs to change.")
        return
    console.print(goal)
    for i, answer in enumerate(what_if.answers, 1):
        lines = [
            [
                features[change.feature].title(change.feature),
                say_value(features[change.feature], change.value),
                say_value(features[change.feature], change.to_value),
            ]
            for change in answer.changes
        ]
        title = f"{'The smallest change' if i == 1 else 'Another way'}: {_beside(answer.risk, what_if.target)}"
        show.print_table(("feature", "now", "to"), lines, "pll", title)
