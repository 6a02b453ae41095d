from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.bins.histogram import histogram
from plainrisk.bins.quantiles import quantile_edges
from plainrisk.errors import SchemaError


def edges(x, max_bins, weight=None, min_rows=1):
    return quantile_edges(histogram(x, np.zeros(len(x)), weight), max_bins, min_rows)


def counts(x, cuts):
    return np.bincount(np.searchsorted(cuts, x, side="left"), minlength=len(cuts) + 1)


def test_without_ties_the_bins_hold_equal_shares():
    x = np.random.default_rng(3).permutation(1000.0 + np.arange(1000))
    for max_bins in (2, 3, 7, 20):
        cuts = edges(x, max_bins)
        assert len(cuts) == max_bins - 1
        shares = counts(x, cuts)
        assert shares.max() - shares.min() <= 1
        np.testing.assert_allclose(cuts, np.quantile(x, np.arange(1, max_bins) / max_bins), atol=0.51)


@settings(deadline=None, max_examples=100)
@given(
    x=st.lists(st.integers(-5, 12), min_size=1, max_size=60),
    max_bins=st.integers(1, 9),
    min_rows=st.integers(1, 6),
)
def test_whatever_the_values(x, max_bins, min_rows):
    x = np.array(x, dtype=float)
    cuts = edges(x, max_bins, min_rows=min_rows)
    assert len(cuts) <= max_bins - 1
    assert (np.diff(cuts) > 0).all()
    if len(cuts):
        assert counts(x, cuts).min() >= min_rows
    below = [np.count_nonzero(x <= c) for c in cuts]
    assert all(np.isin(x[x < c].max() / 2 + x[x > c].min() / 2, cuts) for c in cuts), "half way between two values"
    if min_rows == 1 and len(np.unique(x)) > 1 and max_bins > 1:
        # Every wanted share has an edge at the count nearest to it, but for the two ends.
        possible = np.cumsum(np.unique(x, return_counts=True)[1])[:-1]
        for share in len(x) * np.arange(1, max_bins) / max_bins:
            nearest = np.abs(possible - share).min()
            ends = min(share, len(x) - share)
            assert min(np.abs(np.array([*below, 0, len(x)]) - share)) <= max(min(nearest, ends), 0) + 1e-9


def test_a_heavy_value_has_a_bin_of_its_own():
    x = np.concatenate([np.zeros(800), np.arange(1.0, 201.0)])
    cuts = edges(x, 5)
    assert cuts[0] == 0.5
    assert counts(x, cuts)[0] == 800
    middle = np.concatenate([np.arange(100.0), np.full(800, 100.0), np.arange(101.0, 201.0)])
    np.testing.assert_allclose(edges(middle, 5), [99.5, 100.5])


def test_a_weight_is_a_number_of_equal_rows(rng):
    x, w = rng.integers(0, 30, 200).astype(float), rng.integers(0, 4, 200)
    repeated = edges(np.repeat(x, w), 8)
    np.testing.assert_allclose(edges(x, 8, w.astype(float)), repeated)
    np.testing.assert_allclose(edges(x, 8, 1e-6 * w), repeated)


def test_nothing_to_cut():
    assert edges(np.full(9, 3.0), 5).tolist() == []
    assert edges(np.arange(9.0), 1).tolist() == []
    assert edges(np.arange(9.0), 4, min_rows=5).tolist() == []


@pytest.mark.parametrize("value", [0, -1, 2.5, None, "5"])
def test_numbers_of_bins_that_are_none(value):
    with pytest.raises(SchemaError, match="max_bins must be a whole number of at least 1"):
        edges(np.arange(9.0), value)
    with pytest.raises(SchemaError, match="min_rows must be a whole number of at least 1"):
        edges(np.arange(9.0), 3, min_rows=value)


def test_a_model_with_equal_shares():
    """The outcome moves no edge, special values are left out, and the schema's own settings go before."""
    rng = np.random.default_rng(5)
    schema = pr.Schema(features={"u": {"special_values": (-9,)}, "v": {"max_bins": 3}, "w": {"edges": (0.25,)}})
    X = pd.DataFrame({"u": np.where(rng.random(900) < 0.3, -9.0, rng.random(900)), "v": rng.random(900)})
    X["w"] = rng.random(900)
    first = pr.AdditiveRiskModel(schema, criterion="quantile", max_bins=10).fit(X, (X["v"] > 0.5).astype(int))
    other = pr.AdditiveRiskModel(schema, criterion="quantile", max_bins=10).fit(X, (X["u"] > 0.9).astype(int))
    levels = {name: shape.levels for name, shape in first.form_.parts[0].shapes.items()}
    assert levels == {name: shape.levels for name, shape in other.form_.parts[0].shapes.items()}
    measured = X["u"][X["u"] != -9]
    assert len(levels["u"].edges) == 9
    np.testing.assert_allclose(levels["u"].edges, np.quantile(measured, np.arange(1, 10) / 10), atol=0.005)
    assert len(levels["v"].edges) == 2
    assert levels["w"].edges == (0.25,)
    thick = pr.AdditiveRiskModel(schema, criterion="quantile", max_bins=10, min_bin_rows=100)
    shape = thick.fit(X, (X["v"] > 0.5).astype(int)).form_.parts[0].shapes["u"]
    assert min(shape.weights[: shape.levels.n_ordered]) >= 100


def test_criteria_are_offered_by_name():
    with pytest.raises(SchemaError, match=r"unknown criterion 'quantiles'\. Did you mean 'quantile'"):
        pr.AdditiveRiskModel(criterion="quantiles").fit(np.arange(8.0)[:, None], [0, 1] * 4)
