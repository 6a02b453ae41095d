from __future__ import annotations

import math

import numpy as np
import pytest

import plainrisk.measure.metrics as metrics


@pytest.mark.parametrize("weighted", [False, True])
def test_summary_is_the_metrics_one_by_one(weighted):
    rng = np.random.default_rng(5)
    p = np.clip(rng.normal(0.5, 0.4, 3000), 0, 1)
    y = rng.random(3000) < p
    w = rng.gamma(1.0, size=3000) if weighted else None
    assert metrics.summary(y, p, w, bins=9) == {
        "auc": metrics.roc_auc(y, p, w),
        "ece": metrics.expected_calibration_error(y, p, w, 9),
        "mce": metrics.maximum_calibration_error(y, p, w, 9),
        "brier": metrics.brier_score(y, p, w),
        "log_loss": metrics.log_loss(y, p, w),
        "certainty": metrics.certainty(y, p, w),
        "ks": metrics.ks_statistic(y, p, w),
    }


def test_one_outcome_still_has_a_summary():
    told = metrics.summary([0, 0], [0.1, 0.3])
    assert math.isnan(told["auc"])
    assert math.isnan(told["ks"])
    assert told["brier"] == pytest.approx(0.05)


def test_certain_and_wrong_is_infinite():
    assert metrics.summary([0, 1, 1], [0.2, 0.0, 0.7])["log_loss"] == math.inf
