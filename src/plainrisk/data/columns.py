"""How to read one column: as numbers or as text labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from plainrisk._types import Array, Floats, Index, Outcome
from plainrisk.errors import DataError
from plainrisk.text import as_number

__all__ = [
    "EXACT",
    "PADDED",
    "TRUTH",
    "Labels",
    "array_of",
    "floats_or_none",
    "is_missing",
    "is_word",
    "label_of",
    "labels_of",
    "numbers_of",
    "refuse_fractions",
    "refuse_infinity",
    "unmasked",
]

# Beyond this, different integers may be equal as float64.
EXACT = 2.0**53
NO_GROUP = "(no group)"
# How files write the labels of truth values, and how codes are written but no number is: 01, 007.
TRUTH = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}
PADDED = r"^[-+]?0\d+(\.\d*)?$"


def label_of(value: object) -> str:
    """Return the text of a category or a class, which is the same for any type it was stored as.

    Times are written as ISO 8601 has them, midnight as its day, since many tables know no days; decimals as floats.

    >>> label_of(2), label_of(2.0), label_of("2"), label_of(2.5), label_of(Decimal("2.50")), label_of(True)
    ('2', '2', '2', '2.5', '2.5', 'True')
    >>> label_of(datetime(2018, 12, 31)), label_of(datetime(2018, 12, 31, 9, 30))
    ('2018-12-31', '2018-12-31 09:30:00')
    """
    if isinstance(value, str):
        return str(value)  # numpy's own text type too
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    if isinstance(value, Decimal):
        whole = value.is_finite() and value == value.to_integral_value()
        return label_of(int(value) if whole else float(value))
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")  # the nanoseconds of pandas included
    if isinstance(value, np.datetime64):
        return label_of(value.astype("datetime64[us]").item())
    item = getattr(value, "item", None)
    return label_of(item()) if item is not None else str(value)


def is_word(label: object) -> bool:
    """Whether a label is a text as which no number and no truth value is written.

    >>> is_word("bad"), is_word("01"), is_word("1"), is_word("true"), is_word(1)
    (True, True, False, False, False)
    """
    if not isinstance(label, str) or label.lower() in ("true", "false"):
        return False
    return (number := as_number(label)) is None or label_of(number) != label


@dataclass(frozen=True)
class Labels:
    """A column as small integers: ``labels[codes[i]]`` is the text of row i, -1 is missing."""

    codes: npt.NDArray[np.int8 | np.int16 | np.int32 | np.intp]
    labels: tuple[str, ...]

    def groups(self) -> dict[str, Index]:
        """Return the rows of every label that has any; rows without a label are the last group, "(no group)".

        Labels that are numbers come in their order, as text too.
        """
        rest = NO_GROUP
        while rest in self.labels:
            rest = f"({rest})"
        numbered = list(enumerate(self.labels))
        if None not in map(as_number, self.labels):
            numbered.sort(key=lambda label: float(label[1]))
        rows_of = {name: np.flatnonzero(self.codes == k) for k, name in numbered}
        rows_of[rest] = np.flatnonzero(self.codes < 0)
        return {name: rows for name, rows in rows_of.items() if len(rows)}

    def outcomes(self, classes: Sequence[Any] | Array) -> Outcome:
        """Return 1 where the label is the second of two classes and 0 where it is the first.

        Truth values are 0 and 1, however they are written.

        >>> Labels(np.array([1, 0, 1]), ("0", "1")).outcomes([False, True])
        array([1, 0, 1], dtype=uint8)
        """
        numbers = {"False": "0", "True": "1"}
        code_of = {numbers.get(label_of(c), label_of(c)): k for k, c in enumerate(classes)}
        codes = np.array([*(code_of.get(numbers.get(label, label), 2) for label in self.labels), 3], dtype=np.uint8)
        found = codes[self.codes]  # code -1, a missing value, is the last entry
        if found.max(initial=0) > 1:
            row = int(np.argmax(found > 1))
            what = "has no outcome" if found[row] == 3 else "has an outcome that the model does not know"
            outcomes = " and ".join(repr(label_of(c)) for c in classes)
            raise DataError(f"Data: row {row:,} (counting from 0) {what}; the model's outcomes are {outcomes}.")
        return found


# ---- numbers


def is_missing(value: Any) -> bool:
    """Whether a cell of an object column is empty."""
    # pandas.NA cannot be compared, so its type is checked first.
    if isinstance(value, np.ndarray):
        return False
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def unmasked(array: Any) -> Any:
    """Return an array with missing values where a masked array is masked; other arrays do not change."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    hidden = np.ma.getmaskarray(array)
    floats = array.dtype.kind == "f" or not hidden.any()
    values = np.array(array.data, dtype=None if floats else object)
    values[hidden] = np.nan if floats else None
    return values


def floats_or_none(column: Array, *, truth: bool = False) -> Floats | None:
    """Read an object column as numbers if every cell that is not missing is one, or if allowed a truth value."""
    out = np.empty(len(column))
    for i, value in enumerate(column):
        if is_missing(value):
            out[i] = np.nan
        elif isinstance(value, bool | np.bool_):
            if not truth:
                return None
            out[i] = value
        elif isinstance(value, int | float | np.integer | np.floating | Decimal):
            try:
                out[i] = value
            except OverflowError:  # a whole number of more than 308 digits
                out[i] = np.inf if value > 0 else -np.inf
        else:
            return None
    return out


def refuse_infinity(name: str, values: Floats, first: int) -> None:
    """Raise if a number is infinite, and name its row, counted from `first`."""
    # The sum is finite unless some value is not (or the sum overflows, which is looked into).
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add.reduce(values)
    if math.isfinite(total):
        return
    infinite = np.isinf(values)
    if infinite.any():
        row = first + int(infinite.argmax())
        raise DataError(
            f"Data: feature {name!r} holds infinity (row {row}). "
            "Make it missing, or a finite code that is declared as a special value."
        )


def array_of(column: Any) -> Array | None:
    """Return numbers or booleans as they are stored, or floats with NaN if some are missing.

    None for others, booleans of which some are missing among them: as floats they would be the categories 1 and 0.
    """
    if not isinstance(column, np.ndarray):
        column = _decoded(column)
        dtype = column.dtype
        if not (dtype.is_numeric() or (dtype == nw.Boolean and not column.null_count())):
            return None
        if isinstance(dtype, nw.Int128 | nw.UInt128 | nw.Decimal):
            column = column.cast(nw.Float64)
        # A numpy array in a frame represents missing only by NaN, and polars converts null to NaN.
        knows_nan = isinstance(getattr(column.to_native(), "dtype", None), np.dtype)
        knows_nan |= column.implementation.is_polars()
        column = np.asarray(column.to_numpy()) if knows_nan or not column.null_count() else _with_nan(column)
    return column if column.dtype.kind in "iufb" else None


def _with_nan(series: nw.Series[Any]) -> Floats:
    values = np.full(len(series), np.nan)
    values[~series.is_null().to_numpy().astype(np.bool_)] = series.drop_nulls().to_numpy()
    return values


def numbers_of(name: str, column: Any, first: int = 0) -> Floats:
    """Return a column as float64, NaN for missing; text is an error that names its row, counted from `first`."""
    values = array_of(column)
    if values is None and isinstance(column, np.ndarray) and column.dtype == object:
        values = floats_or_none(column, truth=True)
    elif values is None and (series := _decoded(column)).dtype == nw.Boolean:
        values = _with_nan(series)
    if values is None:
        labels = labels_of(column, name)
        if labels.labels:
            raise _not_a_number(name, column, labels, first)
        values = np.full(len(labels.codes), np.nan)
    return np.ascontiguousarray(values, dtype=np.float64)


def _not_a_number(name: str, column: Any, labels: Labels, first: int) -> DataError:
    is_text = isinstance(column, np.ndarray) or not column.dtype.is_temporal()
    for row, code in enumerate(labels.codes, first):
        if code >= 0 and as_number(labels.labels[code]) is None:
            return DataError(
                f"Data: feature {name!r} is continuous but holds {'text' if is_text else column.dtype} in row {row}. "
                "Make it missing, or set kind = 'categorical'."
            )
    return DataError(f"Data: feature {name!r} holds numbers as text. Convert the column to numbers first.")


def _decoded(series: nw.Series[Any]) -> nw.Series[Any]:
    """Read categories that are numbers or truth values as such, so that 2.0 has the label "2" here too."""
    if series.dtype != nw.Categorical:
        return series
    native = series.to_native()
    if series.implementation.is_pandas_like():
        kind = native.cat.categories.dtype.kind
        # pandas' own types, which know missing values
        exact = {"i": "Int64", "u": "UInt64", "f": "Float64", "b": "boolean"}
        if kind not in exact:
            return series
        values = native.cat.categories.astype(exact[kind]).array.take(native.cat.codes, allow_fill=True)
        return nw.from_native(type(native)(values), series_only=True)
    if series.implementation.is_pyarrow():
        return nw.from_native(native.cast(native.type.value_type), series_only=True)
    return series


# ---- labels


def labels_of(column: Any, name: str = "") -> Labels:
    """Return the labels of a series or an array, in the order of numbers if they are numbers, else of text."""
    array = column if isinstance(column, np.ndarray) else None
    if array is None and column.dtype != nw.Boolean:
        column = _decoded(column)
        array = array_of(column)
        if array is not None and array.dtype.kind == "f" and not column.dtype.is_float() and _beyond_exact(array):
            # Whole numbers that are floats only because some are missing, or because numpy has none as wide.
            array = np.array(column.to_list(), dtype=object)
    labels = _labels_of_series(column, name) if array is None else _labels_of_array(array, name)
    n = len(labels.labels)
    narrow = np.int8 if n <= 2**7 else np.int16 if n <= 2**15 else np.int32
    return Labels(labels.codes.astype(narrow, copy=False), labels.labels)


def refuse_fractions(name: str, column: Any) -> None:
    """Raise if a category is a decimal with a fraction: its label is 0.5, where a file of text has 0.50."""
    if isinstance(column, np.ndarray):
        if column.dtype != object or not any(isinstance(value, Decimal) for value in column):
            return
        values = floats_or_none(column)
    else:
        values = array_of(column) if isinstance(column.dtype, nw.Decimal) else None
    if values is None:
        return
    present = values[~np.isnan(values)]
    if (present != np.floor(present)).any():
        raise DataError(
            f"Data: categorical feature {name!r} holds decimals with a fraction, whose text has no one form: 0.5 or "
            "0.50. Convert the column to text, or set kind = 'continuous'."
        )


def _beyond_exact(values: Floats) -> bool:
    with np.errstate(invalid="ignore"):
        return bool((np.abs(values) >= EXACT).any())


def _labels_of_series(series: nw.Series[Any], name: str) -> Labels:
    if series.dtype == nw.Boolean:
        return _in_order(series.cast(nw.Int8).fill_null(-1).to_numpy(), ["False", "True"])
    if series.dtype.is_nested() or isinstance(series.dtype, nw.Duration | nw.Binary):
        raise _no_label(name, str(series.dtype))
    if series.dtype == nw.Unknown and str(getattr(series.to_native(), "type", "")).startswith("map<"):
        raise _no_label(name, str(series.to_native().type))
    if series.dtype == nw.Categorical and series.implementation.is_pandas_like():
        categories = series.to_native().cat
        category_labels = _labels_of_array(np.array([*categories.categories, None], dtype=object), name)
        return _in_order(
            category_labels.codes[categories.codes], list(category_labels.labels)
        )  # code -1 is the last, None
    if series.dtype.is_temporal():
        return _labels_of_array(np.array([*series.to_list(), None], dtype=object)[:-1], name)
    return _in_order(*_dictionary(series if series.dtype == nw.String else series.cast(nw.String)))


def _no_label(name: str, kind: str) -> DataError:
    who = f"column {name!r}" if name else "a column"
    return DataError(f"Data: {who} holds values of type {kind}, neither numbers nor text. Convert it, or leave it out.")


def _dictionary(text: nw.Series[Any]) -> tuple[Array, list[str]]:
    """Encode text by the dictionary of the frame's own library; code -1 is missing."""
    native = text.to_native()
    if text.implementation.is_polars():
        labels = text.drop_nulls().unique().to_list()
        physical = nw.from_native(text.cast(nw.Enum(labels)).to_native().to_physical(), series_only=True)
        return physical.cast(nw.Int64).fill_null(-1).to_numpy(), labels
    if text.implementation.is_pyarrow():
        encoded = native.dictionary_encode().unify_dictionaries()
        codes = [chunk.indices.fill_null(-1).to_numpy() for chunk in encoded.chunks]
        labels = encoded.chunk(0).dictionary.to_pylist() if codes else []
        return np.concatenate([np.empty(0, np.int32), *codes]), labels
    codes, labels = native.factorize()
    return codes, [str(label) for label in labels]


def _in_order(codes: Array, labels: list[str]) -> Labels:
    """Sort the labels that occur, and renumber the rows."""
    seen = np.zeros(len(labels) + 1, np.bool_)
    seen[codes] = True
    order = sorted((k for k in range(len(labels)) if seen[k]), key=labels.__getitem__)
    place = np.full(len(labels) + 1, -1, np.int32)  # the last entry is that of code -1
    place[order] = np.arange(len(order))
    return Labels(place[codes], tuple(labels[k] for k in order))


def _labels_of_array(array: Array, name: str) -> Labels:
    if array.dtype.kind in "iuf":
        return _small_whole_numbers(array) or _sorted_numbers(array)
    if array.dtype.kind == "b":
        return _in_order(array.astype(np.int8), ["False", "True"])
    if array.dtype.kind in "cmV":
        raise _no_label(name, array.dtype.name)
    numbers = floats_or_none(array) if array.dtype == object else None
    if numbers is not None:
        return _exact_numbers(array) if _beyond_exact(numbers) else _labels_of_array(numbers, name)
    text = [None if is_missing(v) else _text_of(v, name) for v in array]
    number_of: dict[str, int] = {}
    codes = [-1 if t is None else number_of.setdefault(t, len(number_of)) for t in text]
    return _in_order(np.array(codes, np.int64), list(number_of))


def _text_of(value: Any, name: str) -> str:
    """Return the label of one cell; a memory address or the text of a container is not a label."""
    if isinstance(value, str):
        return str(value)
    nested = isinstance(value, complex | Mapping | Iterable) and not isinstance(value, bytes)
    if nested or repr(value) == object.__repr__(value):
        raise _no_label(name, type(value).__name__)
    return label_of(value)


def _exact_numbers(array: Array) -> Labels:
    """Return the labels of objects, some of which are integers that float64 cannot distinguish."""

    def exact(value: Any) -> int | float:
        is_float = isinstance(value, float | np.floating) or value != int(value)
        return float(value) if is_float else int(value)

    values = [None if is_missing(v) else exact(v) for v in array]
    place: dict[int | float | None, int] = {v: k for k, v in enumerate(sorted({v for v in values if v is not None}))}
    labels = tuple(label_of(v) for v in place)
    return Labels(np.array([-1 if v is None else place[v] for v in values], np.int64), labels)


def _small_whole_numbers(array: Array) -> Labels | None:
    """Return the labels of whole numbers of 16 bits by counting, which is quicker than sorting; None for others."""
    values = np.ascontiguousarray(array)  # a column of a matrix is far slower to read
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, np.bool_)
    present = values[~missing] if missing.any() else values
    limits = np.iinfo(np.int16)
    if not present.size or not (present.min() >= limits.min and present.max() <= limits.max):
        return None
    whole = present.astype(np.int64)
    if not (whole == present).all():
        return None
    low = int(whole.min())
    seen = np.bincount(whole - low) > 0
    codes = np.full(len(values), -1, np.int64)
    codes[~missing] = (np.cumsum(seen) - 1)[whole - low]
    return Labels(codes, tuple(label_of(int(v)) for v in np.flatnonzero(seen) + low))


def _sorted_numbers(array: Array) -> Labels:
    values, codes = np.unique(array, return_inverse=True)  # one NaN, sorted last
    n = int((values == values).sum())
    return Labels(np.where(codes >= n, -1, codes), tuple(label_of(v) for v in values[:n].tolist()))
