"""A fingerprint of rows: it changes when the rows, their order, the outcomes or the schema do."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np

from plainrisk._types import Array
from plainrisk.data.frame import Frame
from plainrisk.data.texts import read_texts
from plainrisk.schema.schema import Schema

__all__ = ["fingerprint"]


def fingerprint(frame: Frame, target: Array, schema: Schema) -> str:
    """Return a digest of all that a fit depends on: the same for pandas, polars and files that hold the same rows.

    Parameters
    ----------
    frame : rows with the features of the schema
    target : (rows,) uint8, 1 for the positive outcome
    """
    frame = read_texts(frame, schema.readings)
    digest = hashlib.sha256(msgspec.json.encode(schema, order="sorted"))
    digest.update(target.tobytes())
    for name, feature in schema.features.items():
        if feature.kind == "continuous":
            # One bit pattern for every missing value, and one for zero.
            numbers = frame.numbers(name) + 0.0
            digest.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())
        else:
            column = frame.labels(name)
            digest.update(repr(column.labels).encode())
            digest.update(np.asarray(column.codes, dtype=np.int64).tobytes())
    return digest.hexdigest()[:16]
