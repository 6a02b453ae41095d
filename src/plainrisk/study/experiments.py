"""Variants of our models that answer one question each: what would have been, had this been done otherwise."""

from __future__ import annotations

from typing import Any

import msgspec

from plainrisk.estimators.arm import AdditiveRiskModel
from plainrisk.estimators.classifiers import make_classifier
from plainrisk.schema import Schema

__all__ = ["tuned", "without_order"]


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
