"""`python -m plainrisk_lab.user_study build|analyze|power`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from plainrisk.cli import show
from plainrisk.cli.options import Json
from plainrisk.errors import DataError, PlainriskError
from plainrisk.files import parse_json, read_text
from plainrisk.form import read_model

app = typer.Typer(no_args_is_help=True, add_completion=False, help="A study with people: log odds or probability?")


@app.command("build")
def build_page(
    model: Annotated[Path | None, typer.Argument(metavar="[MODEL]", help="A logistic model of tables.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page that asks.")] = Path("study.html"),
    key: Annotated[Path, typer.Option("--key", help="The right answers, which stay with you.")] = Path("key.json"),
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives other applicants.")] = 0,
) -> None:
    """Write the page and its key; without a model, that of six features of German credit, with invented applicants."""
    from plainrisk_lab.user_study import build, german_form

    study = build(german_form() if model is None else read_model(model).form, output, key, seed)
    show.hint(f"Wrote {output}, the study {study}, and {key}.")


@app.command("analyze")
def analyze_files(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="What build wrote beside the page.")],
    answers: Annotated[list[Path], typer.Argument(metavar="ANSWERS...", help="The files that people sent.")],
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    json: Json = False,
) -> None:
    """Compare right answers and seconds between the two ways, within people."""
    from plainrisk_lab.user_study.analysis import Key, analyze, read_answers

    answer_key = parse_json(read_text(key, limit=2**20, error=DataError), Key, key, DataError, "the key of a study")
    analysis = analyze(read_answers(answers), answer_key, level)
    show.result(analysis.to_dict(), json, lambda _: show.out().print(str(analysis), soft_wrap=True))


@app.command("power")
def power(
    difference: Annotated[float, typer.Option("--difference", help="The least difference worth finding.")] = 0.10,
    spread: Annotated[float, typer.Option("--spread", help="Its standard deviation between people.")] = 0.25,
    wanted: Annotated[float, typer.Option("--power", help="The probability of finding it.")] = 0.9,
    json: Json = False,
) -> None:
    """Print how many people are needed."""
    from plainrisk_lab.user_study.analysis import people_needed

    n = people_needed(difference, spread, wanted)
    result = {"people": n, "difference": difference, "spread": spread, "power": wanted}
    show.result(result, json, lambda _: show.out().print(f"{n} people, {n // 2} for each form."))


if __name__ == "__main__":
    try:
        app()
    except PlainriskError as error:
        sys.exit(f"error: {error}")
