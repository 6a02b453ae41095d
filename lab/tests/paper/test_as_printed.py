from __future__ import annotations

import numpy as np
import pytest

from plainrisk_lab.study import METRICS


def test_as_printed_measures_the_distance_from_the_base_rate(rng) -> None:
    """Predictions that meet the outcomes of other rows: what is left is half of 0.5 less the base rate."""
    y = (rng.random(40_000) < 0.0668).astype(int)
    p = np.clip(0.5 + 0.2 * rng.standard_normal(40_000), 0.15, 0.85)
    assert METRICS["ece_as_printed"].of(y, p) == pytest.approx((0.5 - y.mean()) / 2, abs=0.002)


def test_as_printed_by_hand() -> None:
    # Columns row by row: .9 .1 .4 .6; the outcomes written twice: 1 0 1 0.
    y, p = np.array([1, 0]), np.array([0.1, 0.6])
    gaps = [abs(1 - 0.9), abs(0 - 0.1), abs(1 - 0.4), abs(0 - 0.6)]
    assert METRICS["ece_as_printed"].of(y, p) == pytest.approx(np.mean(gaps) / 2)
    assert METRICS["mce_as_printed"].of(y, p) == pytest.approx(0.6)
