"""`plainrisk export`: a model as SQL, code, ONNX, PMML or a spreadsheet, with its reasons inside."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from plainrisk.cli import show, source
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Json, Missing, ModelArgument, option, switch
from plainrisk.export.sql import DIALECTS
from plainrisk.exports import ENDINGS, self_test_path, target_of, verify_export
from plainrisk.model import load

__all__ = ["export"]

ALL = ", ".join(ending for endings in ENDINGS.values() for ending in endings)


def export(
    model: ModelArgument,
    output: Path = option(
        f"The file to write; its ending sets the format: {ALL}.", ..., "--output", "-o", metavar="FILE"
    ),
    dialect: str | None = option("For SQL: the dialect of your database.", metavar="|".join(DIALECTS)),
    table: str = option("For SQL: the table to read.", "applicants", metavar="NAME"),
    keep: list[str] | None = option("For SQL: a column to keep in the result. Repeatable.", metavar="COLUMN"),
    k: int | None = option("The largest number of reasons, not above the policy's.", None, "-k"),
    portfolio: str | None = option(
        "Rows that define the typical applicant, for models with lines and curves.", metavar="DATA"
    ),
    check: bool = switch(
        "--check", "Run the file's self-test if its runtime is installed; exits with code 4 if it fails."
    ),
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Write a model as SQL, code, ONNX, PMML or a spreadsheet that gives the same risk, contributions and reasons."""
    target = target_of(output)
    loaded = load(model)
    rows = None if portfolio is None else source.rows_of_model(portfolio, missing, loaded)
    loaded.export(
        output,
        dialect=dialect,
        table=table,
        keep=keep or (),
        k=k,
        portfolio=rows,
    )
    files = [str(output), *([str(self_test_path(output))] if target == "sql" else [])]
    result: dict[str, Any] = {"target": target, "files": files, "check": None}
    if check:
        verification = verify_export(output, loaded, portfolio=rows)
        result["check"] = {"agrees": verification.agrees, **asdict(verification)}
    show.result(result, json, _show)
    if check and not verification.agrees:
        raise typer.Exit(ExitCode.FAILED_CERTIFICATE)


def _show(result: dict[str, Any]) -> None:
    console = show.out()
    console.print(f"Wrote {' and '.join(result['files'])}.")
    checked = result["check"]
    if checked is None:
        return
    if checked["rows"] == 0:
        console.print(
            f"Nothing was run ({checked['engine']}), so nothing is known to agree. Run {result['files'][-1]} where the "
            "data are: its column wrong must be 0."
        )
        return
    verdict = "agrees" if checked["agrees"] else "DOES NOT AGREE"
    same = ", every risk to the last bit" if checked["bit_equal"] else ""
    console.print(
        f"{checked['engine']} {verdict} with the model on {checked['rows']} rows: largest difference "
        f"{checked['largest']:.1e}{same}; {checked['reasons']} rows with other reasons, "
        f"{checked['decisions']} with another decision."
    )
