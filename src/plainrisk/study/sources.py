"""The rows of a study: data sets by name, and files of a user's own."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import narwhals as nw
import numpy as np
import numpy.typing as npt

from plainrisk import datasets
from plainrisk.data.frame import Frame, as_frame, frame_like
from plainrisk.datasets.registry import schema_of
from plainrisk.datasets.sources import absent_message, find
from plainrisk.errors import DataError, MissingExtraError, PlainriskWarning, SchemaError, did_you_mean
from plainrisk.schema import Schema, label_of
from plainrisk.schema.check import require_valid
from plainrisk.study.plan import DataSpec

__all__ = ["StudyData", "deal", "known_fingerprint", "load_data", "reason_absent"]


@dataclass(frozen=True, eq=False)
class StudyData:
    """Rows to learn from and to judge on.

    Attributes
    ----------
    name : the data set
    frame : the features, numbers as arrays so that folds are cut fast
    target : 0 and 1
    schema : what is known of the features
    fingerprint : changes when the rows or the schema do
    note : what a reader should know, such as that rows are missing
    """

    name: str
    frame: Frame
    target: npt.NDArray[np.uint8]
    schema: Schema
    fingerprint: str
    note: str = ""

    @cached_property
    def native(self) -> Any:
        """The features as a data frame for classifiers that are not ours: pandas if it is installed, else polars."""
        columns = {}
        for name, column in self.frame.columns.items():
            columns[name] = column if isinstance(column, np.ndarray) else column.to_list()
        return nw.from_native(frame_like(columns), eager_only=True)

    def native_rows(self, index: npt.NDArray[np.intp]) -> Any:
        """Return some rows of `native`."""
        return self.native[index].to_native()


def deal(target: npt.NDArray[Any], folds: int, seed: int) -> npt.NDArray[np.uint8]:
    """Return the fold of every row: stratified, shuffled.

    >>> folds = deal([0, 1, 0, 1, 0, 1], 3, 0)
    >>> sorted(folds[[0, 2, 4]].tolist()), sorted(folds[[1, 3, 5]].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    from sklearn.model_selection import StratifiedKFold

    outcome = np.asarray(target)
    rarer = int(min(outcome.sum(), len(outcome) - outcome.sum()))
    if folds > rarer:
        raise DataError(f"{folds} folds need {folds} rows of each outcome; the rarer one has {rarer}.")
    fold_of = np.empty(len(outcome), dtype=np.uint8)
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(outcome, outcome)
    for fold, (_, held_out) in enumerate(splits):
        fold_of[held_out] = fold
    return fold_of


def reason_absent(spec: DataSpec) -> str | None:
    """Return why a data set cannot be read here, or None."""
    if spec.file is None:
        entry = datasets.info(spec.name)
        return absent_message(entry).removeprefix("Datasets: ") if find(entry) is None else None
    missing = [p for p in (spec.file, spec.schema) if p is not None and not Path(p).is_file()]
    return f"{missing[0]} does not exist." if missing else None


def known_fingerprint(spec: DataSpec) -> str | None:
    """Return the fingerprint if it can be had without reading the rows: of known content, or of a file's bytes."""
    if spec.file is not None and spec.schema is not None:
        return _digest(Path(spec.file).read_bytes(), Path(spec.schema).read_bytes())
    entry = datasets.info(spec.name)
    found = find(entry)
    content = entry.partial.content_sha256 if found and found.partial and entry.partial else entry.content_sha256
    return None if content is None else _digest(content.encode(), _schema_bytes(schema_of(entry.schema)))


def load_data(spec: DataSpec) -> StudyData:
    """Read a data set."""
    fingerprint = known_fingerprint(spec)
    if spec.file is not None and spec.schema is not None:
        frame, target, schema = _read_own(spec.file, spec.schema)
        return StudyData(spec.name, _numeric(frame, schema), target, schema, str(fingerprint))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlainriskWarning)
        data = datasets.load(spec.name)
    frame = _numeric(as_frame(data.frame), data.schema)
    if fingerprint is None:
        columns = {n: c if isinstance(c, np.ndarray) else _words(c) for n, c in frame.columns.items()}
        content = datasets.content_sha256(columns, data.target)
        fingerprint = _digest(content.encode(), _schema_bytes(schema_of(datasets.info(spec.name).schema)))
    note = " ".join(str(w.message).rpartition("/")[2] for w in caught)
    return StudyData(spec.name, frame, data.target, data.schema, fingerprint, note)


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def _schema_bytes(schema: Schema) -> bytes:
    return msgspec.json.encode(schema, order="sorted")


def _words(column: Any) -> npt.NDArray[np.object_]:
    return np.array(column.to_list(), dtype=object)


def _numeric(frame: Frame, schema: Schema) -> Frame:
    """Keep the schema's columns, those of numbers as float64 arrays."""
    columns = {
        name: frame.numbers(name) if feature.kind == "continuous" else frame.column(name)
        for name, feature in schema.features.items()
    }
    return Frame(tuple(columns), columns, frame.n_rows)


def _read_own(file: str, schema_file: str) -> tuple[Frame, npt.NDArray[np.uint8], Schema]:
    schema = Schema.load(schema_file)
    if schema.target is None:
        raise SchemaError(f"{schema_file}: which column is the outcome? Add target = ... to the schema.")
    frame = as_frame(_read_table(file))
    require_valid(schema, frame, target=True)
    outcome = frame.labels(schema.target)
    positive = outcome.labels[-1] if schema.positive is None else label_of(schema.positive)
    if positive not in outcome.labels or len(outcome.labels) != 2:
        hint = did_you_mean(positive, outcome.labels)
        raise SchemaError(f"{file}: column {schema.target!r} must hold two outcomes, one of them {positive!r}.{hint}")
    if (outcome.codes < 0).any():
        raise DataError(f"{file}: column {schema.target!r} has rows without an outcome. Leave them out.")
    target = (outcome.codes == outcome.labels.index(positive)).astype(np.uint8)
    # The target is 0/1 from here on, whatever the labels were.
    return frame, target, msgspec.structs.replace(schema, positive=1)


def _read_table(file: str) -> Any:
    library: Any = next((name for name in ("polars", "pandas", "pyarrow") if find_spec(name)), None)
    if library is None:
        raise MissingExtraError("polars is needed to read files and is not installed: pip install polars")
    name = file.lower()
    try:
        if name.endswith(".parquet"):
            return nw.read_parquet(file, backend=library).to_native()
        if name.endswith((".csv", ".csv.gz")):
            # The types of the columns come from all rows.
            options: dict[str, Any] = {"infer_schema_length": None} if library == "polars" else {}
            return nw.read_csv(file, backend=library, **options).to_native()
    except Exception as error:
        # Each library has its own errors for a damaged file.
        message = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"{file} cannot be read: {message}.") from None
    raise DataError(f"{file}: the name must end in .csv, .csv.gz or .parquet.")
