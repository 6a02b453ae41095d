"""pyGAM's logistic additive model."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.adapters.base import Adapter, Rows
from benchmarks.data import Data


class PyGAMAdapter(Adapter):
    """LogisticGAM: a spline per feature."""

    def prepare(self, data: Data) -> Rows:
        """Return float64 without missing values, which pyGAM does not take."""
        import pygam

        assert pygam
        X = data.matrix
        return Rows(np.where(np.isnan(X), np.nanmedian(X, axis=0), X), data.target, data.matrix_schema)

    def warm(self, data: Data) -> None:
        """Skip: few rows may have no solution."""

    def fit(self, rows: Rows) -> Any:
        """Fit the splines."""
        from pygam import LogisticGAM
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # its many small products are faster so
            return LogisticGAM().fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        """Score rows."""
        return model.predict_proba(rows.X)


def make(variant: str) -> PyGAMAdapter:
    """Return the adapter."""
    return PyGAMAdapter()
