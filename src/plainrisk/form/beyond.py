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
    return {
        name: rows
        for name in form.features
        for what, rows in unusual(form, frame, name).items()
        if what != "missing" and rows.any()
    }


def widen_ranges(ranges: dict[str, tuple[float, float]], schema: Schema, frame: Frame, names: Iterable[str]) -> None:
    """Add to the smallest and the largest measured value of continuous features those of some rows."""
    for name in names:
        values = frame.numbers(name)
        values = values[is_measured(schema.features[name], values)]
        if len(values):
            low, high = ranges.get(name, (math.inf, -math.inf))
            # Adding 0 turns -0.0 into 0.0.
            ranges[name] = (min(low, float(values.min()) + 0.0), max(high, float(values.max()) + 0.0))


def is_measured(feature: Feature, values: Floats) -> Bools:
    """Return which numbers are measurements: not missing, no code, not below the lower bound."""
    return np.asarray(_measurements(feature).code_numbers(values) == 0)


def _measurements(feature: Feature) -> Bins:
    """Return levels of which the first are measurements, and the last is missing."""
    return Bins((), tuple(map(float, feature.special_values)), feature.lower_bound)


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
    by_feature = {}
    for name in form.features:
        n_rows = {what: int(rows.sum()) for what, rows in unusual(form, frame, name).items()}
        by_feature[name] = {what: n for what, n in n_rows.items() if n}
    return {name: n_rows for name, n_rows in by_feature.items() if n_rows}


class RowCounter:
    """The `counts` of a few rows from dicts, prepared once: arrays would take longer than looking up a few values.

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german", backend="polars")
    >>> form = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target).form_
    >>> RowCounter(form).count([{**german.frame[0].to_dicts()[0], "Housing": "boat", "Duration in month": 10.0**9}])
    {'Duration in month': {'out_of_range': 1}, 'Housing': {'unseen': 1}}
    """

    def __init__(self, form: RiskForm) -> None:
        self._features = [(name, *_look_up(form, name)) for name in form.features]

    def count(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]] | None:
        """Return the counts; None if only the code for arrays can tell."""
        by_feature: dict[str, dict[str, int]] = {}
        for row in rows:
            for name, level_of, unusual_levels, limits in self._features:
                level = level_of(row[name])
                if level is None:
                    return None
                what = unusual_levels.get(level)
                if what is None and level == 0 and limits and not limits[0] <= row[name] <= limits[1]:
                    what = "out_of_range"
                if what is not None:
                    n_rows = by_feature.setdefault(name, {})
                    n_rows[what] = n_rows.get(what, 0) + 1
        return {name: by_feature[name] for name, *_ in self._features if name in by_feature}


def _look_up(
    form: RiskForm, name: str
) -> tuple[Callable[[Any], int | None], dict[int, str], tuple[float, float] | None]:
    """Return the function from a value to its level, the unusual levels, and the range of measurements (level 0)."""
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
    feature = form.schema.features[name]
    if feature.kind != "continuous":
        return {"missing": frame.labels(name).codes < 0}
    values = frame.numbers(name)
    rows = {"missing": np.isnan(values)}
    if name in form.ranges:
        low, high = form.ranges[name]
        rows["out_of_range"] = np.asarray(is_measured(feature, values) & ((values < low) | (values > high)))
    return rows


def warn_of_strangers(counts_of: Mapping[str, Mapping[str, int]], n_rows: int) -> None:
    """Warn of columns in which every value is unseen in training, given the `counts` of enough rows."""
    for name, n_unusual in counts_of.items():
        if n_rows >= ENOUGH and n_unusual.get("unseen") == n_rows:
            warn(f"every row of column {name!r} holds a category that training never saw; is it coded otherwise?")


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
    reasons: dict[int, str] = {}
    pieces = [(0, frame.n_rows)]
    while pieces:
        start, stop = pieces.pop()
        try:
            form.risk(frame.take(start, stop))
        except DataError as error:
            if stop - start == 1:
                reasons[start] = str(error)
            else:
                middle = (start + stop) // 2
                pieces += [(middle, stop), (start, middle)]
    return reasons
