"""scikit-learn's histogram gradient boosting with the budget that XGBoost has."""

from __future__ import annotations

from typing import Any

from benchmarks.adapters.base import Adapter, Rows, signs, tree_rows
from benchmarks.data import Data


class HistGradientBoostingAdapter(Adapter):
    """50 trees of depth 2; threads by OpenMP."""

    def prepare(self, data: Data) -> Rows:
        """Return float64: scikit-learn would turn float32 into it under the clock."""
        import sklearn.ensemble

        assert sklearn.ensemble
        rows = tree_rows(data)
        return Rows(rows.X.astype("float64"), rows.y, rows.schema)

    def fit(self, rows: Rows) -> Any:
        """Fit the trees."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            max_iter=50, max_depth=2, learning_rate=0.1, early_stopping=False, monotonic_cst=signs(rows.schema)
        )
        return model.fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        """Score rows."""
        return model.predict_proba(rows.X)[:, 1]


def make(variant: str) -> HistGradientBoostingAdapter:
    """Return the adapter."""
    return HistGradientBoostingAdapter()
