"""The paper's way: scipy's SLSQP on dense indicators of ARM1's bins."""

from __future__ import annotations

from typing import Any

from benchmarks.data import Data
from benchmarks.indicators import IndicatorAdapter

# What is handed to scipy: to convergence, and as scipy comes.
SETTINGS: dict[str, dict[str, Any]] = {
    "converged": {"tolerance": 1e-12, "max_iterations": 2000},
    "default": {},
}


class SLSQPAdapter(IndicatorAdapter):
    """SLSQP from zero."""

    def __init__(self, variant: str) -> None:
        self.settings = SETTINGS[variant]

    def warm(self, data: Data) -> None:
        """Skip: many columns make even a few rows slow."""

    def solve(self, dense: Any, y: Any, lower: Any, ridge: float) -> tuple[float, Any, bool]:
        """Minimise."""
        from paper.slsqp import minimise_slsqp

        found = minimise_slsqp(dense, y, ridge=ridge, lower=lower, **self.settings)
        return found.intercept, found.coefficients, found.converged


def make(variant: str) -> SLSQPAdapter:
    """Return the adapter at one tolerance."""
    return SLSQPAdapter(variant)
