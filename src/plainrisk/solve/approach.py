"""Come near the minimum of a loss in a box by gradients alone, where a Hessian takes as long as many of them.

Each step is that of L-BFGS in the variables no bound holds. What it begins from is a Hessian in blocks: variables of
different blocks are taken to have nothing to do with each other, and the gradients seen since tell what they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["BlockHessian", "State", "approach"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Near: a step promises less than this share of the value. A Hessian then serves to the end.
_NEAR = 1e-4
# Passes after which a Hessian is cheaper than going on; steps in a row that fail; steps that are remembered.
_MOST_PASSES, _MOST_FAILURES, _REMEMBERED = 16, 2, 10
# What is added to the diagonal of blocks, since columns of a block may say the same.
_DAMPING = 1e-6
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


class BlockHessian:
    """A Hessian of an intercept and of columns that go together in blocks.

    Parameters
    ----------
    corner : the intercept's entry
    border : (p,), the columns' entries with the intercept
    blocks : matrices of neighbouring columns' entries with each other
    ridge : (p,), what is added to the columns' entries with themselves
    """

    def __init__(self, corner: float, border: Floats, blocks: Sequence[Floats], ridge: Floats) -> None:
        self.corner, self.border = corner, border
        widths = np.array([len(block) for block in blocks])
        self.real = np.arange(widths.max(initial=0)) < widths[:, None]
        self.entries = np.zeros((*self.real.shape, self.real.shape[1]))
        start = 0
        for entries, block in zip(self.entries, blocks, strict=True):
            stop = start + len(block)
            without = np.outer(border[start:stop], border[start:stop]) / corner
            entries[: len(block), : len(block)] = block - without
            start = stop
        diagonal = np.einsum("kii->ki", self.entries)
        diagonal *= 1.0 + _DAMPING
        diagonal[self.real] += ridge
        diagonal[~self.real] = 1.0
        self._key, self._inverses = b"", self.entries

    def solve(self, right: Floats, free: Flags) -> Floats:
        """Return d with ``H d = right`` in the free variables, the intercept among them; the others are 0."""
        places = np.zeros(self.real.shape)
        places[self.real] = np.where(free[1:], right[1:] - self.border * (right[0] / self.corner), 0.0)
        columns = (self._inverse(free) @ places[:, :, None])[:, :, 0][self.real]
        return np.concatenate([[(right[0] - self.border @ columns) / self.corner], columns])

    def _inverse(self, free: Flags) -> Floats:
        """The inverses of the free variables' blocks, kept until others are free."""
        key = free.tobytes()
        if key != self._key:
            inside = np.zeros(self.real.shape, bool)
            inside[self.real] = free[1:]
            entries = np.where(inside[:, :, None] & inside[:, None, :], self.entries, 0.0)
            diagonal = np.einsum("kii->ki", entries)
            diagonal[~inside] = 1.0
            self._key, self._inverses = key, np.linalg.inv(entries)
        return self._inverses


def approach(
    start: State, at: Callable[[Floats], State], hessian: BlockHessian, lower: Floats, upper: Floats
) -> tuple[State, list[tuple[float, float]]]:
    """Return a point near the minimum, and for every step the value before it and the decrease it promised.

    Parameters
    ----------
    start : where to begin, inside the box
    at : what tells the value and the gradient at a point
    hessian : of the start, roughly
    lower, upper : (1 + p,)
    """
    here, failures, passes = start, 0, 0
    history: list[tuple[float, float]] = []
    memory = _Memory(hessian)
    while passes < _MOST_PASSES and failures < _MOST_FAILURES:
        d = memory.step(here, lower, upper)
        promise = -0.5 * float(here.gradient @ d)
        if promise <= _NEAR * max(here.value, 1e-3):
            break
        history.append((here.value, promise))
        there = at(np.clip(here.point + d, lower, upper))
        passes += 1
        s = there.point - here.point
        memory.learn(here, there)
        slope, end = float(here.gradient @ s), float(there.gradient @ s)
        if there.value > here.value + 1e-4 * slope:
            if not slope < min(end, 0.0):
                break  # so no convex loss goes: rounding speaks
            share = min(max(slope / (slope - end), _SHORTER[0]), _SHORTER[1])
            there = at(here.point + share * s)
            passes += 1
            memory.learn(here, there)
        failed = there.value > here.value
        failures = failures + 1 if failed else 0
        here = here if failed else there
    return here, history


class _Memory:
    """What the last steps did to the gradient."""

    def __init__(self, hessian: BlockHessian) -> None:
        self.hessian = hessian
        self.steps: list[Floats] = []
        self.changes: list[Floats] = []

    def learn(self, here: State, there: State) -> None:
        """Take in how the gradient changed over a step."""
        step, change = there.point - here.point, there.gradient - here.gradient
        if step @ change > 0:
            self.steps = [*self.steps, step][-_REMEMBERED:]
            self.changes = [*self.changes, change][-_REMEMBERED:]

    def step(self, here: State, lower: Floats, upper: Floats) -> Floats:
        """Return where to go; variables that would leave the box end at the bound, the others go without them."""
        g = here.gradient
        room_below, room_above = lower - here.point, upper - here.point
        free = ~(((room_below >= 0) & (g > 0)) | ((room_above <= 0) & (g < 0)))
        d = self._direction(g, free)
        below, above = free & (d < room_below), free & (d > room_above)
        outside = below | above
        if outside.any():
            d = self._direction(g, free & ~outside)
            d[below], d[above] = room_below[below], room_above[above]
        return d * min(1.0, _LONGEST / float(np.abs(d).max(initial=_LONGEST)))

    def _direction(self, g: Floats, free: Flags) -> Floats:
        """The two loops of L-BFGS in the free variables."""
        q = np.where(free, -g, 0.0)
        used = []
        for step, change in zip(reversed(self.steps), reversed(self.changes), strict=True):
            s, y = np.where(free, step, 0.0), np.where(free, change, 0.0)
            curvature = float(s @ y)
            if curvature > 1e-3 * float(step @ change):
                share = float(s @ q) / curvature
                q = q - share * y
                used.append((s, y, curvature, share))
        d = self.hessian.solve(q, free)
        if not used:
            d /= len(self.hessian.entries) ** 0.5  # the blocks of features that go together all pull the same way
        for s, y, curvature, share in reversed(used):
            d += (share - float(y @ d) / curvature) * s
        return d
