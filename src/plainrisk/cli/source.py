"""What a command works on: rows from a file or a data set, and the schema that goes with them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from plainrisk.errors import DataError, PlainriskWarning, SchemaError, did_you_mean
from plainrisk.schema import Schema, label_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

__all__ = ["Rows", "Source", "label_in", "open_source", "rows_to_fit", "scan_source"]


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
    bad : the same as 0 and 1, 1 the positive outcome
    """

    schema: Schema
    X: pl.DataFrame
    y: npt.NDArray[Any]
    bad: npt.NDArray[np.uint8]


def open_source(data: str, missing: Sequence[str] | None = None) -> Source:
    """Read a file, or load a data set by its name."""
    from plainrisk import datasets
    from plainrisk.cli.tables import read_table

    if not _is_data_set(data):
        return Source(data, read_table(data, missing or ()))
    loaded = datasets.load(data, backend="polars")
    frame: pl.DataFrame = loaded.frame
    import polars as pl

    outcome = pl.Series(loaded.schema.target, loaded.target)
    return Source(data, frame.with_columns(outcome), loaded.schema)


def scan_source(data: str, missing: Sequence[str] | None, index: str) -> pl.LazyFrame:
    """Open a file or a data set to be read in batches, with the number of each row in the column `index`."""
    from plainrisk.cli.tables import scan_table

    if _is_data_set(data):
        return open_source(data).frame.with_row_index(index).lazy()
    return scan_table(data, missing or (), index)


def rows_to_fit(source: Source, path: Path | None, target: str | None, positive: str | None) -> Rows:
    """Find the schema, settle the outcome and its positive label, and check all of it against the rows."""
    import numpy as np

    from plainrisk.data.frame import as_frame
    from plainrisk.schema.check import require_valid

    schema = _schema(source, path, target, positive)
    if schema.target is None:
        raise SchemaError(
            f"{source.name}: which column is the outcome? Add --target NAME, or target = ... to the schema."
        )
    try:
        require_valid(schema, source.frame, target=True)
    except SchemaError as error:
        hint = " (--missing TEXT reads a text as missing.)" if "holds text" in str(error) else ""
        raise SchemaError(f"{error}{hint}") from None
    schema = _with_positive(schema, source.frame)
    assert schema.target is not None
    column = as_frame(source.frame).labels(schema.target)
    bad = column.codes == column.labels.index(label_of(schema.positive))
    return Rows(
        schema,
        source.frame.select(list(schema.features)),
        source.frame[schema.target].to_numpy(),
        bad.astype(np.uint8),
    )


def _is_data_set(data: str) -> bool:
    """Whether `data` names a data set; a file of that name comes first."""
    from plainrisk import datasets
    from plainrisk.cli.tables import READ

    if Path(data).exists():
        return False
    if data in datasets.names():
        return True
    if "." in data or "/" in data:
        return False  # meant as a file, and the reader says that it is not there
    hint = did_you_mean(data, datasets.names())
    raise DataError(f"{data!r} is neither a file ({', '.join(READ)}) nor the name of a data set.{hint}")


def _schema(source: Source, path: Path | None, target: str | None, positive: str | None) -> Schema:
    known = Schema.load(path) if path is not None else source.schema
    if known is None:
        return _draft(source, target, positive)
    changes: dict[str, Any] = {}
    if target is not None and target != known.target:
        changes = {"target": target, "positive": None}  # the label belonged to the other column
    if positive is not None:
        changes["positive"] = label_in(positive, source.frame, target or known.target)
        _warn_of_a_turn(known, changes)
    return msgspec.structs.replace(known, **changes)


def _warn_of_a_turn(known: Schema, changes: dict[str, Any]) -> None:
    """Directions are about the outcome the schema calls positive."""
    turned = known.positive is not None and label_of(changes["positive"]) != label_of(known.positive)
    if turned and "target" not in changes and any(feature.sign for feature in known.features.values()):
        warnings.warn(
            f"--positive turns the outcome round: the schema's directions were stated for {known.positive!r} "
            "and are now required of the other outcome.",
            PlainriskWarning,
            stacklevel=2,
        )


def _draft(source: Source, target: str | None, positive: str | None) -> Schema:
    if target is None:
        columns = ", ".join(source.frame.columns[-3:])
        raise SchemaError(
            f"{source.name}: without --schema the outcome must be named: --target NAME. The last columns are {columns}."
        )
    label = None if positive is None else label_in(positive, source.frame, target)
    draft = Schema.infer(source.frame, target, positive=label)
    codes = [f"{n} {', '.join(map(label_of, f.special_values))}" for n, f in draft.features.items() if f.special_values]
    special = f" Taken for special values: {'; '.join(codes)}." if codes else ""
    warnings.warn(
        f"no --schema: kinds were inferred from the columns' types, and no direction is required.{special} "
        "plainrisk schema infer writes this draft to a file that you can edit.",
        PlainriskWarning,
        stacklevel=2,
    )
    # The draft's remarks are for an editor, not for a model file.
    features = {name: msgspec.structs.replace(f, note=None) for name, f in draft.features.items()}
    return msgspec.structs.replace(draft, features=features)


def _with_positive(schema: Schema, frame: pl.DataFrame) -> Schema:
    """State the positive outcome where the schema leaves it open, and say so if it is not plain."""
    from plainrisk.data.frame import as_frame

    assert schema.target is not None
    if isinstance(schema.positive, str):
        return msgspec.structs.replace(schema, positive=label_in(schema.positive, frame, schema.target))
    if schema.positive is not None:
        return schema
    labels = as_frame(frame).labels(schema.target).labels
    if labels not in (("0", "1"), ("False", "True")):
        warnings.warn(
            f"the risk is the probability of {labels[-1]!r}, the larger label of {schema.target!r}. "
            "--positive chooses.",
            PlainriskWarning,
            stacklevel=2,
        )
    return msgspec.structs.replace(schema, positive=label_in(labels[-1], frame, schema.target))


def label_in(text: str, frame: pl.DataFrame, target: str | None) -> str | float | bool:
    """Read a label given as text in the type of its column."""
    import polars as pl

    if target is None or target not in frame.columns:
        return text
    kind = frame.schema[target]
    if kind == pl.Boolean and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind.is_numeric():
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text
