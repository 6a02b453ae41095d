"""Rows as columns of numbers and labels: the only place that knows pandas, polars and arrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np

from plainrisk._types import Array, Floats, Index
from plainrisk.data.columns import (
    Labels,
    array_of,
    floats_or_none,
    is_missing,
    labels_of,
    numbers_of,
    refuse_fractions,
    refuse_infinity,
    unmasked,
)
from plainrisk.errors import DataError, did_you_mean

__all__ = [
    "Frame",
    "Labels",
    "Origin",
    "as_frame",
    "checked_by_sklearn",
    "column_of",
    "frame_like",
    "native_rows",
    "position_names",
    "refuse_other_order",
]

_PLAIN = (bool, float, int, str, type(None))  # one value; narwhals need not be asked


@dataclass(frozen=True)
class Origin:
    """The place of the rows, so that results about them are stored there.

    Attributes
    ----------
    library : of their data frame
    index : in pandas, the label of every row; else None
    """

    library: nw.Implementation
    index: Any = None

    def take(self, rows: slice | Index) -> Origin:
        """Return the origin of some of the rows, by position."""
        return self if self.index is None else replace(self, index=self.index[rows])

    def repeat(self, times: int) -> Origin:
        """Return the origin of a table with this many lines per row, one after the other."""
        return self if self.index is None else replace(self, index=self.index.repeat(times))


@dataclass(frozen=True)
class Frame:
    """A table of named columns.

    Attributes
    ----------
    names : the column names, in order
    columns : narwhals series or numpy arrays of one length, by name
    named : False if the rows came without column names (numpy), and the names are x0, x1, ...
    first : where these rows start in all of them, for messages
    origin : where they came from; None for arrays and dicts
    """

    names: tuple[str, ...]
    columns: Mapping[str, Any]
    n_rows: int
    named: bool = True
    _labels: dict[str, Labels] = field(default_factory=dict, init=False, repr=False, compare=False)
    first: int = 0
    origin: Origin | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return self.n_rows

    def column(self, name: str) -> Any:
        """Return one column as it is stored, or raise an error with the names of the columns."""
        try:
            return self.columns[name]
        except KeyError:
            raise DataError(f"Data: there is no column {name!r}.{did_you_mean(name, self.names)}") from None

    def only_value(self, name: str) -> Any:
        """Return the value of a column of one row if it is stored unchanged, else the frame itself."""
        column = self.column(name)
        is_plain = isinstance(column, np.ndarray) and column.dtype.kind != "M"  # whose item may be a number
        return column.item() if self.n_rows == 1 and is_plain else self

    def is_numeric(self, name: str) -> bool:
        """Whether a column is numeric (booleans do not count)."""
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

    def array(self, name: str) -> Array | None:
        """Return a column of numbers as it is stored, or as floats with NaN where some are missing; None for others."""
        return array_of(self.column(name))

    def labels(self, name: str) -> Labels:
        """Return one column as codes of text labels; text is read once and then kept as small integers."""
        if name not in self._labels:
            self._labels[name] = labels_of(self.column(name), name)
        return self._labels[name]

    def refuse_fractions(self, name: str) -> None:
        """Raise an error if a column of categories contains decimals with a fraction."""
        refuse_fractions(name, self.column(name))

    def take(self, start: int, stop: int) -> Frame:
        """Return the rows from `start` up to `stop`."""
        columns = {name: column[start:stop] for name, column in self.columns.items()}
        n_rows = max(0, min(stop, self.n_rows) - start)
        origin = None if self.origin is None else self.origin.take(slice(start, stop))
        block = Frame(self.names, columns, n_rows, self.named, self.first + start, origin)
        block._labels.update({n: Labels(read.codes[start:stop], read.labels) for n, read in self._labels.items()})
        return block

    def rows(self, index: Index) -> Frame:
        """Return the rows at these positions."""
        columns = {name: column[index] for name, column in self.columns.items()}
        origin = None if self.origin is None else self.origin.take(index)
        return Frame(self.names, columns, len(index), self.named, origin=origin)

    def renamed(self, names: Sequence[str]) -> Frame:
        """Return the same columns under other names, by position."""
        columns = {new: self.columns[old] for new, old in zip(names, self.names, strict=True)}
        return replace(self, names=tuple(names), columns=columns, named=True)

    def select(self, names: Sequence[str]) -> Frame:
        """Return some of the columns, each as it was read."""
        chosen = tuple(dict.fromkeys(names))
        part = replace(self, names=chosen, columns={name: self.column(name) for name in chosen})
        part._labels.update({name: self._labels[name] for name in chosen if name in self._labels})
        return part


def as_frame(X: Any, columns: Sequence[str] | None = None) -> Frame:
    """Read any table: a data frame narwhals knows, a 2-d array, a dict of columns, a dict of one row, a list of these.

    Parameters
    ----------
    X : rows
    columns : names for rows that have none, in the order of their columns

    >>> as_frame({"age": 31, "job": "clerk"}).n_rows
    1
    >>> as_frame([[31, 2]], columns=["age", "children"]).names
    ('age', 'children')
    """
    return _frame_of(X) if columns is None else _with_names(_frame_of(X), columns)


def _with_names(frame: Frame, columns: Sequence[str]) -> Frame:
    """Give rows without names the caller's names."""
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise DataError("Data: columns must be a list of column names, which are text.")
    if frame.named:
        if frame.names == tuple(columns):
            return frame
        raise DataError("Data: columns=[...] is for rows without names, but these have other names. Leave it out.")
    if len(columns) != len(frame.names):
        raise DataError(f"Data: columns lists {len(columns)} names, but the rows have {len(frame.names)} columns.")
    if len(set(columns)) < len(columns):
        raise _repeated_name(list(columns))
    return frame.renamed(columns)


def _frame_of(X: Any) -> Frame:
    if isinstance(X, Frame):
        return X
    if isinstance(X, np.ndarray):
        return _frame_from_array(X)
    if isinstance(X, Mapping) and not hasattr(X, "toarray"):  # a sparse matrix may be a mapping too
        return _frame_from_mapping(X)
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return _frame_from_records(X)
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


def position_names(n: int) -> tuple[str, ...]:
    """Return the names of the columns of rows that have none: x0, x1, ..."""
    return tuple(f"x{j}" for j in range(n))


def column_of(values: Any) -> Labels:
    """Read one sequence (the target, a group) as labels, which do not change."""
    if isinstance(values, Labels):
        return values
    column = _as_column(values)
    return labels_of(column.ravel() if isinstance(column, np.ndarray) else column)


def frame_like(columns: Mapping[str, Any], like: Any = None, origin: Origin | None = None) -> Any:
    """Return a data frame of the library of `like`, or else of the rows; without one, pandas or else polars.

    In pandas its lines have the labels of the rows.
    """
    native = nw.from_native(like, pass_through=True) if like is not None else None
    known = native.implementation if isinstance(native, nw.DataFrame) else None if origin is None else origin.library
    libraries: tuple[Any, ...] = ("pandas", "polars", "pyarrow") if known is None else (known,)
    for library in libraries:
        try:
            frame = nw.from_dict(dict(columns), backend=library)
        except ImportError:
            continue
        found = frame.to_native()
        if origin is not None and origin.index is not None and frame.implementation.is_pandas_like():
            found.index = origin.index.copy()  # its names are the caller's to change
        return found
    raise DataError("Data: no data frame library is installed: pip install pandas, or polars.")


def refuse_other_order(X: Any, **given: Any) -> None:
    """Raise if something given for the rows of X has their pandas labels in another order: it is read by position."""
    index = _index_of(X.origin if isinstance(X, Frame) else X)
    for name, values in given.items():
        other = _index_of(values)
        if index is None or other is None or index.nlevels != other.nlevels or index.equals(other):
            continue
        if len(index) == len(other) and index.isin(other).all() and other.isin(index).all():
            raise DataError(
                f"Data: {name} has the index of X in another order, but rows are matched by position. "
                f"Give {name}.loc[X.index], or {name}.to_numpy() if it is in the order of X."
            )


def _index_of(values: Any) -> Any:
    """Return the labels of a frame, a series or an origin in pandas; None for anything else, such as a list."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "isin") else None


def native_rows(frame: Frame, features: Sequence[str]) -> Any:
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
    origin = Origin(frame.implementation, nw.maybe_get_index(frame))
    return Frame(tuple(names), columns, len(frame), origin=origin)


def _repeated_name(names: Sequence[str]) -> DataError:
    name = next(n for n in sorted(names) if names.count(n) > 1)
    return DataError(f"Data: column {name!r} appears {names.count(name)} times. Rename one.")


def _plain(series: nw.Series[Any]) -> Any:
    """Put away kinds of storage that the libraries cannot compute with."""
    if isinstance(series.dtype, nw.Object):
        return series.to_numpy()
    if isinstance(series.dtype, nw.Unknown) and series.implementation.is_pandas_like():
        array = series.to_numpy()  # sparse, foreign byte order, more than 64 bits
        return array.astype(array.dtype.newbyteorder("=")) if array.dtype.kind in "iufc" else series
    if series.implementation.is_pyarrow() and str(series.to_native().type) == "string_view":
        # What polars exports; arrow has no kernels for it yet.
        return nw.from_native(series.to_native().cast("large_string"), series_only=True)
    return series


def _frame_from_records(rows: Sequence[Mapping[Any, Any]]) -> Frame:
    """Read rows given as dicts with one value per column, all with the same columns."""
    names = list(rows[0])
    for i, row in enumerate(rows):
        odd = set(names).symmetric_difference(row)
        if odd:
            name = min(map(str, odd))
            raise DataError(f"Data: row {i} and row 0 differ in column {name!r}. All rows need the same columns.")
    return _frame_from_mapping({name: [row[name] for row in rows] for name in names})


def _frame_from_mapping(mapping: Mapping[Any, Any]) -> Frame:
    unusual = [(name, value) for name, value in mapping.items() if type(value) not in _PLAIN]
    nested = [name for name, value in unusual if isinstance(value, Mapping | set | frozenset)]
    if nested:
        raise DataError(f"Data: column {nested[0]!r} must be one value or a flat list of values.")
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
    if type(value) in _PLAIN:
        return np.array([value], dtype=object if value is None or type(value) is str else None)
    if type(value) is not list:  # no library's column, and asking for each costs more than scoring a few rows
        series = nw.from_native(value, series_only=True, pass_through=True)
        if isinstance(series, nw.Series):
            return _plain(series)
    if isinstance(value, np.ndarray):
        value = unmasked(np.atleast_1d(value))
    elif isinstance(value, str | bytes) or not isinstance(value, Iterable):
        value = [value]
    elif not isinstance(value, Sequence):
        value = list(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise DataError("Data: a column must be one value or a flat list of values, not lists in a list.") from None
    # numpy would turn [1, "a"] and [None, "a"] into text, and [1, True] into numbers; keep what was meant.
    mixed = array.dtype.kind in "iuf" and not isinstance(value, np.ndarray) and bool in set(map(type, value))
    return np.asarray(value, dtype=object) if mixed or array.dtype.kind in "OUS" else array


def _frame_from_array(X: Any) -> Frame:
    # scikit-learn's own checks and messages: sparse, complex, 1-d, ragged and empty input.
    from sklearn.utils import check_array

    with checked_by_sklearn():
        X = unmasked(X)
        array = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=1)
    if array.dtype == object:
        _check_cells(array)
    names = position_names(array.shape[1])
    columns = {name: array[:, j] for j, name in enumerate(names)}
    return Frame(names, columns, array.shape[0], named=False)


@contextlib.contextmanager
def checked_by_sklearn() -> Iterator[None]:
    """Turn an error of scikit-learn's checks into one of ours, without the quoted values."""
    try:
        with np.errstate(invalid="ignore"):  # it casts outcomes to whole numbers to see whether they are
            yield
    except DataError:
        raise
    except ValueError as error:
        lines = [line.rstrip(" .:") for line in str(error).splitlines()]
        said = [line for line in lines[:1] + [line for line in lines[1:] if line.startswith("Reshape")] if line]
        raise DataError(f"Data: {'. '.join(said)}.") from None


def _check_cells(array: Array) -> None:
    scalar = (str, bytes, int, float, bool, np.generic, type(None))
    for j in range(array.shape[1]):
        for i, value in enumerate(array[:, j]):
            if not isinstance(value, scalar) and not is_missing(value):
                raise TypeError(
                    f"Data: column x{j}, row {i}: argument must be a string or a real number, "
                    f"not {type(value).__name__}."
                )
