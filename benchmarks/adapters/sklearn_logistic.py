"""scikit-learn's logistic regression on indicators of ARM1's bins; it knows no bounds."""

from __future__ import annotations

import warnings
from typing import Any

from benchmarks.indicators import IndicatorAdapter


class LogisticAdapter(IndicatorAdapter):
    """The same ridge: C = 1 / (2 n ridge)."""

    bounded = False

    def solve(self, dense: Any, y: Any, lower: Any, ridge: float) -> tuple[float, Any, bool]:
        """Fit by the solver that scikit-learn recommends for many rows of indicators."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=1.0 / (2.0 * len(y) * ridge), solver="newton-cholesky", max_iter=1000)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(dense, y)
        stopped = any(issubclass(w.category, ConvergenceWarning) for w in caught)
        return float(model.intercept_[0]), model.coef_[0], not stopped


def make(variant: str) -> LogisticAdapter:
    """Return the adapter."""
    return LogisticAdapter()
