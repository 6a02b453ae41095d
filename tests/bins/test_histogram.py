"""Histograms of one feature: against counts made by hand, merged, and grown batch by batch."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk.bins.edges import Histogram, ValueCounts, coarsen, histogram, merge, split_edges

FIELDS = ("values", "rows", "weight", "positive")
NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=60)


def same(a: Histogram, b: Histogram) -> bool:
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in FIELDS)


def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "whole numbers": rng.integers(-3, 9, 500).astype(float),
        "whole numbers far apart": rng.integers(0, 100_000, 500).astype(float),
        "fractions": rng.integers(0, 40, 500) / 8,
        "whole but for the last": np.append(rng.integers(0, 9, 499), 0.5),
        "signed zeros": rng.choice([0.0, -0.0, -1.5, 2.0], 500),
    }


@pytest.mark.parametrize("name", columns())
@pytest.mark.parametrize("rate", [0.0, 0.2, 0.8, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram_counts_every_row(name: str, rate: float, weighted: bool) -> None:
    x = columns()[name]
    rng = np.random.default_rng(1)
    y = (rng.random(x.size) < rate).astype(np.uint8)
    weight = rng.integers(0, 4, x.size) / 2 if weighted else np.ones(x.size)
    rows, mass, positive = Counter(), Counter(), Counter()
    for value, target, w in zip(x.tolist(), y.tolist(), weight.tolist(), strict=True):
        if w > 0:
            rows[value] += 1
            mass[value] += w
            positive[value] += w * target
    h = histogram(x, y, weight if weighted else None)
    keys = sorted(rows)
    assert h.values.tolist() == keys
    assert h.rows.tolist() == [rows[k] for k in keys]
    assert h.weight.tolist() == [mass[k] for k in keys]
    assert h.positive.tolist() == [positive[k] for k in keys]
    assert (h.values.dtype, h.rows.dtype, h.weight.dtype) == (np.float64, np.int64, np.float64)
    assert not np.signbit(h.values[h.values == 0]).any()


def test_a_pure_value_has_no_weight_in_the_other_class() -> None:
    weight = np.array([0.1, 0.2, 0.3, 0.7, 0.1])
    h = histogram([1.0, 1.0, 1.0, 2.0, 2.0], [1, 1, 1, 0, 0], weight)
    assert h.positive.tolist() == [h.weight[0], 0.0]


def test_target_may_be_bool_integer_or_float() -> None:
    x, y = [1.5, 2.5, 2.5], np.array([True, False, True])
    assert all(same(histogram(x, y.astype(t)), histogram(x, y)) for t in (np.uint8, np.int64, np.float64))


def test_the_caller_s_arrays_are_left_alone() -> None:
    x, y = np.array([3.5, -0.0, 1.0], np.float32), np.array([True, False, False])
    split_edges(histogram(x, y, np.array([1.0, 2.0, 1.0])), 5)
    split_edges(histogram(x, y), 5)
    assert x.tolist() == [3.5, 0.0, 1.0]
    assert np.signbit(x[1])


# ---- merging

rows_of = st.lists(st.tuples(st.integers(-4, 8), st.integers(0, 1), st.integers(0, 20)), max_size=60)


@settings(max_examples=200, deadline=None)
@given(rows_of, st.integers(0, 60))
def test_histograms_of_two_batches_add_up(rows, at):
    x, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 3
    whole, first, second = (histogram(x[s], y[s], w[s] / 8) for s in (slice(None), slice(at), slice(at, None)))
    assert same(merge(first, second), whole)
    assert same(merge(second, first), whole)


def test_merge_with_nothing_changes_nothing() -> None:
    h, empty = histogram([1.5, 2.0], [0, 1]), histogram([], [])
    assert same(merge(h, empty), h)
    assert same(merge(empty, h), h)
    assert merge(empty, empty).values.size == 0


# ---- histograms that grow batch by batch


def counts_of(x, y, most, size):
    counts = ValueCounts(most)
    for start in range(0, len(x), size):
        counts.add(x[start : start + size], y[start : start + size], None)
    return counts


@settings(deadline=None)
@given(NUMBERS, st.integers(2, 20), st.integers(1, 30), st.integers(1, 30))
def test_the_counts_do_not_depend_on_the_batches(numbers, most, one, other):
    x, y = np.array(numbers), np.arange(len(numbers)) % 2
    # One batch is counted value by value, so these are at least two.
    first, second = (counts_of(x, y, most, min(size, max(1, len(x) - 1))) for size in (one, other))
    assert first.histogram.rows.sum() == len(x)
    if len(x) > 1:
        assert first.bits == second.bits
        assert same(first.histogram, second.histogram)
        assert len(first.histogram.values) <= most


@settings(deadline=None)
@given(NUMBERS, st.integers(0, 31))
def test_a_bucket_ends_with_its_largest_number(numbers, bits):
    x = np.sort(np.array(numbers, dtype=np.float32))
    found = coarsen(histogram(x, np.zeros(len(x))), bits)
    ends = found.values
    assert (np.diff(ends) > 0).all()
    assert ends[-1] >= x[-1]
    # What lies at or below an end is in that bucket or in an earlier one, and nothing else is.
    upto = [np.count_nonzero(x <= end) for end in ends]
    np.testing.assert_array_equal(np.cumsum(found.rows), upto)


@settings(deadline=None)
@given(NUMBERS, st.integers(0, 15), st.integers(0, 15))
def test_coarsening_twice_is_coarsening_once(numbers, first, more):
    h = histogram(numbers, np.arange(len(numbers)) % 2)
    assert same(coarsen(coarsen(h, first), first + more), coarsen(h, first + more))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bucket_never_reaches_across_zero_nor_beyond_the_finite_numbers(sign):
    x = np.sort(sign * np.array([1e-45, 1.0, 3.0e38, float(np.finfo(np.float32).max)]))
    ends = coarsen(histogram([*x, 0.0], np.zeros(5)), 30).values
    assert np.isfinite(ends).all()
    if sign < 0:
        assert np.count_nonzero(ends < 0) > 0
        assert ends[-1] >= 0


def test_few_values_are_counted_one_by_one():
    x, y = np.array([3.0, 1.0, 3.0, 2.0]), np.array([1, 0, 0, 1])
    counts = counts_of(x, y, 3, 2)
    assert counts.bits == 0
    assert same(counts.histogram, histogram(x, y))
    assert counts.snap((1.5,)) == (1.5,)


def test_one_batch_is_counted_one_by_one_however_many_values():
    counts = counts_of(np.arange(50.0), np.arange(50) % 2, 10, 50)
    assert counts.bits == 0
    assert len(counts.histogram.values) == 50


def test_edges_move_to_the_end_of_a_bucket():
    x = np.linspace(1.0, 2.0, 1000)
    counts = counts_of(x, x > 1.5, 10, 400)
    assert counts.bits > 0
    ends = counts.histogram.values.astype(np.float64)
    (edge,) = counts.snap((float(ends[3] + ends[4]) / 2,))
    assert edge == ends[3]
    assert np.count_nonzero(x.astype(np.float32) <= edge) == counts.histogram.rows[:4].sum()


def test_no_value_and_no_edge():
    counts = ValueCounts()
    assert counts.histogram is None
    assert counts.snap(()) == ()
