"""How one column is read: as numbers, or as labels of text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from plainrisk._native import recode, text_codes
from plainrisk._types import label_of
from plainrisk.errors import DataError

__all__ = [
    "Labels",
    "filled",
    "floats_or_none",
    "is_missing",
    "labels_of_array",
    "labels_of_series",
    "narrow",
    "numbers_of",
    "places_of_text",
    "refuse_infinity",
]

Floats = npt.NDArray[np.float64]

# Up to here, comparing with each label beats a look-up, where comparing is quick.
_FEW_LABELS = 8
# Whole numbers this near to 0 are counted one by one.
_NEAR_ZERO = 1 << 15
# Rows from which a column without missing numbers is made in the library it comes from.
_MANY_ROWS = 1 << 15
# Rows that are looked at for a column's labels before all of them are.
_SHOWN_ROWS = 1 << 11


@dataclass(frozen=True)
class Labels:
    """A column as small integers: ``labels[codes[i]]`` is the text of row i, -1 is missing."""

    codes: npt.NDArray[np.int8 | np.int16 | np.int32 | np.intp]
    labels: tuple[str, ...]


def _decoded(series: nw.Series[Any]) -> nw.Series[Any]:
    """Read categories that are numbers as numbers, so that 2.0 has the label "2" here too."""
    native = series.to_native()
    if series.implementation.is_pandas_like() and native.cat.categories.dtype.kind in "iuf":
        return series.cast(nw.Float64)
    if series.implementation.is_pyarrow():
        return nw.from_native(native.cast(native.type.value_type), series_only=True)
    return series


def is_missing(value: Any) -> bool:
    """Whether a cell of an object column holds nothing."""
    # pandas.NA refuses to be compared, so its type is asked first.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def floats_or_none(column: npt.NDArray[Any]) -> Floats | None:
    """Read an object column as numbers if every cell that is not missing is one."""
    out = np.empty(len(column))
    for i, value in enumerate(column):
        if is_missing(value):
            out[i] = np.nan
        elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
            try:
                out[i] = value
            except OverflowError:  # a whole number of more than 308 digits
                out[i] = np.inf if value > 0 else -np.inf
        else:
            return None
    return out


def refuse_infinity(name: str, values: Floats, first: int) -> bool:
    """Raise if a number is infinite; return whether none is missing, as far as one pass can tell."""
    # The sum is finite unless some value is not (or the sum overflows, which is looked into).
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add.reduce(values)
    if math.isfinite(total):
        return True
    infinite = np.isinf(values)
    if infinite.any():
        row = first + int(infinite.argmax())
        raise DataError(
            f"Data: feature {name!r} holds infinity (row {row}). "
            "Make it missing, or a finite code that is declared as a special value."
        )
    return False


def numbers_of(name: str, column: Any, first: int = 0, room: Floats | None = None) -> Floats:
    """Return a column as float64, NaN for missing; text is an error that names its row, counted from `first`."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "iufb":
            if room is None or (column.dtype == np.float64 and column.flags.c_contiguous):
                return np.ascontiguousarray(column, dtype=np.float64)
            np.copyto(room[: len(column)], column)
            return room[: len(column)]
        values = floats_or_none(column) if column.dtype == object else None
        if values is not None:
            return values
        raise _not_a_number(name, labels_of_array(column), first)
    if column.dtype == nw.Categorical:
        column = _decoded(column)
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return np.ascontiguousarray(filled(column), dtype=np.float64)
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    raise _not_a_number(name, labels_of_series(column), first)


def filled(column: nw.Series[Any]) -> npt.NDArray[Any]:
    """Return a column of numbers as an array of the type it is stored in, or as floats if some are missing."""
    # An array of the library's has nothing but NaN for missing, so there is no need to look.
    is_array = isinstance(getattr(column.to_native(), "dtype", None), np.dtype)
    # polars makes NaN of missing integers and floats itself, in an array of floats: quickly if they are not many.
    dtype, few = column.dtype, len(column) < _MANY_ROWS
    is_quick = few and (dtype.is_integer() or dtype.is_float()) and column.implementation.is_polars()
    if not is_array and not is_quick and column.null_count():
        column = column.cast(nw.Float64).fill_null(float("nan"))
    return np.asarray(column.to_numpy())


def _not_a_number(name: str, labels: Labels, first: int) -> DataError:
    for row, code in enumerate(labels.codes, first):
        if code >= 0 and not _parses(labels.labels[code]):
            return DataError(
                f"Data: feature {name!r} is continuous but holds text: {labels.labels[code]!r} in row {row}. "
                "Make it missing, or set kind = 'categorical'."
            )
    return DataError(f"Data: feature {name!r} holds numbers as text. Convert the column to numbers first.")


def _parses(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def labels_of_series(series: nw.Series[Any]) -> Labels:
    """Return the labels of a data frame's column."""
    if series.dtype == nw.Categorical:
        series = _decoded(series)
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        if series.null_count():
            values = series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
            labels = labels_of_array(np.asarray(values, dtype=np.float64))
            return _as_booleans(labels) if dtype == nw.Boolean else labels
        return labels_of_array(np.asarray(series.to_numpy()))
    text = series if dtype == nw.String else series.cast(nw.String)
    read = text_codes(text.to_native(), len(text))
    quick = Labels(*read) if read is not None else _few_labels(text)
    if quick is not None:
        return quick
    # Hash the text once, in the frame's own library, and let numpy see only the distinct values.
    distinct = text.drop_nulls().unique().to_list()
    order = {label: code for code, label in enumerate(sorted(map(str, distinct)))}
    if not order:
        return Labels(np.full(len(series), -1, dtype=np.intp), ())
    missing = text.is_null().to_numpy().astype(bool)
    # A library may cut off the end of the text it fills in, so that it is no longer among the labels.
    filler = next((label for label in order if not label.endswith("\0")), None)
    if missing.any() and filler is None:
        return labels_of_array(np.array(text.to_list(), dtype=object))
    filled = text.fill_null(filler) if missing.any() else text
    codes = filled.replace_strict(order, return_dtype=nw.Int64).to_numpy().astype(np.intp)
    return Labels(np.where(missing, -1, codes).astype(np.intp), tuple(order))


def _few_labels(text: nw.Series[Any]) -> Labels | None:
    """Return the labels of text if they are few and some rows show them all; else None."""
    if not _compares_quickly(text):
        return None
    some = set(text.head(_SHOWN_ROWS).drop_nulls().to_list())
    labels = tuple(sorted(some))
    if not 0 < len(labels) <= _FEW_LABELS:
        return None
    places = places_of_text(text, labels)
    if places is None or places.max() > len(labels):
        return None
    codes = places.view(np.int8)
    codes[codes == len(labels)] = -1
    return Labels(codes, labels)


def _compares_quickly(text: nw.Series[Any]) -> bool:
    """Whether the library compares a column of text with one text faster than it looks all texts up."""
    stored = getattr(getattr(text.to_native(), "dtype", None), "storage", None)  # pandas says how
    return text.implementation.is_polars() or stored == "pyarrow"


def _hits(found: nw.Series[Any]) -> npt.NDArray[np.uint8]:
    """Return yes as 1 and no as 0, in an array of its own."""
    hits = found.to_numpy().astype(np.bool_, copy=False).view(np.uint8)
    return hits if hits.flags.writeable else hits.copy()


def places_of_text(text: nw.Series[Any], known: tuple[str, ...]) -> npt.NDArray[Any] | None:
    """Look text up among known labels in one pass; None if that fails because some text is unknown."""
    if not known:
        return None
    read = text_codes(text.to_native(), len(text))
    if read is not None:
        codes, labels = read
        order = {label: place for place, label in enumerate(known)}
        return recode(codes, np.array([*(order.get(label, len(known) + 1) for label in labels), len(known)], np.uint16))
    missing = text.is_null().to_numpy().astype(bool) if text.null_count() else None
    filled = text if missing is None else text.fill_null(known[0])
    if len(known) <= _FEW_LABELS and _compares_quickly(text):
        codes = np.full(len(text), len(known) + 1, np.uint8)
        for place, label in enumerate(known):
            hit = _hits(filled == label)
            np.subtract(codes, np.multiply(hit, np.uint8(len(known) + 1 - place), out=hit), out=codes)
        if missing is not None:
            codes[missing] = len(known)
        return codes
    try:
        codes = filled.replace_strict(known, range(len(known)), return_dtype=nw.UInt16).to_numpy()
    except Exception:  # each library has its own for text that is not among the known
        return None
    return codes if missing is None else np.where(missing, len(known), codes)


def narrow(codes: npt.NDArray[Any], n_labels: int) -> npt.NDArray[np.int8 | np.int16 | np.intp]:
    """Store codes in as few bytes as they need."""
    dtype = np.int8 if n_labels <= 2**7 else np.int16 if n_labels <= 2**15 else np.intp
    return codes.astype(dtype, copy=False)


def _few_whole_numbers(array: npt.NDArray[Any]) -> Labels | None:
    """Return the labels of whole numbers that lie close together, without sorting them; else None."""
    if array.dtype.kind not in "iuf" or not array.size:
        return None
    values = np.ascontiguousarray(array)  # a column of a matrix is far slower to read
    low, high = values.min(), values.max()
    missing = np.isnan(values) if low != low else None
    if missing is not None:
        known = values[~missing]
        if not known.size:
            return None
        low, high = known.min(), known.max()
        values = np.where(missing, low, values)
    if not (low > -_NEAR_ZERO and high < _NEAR_ZERO):
        return None
    whole = values.astype(np.int32)
    if values.dtype.kind == "f" and not (whole == values).all():
        return None
    whole -= np.int32(low)
    seen = np.bincount(whole) > 0
    codes = whole if seen.all() else (np.cumsum(seen, dtype=np.int32) - np.int32(1))[whole]
    if missing is not None:
        codes[missing] = -1
    return Labels(codes, tuple(label_of(int(v)) for v in np.flatnonzero(seen) + int(low)))


def _as_booleans(text: Labels) -> Labels:
    return Labels(text.codes, tuple({"0": "False", "1": "True"}[t] for t in text.labels))


def labels_of_array(array: npt.NDArray[Any]) -> Labels:
    """Return the labels of an array, numbers in the order of numbers."""
    few = _few_whole_numbers(array)
    if few is not None:
        return few
    if array.dtype.kind in "iub":
        values, codes = np.unique(array, return_inverse=True)
        return Labels(codes.astype(np.intp), tuple(label_of(v) for v in values))
    if array.dtype.kind == "f":
        values, codes = np.unique(array, return_inverse=True)  # one NaN, sorted last
        n_real = int((~np.isnan(values)).sum())
        codes = np.where(codes >= n_real, -1, codes).astype(np.intp)
        return Labels(codes, tuple(label_of(float(v)) for v in values[:n_real]))
    numbers = floats_or_none(array) if array.dtype == object else None
    if numbers is not None:
        return labels_of_array(numbers)  # in the order of numbers, as elsewhere
    text = [None if is_missing(v) else label_of(v) for v in array]
    order = {label: code for code, label in enumerate(sorted({t for t in text if t is not None}))}
    codes = np.fromiter((-1 if t is None else order[t] for t in text), dtype=np.intp, count=len(text))
    return Labels(codes, tuple(order))
