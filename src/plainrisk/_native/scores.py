"""Scores: for every row the sum of what its features add, each found by comparing a number with a few others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled

__all__ = ["Chain", "Plan", "Ramp", "add_chains"]

Floats = npt.NDArray[np.float64]
Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Ramp:
    """A line, ``slope * (x - center)`` held within ``+-most``, and the value `below` where ``x < low``."""

    slope: float
    center: float
    most: float = math.inf
    low: float = -math.inf
    below: float = 0.0


@dataclass(frozen=True)
class Chain:
    """What a number x adds to a score: comparisons, of which the last that holds decides.

    Attributes
    ----------
    values : ``values[0]``, and ``values[k + 1]`` where ``x > edges[k]``; the edges rise
    ramp : instead of the values, if it is not None
    equal : pairs (number, value): the value where x is the number
    limit : NaN where ``|x| > limit``
    missing : the value where x is NaN
    """

    values: tuple[float, ...] = (0.0,)
    edges: tuple[float, ...] = ()
    ramp: Ramp | None = None
    equal: tuple[tuple[float, float], ...] = ()
    limit: float = math.inf
    missing: float = math.nan

    def at(self, x: Floats) -> Floats:
        """Return the value at every x.

        >>> chain = Chain(values=(1.0, 2.0), edges=(5.0,), equal=((-9.0, 3.0),), missing=4.0)
        >>> chain.at(np.array([5.0, 6.0, -9.0, np.nan]))
        array([1., 2., 3., 4.])
        """
        v = np.asarray(self.values)[np.searchsorted(np.asarray(self.edges, dtype=np.float64), x, side="left")]
        if self.ramp is not None:
            ramp = self.ramp
            with np.errstate(over="ignore", invalid="ignore"):
                v = np.clip(ramp.slope * (x - ramp.center), -ramp.most, ramp.most)
            v[x < ramp.low] = ramp.below
        for number, value in self.equal:
            v[x == number] = value
        v[np.abs(x) > self.limit] = np.nan
        v[np.isnan(x)] = self.missing
        return v


def _numbers(chain: Chain) -> list[float]:
    """Return all numbers of a chain in the order in which the compiled loop reads them.

    It makes comparisons two at a time. To be above infinity or equal to NaN does no harm: nothing is.
    """
    ramp = chain.ramp or Ramp(slope=0.0, center=0.0)
    line = (ramp.slope, ramp.center, ramp.most, ramp.low, ramp.below)
    odd = len(chain.edges) % 2
    above = (*chain.values, *(0.0,) * odd, *chain.edges, *(math.inf,) * odd)
    equal = (*chain.equal, *((math.nan, 0.0),) * (len(chain.equal) % 2))
    values, numbers = (value for _, value in equal), (number for number, _ in equal)
    return [chain.missing, chain.limit, float(chain.ramp is not None), *line, *above, *values, *numbers]


@dataclass(frozen=True)
class Plan:
    """Which column adds what to which score, in this order.

    Attributes
    ----------
    steps : (column, score, chain) by their numbers
    """

    steps: tuple[tuple[int, int, Chain], ...]
    packed: tuple[npt.NDArray[np.int64], Floats] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows, numbers = [], list[float]()
        for column, score, chain in self.steps:
            rows.append((column, score, len(numbers), _even(len(chain.edges)), _even(len(chain.equal))))
            numbers += _numbers(chain)
        packed = np.array(rows, dtype=np.int64).reshape(-1, 5), np.array(numbers)
        object.__setattr__(self, "packed", packed)


def _even(n: int) -> int:
    return n + n % 2


def add_chains(scores: Sequence[Floats], columns: Sequence[Column], plan: Plan) -> bool:
    """Add to each score what the columns give it, step by step; return whether every score is a number.

    The columns are integers or floats of 32 or 64 bits, the scores are float64; both may be columns of a matrix. After
    False the scores are of no use: some rows may not have got all.

    >>> score = np.array([1.0, 1.0])
    >>> add_chains([score], [np.array([3, 7])], Plan(((0, 0, Chain(values=(0.5, 2.0), edges=(5.0,))),)))
    True
    >>> score
    array([1.5, 3. ])
    """
    if compiled is not None:
        rows = len(scores[0]) if scores else 0
        return bool(compiled.add_chains(scores, columns, rows, *plan.packed))
    for column, score, chain in plan.steps:
        target = scores[score]
        target += chain.at(columns[column].astype(np.float64))
    return not any(np.isnan(score).any() for score in scores)
