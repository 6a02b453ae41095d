"""Come near the minimum of a loss in a box by gradients alone, where a Hessian takes as long as many of them.

Each step is that of L-BFGS in the variables no bound holds. What it begins from is a Hessian in blocks: variables of
different blocks are taken to have nothing to do with each other, and the gradients seen since tell what they have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk._native import BlockHessian, block_step

__all__ = ["State", "approach"]

Floats = npt.NDArray[np.float64]

# Near: a step promises less than this share of the value. A Hessian then serves to the end.
_NEAR = 1e-4
# Passes after which a Hessian is cheaper than going on; steps in a row that fail; steps that are remembered.
_MOST_PASSES, _MOST_FAILURES, _REMEMBERED = 16, 2, 10
_ROOM = _MOST_PASSES + 1
# The most a variable moves in a step: what is known of the loss says nothing of places further off.
_LONGEST = 1.0
# Along a step that went too far: the least and the most of it that is tried.
_SHORTER = (0.05, 0.7)


@dataclass
class State:
    """A point, and the objective's value and gradient there."""

    point: Floats
    value: float
    gradient: Floats


def approach(
    start: State,
    at: Callable[[Floats], State],
    hessian: BlockHessian,
    lower: Floats,
    upper: Floats,
    max_steps: int = _MOST_PASSES,
) -> tuple[State, list[tuple[float, float]]]:
    """Return a point near the minimum, and for every step that was taken the value before and the decrease it promised.

    Parameters
    ----------
    start : where to begin, inside the box
    at : what tells the value and the gradient at a point
    hessian : of the start, roughly
    lower, upper : (1 + p,)
    max_steps : at most so many
    """
    here, failures, passes = start, 0, 0
    history: list[tuple[float, float]] = []
    memory = _Memory(len(start.point))
    while passes < _MOST_PASSES and failures < _MOST_FAILURES and len(history) < max_steps:
        d = block_step(here.point, here.gradient, lower, upper, hessian, *memory.last, _LONGEST)
        promise = -0.5 * float(here.gradient @ d)
        if not promise > _NEAR * max(here.value, 1e-3):
            break
        there = at(np.clip(here.point + d, lower, upper))
        passes += 1
        s = there.point - here.point
        memory.learn(here, there)
        slope, end = float(here.gradient @ s), float(there.gradient @ s)
        if not there.value <= here.value + 1e-4 * slope:
            if not slope < min(end, 0.0):
                break  # so no convex loss goes: rounding speaks
            share = min(max(slope / (slope - end), _SHORTER[0]), _SHORTER[1])
            there = at(np.clip(here.point + share * s, lower, upper))
            passes += 1
            memory.learn(here, there)
        failed = not there.value <= here.value
        failures = failures + 1 if failed else 0
        if not failed:
            history.append((here.value, promise))
            here = there
    return here, history


class _Memory:
    """What the last steps did to the gradient."""

    def __init__(self, n: int) -> None:
        self._steps, self._changes, self._count = np.empty((_ROOM, n)), np.empty((_ROOM, n)), 0

    def learn(self, here: State, there: State) -> None:
        """Take in how the gradient changed over a step."""
        step, change = there.point - here.point, there.gradient - here.gradient
        if step @ change > 0:
            self._steps[self._count], self._changes[self._count] = step, change
            self._count += 1

    @property
    def last(self) -> tuple[Floats, Floats]:
        """The steps that are remembered, and the changes."""
        some = slice(max(0, self._count - _REMEMBERED), self._count)
        return self._steps[some], self._changes[some]
