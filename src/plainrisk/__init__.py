"""Risk models whose parts add up, in plain probability."""

import importlib
from typing import TYPE_CHECKING, Any

from plainrisk._version import __version__
from plainrisk.estimators.arm import AdditiveRiskModel
from plainrisk.estimators.boosted import BoostedRiskModel
from plainrisk.estimators.bootstrap import bootstrap
from plainrisk.estimators.classifiers import CLASSIFIERS, make_classifier
from plainrisk.estimators.extract import extract_form, register_extractor
from plainrisk.estimators.linearised import Linearised, linearise
from plainrisk.estimators.mixture import SubscaleMixture
from plainrisk.estimators.nnlr import NonnegativeLogisticRegression
from plainrisk.estimators.two_layer import TwoLayerRiskModel
from plainrisk.form import RiskForm
from plainrisk.form.alpha import ALPHA_STAR
from plainrisk.model import RiskModel, load
from plainrisk.schema import Feature, Schema

if TYPE_CHECKING:
    from plainrisk import compare, datasets, metrics, rows
    from plainrisk.estimators.cross_validation import cross_validate

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
    "extract_form",
    "linearise",
    "load",
    "make_classifier",
    "metrics",
    "register_extractor",
    "rows",
]

_LAZY = ("compare", "datasets", "metrics", "rows")


def __getattr__(name: str) -> Any:
    """Import the parts that fitting does not need when they are first asked for."""
    if name in _LAZY:
        return importlib.import_module(f"plainrisk.{name}")
    if name == "cross_validate":
        return importlib.import_module("plainrisk.estimators.cross_validation").cross_validate
    raise AttributeError(f"module 'plainrisk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
