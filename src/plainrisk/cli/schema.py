"""`plainrisk schema`: draft what is known of the data, and check it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.errors import FOUND_PROBLEMS
from plainrisk.cli.options import Data, Json, Missing, Positive, SchemaFile, Target

if TYPE_CHECKING:
    from plainrisk.schema import Schema

__all__ = ["schema_app"]

schema_app = typer.Typer(no_args_is_help=True, help="Draft a schema from data, and check one against data.")


@schema_app.command()
def infer(
    data: Data,
    target: Target = None,
    positive: Positive = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the draft, .toml or .json; else TOML on stdout."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a schema that is there already.")] = False,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Draft a schema for a person to edit: kinds, special values, candidate directions in notes."""
    from plainrisk.cli.source import open_source
    from plainrisk.schema import Schema
    from plainrisk.schema.toml import schema_to_toml

    if output is not None:
        _check_draft(output, force)
    source = open_source(data, missing)
    known = target or (source.schema.target if source.schema is not None else None)
    draft = Schema.infer(source.frame, known, positive=_positive(source.frame, known, positive))
    if output is not None:
        draft.save(output)
    if json:
        show.print_json({"schema": draft.to_dict(), "file": None if output is None else str(output)})
    elif output is None:
        typer.echo(schema_to_toml(draft.to_dict()), nl=False)
    else:
        _show_draft(draft)
        show.hint(f"Wrote {output}. Add directions and subscales, then check them:")
        show.hint(f"plainrisk schema check {data} --schema {output}")


@schema_app.command()
def check(data: Data, schema: SchemaFile = None, missing: Missing = None, json: Json = False) -> None:
    """List everything in which a schema and data do not fit each other; exit 1 if there are errors."""
    from plainrisk.cli.source import open_source
    from plainrisk.errors import SchemaError
    from plainrisk.schema import Schema

    known = None if schema is None else Schema.load(schema)
    source = open_source(data, missing)
    known = known or source.schema
    if known is None:
        raise SchemaError(f"{data}: which schema? Add --schema FILE, or draft one with plainrisk schema infer.")
    problems = [asdict(problem) for problem in known.check(source.frame)]
    wrong = any(problem["severity"] == "error" for problem in problems)
    if json:
        show.print_json({"valid": not wrong, "problems": problems})
    else:
        _show_problems(problems, len(known.features), source.frame.height)
    raise typer.Exit(FOUND_PROBLEMS if wrong else 0)


def _check_draft(output: Path, force: bool) -> None:
    from plainrisk.cli.tables import check_output
    from plainrisk.errors import SchemaError

    check_output(output, (".toml", ".json"))
    if output.exists() and not force:
        raise SchemaError(f"{output} is there already, perhaps edited by hand. --force replaces it.")


def _positive(frame: Any, target: str | None, positive: str | None) -> Any:
    from plainrisk.cli.source import label_in

    return None if positive is None else label_in(positive, frame, target)


def _show_draft(draft: Schema) -> None:
    from plainrisk.schema import label_of

    rows = [
        [name, feature.kind, ", ".join(map(label_of, feature.special_values)), feature.note or ""]
        for name, feature in draft.features.items()
    ]
    show.print_table(("feature", "kind", "special values", "note"), rows)


def _show_problems(problems: list[dict[str, Any]], features: int, rows: int) -> None:
    if not problems:
        show.out().print(f"The schema fits the data: {features:,} features, {rows:,} rows.")
        return
    show.print_table(("severity", "problem"), [[p["severity"], p["message"]] for p in problems])
    errors = len([p for p in problems if p["severity"] == "error"])
    words = f"{errors} error{'' if errors == 1 else 's'}, {len(problems) - errors} to know."
    show.out().print(words + ("" if errors else " A model can be fitted."))
