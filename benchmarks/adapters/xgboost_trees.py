"""XGBoost itself, with the paper's parameters and the schema's directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.adapters.base import Adapter, Rows, signs, threads, tree_rows
from benchmarks.data import Data


class XGBoostAdapter(Adapter):
    """50 trees of depth 2."""

    def prepare(self, data: Data) -> Rows:
        """Return float32, NaN for missing."""
        import xgboost

        assert xgboost
        return tree_rows(data)

    def fit(self, rows: Rows) -> Any:
        """Fit the trees; the histogram method is XGBoost's own choice."""
        from xgboost import XGBClassifier

        model = XGBClassifier(
            max_depth=2,
            n_estimators=50,
            learning_rate=0.1,
            eval_metric="logloss",
            n_jobs=threads(),
            monotone_constraints=tuple(signs(rows.schema)),
        )
        return model.fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        """Score in place, which is faster than through a DMatrix or predict_proba."""
        return model.get_booster().inplace_predict(rows.X)

    def explain(self, model: Any, rows: Rows) -> Any:
        """Return TreeSHAP contributions."""
        from xgboost import DMatrix

        return model.get_booster().predict(DMatrix(rows.X), pred_contribs=True)

    def single(self, model: Any, rows: Rows) -> Callable[[], Any]:
        """Score one row on one thread, which is the faster way."""
        booster, one = model.get_booster().copy(), rows.X[:1].copy()
        booster.set_param({"nthread": 1})
        return lambda: booster.inplace_predict(one)

    def size(self, model: Any) -> int:
        """Return the bytes of XGBoost's own binary file."""
        return len(model.get_booster().save_raw("ubj"))


def make(variant: str) -> XGBoostAdapter:
    """Return the adapter."""
    return XGBoostAdapter()
