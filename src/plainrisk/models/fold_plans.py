"""How the levels of a part become coefficients and packs: equal for folds in which the same levels were seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import small_codes
from plainrisk.bins import Columns, Pack, feature_columns, pack_codes
from plainrisk.models.fitting import Design
from plainrisk.models.fold_tables import FoldFeature
from plainrisk.solve import Block

__all__ = ["Plan", "Plans"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Plan:
    """What a solver is told of the levels; the rows come later.

    Attributes
    ----------
    columns : of every feature
    seen : per feature, (levels,): which levels occur
    limit : how many codes a pack may have
    """

    columns: tuple[Columns, ...]
    seen: tuple[Bools, ...]
    limit: int

    @cached_property
    def design(self) -> Design:
        """Columns and packs, without rows."""
        none = [np.zeros(0, np.uint8) for _ in self.seen]
        return Design(self.columns, pack_codes(none, self.seen, self.limit), Block((), np.zeros(0)))

    @property
    def packs(self) -> list[Pack]:
        """The packs, without rows."""
        return self.design.packs

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many codes every pack has."""
        return tuple(len(p.members) for p in self.packs)

    @cached_property
    def grid(self) -> int:
        """How many cells there can be."""
        return math.prod(self.sizes)

    @cached_property
    def places(self) -> list[Codes]:
        """Per feature, what its levels add to the code of its pack."""
        return [place for p in self.packs for place in self._places(p.features, len(p.members))]

    @cached_property
    def grid_places(self) -> list[Codes]:
        """Per feature, what its levels add to the number of the cell, as ``np.ravel_multi_index`` numbers packs."""
        return self._places(range(len(self.seen)), self.grid)

    @cached_property
    def cell_codes(self) -> tuple[Codes, ...]:
        """Per pack, the code of every cell."""
        codes = np.unravel_index(np.arange(self.grid), self.sizes)
        return tuple(c.astype(small_codes(size)) for c, size in zip(codes, self.sizes, strict=True))

    def _places(self, features: Sequence[int], size: int) -> list[Codes]:
        stride, dtype = size, small_codes(size)
        out = []
        for j in features:
            stride //= max(1, int(self.seen[j].sum()))
            # Levels that were not seen take no room.
            number = np.cumsum(self.seen[j], dtype=np.intp) - self.seen[j]
            out.append((np.where(self.seen[j], number, 0) * stride).astype(dtype))
        return out


class Plans:
    """The plans of a part, each made once."""

    def __init__(self, features: Sequence[FoldFeature], *, steps: bool) -> None:
        self.features, self.steps = features, steps
        self._columns: dict[Any, Columns] = {}
        self._plans: dict[Any, Plan] = {}

    def plan(self, k: int, weights: Sequence[Floats], limit: int) -> Plan:
        """Return the plan of a fold in which levels have these weights."""
        seen = tuple(w > 0 for w in weights)
        shapes = tuple((s.tobytes(), f.levels[k].n_ordered) for s, f in zip(seen, self.features, strict=True))
        found = self._plans.get((shapes, limit))
        if found is None:
            columns = tuple(self._column(j, k, w, shapes[j]) for j, w in enumerate(weights))
            found = self._plans[shapes, limit] = Plan(columns, seen, limit)
        return found

    def _column(self, j: int, k: int, weights: Floats, shape: tuple[bytes, int]) -> Columns:
        if (j, shape) not in self._columns:
            f = self.features[j]
            steps = self.steps and f.feature.kind == "continuous"
            self._columns[j, shape] = feature_columns(weights, f.levels[k].n_ordered, f.feature.sign, steps=steps)
        return self._columns[j, shape]
