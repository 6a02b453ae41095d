from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plainrisk.measure.metrics as metrics
from plainrisk.errors import DataError

METRICS = [
    metrics.brier_score,
    metrics.certainty,
    metrics.expected_calibration_error,
    metrics.gini,
    metrics.ks_statistic,
    metrics.log_loss,
    metrics.maximum_calibration_error,
    metrics.reliability,
    metrics.roc_auc,
    metrics.summary,
]
Y, P, W = [0, 1, 1], [0.2, 0.4, 0.9], [1.0, 2.0, 0.5]
WRONG = [
    ("y_true", [0, 2, 1], P, None, r"y_true: must be 0 or 1, and row 1 \(counting from 0\) does not fit"),
    ("y_true nan", [0, 1, np.nan], P, None, r"y_true: must be 0 or 1, and row 2 .* is missing"),
    ("y_true text", ["0", "1", "1"], P, None, r"y_true: must hold numbers, and row 0 .* holds a value of type str"),
    ("y_true None", [0, None, 1], P, None, r"y_true: must hold numbers, and row 1 .* holds a value of type NoneType"),
    ("y_prob high", Y, [0.2, 0.4, 1.2], None, r"y_prob: must lie between 0 and 1, and row 2 .* does not fit"),
    ("y_prob low", Y, [-0.1, -0.2, 1.0], None, r"y_prob: must lie between 0 and 1, and row 0 .* does not fit"),
    ("y_prob nan", Y, [0.2, np.nan, 1.0], None, r"y_prob: must lie between 0 and 1, and row 1 .* is missing"),
    ("y_prob inf", Y, [0.2, 0.1, np.inf], None, r"y_prob: must lie between 0 and 1, and row 2 .* does not fit"),
    ("weight low", Y, P, [1, -1, 1], r"sample_weight: must be finite and not negative, and row 1 .* does not fit"),
    ("weight nan", Y, P, [1, 1, np.nan], r"sample_weight: must be finite and not negative, and row 2 .* is missing"),
    ("weight inf", Y, P, [np.inf, 1, 1], r"sample_weight: must be finite and not negative, and row 0 .* does not fit"),
    ("weight 0", Y, P, [0, 0, 0], "sample_weight: all weights are 0"),
    ("weight sum", Y, P, [1e308, 1e308, 1e308], "sample_weight: the weights add up to inf"),
    ("p short", Y, [0.2, 0.4], None, "y_prob: has 2 rows where y_true has 3"),
    ("w short", Y, P, [1.0], "sample_weight: has 1 rows where y_true has 3"),
    (
        "two columns",
        Y,
        [[0.8, 0.2]] * 3,
        None,
        r"y_prob: must have one dimension.*predict_proba\(X\)\[:, 1\]",
    ),
    ("y column", [[0], [1], [1]], P, None, r"y_true: must have one dimension, got shape \(3, 1\)"),
    ("empty", [], [], None, "y_true: there are no rows"),
    ("scalar", 1, 0.5, None, r"y_true: must have one dimension, got shape \(\)"),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize(("y", "p", "w", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_every_metric_names_the_argument_and_the_row(metric, y, p, w, message):
    with pytest.raises(DataError, match=message):
        metric(y, p, w)


def test_nullable_pandas_with_a_gap_is_refused():
    with pytest.raises(
        DataError, match=r"y_true: must .*, and row 1 \(counting from 0\) (is missing|holds a value of type NAType)"
    ):
        metrics.brier_score(pd.Series([0, None, 1], dtype="Int64"), P)


@pytest.mark.parametrize(
    "make",
    [
        tuple,
        np.array,
        pd.Series,
        pl.Series,
        lambda values: pd.Series(values, index=[7, 7, 1]),
        lambda values: np.array(values, dtype=object),
    ],
    ids=["tuple", "numpy", "pandas", "polars", "odd index", "objects"],
)
def test_all_kinds_of_columns_give_the_same(make):
    assert metrics.summary(make(Y), make(P), make(W)) == metrics.summary(Y, P, W)
    assert metrics.summary(make([False, True, True]), make(P)) == metrics.summary(Y, P)


def test_rows_of_weight_zero_do_not_exist():
    terms = metrics.summary([*Y, 0, 1], [*P, 1.0, 0.0], [*W, 0, 0])
    assert terms == metrics.summary(Y, P, W)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_unit_weights_are_no_weights(metric):
    rng = np.random.default_rng(11)
    p = np.round(rng.random(200), 2)
    y = rng.random(200) < p
    with_ones, without = metric(y, p, np.ones(200)), metric(y, p)
    if metric is metrics.reliability:
        with_ones, without = with_ones.observed.tolist(), without.observed.tolist()
    assert with_ones == pytest.approx(without, abs=1e-13)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_input_is_left_as_it_was(metric):
    y, p, w = np.array([1.0, 0.0, 1.0]), np.array([-0.0, 0.4, 0.9]), np.array([0.0, 2.0, 0.5])
    copies = y.copy(), p.copy(), w.copy()
    metric(y, p, w)
    for now, before in zip((y, p, w), copies, strict=True):
        assert now.tobytes() == before.tobytes()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_all_metrics_are_called_alike(metric):
    names = list(inspect.signature(metric).parameters)
    assert names[:3] == ["y_true", "y_prob", "sample_weight"]
    assert inspect.signature(metric).parameters["sample_weight"].default is None


def test_public_names_are_sorted_and_there():
    assert metrics.__all__ == sorted(metrics.__all__)
    assert all(hasattr(metrics, name) for name in metrics.__all__)
