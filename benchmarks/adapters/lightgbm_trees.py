"""LightGBM with the budget that XGBoost has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.adapters.base import Adapter, Rows, signs, threads, tree_rows
from benchmarks.data import Data


class LightGBMAdapter(Adapter):
    """50 trees of depth 2."""

    def prepare(self, data: Data) -> Rows:
        """Return float32, NaN for missing."""
        import lightgbm

        assert lightgbm
        return tree_rows(data)

    def fit(self, rows: Rows) -> Any:
        """Fit the trees."""
        import lightgbm

        settings = {
            "objective": "binary",
            "num_leaves": 4,
            "max_depth": 2,
            "learning_rate": 0.1,
            "monotone_constraints": signs(rows.schema),
            "num_threads": threads(),
            "verbosity": -1,
        }
        return lightgbm.train(settings, lightgbm.Dataset(rows.X, rows.y), num_boost_round=50)

    def predict(self, model: Any, rows: Rows) -> Any:
        """Score rows."""
        return model.predict(rows.X)

    def explain(self, model: Any, rows: Rows) -> Any:
        """Return TreeSHAP contributions."""
        return model.predict(rows.X, pred_contrib=True)

    def single(self, model: Any, rows: Rows) -> Callable[[], Any]:
        """Score one row on one thread, which is the faster way."""
        one = rows.X[:1].copy()
        return lambda: model.predict(one, num_threads=1)

    def size(self, model: Any) -> int:
        """Return the bytes of LightGBM's own text file."""
        return len(model.model_to_string().encode())


def make(variant: str) -> LightGBMAdapter:
    """Return the adapter."""
    return LightGBMAdapter()
