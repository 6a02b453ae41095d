"""optbinning: optimal bins with trends, weights of evidence, logistic regression, a scorecard."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.adapters.base import Adapter, Rows, threads
from benchmarks.data import Data

TRENDS = {1: "ascending", -1: "descending", 0: "auto"}


class OptbinningAdapter(Adapter):
    """A Scorecard of a BinningProcess and scikit-learn's logistic regression."""

    def prepare(self, data: Data) -> Rows:
        """Return a pandas frame, as optbinning asks for."""
        import optbinning

        assert optbinning
        frame = data.frame.to_pandas()
        for name, feature in data.schema.features.items():
            if feature.kind == "categorical":
                frame[name] = frame[name].astype(str).astype(object)
        return Rows(frame, data.target, data.schema)

    def fit(self, rows: Rows) -> Any:
        """Bin, weigh and fit."""
        from optbinning import BinningProcess, Scorecard
        from sklearn.linear_model import LogisticRegression

        features = rows.schema.features
        options: dict[str, dict[str, Any]] = {}
        for name, feature in features.items():
            options[name] = {"max_n_bins": 5}
            if feature.kind == "continuous":
                options[name]["monotonic_trend"] = TRENDS[feature.sign]
                if feature.special_values:
                    options[name]["special_codes"] = list(feature.special_values)
        process = BinningProcess(
            list(features),
            categorical_variables=[n for n, f in features.items() if f.kind == "categorical"],
            binning_fit_params=options,
            n_jobs=threads(),
        )
        return Scorecard(process, LogisticRegression(max_iter=1000)).fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        """Score rows."""
        return np.asarray(model.predict_proba(rows.X))[:, 1]


def make(variant: str) -> OptbinningAdapter:
    """Return the adapter."""
    return OptbinningAdapter()
