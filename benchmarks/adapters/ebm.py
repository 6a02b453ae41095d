"""The explainable boosting machine of interpret, without interactions."""

from __future__ import annotations

from typing import Any

from benchmarks.adapters.base import Adapter, Rows, threads
from benchmarks.data import Data


class EBMAdapter(Adapter):
    """Main effects alone; bagging and rounds as they come."""

    def prepare(self, data: Data) -> Rows:
        """Return float64 with NaN for missing."""
        import interpret.glassbox

        assert interpret.glassbox
        return Rows(data.matrix, data.target, data.matrix_schema)

    def fit(self, rows: Rows) -> Any:
        """Fit the bags, as many at a time as there are threads."""
        from interpret.glassbox import ExplainableBoostingClassifier

        features = rows.schema.features.values()
        model = ExplainableBoostingClassifier(
            interactions=0,
            feature_types=["continuous" if f.kind == "continuous" else "nominal" for f in features],
            n_jobs=threads(),
            random_state=0,
        )
        return model.fit(rows.X, rows.y)

    def warm(self, data: Data) -> None:
        """Skip: even a few rows take seconds."""

    def predict(self, model: Any, rows: Rows) -> Any:
        """Score rows."""
        return model.predict_proba(rows.X)[:, 1]

    def explain(self, model: Any, rows: Rows) -> Any:
        """Return the terms of every row."""
        return model.eval_terms(rows.X)


def make(variant: str) -> EBMAdapter:
    """Return the adapter."""
    return EBMAdapter()
