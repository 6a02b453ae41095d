"""What the runner asks of every library."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.data import Data

WARM_ROWS = 500


@dataclass(frozen=True)
class Rows:
    """Rows as a method likes them, outcomes, and what is known of the features."""

    X: Any
    y: Any
    schema: Any

    def take(self, index: Any) -> Rows:
        """Return some of the rows."""
        X = self.X.iloc[index] if hasattr(self.X, "iloc") else self.X[index]
        return Rows(X, self.y[index], self.schema)


class Adapter:
    """A method under the clock; what it does not offer it leaves as it is here.

    `prepare` and `warm` are not timed; `fit` starts from the rows as they are and holds all binning and encoding.
    """

    def prepare(self, data: Data) -> Rows:
        """Import the library and bring the rows into the shape it likes best."""
        raise NotImplementedError

    def fit(self, rows: Rows) -> Any:
        """Return a fitted model."""
        raise NotImplementedError

    def predict(self, model: Any, rows: Rows) -> Any:
        """Return the risk of every row."""
        raise NotImplementedError

    def warm(self, data: Data) -> None:
        """Fit a few rows, so that what is loaded or started once is not in the clock."""
        self.fit(self.prepare(data.head(WARM_ROWS)))

    def explain(self, model: Any, rows: Rows) -> Any:
        """Return what every feature contributes to every row."""
        raise NotImplementedError

    def single(self, model: Any, rows: Rows) -> Callable[[], Any]:
        """Return a call that scores the first row, as an application would hand it over."""
        one = rows.take(np.arange(1))
        return lambda: self.predict(model, one)

    def size(self, model: Any) -> int:
        """Return the bytes of the model's file."""
        return len(pickle.dumps(model))

    def certificate(self, model: Any, rows: Rows) -> dict[str, Any]:
        """Return objective and KKT residual where there are such."""
        return {}

    def cross_validate(self, rows: Rows, folds: int) -> Any:
        """Return the held-out risk of every row."""
        from sklearn.model_selection import StratifiedKFold

        risk = np.empty(len(rows.y))
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(rows.y, rows.y):
            risk[test] = self.predict(self.fit(rows.take(train)), rows.take(test))
        return risk


def threads() -> int:
    """Return the threads that this process was given."""
    import os

    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def signs(schema: Any) -> list[int]:
    """Return the direction of every feature: -1, 0 or 1."""
    return [int(feature.sign) for feature in schema.features.values()]


def tree_rows(data: Data) -> Rows:
    """Return the float32 matrix for boosted trees."""
    return Rows(data.tree_matrix(), data.target, data.matrix_schema)
