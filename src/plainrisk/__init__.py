"""Risk models whose parts add up, in plain probability."""

from plainrisk._version import __version__
from plainrisk.estimators.arm import AdditiveRiskModel
from plainrisk.estimators.nnlr import NonnegativeLogisticRegression
from plainrisk.estimators.two_layer import TwoLayerRiskModel
from plainrisk.form import RiskForm
from plainrisk.model import RiskModel, load
from plainrisk.schema import Feature, Schema

__all__ = [
    "AdditiveRiskModel",
    "Feature",
    "NonnegativeLogisticRegression",
    "RiskForm",
    "RiskModel",
    "Schema",
    "TwoLayerRiskModel",
    "__version__",
    "load",
]
