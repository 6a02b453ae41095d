"""Histograms of one feature and the edges found from them, against counts and fractions made by hand."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from plainrisk.bins import edges as bins
from plainrisk.bins import histogram as histograms
from plainrisk.bins import tree
from plainrisk.bins.edges import split_edges, supervised_edges
from plainrisk.bins.histogram import Histogram, histogram, merge, subtract
from plainrisk.errors import DataError, SchemaError


def same(a: Histogram, b: Histogram) -> bool:
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in ("values", "rows", "weight", "positive"))


def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "whole numbers, tabulated": rng.integers(-3, 9, 500).astype(float),
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
    assert (h.values.dtype, h.rows.dtype, h.weight.dtype) == (np.float32, np.int64, np.float64)
    assert not np.signbit(h.values[h.values == 0]).any()


def test_table_is_counted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.arange(300) % 7, np.arange(300) % 3 == 0
    whole = histogram(x, y)
    monkeypatch.setattr(histograms, "_TABLE_BLOCK", 16)
    assert same(histogram(x, y), whole)
    assert whole.rows.sum() == 300


def test_target_may_be_bool_integer_or_float() -> None:
    x, y = [1.5, 2.5, 2.5], np.array([True, False, True])
    assert all(same(histogram(x, y.astype(t)), histogram(x, y)) for t in (np.uint8, np.int64, np.float64))


def test_the_caller_s_arrays_are_left_alone() -> None:
    x, y = np.array([3.5, -0.0, 1.0], np.float32), np.array([True, False, False])
    supervised_edges(x, y, np.array([1.0, 2.0, 1.0]))
    supervised_edges(x, y)
    assert x.tolist() == [3.5, 0.0, 1.0]
    assert np.signbit(x[1])


def test_merge_with_nothing_changes_nothing() -> None:
    h, empty = histogram([1.5, 2.0], [0, 1]), histogram([], [])
    assert same(merge(h, empty), h)
    assert same(merge(empty, h), h)
    assert merge(empty, empty).values.size == 0


@pytest.mark.parametrize("part", [([9.0], [1]), ([2.0], [0]), ([1.0, 1.0], [0, 0])], ids=["unknown", "between", "more"])
def test_subtract_refuses_rows_that_are_not_there(part: tuple[list[float], list[int]]) -> None:
    with pytest.raises(DataError, match="not in the first"):
        subtract(histogram([1.0, 3.0], [0, 1]), histogram(*part))


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


def test_edges_do_not_depend_on_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    h = histogram(rng.integers(0, 300, 4000) / 4, rng.random(4000) < 0.3)
    whole = {c: split_edges(h, 12, c) for c in ("gini", "entropy")}
    monkeypatch.setattr(tree, "_BLOCK", 7)
    for criterion, edges in whole.items():
        assert edges.size == 11
        assert np.array_equal(split_edges(h, 12, criterion), edges)


def test_ties_do_not_depend_on_numpy_s_logarithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the C library's logarithm decides, whatever the last bits of numpy's are on this processor."""
    h = histogram(np.arange(60) * 0.5, np.tile([0, 1, 1, 0, 0, 1], 10))
    plain, log = split_edges(h, 8, "entropy"), np.log
    for digit in range(5):
        monkeypatch.setattr(np, "log", lambda v, d=digit: log(v) * (1 + 2.0**-51 * np.sin(np.arange(v.size) + d)))
        assert np.array_equal(split_edges(h, 8, "entropy"), plain)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_duplicated_rows_are_weights(criterion: bins.Criterion) -> None:
    rng = np.random.default_rng(3)
    x, y, times = rng.integers(0, 50, 300) / 4, rng.random(300) < 0.4, rng.integers(0, 4, 300)
    repeated = supervised_edges(np.repeat(x, times), np.repeat(y, times), max_bins=9, criterion=criterion)
    assert np.array_equal(supervised_edges(x, y, times, max_bins=9, criterion=criterion), repeated)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_every_bin_holds_min_rows(criterion: bins.Criterion) -> None:
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


@pytest.mark.parametrize(
    ("x", "y", "weight", "message"),
    [
        ([1.0, np.nan], [0, 1], None, "missing or infinite"),
        ([1.0, np.inf], [0, 1], None, "missing or infinite"),
        ([1.0, -1e39], [0, 1], None, r"value -1e\+39 is too large for float32"),
        ([1.0, 2.0], [0, 2], None, "target must be 0 or 1, got 2"),
        ([1.0, 2.0], [0.0, np.nan], None, "target must be 0 or 1, got nan"),
        ([1.0, 2.0], [0, 1, 1], None, "equally long"),
        ([[1.0], [2.0]], [0, 1], None, "one-dimensional"),
        ([1.0, 2.0], [0, 1], [1.0, -1.0], "finite and nonnegative"),
        ([1.0, 2.0], [0, 1], [1.0, np.nan], "finite and nonnegative"),
        ([1.0, 2.0], [0, 1], [1.0], "equally long"),
    ],
)
def test_unusable_data_are_named(x: list[float], y: list[int], weight: list[float] | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        histogram(x, y, weight)


def test_the_largest_float32_is_usable() -> None:
    top = float(np.finfo(np.float32).max)
    assert supervised_edges([-top, top], [0, 1]).tolist() == [0.0]
    assert np.isfinite(supervised_edges([top / 2, top], [0, 1])).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_bins": 0}, "max_bins must be a whole number of at least 1, got 0"),
        ({"max_bins": 2.5}, "max_bins must be a whole number"),
        ({"min_rows": 0}, "min_rows must be a whole number"),
        ({"criterion": "ginni"}, "unknown criterion 'ginni'. Did you mean 'gini'"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        supervised_edges([1, 2], [0, 1], **settings)
