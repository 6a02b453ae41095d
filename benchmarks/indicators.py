"""ARM1's own problem as a dense matrix, for libraries that want one: the same bins, bounds and ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.adapters.base import Adapter, Rows, threads
from benchmarks.data import Data


@dataclass(frozen=True)
class Encoding:
    """How a row becomes indicators: the levels and the columns of every feature, and the bounds."""

    names: tuple[str, ...]
    levels: tuple[Any, ...]
    matrices: tuple[Any, ...]
    lower: Any

    def dense(self, codes: Any) -> Any:
        """Return the indicators of coded rows."""
        out = np.empty((len(codes[0]), len(self.lower)))
        at = 0
        for matrix, code in zip(self.matrices, codes, strict=True):
            out[:, at : at + matrix.shape[1]] = matrix[code]
            at += matrix.shape[1]
        return out

    def read(self, X: Any) -> Any:
        """Return the indicators of raw rows."""
        from plainrisk.data.frame import as_frame

        frame = as_frame(X)
        if not frame.named:
            frame = frame.renamed(self.names)
        return self.dense([lv.codes(frame, name) for lv, name in zip(self.levels, self.names, strict=True)])


def indicators(rows: Rows) -> tuple[Encoding, Any]:
    """Bin and code rows as ARM1 does, and return the encoding and the dense indicators."""
    from plainrisk.bins import feature_columns
    from plainrisk.models.fitting import encode_rows
    from plainrisk.models.training import read_training

    training = read_training(rows.X, rows.y, rows.schema, None, None)
    found = encode_rows(training, max_bins=5)
    features = [training.schema.features[name] for name in found.names]
    columns = [
        feature_columns(w, lv.n_ordered, f.sign) for w, lv, f in zip(found.weights, found.levels, features, strict=True)
    ]
    encoding = Encoding(
        found.names, found.levels, tuple(c.matrix for c in columns), np.concatenate([c.lower for c in columns])
    )
    return encoding, encoding.dense(found.codes)


@dataclass(frozen=True)
class IndicatorModel:
    """Coefficients of indicators."""

    encoding: Encoding
    intercept: float
    coefficients: Any
    converged: bool


class IndicatorAdapter(Adapter):
    """A library that fits the indicators; `solve` is its own, and `bounded` says whether it keeps the directions."""

    bounded = True
    calls = 0

    def prepare(self, data: Data) -> Rows:
        """Return what ARM1 gets."""
        import plainrisk.models.fitting

        assert plainrisk.models.fitting
        if data.as_matrix:
            return Rows(data.matrix, data.target, data.matrix_schema)
        return Rows(data.frame, data.target, data.schema)

    def solve(self, dense: Any, y: Any, lower: Any, ridge: float) -> tuple[float, Any, bool]:
        """Return intercept, coefficients, and whether it says that it has converged."""
        raise NotImplementedError

    def fit(self, rows: Rows) -> IndicatorModel:
        """Bin, encode and solve, with one BLAS thread and with all in turn: either may be the faster by far."""
        from threadpoolctl import threadpool_limits

        encoding, dense = indicators(rows)
        y = rows.y.astype(np.float64)
        self.calls += 1
        with threadpool_limits(1 if self.calls % 2 else threads(), user_api="blas"):
            return IndicatorModel(encoding, *self.solve(dense, y, encoding.lower, 1.0 / (2.0 * len(y))))

    def warm(self, data: Data) -> None:
        """Fit a few rows, and begin with one thread."""
        super().warm(data)
        self.calls = 0

    def predict(self, model: IndicatorModel, rows: Rows) -> Any:
        """Score rows."""
        score = model.intercept + model.encoding.read(rows.X) @ model.coefficients
        return 1.0 / (1.0 + np.exp(-score))

    def certificate(self, model: IndicatorModel, rows: Rows) -> dict[str, Any]:
        """Return the objective of mean log loss + ridge ||beta||^2, and the KKT residual.

        The residual is that of the projected gradient, which forgives coefficients a hair above their bound.
        """
        dense, y, beta = model.encoding.read(rows.X), rows.y.astype(np.float64), model.coefficients
        ridge, n = 1.0 / (2.0 * len(y)), len(y)
        score = model.intercept + dense @ beta
        residual = (1.0 / (1.0 + np.exp(-score)) - y) / n
        gradient = np.concatenate([[residual.sum()], dense.T @ residual + 2.0 * ridge * beta])
        lower = model.encoding.lower if self.bounded else np.full(len(beta), -np.inf)
        point = np.concatenate([[model.intercept], beta])
        low = np.concatenate([[-np.inf], lower])
        return {
            "objective": float(np.mean(np.logaddexp(0.0, score) - y * score) + ridge * beta @ beta),
            "kkt": float(np.abs(point - np.maximum(point - gradient, low)).max()),
            "converged": model.converged,
        }
