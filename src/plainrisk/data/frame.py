"""Rows as columns of numbers and labels: the only place that knows pandas, polars and arrow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from plainrisk._native import recode
from plainrisk.data.columns import (
    Labels,
    filled,
    floats_or_none,
    is_missing,
    labels_of_array,
    labels_of_series,
    narrow,
    numbers_of,
    places_of_text,
    refuse_infinity,
)
from plainrisk.errors import DataError, did_you_mean

__all__ = ["Frame", "Labels", "Places", "as_frame", "column_of", "frame_like", "native_rows"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Places:
    """A column as places among known labels; ``len(known)`` is missing, and one more is none of them."""

    codes: npt.NDArray[np.unsignedinteger[Any]]
    known: tuple[str, ...]

    def __getitem__(self, rows: Any) -> Places:
        return Places(self.codes[rows], self.known)


@dataclass(frozen=True)
class Frame:
    """A table of named columns.

    Attributes
    ----------
    names : the column names, in order
    columns : narwhals series or numpy arrays of one length, by name
    named : False if the rows came without column names (numpy), and the names are x0, x1, ...
    first : where these rows start in all of them, for messages
    matrix : the columns as one array of floats, if it is stored row by row, so that its columns are slow to read
    """

    names: tuple[str, ...]
    columns: Mapping[str, Any]
    n_rows: int
    named: bool = True
    _labels: dict[str, Labels] = field(default_factory=dict, init=False, repr=False, compare=False)
    first: int = 0
    matrix: npt.NDArray[np.floating[Any]] | None = field(default=None, repr=False)

    def column(self, name: str) -> Any:
        """Return one column as it is stored, or say which columns there are."""
        try:
            return self.columns[name]
        except KeyError:
            raise DataError(f"Data: there is no column {name!r}.{did_you_mean(name, self.names)}") from None

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers (booleans do not count)."""
        column = self.column(name)
        if isinstance(column, np.ndarray):
            is_object = column.dtype == object
            return column.dtype.kind in "iuf" or (is_object and floats_or_none(column) is not None)
        return bool(column.dtype.is_numeric())

    def numbers(self, name: str) -> Floats:
        """Return one column as float64 with NaN for missing; text and infinity raise and name the row."""
        values = numbers_of(name, self.column(name), self.first)
        refuse_infinity(name, values, self.first)
        return values

    def measures(self, name: str, room: Floats | None = None) -> tuple[Floats | npt.NDArray[np.integer[Any]], bool]:
        """Return one column as `numbers` does, small integers as they are, and whether it is known to be complete.

        A copy, where one is needed, is made in `room`.
        """
        column = self.column(name)
        if isinstance(column, nw.Series) and column.dtype.is_integer() and not column.null_count():
            column = np.asarray(column.to_numpy())
        # Integers of up to 32 bits are the same numbers as floats; larger ones may be rounded.
        if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.itemsize <= 4:
            return np.ascontiguousarray(column), True
        values = numbers_of(name, column, self.first, room)
        return values, refuse_infinity(name, values, self.first)

    def require_numbers(self, name: str) -> None:
        """Raise as `measures` does; most columns of data frames need not become arrays for it."""
        column = self.column(name)
        if isinstance(column, nw.Series):
            dtype = column.dtype
            # A sum passes over missing values, and is finite unless some value is not. pandas is slow at it.
            quick = dtype.is_float() and not column.implementation.is_pandas_like()
            if dtype.is_integer() or (quick and math.isfinite(column.sum())):
                return
        self.measures(name)

    def places(self, name: str, known: tuple[str, ...]) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return the place of each row's text among known labels; missing and unknown text come after the last."""
        column = self.column(name)
        if isinstance(column, Places) and column.known == known:
            return column.codes
        dtype = np.uint8 if len(known) + 2 <= 256 else np.uint16
        if name not in self._labels and isinstance(column, nw.Series) and column.dtype == nw.String:
            found = places_of_text(column, known)
            if found is not None:
                return found.astype(dtype, copy=False)
        read = self.labels(name)
        order = {label: place for place, label in enumerate(known)}
        # One entry per distinct label of the data, and one more at the end, which code -1 (missing) reaches.
        reached = [order.get(label, len(known) + 1) for label in read.labels]
        table: npt.NDArray[np.unsignedinteger[Any]] = np.array([*reached, len(known)], dtype=dtype)
        return recode(read.codes, table)

    def prepared(self, wanted: Mapping[str, tuple[str, ...] | None]) -> Frame:
        """Return the wanted columns as arrays, which are quick to cut: numbers, and places among known labels."""
        if self.matrix is not None:
            return self
        columns = {name: self.array(name, known) for name, known in wanted.items()}
        return Frame(tuple(columns), columns, self.n_rows, self.named, first=self.first)

    def array(self, name: str, known: tuple[str, ...] | None = None) -> Any:
        """Return one column as an array where it holds numbers; else as it is, or as places among known labels."""
        column = self.column(name)
        if isinstance(column, nw.Series) and column.dtype.is_numeric():
            return filled(column)
        is_array = isinstance(column, np.ndarray) and column.dtype != object
        return column if is_array or known is None else Places(self.places(name, known), known)

    def labels(self, name: str) -> Labels:
        """Return one column as codes of text labels; text is read once, and then kept as small integers."""
        if name not in self._labels:
            column = self.column(name)
            found = labels_of_array(column) if isinstance(column, np.ndarray) else labels_of_series(column)
            self._labels[name] = Labels(narrow(found.codes, len(found.labels)), found.labels)
        return self._labels[name]

    def has_labels(self, name: str) -> bool:
        """Whether a column was read as labels."""
        return name in self._labels

    def take(self, start: int, stop: int) -> Frame:
        """Return the rows from `start` up to `stop`."""
        columns = {name: column[start:stop] for name, column in self.columns.items()}
        n_rows = max(0, min(stop, self.n_rows) - start)
        matrix = None if self.matrix is None else self.matrix[start:stop]
        block = Frame(self.names, columns, n_rows, self.named, self.first + start, matrix)
        block._labels.update({n: Labels(read.codes[start:stop], read.labels) for n, read in self._labels.items()})
        return block

    def rows(self, index: npt.NDArray[np.intp]) -> Frame:
        """Return the rows at these positions."""
        columns = {name: column[index] for name, column in self.columns.items()}
        return Frame(self.names, columns, len(index), self.named)

    def renamed(self, names: Sequence[str]) -> Frame:
        """Return the same columns under other names, by position."""
        columns = {new: self.columns[old] for new, old in zip(names, self.names, strict=True)}
        return Frame(tuple(names), columns, self.n_rows, named=True, matrix=self.matrix)


def as_frame(X: Any) -> Frame:
    """Read any table: a data frame narwhals knows, a 2-d array, a dict of columns, or a dict of one row.

    >>> as_frame({"age": 31, "job": "clerk"}).n_rows
    1
    """
    if isinstance(X, Frame):
        return X
    if isinstance(X, np.ndarray):
        return _frame_from_array(X)
    if isinstance(X, Mapping) and not hasattr(X, "toarray"):  # a sparse matrix may be a mapping too
        return _frame_from_mapping(X)
    try:
        native = nw.from_native(X, pass_through=True)
        if isinstance(native, nw.DataFrame):
            return _frame_from_dataframe(native)
    except nw.exceptions.DuplicateError:
        # narwhals refuses before the names can be had from it.
        names = list(getattr(X, "column_names", None) or X.columns)
        raise _repeated_name([str(name) for name in names]) from None
    if isinstance(native, nw.LazyFrame):
        raise DataError("Data: a lazy frame was given. Call .collect() on it first.")
    if hasattr(X, "batches"):
        raise DataError("Data: rows in batches can be fitted, no more. Go through X.batches() for the rest.")
    return _frame_from_array(X)


def column_of(values: Any) -> Labels:
    """Read one sequence (the target, a group) as labels."""
    column = _as_column(values)
    return labels_of_array(column.ravel()) if isinstance(column, np.ndarray) else labels_of_series(column)


def frame_like(columns: Mapping[str, Any], like: Any = None) -> Any:
    """Return a data frame of the library `like` came from; pandas, else polars, where it came from none."""
    native = nw.from_native(like, pass_through=True) if like is not None else None
    if isinstance(native, nw.DataFrame):
        return nw.from_dict(dict(columns), backend=native.implementation).to_native()
    for library in ("pandas", "polars", "pyarrow"):
        try:
            return nw.from_dict(dict(columns), backend=library).to_native()
        except ImportError:
            continue
    raise DataError("Data: no data frame library is installed: pip install pandas, or polars.")


def native_rows(frame: Frame, features: tuple[str, ...]) -> Any:
    """Return some columns in the library they came from, or as a matrix if they were arrays."""
    columns = [frame.column(name) for name in features]
    if all(isinstance(c, np.ndarray) for c in columns):
        return np.column_stack(columns)
    frames = [
        nw.from_native(frame_like({n: c})) if isinstance(c, np.ndarray) else c.alias(n).to_frame()
        for n, c in zip(features, columns, strict=True)
    ]
    return nw.concat(frames, how="horizontal").to_native()


def _frame_from_dataframe(frame: nw.DataFrame[Any]) -> Frame:
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise _repeated_name(names)
    # By position: the names of a pandas frame may be numbers, which would pick rows.
    columns = {name: _plain(column) for name, column in zip(names, frame.iter_columns(), strict=True)}
    return Frame(tuple(names), columns, len(frame))


def _repeated_name(names: Sequence[str]) -> DataError:
    name = next(n for n in sorted(names) if names.count(n) > 1)
    return DataError(f"Data: column {name!r} appears {names.count(name)} times. Rename one.")


def _plain(series: nw.Series[Any]) -> Any:
    """Put away two kinds of storage that the libraries cannot compute with."""
    if isinstance(series.dtype, nw.Object):
        return series.to_numpy()
    if series.implementation.is_pyarrow() and str(series.to_native().type) == "string_view":
        # What polars exports; arrow has no kernels for it yet.
        return nw.from_native(series.to_native().cast("large_string"), series_only=True)
    return series


def _frame_from_mapping(mapping: Mapping[Any, Any]) -> Frame:
    columns = {str(k): _as_column(v) for k, v in mapping.items()}
    if len(columns) < len(mapping):
        raise _repeated_name([str(k) for k in mapping])
    flat = [name for name, column in columns.items() if getattr(column, "ndim", 1) != 1]
    if flat:
        raise DataError(f"Data: column {flat[0]!r} must be one value or a flat list of values.")
    lengths = {len(c) for c in columns.values()}
    if len(lengths) > 1:
        raise DataError(f"Data: the columns have different lengths: {sorted(lengths)}.")
    return Frame(tuple(columns), columns, lengths.pop() if lengths else 0)


def _as_column(value: Any) -> Any:
    series = nw.from_native(value, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _plain(series)
    if isinstance(value, np.ndarray):
        value = np.atleast_1d(value)
    elif isinstance(value, str | bytes) or not isinstance(value, Iterable):
        value = [value]
    elif not isinstance(value, Sequence):
        value = list(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise DataError("Data: a column must be one value or a flat list of values, not lists in a list.") from None
    # numpy would turn [1, "a"] and [None, "a"] into text; keep what was meant.
    return np.asarray(value, dtype=object) if array.dtype.kind in "OUS" else array


def _frame_from_array(X: Any) -> Frame:
    # scikit-learn's own checks and messages: sparse, complex, 1-d, ragged and empty input.
    from sklearn.utils import check_array

    array = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=1)
    if array.dtype == object:
        _check_cells(array)
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    columns = {name: array[:, j] for j, name in enumerate(names)}
    by_rows = array.dtype.kind == "f" and array.flags.c_contiguous and array.shape[1] > 1
    return Frame(names, columns, array.shape[0], named=False, matrix=array if by_rows else None)


def _check_cells(array: npt.NDArray[Any]) -> None:
    scalar = (str, bytes, int, float, bool, np.generic, type(None))
    for j in range(array.shape[1]):
        for i, value in enumerate(array[:, j]):
            if not isinstance(value, scalar) and not is_missing(value):
                raise TypeError(
                    f"Data: column x{j}, row {i}: argument must be a string or a real number, "
                    f"not {type(value).__name__}."
                )
