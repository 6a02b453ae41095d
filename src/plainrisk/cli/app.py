"""The commands together, and what holds for all of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from plainrisk._version import __version__
from plainrisk.cli.certify import certify
from plainrisk.cli.compare import compare
from plainrisk.cli.data import data_app
from plainrisk.cli.demo import demo
from plainrisk.cli.drift import drift
from plainrisk.cli.errors import EXIT_CODES, guard, notes
from plainrisk.cli.explain import explain
from plainrisk.cli.fit import fit
from plainrisk.cli.reasons import reasons
from plainrisk.cli.schema import schema_app
from plainrisk.cli.score import score
from plainrisk.cli.study import study_app
from plainrisk.cli.what_if import what_if

__all__ = ["app"]


class _Guarded(TyperGroup):
    """Every command runs inside `guard` and `notes`."""

    def invoke(self, ctx: Any) -> Any:
        with guard(bool(ctx.params.get("debug"))), notes():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Guarded,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\n".join(["Exit codes:", *(f"{code:>5}  {meaning}." for code, meaning in EXIT_CODES.items())]),
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plainrisk {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
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
