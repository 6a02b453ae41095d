"""Raising a feature never moves the risk the wrong way: over all level combinations, with no tolerance."""

from __future__ import annotations

import itertools
import warnings

import msgspec
import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import PlainriskWarning
from plainrisk.explain.atoms import atoms_of
from plainrisk.form import Bins, Line, Table

MODELS = {
    "ARM1": lambda s, r: pr.AdditiveRiskModel(s, ridge=r),
    "direct ARM1": lambda s, r: pr.AdditiveRiskModel(s, ridge=r, link="linear"),
    "NNLR": lambda s, r: pr.NonnegativeLogisticRegression(s, ridge=r),
    "ARM2": lambda s, r: pr.TwoLayerRiskModel(schema=s, ridge=r),
    "direct ARM2": lambda s, r: pr.TwoLayerRiskModel(schema=s, ridge=r, link="linear"),
    "ARM2 of NNLR": lambda s, r: pr.TwoLayerRiskModel(pr.NonnegativeLogisticRegression(ridge=r), s, ridge=r),
}
DIRECTIONS = ["increasing", "decreasing", "none"]


def random_problem(seed):
    """A schema of two to four features of all kinds, and rows; the outcome half obeys the directions."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 400))
    features, columns, score = {}, {}, rng.normal(size=n)
    for j in range(int(rng.integers(2, 5))):
        direction = DIRECTIONS[int(rng.integers(0, 3))]
        sign = {"increasing": 1, "decreasing": -1, "none": 0}[direction]
        if rng.random() < 0.3:
            grade = rng.integers(0, 4, n)
            features[f"f{j}"] = {"kind": "categorical", "direction": direction, "categories": ("a", "b", "c", "d")}
            columns[f"f{j}"] = np.array(["a", "b", "c", "d"])[grade]
            score += rng.normal() * sign * grade
            continue
        x = (rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)).round(int(rng.integers(0, 4)))
        x = np.where(rng.random(n) < 0.1, -9999.0, np.where(rng.random(n) < 0.1, np.nan, x))
        features[f"f{j}"] = {"direction": direction, "special_values": (-9999,)}
        if rng.random() < 0.3:
            features[f"f{j}"]["lower_bound"] = float(np.nanquantile(x, 0.2))
        columns[f"f{j}"] = x
        score += rng.normal() * (sign or 1) * np.nan_to_num(np.clip(x, -3, 3))
    names = list(features)
    subscales = {"first": tuple(names[:2]), "second": tuple(names[1:])}  # they overlap
    schema = pr.Schema(features=features, subscales=subscales)
    y = (score > np.quantile(score, rng.uniform(0.2, 0.8))).astype(int)
    return schema, pd.DataFrame(columns), y


def values_of_all_levels(form, name, rng):
    """One value or more per level: those in the order, from below, then the others."""
    shapes = [p.shapes[name] for p in form.parts if name in p.shapes]
    levels = shapes[0].levels
    if not isinstance(levels, Bins):
        known = levels.categories[: levels.n_ordered]
        return list(known), [*levels.categories[levels.n_ordered :], None, "never seen"]
    edges = sorted({e for s in shapes for e in s.levels.edges})
    low = levels.lower_bound
    inner = [np.nextafter(e, np.inf) for e in edges]
    ordered = [*edges, *inner, (edges[-1] if edges else 0.0) + 1.0]
    if isinstance(shapes[0], Line):
        center = shapes[0].center
        spread = center + 10.0 ** rng.uniform(-12, 4, 6) * rng.choice([-1, 1], 6)
        ordered += [center, *spread, *np.nextafter(spread, np.inf)]
    ordered = sorted({v for v in ordered if (low is None or v >= low) and v != -9999})
    below = [] if low is None else [np.nextafter(low, -np.inf)]
    return ordered, [*below, *levels.special_values, np.nan]


def brute_force_faults(form, rng):
    """Every directed feature in which some step anywhere goes the wrong way."""
    used = [n for n in form.schema.features if any(n in p.shapes for p in form.parts)]
    split = {name: values_of_all_levels(form, name, rng) for name in used}
    grid = [[*ordered, *outside] for ordered, outside in split.values()]
    rows = list(itertools.product(*grid))
    columns = {n: pd.Series(c, dtype=object) for n, c in zip(used, zip(*rows, strict=True), strict=True)}
    for name in used:
        if form.schema.features[name].kind == "continuous":
            columns[name] = columns[name].astype(float)
    frame = pd.DataFrame(columns)
    risk = form.risk(frame).reshape([len(values) for values in grid])
    assert np.isfinite(risk).all()
    assert ((risk >= 0) & (risk <= 1)).all()
    faults = set()
    for axis, name in enumerate(used):
        sign = form.schema.features[name].sign
        ordered = np.take(risk, range(len(split[name][0])), axis=axis)
        if sign and (sign * np.diff(ordered, axis=axis) < 0).any():
            faults.add(name)
    return faults, len(rows)


def fit(kind, schema, X, y, ridge):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return MODELS[kind](schema, ridge).fit(X, y)


@pytest.mark.parametrize("kind", MODELS)
def test_fitted_models_are_monotone_over_all_combinations(kind, rng):
    combinations = 0
    for seed in range(36):
        schema, X, y = random_problem(seed)
        model = fit(kind, schema, X, y, ridge=[0.0, "auto", 0.05][seed % 3])
        assert model.certify().valid
        faults, rows = brute_force_faults(model.form_, rng)
        assert faults == set()
        combinations += rows
    assert combinations > 10_000


def test_models_with_pairs_are_monotone_from_every_row(rng):
    """Every directed feature moved over all its values in the order, with the others as in the rows: no tolerance."""
    pairs = 0
    for seed in range(24):
        schema, X, y = random_problem(seed)
        wanted = list(itertools.combinations(schema.features, 2))
        model = pr.AdditiveRiskModel(schema, shapes="smooth", pairs=wanted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            model.fit(X, y)
        assert model.certify().valid
        form = model.form_
        pairs += len(form.parts[0].pairs)
        for name, atoms in atoms_of(form).items():
            values = [v for v in atoms.values[: atoms.levels.n_ordered] if v is not None]
            rows = pd.concat([X.iloc[:60].assign(**{name: value}) for value in values])
            risk = form.risk(rows).reshape(len(values), -1)
            assert (schema.features[name].sign * np.diff(risk, axis=0) >= 0).all(), (seed, name)
    assert pairs > 10


def swapped(form, rng):
    """Swap two neighboring ordered scores of one directed shape; None if there is nothing to swap."""
    choices = [
        (k, name, j)
        for k, part in enumerate(form.parts)
        for name, shape in part.shapes.items()
        if isinstance(shape, Table) and form.schema.features[name].sign
        for j in range(shape.levels.n_ordered - 1)
        if abs(shape.scores[j + 1] - shape.scores[j]) > 1e-3
    ]
    if not choices:
        return None
    k, name, j = choices[int(rng.integers(len(choices)))]
    part = form.parts[k]
    scores = list(part.shapes[name].scores)
    scores[j], scores[j + 1] = scores[j + 1], scores[j]
    shape = msgspec.structs.replace(part.shapes[name], scores=tuple(scores))
    part = msgspec.structs.replace(part, shapes={**part.shapes, name: shape})
    return name, msgspec.structs.replace(form, parts=(*form.parts[:k], part, *form.parts[k + 1 :]))


def test_brute_force_and_certificate_agree_on_forms_that_are_tampered_with(rng):
    tampered = 0
    for seed in range(30):
        schema, X, y = random_problem(seed)
        found = swapped(fit("ARM1", schema, X, y, "auto").form_, rng)
        if found is None:
            continue
        name, form = found
        broken = {c.name for c in pr.RiskModel(form).certify().checks if not c.holds}
        assert broken == {f"monotone in {name}"}
        assert brute_force_faults(form, rng)[0] == {name}
        tampered += 1
    assert tampered > 10
