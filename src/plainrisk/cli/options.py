"""Options that several commands share, so that they read and behave alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Data", "Json", "Missing", "ModelFile", "Positive", "SchemaFile", "Target"]

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .csv.gz or .parquet file, or the name of a data set (see: plainrisk data list).",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on stdout.")]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="TEXT", help="Text in a CSV that means missing, such as NA. Repeatable."),
]
ModelFile = Annotated[Path, typer.Option("--model", metavar="MODEL", help="A model file written by fit.")]
Positive = Annotated[
    str | None,
    typer.Option("--positive", metavar="LABEL", help="The outcome whose probability is the risk."),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", metavar="SCHEMA", help="A schema, .toml or .json (see: plainrisk schema infer)."),
]
Target = Annotated[str | None, typer.Option("--target", metavar="NAME", help="The column that holds the outcome.")]
