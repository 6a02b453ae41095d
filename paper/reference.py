"""The paper's own way to fit: SLSQP on a dense matrix. For tests and benchmarks, not for use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plainrisk.solve.certificate import Solution, kkt_residual

__all__ = ["minimise_slsqp"]

Floats = npt.NDArray[np.float64]


def minimise_slsqp(
    X: Floats,
    positive: Floats,
    weight: Floats | None = None,
    *,
    ridge: float = 0.0,
    lower: Floats | None = None,
    upper: Floats | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> Solution:
    """Minimise mean log loss + ridge ||beta||^2 under bounds with scipy's SLSQP; the defaults are scipy's."""
    from scipy.optimize import Bounds, minimize

    n, p = X.shape
    w = np.ones(n) if weight is None else weight
    A = np.column_stack([np.ones(n), X])
    penalty = np.concatenate([[0.0], np.full(p, ridge)])
    low = np.concatenate([[-np.inf], np.full(p, -np.inf) if lower is None else lower])
    high = np.concatenate([[np.inf], np.full(p, np.inf) if upper is None else upper])

    def objective(point: Floats) -> tuple[float, Floats]:
        score = A @ point
        probability = 1.0 / (1.0 + np.exp(-np.clip(score, -700, 700)))
        loss = (w @ np.logaddexp(0.0, score) - positive @ score) / w.sum()
        gradient = A.T @ (w * probability - positive) / w.sum()
        return float(loss + penalty @ point**2), gradient + 2.0 * penalty * point

    found = minimize(
        objective,
        np.zeros(p + 1),
        jac=True,
        method="SLSQP",
        bounds=Bounds(low, high),
        options={"ftol": tolerance, "maxiter": max_iterations},
    )
    value, gradient = objective(found.x)
    return Solution(
        intercept=float(found.x[0]),
        coefficients=found.x[1:],
        objective=value,
        loss=value - float(penalty @ found.x**2),
        kkt=kkt_residual(found.x, gradient, low, high),
        iterations=int(found.nit),
        converged=bool(found.success),
        reason=str(found.message),
        at_box=np.zeros(p, dtype=bool),
    )
