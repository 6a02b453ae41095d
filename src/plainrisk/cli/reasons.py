"""`plainrisk reasons`: why applicants are refused, in words."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.explain import Adverse, Keep, MinRows, Output, Portfolio, Row, finish, read_portfolio
from plainrisk.cli.options import Data, Json, Missing, ModelFile

if TYPE_CHECKING:
    import polars as pl

__all__ = ["reasons"]

Most = Annotated[int, typer.Option("-k", "--most", min=1, help="At most so many reasons.")]
Against = Annotated[
    str, typer.Option("--against", metavar="NAME", help="What applicants are compared with: best or typical.")
]
Order = Annotated[
    str, typer.Option("--order", metavar="subscale|feature", help="Tell reasons by subscale, or by their loss alone.")
]
Bar = Annotated[list[str] | None, typer.Option("--bar", metavar="FEATURE", help="Never name this feature. Repeatable.")]
Inquiry = Annotated[
    list[str] | None,
    typer.Option("--inquiry", metavar="FEATURE", help="A further reason, if it counts and is not named. Repeatable."),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", metavar="RISK", help="Write refused rows only: those with a risk beyond this."),
]


def reasons(
    data: Data,
    model: ModelFile,
    output: Output = None,
    row: Row = 0,
    k: Most = 4,
    against: Against = "best",
    adverse: Adverse = "positive",
    order: Order = "subscale",
    bar: Bar = None,
    inquiry: Inquiry = None,
    threshold: Threshold = None,
    portfolio: Portfolio = None,
    min_rows: MinRows = 0.0,
    keep: Keep = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Show one row's reasons as a letter, or write the reasons of all rows, or of the refused ones."""
    from plainrisk.cli.batches import Batches, one_row
    from plainrisk.cli.tables import WRITE, check_output
    from plainrisk.explain.options import ReasonOptions
    from plainrisk.explain.reasons import reasoner
    from plainrisk.model import load

    start = time.perf_counter()
    if output is not None:
        check_output(output, WRITE)
    form = load(model).form_
    batches = Batches.open(data, form, missing, keep or [])
    options: Any = {"reference": against, "adverse": adverse, "order": order, "min_rows": min_rows}
    rows = read_portfolio(portfolio, missing)
    rule = reasoner(form, ReasonOptions(k, barred=bar or [], inquiries=inquiry or [], portfolio=rows, **options))
    if output is not None:
        finish(batches, output, _types(rule), _work(rule, threshold), data, model, start, json)
        return
    found = rule.reasons(one_row(batches, row, data))
    if json:
        show.print_json({"data": data, "model": str(model), "row": row, **found.to_dict(0)})
    else:
        _show(found)


def _show(found: Any) -> None:
    """Print the letter of one applicant."""
    show.out().print(found.letter(0), soft_wrap=True)
    if found.withheld[0]:
        show.note(f"{found.withheld[0]} barred of {', '.join(found.barred)} would have been among the reasons.")


def _types(rule: Any) -> dict[str, Any]:
    import polars as pl

    types: dict[str, Any] = {ROW_NAME: pl.Int64(), "risk": pl.Float64()}
    for j in range(1, rule.width + 1):
        types |= {f"reason_{j}": pl.String(), f"feature_{j}": pl.String(), f"lost_{j}": pl.Float64()}
    return {**types, "withheld": pl.Int64()} if rule.barred.any() else types


ROW_NAME = "row"


def _work(rule: Any, threshold: float | None) -> Any:
    """Return what turns a batch into columns; texts stay codes until polars looks them up."""
    import numpy as np

    from plainrisk.cli.batches import ROW

    def work(batch: pl.DataFrame) -> dict[str, Any]:
        found = rule.reasons(batch)
        columns: dict[str, Any] = {}
        rows = np.arange(len(found))
        if threshold is not None:
            rows = np.flatnonzero(rule.options.sign * found.risk > rule.options.sign * threshold)
            columns[ROW] = rows
        columns |= {ROW_NAME: batch[ROW].to_numpy()[rows], "risk": found.risk[rows]}
        for j in range(rule.width):
            columns[f"reason_{j + 1}"] = (found.texts, found.text_codes[rows, j])
            columns[f"feature_{j + 1}"] = (found.candidates, found.codes[rows, j])
            lost = found.lost[rows, j]
            columns[f"lost_{j + 1}"] = lost
        if rule.barred.any():
            columns["withheld"] = found.withheld[rows]
        return columns

    return work
