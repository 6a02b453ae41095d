"""Histograms that grow batch by batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainrisk.bins.accumulate import ValueCounts, bucket_ends
from plainrisk.bins.histogram import histogram

NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=60)


@given(NUMBERS, st.integers(2, 20), st.integers(1, 60))
def test_the_counts_do_not_depend_on_the_batches(numbers, most, size):
    x, y = np.array(numbers), np.arange(len(numbers)) % 2
    whole, parts = ValueCounts(most), ValueCounts(most)
    whole.add(x, y, None)
    for start in range(0, len(x), size):
        parts.add(x[start : start + size], y[start : start + size], None)
    assert whole.bits == parts.bits
    for field in ("values", "rows", "weight", "positive"):
        np.testing.assert_array_equal(getattr(whole.histogram, field), getattr(parts.histogram, field))
    assert whole.histogram.rows.sum() == len(x)
    assert len(whole.histogram.values) <= most


@given(NUMBERS, st.integers(0, 31))
def test_a_bucket_ends_with_its_largest_number(numbers, bits):
    x = np.sort(np.array(numbers, dtype=np.float32))
    ends = bucket_ends(x, bits)
    assert (ends >= x).all()
    assert (np.diff(ends) >= 0).all()
    # What lies at or below an end is in that bucket or in an earlier one, and nothing else is.
    for end in np.unique(ends):
        np.testing.assert_array_equal(x <= end, ends <= end)


def test_few_values_are_counted_one_by_one():
    x, y = np.array([3.0, 1.0, 3.0, 2.0]), np.array([1, 0, 0, 1])
    counts = ValueCounts(3)
    counts.add(x, y, None)
    assert counts.bits == 0
    np.testing.assert_array_equal(counts.histogram.values, histogram(x, y).values)
    assert counts.snap((1.5,)) == (1.5,)


def test_edges_move_to_the_end_of_a_bucket():
    x = np.linspace(1.0, 2.0, 1000)
    counts = ValueCounts(10)
    counts.add(x, x > 1.5, None)
    ends = counts.histogram.values
    (edge,) = counts.snap((float(ends[3] + ends[4]) / 2,))
    assert edge == pytest.approx(float(ends[3]), abs=0)
    assert np.count_nonzero(x <= edge) == counts.histogram.rows[:4].sum()
