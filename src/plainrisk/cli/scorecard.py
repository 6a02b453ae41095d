"""`plainrisk scorecard`: a model as a table of points that add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plainrisk.cli import show, tables
from plainrisk.cli.options import Json, ModelArgument, TableOutput, option
from plainrisk.data.reader import suffix_of
from plainrisk.explain import Scorecard
from plainrisk.files import write_text
from plainrisk.model import load
from plainrisk.text import plain_number

__all__ = ["scorecard"]


def scorecard(
    model: ModelArgument,
    output: TableOutput = None,
    points: float = option("The points that stand for --odds.", 600.0),
    odds: float = option("Good applicants for each bad one at --points.", 50.0),
    pdo: float = option("The points that double the odds.", 20.0),
    decimals: int | None = option("The decimals of the points; by default 0, or 1 for percentage points.", min=0),
    json: Json = False,
) -> None:
    """Turn a model into a scorecard: points, counts, bad rates, weight of evidence and information value per level."""
    tables.check_table(output)
    options: dict[str, Any] = {"points": points, "odds": odds, "pdo": pdo, "decimals": decimals}
    card = load(model).scorecard(**options)
    if output is not None:
        _write(card, output)
    result = {"model": str(model), "file": None if output is None else str(output), **card.to_dict()}
    show.result(result, json, lambda _: _show(card, output))


def _write(card: Scorecard, output: Path) -> None:
    if suffix_of(output, tables.WRITE, "write") == ".md":
        write_text(output, card.to_markdown())
        return
    names, *lines = card.lines()
    tables.write_table(dict(zip(names, zip(*lines, strict=True), strict=True)), output)


def _show(card: Scorecard, output: Path | None) -> None:
    if output is None:
        head, *lines = card.lines()
        columns = "".join("p" if name in ("part", "feature", "level") else "r" for name in head)
        show.print_table(head, [[*map(_text, head, line)] for line in lines], columns)
    else:
        show.out().print(f"Wrote {output}: {len(card.rows)} levels.")
    for fact in card.facts():
        show.remark(fact)


def _text(name: str, cell: Any) -> str:
    if not isinstance(cell, float):
        return "" if cell is None else str(cell)
    shown = {"bad_rate": ".1%", "woe": "+.3f", "iv": ".4f"}.get(name)
    return plain_number(cell, 4) if shown is None else f"{cell:{shown}}"
