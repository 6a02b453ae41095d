"""`plainrisk data`: the data sets by name."""

from __future__ import annotations

from dataclasses import asdict
from textwrap import shorten
from typing import Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.errors import FOUND_PROBLEMS
from plainrisk.cli.options import Json

__all__ = ["data_app"]

_HOW = "How to get one that is absent: plainrisk data show NAME"

data_app = typer.Typer(no_args_is_help=True, help="The data sets by name: what they are, and whether they are here.")


@data_app.command("list")
def list_(json: Json = False) -> None:
    """List the data sets, and whether each is on this machine."""
    from plainrisk import datasets

    sets = [_facts(name) for name in datasets.names()]
    if json:
        show.print_json({"data_sets": sets})
        return
    rows = [
        [s["name"], s["title"], _count(s["rows"]), _rate(s["positive_rate"]), s["licence"], s["status"]]
        for s in _families(sets)
    ]
    header = ("name", "title", "rows", "positive", "licence", "status")
    show.print_table(header, rows, numbers=("rows", "positive"), whole=("name", "status"))
    show.hint(_HOW)


@data_app.command("show")
def show_(name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)], json: Json = False) -> None:
    """Show what one data set is, what is known of its features, and how to get it."""
    facts = {**_facts(name), **_knowledge(name)}
    if json:
        show.print_json(facts)
        return
    labels = {
        "title": "title",
        "outcome": "positive outcome",
        "rows": "rows",
        "positive_rate": "positive rate",
    }
    labels |= {"licence": "licence", "source": "source", "citation": "citation", "note": "note"}
    labels |= {"status": "status", "path": "file", "get": "how to get it"}
    written = {**facts, "rows": _count(facts["rows"]), "positive_rate": _rate(facts["positive_rate"])}
    show.print_table((name, ""), [[label, str(written[key])] for key, label in labels.items() if written[key]])
    rows = [[f["name"], f["kind"], f["direction"], f["subscales"]] for f in facts["features"]]
    show.print_table(("feature", "kind", "direction", "subscale"), rows)


@data_app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Which; all unless told.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Read every data set that is here and compare it with what it must hold; exit 1 if one is wrong."""
    from plainrisk import datasets

    known = names or list(datasets.names())
    for name in known:
        datasets.info(name)  # a name that is wrong is said before the first file is read
    results = []
    with show.progress("Checking", len(known)) as advance:
        for name in known:
            results += [asdict(result) for result in datasets.check([name])]
            advance(1)
    if json:
        show.print_json({"data_sets": results})
    else:
        rows = [[r["name"], r["status"], _count(r["rows"]), _rate(r["positive_rate"]), _remark(r)] for r in results]
        show.print_table(("name", "status", "rows", "positive", "remark"), rows, numbers=("rows", "positive"))
        show.hint(_HOW)
    if any(r["status"] == "wrong" for r in results):
        raise typer.Exit(FOUND_PROBLEMS)


def _facts(name: str) -> dict[str, Any]:
    from plainrisk import datasets
    from plainrisk.datasets.sources import absent_message, find

    entry = datasets.info(name)
    found = find(entry)
    status = "absent" if found is None else "partial" if found.partial else "present"
    fields = ("name", "title", "outcome", "rows", "positive_rate", "licence", "source", "citation", "note")
    return {
        **{field: getattr(entry, field) for field in fields},
        "status": status,
        "path": None if found is None else str(found.path),
        "get": absent_message(entry).removeprefix("Datasets: ") if found is None else None,
    }


def _knowledge(name: str) -> dict[str, Any]:
    from plainrisk import datasets
    from plainrisk.datasets.registry import schema_of

    schema = schema_of(datasets.info(name).schema)
    features = [
        {
            "name": feature,
            "kind": known.kind,
            "direction": known.direction,
            "subscales": ", ".join(s for s, members in schema.subscales.items() if feature in members),
        }
        for feature, known in schema.features.items()
    ]
    return {"features": features}


def _count(rows: int | None) -> str:
    return "" if rows is None else f"{rows:,}"


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1%}"


def _remark(result: dict[str, Any]) -> str:
    # How to get a data set is a long text; `data show` has it.
    return "" if result["status"] == "absent" else str(result["message"])


def _families(sets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Show neighbours of one title as one row, and of a long licence its first words."""
    shown: list[dict[str, Any]] = []
    for one in sets:
        one = {**one, "licence": shorten(one["licence"], 20, placeholder=" ...")}
        if shown and all(shown[-1][key] == one[key] for key in ("title", "status")):
            first = shown[-1]["name"].partition(" ")[0]
            shown[-1] |= {"name": f"{first} ... {one['name']}"}
        else:
            shown.append(one)
    return shown
