"""Where the `plainrisk` command starts, and the exit codes by which it ends."""

from __future__ import annotations

import io
import sys
from enum import IntEnum
from importlib.util import find_spec

__all__ = ["ExitCode", "main"]

NEEDED = ("typer", "rich", "polars")


class ExitCode(IntEnum):
    """The exit codes, each with its meaning."""

    meaning: str

    DONE = 0, "done"
    FOUND_PROBLEMS = 1, "schema check or data check found errors, or a bug in plainrisk"
    BUG = FOUND_PROBLEMS
    USAGE = 2, "the command, a file or the data cannot be used; the message says why"
    MISSING_EXTRA = 3, "an optional package is missing; the message says which"
    BROKEN_PROMISE = 4, "a model breaks one of its promises; nothing was written"
    INTERRUPTED = 130, "interrupted; nothing was left half-written"
    BROKEN_PIPE = 141, "the program that reads the output ended first, as head does"

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Keep the meaning beside the number."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member


def main() -> None:
    """Run the command line; where its packages are missing, say how to install them and exit with 3."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        sys.stderr.write(
            f"plainrisk: {', '.join(missing)} {verb} needed for the command line and not installed. Run:\n"
            "pip install 'plainrisk[cli]'\n"
        )
        raise SystemExit(ExitCode.MISSING_EXTRA)
    # A terminal that lacks a character shows a question mark instead of ending the command.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    from plainrisk.cli.app import app

    app(prog_name="plainrisk")
