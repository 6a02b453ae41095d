"""The metrics of a study: each is a figure of one fold's outcomes and predicted risks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.evaluate import metrics

__all__ = ["METRICS", "Metric"]

Floats = npt.NDArray[np.float64]
# Finite where a certain prediction is wrong, so that folds can be averaged.
LOG_LOSS_CLIP = 1e-15


@dataclass(frozen=True)
class Metric:
    """A metric by name.

    Attributes
    ----------
    name, title : in files, and in headings
    higher_is_better : which way ranks run
    of : from outcomes (0/1) and risks of one fold to the figure
    """

    name: str
    title: str
    higher_is_better: bool
    of: Callable[[npt.NDArray[Any], Floats], float]


def _log_loss(outcome: npt.NDArray[Any], risk: Floats) -> float:
    return metrics.log_loss(outcome, risk, clip=LOG_LOSS_CLIP)


def _as_printed(outcome: npt.NDArray[Any], risk: Floats) -> metrics.Reliability:
    """Bin as the published calibration tables seem to have been made.

    Both columns of predict_proba, read row by row, stand against the outcomes written twice in a row, so that a
    prediction meets the outcome of another row. This is no measure of calibration: it is here to show where the
    published figures come from.
    """
    both = np.column_stack([1.0 - risk, risk]).ravel()
    return metrics.reliability(np.tile(outcome, 2), both)


_TABLE = (
    Metric("auc", "AUC", True, metrics.roc_auc),
    Metric("ece", "ECE", False, metrics.expected_calibration_error),
    Metric("mce", "MCE", False, metrics.maximum_calibration_error),
    Metric("brier", "Brier score", False, metrics.brier_score),
    Metric("log_loss", "log loss", False, _log_loss),
    Metric("certainty", "certainty", False, metrics.certainty),
    Metric("ks", "KS", True, metrics.ks_statistic),
    Metric("ece_as_printed", "ECE as printed", False, lambda y, p: _as_printed(y, p).expected_error / 2.0),
    Metric("mce_as_printed", "MCE as printed", False, lambda y, p: _as_printed(y, p).maximum_error),
)

METRICS: Mapping[str, Metric] = {m.name: m for m in _TABLE}
