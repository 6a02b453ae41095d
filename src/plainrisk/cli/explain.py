"""`plainrisk explain`: what every subscale and feature contributes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from plainrisk.cli import show
from plainrisk.cli.options import Data, Json, Missing, ModelFile

__all__ = ["Adverse", "Keep", "MinRows", "Output", "Portfolio", "Row", "explain", "finish", "read_portfolio"]

Adverse = Annotated[
    str,
    typer.Option(
        "--adverse",
        metavar="positive|negative",
        help="negative: the model predicts the good outcome, so a low risk hurts.",
    ),
]
MinRows = Annotated[
    float,
    typer.Option("--min-rows", metavar="ROWS", help="Levels with fewer training rows are not held up as the best."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="COLUMN", help="A column to copy beside the results. Repeatable."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write all rows: .parquet, .csv, .csv.gz or .jsonl. Without it one row is shown."
    ),
]
Portfolio = Annotated[
    str | None,
    typer.Option("--portfolio", metavar="DATA", help="Rows to compare with, for models with lines, curves or trees."),
]
Row = Annotated[int, typer.Option("--row", min=0, help="Which row to show, from 0.")]


def explain(
    data: Data,
    model: ModelFile,
    output: Output = None,
    row: Row = 0,
    reference: Annotated[
        str,
        typer.Option("--reference", metavar="NAME", help="What rows are compared with: constant, typical or best."),
    ] = "constant",
    adverse: Adverse = "positive",
    probability: Annotated[
        bool,
        typer.Option("--probability", help="Pieces of the probability also for logistic models, by the chord rule."),
    ] = False,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="chord|treeshap", help="Split subscales that are not additive, by this rule."),
    ] = None,
    portfolio: Portfolio = None,
    min_rows: MinRows = 0.0,
    keep: Keep = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Show what makes up the risk of one row, or write the contributions of all rows."""
    from plainrisk.cli.batches import Batches, one_row
    from plainrisk.cli.tables import WRITE, check_output
    from plainrisk.explain.contributions import explainer
    from plainrisk.explain.options import ExplainOptions
    from plainrisk.model import load

    start = time.perf_counter()
    if output is not None:
        check_output(output, WRITE)
    form = load(model).form_
    batches = Batches.open(data, form, missing, keep or [])
    rows = read_portfolio(portfolio, missing)
    options: Any = {"reference": reference, "split": split, "adverse": adverse, "min_rows": min_rows}
    unit: Any = "probability" if probability else None
    one = explainer(form, ExplainOptions(unit=unit, portfolio=rows, **options))
    if output is None:
        found = one.explain(one_row(batches, row, data))
        if json:
            show.print_json({"data": data, "model": str(model), "row": row, **found.to_dict(0)})
        else:
            _show(found, row)
        return
    import polars as pl

    empty = one.explain(batches.lazy.head(0).collect()).columns()
    types = {name: pl.Int64() if name == "band" else pl.Float64() for name in empty}
    finish(batches, output, types, lambda batch: one.explain(batch).columns(), data, model, start, json)


def finish(batches: Any, output: Path, types: Any, work: Any, data: str, model: Path, start: float, json: bool) -> None:
    """Write all rows with a bar, and say what was done."""
    from plainrisk.cli.tables import count_rows

    with show.progress("Rows", count_rows(batches.lazy, data)) as advance:
        batches.advance = advance
        batches.write(output, types, work)
    result = {
        "data": data,
        "model": str(model),
        "file": str(output),
        "rows": batches.rows,
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        show.print_json(result)
    else:
        show.out().print(f"{batches.rows:,} rows, {result['seconds']:.1f} s: wrote {output}")


def read_portfolio(data: str | None, missing: list[str] | None) -> Any:
    """Read the rows to compare with, all at once."""
    from plainrisk.cli.source import open_source

    return None if data is None else open_source(data, missing).frame


def _show(found: Any, row: int) -> None:
    """Print one row's waterfall: the reference, subscales with their features inside, the risk."""
    one = found.to_dict(0)
    groups = sorted(one["subscales"], key=lambda g: -abs(g["contribution"]))
    largest = max((abs(f["contribution"]) for g in groups for f in [g, *g["features"]]), default=0.0)

    def amount(value: float) -> str:
        return f"{value:+.1%}" if found.unit == "probability" else f"{value:+.2f}"

    lines: list[list[str | Text]] = [[found.reference, "", amount(one["constant"]).lstrip("+"), ""]]
    for group in groups:
        head = Text(group["subscale"], "bold")
        lines.append(
            [head, "", Text(amount(group["contribution"]), "bold"), show.signed_bar(group["contribution"], largest, 8)]
        )
        for part in sorted(group["features"], key=lambda f: -abs(f["contribution"])):
            bar = show.signed_bar(part["contribution"], largest, 8)
            lines.append([f"  {part['feature']}", part["value"], amount(part["contribution"]), bar])
    lines += [[cut["what"], "", amount(cut["amount"]), ""] for cut in one["cuts"]]
    lines.append([Text("risk", "bold"), "", Text(f"{one['risk']:.1%}", "bold"), ""])
    unit = "part" if found.unit == "probability" else "log odds"
    show.print_table(
        ("feature", "value", unit, "effect"), lines, numbers=("value", unit), title=f"Row {row}, explained"
    )
    if found.approximate:
        show.out().print(f"The parts are an approximation, by the rule: {found.method}.", style="dim")
    if "band" in one:
        show.out().print(f"In band {one['band']}, at a rate of {one['rate']:.4f} per unit of score.", style="dim")
