"""The battery of validation: `plainrisk periods` and its like, each a table of a model on some rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from plainrisk.cli import show, source, tables
from plainrisk.cli.options import Column, Data, Json, Level, Missing, ModelArgument, TableOutput
from plainrisk.errors import DataError, did_you_mean
from plainrisk.model import RiskModel, load
from plainrisk.tables import TableResult

if TYPE_CHECKING:
    import polars as pl

    from plainrisk.validate.periods import Periods

__all__ = ["periods"]

MOST_FEATURES = 5  # on screen
NUMBERS = ("--column", "--months")  # columns that are read as they are; those of other options are text
Cutoff = Annotated[
    float | None,
    typer.Option("--cutoff", metavar="RISK", help="The cut-off to decide by; without it, the model's own."),
]


def read_rows(
    model: RiskModel, data: str, missing: list[str] | None, target: str | None, columns: Mapping[str | None, str]
) -> tuple[pl.DataFrame, Any]:
    """Return all rows, and their outcomes if there are any; `columns` are read as text, each named by its option."""
    asked = {name: option for name, option in {target: "--column", **columns}.items() if name is not None}
    kinds = source.kinds_of_forms([model.form_], target)
    texts = [name for name, option in asked.items() if option not in NUMBERS and name not in kinds]
    frame = source.open_source(data, missing, kinds, texts).frame
    for name, option in asked.items():
        if name not in frame.columns:
            raise DataError(f"{data}: {option} {name!r} is not in the data.{did_you_mean(name, frame.columns)}")
    outcome = target or model.form_.schema.target
    return frame, None if outcome is None or outcome not in frame.columns else frame[outcome]


def finish(found: TableResult, facts: dict[str, Any], output: Path | None, json: bool, as_text: Any) -> None:
    """Write the table of a result, and print it."""
    if output is not None:
        tables.write_table(found.columns(), output)
    show.result({**facts, **found.to_dict()}, json, lambda _: as_text())
    show.wrote(output)


def size_word(size: str) -> Text:
    """Return the size of a shift in words and colour."""
    return Text(f"{size} shift", {"large": "bold red", "moderate": "yellow", "small": "green"}[size])


def few(rows: int, small: bool) -> Text:
    """Return a number of rows, and whether they are few."""
    return Text(f"{rows:,}, few", "yellow") if small else Text(f"{rows:,}")


# ---- periods


def periods(
    model: ModelArgument,
    data: Data,
    time: Annotated[
        str, typer.Option("--time", metavar="COLUMN", help="The column of dates, such as 2024-03-31, or of numbers.")
    ],
    every: Annotated[
        str | None,
        typer.Option(
            "--every", metavar="month|quarter|year|value", help="How long a period is; without it, a month for dates."
        ),
    ] = None,
    months: Annotated[
        str | None,
        typer.Option(
            "--months",
            metavar="COLUMN",
            help="For vintages: the months on book at which a bad loan became bad, or up to which a good one was seen.",
        ),
    ] = None,
    cutoff: Cutoff = None,
    target: Column = None,
    level: Level = 0.95,
    output: TableOutput = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Measure a model by month or quarter: AUC, calibration, approval rate, shifts of features; vintages."""
    from plainrisk.validate.periods import periods as measure

    tables.check_table(output)
    loaded = load(model)
    frame, y = read_rows(loaded, data, missing, target, {time: "--time", months: "--months"})
    found = measure(loaded, frame, y, time=time, every=every, months=months, cutoff=cutoff, level=level)
    finish(found, {"model": str(model), "data": data}, output, json, lambda: _show_periods(found))


def _show_periods(found: Periods) -> None:
    console = show.out()
    console.print(found._headline(), style="bold")
    lines: list[list[str | Text]] = [
        [p.period, f"{p.rows:,}", f"{p.mean_risk:.1%}", show.percent(p.approval), f"{p.psi:.3f}", size_word(p.size)]
        for p in found.periods
    ]
    header: tuple[str, ...] = ("period", "rows", "mean risk", "approved", "psi", "")
    show.print_table(header, lines, numbers=header[1:5], whole=header)
    if any(p.known for p in found.periods):
        lines = [
            [p.period, few(p.known, p.small), show.percent(p.base_rate), show.percent(p.gap, "+"), show.ratio(p.auc)]
            for p in found.periods
        ]
        header = ("period", "outcomes", "base rate", "gap", "AUC")
        show.print_table(header, lines, numbers=header[1:], whole=header)
    highest = {name: max(found.periods, key=lambda p: p.features[name]) for name in found.periods[0].features}
    largest = sorted(highest, key=lambda name: -highest[name].features[name])[:MOST_FEATURES]
    if largest:
        each = [(name, highest[name], highest[name].features[name]) for name in largest]
        lines = [[name, f"{psi:.3f}", p.period, size_word(found.limits.size(psi))] for name, p, psi in each]
        title = "The features that moved most (-o has all)"
        show.print_table(("feature", "largest psi", "in", ""), lines, numbers=("largest psi",), title=title)
    if found.vintages:
        lines = [
            [v.period, str(v.months), f"{v.at_risk:,}", f"{v.bad:.1%}", f"{v.expected:.1%}"] for v in found.vintages
        ]
        header = ("vintage", "months on book", "seen so long", "bad by then", "mean risk")
        show.print_table(header, lines, numbers=header[1:], title="Vintages")
    note = "psi: population stability index, of the risk unless a feature is named. gap: mean risk less base rate."
    console.print(note, style="dim")
