"""The commands in one application, and their common behavior: how warnings are shown and how errors end."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from plainrisk._version import __version__
from plainrisk.cli import commands, show
from plainrisk.cli.commands import LAB, START, added_lists, load_command, name_values
from plainrisk.cli.main import ExitCode, is_interrupt
from plainrisk.errors import MissingExtraError, PlainriskError, PlainriskWarning
from plainrisk.text import visible

__all__ = ["app"]


class _Guarded(TyperGroup):
    """Every command is read and runs inside `_guard`; it runs inside `_notes`.

    Until it is run, a command is only its line in the help.
    """

    json = False  # whether --json was given: a failure is JSON, too

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": _lines(commands)})

    def list_commands(self, ctx: Any) -> list[str]:
        self._look_further()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._look_further()
        return super().get_command(ctx, cmd_name)

    def _look_further(self) -> None:
        """Add the commands of other packages, which cannot replace ours."""
        for listed in added_lists():
            for name, line in _lines(listed).items():
                self.commands.setdefault(name, line)

    def get_params(self, ctx: Any) -> Any:
        return name_values(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in LAB and self.get_command(ctx, args[0]) is None:
            raise MissingExtraError(
                f"plainrisk {args[0]} is a command of plainrisk-lab, which is not installed. Run in a clone of the "
                "repository: pip install ./lab"
            )
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(str(name)), rest

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        self.json = "--json" in args
        with _guard(self.json):
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: Any) -> Any:
        given = ctx.params
        with _guard(self.json, bool(given.get("debug"))), _notes(), _log(bool(given.get("verbose"))):
            result = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe is noticed here, not when the interpreter ends
            return result


def _lines(listed: Any) -> dict[str, Any]:
    panels = {name: panel for panel, names in listed.PANELS.items() for name in names}
    return {name: TyperCommand(name, help=line, rich_help_panel=panels[name]) for name, line in listed.LINES.items()}


app = typer.Typer(
    cls=_Guarded,
    invoke_without_command=True,
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
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Print the version, and which compiled kernels are in use.",
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show where an unexpected error comes from.", envvar="PLAINRISK_DEBUG"),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Report progress on stderr, step by step.")] = False,
) -> None:
    """Risk models whose parts add up, in plain probability. Start with: plainrisk demo."""
    if context.invoked_subcommand is None:
        _show_start()


def _show_start() -> None:
    """Show the first five things to do."""
    console = show.out()
    console.print("plainrisk: risk models whose parts add up, in plain probability. The first five things to do:")
    for i, (command, why) in enumerate(START.items(), 1):
        console.print(f"{i}. {command}", style="cyan", soft_wrap=True, highlight=False)
        console.print(f"   {why}", soft_wrap=True)
    console.print("plainrisk --help lists all commands; plainrisk COMMAND --help explains one.")


@contextlib.contextmanager
def _guard(json: bool, debug: bool = False) -> Iterator[None]:
    """Turn what a command raises into a message on stderr, with --json an object on stdout, and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        show.fail("Interrupted", "interrupted", ExitCode.INTERRUPTED, json)
    except BrokenPipeError:
        # Discard the buffered output, so that the interpreter prints no message at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(ExitCode.BROKEN_PIPE) from None
    except PlainriskError as error:
        missing = isinstance(error, MissingExtraError)
        show.fail(type(error).__name__, str(error), ExitCode.MISSING_EXTRA if missing else ExitCode.USAGE, json)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        show.fail(type(error).__name__, f"{where}{error.strerror or error}.", ExitCode.USAGE, json)
    except Exception as error:
        if is_interrupt(error):
            show.fail("Interrupted", "interrupted", ExitCode.INTERRUPTED, json)
        # typer's own ways to end a command carry their exit code; it prints wrong usage itself.
        if isinstance(error, typer.Abort) or hasattr(error, "exit_code"):
            _tell_usage(error, json)
            raise
        if debug:
            sys.stderr.write(visible(traceback.format_exc()))
        message = f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"
        advice = "This is a bug in plainrisk." + ("" if debug else " See where with: plainrisk --debug ...")
        show.fail(type(error).__name__, message, ExitCode.BUG, json, advice)


def _tell_usage(error: Any, json: bool) -> None:
    """Make the message of a command that was written wrong safe to show, and print it as JSON if that was asked for."""
    if not hasattr(error, "format_message"):
        return
    error.message = error.message and visible(error.message)
    if json:
        show.print_failure("UsageError", error.format_message(), error.exit_code)


class _ToStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        show.hint(record.getMessage())


@contextlib.contextmanager
def _log(verbose: bool) -> Iterator[None]:
    """Show the library's log, if requested."""
    logger, handler = logging.getLogger("plainrisk"), _ToStderr()
    level = logger.level
    if verbose:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextlib.contextmanager
def _notes() -> Iterator[None]:
    """Show each of the library's warnings once, as a note on stderr, and keep it for a result in JSON."""
    seen: set[str] = set()
    show_other = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, PlainriskWarning):
            show_other(message, category, *where, **more)
            return
        # The folds of a cross validation give the same warning with other figures.
        words = re.sub(r"\d+(\.\d+)?", "#", str(message))
        if words not in seen:
            seen.add(words)
            show.WARNINGS.append(str(message))
            show.note(str(message))

    show.WARNINGS.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("always", PlainriskWarning)
        warnings.showwarning = tell
        yield
