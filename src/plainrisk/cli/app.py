"""The commands together, and what holds for all of them: how warnings are shown and how errors end."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from plainrisk._version import __version__
from plainrisk.cli import show
from plainrisk.cli.compare import compare
from plainrisk.cli.data import data_app, schema_app
from plainrisk.cli.demo import demo
from plainrisk.cli.explain import explain, reasons, score, what_if
from plainrisk.cli.fit import fit
from plainrisk.cli.main import ExitCode
from plainrisk.cli.monitor import certify, drift
from plainrisk.cli.study import study_app
from plainrisk.errors import MissingExtraError, PlainriskError, PlainriskWarning

__all__ = ["app"]


class _Guarded(TyperGroup):
    """Every command runs inside `_guard` and `_notes`."""

    def invoke(self, ctx: Any) -> Any:
        with _guard(bool(ctx.params.get("debug"))), _notes():
            result = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe is noticed here, not when the interpreter ends
            return result


app = typer.Typer(
    cls=_Guarded,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\n".join(["Exit codes:", *(f"{code:>5}  {code.meaning}." for code in ExitCode)]),
)


def _version(wanted: bool) -> None:
    if wanted:
        from plainrisk._native import kernels

        typer.echo(f"plainrisk {__version__} ({kernels()})")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version, and which kernels are used."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show where an unexpected error comes from.", envvar="PLAINRISK_DEBUG"),
    ] = False,
) -> None:
    """Risk models whose parts add up, in plain probability. Start with: plainrisk demo."""


app.command()(demo)
app.add_typer(schema_app, name="schema")
app.command()(fit)
app.command()(score)
app.command()(explain)
app.command()(reasons)
app.command("what-if")(what_if)
app.command()(certify)
app.command()(drift)
app.add_typer(data_app, name="data")
app.command()(compare)
app.add_typer(study_app, name="study")


@contextlib.contextmanager
def _guard(debug: bool) -> Iterator[None]:
    """Turn what a command raises into a message on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        _stop("interrupted", ExitCode.INTERRUPTED)
    except MissingExtraError as error:
        _stop(str(error), ExitCode.MISSING_EXTRA)
    except PlainriskError as error:
        _stop(str(error), ExitCode.USAGE)
    except BrokenPipeError:
        # What is still in the buffer goes nowhere, without a message of the interpreter when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(ExitCode.BROKEN_PIPE) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _stop(f"{where}{error.strerror or error}.", ExitCode.USAGE)
    except Exception as error:
        # typer's own ways to end a command carry their exit code.
        if isinstance(error, typer.Abort) or hasattr(error, "exit_code"):
            raise
        if debug:
            sys.stderr.write(traceback.format_exc())
        else:
            show.error(f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}")
        show.hint("This is a bug in plainrisk." + ("" if debug else " See where with: plainrisk --debug ..."))
        raise typer.Exit(ExitCode.BUG) from None


def _stop(message: str, code: int) -> None:
    show.error(message)
    raise typer.Exit(code) from None


@contextlib.contextmanager
def _notes() -> Iterator[None]:
    """Show each of the library's warnings once, as a note on stderr."""
    seen: set[str] = set()
    show_other = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, PlainriskWarning):
            show_other(message, category, *where, **more)
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
