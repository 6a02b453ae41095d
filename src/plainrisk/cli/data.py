"""`plainrisk schema` and `plainrisk data`: drafts and checks of schemas, and the data sets by name."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any

import typer

from plainrisk.cli import show, source, tables
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Column, Conf, Data, Json, Master, Missing, Positive, SchemaFile
from plainrisk.data.remote import is_remote
from plainrisk.errors import SchemaError, quoted
from plainrisk.schema import Schema
from plainrisk.schema.findings import by_feature, in_words
from plainrisk.text import counted

__all__ = ["Force", "SchemaOutput", "check_new_schema", "data_app", "schema_app", "write_schema"]

schema_app = typer.Typer(no_args_is_help=True, help="Draft a schema from data, and check one against data.")
data_app = typer.Typer(
    no_args_is_help=True, help="List and describe the data sets, and whether they are on this machine."
)

SchemaOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where to write the schema, .toml or .json; by default, TOML on stdout."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a schema that is there already.")]
MOST_LINES = 20  # features of a draft on screen
HOW = "How to get one that is absent: plainrisk data show NAME"


# ---- schema


def check_new_schema(output: Path | None, force: bool) -> None:
    """Raise an error before any work starts if a schema cannot be written or already exists."""
    tables.check_output(output, (".toml", ".json"))
    if output is not None and output.exists() and not force:
        raise SchemaError(f"{output} is there already, perhaps edited by hand. --force replaces it.")


def write_schema(schema: Schema, output: Path | None, json: bool, facts: dict[str, Any]) -> None:
    """Write a schema to its file, or print it: as JSON with the facts if requested, else as TOML."""
    if output is not None:
        schema.save(output)
    if json:
        file = None if output is None else str(output)
        show.print_json({**facts, "schema": schema.to_dict(), "file": file})
    elif output is None:
        typer.echo(schema.to_toml(), nl=False)


@schema_app.command()
def infer(
    data: Data,
    target: Column = None,
    positive: Positive = None,
    output: SchemaOutput = None,
    force: Force = False,
    missing: Missing = None,
    master: Master = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Draft a schema for a person to edit: kinds, special values and, in comments, findings in the data."""
    check_new_schema(output, force)
    words, numbers = source.missing_words(missing)
    if is_remote(data):
        rows = source.sample_elsewhere(data, missing, master, conf)
    else:
        rows = source.open_source(data, numbers, drafting=True)
    outcome = target or (rows.schema.target if rows.schema is not None else None)
    label = None if positive is None else source.label_in(positive, rows.frame, outcome)
    draft = Schema.infer(rows.frame, outcome, positive=label, missing=words)
    source.warn_of_names(draft)
    write_schema(draft, output, json, {"findings": [asdict(finding) for finding in draft.findings]})
    if output is not None and not json:
        _show_draft(draft)
        show.hint(f"Wrote {output}. Add directions and subscales, then check them:")
        show.hint(f"plainrisk schema check {data} --schema {output}")


@schema_app.command("check")
def check_schema(
    data: Data,
    schema: SchemaFile = None,
    missing: Missing = None,
    master: Master = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """List every mismatch between a schema and data; exit 1 if there are errors."""
    stated = None if schema is None else Schema.load(schema)
    if is_remote(data):
        rows = source.sample_elsewhere(data, missing, master, conf)
    else:
        rows = source.open_source(data, missing, None if stated is None else stated.kinds)
    stated = stated or rows.schema
    if stated is None:
        raise SchemaError(f"{data}: which schema? Add --schema FILE, or draft one with plainrisk schema infer.")
    problems = [asdict(problem) for problem in stated.check(rows.frame)]
    wrong = any(problem["severity"] == "error" for problem in problems)
    result = {"valid": not wrong, "rows": rows.frame.height, "problems": problems}
    show.result(result, json, lambda _: _show_problems(problems, len(stated.features), rows.frame.height))
    raise typer.Exit(ExitCode.FOUND_PROBLEMS if wrong else 0)


def _show_draft(draft: Schema) -> None:
    """Show the features that a person should look at first; the file and --json have all."""
    seen = {name: seen_of for name, seen_of in by_feature(draft.findings).items() if name in draft.features}
    findings = {**seen, **{name: [] for name in draft.features if name not in seen}}
    rows = []
    for name, seen_of in list(findings.items())[:MOST_LINES]:
        value = next((f"{f.figures['information_value']:.2f}" for f in seen_of if f.kind == "value"), "")
        words = in_words(finding for finding in seen_of if finding.kind != "value")
        rows.append([name, draft.features[name].kind, value, words])
    show.print_table(("feature", "kind", "IV", "what was seen"), rows, "plrp")
    more = len(draft.features) - len(rows)
    if more > 0:
        show.remark(f"The file has {more:,} more, each with what was seen.")
    stems = [finding.feature for finding in draft.findings if finding.kind == "subscale"]
    if stems:
        show.out().print(f"Subscales that the names suggest, as comments in the file: {quoted(stems)}.")


def _show_problems(problems: list[dict[str, Any]], features: int, rows: int) -> None:
    if not problems:
        show.out().print(f"The schema fits the data: {features:,} features, {rows:,} rows.")
        return
    show.print_table(("severity", "problem"), [[p["severity"], p["message"]] for p in problems], "pp")
    errors = sum(p["severity"] == "error" for p in problems)
    words = f"{counted(errors, 'error')}, {counted(len(problems) - errors, 'note')}."
    show.out().print(words + ("" if errors else " A model can be fitted."))


# ---- data


@data_app.command("list")
def list_data(json: Json = False) -> None:
    """List the data sets, and whether each is on this machine."""
    from plainrisk import datasets

    sets = [_facts(name) for name in datasets.names()]
    show.result({"data_sets": sets}, json, _show_sets)


@data_app.command("show")
def show_data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The data set, such as german.", show_default=False)],
    json: Json = False,
) -> None:
    """Describe one data set, its features, and how to get it."""
    from plainrisk import datasets
    from plainrisk.datasets.registry import schema_of

    schema = schema_of(datasets.info(name).schema)
    features = [
        {
            "name": feature,
            "kind": fields.kind,
            "direction": fields.direction,
            "subscales": ", ".join(s for s, members in schema.subscales.items() if feature in members),
        }
        for feature, fields in schema.features.items()
    ]
    facts = _facts(name)
    if json:
        show.print_json({**facts, "features": features})
        return
    labels = {"outcome": "positive outcome", "positive_rate": "positive rate", "path": "file", "get": "how to get it"}
    facts |= {"rows": _count(facts["rows"]), "positive_rate": _rate(facts["positive_rate"])}
    rows = [[labels.get(key, key), str(value)] for key, value in facts.items() if value and key != "name"]
    show.print_table((name, ""), rows, "pp")
    columns = ("kind", "direction", "subscales")
    show.print_table(("feature", *columns), [[f["name"], *(f[c] for c in columns)] for f in features], "pppp")


@data_app.command("check")
def check_data(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Which data sets, such as german; by default all.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Read every data set that is here and compare it with its description; exit 1 if one is wrong."""
    from plainrisk import datasets

    chosen = names or list(datasets.names())
    for name in chosen:
        datasets.info(name)  # a name that is wrong is said before the first file is read
    results = []
    with show.progress("Checking", len(chosen)) as bar:
        for name in chosen:
            results += [asdict(result) for result in datasets.check([name])]
            bar.advance()
    show.result({"data_sets": results}, json, _show_checked)
    if any(r["status"] == "wrong" for r in results):
        raise typer.Exit(ExitCode.FOUND_PROBLEMS)


def _facts(name: str) -> dict[str, Any]:
    from plainrisk import datasets
    from plainrisk.datasets.registry import absent_message, find

    entry = datasets.info(name)
    present = find(entry)
    fields = ("name", "title", "outcome", "rows", "positive_rate", "license", "source", "citation", "note")
    return {
        **{field: getattr(entry, field) for field in fields},
        "status": "absent" if present is None else "partial" if present.partial else "present",
        "path": None if present is None else str(present.path),
        "get": absent_message(entry).removeprefix("Datasets: ") if present is None else None,
    }


def _show_sets(result: dict[str, Any]) -> None:
    rows = [
        [s["name"], s["title"], _count(s["rows"]), _rate(s["positive_rate"]), s["license"], s["status"]]
        for s in _families(result["data_sets"])
    ]
    header = ("name", "title", "rows", "positive", "license", "status")
    show.print_table(header, rows, "lprrpl")
    show.hint(HOW)


def _show_checked(result: dict[str, Any]) -> None:
    def remark(checked: dict[str, Any]) -> str:
        # How to get a data set is a long text; `data show` has it.
        return "" if checked["status"] == "absent" else checked["message"]

    rows = [
        [r["name"], r["status"], _count(r["rows"]), _rate(r["positive_rate"]), remark(r)] for r in result["data_sets"]
    ]
    show.print_table(("name", "status", "rows", "positive", "remark"), rows, "pprrp")
    show.hint(HOW)


def _count(rows: int | None) -> str:
    return "" if rows is None else f"{rows:,}"


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1%}"


def _families(sets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Show data sets with the same title as one row, and only the first words of a long license."""
    shown: list[dict[str, Any]] = []
    for entry in sets:
        entry = {**entry, "license": shorten(entry["license"], 20, placeholder=" ...")}
        if shown and all(shown[-1][key] == entry[key] for key in ("title", "status")):
            first = shown[-1]["name"].partition(" ")[0]
            shown[-1] |= {"name": f"{first} ... {entry['name']}"}
        else:
            shown.append(entry)
    return shown
