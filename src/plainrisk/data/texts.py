"""Numbers and missing values as people write them: "35.5%", "$1,100.00", "1.100,50", "NA".

The one place that converts the texts of a column by the rule that the schema states for its feature. Fitting, scoring,
checks, files, streams and the service all use `read_texts`. Each value is read independently of the other rows, and
converted rows do not change again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np

from plainrisk._types import Floats
from plainrisk.data.columns import TRUTH, array_of, is_missing, labels_of
from plainrisk.data.frame import Frame
from plainrisk.errors import DataError

__all__ = ["Read", "Reading", "is_null", "parse", "read_texts"]

Read = Literal["number", "percent", "amount", "decimal_comma"]

_SIGN = r"(?P<sign>[-+\u2212])?"
_CURRENCY = r"(?:[A-Z]{0,3}[$\u20ac\u00a3\u00a5\u20b9]|[A-Z]{3})"
_COMMAS = r"(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?P<part>\.\d*)?"
_POINTS = r"(?P<whole>\d{1,3}(?:[. '\u00a0\u202f]\d{3})+|\d+)(?P<part>,\d*)?"
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_AMOUNT = re.compile(rf"{_SIGN}{_CURRENCY}?\s?(?P<inner>[-+\u2212])?{_COMMAS}\s?{_CURRENCY}?")
_DECIMAL_COMMA = re.compile(rf"{_SIGN}{_CURRENCY}?\s?(?P<inner>[-+\u2212])?{_POINTS}\s?(?:{_CURRENCY}|%)?")


@dataclass(frozen=True)
class Reading:
    """How to read the texts of one feature.

    Attributes
    ----------
    is_number : whether the feature is continuous
    read : how its numbers are written
    null_values : texts that mean missing, without spaces around them
    """

    is_number: bool
    read: Read = "number"
    null_values: frozenset[str] = frozenset()


def read_texts(frame: Frame, readings: Mapping[str, Reading]) -> Frame:
    """Return the rows with the texts of some columns converted; text that a rule cannot read is an error.

    >>> from plainrisk.data.frame import as_frame
    >>> rows = as_frame({"rate": ["35.5%", "NA", "7%"]})
    >>> read_texts(rows, {"rate": Reading(True, "percent", frozenset({"NA"}))}).numbers("rate")
    array([35.5,  nan,  7. ])
    """
    columns = {
        name: _numbers(name, frame, reading) if reading.is_number else _categories(name, frame, reading)
        for name, reading in readings.items()
        if name in frame.columns
    }
    changed = {name: column for name, column in columns.items() if column is not None}
    if not changed:
        return frame
    converted = replace(frame, columns={**frame.columns, **changed})
    converted._labels.update({name: read for name, read in frame._labels.items() if name not in changed})
    return converted


def is_null(text: str, null_values: frozenset[str]) -> bool:
    """Whether a text means missing; spaces around it are ignored."""
    return text.strip() in null_values


def parse(text: str, read: Read) -> float | None:
    """Return the number that a text represents, or None if it does not have this notation.

    A sign of percent or currency may be left out: the number 35.5 and the text "35.5%" are the same value.

    >>> parse("35.5%", "percent"), parse("1.100,50", "decimal_comma")
    (35.5, 1100.5)
    >>> parse("$1,100.00", "amount"), parse("(250)", "amount")
    (1100.0, -250.0)
    >>> parse("1,10", "amount"), parse("1.5", "decimal_comma"), parse("abc", "number")
    (None, None, None)
    """
    text = text.strip()
    if read == "percent":
        text = text.removesuffix("%").rstrip()
    if read in ("number", "percent"):
        if _PLAIN.fullmatch(text):
            return float(text)
        return {"True": 1.0, "False": 0.0, "NaN": math.nan}.get(TRUTH.get(text, text)) if read == "number" else None
    is_negative = read == "amount" and text.startswith("(") and text.endswith(")")
    match = (_AMOUNT if read == "amount" else _DECIMAL_COMMA).fullmatch(text[1:-1] if is_negative else text)
    if match is None or (is_negative + bool(match["sign"]) + bool(match["inner"]) > 1):
        return None
    number = float(re.sub(r"\D", "", match["whole"]) + (match["part"] or "").replace(",", "."))
    return -number if is_negative or (match["sign"] or match["inner"]) in ("-", "\u2212") else number


# ---- columns


def _numbers(name: str, frame: Frame, reading: Reading) -> Any:
    """Return a column of texts as numbers, or None if it is already numeric."""
    column = frame.column(name)
    if isinstance(column, np.ndarray):
        if column.dtype.kind not in "OU":
            return None
        return np.array([_number(name, value, reading, frame.first + i) for i, value in enumerate(column)], np.float64)
    if array_of(column) is not None or column.dtype not in (nw.String, nw.Categorical, nw.Enum):
        return None
    labels = labels_of(column, name)
    # Each distinct text is read once; code -1, a missing value, is the last entry.
    numbers = np.array([*(_parsed(text, reading) for text in labels.labels), math.nan])
    wrong = np.isinf(numbers)[labels.codes]
    if wrong.any():
        raise _unreadable(name, reading, frame.first + int(wrong.argmax()))
    return _like(column, numbers[labels.codes], nw.Float64())


def _number(name: str, value: Any, reading: Reading, row: int) -> float:
    """Read one cell; numbers do not change."""
    if is_missing(value):
        return math.nan
    if not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise _unreadable(name, reading, row) from None
    number = _parsed(value, reading)
    if math.isinf(number):
        raise _unreadable(name, reading, row)
    return number


def _parsed(text: str, reading: Reading) -> float:
    """Read one text: NaN if it means missing, as an empty text in files does; infinity if it cannot be read."""
    if not text or is_null(text, reading.null_values):
        return math.nan
    number = parse(text, reading.read)
    return math.inf if number is None else number


def _unreadable(name: str, reading: Reading, row: int) -> DataError:
    texts = ", ".join(map(repr, sorted(reading.null_values)))
    nulls = f"; missing is {texts}" if texts else ""
    return DataError(
        f"Data: feature {name!r} is continuous but holds text in row {row} that its rule does not read "
        f"(read = {reading.read!r}{nulls}). Correct it, or add it to null_values."
    )


def _categories(name: str, frame: Frame, reading: Reading) -> Any:
    """Return a column of categories without those that mean missing, or None if there are none."""
    labels = frame.labels(name)
    nulls = [is_null(label, reading.null_values) for label in labels.labels]
    if not any(nulls):
        return None
    kept = [None if null else label for label, null in zip(labels.labels, nulls, strict=True)]
    texts = np.array([*kept, None], dtype=object)[labels.codes]
    column = frame.column(name)
    return texts if isinstance(column, np.ndarray) else _like(column, texts, nw.String())


def _like(column: nw.Series[Any], values: Floats | np.ndarray[Any, Any], dtype: nw.dtypes.DType) -> nw.Series[Any]:
    """Return values as a series of the same library, with the labels of its rows in pandas."""
    if column.implementation.is_pandas_like():
        native = column.to_native()
        return nw.from_native(type(native)(values, index=native.index, name=native.name), series_only=True)
    return nw.new_series(column.name, values.tolist(), dtype, backend=column.implementation)
