"""Variants of our models that answer one question each: what would have been, had this been done otherwise."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.data.frame import Frame, as_frame
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.classifiers import make_classifier
from plainrisk.models.linearised import Linearised
from plainrisk.models.two_layer import TwoLayerRiskModel
from plainrisk.schema import Schema
from plainrisk.study import slsqp

__all__ = ["CodesAsNumbers", "codes_as_numbers", "refitted_line", "tuned", "without_order"]


def without_order(schema: Schema, *, make: str) -> Any:
    """Return a classifier under the paper's conventions that ignores the directions of categorical features."""
    features = {
        name: msgspec.structs.replace(feature, direction="none") if feature.kind == "categorical" else feature
        for name, feature in schema.features.items()
    }
    return make_classifier(make, msgspec.structs.replace(schema, features=features), paper=True)


def tuned(schema: Schema, *, link: str = "logistic", max_bins: int = 10) -> Any:
    """Return ARM1 (link "logistic") or DirectARM1 ("linear") with more bins and its ridge chosen inside the fit."""
    return AdditiveRiskModel(schema.unbinned(), link=link, max_bins=max_bins, ridge="cv")  # type: ignore[arg-type]


def refitted_line(schema: Schema, *, ridge: float | Literal["auto"] = 0.0) -> Any:
    """Return LinARM2, balanced, whose second layer is fitted on the linearised risks of the first.

    Ours is ARM2 with both links replaced after the fit.
    """
    inner = Linearised(AdditiveRiskModel(ridge=ridge))
    return Linearised(TwoLayerRiskModel(inner, schema, ridge=ridge, class_weight="balanced"))


def codes_as_numbers(schema: Schema, *, make: str, **options: Any) -> Any:
    """Return a classifier that reads a code for "missing" as the number it is, with no bin of its own.

    What is made is one of the factories of `slsqp`, by name, or a classifier under the paper's conventions.
    """
    plain = {
        name: msgspec.structs.replace(feature, special_values=(), lower_bound=None)
        if feature.kind == "continuous"
        else feature
        for name, feature in schema.features.items()
    }
    known = msgspec.structs.replace(schema, features=plain)
    factory = getattr(slsqp, make, None)
    model = make_classifier(make, known, paper=True) if factory is None else factory(known, **options)
    return CodesAsNumbers(model, schema)


class CodesAsNumbers:
    """A classifier that is given each feature's first special value wherever a value is missing."""

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model = model
        self.codes = {
            name: float(feature.special_values[0])
            for name, feature in schema.features.items()
            if feature.kind == "continuous" and feature.special_values
        }

    def fit(self, X: Any, y: Any) -> CodesAsNumbers:
        """Fit to rows and outcomes."""
        self.model.fit(self._filled(X), y)
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probabilities of both outcomes."""
        return np.asarray(self.model.predict_proba(self._filled(X)))

    def _filled(self, X: Any) -> Frame:
        frame = as_frame(X)
        columns = dict(frame.columns)
        for name, code in self.codes.items():
            numbers = frame.numbers(name)
            columns[name] = np.where(np.isnan(numbers), code, numbers)
        return Frame(tuple(columns), columns, frame.n_rows)
