"""glum with bounds on indicators of ARM1's bins."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.adapters.base import Rows
from benchmarks.data import Data
from benchmarks.indicators import IndicatorAdapter

TOLERANCE = 1e-7


class GlumAdapter(IndicatorAdapter):
    """GeneralizedLinearRegressor, binomial."""

    def prepare(self, data: Data) -> Rows:
        """Import glum too."""
        import glum

        assert glum
        return super().prepare(data)

    def solve(self, dense: Any, y: Any, lower: Any, ridge: float) -> tuple[float, Any, bool]:
        """Fit; glum's penalty is alpha / 2 ||beta||^2, its loss half the mean deviance, which is the log loss."""
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(
            family="binomial",
            alpha=2.0 * ridge,
            l1_ratio=0,
            lower_bounds=lower,
            upper_bounds=np.full(len(lower), np.inf),
            gradient_tol=TOLERANCE,
            max_iter=1000,
            copy_X=False,
            check_input=False,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(dense, y)
        stopped = any("onverge" in str(w.message) for w in caught)
        return float(model.intercept_), np.asarray(model.coef_), not stopped


def make(variant: str) -> GlumAdapter:
    """Return the adapter."""
    return GlumAdapter()
