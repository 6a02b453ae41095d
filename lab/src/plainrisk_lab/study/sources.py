"""The rows of a study: data sets by name, and files of a user's own."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import msgspec
import narwhals as nw
import numpy as np
from sklearn.model_selection import StratifiedKFold

from plainrisk import datasets
from plainrisk._types import Outcome
from plainrisk.data.frame import as_frame
from plainrisk.data.reader import read_file
from plainrisk.errors import DataError, PlainriskWarning, SchemaError, did_you_mean
from plainrisk.schema import Schema, label_of
from plainrisk.schema.check import require_valid
from plainrisk.schema.fingerprint import fingerprint
from plainrisk_lab.study.plan import DataSpec

__all__ = ["StudyData", "load_data", "stratified_folds"]


@dataclass(frozen=True, eq=False)
class StudyData:
    """Rows to learn from and to judge on.

    Attributes
    ----------
    name : the data set
    frame : a data frame of the schema's features
    target : 0 and 1
    schema : what is known of the features
    fingerprint : changes when the rows or the schema do
    note : what a reader should know, such as that rows are missing
    """

    name: str
    frame: Any
    target: Outcome
    schema: Schema
    fingerprint: str
    note: str = ""


def load_data(spec: DataSpec) -> StudyData:
    """Read a data set."""
    if spec.file is not None and spec.schema is not None:
        frame, target, schema, note = *_read_own(spec.file, spec.schema), ""
    else:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PlainriskWarning)
            data = datasets.load(spec.name)
        frame, target, schema = data.frame, data.target, data.schema
        # Without the folder, which is nobody's business.
        note = " ".join(str(w.message).rpartition("/")[2] for w in caught)
    features = nw.from_native(frame, eager_only=True)[list(schema.features)].to_native()
    return StudyData(spec.name, features, target, schema, fingerprint(as_frame(features), target, schema), note)


def stratified_folds(target: Outcome, cv: int, seed: int) -> Outcome:
    """Return the number of the fold of every row.

    >>> folds = stratified_folds(np.array([0, 1, 0, 1, 0, 1], dtype=np.uint8), 3, 0)
    >>> sorted(folds[[0, 2, 4]].tolist()), sorted(folds[[1, 3, 5]].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    rarer = int(min(target.sum(), len(target) - target.sum()))
    if cv > rarer:
        raise DataError(f"{cv} folds need {cv} rows of each outcome; the rarer one has {rarer}.")
    fold_of = np.empty(len(target), dtype=np.uint8)
    splits = StratifiedKFold(cv, shuffle=True, random_state=seed).split(target, target)
    for fold, (_, held_out) in enumerate(splits):
        fold_of[held_out] = fold
    return fold_of


def _read_own(file: str, schema_file: str) -> tuple[Any, Outcome, Schema]:
    schema = Schema.load(schema_file)
    if schema.target is None:
        raise SchemaError(f"{schema_file}: which column is the outcome? Add target = ... to the schema.")
    table = read_file(file, schema.kinds)
    frame = as_frame(table)
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
    return table, target, msgspec.structs.replace(schema, positive=1)
