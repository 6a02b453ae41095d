"""Edges from buckets are those from sorted values, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk.bins import buckets
from plainrisk.bins import edges as bins
from plainrisk.bins.buckets import bucket_edges
from plainrisk.bins.edges import split_edges, supervised_edges
from plainrisk.bins.histogram import sorted_histogram

SHAPES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "share": lambda rng, n: rng.random(n),
    "income": lambda rng, n: np.exp(10 + rng.standard_normal(n)),
    "far out": lambda rng, n: rng.standard_cauchy(n),
    "nearer than the gap": lambda rng, n: 0.5 + rng.random(n) * 1e-4,
    "half are zero": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, rng.random(n)),
    "few values": lambda rng, n: np.round(rng.exponential(3, n), 1),
    "one value": lambda rng, n: np.full(n, 3.3),
    "huge": lambda rng, n: rng.choice([-3e38, 3e38, 1.0], n) * rng.random(n),
    "tiny": lambda rng, n: rng.random(n) * 1e-42,
}


def equal_bits(a, b):
    return a.dtype == b.dtype == np.float64 and np.array_equal(a.view(np.int64), b.view(np.int64))


@pytest.mark.parametrize("signal", [0.0, 1.5])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("shape", SHAPES)
def test_edges_are_those_of_sorted_values(shape, criterion, signal):
    rng = np.random.default_rng(len(shape))
    x = SHAPES[shape](rng, 20_000).astype(np.float32)
    rank = np.argsort(np.argsort(x)) / x.size
    bad = rng.random(x.size) < 0.1 + 0.3 * signal * rank
    h = sorted_histogram(x, bad)
    for max_bins, min_rows in ((5, 1), (2, 1), (20, 30), (1, 1), (6, 9_000)):
        expected = split_edges(h, max_bins, criterion, min_rows)
        assert equal_bits(bucket_edges(x, bad, max_bins, criterion, min_rows), expected)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(-40, 40), st.booleans()), min_size=1, max_size=60), st.sampled_from([1, 3]))
def test_edges_are_those_of_sorted_values_with_ties(rows, min_rows):
    x = np.array([v for v, _ in rows], np.float32) / np.float32(8)
    bad = np.array([b for _, b in rows])
    for criterion in ("gini", "entropy"):
        expected = split_edges(sorted_histogram(x, bad), 6, criterion, min_rows)
        assert equal_bits(bucket_edges(x, bad, 6, criterion, min_rows), expected)


def test_edges_depend_on_no_size(monkeypatch):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(30_000).astype(np.float32)
    bad = rng.random(x.size) < 1 / (1 + np.exp(1 - x))
    expected = bucket_edges(x, bad, 8)
    for name, value in (("_BUCKETS", 64), ("_SEGMENTS", (2, 5)), ("_BLOCK", 999), ("_OPEN", 1)):
        monkeypatch.setattr(buckets, name, value)
        assert equal_bits(bucket_edges(x, bad, 8), expected)


def test_only_a_small_part_of_the_rows_is_sorted(monkeypatch):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(200_000).astype(np.float32)
    bad = rng.random(x.size) < 1 / (1 + np.exp(1 - x))
    sizes = []
    monkeypatch.setattr(buckets, "sorted_histogram", lambda x, bad: sizes.append(x.size) or sorted_histogram(x, bad))
    bucket_edges(x, bad, 5)
    assert 0 < sum(sizes) < x.size / 2


def test_many_rows_take_buckets_and_weights_do_not(monkeypatch):
    """Without the compiled tree, that is."""
    monkeypatch.setattr(bins, "tree_cuts", lambda *a: None)
    rng = np.random.default_rng(2)
    x, y = rng.random(5000), rng.integers(0, 2, 5000)
    calls = []
    monkeypatch.setattr(bins, "bucket_edges", lambda *a: calls.append(a) or bucket_edges(*a))
    expected = supervised_edges(x, y)
    monkeypatch.setattr(bins, "MANY_ROWS", 5000)
    assert equal_bits(supervised_edges(x, y), expected)
    assert len(calls) == 1
    assert equal_bits(supervised_edges(x, y, np.full(5000, 2.0)), expected)
    assert equal_bits(supervised_edges(x * 1e-4, y), split_edges(sorted_histogram((x * 1e-4).astype("f4"), y == 1), 5))
    assert len(calls) == 1
