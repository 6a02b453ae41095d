"""The logistic loss of few rows in a box, minimised at one go; `plainrisk.solve.bounded` is the way for all losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native.box import MOST_VARIABLES
from plainrisk._native.choice import compiled
from plainrisk._native.levels import LevelMap
from plainrisk._native.numbers import Numbers
from plainrisk._native.sums import contiguous

__all__ = ["Problem", "Settled", "minimise_logistic"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Problem:
    """What is minimised, besides the loss, and when to stop.

    Attributes
    ----------
    ridge, lower, upper : (1 + columns,), of the intercept and the coefficients
    tolerance : steps are taken in full once one promises less than this share of the objective
    settled : the step that would come next, at the end
    flat : a pivot of less than this share of its diagonal entry is rounding
    max_steps : at most so many
    is_far : whether the start is far from the minimum, so that some of many rows can tell the way
    """

    ridge: Floats
    lower: Floats
    upper: Floats
    tolerance: float
    settled: float
    flat: float
    max_steps: int
    is_far: bool = False


@dataclass(frozen=True)
class Settled:
    """Where the objective is least.

    Attributes
    ----------
    point, gradient : (1 + columns,)
    value : of the objective
    history : (steps, 3), before each step the objective, what the step promised, and how long it was
    """

    point: Floats
    gradient: Floats
    value: float
    history: Floats


def minimise_logistic(
    start: Floats,
    packs: Sequence[Codes],
    levels: LevelMap,
    positive: npt.NDArray[np.generic],
    weight: Floats | None,
    dense: Floats | Numbers | None,
    total: float,
    problem: Problem,
) -> Settled | None:
    """Return the minimum of the mean logistic loss and a ridge in a box, or None if that takes more care.

    Parameters
    ----------
    start : (1 + columns,), inside the box
    packs, levels, positive, weight, dense : as in `logistic_sums`; there are packs or numeric columns, not both
    total : the weight of all rows
    """
    if compiled is None or len(start) > MOST_VARIABLES:
        return None
    outcome = np.ascontiguousarray(positive, None if positive.dtype == np.uint8 else np.float64)
    weights = None if weight is None else np.ascontiguousarray(weight, np.float64)
    point, gradient, history = np.array(start, np.float64), np.empty(len(start)), np.empty((problem.max_steps, 3))
    steps, value = compiled.newton(
        point,
        contiguous(packs),
        levels.compiled,
        outcome,
        weights,
        *Numbers.of(dense).compiled,
        problem.ridge,
        problem.lower,
        problem.upper,
        total,
        problem.tolerance,
        problem.settled,
        gradient,
        history,
        problem.flat,
        problem.is_far,
    )
    return Settled(point, gradient, value, history[:steps]) if steps else None
