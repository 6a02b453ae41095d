"""Options that several commands share, and options made from the library's own declarations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainrisk.checks import PROBABILITY, check_parameters
from plainrisk.data.reader import READ
from plainrisk.errors import DataError
from plainrisk.text import as_number

if TYPE_CHECKING:
    from plainrisk.model import FormMethods

__all__ = [
    "Column",
    "Conf",
    "Cutoff",
    "Data",
    "Json",
    "Level",
    "Master",
    "Missing",
    "ModelArgument",
    "OptionalData",
    "Positive",
    "SchemaFile",
    "TableOutput",
    "Weight",
    "declared",
    "names_data",
    "option",
    "read_groups",
    "read_numbers",
    "read_options",
    "switch",
]


def option(about: str, default: Any = None, *flags: str, **settings: Any) -> Any:
    """Declare an option of one command by its help; the flag is the parameter's name unless flags are given."""
    return typer.Option(default, *flags, help=about, **settings)


def switch(flag: str, about: str) -> Any:
    """Declare an option that takes no value."""
    return typer.Option(False, flag, help=about)


def names_data(path: Path) -> bool:
    """Whether a path looks like rows rather than a model: a file of rows, standard input, the name of a data set."""
    return str(path) == "-" or str(path).endswith(READ) or not (path.suffix or path.exists())


def refuse_data(context: typer.Context, model: Path) -> Path:
    """Return the path of a model; refuse data given in its place."""
    if names_data(model):
        words = " ".join(str(p.metavar) for p in context.command.params if p.param_type_name == "argument")
        raise DataError(f"{model} is not a model file. The model comes first: plainrisk {context.info_name} {words}")
    return model


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .csv.gz or .parquet file, a pattern such as 'loans/*.csv', - for standard input, or the name of "
        "a data set (see: plainrisk data list).",
        show_default=False,
    ),
]
OptionalData = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATA]", help="Rows to measure on: a file, a pattern or the name of a data set.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on stdout.")]
Level = Annotated[float, typer.Option("--level", help="The level of the confidence intervals, from 0 to 1.")]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="TEXT", help="Text in a CSV file that means missing. Repeatable."),
]
ModelArgument = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model file, written by fit.", show_default=False, callback=refuse_data),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive", metavar="LABEL", help="The outcome whose probability is predicted, as the column has it."
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema", metavar="SCHEMA", help="A schema, .toml or .json (see: plainrisk schema infer), or a model file."
    ),
]
Cutoff = Annotated[
    float | None,
    typer.Option("--cutoff", metavar="RISK", help="The cut-off to decide by; by default, the model's own."),
]
Column = Annotated[str | None, typer.Option("--column", metavar="COLUMN", help="The column that holds the outcome.")]

TableOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the table: .csv, .xlsx, .md, .html, .json, .parquet, .jsonl or .csv.gz.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="For DATA in Spark (spark:TABLE or spark:PATH): where it runs. (example: --master sc://host:15002)",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A setting of Spark, as for spark-submit. Repeatable. (example: --conf spark.executor.memory=8g)",
    ),
]
Weight = Annotated[
    str | None, typer.Option("--weight", metavar="COLUMN", help="The column that holds the weights of the rows.")
]


def read_numbers(flag: str, text: str) -> list[float]:
    """Read numbers with commas between them.

    >>> read_numbers("--grades", "0.02,0.05")
    [0.02, 0.05]
    """
    numbers = [number for part in text.split(",") if (number := as_number(part)) is not None]
    if len(numbers) <= text.count(","):
        raise DataError(f"{flag} {text}: write numbers with commas between them, such as 0.02,0.05,0.1.")
    return numbers


def read_groups(given: Sequence[str] | None) -> tuple[tuple[str, ...], dict[str, list[float]]]:
    """Read the columns of --by, and where bands of their numbers begin.

    >>> read_groups(["age=25,35", "sex", "a=b"])
    (('age', 'sex', 'a=b'), {'age': [25.0, 35.0]})
    """
    matches = [re.fullmatch(r"(.+)=(-?[\d.]+(?:,-?[\d.]+)*)", text) for text in given or ()]
    names = tuple(text if m is None else m[1] for text, m in zip(given or (), matches, strict=True))
    return names, {m[1]: read_numbers("--by", m[2]) for m in matches if m is not None}


# ---- options that the library declares

# The notation on the command line for values that are neither numbers nor one of a few words.
_METAVARS = {"portfolio": "DATA", "target": "RISK", "values": "FEATURE=VALUE,..."}
# Options with another name on the command line, where that name is the same in all commands.
_FLAGS = {"target": "cutoff"}


def declared(options: type) -> list[Parameter]:
    """Return the parameters of a command, one for each field of an options class of `plainrisk.explain`.

    >>> from plainrisk.explain.options import ReasonOptions
    >>> [(p.name, p.default) for p in declared(ReasonOptions)][:2]
    [('k', None), ('reference', None)]
    """
    return [_parameter(field) for field in fields(options) if field.name != "columns"]  # files have headers


def _parameter(field: Field[Any]) -> Parameter:
    kind = _kind(field)
    words, text = field.metadata["words"], field.metadata["help"]
    metavar = "|".join(words) or _METAVARS.get(field.name) or ("FEATURE" if kind == list[str] | None else None)
    if kind == list[str] | None:
        text += " Repeatable."
    name = _FLAGS.get(field.name, field.name)
    flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
    info = typer.Option(flag, metavar=metavar, help=text)
    default = Parameter.empty if field.default is MISSING else field.default
    # typer shows a list that was not given, and passes it on, as None.
    default = None if default == () else default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def _kind(field: Field[Any]) -> Any:
    """Return the type of an option on the command line, where rows are file names and other values are text."""
    if field.default == () or field.name == "values":
        return list[str] | None
    if (number := {"int": int, "float": float}.get(str(field.type).removesuffix(" | None"))) is not None:
        return number | None if field.default is None else number
    return str | None if field.default is None else str


def read_options(options: Any, given: Mapping[str, Any], missing: Sequence[str] | None, model: FormMethods) -> Any:
    """Return an options class filled from a command line, with rows read and lists of values split."""
    from plainrisk.cli import source

    stated = {name: value for name, value in given.items() if value is not None}
    if "target" in stated:
        check_parameters(options.verb.replace("_", "-"), {"--cutoff": stated["target"]}, {"--cutoff": PROBABILITY})
    if "portfolio" in stated:
        stated["portfolio"] = source.rows_of_model(stated["portfolio"], missing, model)
    if "values" in stated:
        stated["values"] = dict(map(_values, stated["values"]))
    return options(**stated)


def _values(text: str) -> tuple[str, list[float | str]]:
    """Read the values to try for one feature.

    >>> _values("income=1500,2000"), _values("housing=own,rent")
    (('income', [1500.0, 2000.0]), ('housing', ['own', 'rent']))
    """
    name, equals, values = text.rpartition("=")
    if not equals:
        raise DataError(f"--values {text}: write the feature and its values as FEATURE=VALUE,VALUE.")
    return name, [value if (number := as_number(value)) is None else number for value in values.split(",")]
