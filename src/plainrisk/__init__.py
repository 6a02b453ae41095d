"""Risk models whose parts add up, in plain probability."""

import importlib
import logging
from typing import TYPE_CHECKING, Any

from plainrisk import _interpreter  # noqa: F401  first: it refuses where other imports would hang
from plainrisk._version import __version__

if TYPE_CHECKING:
    from plainrisk import datasets, errors, explain
    from plainrisk.data import rows
    from plainrisk.explain.best_line import best_line
    from plainrisk.explain.diff import diff
    from plainrisk.exports import verify_export
    from plainrisk.extract import extract_form, register_extractor
    from plainrisk.form import ALPHA_STAR, RiskForm
    from plainrisk.measure import metrics
    from plainrisk.model import RiskModel, load, sign
    from plainrisk.models.arm import AdditiveRiskModel, suggest_pairs
    from plainrisk.models.boosted import BoostedRiskModel
    from plainrisk.models.linearise import Linearised, linearise
    from plainrisk.models.mixture import SubscaleMixture
    from plainrisk.models.nnlr import NonnegativeLogisticRegression
    from plainrisk.models.registry import CLASSIFIERS, make_classifier
    from plainrisk.models.two_layer import TwoLayerRiskModel
    from plainrisk.receipts import verify_receipt
    from plainrisk.schema import Feature, Schema
    from plainrisk.validate.bootstrap import bootstrap
    from plainrisk.validate.challengers import challengers
    from plainrisk.validate.crossval import cross_validate
    from plainrisk.validate.holdout import cutoffs, drift, evaluate, fairness
    from plainrisk.validate.monitoring import monitor
    from plainrisk.validate.overrides import overrides
    from plainrisk.validate.periods import periods
    from plainrisk.validate.prices import prices
    from plainrisk.validate.quality import quality
    from plainrisk.validate.stability import stability
    from plainrisk.validate.stress import sensitivity, stress
    from plainrisk.validate.weak_spots import weak_spots

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
    "best_line",
    "bootstrap",
    "challengers",
    "cross_validate",
    "cutoffs",
    "datasets",
    "diff",
    "drift",
    "errors",
    "evaluate",
    "explain",
    "extract_form",
    "fairness",
    "linearise",
    "load",
    "make_classifier",
    "metrics",
    "monitor",
    "overrides",
    "periods",
    "prices",
    "quality",
    "register_extractor",
    "rows",
    "sensitivity",
    "sign",
    "stability",
    "stress",
    "suggest_pairs",
    "verify_export",
    "verify_receipt",
    "weak_spots",
]

# Each part is imported when it is first asked for: a command needs few of them, and estimators load scikit-learn, which
# takes a second.
_MODULES = {
    "datasets": "datasets",
    "errors": "errors",
    "explain": "explain",
    "form": "form",
    "metrics": "measure.metrics",
    "model": "model",
    "rows": "data.rows",
    "schema": "schema",
}
_OWNERS = {
    "explain.best_line": ("best_line",),
    "explain.diff": ("diff",),
    "exports": ("verify_export",),
    "extract": ("extract_form", "register_extractor"),
    "form": ("ALPHA_STAR", "RiskForm"),
    "model": ("RiskModel", "load", "sign"),
    "models.arm": ("AdditiveRiskModel", "suggest_pairs"),
    "models.boosted": ("BoostedRiskModel",),
    "validate.bootstrap": ("bootstrap",),
    "validate.challengers": ("challengers",),
    "validate.crossval": ("cross_validate",),
    "validate.holdout": ("cutoffs", "drift", "evaluate", "fairness"),
    "models.linearise": ("Linearised", "linearise"),
    "models.mixture": ("SubscaleMixture",),
    "models.nnlr": ("NonnegativeLogisticRegression",),
    "models.registry": ("CLASSIFIERS", "make_classifier"),
    "models.two_layer": ("TwoLayerRiskModel",),
    "receipts": ("verify_receipt",),
    "schema": ("Feature", "Schema"),
    "validate.monitoring": ("monitor",),
    "validate.overrides": ("overrides",),
    "validate.periods": ("periods",),
    "validate.prices": ("prices",),
    "validate.quality": ("quality",),
    "validate.stability": ("stability",),
    "validate.stress": ("sensitivity", "stress"),
    "validate.weak_spots": ("weak_spots",),
}
_OWNER = {name: module for module, names in _OWNERS.items() for name in names}

logging.getLogger("plainrisk").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    """Import a module when it is first used."""
    if name in _MODULES:
        part: Any = importlib.import_module(f"plainrisk.{_MODULES[name]}")
    elif name in _OWNER:
        part = getattr(importlib.import_module(f"plainrisk.{_OWNER[name]}"), name)
    else:
        raise AttributeError(f"module 'plainrisk' has no attribute {name!r}")
    globals()[name] = part
    return part


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
