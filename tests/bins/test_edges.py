"""Edges of one feature: the tree's in exact arithmetic, and the quantiles' against counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk._native import tree
from plainrisk.bins.edges import Histogram, fine_edges, histogram, quantile_edges, split_edges

both_criteria = pytest.mark.parametrize("criterion", ["gini", "entropy"])


def supervised_edges(x, y, weight=None, **rule):
    return split_edges(histogram(x, y, weight), **{"max_bins": 5, **rule})


def exact_gain(h: Histogram, cut: int) -> Fraction:
    """Minus the weighted gini of both halves, in fractions."""

    def share(part: slice) -> Fraction:
        weight, positive = Fraction(h.weight[part].sum()), Fraction(h.positive[part].sum())
        return (positive**2 + (weight - positive) ** 2) / weight

    return share(slice(cut)) + share(slice(cut, None))


def test_the_first_edge_is_the_best_in_exact_arithmetic() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        x, y = rng.integers(0, 9, 40) * 0.5, rng.integers(0, 2, 40)
        h = histogram(x, y)
        (edge,) = split_edges(h, 2)
        cut = int(np.searchsorted(h.values, edge))
        assert edge == (float(h.values[cut - 1]) + float(h.values[cut])) / 2
        assert exact_gain(h, cut) == max(exact_gain(h, c) for c in range(1, h.values.size))


def test_ties_do_not_depend_on_numpy_s_logarithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the C library's logarithm decides, whatever the last bits of numpy's are on this processor."""
    h = histogram(np.arange(60) * 0.5, np.tile([0, 1, 1, 0, 0, 1], 10))
    plain, log = split_edges(h, 8, "entropy"), np.log
    monkeypatch.setattr(tree, "compiled", None)
    for digit in range(5):
        monkeypatch.setattr(np, "log", lambda v, d=digit: log(v) * (1 + 2.0**-51 * np.sin(np.arange(v.size) + d)))
        assert np.array_equal(split_edges(h, 8, "entropy"), plain)


@both_criteria
def test_duplicated_rows_are_weights(criterion: str) -> None:
    rng = np.random.default_rng(3)
    x, y, times = rng.integers(0, 50, 300) / 4, rng.random(300) < 0.4, rng.integers(0, 4, 300)
    repeated = supervised_edges(np.repeat(x, times), np.repeat(y, times), max_bins=9, criterion=criterion)
    assert np.array_equal(supervised_edges(x, y, times, max_bins=9, criterion=criterion), repeated)


@both_criteria
def test_every_bin_holds_min_rows(criterion: str) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=500), rng.random(500) < 0.2
    edges = supervised_edges(x, y, max_bins=30, criterion=criterion, min_rows=40)
    counts = np.bincount(np.searchsorted(edges, x.astype(np.float32)))
    assert counts.min() >= 40
    assert edges.size > 3


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([7.0], [1]),
        ([2.0, 2.0], [0, 1]),
        ([1.0, 2.0, 3.0], [1, 1, 1]),
        ([0.5, 0.5 + 6e-8], [0, 1]),
        ([1.0, 1.0 + 1.2e-7], [0, 1]),  # more than 1e-7 apart, but not once 1 + 1e-7 is rounded to float32
    ],
    ids=["empty", "one row", "constant", "pure", "too near", "too near in float32"],
)
def test_no_edge_where_nothing_can_be_separated(x: list[float], y: list[int]) -> None:
    edges = supervised_edges(x, y)
    assert edges.shape == (0,)
    assert edges.dtype == np.float64


def test_one_bin_has_no_edge() -> None:
    assert supervised_edges([1, 2], [0, 1], max_bins=1).size == 0
    assert supervised_edges([1, 2], [0, 1], max_bins=2).tolist() == [1.5]


def test_weights_whose_squares_vanish_are_never_cut_off_alone() -> None:
    edges = supervised_edges([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0], [1e-200, 1.0, 1.0, 1.0], max_bins=2)
    assert edges.size == 1
    assert edges[0] > 1.5


def test_the_largest_float32_is_usable() -> None:
    top = float(np.finfo(np.float32).max)
    assert supervised_edges([-top, top], [0, 1]).tolist() == [0.0]
    assert np.isfinite(supervised_edges([top / 2, top], [0, 1])).all()


# ---- quantiles


def edges_of(x, max_bins, weight=None, min_rows=1):
    return quantile_edges(histogram(x, np.zeros(len(x)), weight), max_bins, min_rows)


def counts(x, cuts):
    return np.bincount(np.searchsorted(cuts, x, side="left"), minlength=len(cuts) + 1)


def test_without_ties_the_bins_hold_equal_shares():
    x = np.random.default_rng(3).permutation(1000.0 + np.arange(1000))
    for max_bins in (2, 3, 7, 20):
        cuts = edges_of(x, max_bins)
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
def test_quantiles_of_any_values(x, max_bins, min_rows):
    x = np.array(x, dtype=float)
    cuts = edges_of(x, max_bins, min_rows=min_rows)
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
    cuts = edges_of(x, 5)
    assert cuts[0] == 0.5
    assert counts(x, cuts)[0] == 800
    middle = np.concatenate([np.arange(100.0), np.full(800, 100.0), np.arange(101.0, 201.0)])
    np.testing.assert_allclose(edges_of(middle, 5), [99.5, 100.5])


def test_a_weight_is_a_number_of_equal_rows(rng):
    x, w = rng.integers(0, 30, 200).astype(float), rng.integers(0, 4, 200)
    repeated = edges_of(np.repeat(x, w), 8)
    np.testing.assert_allclose(edges_of(x, 8, w.astype(float)), repeated)
    # Not a decimal fraction: a share that falls on a value exactly must stay there.
    np.testing.assert_allclose(edges_of(x, 8, 2.0**-20 * w), repeated)


def test_nothing_to_cut():
    assert edges_of(np.full(9, 3.0), 5).tolist() == []
    assert edges_of(np.arange(9.0), 1).tolist() == []
    assert edges_of(np.arange(9.0), 4, min_rows=5).tolist() == []


# ---- fine bins


def test_heavy_values_have_a_bin_of_their_own(rng):
    x = np.concatenate([np.zeros(500), np.full(300, 7.0), rng.normal(3, 1, 200)])
    h = histogram(x, np.zeros(1000))
    edges = fine_edges(h, 16)
    counts = np.histogram(x, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    assert 500 in counts
    assert 300 in counts
    assert len(counts) <= 16
    light = sorted(set(counts) - {500, 300})
    assert light[-1] - light[0] <= 4


@pytest.mark.parametrize("max_bins", [2, 3, 8, 64])
def test_fine_bins_are_never_too_many(rng, max_bins):
    """Stretches of light values between heavy ones have a bin each, whatever their number."""
    for _ in range(20):
        x = rng.choice([rng.integers(0, 5, 400), rng.normal(size=400).round(1), rng.geometric(0.3, 400)])
        edges = fine_edges(histogram(x, np.zeros(400)), max_bins)
        _, counts = np.unique(x, return_counts=True)
        heavy = counts > 400 / max_bins
        stretches = np.count_nonzero(~heavy & np.append(True, heavy[:-1]))
        assert len(edges) + 1 <= max(max_bins, heavy.sum() + stretches)
        found = np.histogram(x, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
        assert found.min() > 0
        assert set(counts[heavy]) <= set(found)


def test_outermost_bins_are_halved_toward_the_ends():
    x = np.arange(1024.0)
    h = histogram(x, np.zeros(1024))
    body = fine_edges(h, 16)
    counts = [
        np.histogram(x, np.concatenate([[-np.inf], fine_edges(h, 16, halvings), [np.inf]]))[0] for halvings in range(5)
    ]
    assert counts[0].tolist() == [64] * 16
    for halvings, found in enumerate(counts):
        tail = [64 >> halvings, *(64 >> k for k in range(halvings, 0, -1))]
        assert found.tolist() == [*tail, *[64] * 14, *tail[::-1]]
    assert set(body) <= set(fine_edges(h, 16, 6))


def test_halving_ends_where_values_do(rng):
    """Tied and few values, uneven weights: every bin has rows, and no cut is beyond the values."""
    for weight in (None, rng.uniform(0.1, 9.0, 50)):
        for x in (rng.integers(0, 4, 50), rng.normal(size=50), np.r_[np.zeros(48), 1.0, 2.0]):
            edges = fine_edges(histogram(x, np.zeros(50), weight), 16, halvings=6)
            assert (np.diff(edges) > 0).all()
            assert np.histogram(x, np.concatenate([[-np.inf], edges, [np.inf]]))[0].min() > 0


def test_few_values_are_a_level_each():
    assert fine_edges(histogram([1, 2, 3, 5], [0, 1, 0, 1]), 64).tolist() == [1.5, 2.5, 4.0]
    assert fine_edges(histogram([4, 4], [0, 1]), 64).size == 0
    assert fine_edges(histogram([1, 2], [0, 1]), 1).size == 0
