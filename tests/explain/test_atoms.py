from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.explain.atoms import atoms_of, nearest_value, value_frame
from plainrisk.form import Alone, Bins, Categories, Linear, Part, RiskForm, Table, Tree, TreeInput, TreePart

numbers = st.one_of(
    st.integers(-1000, 1000).map(float),
    st.floats(-1e6, 1e6, allow_nan=False, allow_infinity=False),
    st.integers(-1000, 1000).map(lambda n: n + 0.5),
)


@settings(max_examples=300, deadline=None)
@given(edges=st.lists(numbers, min_size=1, max_size=5, unique=True), start=numbers, data=st.data())
def test_the_nearest_value_is_inside_the_bin_and_on_the_near_side(edges, start, data):
    bins = Bins(tuple(sorted(edges)), (-9.0,))
    code = data.draw(st.integers(0, len(edges)))
    value = nearest_value(bins, code, start)
    ends = (-math.inf, *bins.edges, math.inf)
    assert int(bins.code_numbers(np.array([value]))[0]) == code
    if start <= ends[code]:  # from below: no number of as few decimals lies between
        step = 10.0 ** -len(repr(start).partition(".")[2].rstrip("0"))
        assert value - ends[code] <= max(step, ends[code + 1] - ends[code]) * (1 + 1e-9)


def test_numbers_of_numpy_are_numbers():
    assert nearest_value(Bins((np.float64(64.5), np.float64(71.5))), 2, np.float64(60.0)) == 72.0


def test_atoms_divide_what_pairs_divide(make_form):
    """Values in one atom are in one level of every shape and pair, and atoms know the levels they are in."""
    found = 0
    for seed in range(20):
        form = make_form(seed, pairs=True)
        for name, atoms in atoms_of(form).items():
            for part in form.parts:
                for _, axis, pair in part.pairs_with(name):
                    levels = atoms.levels_in(pair.levels[axis])
                    assert set(levels.tolist()) == set(range(len(pair.levels[axis]))), "each level has an atom"
                    assert not atoms.seen[pair.level_weights(axis)[levels] == 0].any()
                    found += len(levels) > len(pair.levels[axis])
    assert found > 20


def test_every_place_has_a_value_that_stands_for_it(make_form):
    for seed in range(30):
        form = make_form(seed, trees=seed % 2 == 1)
        for name, atoms in atoms_of(form).items():
            codes = atoms.levels.codes(value_frame({name: atoms.values}), name)
            for j, value in enumerate(atoms.values):
                if value is not None:
                    assert codes[j] == j, (name, j)
            assert not atoms.seen[[j for j, v in enumerate(atoms.values) if v is None]].any()


def test_atoms_divide_what_any_part_divides(make_form, every_row):
    """Rows in the same atoms get the same risk, whatever their values."""
    rng = np.random.default_rng(0)
    for seed in range(12):
        form = make_form(seed, trees=seed % 2 == 1)
        n = 400
        X = {
            "age": rng.choice([-9.0, -3.0, 1.0, 29.0, 30.0, 31.0, 40.5, 99.0], n),
            "job": rng.choice(np.array(["a", "b", "c", "q"], dtype=object), n),
            "debt": rng.uniform(-1, 4, n),
            "rent": rng.uniform(0, 20, n),
        }
        frame = form.align(X)
        atoms = atoms_of(form)
        keys = [atoms[name].levels.codes(frame, name) for name in atoms]
        risk = form.risk(X)
        seen = {}
        for i, key in enumerate(zip(*keys, strict=True)):
            assert seen.setdefault(key, risk[i]) == risk[i]
        assert len(seen) < n


def test_thin_levels_can_be_left_out(make_form):
    form = make_form(0)
    part = next(p for p in form.parts if isinstance(p, Part))
    name = part.features[0]
    weights = np.array(part.shapes[name].weights)
    assert atoms_of(form)[name].seen.sum() >= atoms_of(form, 20)[name].seen.sum()
    seen = atoms_of(form, 20)[name].seen
    assert all(weights[j] >= 20 for j in np.flatnonzero(seen))


def test_trees_bring_their_edges_and_categories(make_form):
    form = next(
        f for f in (make_form(s, trees=True) for s in range(20)) if any(isinstance(p, TreePart) for p in f.parts)
    )
    trees = next(p for p in form.parts if isinstance(p, TreePart))
    atoms = atoms_of(form)
    asked = {e for t in trees.trees for j, e in zip(t.inputs, t.edges, strict=True) if j == 0}
    assert asked <= set(atoms["debt"].levels.edges)
    assert isinstance(atoms["job"].levels, Categories)
    assert "b" in atoms["job"].levels.categories


def test_a_bin_no_value_can_reach_has_none():
    table = Table(
        levels=Bins((-5.0, 10.0), (), 0.0), scores=(0.0,) * 5, weights=(1.0,) * 5, positives=(0.0,) * 5
    )  # everything up to -5 is below the bound
    part = Part(name="all", intercept=0.0, shapes={"u": table}, link=Linear())
    schema = pr.Schema(features={"u": {}})
    form = RiskForm(schema=schema, columns=("u",), classes=(0, 1), parts=(part,), pool=Alone())
    atoms = atoms_of(form)["u"]
    assert [v is None for v in atoms.values] == [True, False, False, False, True]
    assert atoms.seen.tolist() == [False, True, True, True, False]


def test_trees_do_not_turn_codes_into_targets():
    """A tree may split at -8.5; the schema still says that -9 and everything below 0 is no measurement."""
    tree = Tree(
        inputs=(0, -1, -1), edges=(-8.5, 0.0, 0.0), missing_left=(False,) * 3, left=(1, 0, 0), right=(2, 0, 0),
        values=(0.0, -1.0, 1.0),
    )  # fmt: skip
    part = TreePart(name="all", intercept=0.0, inputs=(TreeInput(feature="u"),), trees=(tree,), link=Linear())
    schema = pr.Schema(features={"u": {"special_values": [-9], "lower_bound": 0}})
    form = RiskForm(schema=schema, columns=("u",), classes=(0, 1), parts=(part,), pool=Alone())
    assert atoms_of(form)["u"].levels == Bins((-8.5,), (-9.0,), 0.0)
    assert not pr.RiskModel(form).what_if({"u": 5.0}, 0.2).reached
