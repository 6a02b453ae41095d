"""Atoms, the finest levels of a feature that nothing in a form divides.

A feature may stand in several parts and pairs, with different bins in each, and trees may split it. An *atom* is a set
of values that every part treats alike: two rows with the same atoms have the same risk.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal

import numpy as np

from plainrisk._types import Array, Bools, Floats, Index
from plainrisk.data.frame import Frame
from plainrisk.explain.options import Value
from plainrisk.form import Bins, Categories, Levels, Part, RiskForm, Shape, Table, TreePart
from plainrisk.schema import Feature

__all__ = ["AtomScores", "Atoms", "atoms_of", "common_atoms", "levels_of", "nearest_value", "value_frame"]


@dataclass(frozen=True)
class Atoms:
    """The atoms of one feature.

    Attributes
    ----------
    feature : str
    levels : Bins or Categories, each an atom
    values : a value per atom; None where there is none (missing, or no value can get there)
    seen : (atoms,) whether training rows had it, False for missing; where the form has no training weights, whether it
        has a value
    straight : whether a line or a curve reads the feature, so that values inside an atom differ
    """

    feature: str
    levels: Levels
    values: tuple[Value, ...]
    seen: Bools
    straight: bool

    @property
    def has_value(self) -> Bools:
        """Whether each atom has a value; missing and unseen need none."""
        outside = 2 if isinstance(self.levels, Categories) else 1
        last = len(self.values) - outside
        return np.array([v is not None or j >= last for j, v in enumerate(self.values)], np.bool_)

    def scores(self, shape: Shape) -> Floats:
        """Return the effect of a shape of the feature at each atom."""
        return shape.values(value_frame({self.feature: self.values}), self.feature)

    def levels_in(self, levels: Levels) -> Index:
        """Return the level of each atom among coarser levels."""
        codes = levels.codes(value_frame({self.feature: self.values}), self.feature).astype(np.intp)
        if isinstance(levels, Categories):
            codes[-1] = len(levels) - 1  # the last atom, unseen, has no value that could say so
        return codes


@dataclass(frozen=True)
class AtomScores:
    """What each atom of a feature adds to the score of a part.

    Attributes
    ----------
    alone : (atoms,) by itself; of a line or a curve, 0, its mean, for all measured values
    tables : of every pair, (atoms, levels of the other feature)
    """

    alone: Floats
    tables: list[Floats]

    @classmethod
    def of(cls, part: Part, atoms: Atoms, sign: int) -> AtomScores:
        """Read the scores of a part, times a sign."""
        shape = part.shapes.get(atoms.feature)
        alone = np.zeros(len(atoms.values)) if shape is None else sign * atoms.scores(shape)
        if shape is not None and not isinstance(shape, Table):
            alone[: atoms.levels.n_ordered] = 0.0
        pairs = [(axis, pair) for _, axis, pair in part.pairs_with(atoms.feature)]
        tables = [np.moveaxis(np.asarray(p.scores), axis, 0)[atoms.levels_in(p.levels[axis])] for axis, p in pairs]
        return cls(alone, [sign * table for table in tables])

    def least(self, after: int, before: int) -> tuple[float, list[int]]:
        """Return the least difference between two atoms, and the levels of the other features where it occurs.

        The other features are different in every pair, so the worst case of the sum is the sum of the worst cases. It
        is rounded once, so its sign is right.
        """
        where = [_least_step(table[before], table[after]) for table in self.tables]
        high, low = (
            (self.alone[i], *(t[i, c] for t, c in zip(self.tables, where, strict=True))) for i in (after, before)
        )
        return math.fsum((*high, *(-score for score in low))), where


def _least_step(before: Floats, after: Floats) -> int:
    """Return where `after - before` is smallest; ties are broken by the rounding errors of the differences."""
    step = after - before
    taken = step - after
    lost = (after - (step - taken)) - (before + taken)  # what rounding the difference took away, exactly
    return int(np.lexsort((lost, step))[0])


def atoms_of(form: RiskForm, min_rows: float = 0.0) -> dict[str, Atoms]:
    """Return the atoms of every feature the form reads; atoms with fewer than `min_rows` training rows are not seen."""
    return {name: _atoms(form, name, min_rows) for name in form.features}


def _atoms(form: RiskForm, name: str, min_rows: float) -> Atoms:
    parts = [p for p in form.parts if isinstance(p, Part)]
    shapes = [p.shapes[name] for p in parts if name in p.shapes]
    trees = [p for p in form.parts if isinstance(p, TreePart) and name in p.features]
    counts = [(shape.levels, np.asarray(shape.weights)) for shape in shapes]
    counts += [(pair.levels[axis], pair.level_weights(axis)) for p in parts for _, axis, pair in p.pairs_with(name)]
    all_levels, feature = levels_of(form, name), form.schema.features[name]
    categorical = isinstance(all_levels[0], Categories) if all_levels else feature.kind == "categorical"
    levels = _categories(all_levels, trees, name) if categorical else _bins(all_levels, trees, feature, name)
    values = tuple(_values(levels))
    return Atoms(
        feature=name,
        levels=levels,
        values=values,
        seen=_seen(counts, values, name, min_rows),
        straight=any(not isinstance(shape, Table) for shape in shapes),
    )


def levels_of(form: RiskForm, name: str) -> list[Levels]:
    """Return the levels of a feature in every shape and pair of a form."""
    parts = [part for part in form.parts if isinstance(part, Part)]
    shapes = [part.shapes[name].levels for part in parts if name in part.shapes]
    return shapes + [pair.levels[axis] for part in parts for _, axis, pair in part.pairs_with(name)]


def common_atoms(name: str, all_levels: Sequence[Levels]) -> Atoms:
    """Return the atoms of a feature that has several lists of levels, in one form or in two."""
    categorical = isinstance(all_levels[0], Categories)
    levels = _categories(all_levels, (), name) if categorical else _bins(all_levels, [], Feature(), name)
    values = tuple(_values(levels))
    return Atoms(name, levels, values, np.ones(len(values), np.bool_), straight=False)


def _bins(all_levels: Iterable[Levels], trees: list[TreePart], feature: Feature, name: str) -> Bins:
    bins = [lv for lv in all_levels if isinstance(lv, Bins)]
    edges = {edge for lv in bins for edge in lv.edges}.union(*(_tree_edges(part, name) for part in trees))
    special = [value for lv in bins for value in lv.special_values]
    bounds = [lv.lower_bound for lv in bins]
    if trees:
        # Trees split codes like measurements; the tree's input and the schema say which are which.
        special += [code for part in trees for code in _tree_codes(part, name)]
        special += [float(value) for value in feature.special_values]
        bounds.append(feature.lower_bound)
    low = max((bound for bound in bounds if bound is not None), default=None)
    return Bins(tuple(sorted(edges)), tuple(dict.fromkeys(special)), low)


def _tree_codes(part: TreePart, name: str) -> list[float]:
    return [entry.missing for entry in part.inputs if entry.feature == name and entry.missing is not None]


def _tree_edges(part: TreePart, name: str) -> set[float]:
    inputs = {j for j, entry in enumerate(part.inputs) if entry.feature == name}
    return {edge for tree in part.trees for j, edge in zip(tree.inputs, tree.edges, strict=True) if j in inputs}


def _categories(all_levels: Iterable[Levels], trees: Iterable[TreePart], name: str) -> Categories:
    lists = [lv for lv in all_levels if isinstance(lv, Categories)]
    split = [i.category for part in trees for i in part.inputs if i.feature == name and i.category is not None]
    # Special categories come after the ordered ones in every list, and so they do here.
    inside = [(c, *lv.groups.get(c, ())) for lv in lists for c in lv.categories[: lv.n_ordered]]
    ordered = dict.fromkeys((*itertools.chain.from_iterable(inside), *split))
    special = dict.fromkeys(c for lv in lists for c in lv.categories if c not in ordered)
    # Categories that no part distinguishes are one atom, named after the first.
    atoms: dict[tuple[object, ...], list[str]] = {}
    for c in (*ordered, *special):
        atoms.setdefault((c if split else None, *(lv.level_of(c) for lv in lists)), []).append(c)
    names = [first for first, *_ in atoms.values()]
    groups = {first: tuple(others) for first, *others in atoms.values() if others}
    return Categories(tuple(names), sum(n not in special for n in names), groups)


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
    """Yield values of a bin: its upper end if it has one, then numbers near its ends."""
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


def _seen(counts: list[tuple[Levels, Floats]], values: tuple[Value, ...], name: str, min_rows: float) -> Bools:
    seen = np.array([v is not None for v in values], dtype=bool)
    frame = value_frame({name: values})
    for levels, weights in counts:
        if weights.sum() > 0:
            seen &= ((weights > 0) & (weights >= min_rows))[levels.codes(frame, name)]
    return seen


def value_frame(columns: Mapping[str, Iterable[Value]]) -> Frame:
    """Return rows made of values; None is missing."""
    arrays: dict[str, Array] = {}
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
    """Return the value of a bin nearest to `start`, with no more decimals than `start` where the bin allows it.

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
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    return min(6, max(0, -int(exponent)))


def _rounded(value: float, decimals: int, above: bool) -> float:
    """Round a value up or down to a number with this many decimals; it may stay unchanged."""
    context = Context(prec=400, rounding=ROUND_FLOOR)
    step = Decimal(1).scaleb(-decimals)
    floor = Decimal(repr(float(value))).quantize(step, context=context)
    return float(context.add(floor, step) if above else floor)
