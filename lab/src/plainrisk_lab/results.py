"""Tables of a comparison: data sets x classifiers, in any form a user has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plainrisk._types import Bools, Floats
from plainrisk.checks import NOTHING, check_parameters, instance, words
from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, did_you_mean, warn
from plainrisk_lab.tables import Cell, Table, Tabular, locked

__all__ = ["Results", "as_results", "number_array", "paired_differences"]

# A comparison of more data sets than this has their names.
MOST_UNNAMED = 200

_NAMES = NOTHING | instance("a list of names", Sequence, np.ndarray)
READING = {"missing": words("raise", "drop"), "classifiers": _NAMES, "datasets": _NAMES}


@dataclass(frozen=True, eq=False, repr=False)
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
        More than 200 rows without names, or with a column of zeros and ones, are taken for predictions and refused.
    classifiers : names of the columns
        For a frame or a dict: which columns to take, in this order. An array is named C1, C2, ... without it.
    datasets : names of the rows, or the name of the column that holds them
        Rows that have no names are called D1, D2, ...
    missing : {"raise", "drop"}
        What to do with a data set that lacks a value: raise an error, or leave it out with a warning.

    >>> as_results({"ARM1": [0.79, 0.86], "XGB": [0.78, 0.87]}, datasets=["HELOC", "GMSC"]).classifiers
    ('ARM1', 'XGB')
    """
    given = {"missing": missing, "classifiers": classifiers, "datasets": datasets}
    check_parameters("as_results", given, READING)
    if isinstance(table, Results):
        return _selected(table, classifiers, datasets)
    if isinstance(table, Mapping) or hasattr(type(table), "columns"):
        values, columns, rows = _read_frame(table, classifiers, datasets)
    else:
        values, columns, rows = _read_array(table, classifiers, datasets)
    _refuse_predictions(values, columns, rows)
    if missing == "drop":
        values, rows = _drop_incomplete(values, rows)
    return Results(values, columns, rows)


def paired_differences(a: ArrayLike, b: ArrayLike, scale: float | None = None) -> Floats:
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


def number_array(who: str, name: str, values: ArrayLike) -> Floats:
    """Return values as an array of numbers, or raise."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{who}: {name} must be a list of numbers.") from None


def _vector(values: ArrayLike, name: str) -> Floats:
    array = number_array("Paired values", name, values)
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"Paired values: {name} must be a list of numbers; got an array of shape {array.shape}.")
    if not np.isfinite(array).all():
        i = int(np.argmin(np.isfinite(array)))
        raise DataError(f"Paired values: {name}[{i}] is {array[i]}. Leave out that pair.")
    return array


Parts = tuple[Floats, tuple[str, ...], tuple[str, ...]]  # values, names of the columns, names of the rows


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
    key = datasets if isinstance(datasets, str) else next(iter(text), None)
    numeric = tuple(name for name in frame.names if name != key)
    columns = numeric if classifiers is None else tuple(classifiers)
    _require_known(columns, numeric)
    wrong = [name for name in columns if name in text]
    if wrong:
        raise DataError(
            f"Results: column {wrong[0]!r} holds text, and {key!r} already names the data sets. "
            "Leave it out, or list the classifiers' columns in classifiers=[...]."
        )
    values = np.array([_numbers(frame, name) for name in columns]).reshape(len(columns), frame.n_rows).T
    if datasets is not None and not isinstance(datasets, str):
        return values, columns, tuple(datasets)
    return values, columns, _indexed(table, frame.n_rows) if key is None else _named(frame, key)


def _numbers(frame: Frame, name: str) -> Floats:
    try:
        return frame.numbers(name)
    except DataError as error:
        raise DataError(f"Results: classifier {name!r} holds a value that is not a finite number. {error}") from error


def _named(frame: Frame, key: str) -> tuple[str, ...]:
    labels = frame.labels(key)
    if (labels.codes < 0).any():
        row = int(np.argmax(labels.codes < 0))
        raise DataError(f"Results: row {row} has no data set name in column {key!r}. Fill it in.")
    return tuple(labels.labels[code] for code in labels.codes)


def _indexed(table: Any, n_rows: int) -> tuple[str, ...]:
    # A pandas index that was never set counts rows and says nothing about data sets.
    index = getattr(table, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return _numbered("D", n_rows)
    return tuple(map(str, index))


def _numbered(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(1, count + 1))


def _selected(table: Results, classifiers: Sequence[str] | None, datasets: str | Sequence[str] | None) -> Results:
    if datasets is not None:
        raise DataError("Results: the data sets of a Results have names already. Leave datasets out.")
    if classifiers is None:
        return table
    _require_known(classifiers, table.classifiers)
    columns = [table.classifiers.index(name) for name in classifiers]
    return Results(table.values[:, columns], tuple(classifiers), table.datasets)


def _require_known(names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise DataError(f"Results: there is no classifier {name!r}.{did_you_mean(name, known)}")


def _drop_incomplete(values: Floats, rows: tuple[str, ...]) -> tuple[Floats, tuple[str, ...]]:
    complete: Bools = np.logical_not(np.isnan(values).any(axis=1))
    if len(rows) != len(complete) or complete.all():
        return values, rows
    dropped = ", ".join(repr(name) for name, whole in zip(rows, complete, strict=True) if not whole)
    message = f"Results: {(~complete).sum()} of {len(rows)} data sets lack a value and are left out: {dropped}."
    warn(message)
    return values[complete], tuple(name for name, whole in zip(rows, complete, strict=True) if whole)


def _refuse_predictions(values: Floats, columns: tuple[str, ...], rows: tuple[str, ...]) -> None:
    """Raise if the rows are those of one data set: thousands of "data sets" make every difference significant."""
    if len(values) <= MOST_UNNAMED:
        return
    outcomes = [name for name, column in zip(columns, values.T, strict=False) if np.isin(column, (0.0, 1.0)).all()]
    # Names that are given are texts; D1, D2, ... and 0, 1, ... only count the rows.
    counted = all(str(name).removeprefix("D").isdigit() for name in rows)
    if not (outcomes or counted):
        return
    sign = f"column {outcomes[0]!r} holds zeros and ones only" if outcomes else "no column names data sets"
    raise DataError(
        f"Results: this looks like predictions for the {len(values):,} rows of one data set, since {sign}. "
        "A comparison takes one row per data set, named in the first column, and one figure per classifier, such as "
        "its AUC. Compute the figures with plainrisk.metrics first."
    )


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
