"""`plainrisk certify`: check a model file's promises again, from its form alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plainrisk.cli import show
from plainrisk.cli.errors import BROKEN_PROMISE
from plainrisk.cli.options import Json

__all__ = ["certify"]


def certify(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)],
    thin: Annotated[
        float | None,
        typer.Option("--thin", metavar="ROWS", help="Note levels with fewer training rows, 30 unless told."),
    ] = None,
    json: Json = False,
) -> None:
    """Certify a model file from its form alone, and compare with the certificate it holds; ends with 4 if one fails."""
    from plainrisk.explain import recheck
    from plainrisk.form import read_model

    found = recheck(read_model(model), thin)
    result = {
        "model": str(model),
        "valid": found.valid,
        "stored": found.stored is not None,
        "differences": list(found.differences),
        "certificate": found.fresh.to_dict(),
    }
    if json:
        show.print_json(result)
    else:
        console = show.out()
        console.print(f"{model}, form {found.fresh.form_sha256[:16]}…", style="bold")
        show.certificate(result["certificate"])  # type: ignore[arg-type]
        agrees = "The stored certificate says the same." if found.stored else "The file holds no certificate."
        console.print(agrees if not found.differences else "The stored certificate says otherwise:")
        for difference in found.differences:
            console.print(f"  {difference}")
    if not found.valid:
        raise typer.Exit(BROKEN_PROMISE)
