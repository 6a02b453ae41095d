"""`plainrisk bins` and `plainrisk diff`: the bins of a model as a schema to edit, and what an edit did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plainrisk.cli import show, source, tables
from plainrisk.cli.data import Force, SchemaOutput, check_new_schema, write_schema
from plainrisk.cli.options import Json, Missing, ModelArgument, OptionalData, TableOutput, option
from plainrisk.errors import quoted
from plainrisk.explain import Diff
from plainrisk.explain import diff as compare
from plainrisk.model import load

__all__ = ["bins", "diff"]

MOST_LINES = 20  # terms on screen


def bins(
    model: ModelArgument,
    output: SchemaOutput = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the bins and groups of a model as a schema, to merge or move them by hand and fit again."""
    check_new_schema(output, force)
    schema = load(model).schema_with_bins()
    write_schema(schema, output, json, {"model": str(model)})
    if output is not None and not json:
        show.hint(f"Wrote {output}. Edit edges and groups, fit again, and see what moved: plainrisk diff OLD NEW")


def diff(
    before: Annotated[Path, typer.Argument(metavar="OLD", help="A model file.", show_default=False)],
    after: Annotated[
        Path, typer.Argument(metavar="NEW", help="The model file to compare with it.", show_default=False)
    ],
    data: OptionalData = None,
    cutoff: float | None = option(
        "Count the rows that this cut-off decides differently by the two models.", metavar="RISK"
    ),
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Compare two models: which levels differ, and how that changes risks, decisions and reasons."""
    tables.check_table(output)
    models = load(before), load(after)
    rows = None if data is None else source.rows_of_model(data, missing, *models)
    difference = compare(*models, rows, cutoff)
    result = {"before": str(before), "after": str(after), "data": data, **difference.to_dict()}
    if output is not None:
        tables.write_table(difference.columns(), output)
    show.result(result, json, lambda _: _show_diff(difference))
    show.wrote(output)


def _show_diff(difference: Diff) -> None:
    console = show.out()
    for word, names in (("added", difference.added), ("removed", difference.removed)):
        if names:
            console.print(f"Features {word}: {quoted(names)}")
    terms = [term for term in difference.terms if term.status != "same"]
    lines = []
    for term in terms[:MOST_LINES]:
        first = term.moves[0] if term.moves else None
        risk = "" if first is None or first.risk is None else f"{100 * first.risk:+.2f}"
        moved = (
            ["", "", "", ""] if first is None else [first.level, f"{first.before:+.3f}", f"{first.after:+.3f}", risk]
        )
        lines.append([term.part, term.feature, term.status, str(len(term.moves)), *moved])
    header = ("part", "feature", "", "levels", "largest move", "score before", "after", "risk, points")
    if lines:
        show.print_table(header, lines, "ppprprrr")
    same = len(difference.terms) - len(terms)
    more = f", {len(terms) - MOST_LINES} more with --json" if len(terms) > MOST_LINES else ""
    console.print(f"{len(terms)} terms differ{more}; {same} are the same.")
    if difference.settings:
        show.print_table(
            ("setting", "before", "after"), [[s.name, s.before, s.after] for s in difference.settings], "ppp"
        )
    if difference.rows is not None:
        lines = [[str(row), f"{old:.2%}", f"{new:.2%}"] for row, old, new in difference.rows.largest]
        show.print_table(("row", "risk before", "after"), lines, "rrr")
        for line in difference.rows.lines:
            console.print(line)
