"""A convex loss near the point where its Hessian was taken: a quadratic, corrected by what the gradient did since.

A Hessian serves for several steps, even one from a sample of rows; but then every step is only so many times smaller
than the last. The change y of the gradient over a step s tells what the true Hessian does to s, and the BFGS formula
puts that in. While the same bounds hold, this takes neither a new Hessian nor a new factor of the old one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.solve.box import FREE, LOWER, BoxedQuadratic

__all__ = ["LocalModel"]

Floats = npt.NDArray[np.float64]

# The curvature along a step, as a multiple of what the Hessian says: beyond, rounding or a kink speaks.
_PLAUSIBLE = (0.2, 5.0)


class LocalModel:
    """A quadratic model of a loss in a box.

    Parameters
    ----------
    H : (n, n), the Hessian or an estimate of it; it is used up
    """

    def __init__(self, H: Floats) -> None:
        self.H = H
        self.box = BoxedQuadratic(H)
        self.secants: list[tuple[Floats, Floats]] = []

    def learn(self, step: Floats, change: Floats) -> None:
        """Take in how the gradient changed over a step, if it moved free variables only."""
        if step[self.box.state != FREE].any():
            return
        curvature, expected = float(step @ change), float(step @ (self.H @ step))
        if _PLAUSIBLE[0] * expected < curvature < _PLAUSIBLE[1] * expected:
            self.secants.append((step, change))

    def direction(self, g: Floats, lower: Floats, upper: Floats) -> tuple[Floats, float]:
        """Return the step to the model's minimum in the box, and by how much the model falls."""
        if self.secants:
            d = self._corrected(g, lower, upper)
            if d is not None:
                return d, -0.5 * float(g @ d)
            self.secants.clear()
        d = self.box.minimise(g, lower, upper)
        return d, -float(g @ d + 0.5 * d @ self.H @ d)

    def _corrected(self, g: Floats, lower: Floats, upper: Floats) -> Floats | None:
        """Return the step by the corrected Hessian if the bounds of the last step hold on, else None."""
        state = self.box.state
        free = state == FREE
        low = state == LOWER
        holds = np.where(low, (lower == 0) & (g >= 0), free | ((upper == 0) & (g <= 0)))
        if not free.any() or not holds.all():
            return None
        d = np.zeros(len(g))
        d[free] = self._inverse(-g[free], free)
        if not (lower <= d).all() or not (d <= upper).all() or g @ d >= 0:
            return None
        return d

    def _inverse(self, right: Floats, free: npt.NDArray[np.bool_]) -> Floats:
        """Apply the inverse of the corrected Hessian of the free variables (the two loops of L-BFGS)."""
        pairs = [(s[free], y[free]) for s, y in self.secants]
        q, shares = right, []
        for s, y in reversed(pairs):
            shares.append(float(s @ q) / float(s @ y))
            q = q - shares[-1] * y
        d = self.box.solver(free)(q)
        for (s, y), share in zip(pairs, reversed(shares), strict=True):
            d = d + (share - float(y @ d) / float(s @ y)) * s
        return d
