from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from plainrisk.errors import DataError, MissingExtraError
from plainrisk.measure.calibration import equal_weight_bins
from plainrisk.measure.metrics import (
    certainty,
    expected_calibration_error,
    maximum_calibration_error,
    reliability,
)
from plainrisk.measure.predictions import check_predictions


def brute_force(y, p, w, bins):
    """Return the share and gap of every bin that holds rows, by plain loops over the definition."""
    shares, gaps = [], []
    for i in range(bins):
        last = i == bins - 1
        rows = [j for j in range(len(p)) if i / bins <= p[j] and (p[j] < (i + 1) / bins or last)]
        weight = sum(w[j] for j in rows)
        if weight == 0:
            continue
        observed = sum(w[j] * y[j] for j in rows) / weight
        predicted = sum(w[j] * p[j] for j in rows) / weight
        shares.append(weight / sum(w))
        gaps.append(abs(observed - predicted))
    return shares, gaps


def adaptive_error(y, p, w=None, bins=15):
    """Return the calibration error over bins of about equal weight."""
    return equal_weight_bins(check_predictions(y, p, w), bins).expected_error


# Predictions on a grid of sevenths and fifteenths meet bin edges and each other often.
RISKS = st.floats(0, 1) | st.builds(lambda i, k: min(i, k) / k, st.integers(0, 60), st.integers(1, 60))
ROWS = st.lists(st.tuples(st.integers(0, 1), RISKS, st.integers(0, 4)), min_size=1, max_size=40).filter(
    lambda rows: sum(row[2] for row in rows) > 0
)


@given(rows=ROWS, bins=st.integers(1, 60))
def test_errors_agree_with_plain_loops(rows, bins):
    y, p, w = zip(*rows, strict=True)
    shares, gaps = brute_force(y, p, w, bins)
    expected = sum(s * g for s, g in zip(shares, gaps, strict=True))
    assert expected_calibration_error(y, p, w, bins) == pytest.approx(expected, abs=1e-12)
    assert maximum_calibration_error(y, p, w, bins) == pytest.approx(max(gaps), abs=1e-12)


@given(rows=ROWS, bins=st.integers(1, 20))
def test_integer_weights_are_repeated_rows(rows, bins):
    y, p, w = (np.array(column) for column in zip(*rows, strict=True))
    again = np.repeat(y, w), np.repeat(p, w)
    for metric in (expected_calibration_error, maximum_calibration_error, adaptive_error):
        assert metric(y, p, w, bins) == pytest.approx(metric(*again, bins=bins), abs=1e-12)
    assert certainty(y, p, w) == pytest.approx(certainty(*again), abs=1e-12)


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 10, 15, 49, 100, 1000])
def test_a_prediction_on_an_edge_belongs_to_the_bin_above(bins):
    edges = [i / bins for i in range(bins)]
    table = reliability(np.zeros(bins), edges, bins=bins)
    assert table.count.tolist() == [1] * bins
    assert table.predicted.tolist() == edges
    below = np.nextafter(edges[1:], 0)
    assert reliability(np.zeros(bins), [*below, 1.0], bins=bins).count.tolist() == [1] * bins


def test_the_last_bin_is_closed_at_one():
    table = reliability([1, 1], [14 / 15, 1.0])
    assert table.count.tolist() == [2]
    assert (table.lower[0], table.upper[0]) == (14 / 15, 1.0)


def test_reliability_leaves_empty_bins_out():
    table = reliability([0, 1, 1, 0], [0.05, 0.05, 0.95, 0.5], sample_weight=[1.0, 3.0, 2.0, 0.0], bins=10)
    assert table.lower.tolist() == [0.0, 0.9]
    assert table.upper.tolist() == [0.1, 1.0]
    assert table.count.tolist() == [2, 1]
    assert table.weight.tolist() == [4.0, 2.0]
    assert table.predicted.tolist() == pytest.approx([0.05, 0.95])
    assert table.observed.tolist() == [0.75, 1.0]


def test_reliability_goes_into_json():
    table = reliability([0, 1, 1], [0.1, 0.2, 0.9], bins=3)
    kept = json.loads(json.dumps(table.to_dict()))
    assert list(kept) == ["lower", "upper", "count", "weight", "predicted", "observed", "low", "high"]
    assert kept["count"] == [2, 1]
    assert kept["observed"] == [0.5, 1.0]


def test_a_perfect_risk_has_no_error():
    y, p = [0, 0, 0, 1, 0, 1, 1, 1], [0.25] * 4 + [0.75] * 4
    for metric in (expected_calibration_error, maximum_calibration_error, adaptive_error):
        assert metric(y, p) == 0.0


def test_one_half_for_everybody_errs_by_the_distance_to_the_base_rate():
    y, p = [1] + [0] * 9, [0.5] * 10
    for metric in (expected_calibration_error, maximum_calibration_error, adaptive_error):
        assert metric(y, p) == pytest.approx(0.4)


def test_adaptive_bins_hold_equally_many_rows():
    rng = np.random.default_rng(3)
    p = rng.permutation(np.linspace(0.001, 0.9, 60))
    y = rng.random(60) < 0.4  # gaps of both signs: with one sign any bins give the same sum
    order = np.argsort(p)
    blocks = [order[start : start + 12] for start in range(0, 60, 12)]
    expected = np.mean([abs(y[block].mean() - p[block].mean()) for block in blocks])
    assert adaptive_error(y, p, bins=5) == pytest.approx(expected, abs=1e-13)


@given(rows=ROWS, bins=st.integers(1, 8))
def test_adaptive_bins_keep_ties_together(rows, bins):
    """Swapping the outcomes of tied rows, or the order of the rows, changes nothing."""
    y, p, _ = (np.array(column) for column in zip(*rows, strict=True))
    tied = np.round(p, 1)
    value = adaptive_error(y, tied, bins=bins)
    order = np.lexsort((1 - y, tied))
    assert adaptive_error(y[order], tied[order], bins=bins) == pytest.approx(value, abs=1e-12)
    if len(np.unique(tied)) == 1:
        assert value == pytest.approx(abs(y.mean() - tied[0]), abs=1e-12)


def test_adaptive_error_with_ties_by_hand():
    # Weights below plus half its own: 1.5, 3.5, 4.5 of 5, so bins 0, 1, 1 of two.
    y, p = [1, 0, 0, 0, 1], [0.2, 0.2, 0.2, 0.6, 0.8]
    expected = 3 / 5 * (1 / 3 - 0.2) + 2 / 5 * (0.7 - 1 / 2)
    assert adaptive_error(y, p, bins=2) == pytest.approx(expected, abs=1e-15)


def test_a_large_tie_goes_where_its_middle_lies():
    # Weight below plus half its own: 0.5, 5, 9.5 of 10, so the tie of eight is in the upper of two bins.
    y, p = [1, 1, 1, 0, 0, 0, 0, 0, 0, 1], [0.1] + [0.5] * 8 + [0.9]
    expected = ((1 - 0.1) + (8 * 0.5 + 0.9 - 3)) / 10
    assert adaptive_error(y, p, bins=2) == pytest.approx(expected, abs=1e-15)


def test_certainty_counts_exact_zeros_and_ones_only():
    p = [0.0, -0.0, 1.0, np.nextafter(0, 1), np.nextafter(1, 0), 0.5]
    assert certainty([0, 1, 0, 1, 0, 1], p) == 0.5
    assert certainty([0, 1, 0, 1, 0, 1], p, [1, 1, 2, 0, 4, 0]) == 0.5
    assert certainty([0, 1], [0.0, 0.5], [3, 1]) == 0.75


@settings(max_examples=25)
@given(rows=ROWS, scale=st.floats(1e-3, 1e3))
def test_scale_of_the_weights_does_not_matter(rows, scale):
    y, p, w = (np.array(column) for column in zip(*rows, strict=True))
    for metric in (expected_calibration_error, maximum_calibration_error):
        assert metric(y, p, scale * w) == pytest.approx(metric(y, p, w), abs=1e-12)


@pytest.mark.parametrize("bins", [0, -3, 2.0, "ten", None, True])
def test_bins_must_be_a_positive_whole_number(bins):
    for metric in (expected_calibration_error, reliability):
        with pytest.raises(DataError, match="bins must be a whole number from 1 to 1,000,000, not"):
            metric([0, 1], [0.1, 0.9], bins=bins)


def test_plot_draws_one_point_per_bin():
    table = reliability([0, 1, 1, 0], [0.05, 0.05, 0.95, 0.5], bins=10)
    ax = table.plot(Figure().subplots())
    points = ax.collections[-1].get_offsets()
    assert points.tolist() == list(map(list, zip(table.predicted, table.observed, strict=True)))
    assert ax.get_xlabel() == "predicted risk"


def test_plot_makes_its_own_figure():
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    ax = reliability([0, 1], [0.2, 0.9]).plot()
    assert len(ax.collections) == 3
    plt.close(ax.figure)


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'plainrisk\[plot\]'"):
        reliability([0, 1], [0.2, 0.9]).plot()


def test_a_reliability_table_prints_its_bins_and_errors():
    assert repr(reliability([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.9], bins=4)).splitlines() == [
        "Calibration error: 0.2750 expected, 0.4000 at most",
        "  lower  upper  count  weight  predicted  observed      low    high",
        "      0   0.25      2       2        0.1       0.5  0.09453  0.9055",
        "   0.75      1      2       2       0.85         1   0.3424       1",
    ]
