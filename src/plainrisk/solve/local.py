"""A convex loss near the point where its Hessian was taken: a quadratic, corrected by what the gradient did since.

A Hessian serves for several steps, even one from a sample of rows; but then every step is only so many times smaller
than the last. The change y of the gradient over a step s tells what the true Hessian does to s, and the BFGS formula
puts that in. While the same bounds hold, this takes neither a new Hessian nor a new factor of the old one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plainrisk.solve.box import FREE, LOWER, UPPER, BoxedQuadratic

__all__ = ["LocalModel"]

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

# The curvature along a step, as a multiple of what the Hessian says: beyond, rounding or a kink speaks.
_PLAUSIBLE = (0.2, 5.0)


@dataclass(frozen=True)
class _Held:
    """Which bounds held in a step: positions of the variables."""

    free: Places
    low: Places
    high: Places

    @classmethod
    def of(cls, state: npt.NDArray[np.int8]) -> _Held:
        """Read what a boxed quadratic says."""
        return cls(*(np.flatnonzero(state == side) for side in (FREE, LOWER, UPPER)))

    def hold_on(self, g: Floats, lower: Floats, upper: Floats) -> bool:
        """Return whether the variables at a bound are at it still, and the gradient keeps them there."""
        low, high = self.low, self.high
        at_bounds = not lower[low].any() and not upper[high].any()
        return bool(at_bounds and (g[low] >= 0).all() and (g[high] <= 0).all())


class LocalModel:
    """A quadratic model of a loss in a box.

    Parameters
    ----------
    H : (n, n), the Hessian or an estimate of it; it is used up
    """

    def __init__(self, H: Floats) -> None:
        self.H = H
        self.box = BoxedQuadratic(H)
        self.held = _Held.of(self.box.state)
        self.secants: list[tuple[Floats, Floats, float]] = []

    def learn(self, step: Floats, change: Floats) -> None:
        """Take in how the gradient changed over a step, if it moved free variables only."""
        if step[self.held.low].any() or step[self.held.high].any():
            return
        curvature, expected = float(step @ change), float(step @ (self.H @ step))
        if _PLAUSIBLE[0] * expected < curvature < _PLAUSIBLE[1] * expected:
            self.secants.append((step[self.held.free], change[self.held.free], curvature))

    def direction(self, g: Floats, lower: Floats, upper: Floats) -> tuple[Floats, float]:
        """Return the step to the model's minimum in the box, and by how much the model falls."""
        if self.secants:
            d = self._corrected(g, lower, upper)
            if d is not None:
                return d, -0.5 * float(g @ d)
            self.secants.clear()
        d = self.box.minimise(g, lower, upper)
        self.held = _Held.of(self.box.state)
        return d, -float(g @ d + 0.5 * d @ self.H @ d)

    def _corrected(self, g: Floats, lower: Floats, upper: Floats) -> Floats | None:
        """Return the step by the corrected Hessian if the bounds of the last step hold on, else None."""
        free = self.held.free
        if not len(free) or not self.held.hold_on(g, lower, upper):
            return None
        d = np.zeros(len(g))
        d[free] = self._inverse(-g[free])
        return None if (d < lower).any() or (d > upper).any() or not g @ d < 0 else d

    def _inverse(self, right: Floats) -> Floats:
        """Apply the inverse of the corrected Hessian of the free variables (the two loops of L-BFGS)."""
        q, shares = right, []
        for s, y, curvature in reversed(self.secants):
            shares.append(float(s @ q) / curvature)
            q = q - shares[-1] * y
        d = self.box.solver(self.box.state == FREE)(q)
        for (s, y, curvature), share in zip(self.secants, reversed(shares), strict=True):
            d = d + (share - float(y @ d) / curvature) * s
        return d
