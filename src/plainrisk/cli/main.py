"""Where the `plainrisk` command starts."""

from __future__ import annotations

import io
import sys
from importlib.util import find_spec

__all__ = ["main"]

NEEDED = ("typer", "rich", "polars")
MISSING_EXTRA = 3


def main() -> None:
    """Run the command line; where its packages are missing, say how to install them and exit with 3."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        sys.stderr.write(
            f"plainrisk: {', '.join(missing)} {verb} needed for the command line and not installed. Run:\n"
            "pip install 'plainrisk[cli]'\n"
        )
        raise SystemExit(MISSING_EXTRA)
    # A terminal that lacks a character shows a question mark instead of ending the command.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    from plainrisk.cli.app import app

    app(prog_name="plainrisk")
