"""One small file per library that is timed, all with the methods of `base.Adapter`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Method:
    """What is timed, by name.

    Attributes
    ----------
    module, variant : the file, and which of its models
    library : what is imported and whose version is told
    says : the settings, for the table
    ours : whether it is plainrisk's
    """

    module: str
    variant: str
    library: str
    says: str
    ours: bool = False

    def make(self) -> Any:
        """Return the adapter."""
        return import_module(f"benchmarks.adapters.{self.module}").make(self.variant)


def _own(variant: str, says: str) -> Method:
    return Method("plainrisk_models", variant, "plainrisk", says, ours=True)


TREES = "50 trees of depth 2, rate 0.1, the schema's directions"
METHODS: dict[str, Method] = {
    "ARM1": _own("ARM1", "one-layer additive risk model"),
    "DirectARM1": _own("DirectARM1", "the same, directly in probability"),
    "MixARM1": _own("MixARM1", "mixture of subscales"),
    "ARM2": _own("ARM2", "two layers"),
    "BandARM1": _own("BandARM1", "ARM1, linearised in three bands"),
    "ARM1 (matrix)": _own("ARM1/matrix", "ARM1 from the matrix that the tree libraries get"),
    "DirectARM1 (matrix)": _own("DirectARM1/matrix", "DirectARM1 from the same matrix"),
    "ARM1 (columns)": _own("ARM1/columns", "ARM1 from a matrix stored by columns, as data frames are"),
    "ARM1 (numpy)": _own("ARM1/matrix/numpy", "ARM1 (matrix) as installed without a C compiler"),
    "XGBoost": Method("xgboost_trees", "", "xgboost", f"the paper's {TREES}, float32"),
    "LightGBM": Method("lightgbm_trees", "", "lightgbm", f"{TREES}, float32"),
    "HistGradientBoosting": Method("sklearn_trees", "", "sklearn.ensemble", TREES),
    "EBM": Method("ebm", "", "interpret.glassbox", "interactions=0, otherwise as it comes"),
    "optbinning": Method("optbinning_scorecard", "", "optbinning", "Scorecard, at most 5 bins, trends by the schema"),
    "glum": Method("glum_bounds", "", "glum", "bounds, on indicators of ARM1's bins"),
    "scikit-learn LR": Method(
        "sklearn_logistic", "", "sklearn.linear_model", "on indicators of ARM1's bins, newton-cholesky, without bounds"
    ),
    "SLSQP": Method("slsqp", "converged", "scipy.optimize", "on dense indicators of ARM1's bins, to convergence"),
    "SLSQP (default)": Method("slsqp", "default", "scipy.optimize", "the same at its default tolerance"),
    "pyGAM": Method("pygam_splines", "", "pygam", "LogisticGAM as it comes, missing as medians"),
}
