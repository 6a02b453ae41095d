"""`plainrisk bins`: the bins of a model as a schema to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plainrisk.cli import show
from plainrisk.cli.data import Force, SchemaOutput, check_new_schema, write_schema
from plainrisk.cli.options import Json
from plainrisk.model import load

__all__ = ["bins"]


def bins(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)],
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
