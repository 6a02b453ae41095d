from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

from plainrisk.errors import DataError
from plainrisk.measure.metrics import gini, ks_statistic, roc_auc

# A coarse grid makes ties; the rest makes neighbors that differ in the last bit.
RISKS = (
    st.integers(0, 10).map(lambda i: i / 10)
    | st.floats(0, 1)
    | st.sampled_from([0.0, -0.0, 1.0, float(np.nextafter(1, 0)), 5e-324, float(np.nextafter(0.5, 1))])
)
ROWS = st.lists(st.tuples(st.integers(0, 1), RISKS, st.integers(0, 4)), min_size=2, max_size=60)


def columns(rows):
    y, p, w = (np.array(column) for column in zip(*rows, strict=True))
    assume(0 < (y * w).sum() < w.sum())
    return y, p, w


def pairs(y, p, w) -> float:
    """AUC by its definition: all pairs of a bad and a good row."""
    bad, good = y == 1, y == 0
    difference = p[bad][:, None] - p[good][None, :]
    wins = (difference > 0) + 0.5 * (difference == 0)
    weight = w[bad][:, None] * w[good][None, :]
    return float((wins * weight).sum() / weight.sum())


@given(rows=ROWS)
def test_auc_counts_pairs(rows):
    y, p, w = columns(rows)
    assert roc_auc(y, p, w) == pytest.approx(pairs(y, p, w), abs=1e-12)
    assume(0 < y.sum() < len(y))
    assert roc_auc(y, p) == pytest.approx(pairs(y, p, np.ones(len(y))), abs=1e-12)


@given(rows=ROWS)
def test_integer_weights_are_repeated_rows(rows):
    y, p, w = columns(rows)
    again = np.repeat(y, w), np.repeat(p, w)
    for metric in (roc_auc, gini, ks_statistic):
        assert metric(y, p, w) == pytest.approx(metric(*again), abs=1e-12)


@given(rows=ROWS)
def test_ks_agrees_with_scipy(rows):
    y, p, _ = columns(rows)
    assume(0 < y.sum() < len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy's p-value of so few rows, which is not asked for
        oracle = ks_2samp(p[y == 1], p[y == 0]).statistic
    assert ks_statistic(y, p) == pytest.approx(oracle, abs=1e-12)


@pytest.mark.parametrize("digits", [1, 3, 17])
def test_auc_agrees_with_sklearn(digits):
    rng = np.random.default_rng(digits)
    p = np.round(rng.beta(1, 8, 20_000), digits)
    y = rng.random(20_000) < p
    w = rng.gamma(2.0, size=20_000)
    assert roc_auc(y, p) == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    assert roc_auc(y, p, w) == pytest.approx(roc_auc_score(y, p, sample_weight=w), abs=1e-12)
    assert gini(y, p) == pytest.approx(2 * roc_auc_score(y, p) - 1, abs=1e-12)


@given(rows=ROWS)
def test_turning_the_outcome_round_mirrors_the_auc(rows):
    y, p, w = columns(rows)
    assert roc_auc(1 - y, p, w) == pytest.approx(1 - roc_auc(y, p, w), abs=1e-12)
    assert ks_statistic(1 - y, p, w) == pytest.approx(ks_statistic(y, p, w), abs=1e-12)


def test_extremes():
    y = [0, 0, 1, 1]
    assert roc_auc(y, [0.1, 0.2, 0.3, 0.4]) == 1.0
    assert roc_auc(y, [0.4, 0.3, 0.2, 0.1]) == 0.0
    assert roc_auc(y, [0.5] * 4) == 0.5
    assert ks_statistic(y, [0.1, 0.2, 0.3, 0.4]) == 1.0
    assert ks_statistic(y, [0.5] * 4) == 0.0
    assert roc_auc(y, [0.0, -0.0, 0.0, -0.0]) == 0.5  # the two zeros are one prediction


def test_float32_predictions_keep_their_ties():
    p = np.array([0.1, 0.1, 0.3, 0.3], dtype=np.float32)
    assert roc_auc([0, 1, 0, 1], p) == 0.5


@pytest.mark.parametrize("metric", [roc_auc, gini, ks_statistic])
def test_one_outcome_cannot_be_ranked(metric):
    with pytest.raises(DataError, match="needs both outcomes, all rows of positive weight are 0"):
        metric([0, 0], [0.1, 0.2])
    with pytest.raises(DataError, match="needs both outcomes, all rows of positive weight are 1"):
        metric([0, 1], [0.1, 0.2], [0.0, 1.0])


def test_importing_the_metrics_loads_no_sklearn_and_no_plotting():
    # An empty package stands in for plainrisk, so that only what the metrics import themselves is seen.
    code = (
        "import importlib.util, sys, types\n"
        "package = types.ModuleType('plainrisk')\n"
        "package.__path__ = importlib.util.find_spec('plainrisk').submodule_search_locations\n"
        "sys.modules['plainrisk'] = package\n"
        "import plainrisk.measure.metrics\n"
        "print(sorted({'sklearn', 'matplotlib', 'pandas', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
