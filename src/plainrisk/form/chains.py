"""The scores of additive parts by the compiled loop: how each column is read, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plainrisk._native import Chain, Plan, Ramp, add_chains
from plainrisk.data.frame import Frame, Places
from plainrisk.form.levels import Categories
from plainrisk.form.shapes import Curve, Shape, Table

__all__ = ["Chains"]

Floats = npt.NDArray[np.float64]

# A column is compared as numbers or as places among categories, or its values are worked out by its shape.
Way = Literal["numbers", "places", "values"]

# Up to here, comparing with every category beats looking for the distinct values.
_MANY_CATEGORIES = 256


class Chains:
    """What the features of several parts add to the parts' scores.

    Parameters
    ----------
    parts : the shapes of each part by feature, in the order in which they are added
    strict : the features whose unseen levels are refused
    order : the columns in the order in which rows are stored; any order will do, but neighbours are read faster
    """

    def __init__(self, parts: Sequence[Mapping[str, Shape]], strict: frozenset[str], order: Sequence[str]) -> None:
        terms = [(k, name, shape) for k, shapes in enumerate(parts) for name, shape in shapes.items()]
        place = {name: j for j, name in enumerate(order)}
        stored = sorted(range(len(terms)), key=lambda k: place.get(terms[k][1], 0))
        self._terms = [terms[k] for k in stored]
        # The same terms in the order of the parts.
        self._turns = sorted(range(len(terms)), key=stored.__getitem__)
        self._strict = strict
        self._plans: dict[tuple[Way, ...], Plan] = {}

    def add(self, scores: Sequence[Floats], frame: Frame) -> bool:
        """Add to the score of each part; False if a row is refused, and then the scores are of no use."""
        ways = tuple(_way(frame.column(name), shape) for _, name, shape in self._terms)
        if ways not in self._plans:
            self._plans[ways] = self._plan(ways)
        columns = [self._column(frame, j, way) for j, way in enumerate(ways)]
        return add_chains(scores, columns, self._plans[ways])

    def _column(self, frame: Frame, j: int, way: Way) -> npt.NDArray[Any]:
        _, name, shape = self._terms[j]
        if way == "values":
            return shape.values(frame, name, refuse_unseen=name in self._strict)
        column = frame.column(name)
        return column.codes if way == "places" else column  # type: ignore[no-any-return]

    def _plan(self, ways: tuple[Way, ...]) -> Plan:
        steps = []
        for j in self._turns:
            part, name, shape = self._terms[j]
            steps.append((j, part, _chain(shape, ways[j], name in self._strict)))
        return Plan(tuple(steps))


def _way(column: Any, shape: Shape) -> Way:
    """Return how a column is read for a shape."""
    levels = shape.levels
    if isinstance(column, Places):
        return "places" if isinstance(levels, Categories) and column.known == levels.categories else "values"
    if isinstance(shape, Curve) or not isinstance(column, np.ndarray) or not _is_readable(column):
        return "values"
    if not isinstance(levels, Categories):
        return "numbers"
    whole = column.dtype.kind in "iu" and (column.itemsize <= 4 or levels.reads_integers)
    few = len(levels.categories) <= _MANY_CATEGORIES
    return "numbers" if few and (whole or column.dtype.kind == "f") else "values"


def _is_readable(column: npt.NDArray[Any]) -> bool:
    """Whether the compiled loop knows the type of the numbers."""
    dtype = column.dtype
    known = dtype.kind in "iub" or (dtype.kind == "f" and dtype.itemsize in (4, 8))
    return known and dtype.isnative and column.flags.aligned


def _chain(shape: Shape, way: Way, strict: bool) -> Chain:
    if way == "values" or isinstance(shape, Curve):
        return Chain(ramp=Ramp(slope=1.0, center=0.0))
    if isinstance(shape, Table):
        return shape.chain(places=way == "places", refuse_unseen=strict)
    return shape.chain(refuse_unseen=strict)
