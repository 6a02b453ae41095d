"""Trees as data: evaluated row by row, certified leaf by leaf, and refused when damaged."""

from __future__ import annotations

import itertools
import math

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.data.frame import as_frame
from plainrisk.errors import ModelFileError
from plainrisk.form import Alone, Linear, Logistic, Mixture, RiskForm, Tree, TreeInput, TreePart

LEAF = -1


def random_tree(rng, n_inputs, depth, ordered=None):
    """A tree of random shape; with `ordered` its leaves rise with every input of that list."""
    fields = {name: [] for name in ("inputs", "edges", "missing_left", "left", "right", "values")}

    def grow(depth, low, high):
        node = len(fields["inputs"])
        for field, empty in zip(fields.values(), (LEAF, 0.0, False, 0, 0, 0.0), strict=True):
            field.append(empty)
        if depth == 0 or rng.random() < 0.2:
            fields["values"][node] = rng.uniform(low, high)
            return node
        j = int(rng.integers(n_inputs))
        fields["inputs"][node], fields["edges"][node] = j, float(rng.integers(-2, 3))
        fields["missing_left"][node] = bool(rng.random() < 0.5)
        middle = rng.uniform(low, high)
        rising = ordered is not None and j in ordered
        fields["left"][node] = grow(depth - 1, low, middle if rising else high)
        fields["right"][node] = grow(depth - 1, middle if rising else low, high)
        return node

    grow(depth, -1.0, 1.0)
    return Tree(**{name: tuple(field) for name, field in fields.items()})


def by_hand(tree, row):
    """Follow one row down."""
    node = 0
    while tree.inputs[node] != LEAF:
        x = row[tree.inputs[node]]
        left = tree.missing_left[node] if math.isnan(x) else x <= tree.edges[node]
        node = tree.left[node] if left else tree.right[node]
    return tree.values[node]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), depth=st.integers(0, 5), n_inputs=st.integers(1, 4))
def test_every_row_ends_in_its_leaf(seed, depth, n_inputs):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_inputs, depth)
    rows = rng.integers(-3, 4, (40, n_inputs)).astype(float)  # often exactly on an edge
    rows[rng.random(rows.shape) < 0.2] = np.nan
    found = tree.values_at(list(rows.T))
    assert found.tolist() == [by_hand(tree, row) for row in rows]
    leaves = [v for v, j in zip(tree.values, tree.inputs, strict=True) if j == LEAF]
    assert sorted(tree.leaves_below(0)) == sorted(leaves)


def stump(value_left, value_right, j=0, edge=0.0, missing_left=True):
    return Tree(
        inputs=(j, LEAF, LEAF),
        edges=(edge, 0.0, 0.0),
        missing_left=(missing_left, False, False),
        left=(1, 0, 0),
        right=(2, 0, 0),
        values=(0.0, value_left, value_right),
    )


def tree_form(schema, inputs, trees, link=None, intercept=0.25):
    part = TreePart(name="all", intercept=intercept, inputs=inputs, trees=trees, link=link or Logistic())
    return RiskForm(schema=schema, columns=tuple(schema.features), classes=(0, 1), parts=(part,), pool=Alone())


SCHEMA = pr.Schema(
    features={
        "u": {"direction": "increasing"},
        "grade": {"kind": "categorical", "direction": "decreasing", "categories": ("low", "mid", "high")},
        "job": {"kind": "categorical"},
    }
)
ROWS = pd.DataFrame(
    {"u": [-1.0, 2.0, np.nan, -99.0], "grade": ["high", "low", None, "odd"], "job": ["a", "b", "a", None]}
)


def test_inputs_are_numbers_places_and_indicators():
    frame = as_frame(ROWS)
    nan = np.nan
    for given_input, expected in [
        (TreeInput(feature="u"), [-1.0, 2.0, nan, -99.0]),
        (TreeInput(feature="u", missing=-99.0), [-1.0, 2.0, nan, nan]),
        (TreeInput(feature="grade", order=("low", "mid", "high")), [2.0, 0.0, nan, nan]),
        (TreeInput(feature="job", category="a"), [1.0, 0.0, 1.0, 0.0]),
        (TreeInput(feature="job", category="z"), [0.0, 0.0, 0.0, 0.0]),
    ]:
        np.testing.assert_array_equal(given_input.read(frame), expected)


def test_an_input_knows_the_categories_that_it_tells_apart():
    assert TreeInput(feature="c", category="red").labels == ("red",)
    assert TreeInput(feature="c", order=("low", "high")).labels == ("low", "high")
    assert TreeInput(feature="u").labels == ()


@pytest.mark.parametrize(
    "ways",
    [{"category": "a", "order": ("a", "b")}, {"category": "a", "missing": 1.0}, {"order": ("a",), "missing": 0.0}],
)
def test_an_input_is_read_in_one_way(ways):
    with pytest.raises(ModelFileError, match="the trees read 'u' in two ways at once"):
        TreeInput(feature="u", **ways)


def test_a_part_adds_up_its_trees():
    inputs = (TreeInput(feature="u"), TreeInput(feature="grade", order=("low", "mid", "high")))
    form = tree_form(SCHEMA, inputs, (stump(-1.0, 2.0), stump(0.5, -0.5, j=1, edge=0.0, missing_left=False)))
    np.testing.assert_allclose(form.score(ROWS), [0.25 - 1.0 - 0.5, 0.25 + 2.0 + 0.5, 0.25 - 1.0 - 0.5, 0.25 - 1.5])
    np.testing.assert_allclose(form.risk(ROWS), 1 / (1 + np.exp(-form.score(ROWS))))
    assert not form.speaks_probability
    explained = pr.RiskModel(form).explain(ROWS, portfolio=ROWS)
    assert explained.features == (None,)
    np.testing.assert_allclose(explained.total, form.risk(ROWS), atol=1e-15)


def test_no_trees_and_no_inputs_are_a_constant():
    lone_leaf = Tree(inputs=(LEAF,), edges=(0.0,), missing_left=(False,), left=(0,), right=(0,), values=(0.5,))
    for trees, score in (((), 0.25), ((lone_leaf,), 0.75)):
        form = tree_form(SCHEMA, (), trees)
        assert form.score(ROWS).tolist() == [score] * 4
        assert form.parts[0].features == ()


def test_a_pool_of_trees_and_tables_is_one_form(tmp_path):
    inputs = (TreeInput(feature="u", missing=-99.0), TreeInput(feature="job", category="a"))
    trees = (stump(-1.0, 2.0), stump(-0.25, 0.25, j=1, edge=0.5))
    parts = tuple(
        TreePart(name=name, intercept=0.0, inputs=inputs, trees=trees, link=link)
        for name, link in (("first", Logistic()), ("second", Linear.from_alpha(2.0)))
    )
    form = RiskForm(
        schema=SCHEMA, columns=tuple(SCHEMA.features), classes=(0, 1), parts=parts, pool=Mixture((0.25, 0.75))
    )
    pr.RiskModel(form).save(tmp_path / "trees.json")
    again = pr.load(tmp_path / "trees.json")
    assert again.form_ == form
    np.testing.assert_array_equal(again.predict_proba(ROWS), pr.RiskModel(form).predict_proba(ROWS))


# ---- the certificate


@pytest.mark.parametrize("seed", range(40))
def test_trees_are_certified_only_if_no_step_goes_the_wrong_way(seed):
    """A certificate covers all numbers; every random form with one is monotone over a grid of all combinations."""
    rng = np.random.default_rng(seed)
    schema = pr.Schema(features={"a": {"direction": "increasing"}, "b": {"direction": "increasing"}, "c": {}})
    inputs = tuple(TreeInput(feature=name) for name in schema.features)
    rising = seed % 2 == 0
    trees = tuple(random_tree(rng, 3, 3, ordered=[0, 1] if rising else None) for _ in range(3))
    form = tree_form(schema, inputs, trees)
    certificate = {c.name: c.holds for c in pr.RiskModel(form).certify().checks}
    grid = np.array(list(itertools.product(np.arange(-2.5, 3.0, 0.5), repeat=3)))
    side = round(len(grid) ** (1 / 3))
    risk = form.risk(pd.DataFrame(grid, columns=["a", "b", "c"])).reshape(side, side, side)
    for axis, name in enumerate("ab"):
        monotone = (np.diff(risk, axis=axis) >= 0).all()
        assert monotone or not certificate[f"monotone in {name}"]
        if rising:
            assert certificate[f"monotone in {name}"]


def test_categories_read_one_by_one_have_no_order():
    one_hot = tree_form(SCHEMA, (TreeInput(feature="grade", category="low"),), (stump(0.0, 1.0, edge=0.5),))
    checks = {c.name: c for c in pr.RiskModel(one_hot).certify().checks}
    assert not checks["monotone in grade"].holds
    assert "one by one" in checks["monotone in grade"].detail
    order = TreeInput(feature="grade", order=("low", "mid", "high"))
    for (left, right), holds in (((1.0, -1.0), True), ((-1.0, 1.0), False)):
        checks = pr.RiskModel(tree_form(SCHEMA, (order,), (stump(left, right),))).certify().checks
        assert {c.name: c.holds for c in checks}["monotone in grade"] is holds


# ---- damaged data


def test_a_node_with_two_parents_is_visited_once():
    """Sixty nodes in a row, each the left and the right child of the one before: 2^60 ways, 60 steps."""
    n = 61
    tree = Tree(
        inputs=(*[0] * (n - 1), LEAF),
        edges=(0.0,) * n,
        missing_left=(False,) * n,
        left=(*range(1, n), 0),
        right=(*range(1, n), 0),
        values=(*[0.0] * (n - 1), 7.0),
    )
    assert tree.values_at([np.array([-1.0, np.nan, 1.0])]).tolist() == [7.0, 7.0, 7.0]
    assert tree.leaves_below(0) == [7.0]


def test_a_deep_tree_needs_no_deep_stack():
    n = 5001  # a comb: every second node is a leaf
    inner = [k % 2 == 0 and k < n - 1 for k in range(n)]
    tree = Tree(
        inputs=tuple(0 if i else LEAF for i in inner),
        edges=tuple(float(k) for k in range(n)),
        missing_left=(True,) * n,
        left=tuple(k + 1 if i else 0 for k, i in enumerate(inner)),
        right=tuple(k + 2 if i else 0 for k, i in enumerate(inner)),
        values=tuple(float(k) for k in range(n)),
    )
    assert tree.values_at([np.array([-5.0, 2.5, 1e9, np.nan])]).tolist() == [1.0, 5.0, 5000.0, 1.0]
    assert len(tree.leaves_below(0)) == n // 2 + 1


GOOD = stump(1.0, 2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": (0, 0, 0)}, "children must come after their parent"),
        ({"right": (3, 0, 0)}, "children must come after their parent"),
        ({"left": (-1, 0, 0)}, "children must come after their parent"),
        ({"inputs": (0, 0, LEAF), "left": (1, 0, 0), "right": (2, 1, 0)}, "children must come after their parent"),
        ({"edges": (0.0, 0.0)}, "differ in length"),
        ({"values": (0.0, 1.0, 2.0, 3.0)}, "differ in length"),
        ({"missing_left": ()}, "differ in length"),
        ({"edges": (math.nan, 0.0, 0.0)}, "not finite"),
        ({"edges": (math.inf, 0.0, 0.0)}, "not finite"),
        ({"values": (0.0, math.nan, 1.0)}, "not finite"),
        (dict.fromkeys(("inputs", "edges", "missing_left", "left", "right", "values"), ()), "differ in length"),
    ],
)
def test_no_damaged_tree_is_made(change, message):
    with pytest.raises(ModelFileError, match=message):
        msgspec.structs.replace(GOOD, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"intercept": math.nan}, "intercept of 'all' is not finite"),
        ({"intercept": math.inf}, "intercept of 'all' is not finite"),
        ({"trees": (stump(0.0, 1.0, j=1),)}, "reads an input that does not exist"),
        ({"trees": (stump(0.0, 1.0, j=-2),)}, "reads an input that does not exist"),
        ({"inputs": ()}, "reads an input that does not exist"),
    ],
)
def test_no_damaged_part_is_made(change, message):
    part = tree_form(SCHEMA, (TreeInput(feature="u"),), (GOOD,)).parts[0]
    with pytest.raises(ModelFileError, match=message):
        msgspec.structs.replace(part, **change)
    with pytest.raises(ModelFileError, match="uses 'zip', which the schema does not know"):
        tree_form(SCHEMA, (TreeInput(feature="zip"),), (GOOD,))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"missing_left"', '"missing_right"', "unknown field `missing_right`"),
        ('"left":[1,', '"left":["1",', "Expected `int`, got `str`"),
        ('"left":[1,', '"left":[0,', "children must come after their parent"),
        ('"edges":[0.0,', '"edges":[1e999,', "out of range"),
        ('"kind":"trees"', '"kind":"forest"', "Invalid value 'forest'"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, old, new, message):
    form = tree_form(SCHEMA, (TreeInput(feature="u"),), (GOOD,))
    path = tmp_path / "model.json"
    pr.RiskModel(form).save(path)
    text = msgspec.json.format(path.read_bytes(), indent=-1).decode()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(ModelFileError, match=message):
        pr.load(path)
