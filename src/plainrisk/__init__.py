"""Risk models whose parts add up, in plain probability."""

import importlib
from typing import TYPE_CHECKING, Any

from plainrisk import _interpreter  # noqa: F401  first: it refuses where other imports would hang
from plainrisk._version import __version__
from plainrisk.exports import verify_export
from plainrisk.extract import extract_form, register_extractor
from plainrisk.form import ALPHA_STAR, RiskForm
from plainrisk.model import RiskModel, load
from plainrisk.models.arm import AdditiveRiskModel
from plainrisk.models.boosted import BoostedRiskModel
from plainrisk.models.bootstrap import bootstrap
from plainrisk.models.linearise import Linearised, linearise
from plainrisk.models.mixture import SubscaleMixture
from plainrisk.models.nnlr import NonnegativeLogisticRegression
from plainrisk.models.pairs import suggest_pairs
from plainrisk.models.registry import CLASSIFIERS, make_classifier
from plainrisk.models.two_layer import TwoLayerRiskModel
from plainrisk.schema import Feature, Schema

if TYPE_CHECKING:
    from plainrisk import datasets, errors, explain
    from plainrisk.data import rows
    from plainrisk.measure import compare, metrics
    from plainrisk.models.crossval import cross_validate

__all__ = [
    "ALPHA_STAR",
    "CLASSIFIERS",
    "AdditiveRiskModel",
    "BoostedRiskModel",
    "Feature",
    "Linearised",
    "NonnegativeLogisticRegression",
    "RiskForm",
    "RiskModel",
    "Schema",
    "SubscaleMixture",
    "TwoLayerRiskModel",
    "__version__",
    "bootstrap",
    "compare",
    "cross_validate",
    "datasets",
    "errors",
    "explain",
    "extract_form",
    "linearise",
    "load",
    "make_classifier",
    "metrics",
    "register_extractor",
    "rows",
    "suggest_pairs",
    "verify_export",
]

_LAZY = {
    "compare": "plainrisk.measure.compare",
    "datasets": "plainrisk.datasets",
    "errors": "plainrisk.errors",
    "explain": "plainrisk.explain",
    "metrics": "plainrisk.measure.metrics",
    "rows": "plainrisk.data.rows",
}


def __getattr__(name: str) -> Any:
    """Import the parts that fitting does not need when they are first asked for."""
    if name in _LAZY:
        return importlib.import_module(_LAZY[name])
    if name == "cross_validate":
        return importlib.import_module("plainrisk.models.crossval").cross_validate
    raise AttributeError(f"module 'plainrisk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
