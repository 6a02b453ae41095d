"""`plainrisk what-if`: the cheapest way to a target."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from plainrisk.cli import show
from plainrisk.cli.explain import Adverse, Keep, MinRows, Output, Row, finish
from plainrisk.cli.options import Data, Json, Missing, ModelFile

if TYPE_CHECKING:
    import polars as pl

    from plainrisk.explain import WhatIf

__all__ = ["print_answers", "what_if"]


def what_if(
    data: Data,
    model: ModelFile,
    target: Annotated[float, typer.Option("--target", metavar="RISK", help="The risk to reach.")],
    output: Output = None,
    row: Row = 0,
    freeze: Annotated[
        list[str] | None, typer.Option("--freeze", metavar="FEATURE", help="This feature stays as it is. Repeatable.")
    ] = None,
    cost: Annotated[
        str,
        typer.Option(
            "--cost", metavar="features|steps", help="Change few features first, or add up the schema's step costs."
        ),
    ] = "features",
    answers: Annotated[int, typer.Option("--answers", min=1, help="At most so many for the row that is shown.")] = 3,
    adverse: Adverse = "positive",
    min_rows: MinRows = 0.0,
    keep: Keep = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Show the cheapest changes that bring one row to the target, or write the cheapest of all rows."""
    from plainrisk.cli.batches import Batches, one_row
    from plainrisk.cli.tables import WRITE, check_output
    from plainrisk.explain.options import WhatIfOptions
    from plainrisk.explain.what_if import planner
    from plainrisk.model import load

    start = time.perf_counter()
    if output is not None:
        check_output(output, WRITE)
    form = load(model).form_
    batches = Batches.open(data, form, missing, keep or [])
    options: Any = {"cost": cost, "adverse": adverse, "min_rows": min_rows}
    asked = answers if output is None else 1
    plan = planner(form, WhatIfOptions(target, frozen=freeze or [], answers=asked, **options))
    if output is not None:
        finish(batches, output, _types(), _work(plan), data, model, start, json)
        return
    found = plan.solve(one_row(batches, row, data))[0]
    if json:
        show.print_json({"data": data, "model": str(model), "row": row, **found.to_dict()})
    else:
        print_answers(found, f"Row {row}")


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
        lines: list[list[str | Text]] = [
            [change.feature, _text(change.value), _text(change.to_value)] for change in answer.changes
        ]
        title = f"{'The cheapest way' if i == 1 else 'Another way'}: risk {answer.risk:.1%}"
        show.print_table(("feature", "now", "to"), lines, whole=("now", "to"), title=title)


def _text(value: Any) -> str:
    return "missing" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _types() -> dict[str, Any]:
    import polars as pl

    kinds = (pl.Int64(), pl.Float64(), pl.Boolean(), pl.Float64(), pl.Int64(), pl.Float64(), pl.String())
    return dict(zip(("row", "risk", "reached", "new_risk", "features_changed", "cost", "changes"), kinds, strict=True))


def _work(plan: Any) -> Any:
    from plainrisk.cli.batches import ROW

    def work(batch: pl.DataFrame) -> dict[str, Any]:
        return {"row": batch[ROW], **plan.solve(batch).columns()}

    return work
