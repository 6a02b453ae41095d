"""Edges of one feature are the thresholds of scikit-learn's tree on that column, bit for bit.

scikit-learn reads columns in single precision. Where that merges values, the tree is the one on their ranks.
"""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from plainrisk.bins.edges import Histogram, histogram, merge, split_edges

Case = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def supervised_edges(x, y, weight=None, **rule):
    return split_edges(histogram(x, y, weight), **{"max_bins": 5, **rule})


def tree_edges(x, y, weight=None, *, max_bins, criterion, min_rows):
    tree = DecisionTreeClassifier(
        criterion=criterion, max_leaf_nodes=max_bins, min_samples_leaf=min_rows, random_state=0
    )
    # To find missing values it adds up the column in float32, where 3e38 overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        t = tree.fit(np.reshape(x, (-1, 1)), y, sample_weight=weight).tree_
    return np.sort(t.threshold[t.children_left >= 0])


def equal_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b) and np.array_equal(a.view(np.int64), b.view(np.int64))


def check(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None, rule: dict[str, object]) -> None:
    edges = supervised_edges(x, y, weight, **rule)
    if weight is not None:  # rows of weight 0 are no rows, but scikit-learn would look at their values
        some = weight > 0
        x, y, weight = x[some], y[some], weight[some]
    values = np.unique(x + 0.0)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    if np.isfinite(single).all() and len(np.unique(single)) == len(values):
        thresholds = tree_edges(x, y, weight, **rule)
        # A value halfway between two single-precision numbers may lie on the tree's threshold, though the tree, which
        # rounds it, has it on the right. Our edge is left of it then.
        rounded = np.isin(thresholds, values[single > values])
        assert equal_bits(edges[~rounded], thresholds[~rounded])
        assert (edges[rounded] < thresholds[rounded]).all()
        assert np.array_equal(np.searchsorted(edges, values), np.searchsorted(thresholds, single.astype(float)))
        return
    ranks = np.searchsorted(values, x).astype(float)
    by_rank = tree_edges(ranks, y, weight, **rule)
    assert np.array_equal(np.searchsorted(edges, values), np.searchsorted(by_rank, np.arange(len(values))))


def same(a: Histogram, b: Histogram) -> bool:
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in ("values", "rows", "weight", "positive"))


# Steps around the tolerance of 1e-7, at places where float32 is spaced more finely and less.
near = st.builds(
    lambda start, step, k: start + step * k,
    st.sampled_from([0.0, 1e-3, 0.3, 0.5, 1.0, 1.9, -1.0]),
    st.sampled_from([2e-8, 5e-8, 9e-8, 1e-7, 1.1e-7, 1.3e-7]),
    st.integers(0, 12),
)
values = {
    "integers": st.integers(-4, 8).map(float),
    "floats": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "doubles": st.floats(-5.0, 5.0),
    "near": near,
    "large": st.integers(0, 60).map(lambda k: 1e8 + 4.0 * k),
    "time stamps": st.integers(0, 60).map(lambda k: 1.7e9 + k),
    "neighbors": st.integers(0, 12).map(lambda k: 1.0 + k * 2.0**-52),
    "beyond single precision": st.sampled_from([1e39, -1e39, 1.7e308, -1.7e308, 2.0, 1e-300]),
    "zeros": st.sampled_from([0.0, -0.0, 1e-45, -1e-45, 1e-40, 1.0, -1.0, 3e38, -3e38]),
}
whole, eighths = st.integers(0, 5).map(float), st.integers(0, 40).map(lambda k: k / 8)
unit = st.integers(1, 5)
rules = st.fixed_dictionaries(
    {
        "max_bins": st.integers(2, 30),
        "criterion": st.sampled_from(["gini", "entropy"]),
        "min_rows": st.sampled_from([1, 1, 2, 3, 7]),
    }
)


@st.composite
def cases(draw, weighted: bool = False) -> Case:
    kind = draw(st.sampled_from(sorted(values)))
    weights = draw(st.sampled_from([whole, eighths])) if weighted else st.just(1.0)
    rows = draw(st.lists(st.tuples(values[kind], st.integers(0, 1), weights), min_size=1, max_size=60))
    x, y, w = (np.array(column) for column in zip(*rows, strict=True))
    if weighted and not w.any():
        w[0] = 1.0
    return x, y, (w if weighted else None)


@settings(max_examples=400, deadline=None)
@given(cases(), rules)
@example(
    (np.array([3e38, -3e38] * 12), np.arange(24) // 5 % 2, None),
    {"max_bins": 3, "criterion": "gini", "min_rows": 1},
)
def test_edges_are_the_tree_s(case: Case, rule: dict[str, object]) -> None:
    x, y, _ = case
    check(x, y, None, rule)


@settings(max_examples=300, deadline=None)
@given(cases(weighted=True), rules)
def test_edges_are_the_tree_s_with_integer_and_dyadic_weights(case: Case, rule: dict[str, object]) -> None:
    x, y, weight = case
    check(x, y, weight, rule)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=10), st.integers(2, 9), st.booleans(), rules)
@example([0, 1], 8, False, {"max_bins": 6, "criterion": "gini", "min_rows": 1})
def test_tied_nodes_are_split_in_the_tree_s_order(
    motif: list[int], times: int, mirrored: bool, rule: dict[str, object]
) -> None:
    """A repeated motif makes many nodes of equal gain, so that only the heap's order decides."""
    y = np.tile(motif + motif[::-1] if mirrored else motif, times)
    x = np.arange(y.size) * 0.5
    assert equal_bits(supervised_edges(x, y, **rule), tree_edges(x, y, **rule))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 120), min_size=2, max_size=12), st.tuples(unit, unit), rules)
@example([108, 82, 64, 104, 116, 116], (1, 2), {"max_bins": 5, "criterion": "gini", "min_rows": 1})
@example([70, 56, 86], (3, 4), {"max_bins": 2, "criterion": "entropy", "min_rows": 1})
def test_a_constant_rate_is_split_by_rounding_alone(
    counts: list[int], odds: tuple[int, int], rule: dict[str, object]
) -> None:
    """All gains are 0 up to the last bits, which therefore decide."""
    weight = np.outer(counts, odds).ravel()
    x, y = np.repeat(np.arange(len(counts)), 2), np.tile([0, 1], len(counts))
    assert equal_bits(supervised_edges(x, y, weight, **rule), tree_edges(x, y, weight, **rule))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 40, 1000, 10**6]), rules)
def test_edges_are_the_tree_s_on_many_rows(seed: int, levels: int, rule: dict[str, object]) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, 3000) / rng.choice([1, 3])
    y = rng.random(3000) < 0.1 + 0.3 * (np.sin(6 * x / levels) > 0)
    assert equal_bits(supervised_edges(x, y, **rule), tree_edges(x, y, **rule))


@settings(max_examples=200, deadline=None)
@given(cases(weighted=True), st.data())
def test_blocks_add_up(case: Case, data: st.DataObject) -> None:
    x, y, w = case
    at = data.draw(st.integers(0, x.size))
    whole, first, second = (histogram(x[s], y[s], w[s]) for s in (slice(None), slice(at), slice(at, None)))
    assert same(merge(first, second), whole)
    assert same(merge(second, first), whole)
    assert equal_bits(split_edges(merge(first, second), 5), supervised_edges(x, y, w, max_bins=5))
