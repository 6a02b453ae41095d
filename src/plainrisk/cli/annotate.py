"""`plainrisk annotate`: what may change after a fit: words, policy, free texts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date as calendar
from pathlib import Path
from typing import Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.options import Json, ModelArgument, option
from plainrisk.errors import DataError, SchemaError
from plainrisk.files import parse_json, parse_toml, read_text
from plainrisk.model import load
from plainrisk.schema import Schema
from plainrisk.schema.toml import schema_to_toml

__all__ = ["About", "Cutoff", "Date", "annotate", "read_about"]

About = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="NAME=TEXT", help="A text to keep in the file under a name. Repeatable."),
]
Cutoff = Annotated[
    float | None,
    typer.Option("--cutoff", metavar="RISK", help="A cut-off to keep in the file, which decides who is approved."),
]
Date = Annotated[bool, typer.Option("--date", help="Keep today's date in the file.")]


def annotate(
    model: ModelArgument,
    cutoff: Cutoff = None,
    schema: Path | None = option("Take words, protected features and policy from this schema.", metavar="SCHEMA"),
    set_: list[str] | None = option(
        "Set one entry, written as in a schema, such as 'features.age.label = \"Age\"'. "
        "An entry without a value, such as policy.reasons=, is removed. Repeatable.",
        None,
        "--set",
        metavar="KEY=VALUE",
    ),
    about: About = None,
    date: Date = False,
    json: Json = False,
) -> None:
    """Change the words and policy in a model file, never a probability; without options, show all that may change."""
    changed = load(model)
    texts = read_about(about, date)
    if schema is not None:
        changed = changed.annotate(_read(schema, changed.form_.schema))
    for entry in set_ or ():
        changed = changed.annotate(_entry(entry))
    if cutoff is not None or texts:
        changed = changed.annotate(cutoff=cutoff, about=texts)
    if schema is not None or set_ or cutoff is not None or texts:
        changed.save(model)
    result: dict[str, Any] = {"model": str(model), "cutoff": changed.cutoff, "about": dict(changed.about)}
    show.result(result | changed.form_.schema.annotations, json, lambda _: _show(result, changed.form_.schema))


def read_about(texts: Sequence[str] | None, date: bool = False) -> dict[str, str]:
    """Read texts given as NAME=TEXT, and today's date if it is asked for.

    >>> read_about(["owner=Retail credit"])
    {'owner': 'Retail credit'}
    """
    texts_by_name = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise DataError("--about: write a name and its text as NAME=TEXT.")
        texts_by_name[name] = value
    return {**texts_by_name, "date": calendar.today().isoformat()} if date else texts_by_name


def _read(path: Path, known: Schema) -> Schema:
    """Read words and policy: a whole schema, or a few lines of one, completed from the model."""
    text = read_text(path, limit=16 * 2**20, error=SchemaError)
    if path.suffix == ".json":
        plain = parse_json(text, dict[str, Any], path, SchemaError, "a schema")
    else:
        plain = parse_toml(text, path, SchemaError)
    if not isinstance(plain.get("features", {}), dict):
        raise SchemaError(f"{path}: a table with 'features', 'outcome' or 'policy' is needed.")
    features = {
        name: {"kind": known.features[name].kind, **body} if name in known.features and isinstance(body, dict) else body
        for name, body in plain.get("features", {}).items()
    }
    outcome = plain.get("outcome", {})
    stated = "adverse" in plain or (isinstance(outcome, dict) and "adverse" in outcome)
    return Schema.from_dict({**({} if stated else {"adverse": known.adverse}), **plain, "features": features})


def _entry(text: str) -> dict[str, Any]:
    """Read KEY=VALUE as in a schema; an entry without a value is removed."""
    key, equals, value = text.partition("=")
    if equals and not value.strip():
        plain: dict[str, Any] = parse_toml(f"{key} = true", "--set", DataError)
        table, (name,) = plain, plain
        while isinstance(table[name], dict):
            table = table[name]
            (name,) = table
        table[name] = None
        return plain
    return parse_toml(text, "--set", DataError)


def _show(result: dict[str, Any], schema: Schema) -> None:
    cutoff = "no cut-off" if result["cutoff"] is None else f"cut-off {result['cutoff']:g}"
    show.out().print(f"{result['model']}: {cutoff}")
    for name, text in result["about"].items():
        show.out().print(f"  {name}: {text}")
    held = {key: table for key, table in schema.annotations.items() if key != "features" and table}
    held["features"] = {name: fields for name, fields in schema.annotations["features"].items() if fields}
    show.out().print(schema_to_toml(held).strip(), soft_wrap=True, highlight=False, markup=False)
