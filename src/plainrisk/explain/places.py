"""The finest levels of a feature that nothing in a form divides, and a value that stands for each.

A feature may stand in several parts, with other bins in each, or be split by trees. A *place* is a set of values
that every part treats alike, so a form sees no more of a row than the places of its features.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal

import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame
from plainrisk.form import Bins, Categories, Levels, Part, RiskForm, Shape, Table, TreePart
from plainrisk.form.trees import LEAF
from plainrisk.schema import Feature

__all__ = ["Places", "Value", "nearest_value", "places_of", "value_frame"]

Floats = npt.NDArray[np.float64]
Value = float | str | None


@dataclass(frozen=True)
class Places:
    """The places of one feature.

    Attributes
    ----------
    feature : str
    levels : Bins or Categories, each a place
    values : a value per place; None where there is none (missing, or no value can get there)
    seen : (places,) those that training rows had, missing left out; all with a value where the form has no
        training weights
    straight : whether a line or a curve reads the feature, so that values inside a place differ
    """

    feature: str
    levels: Levels
    values: tuple[Value, ...]
    seen: npt.NDArray[np.bool_]
    straight: bool

    @property
    def measured(self) -> int:
        """How many places, from the first, are bins or categories, not special values or missing."""
        return self.levels.n_ordered

    def scores(self, shape: Shape, name: str) -> Floats:
        """Return what a shape of the feature adds at each place."""
        return shape.values(value_frame({name: self.values}), name)


def places_of(form: RiskForm, min_rows: float = 0.0) -> dict[str, Places]:
    """Return the places of every feature the form reads; those with fewer training rows do not count as seen."""
    names = dict.fromkeys(name for part in form.parts for name in part.features)
    return {name: _places(form, name, min_rows) for name in names}


def _places(form: RiskForm, name: str, min_rows: float) -> Places:
    shapes = [p.shapes[name] for p in form.parts if isinstance(p, Part) and name in p.shapes]
    trees = [p for p in form.parts if isinstance(p, TreePart) and name in p.features]
    known = [shape.levels for shape in shapes]
    categorical = any(isinstance(lv, Categories) for lv in known) or (
        not known and form.schema.features[name].kind == "categorical"
    )
    levels = _categories(known, trees, name) if categorical else _bins(known, trees, form.schema.features[name], name)
    values = tuple(_values(levels))
    return Places(
        feature=name,
        levels=levels,
        values=values,
        seen=_seen(shapes, values, name, min_rows),
        straight=any(not isinstance(shape, Table) for shape in shapes),
    )


def _bins(known: Iterable[Levels], trees: Iterable[TreePart], feature: Feature, name: str) -> Bins:
    bins = [lv for lv in known if isinstance(lv, Bins)]
    edges = {edge for lv in bins for edge in lv.edges}
    special = {value: None for lv in bins for value in lv.special_values}
    for part in trees:
        own = {j for j, entry in enumerate(part.inputs) if entry.feature == name}
        edges |= {e for tree in part.trees for j, e in zip(tree.inputs, tree.edges, strict=True) if j in own - {LEAF}}
        special |= {m: None for j in own if (m := part.inputs[j].missing) is not None}
    bounds = [lv.lower_bound for lv in bins if lv.lower_bound is not None]
    if trees:
        # Trees split codes like measurements; the schema says which are which.
        special |= {float(v): None for v in feature.special_values}
        bounds += [] if feature.lower_bound is None else [feature.lower_bound]
    return Bins(tuple(sorted(edges)), tuple(special), max(bounds) if bounds else None)


def _categories(known: Iterable[Levels], trees: Iterable[TreePart], name: str) -> Categories:
    lists = [lv for lv in known if isinstance(lv, Categories)]
    # Special categories come after the ordered ones in every list, and so they do here.
    names = dict.fromkeys(c for lv in lists for c in lv.categories[: lv.n_ordered])
    asked = (i.category for part in trees for i in part.inputs if i.feature == name)
    names |= dict.fromkeys(c for c in asked if c is not None)
    special = dict.fromkeys(c for lv in lists for c in lv.categories if c not in names)
    return Categories((*names, *special), n_ordered=len(names))


def _values(levels: Levels) -> Iterator[Value]:
    if isinstance(levels, Categories):
        yield from levels.categories
        yield from (None, None)  # missing, and unseen: there is no telling what it would be
        return
    ends = (-math.inf, *levels.edges, math.inf)
    for code in range(levels.n_ordered):
        yield next(_inside(levels, code, ends[code], ends[code + 1]), None)
    yield from levels.special_values
    if levels.lower_bound is not None:
        below = (levels.lower_bound - step for step in (1.0, 0.5, 0.25, 0.125))
        yield next((v for v in below if v not in levels.special_values), None)
    yield None


def _inside(levels: Bins, code: int, low: float, high: float) -> Iterator[float]:
    """Give values of a bin: its upper end where it has one, else numbers near by."""
    wide = max(1.0, abs(low) if math.isfinite(low) else abs(high) if math.isfinite(high) else 1.0)
    near = [high] if math.isfinite(high) else [low + wide if math.isfinite(low) else 0.0]
    if math.isfinite(low) and math.isfinite(high):
        near += [low + (high - low) * share for share in (0.5, 0.25, 0.75)]
    elif math.isfinite(low):
        near += [low + wide * share for share in (0.5, 2.0, 0.25)]
    else:
        near += [near[0] - wide * share for share in (0.5, 1.0, 0.25)]
    if levels.lower_bound is not None:
        near.append(levels.lower_bound)
    if math.isfinite(low):
        near.append(float(np.nextafter(low, math.inf)))
    yield from (v for v in near if _code(levels, v) == code)


def _code(levels: Bins, value: float) -> int:
    return int(levels.code_numbers(np.array([value]))[0])


def _seen(shapes: list[Shape], values: tuple[Value, ...], name: str, min_rows: float) -> npt.NDArray[np.bool_]:
    seen = np.array([v is not None for v in values], dtype=bool)
    frame = value_frame({name: values})
    for shape in shapes:
        weights = np.asarray(shape.weights)
        if weights.sum() > 0:
            seen &= (weights > 0)[codes := shape.levels.codes(frame, name)] & (weights >= min_rows)[codes]
    return seen


def value_frame(columns: Mapping[str, Iterable[Value]]) -> Frame:
    """Return rows made of values; None is missing."""
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    n = 0
    for name, column in columns.items():
        values = list(column)
        n = len(values)
        if any(isinstance(v, str) for v in values):
            arrays[name] = np.array(values, dtype=object)
        else:
            arrays[name] = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return Frame(tuple(arrays), arrays, n)


def nearest_value(levels: Bins, code: int, start: float) -> float:
    """Return the value of a bin that is nearest to `start`, with as few decimals as `start` has where that does.

    >>> bins = Bins(edges=(64.5, 71.5))
    >>> nearest_value(bins, 2, 60.0), nearest_value(bins, 0, 70.0), nearest_value(bins, 1, 12.25)
    (72.0, 64.0, 64.51)
    """
    ends = (-math.inf, *levels.edges, math.inf)
    low, high = ends[code], ends[code + 1]
    rising = not start > high
    edge = low if rising else high
    if math.isnan(start):
        rising = math.isfinite(low)
        edge = low if rising else high
    if math.isfinite(edge):
        for decimals in range(_decimals(start), 18):
            value = _rounded(edge, decimals, rising)
            if _code(levels, value) == code:
                return value
    return next(_inside(levels, code, low, high), edge)


def _decimals(value: float) -> int:
    if not math.isfinite(value):
        return 0
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return min(6, max(0, -int(exponent)))


def _rounded(value: float, decimals: int, above: bool) -> float:
    """Return the number of so many decimals next above a value, or the value itself or next below."""
    context = Context(prec=400, rounding=ROUND_FLOOR)
    step = Decimal(1).scaleb(-decimals)
    floor = Decimal(repr(value)).quantize(step, context=context)
    return float(context.add(floor, step) if above else floor)
