"""`plainrisk annotate`: a cut-off and free texts in a model file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date as calendar
from typing import Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.options import Json, ModelArgument
from plainrisk.errors import DataError
from plainrisk.model import load

__all__ = ["About", "Cutoff", "Date", "annotate", "read_about"]

About = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="NAME=TEXT", help="A text to keep in the file, such as owner=Retail. Repeatable."),
]
Cutoff = Annotated[
    float | None,
    typer.Option("--cutoff", metavar="RISK", help="Keep a cut-off in the file, by which score decides."),
]
Date = Annotated[bool, typer.Option("--date", help="Keep today's date in the file.")]


def annotate(
    model: ModelArgument, cutoff: Cutoff = None, about: About = None, date: Date = False, json: Json = False
) -> None:
    """Keep a cut-off and texts in a model file (an empty text is removed); without options, show what it holds."""
    found = load(model)
    texts = read_about(about, date)
    if cutoff is not None or texts:
        found.about = {name: text for name, text in {**found.about, **texts}.items() if text}
        found.save(model, cutoff=cutoff)
        found = load(model)
    result: dict[str, Any] = {"model": str(model), "cutoff": found.cutoff, "about": dict(found.about)}
    show.result(result, json, _show)


def read_about(texts: Sequence[str] | None, date: bool = False) -> dict[str, str]:
    """Read texts given as NAME=TEXT, and today's date if it is asked for.

    >>> read_about(["owner=Retail credit"])
    {'owner': 'Retail credit'}
    """
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise DataError("--about: write a name and its text as NAME=TEXT.")
        found[name] = value
    return {**found, "date": calendar.today().isoformat()} if date else found


def _show(result: dict[str, Any]) -> None:
    cutoff = "no cut-off" if result["cutoff"] is None else f"cut-off {result['cutoff']:g}"
    show.out().print(f"{result['model']}: {cutoff}")
    for name, text in result["about"].items():
        show.out().print(f"  {name}: {text}")
