"""`plainrisk audit`: whether the audit log of a service was changed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from plainrisk.audit_log import verify_log
from plainrisk.cli import show
from plainrisk.cli.options import Json

__all__ = ["audit"]


def audit(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Logs that `serve --audit` wrote.")],
    json: Json = False,
) -> None:
    """Check that every line of an audit log contains the hash of the previous line.

    A line that was changed, removed or inserted is named. Lines cut off at the end leave no trace in the log:
    keep the hash of the last line elsewhere, and compare it.
    """
    checked = [{"log": str(log), **asdict(verify_log(log))} for log in logs]
    show.result({"logs": checked}, json, _show)


def _show(result: dict[str, Any]) -> None:
    for log in result["logs"]:
        when = "" if log["first"] is None else f", {log['first']} to {log['last']}"
        show.out().print(f"{log['log']}: {log['lines']:,} lines hold{when}; the last has the hash {log['head']}")
