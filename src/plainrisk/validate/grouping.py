"""Groups of rows: columns as they are, numbers in bands, levels of a model, and intersections."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from plainrisk._types import Floats
from plainrisk.data.columns import Labels
from plainrisk.data.frame import as_frame, column_of
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError
from plainrisk.form import RiskForm
from plainrisk.form.wording import say_levels
from plainrisk.schema import label_of
from plainrisk.validate.scored import column_in

__all__ = ["Bands", "groups_by"]

Bands = int | Sequence[float] | Mapping[str, "int | Sequence[float]"] | None

MANY = 30  # distinct numbers: more are put into bands
QUANTILES = 5  # bands by default
MOST = 100  # bands


def groups_by(who: str, X: Any, by: Any, bands: Bands = None, form: RiskForm | None = None) -> Labels:
    """Return the group of every row: by a column, by the intersections of several, or as given.

    `bands` are the lower ends of bands of numbers, or how many bands of about equal size there are; a dict for several
    columns. The form of a model has the levels of its protected features in words.
    """
    names = [by] if isinstance(by, str) else list(by) if isinstance(by, tuple) else None
    if isinstance(bands, Mapping) and set(bands) - set(names or ()):
        raise DataError(f"{who}: bands are of {sorted(bands)}, and by names {names or 'no column'}.")
    if names is None:
        return _banded(who, column_of(by), bands)
    given = bands if isinstance(bands, Mapping) else dict.fromkeys(names, bands)
    columns = [_of_column(who, X, name, given.get(name), form) for name in names]
    return columns[0] if len(columns) == 1 else _crossed(columns)


def _of_column(who: str, X: Any, name: str, bands: Any, form: RiskForm | None) -> Labels:
    column_in(f"{who}: by", name, X)
    frame, feature = as_frame(X), None if form is None else form.schema.features.get(name)
    if feature is None:
        return _banded(who, frame.labels(name), bands)
    frame = frame if feature.reading is None else read_texts(frame, {name: feature.reading})
    shapes = [] if form is None else form.shapes_of(name)
    if bands is not None or not feature.protected or not shapes:
        return _banded(who, frame.labels(name), bands, tuple(map(label_of, feature.special_values)))
    levels = shapes[0].levels
    return Labels(levels.codes(frame, name).astype(np.intp), say_levels(feature, levels))


def _banded(who: str, labels: Labels, bands: Any, special: tuple[str, ...] = ()) -> Labels:
    """Group numbers into bands, if bands are given or there are many numbers; special values remain separate groups."""
    values = _numbers([label for label in labels.labels if label not in special])
    if values is None or (bands is None and len(values) <= MANY):
        if bands is not None:
            raise DataError(f"{who}: bands are of numbers, and the groups are texts.")
        return labels
    measured = np.array([label not in special for label in labels.labels])
    number_of_label = np.where(measured, 0.0, math.nan)
    number_of_label[measured] = values
    numbers = np.append(number_of_label, math.nan)[labels.codes]  # code -1, no value, is the last
    bounds = _bounds(who, QUANTILES if bands is None else bands, numbers[~np.isnan(numbers)])
    band = np.searchsorted(bounds, number_of_label, side="right")
    band[~measured] = len(bounds) + 1 + np.arange((~measured).sum())
    codes = [f"code {label}" for label in labels.labels if label in special]
    names = _names(bounds, whole=bool((values == np.round(values)).all()))
    return Labels(np.append(band, -1)[labels.codes], (*names, *codes))


def _numbers(labels: list[str]) -> Floats | None:
    try:
        values = np.array([float(label) for label in labels])
    except ValueError:
        return None
    return values if len(values) and np.isfinite(values).all() else None


def _bounds(who: str, bands: Any, values: Floats) -> Floats:
    """Return the lower ends of all bands but the first."""
    if isinstance(bands, int | np.integer) and not isinstance(bands, bool):
        if not 2 <= bands <= MOST:
            raise DataError(f"{who}: there may be 2 to {MOST} bands, not {bands}.")
        return np.unique(np.quantile(values, np.arange(1, bands) / bands, method="inverted_cdf"))
    try:
        bounds = np.array(bands, dtype=np.float64)
    except (TypeError, ValueError):
        bounds = np.empty(0)
    if bounds.ndim != 1 or not len(bounds) or not np.isfinite(bounds).all() or (np.diff(bounds) <= 0).any():
        raise DataError(
            f"{who}: bands must be a number of bands, or rising numbers at which they begin, not {bands!r}."
        )
    return bounds


def _names(bounds: Floats, *, whole: bool) -> list[str]:
    """Name the bands.

    >>> _names(np.array([25.0, 35.0]), whole=True), _names(np.array([0.5]), whole=False)
    (['below 25', '25 to 34', '35 and over'], ['below 0.5', '0.5 and over'])
    """
    ends = [
        (label_of(low), label_of(high - 1) if whole else f"below {label_of(high)}") for low, high in pairwise(bounds)
    ]
    inner = [low if low == high else f"{low} to {high}" for low, high in ends]
    return [f"below {label_of(bounds[0])}", *inner, f"{label_of(bounds[-1])} and over"]


def _crossed(columns: Sequence[Labels]) -> Labels:
    """Return the intersections of groups that occur; a row without a group in a column is in "(no group)" there."""
    names = [(*labels.labels, "(no group)") for labels in columns]
    codes = np.stack([np.where(labels.codes < 0, len(labels.labels), labels.codes) for labels in columns])
    cells, cell_of_row = np.unique(codes, axis=1, return_inverse=True)
    crossed = tuple(", ".join(labels[k] for labels, k in zip(names, cell, strict=True)) for cell in cells.T.tolist())
    return Labels(cell_of_row.ravel().astype(np.intp), crossed)
