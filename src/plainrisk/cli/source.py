"""The input of a command: rows from a file or a data set, and their schema."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from plainrisk._types import Array
from plainrisk.cli import show
from plainrisk.data.columns import is_word
from plainrisk.data.reader import READ, Kind, Table, open_table
from plainrisk.data.remote import is_remote, remote_rows, sample_remote
from plainrisk.data.rows import StoredRows, as_batches
from plainrisk.data.texts import parse
from plainrisk.errors import DataError, SchemaError, did_you_mean, quoted, warn
from plainrisk.leftovers import temporary_folder
from plainrisk.schema import Schema, label_of
from plainrisk.schema.check import leak_notes
from plainrisk.schema.evidence import MOST_ROWS
from plainrisk.schema.outcomes import bad_label
from plainrisk.text import as_number

if TYPE_CHECKING:
    import polars as pl

    from plainrisk.form import RiskForm
    from plainrisk.model import FormMethods

__all__ = [
    "Rows",
    "Source",
    "kinds_of_forms",
    "kinds_to_fit",
    "label_in",
    "missing_words",
    "open_source",
    "require_columns",
    "rows_of_model",
    "rows_to_fit",
    "sample_elsewhere",
    "scan_source",
    "schema_to_stream",
    "stored_rows",
]

STDIN = "-"


@dataclass(frozen=True)
class Source:
    """Rows, outcome column included.

    Attributes
    ----------
    name : the file or the data set
    frame : all columns
    schema : what is known of a data set; None for a file
    """

    name: str
    frame: pl.DataFrame
    schema: Schema | None = None


@dataclass(frozen=True)
class Rows:
    """Rows ready to fit.

    Attributes
    ----------
    schema : with target and positive outcome, fitting the data
    X : the features alone
    y : the outcomes as they are stored
    aside : columns that are not features: groups, times, weights
    """

    schema: Schema
    X: pl.DataFrame
    y: Array
    aside: pl.DataFrame


def open_source(
    data: str,
    missing: Sequence[str] | None = None,
    kinds: Mapping[str, Kind] | None = None,
    texts: Collection[str] = (),
    *,
    drafting: bool = False,
) -> Source:
    """Read a file or a pattern of files by what is known of its columns, or load a data set by its name."""
    if not _is_data_set(data):
        return Source(data, scan_source(data, missing, kinds, texts, drafting=drafting).collect())
    import polars as pl

    from plainrisk import datasets

    loaded = datasets.load(data, backend="polars")
    frame: pl.DataFrame = loaded.frame
    return Source(data, frame.with_columns(pl.Series(loaded.schema.target, loaded.target)), loaded.schema)


@contextlib.contextmanager
def stored_rows(
    data: str,
    missing: Sequence[str] | None,
    kinds: Mapping[str, Kind] | None,
    master: str | None,
    conf: Sequence[str] | None,
) -> Iterator[StoredRows]:
    """Give the rows of files or of a table of Spark, to be added up where they are, and show how far a pass is."""
    with show.progress("Starting Spark" if is_remote(data) else "Reading rows") as bar:
        if is_remote(data):
            _refuse_missing(data, missing)
            yield remote_rows(data, master, conf or (), bar.move)
        else:
            yield as_batches(scan_source(data, missing, kinds), progress=bar.move)


def sample_elsewhere(
    data: str, missing: Sequence[str] | None, master: str | None, conf: Sequence[str] | None
) -> Source:
    """Read some rows of a Spark table to determine the contents of its columns."""
    import polars as pl

    _refuse_missing(data, missing)
    table, n_rows = sample_remote(data, master, conf or (), MOST_ROWS)
    if table.num_rows < n_rows:
        warn(f"{data}: {table.num_rows:,} of {n_rows:,} rows were looked at, taken at random.")
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return Source(data, frame)


def _refuse_missing(data: str, missing: Sequence[str] | None) -> None:
    if missing:
        raise DataError(
            f"{data}: --missing is for files. Of a table state null_values in the schema, or make a view with nullif."
        )


def rows_of_model(
    data: str, missing: Sequence[str] | None, *models: FormMethods, texts: Collection[str] = ()
) -> pl.DataFrame:
    """Read a file or a data set as some models do."""
    return open_source(data, missing, kinds_of_forms([model.form_ for model in models]), texts).frame


def kinds_of_forms(forms: Sequence[RiskForm], outcome: str | None = None) -> dict[str, Kind]:
    """Return what forms know of the columns that they read, and of the column of outcomes."""
    words = [outcome or form.schema.target for form in forms if any(map(is_word, form.classes))]
    kinds: dict[str, Kind] = {name: "text" for name in words if name is not None}
    return kinds | {name: form.schema.features[name].written for form in forms for name in form.features}


def scan_source(
    data: str,
    missing: Sequence[str] | None,
    kinds: Mapping[str, Kind] | None = None,
    texts: Collection[str] = (),
    copies: Mapping[str, str] | None = None,
    *,
    drafting: bool = False,
) -> Table:
    """Open a file, a pattern of files or a data set to be read in batches; `Table.read_as` says how."""
    if _is_data_set(data):
        frame = open_source(data).frame
        table = Table(data, frame.lazy(), ((data, frame.height),))
    else:
        named = [name for name, kind in (kinds or {}).items() if kind != "continuous"]
        table = _open(data, missing, [*named, *texts, *(copies or {}).values()])
    return table.read_as(kinds, texts, copies, drafting=drafting)


def _open(data: str, missing: Sequence[str] | None, texts: Collection[str]) -> Table:
    if data != STDIN:
        return open_table(data, missing or (), texts=texts)
    path = _spooled()
    try:
        table = open_table(path, missing or (), texts=texts)
    except DataError as error:
        raise DataError(str(error).replace(str(path), "standard input")) from None
    return replace(table, name="standard input", parts=(("standard input", table.n_rows),))


def _spooled() -> Path:
    """Copy standard input to a temporary file, since rows are read twice; it is removed when the command ends."""
    kept = contextlib.ExitStack()
    folder = kept.enter_context(temporary_folder())
    atexit.register(kept.close)
    start = sys.stdin.buffer.read(4)
    suffix = ".parquet" if start == b"PAR1" else ".csv.gz" if start[:2] == b"\x1f\x8b" else ".csv"
    path = folder / f"stdin{suffix}"
    with path.open("wb") as file:
        file.write(start)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def _is_data_set(data: str) -> bool:
    """Whether `data` names a data set; a file of that name comes first."""
    if is_remote(data):
        raise DataError(
            f"{data}: fit, score, evaluate, cutoffs, drift and schema work on rows where they are; this command "
            "needs the rows themselves. Give it a sample: plainrisk score MODEL DATA --keep COLUMN -o sample.parquet."
        )
    if data == STDIN or os.path.exists(data):
        return False
    from plainrisk import datasets

    if data in datasets.names():
        return True
    if set(data) & set("./*?["):
        return False  # meant as a file, and the reader says that it is not there
    hint = did_you_mean(data, datasets.names())
    raise DataError(f"{data!r} is neither a file ({', '.join(READ)}) nor the name of a data set.{hint}")


def require_columns(data: str, names: Sequence[str], asked: Mapping[str, str]) -> None:
    """Raise for the first column that is not in the data; `asked` has for each the option that names it."""
    for name, flag in asked.items():
        if name not in names:
            raise DataError(f"{data}: {flag} {name!r} is not in the data.{did_you_mean(name, names)}")


def missing_words(missing: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Split the texts of --missing into words, which a draft states, and numbers, which only the reader can drop.

    >>> missing_words(["NA", "-1"])
    (['NA'], ['-1'])
    """
    numbers = [text for text in missing or () if parse(text, "number") is not None]
    return [text for text in missing or () if text not in numbers], numbers


# ---- schemas


def rows_to_fit(
    source: Source,
    stated: Schema | None,
    target: str | None,
    positive: str | None,
    aside: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
) -> Rows:
    """Find the schema unless one is stated, the outcome and its positive label, and check it against the rows.

    The columns `aside`, each with the option that names it, do not become features of an inferred schema, and the texts
    `missing` mean missing in it.
    """
    from plainrisk.schema.check import require_valid

    require_columns(source.name, source.frame.columns, aside or {})
    schema_in_use = source.schema if stated is None else stated
    if schema_in_use is None:
        kept = replace(source, frame=source.frame.drop([name for name in aside or {} if name != target]))
        schema = _draft(kept, target, positive, missing)
    else:
        label = None if positive is None else label_in(positive, source.frame, target or schema_in_use.target)
        schema = _with_outcome(schema_in_use, target, label, source.name)
    try:
        require_valid(schema, source.frame, target=True)
    except SchemaError as error:
        hint = " (--missing TEXT reads a text as missing.)" if "holds text" in str(error) else ""
        raise SchemaError(f"{error}{hint}") from None
    warn_of_leaks(schema, source.frame)
    outcome = schema.target or ""  # a schema that is valid for rows with outcomes names them
    schema = _with_positive(schema, source.frame, outcome)
    features, others = source.frame.select(list(schema.features)), source.frame.select(list(aside or {}))
    return Rows(schema, features, source.frame[outcome].to_numpy(), others)


def kinds_to_fit(stated: Schema | None, target: str | None, positive: str | None) -> dict[str, Kind] | None:
    """Return a schema's entries for columns before any is read, with the outcome that was asked for."""
    if stated is None:
        return None
    outcome = target or stated.target
    return {**({outcome: "text"} if outcome is not None and is_word(positive) else {}), **stated.kinds}


def schema_to_stream(path: Path | None, target: str | None, positive: str | None) -> Schema:
    """Return the schema of rows that are read in batches, of which nothing can be inferred."""
    if path is None:
        raise SchemaError(
            "--stream needs --schema SCHEMA, and so does Spark. Draft one: plainrisk schema infer DATA, or of a sample."
        )
    return _with_outcome(Schema.load(path), target, positive, str(path))


def _with_outcome(known: Schema, target: str | None, positive: str | float | bool | None, who: str) -> Schema:
    """Return a schema with the outcome and the positive label that were asked for."""
    schema = known
    if target is not None and target != known.target:
        schema = msgspec.structs.replace(known, target=target, positive=None)  # the label belonged to the other column
    if schema.target is None:
        raise SchemaError(f"{who}: which column is the outcome? Add --column COLUMN, or target = ... to the schema.")
    if positive is None:
        return schema
    turned = schema.positive is not None and label_of(positive) != label_of(schema.positive)
    if turned and any(feature.sign for feature in known.features.values()):
        warn(
            f"--positive reverses the outcome: the schema's directions were stated for {known.positive!r} "
            "and now apply to the other outcome.",
        )
    return msgspec.structs.replace(schema, positive=positive)


def warn_of_leaks(schema: Schema, frame: pl.DataFrame) -> None:
    """Warn of features that seem to know the outcome; a draft leaves them out, and a fit repeats the warning once."""
    for note in leak_notes(schema, frame).values():
        warn(f"Data: {note}")


def warn_of_names(schema: Schema) -> None:
    """Warn of features that an applicant would see under the names of their columns."""
    if schema.wordless:
        warn(
            f"without a label or a reason, so people would read the column's name: {quoted(schema.wordless)}. "
            'State label = "..." in the schema, or later: plainrisk annotate.',
        )


def _draft(source: Source, target: str | None, positive: str | None, missing: Sequence[str]) -> Schema:
    if target is None:
        columns = ", ".join(source.frame.columns[-3:])
        raise SchemaError(
            f"{source.name}: without --schema, name the outcome: --column COLUMN. The last columns are {columns}."
        )
    label = None if positive is None else label_in(positive, source.frame, target)
    draft = Schema.infer(source.frame, target, positive=label, missing=missing)
    codes = [f"{n} {', '.join(map(label_of, f.special_values))}" for n, f in draft.features.items() if f.special_values]
    special = f" Assumed to be special values: {'; '.join(codes)}." if codes else ""
    warn(
        f"no --schema: kinds were inferred from the columns' types, and no direction is required.{special} "
        "plainrisk schema infer writes this draft to a file that you can edit.",
    )
    return draft


def _with_positive(schema: Schema, frame: pl.DataFrame, target: str) -> Schema:
    """State the positive outcome in the type of its column; if the schema does not state it, say which one it is."""
    from plainrisk.data.frame import as_frame

    positive = schema.positive
    if positive is None:
        labels = as_frame(frame).labels(target).labels
        positive = bad_label(labels) or labels[-1]
        if bad_label(labels) is None and not as_frame(frame).is_numeric(target):
            raise SchemaError(
                f"which outcome of {target!r} is the bad one? Add --positive with one of {quoted(labels)}."
            )
        if labels not in (("0", "1"), ("False", "True")):
            warn(
                f"the risk is the probability that {target!r} is {positive!r}. --positive chooses another outcome.",
            )
    label = label_in(positive, frame, target) if isinstance(positive, str) else positive
    return msgspec.structs.replace(schema, positive=label)


def label_in(text: str, frame: pl.DataFrame, target: str | None) -> str | float | bool:
    """Read a label given as text in the type of its column."""
    import polars as pl

    if target is None or target not in frame.columns:
        return text
    kind = frame.schema[target]
    if kind == pl.Boolean and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind.is_numeric():
        number = as_number(text)
        return text if number is None else int(number) if number.is_integer() else number
    return text
