"""plainrisk's own models, from the frame as it is or from a matrix."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adapters.base import Adapter, Rows
from benchmarks.data import Data


class PlainriskAdapter(Adapter):
    """One classifier by its name.

    "NAME/matrix" reads the matrix, "NAME/columns" one that is stored by columns, "NAME/matrix/numpy" does without the
    compiled loops.
    """

    def __init__(self, variant: str) -> None:
        self.name, *how = variant.split("/")
        self.source = how[0] if how else ""
        self.max_bins = 5
        if "numpy" in how:
            os.environ["PLAINRISK_KERNELS"] = "numpy"

    def prepare(self, data: Data) -> Rows:
        """Return the frame, or the matrix if that was asked for."""
        import plainrisk
        from plainrisk._native import COMPILED

        assert plainrisk.CLASSIFIERS[self.name]
        assert not (COMPILED and os.environ.get("PLAINRISK_KERNELS") == "numpy"), "plainrisk was loaded too early"
        self.max_bins = data.max_bins
        if self.source == "columns":
            return Rows(np.asfortranarray(data.matrix), data.target, data.matrix_schema)
        if self.source == "matrix" or data.as_matrix:
            return Rows(data.matrix, data.target, data.matrix_schema)
        return Rows(data.frame, data.target, data.schema)

    def _model(self, schema: Any) -> Any:
        import plainrisk

        return plainrisk.make_classifier(self.name, schema, max_bins=self.max_bins)

    def fit(self, rows: Rows) -> Any:
        """Fit from the raw rows."""
        return self._model(rows.schema).fit(rows.X, rows.y)

    def predict(self, model: Any, rows: Rows) -> Any:
        """Score rows."""
        return model.predict_proba(rows.X)[:, 1]

    def explain(self, model: Any, rows: Rows) -> Any:
        """Split the risk of rows."""
        return model.explain(rows.X)

    def single(self, model: Any, rows: Rows) -> Callable[[], Any]:
        """Score one applicant given as a dict."""
        if isinstance(rows.X, np.ndarray):
            row = dict(zip(rows.schema.features, rows.X[0].tolist(), strict=True))
        else:
            row = rows.X.row(0, named=True)
        return lambda: model.predict_proba(row)

    def size(self, model: Any) -> int:
        """Return the bytes of the JSON file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            model.save(path)
            return path.stat().st_size

    def certificate(self, model: Any, rows: Rows) -> dict[str, Any]:
        """Return what the solver says; several models have no common objective."""
        record = model.fit_record_
        found: dict[str, Any] = {"kkt": max(record.kkt, default=None), "converged": record.converged}
        found["iterations"] = max(record.iterations, default=0)
        if self.name == "ARM1":
            found["objective"] = record.objective[0]
        return found

    def cross_validate(self, rows: Rows, folds: int) -> Any:
        """Return held-out risks, by plainrisk's own way where it has one."""
        import plainrisk

        own = getattr(plainrisk, "cross_validate", None)
        if own is None:
            return super().cross_validate(rows, folds)
        return own(self._model(rows.schema), rows.X, rows.y, folds=folds).risk


def make(variant: str) -> PlainriskAdapter:
    """Return the adapter of one classifier."""
    return PlainriskAdapter(variant)
