"""Levels of a feature: found from all rows at once or batch by batch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from plainrisk.bins import LevelFinder
from plainrisk.data.frame import as_frame
from plainrisk.errors import DataError, SchemaError
from plainrisk.form import Bins, Categories
from plainrisk.schema import Feature


def learn(values, target, feature, weight=None, **options):
    finder = LevelFinder("u", feature, **options)
    finder.add(as_frame(pd.DataFrame({"u": values})), np.asarray(target), weight)
    return finder.finish()


@pytest.fixture
def column(rng):
    x = rng.normal(size=400).round(2)
    return x, (x + rng.normal(size=400) > 0).astype(np.uint8)


def test_bins_are_those_of_a_tree_on_the_measured_values_alone(column):
    x, y = column
    x[:40], x[40:60], x[60:80] = -9.0, np.nan, -7.5
    y[:40] = 1  # would pull an edge toward the codes
    feature = Feature(special_values=(-9,), lower_bound=-5.0, direction="increasing")
    levels = learn(x, y, feature)
    tree = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(x[80:, None], y[80:])
    edges = np.sort(tree.tree_.threshold[tree.tree_.feature >= 0])
    assert levels == Bins(edges=tuple(edges.tolist()), special_values=(-9.0,), lower_bound=-5.0)


@pytest.mark.parametrize(("feature", "options", "bins"), [
    (Feature(), {}, 5),
    (Feature(), {"max_bins": 3}, 3),
    (Feature(max_bins=2), {"max_bins": 7}, 2),
    (Feature(max_bins=7), {"max_bins": 3}, 7),
    (Feature(), {"max_bins": 20, "min_rows": 150}, 2),
])  # fmt: skip
def test_number_of_bins(column, feature, options, bins):
    assert learn(*column, feature, **options).n_ordered == bins


def test_fixed_edges_are_taken_as_they_are(column):
    assert learn(*column, Feature(edges=(0.0, 50.0))) == Bins(edges=(0.0, 50.0))


@pytest.mark.parametrize("values", [[3.0, 3.0, 3.0], [np.nan, np.nan, np.nan], [-9.0, np.nan, -9.0]])
def test_nothing_to_split_gives_one_bin(values):
    assert learn(values, [0, 1, 0], Feature(special_values=(-9,))).edges == ()


def test_rows_without_weight_do_not_move_the_edges(column):
    x, y = column
    weight = (np.arange(400) % 3 > 0).astype(np.float64)
    kept = weight > 0
    assert learn(x, y, Feature(), weight) == learn(x[kept], y[kept], Feature())


# ---- categories


def categories(values, feature):
    return learn(values, np.zeros(len(values), dtype=np.uint8), feature)


def test_categories_are_sorted_as_text_or_as_numbers():
    text = Feature(kind="categorical")
    assert categories(["b", "a", None, "b"], text) == Categories(("a", "b"), 2)
    assert categories(["10", "9", "-1"], text) == Categories(("-1", "9", "10"), 3)
    assert categories(["10", "9", "x"], text) == Categories(("10", "9", "x"), 3)
    assert categories([10, 9, 2], text) == Categories(("2", "9", "10"), 3)


def test_listed_categories_keep_their_order_and_special_ones_come_after():
    feature = Feature(
        kind="categorical",
        direction="increasing",
        categories=("low", "mid", "high"),
        special_values=("none",),
    )
    assert categories(["high", "low", "odd"], feature) == Categories(("low", "mid", "high", "none"), 3)
    found = Feature(kind="categorical", special_values=("none",))
    assert categories(["b", "none", "a"], found) == Categories(("a", "b", "none"), 2)


@pytest.mark.parametrize("odd", ["x", "nan", ""])
def test_a_direction_needs_an_order(odd):
    feature = Feature(kind="categorical", direction="decreasing")
    assert categories(["10", "9"], feature).categories == ("9", "10")
    with pytest.raises(SchemaError, match=r"feature 'u' has a direction.*List them in order"):
        categories(["10", odd, "9"], feature)


def test_the_order_of_equal_numbers_does_not_depend_on_the_rows():
    feature = Feature(kind="categorical")
    assert categories(["1.0", "1", "01"], feature) == categories(["01", "1.0", "1"], feature)


@pytest.mark.parametrize("size", [1, 7, 400])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "quantile"])
def test_batches_give_the_levels_of_all_rows(column, size, criterion):
    x, y = column
    x[::7] = -9.0
    feature, weight = Feature(special_values=(-9,)), np.arange(400) % 4 * 0.5
    finder = LevelFinder("u", feature, criterion=criterion)
    for start in range(0, 400, size):
        rows = slice(start, start + size)
        finder.add(as_frame(pd.DataFrame({"u": x[rows]})), y[rows], weight[rows])
    assert finder.finish() == learn(x, y, feature, weight, criterion=criterion)


def test_categories_of_all_batches():
    finder = LevelFinder("u", Feature(kind="categorical", special_values=("none",)))
    for labels in (["b", "none"], ["a", None], ["b"]):
        finder.add(as_frame(pd.DataFrame({"u": labels})), np.zeros(len(labels)), None)
    assert finder.finish() == Categories(("a", "b", "none"), 2)


def test_too_many_distinct_values_move_edges_to_the_ends_of_buckets(column, monkeypatch):
    monkeypatch.setattr("plainrisk.bins.edges.MOST_VALUES", 50)
    x, y = column
    finder = LevelFinder("u", Feature())
    for rows in (slice(0, 200), slice(200, 400)):
        finder.add(as_frame(pd.DataFrame({"u": x[rows]})), y[rows], None)
    assert finder.values.bits > 0
    ends = set(finder.values.histogram.values.tolist())
    assert set(finder.finish().edges) <= ends
    assert finder.values.histogram is None, "what was counted is given up"


def test_more_categories_than_any_model_should_have(monkeypatch):
    monkeypatch.setattr("plainrisk.bins.learn.MOST_CATEGORIES", 3)
    feature = Feature(kind="categorical", special_values=("none",))
    assert categories(["a", "b", "c", "none"], feature).categories == ("a", "b", "c", "none")
    with pytest.raises(DataError, match=r"feature 'u' has more than 3 categories\. Group them"):
        categories(["a", "b", "c", "d", "none"], feature)


def test_values_beyond_single_precision_are_binned():
    assert learn([1.0, 1e39, 1e300], [0, 1, 0], Feature()).edges == (5e38, 5e299)


# ---- lines


def test_a_line_has_one_bin_and_the_levels_outside_the_order():
    feature = Feature(special_values=(-9,), lower_bound=0.0, max_bins=7, edges=(1.5,))
    assert learn([1.0, 2.0], [0, 1], feature, lines=True) == Bins(special_values=(-9.0,), lower_bound=0.0)
    assert learn(["a", "b"], [0, 1], Feature(kind="categorical"), lines=True) == Categories(("a", "b"), 2)


def test_text_in_a_continuous_feature_names_feature_and_row():
    with pytest.raises(DataError, match="feature 'u' is continuous but holds text in row 1"):
        learn(["1", "x"], [0, 1], Feature())
