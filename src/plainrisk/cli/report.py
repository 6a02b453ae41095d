"""`plainrisk report`: the decision page, one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plainrisk.cli import show, source, tables
from plainrisk.cli.options import Column, Json, Missing, ModelArgument, OptionalData, option
from plainrisk.model import load

__all__ = ["report"]


def report(
    model: ModelArgument,
    output: Path = option("The page to write, an .html file.", ..., "--output", "-o", metavar="PAGE"),
    data: OptionalData = None,
    against: Path | None = option("A second model file, to compare with.", metavar="MODEL"),
    applicants: int = option("Put this many rows of the data into the page.", 0, metavar="N", min=0),
    by: str | None = option("Measure the model by the groups in this column, too.", metavar="COLUMN"),
    target: Column = None,
    cutoff: float | None = option("The cut-off to try, for a model file that has none.", metavar="RISK"),
    title: str | None = option("The title of the page.", metavar="TEXT"),
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Write the decision page: see the model, change an applicant, ask what would change the decision; offline."""
    tables.check_output(output, (".html",))
    loaded, other = load(model), None if against is None else load(against)
    models = [loaded] if other is None else [loaded, other]
    loaded.report(
        output,
        None if data is None else source.rows_of_model(data, missing, *models, texts=[by] if by else []),
        against=other,
        applicants=applicants,
        by=by,
        target=target,
        cutoff=cutoff,
        title=title or model.stem,
    )
    size = output.stat().st_size
    result: dict[str, Any] = {"page": str(output), "bytes": size, "model": str(model), "data": data}
    result |= {"against": None if against is None else str(against), "applicants": applicants}
    show.result(result, json, lambda _: _tell(output, size, data, applicants))


def _tell(output: Path, size: int, data: str | None, applicants: int) -> None:
    rows = "no rows" if not applicants else f"{applicants:,} rows of {data}, which everybody who has the page can read"
    show.out().print(f"{output}: {size / 1000:,.0f} kB, with {rows}. Open it in a browser.")
