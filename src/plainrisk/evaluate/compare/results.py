"""The input of every comparison: data sets x classifiers, in any form a user has it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, PlainriskWarning, did_you_mean
from plainrisk.evaluate.compare.tables import Cell, Table, Tabular

__all__ = ["Floats", "Results", "as_results", "check_choice", "locked", "paired_differences"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Results(Tabular):
    """One figure per data set and classifier, complete and finite.

    Attributes
    ----------
    values : (N, k) array
    classifiers : the k names of the columns
    datasets : the N names of the rows
    """

    values: Floats
    classifiers: tuple[str, ...]
    datasets: tuple[str, ...]

    def __post_init__(self) -> None:
        values = locked(np.array(self.values, dtype=np.float64))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "classifiers", tuple(map(str, self.classifiers)))
        object.__setattr__(self, "datasets", tuple(map(str, self.datasets)))
        if values.shape != (len(self.datasets), len(self.classifiers)):
            raise DataError(
                f"Results: {len(self.datasets)} data sets and {len(self.classifiers)} classifiers are named, "
                f"but the values have shape {values.shape}. Give rows per data set, columns per classifier."
            )
        _check_names(self.classifiers, "classifier", "Rename one.")
        _check_names(self.datasets, "data set", "The tests need one row per data set: average repeats first.")
        _check_cells(self)

    def _table(self) -> Table:
        rows: list[list[Cell]] = [
            [name, *map(float, row)] for name, row in zip(self.datasets, self.values, strict=True)
        ]
        return Table(("dataset", *self.classifiers), rows)


def as_results(
    table: Any,
    *,
    classifiers: Sequence[str] | None = None,
    datasets: str | Sequence[str] | None = None,
    missing: str = "raise",
) -> Results:
    """Read a table of data sets x classifiers.

    Parameters
    ----------
    table : data frame, dict, 2-d array or Results
        In a frame the first column that is not numeric names the data sets, else the index of a pandas
        frame does; every other column is a classifier. A dict holds one list per classifier.
    classifiers : names of the columns
        For a frame or a dict: which columns to take, in this order. An array is named C1, C2, ... without it.
    datasets : names of the rows, or the name of the column that holds them
        Rows that have no names are called D1, D2, ...
    missing : {"raise", "drop"}
        What to do with a data set that lacks a value: raise an error, or leave it out with a warning.

    >>> as_results({"ARM1": [0.79, 0.86], "XGB": [0.78, 0.87]}, datasets=["HELOC", "GMSC"]).classifiers
    ('ARM1', 'XGB')
    """
    check_choice("as_results", "missing", missing, ("raise", "drop"))
    if isinstance(table, Results):
        return _selected(table, classifiers, datasets)
    if isinstance(table, Mapping) or hasattr(type(table), "columns"):
        values, columns, rows = _read_frame(table, classifiers, datasets)
    else:
        values, columns, rows = _read_array(table, classifiers, datasets)
    if missing == "drop":
        values, rows = _drop_incomplete(values, rows)
    return Results(values, columns, rows)


def paired_differences(a: npt.ArrayLike, b: npt.ArrayLike, scale: float | None = None) -> Floats:
    """Return a - b, rounded to about 2**-44 of the largest value so that equal decimals differ equally.

    In binary 0.3 - 0.2 is not 0.2 - 0.1. Ranks of differences would see that as a difference: a tie lost
    to noise, and a p-value that changes when the table is written in percent.
    """
    first, second = _vector(a, "a"), _vector(b, "b")
    if first.shape != second.shape:
        raise DataError(
            f"Paired values: a has {first.size} and b has {second.size} values. Give one pair per data set."
        )
    if scale is None:
        scale = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    # A power of two: what binary holds exactly is not rounded.
    step = np.ldexp(1.0, int(np.frexp(scale)[1]) - 44)
    return np.asarray(np.round((first - second) / step) * step)


def locked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only, so that a frozen result is frozen."""
    array.flags.writeable = False
    return array


def check_choice(who: str, name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise an error unless `value` is one of the allowed words."""
    if value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise DataError(f"{who}: {name} must be one of {words}; got {value!r}.{did_you_mean(value, allowed)}")


def _vector(values: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"Paired values: {name} must be a list of numbers; got an array of shape {array.shape}.")
    if not np.isfinite(array).all():
        place = int(np.argmin(np.isfinite(array)))
        raise DataError(f"Paired values: {name}[{place}] is {array[place]}. Leave out that pair.")
    return array


Parts = tuple[Floats, tuple[str, ...], tuple[str, ...]]


def _read_array(table: Any, classifiers: Sequence[str] | None, datasets: str | Sequence[str] | None) -> Parts:
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2:
        raise DataError(
            "Results: the table must be a data frame, a dict of lists or a 2-d array of numbers, "
            f"data sets x classifiers; got {type(table).__name__}."
        )
    if isinstance(datasets, str):
        raise DataError(f"Results: an array has no column {datasets!r}. Give the data sets' names as a list.")
    columns = _numbered("C", values.shape[1]) if classifiers is None else tuple(classifiers)
    rows = _numbered("D", values.shape[0]) if datasets is None else tuple(datasets)
    return values, columns, rows


def _read_frame(table: Any, classifiers: Sequence[str] | None, datasets: str | Sequence[str] | None) -> Parts:
    frame = as_frame(table)
    text = [name for name in frame.names if not frame.is_numeric(name) and frame.labels(name).labels]
    key = datasets if isinstance(datasets, str) else (text[0] if text else None)
    columns = tuple(n for n in frame.names if n != key) if classifiers is None else tuple(classifiers)
    unknown = [name for name in columns if name not in frame.names or name == key]
    if unknown:
        known = [n for n in frame.names if n != key]
        raise DataError(f"Results: there is no classifier {unknown[0]!r}.{did_you_mean(unknown[0], known)}")
    wrong = [name for name in columns if name in text]
    if wrong:
        raise DataError(
            f"Results: column {wrong[0]!r} holds text, and {key!r} already names the data sets. "
            "Leave it out, or list the classifiers' columns in classifiers=[...]."
        )
    values = [_numbers(frame, name) for name in columns]
    stacked = np.column_stack(values) if values else np.empty((frame.n_rows, 0))
    return stacked, columns, _row_names(table, frame, key, datasets)


def _numbers(frame: Frame, name: str) -> Floats:
    try:
        return frame.numbers(name)
    except DataError as error:
        raise DataError(f"Results: classifier {name!r} holds a value that is not a finite number. {error}") from error


def _row_names(table: Any, frame: Frame, key: str | None, datasets: str | Sequence[str] | None) -> tuple[str, ...]:
    if datasets is not None and not isinstance(datasets, str):
        return tuple(datasets)
    if key is not None:
        labels = frame.labels(key)
        if (labels.codes < 0).any():
            row = int(np.argmax(labels.codes < 0))
            raise DataError(f"Results: row {row} has no data set name in column {key!r}. Fill it in.")
        return tuple(labels.labels[code] for code in labels.codes)
    # A pandas index that was never set counts rows and says nothing about data sets.
    index = getattr(table, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return _numbered("D", frame.n_rows)
    return tuple(map(str, index))


def _selected(table: Results, classifiers: Sequence[str] | None, datasets: str | Sequence[str] | None) -> Results:
    if datasets is not None:
        raise DataError("Results: the data sets of a Results have names already. Leave datasets out.")
    if classifiers is None:
        return table
    unknown = [name for name in classifiers if name not in table.classifiers]
    if unknown:
        hint = did_you_mean(unknown[0], table.classifiers)
        raise DataError(f"Results: there is no classifier {unknown[0]!r}.{hint}")
    columns = [table.classifiers.index(name) for name in classifiers]
    return Results(table.values[:, columns], tuple(classifiers), table.datasets)


def _drop_incomplete(values: Floats, rows: tuple[str, ...]) -> tuple[Floats, tuple[str, ...]]:
    incomplete: npt.NDArray[np.bool_] = np.asarray(np.isnan(values).any(axis=1))
    if len(rows) == len(incomplete) and incomplete.any():
        dropped = [repr(name) for name, out in zip(rows, incomplete, strict=True) if out]
        message = f"Results: {len(dropped)} of {len(rows)} data sets lack a value and are left out: "
        warnings.warn(message + ", ".join(dropped) + ".", PlainriskWarning, stacklevel=4)
        rows = tuple(name for name, out in zip(rows, incomplete, strict=True) if not out)
        values = values[~incomplete]
    return values, rows


def _numbered(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(1, count + 1))


def _check_names(names: tuple[str, ...], what: str, remedy: str) -> None:
    if len(names) < 2:
        raise DataError(f"Results: a comparison needs at least 2 {what}s; got {len(names)}.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"Results: {what} {repeated[0]!r} appears {names.count(repeated[0])} times. {remedy}")


def _check_cells(results: Results) -> None:
    wrong = np.argwhere(~np.isfinite(results.values))
    if len(wrong) == 0:
        return
    row, column = map(int, wrong[0])
    where = f"data set {results.datasets[row]!r}, classifier {results.classifiers[column]!r}"
    more = f" ({len(wrong) - 1} more like it)" if len(wrong) > 1 else ""
    if np.isnan(results.values[row, column]):
        raise DataError(
            f"Results: {where}: the value is missing{more}. Fill it in, or pass missing='drop' to leave out "
            "data sets that are not complete."
        )
    raise DataError(f"Results: {where}: the value is infinite{more}. Give a finite number, or leave it missing.")
