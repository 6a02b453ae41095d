"""One step of L-BFGS in a box, from a Hessian in blocks; `plainrisk.solve.approach` goes on with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk._native.choice import compiled
from plainrisk._native.pairs import Blocks

__all__ = ["BlockHessian", "block_step"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Added to the diagonal of blocks, relative to each entry: columns of a block may say the same.
_DAMPING = 1e-6
# A direction of less curvature than this share of the most is rounding.
_FLAT = 1e-11
# What is left of a step's curvature in the free variables says nothing if it is less than this share.
_LITTLE = 1e-3


@dataclass(frozen=True)
class BlockHessian:
    """A Hessian of an intercept and of columns that, but for what they share by way of it, go together in blocks only.

    Attributes
    ----------
    corner : (1,), the intercept's entry
    border : (p,), the columns' entries with the intercept
    blocks : the columns' entries with each other
    ridge : (p,), what is added to the columns' entries with themselves
    """

    corner: Floats
    border: Floats
    blocks: Blocks
    ridge: Floats

    def solve(self, right: Floats, free: Flags) -> Floats:
        """Return d with ``H d = right`` in the free variables, the intercept among them; the others are 0."""
        d = np.zeros(len(right))
        start = 0
        for block in self.blocks:
            inside = np.flatnonzero(free[1 + start : 1 + start + len(block)])
            at = start + inside
            border = self.border[at]
            entries = block[np.ix_(inside, inside)] - np.outer(border, border / self.corner)
            entries.flat[:: len(at) + 1] *= 1.0 + _DAMPING
            entries.flat[:: len(at) + 1] += self.ridge[at]
            if len(at):
                rest = right[1 + at] - border * (right[0] / self.corner)
                d[1 + at] = np.linalg.lstsq(entries, rest, rcond=_FLAT)[0]
            start += len(block)
        d[:1] = (right[0] - self.border @ d[1:]) / self.corner
        return d


def block_step(
    point: Floats,
    gradient: Floats,
    lower: Floats,
    upper: Floats,
    hessian: BlockHessian,
    steps: Floats,
    changes: Floats,
    longest: float,
) -> Floats:
    """Return where to go from a point: the step of L-BFGS in the variables that no bound holds.

    Those that would leave the box end at its bound, and the others go without them.

    Parameters
    ----------
    point, gradient, lower, upper : (1 + p,), the intercept first, which has no bounds
    hessian : where all begins
    steps, changes : (k, 1 + p), earlier steps and what they did to the gradient, the last one last
    longest : the most a variable may move

    Examples
    --------
    >>> blocks = Blocks(np.array([2]), np.array([2.0, 0.0, 0.0, 4.0]))
    >>> hessian = BlockHessian(np.ones(1), np.zeros(2), blocks, ridge=np.zeros(2))
    >>> nothing = np.zeros((0, 3))
    >>> bounds = np.array([-np.inf, 0.0, -np.inf]), np.full(3, np.inf)
    >>> gradient = np.array([0.5, 1.0, 2.0])
    >>> block_step(np.zeros(3), gradient, *bounds, hessian, nothing, nothing, longest=1.0).round(4)
    array([-0.5,  0. , -0.5])
    """
    if compiled is not None:
        d = np.empty(len(point))
        blocks = hessian.blocks
        shape = hessian.corner, hessian.border, hessian.ridge, blocks.widths, blocks.entries
        compiled.block_step(point, gradient, lower, upper, *shape, steps, changes, d, longest)
        return d
    below, above = lower - point, upper - point
    free = ~(((below >= 0) & (gradient > 0)) | ((above <= 0) & (gradient < 0)))
    d = _direction(gradient, free, hessian, steps, changes)
    outside = free & ((d < below) | (d > above))
    if outside.any():
        to = np.where(d < below, below, above)
        d = np.where(outside, to, _direction(gradient, free & ~outside, hessian, steps, changes))
    return d * min(1.0, longest / float(np.abs(d).max(initial=longest)))


def _direction(gradient: Floats, free: Flags, hessian: BlockHessian, steps: Floats, changes: Floats) -> Floats:
    """The two loops of L-BFGS in the free variables."""
    q = np.where(free, -gradient, 0.0)
    used = []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        s, y = np.where(free, step, 0.0), np.where(free, change, 0.0)
        curvature = float(s @ y)
        if curvature > _LITTLE * float(step @ change):
            share = float(s @ q) / curvature
            q = q - share * y
            used.append((s, y, curvature, share))
    d = hessian.solve(q, free)
    if not used:
        d /= len(hessian.blocks.widths) ** 0.5  # the blocks of features that go together all pull the same way
    for s, y, curvature, share in reversed(used):
        d += (share - float(y @ d) / curvature) * s
    return d
