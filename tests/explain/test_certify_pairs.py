"""The certificate of forms with pairs of features, against brute force over all combinations of levels."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.explain import certify
from plainrisk.explain.atoms import atoms_of, value_frame
from plainrisk.form import Alone, Bins, Categories, Curve, Line, Linear, Logistic, PairTable, Part, RiskForm, Table

SCHEMA = pr.Schema(
    features={
        "up": {"direction": "increasing", "special_values": (-9,), "lower_bound": 0.0},
        "down": {"direction": "decreasing"},
        "grade": {"kind": "categorical", "direction": "increasing", "categories": ("A", "B", "C")},
        "free": {},
    }
)
AXES = {
    "up": [Bins(edges, (-9.0,), 0.0) for edges in [(), (5.0,), (3.0, 5.0), (4.0, 8.0, 9.0)]],
    "down": [Bins(), Bins((1.0,)), Bins((0.5, 2.0))],
    "grade": [Categories(("A", "B", "C"), 3), Categories(("A", "C"), 2)],
    "free": [Bins((1.0,)), Bins((0.0, 1.0))],
}


def table(levels, scores):
    return Table(levels=levels, scores=tuple(scores), weights=(9.0,) * len(levels), positives=(1.0,) * len(levels))


def pair(features, levels, scores):
    n, m = map(len, levels)
    counts = ((9.0,) * m,) * n
    scores = tuple(map(tuple, np.asarray(scores, dtype=float).tolist()))
    return PairTable(features=features, levels=levels, scores=scores, weights=counts, positives=counts)


def form(shapes, pairs, schema=SCHEMA):
    part = Part(name="all", intercept=0.0, shapes=shapes, link=Linear(0.01, 0.5), pairs=tuple(pairs))
    return RiskForm(schema=schema, columns=tuple(schema.features), classes=(0, 1), parts=(part,), pool=Alone())


def random_form(seed):
    """Whole scores, so that sums are exact, with main effects about as steep as the pairs are wild."""
    rng = np.random.default_rng(seed)
    steep = int(rng.integers(0, 7))
    shapes, pairs = {}, []
    for name, axes in AXES.items():
        if rng.random() < 0.8:
            levels = axes[rng.integers(len(axes))]
            scores = SCHEMA.features[name].sign * steep * np.arange(len(levels)) + rng.integers(-1, 2, len(levels))
            shapes[name] = table(levels, scores.astype(float).tolist())
    for features in rng.permutation(list(itertools.combinations(AXES, 2)))[: rng.integers(1, 4)].tolist():
        levels = tuple(AXES[name][rng.integers(len(AXES[name]))] for name in features)
        pairs.append(pair(tuple(features), levels, rng.integers(-2, 3, tuple(map(len, levels)))))
    return form(shapes, pairs)


def brute_force(form):
    """The directed features in which some step of some applicant goes the wrong way."""
    atoms = atoms_of(form)
    names = list(atoms)
    values = {
        n: [*(v for v in a.values if v is not None), None, "Z" if n == "grade" else None] for n, a in atoms.items()
    }
    rows = list(itertools.product(*values.values()))
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    score = form.score(value_frame(columns)).reshape([len(v) for v in values.values()])
    found = set()
    for axis, name in enumerate(names):
        ordered = np.take(score, range(atoms[name].levels.n_ordered), axis=axis)
        if (form.schema.features[name].sign * np.diff(ordered, axis=axis) < 0).any():
            found.add(name)
    return found


@settings(max_examples=250, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_certificate_and_brute_force_agree(seed):
    model = random_form(seed)
    checks = {c.name.removeprefix("monotone in "): c.holds for c in certify(model).checks if "monotone" in c.name}
    broken = {name for name, holds in checks.items() if not holds}
    assert broken == brute_force(model)


def test_forms_of_both_verdicts_are_tried():
    verdicts = [bool(brute_force(random_form(seed))) for seed in range(60)]
    assert 5 < sum(verdicts) < 55


# Levels of "up": up to 5, beyond, -9, below 0, missing; of "down": up to 1, beyond, missing.
UP, DOWN = Bins((5.0,), (-9.0,), 0.0), Bins((1.0,))
RISES = [[2, 1, 1], [3, 2, 1], [9, 9, 9], [0, 0, 0], [0, 0, 0]]


def check(model, name):
    return next(c for c in certify(model).checks if c.name == f"monotone in {name}")


def test_a_pair_that_is_ordered_holds_without_shapes_of_its_features():
    model = form({}, [pair(("up", "down"), (UP, DOWN), RISES)])
    assert certify(model).valid
    assert check(model, "up").detail == "increasing, all 1 steps, whatever the other features are"


def test_a_pair_that_was_tampered_with_is_found_and_named():
    scores = [[2, 1, 1], [3, 0.5, 1], *RISES[2:]]
    found = check(form({}, [pair(("up", "down"), (UP, DOWN), scores)]), "up")
    assert not found.holds
    assert "moves by -0.5 from 'x <= 5' to 'x > 5' where down is 'x > 1'" in found.detail
    turned = form({}, [pair(("down", "up"), (DOWN, UP), np.transpose(scores))])
    assert not check(turned, "up").holds


def test_a_shape_may_make_up_for_a_pair_and_the_certificate_says_that_sums_are_rounded():
    falls = [[0, 0, 0], [-0.3, 0.2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    finer = Bins((2.0, 5.0), (-9.0,), 0.0)
    pairs = [pair(("up", "free"), (UP, Bins((1.0,))), falls)]
    model = form({"up": table(finer, (0.0, 0.1, 0.4000001, 0.0, 0.0, 0.0))}, pairs)
    assert check(model, "up").holds
    assert check(model, "up").detail.endswith(
        "all 2 steps, whatever the other features are, but for the rounding of sums with pairs"
    )
    assert not check(form({"up": table(finer, (0.0, 0.1, 0.3999, 0.0, 0.0, 0.0))}, pairs), "up").holds


def test_the_sign_of_a_step_is_that_of_the_exact_sum():
    """In floating point 0.1 + 0.2 - (0.1 + 0.2) is 0; exactly it is less, since the sum in brackets is rounded up."""
    zero = np.zeros((5, 3))
    one, two = zero.copy(), zero.copy()
    one[1], two[1] = 0.1, 0.2
    pairs = [pair(("up", "down"), (UP, DOWN), one), pair(("up", "free"), (UP, Bins((1.0,))), two)]
    for drop, holds in ((0.3, True), (0.1 + 0.2, False)):
        assert check(form({"up": table(UP, (0.0, -drop, 0.0, 0.0, 0.0))}, pairs), "up").holds is holds


@pytest.mark.parametrize("kind", ["line", "curve"])
def test_a_line_is_no_help_where_a_pair_steps(kind):
    fields = {"levels": Bins((), (-9.0,), 0.0), "scores": (0.0,) * 4, "weights": (9.0,) * 4, "positives": (1.0,) * 4}
    if kind == "line":
        shape = Line(slope=1.0, center=0.0, **fields)
    else:
        shape = Curve(breaks=(0.0, 1.0), coefficients=((0.0, 1.0),), **fields)
    assert check(form({"up": shape}, [pair(("up", "down"), (UP, DOWN), RISES)]), "up").holds
    falls = [RISES[1], RISES[0], *RISES[2:]]
    assert not check(form({"up": shape}, [pair(("up", "down"), (UP, DOWN), falls)]), "up").holds


def test_levels_that_disagree_on_the_order_are_no_proof():
    other = Bins((5.0,), (-9.0,), 4.0)
    found = check(form({"up": table(UP, (0.0, 1.0, 0, 0, 0))}, [pair(("up", "down"), (other, DOWN), RISES)]), "up")
    assert not found.holds
    assert "a bound that the schema does not have" in found.detail


def test_a_shape_and_a_pair_that_disagree_on_the_bound_are_no_proof():
    own = Bins(UP.edges, UP.special_values)
    found = check(form({"up": table(own, (0.0, 1.0, 0, 0))}, [pair(("up", "down"), (UP, DOWN), RISES)]), "up")
    assert not found.holds
    assert "shapes and pairs differ in the bound below which values are special" in found.detail


def test_contributions_of_pairs_add_up_and_thin_combinations_are_noted():
    model = form({}, [pair(("up", "down"), (UP, DOWN), RISES)])
    found = certify(msgspec.structs.replace(model, parts=(msgspec.structs.replace(model.parts[0], link=Logistic()),)))
    assert found.valid
    assert found.notes == ("up × down: 15 of 15 combinations of levels have fewer than 30 training rows",)
