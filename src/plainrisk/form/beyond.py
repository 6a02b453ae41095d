"""Unusual rows: values unseen in training (out of range, an unknown category), and rows that cannot be scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.data.frame import Frame, as_frame
from plainrisk.errors import DataError, warn
from plainrisk.form.form import RiskForm
from plainrisk.form.levels import Bins, Categories
from plainrisk.form.shapes import Part
from plainrisk.schema import Feature, Schema

__all__ = [
    "ENOUGH",
    "RowCounter",
    "beyond",
    "counts",
    "is_measured",
    "names_beyond",
    "strangers",
    "unusable_rows",
    "unusual",
    "warn_of_strangers",
    "widen_ranges",
]

ENOUGH = 20  # rows that cannot all be new by chance


def beyond(form: RiskForm, frame: Frame) -> dict[str, Bools]:
    """Return, by feature, which rows have a value beyond training; features without such rows are left out."""
    outside_rows = {name: _outside(form, frame, name) for name in form.features}
    return {name: rows for name, rows in outside_rows.items() if rows is not None and rows.any()}


def widen_ranges(ranges: dict[str, tuple[float, float]], schema: Schema, frame: Frame, names: Iterable[str]) -> None:
    """Add to the smallest and the largest measured value of continuous features those of some rows."""
    for name in names:
        values = frame.numbers(name)
        values = values[is_measured(schema.features[name], values)]
        if len(values):
            low, high = ranges.get(name, (math.inf, -math.inf))
            # Adding 0 makes one zero of the two there are.
            ranges[name] = (min(low, float(values.min()) + 0.0), max(high, float(values.max()) + 0.0))


def is_measured(feature: Feature, values: Floats) -> Bools:
    """Return which numbers are measurements: not missing, no code, not below the lower bound."""
    return np.asarray(_measurements(feature).code_numbers(values) == 0)


def _measurements(feature: Feature) -> Bins:
    """Return levels of which the first are measurements, and the last is missing."""
    return Bins((), tuple(map(float, feature.special_values)), feature.lower_bound)


def _outside(form: RiskForm, frame: Frame, name: str) -> Bools | None:
    feature = form.schema.features[name]
    if name in form.ranges:
        low, high = form.ranges[name]
        values = frame.numbers(name)
        return np.asarray(is_measured(feature, values) & ((values < low) | (values > high)))
    levels = _categories(form, name)
    return None if levels is None else np.asarray(levels.codes(frame, name) == len(levels) - 1)


def _categories(form: RiskForm, name: str) -> Categories | None:
    """Return the categories that a form knows of a feature; None if it has none."""
    shapes = [part.shapes[name] for part in form.parts if isinstance(part, Part) and name in part.shapes]
    return next((shape.levels for shape in shapes if isinstance(shape.levels, Categories)), None)


def counts(form: RiskForm, frame: Frame) -> dict[str, dict[str, int]]:
    """Return, by feature, how many values are missing, unseen (categories) and out of range (measurements).

    Counts of none are left out, and so are features without any.

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german", backend="polars")
    >>> form = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target).form_
    >>> counts(form, form.align({**german.frame[0].to_dicts()[0], "Housing": "boat"}))
    {'Housing': {'unseen': 1}}
    """
    all_counts = {
        name: {k: int(rows.sum()) for k, rows in unusual(form, frame, name).items()} for name in form.features
    }
    some = {name: {what: n for what, n in own.items() if n} for name, own in all_counts.items()}
    return {name: own for name, own in some.items() if own}


class RowCounter:
    """The `counts` of a few rows from dicts, prepared once: to set up arrays takes longer than to look up a few values.

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german", backend="polars")
    >>> form = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target).form_
    >>> RowCounter(form).count([{**german.frame[0].to_dicts()[0], "Housing": "boat", "Duration in month": 10.0**9}])
    {'Duration in month': {'out_of_range': 1}, 'Housing': {'unseen': 1}}
    """

    def __init__(self, form: RiskForm) -> None:
        self._features = [(name, *_look_up(form, name)) for name in form.features]

    def count(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]] | None:
        """Return the counts; None if a value is for arrays to judge."""
        found: dict[str, dict[str, int]] = {}
        for row in rows:
            for name, look_up, said, limits in self._features:
                level = look_up(row[name])
                if level is None:
                    return None
                what = said.get(level)
                if what is None and level == 0 and limits and not limits[0] <= row[name] <= limits[1]:
                    what = "out_of_range"
                if what is not None:
                    of_feature = found.setdefault(name, {})
                    of_feature[what] = of_feature.get(what, 0) + 1
        return {name: found[name] for name, *_ in self._features if name in found}


def _look_up(
    form: RiskForm, name: str
) -> tuple[Callable[[Any], int | None], dict[int, str], tuple[float, float] | None]:
    """Return what finds the level of a value, what is said of some levels, and the range of measurements: level 0."""
    feature, levels = form.schema.features[name], _categories(form, name)
    if feature.reading is not None:  # texts that stand for others
        return lambda value: None, {}, None
    if levels is not None:
        return levels.level_of, {levels.missing: "missing", len(levels) - 1: "unseen"}, None
    if feature.kind != "continuous":
        return lambda value: 1 if value is None else 0, {1: "missing"}, None
    special = _measurements(feature)
    return special.level_of, {special.missing: "missing"}, form.ranges.get(name)


def unusual(form: RiskForm, frame: Frame, name: str) -> dict[str, Bools]:
    """Return which rows lack a value, and which have one that is beyond training."""
    levels = _categories(form, name)
    if levels is not None:
        codes = levels.codes(frame, name)
        return {"missing": codes == levels.missing, "unseen": codes == len(levels) - 1}
    is_number = form.schema.features[name].kind == "continuous"
    missing = np.isnan(frame.numbers(name)) if is_number else frame.labels(name).codes < 0
    outside = _outside(form, frame, name)
    return {"missing": missing, **({} if outside is None else {"out_of_range": outside})}


def warn_of_strangers(found: Mapping[str, Mapping[str, int]], n_rows: int) -> None:
    """Warn of columns in which every value is unseen in training, given the `counts` of enough rows."""
    for name, own in found.items():
        if n_rows >= ENOUGH and own.get("unseen") == n_rows:
            warn(
                f"every row of column {name!r} holds a category that training never saw; is it coded otherwise?",
            )


def strangers(form: RiskForm, frame: Frame) -> dict[str, dict[str, int]]:
    """Return the `counts` of the features that are unseen in every row; usually a few rows are enough to decide."""
    categories = {name: levels for name in form.features if (levels := _categories(form, name)) is not None}
    rest = frame.select(list(categories))
    for rows in (rest.take(0, ENOUGH), rest):
        categories = {
            name: levels for name, levels in categories.items() if (levels.codes(rows, name) == len(levels) - 1).all()
        }
    return {name: {"unseen": frame.n_rows} for name in categories}


def names_beyond(form: RiskForm, frame: Frame) -> list[tuple[str, ...]]:
    """Return, by row, the features whose value is beyond training."""
    outside_rows = beyond(form, frame)
    if not outside_rows:
        return [()] * frame.n_rows
    return [tuple(name for name, rows in outside_rows.items() if rows[i]) for i in range(frame.n_rows)]


def unusable_rows(form: RiskForm, rows: Any, first: int = 0) -> dict[int, str]:
    """Return, by position, why rows cannot be scored; rows without a problem are left out.

    Many rows raise the same error as one bad row among them, so halves are tried until single rows are left.

    Parameters
    ----------
    form : that is to score them
    rows : any table that has the columns of the form
    first : where they start in all rows, for messages

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german", backend="polars")
    >>> form = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target).form_
    >>> rows = german.frame[:3].to_dicts()
    >>> unusable_rows(form, [rows[0], {**rows[1], "Credit amount": float("inf")}, rows[2]], first=10)
    {1: "Data: feature 'Credit amount' holds infinity (row 11). Make it missing, ..."}
    """
    frame = replace(as_frame(rows), first=first)
    found: dict[int, str] = {}
    pieces = [(0, frame.n_rows)]
    while pieces:
        start, stop = pieces.pop()
        try:
            form.risk(frame.take(start, stop))
        except DataError as error:
            if stop - start == 1:
                found[start] = str(error)
            else:
                middle = (start + stop) // 2
                pieces += [(middle, stop), (start, middle)]
    return found
