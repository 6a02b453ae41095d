"""How a command ends when something goes wrong: one message, one exit code."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
import warnings
from collections.abc import Iterator

import typer

from plainrisk.cli import show
from plainrisk.errors import MissingExtraError, PlainriskError, PlainriskWarning

__all__ = ["EXIT_CODES", "guard", "notes"]

FOUND_PROBLEMS, BUG = 1, 1
USAGE = 2
MISSING_EXTRA = 3
BROKEN_PROMISE = 4
INTERRUPTED = 130

EXIT_CODES = {
    0: "done",
    1: "schema check or data check found errors, or a bug in plainrisk",
    2: "the command, a file or the data cannot be used; the message says why",
    3: "an optional package is missing; the message says which",
    4: "a model breaks one of its promises; nothing was written",
    130: "interrupted; nothing was left half-written",
}


@contextlib.contextmanager
def guard(debug: bool) -> Iterator[None]:
    """Turn what a command raises into a message on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        _stop("interrupted", INTERRUPTED)
    except MissingExtraError as error:
        _stop(str(error), MISSING_EXTRA)
    except PlainriskError as error:
        _stop(str(error), USAGE)
    except BrokenPipeError:
        raise  # `plainrisk data list | head`: typer ends quietly
    except OSError as error:
        _stop(_in_words(error), USAGE)
    except Exception as error:
        # typer's own ways to end a command carry their exit code.
        if isinstance(error, typer.Abort) or hasattr(error, "exit_code"):
            raise
        if debug:
            sys.stderr.write(traceback.format_exc())
        else:
            show.error(f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}")
        show.hint("This is a bug in plainrisk." + ("" if debug else " See where with: plainrisk --debug ..."))
        raise typer.Exit(BUG) from None


@contextlib.contextmanager
def notes() -> Iterator[None]:
    """Show each of the library's warnings once, as a note on stderr."""
    seen: set[str] = set()

    def tell(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: object = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, PlainriskWarning):
            sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))
            return
        # The folds of a cross validation say the same with other figures.
        words = re.sub(r"\d+(\.\d+)?", "#", str(message))
        if words not in seen:
            seen.add(words)
            show.note(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", PlainriskWarning)
        warnings.showwarning = tell
        yield


def _stop(message: str, code: int) -> None:
    show.error(message)
    raise typer.Exit(code) from None


def _in_words(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}."
