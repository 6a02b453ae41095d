"""Metrics of a predicted risk: calibration, ranking, proper scores; all take weights."""

from __future__ import annotations

from plainrisk.evaluate.metrics.calibration import (
    Reliability,
    adaptive_calibration_error,
    certainty,
    expected_calibration_error,
    maximum_calibration_error,
    reliability,
)
from plainrisk.evaluate.metrics.losses import BrierDecomposition, brier_decomposition, brier_score, log_loss
from plainrisk.evaluate.metrics.overview import summary
from plainrisk.evaluate.metrics.ranking import gini, ks_statistic, roc_auc

__all__ = [
    "BrierDecomposition",
    "Reliability",
    "adaptive_calibration_error",
    "brier_decomposition",
    "brier_score",
    "certainty",
    "expected_calibration_error",
    "gini",
    "ks_statistic",
    "log_loss",
    "maximum_calibration_error",
    "reliability",
    "roc_auc",
    "summary",
]
