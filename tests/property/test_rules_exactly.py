"""No empty or special field does more than its rule allows: brute force over levels, exact in floating point."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.explain.atoms import atoms_of, value_frame
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Layer,
    Line,
    Linear,
    Logistic,
    Mixture,
    PairTable,
    Part,
    RiskForm,
    Table,
    measured_levels,
    outside_rules,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*the line is cut off")

N = 700
PAIRS = [("late", "income"), ("late", "job")]
MODELS = {
    "ARM1": {},
    "BandARM1": {},
    "DirectARM1": {},
    "LinARM1": {},
    "ARM2": {},
    "MixARM1": {},
    "SmoothARM1": {},
    "SmoothDirectARM1": {},
    "SmoothARM1 with pairs": {"pairs": PAIRS},
    "SmoothDirectARM1 with pairs": {"pairs": PAIRS},
}


def schema_with(rule, adverse):
    """Rules for missing values, special values and values below the bound; `age` has no direction."""
    late = {"direction": "increasing", "special_values": (-9, -8), "lower_bound": 0}
    rules = {"missing": rule, "special_rules": {"-9": rule}, "below_bound": rule}
    income = {"direction": "decreasing"} | ({"missing": rule} if rule != "not_better" else {})
    job = {"kind": "categorical", "direction": "increasing", "categories": ("a", "b", "c"), "special_values": ("x",)}
    return pr.Schema(
        adverse=adverse,
        features={"late": late | rules, "income": income, "job": job | {"special_rules": {"x": rule}}, "age": {}},
        subscales={"one": ("late", "income", "job"), "two": ("age", "late")},
    )


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    X = pd.DataFrame({"late": rng.integers(0, 7, N).astype(float), "income": rng.normal(30, 8, N)})
    X["job"], X["age"] = rng.choice(["a", "b", "c"], N), rng.normal(40, 10, N)
    score = 0.6 * X["late"] - 0.1 * (X["income"] - 30) + X["job"].map({"a": 0.0, "b": 0.3, "c": 0.6}) - 1.5
    score += 0.5 * (X["late"] > 3) * (X["income"] < 30)
    # Whatever is not measured is far better, or far worse, than what is.
    for name, value, effect in [("late", np.nan, -6), ("late", -9.0, -5), ("late", -8.0, -7), ("late", -3.0, 6)]:
        at = rng.random(N) < 0.08
        X.loc[at, name], score = value, np.where(at, effect, score)
    for name, value, effect in [("income", np.nan, -5), ("job", "x", 5), ("job", None, -5), ("age", np.nan, -4)]:
        at = rng.random(N) < 0.08
        X.loc[at, name], score = value, np.where(at, effect, score)
    return X, (rng.random(N) < 1 / (1 + np.exp(-score))).astype(int)


def contexts(form, n=60):
    """Random combinations of the levels of all features, seen or not."""
    rng = np.random.default_rng(1)
    atoms = atoms_of(form)
    return {name: [one.values[j] for j in rng.integers(len(one.values), size=n)] for name, one in atoms.items()}


def risks_by_level(form, name):
    """(levels, contexts): the risk with the feature at every level that a value can have."""
    atoms, base = atoms_of(form)[name], contexts(form)
    n = len(next(iter(base.values())))
    found = {}
    for level in [*measured_levels(form.schema.features[name], atoms.levels), *outside(form, name)]:
        frame = value_frame({**base, name: [atoms.values[level]] * n})
        if atoms.values[level] is not None or level == atoms.levels.missing:
            found[int(level)] = form.schema.worse * form.risk(frame)
    return found


def outside(form, name):
    return outside_rules(form.schema.features[name], atoms_of(form)[name].levels)


def check_rules(form):
    """Return how many rules were looked at; every one must hold in every context, to the last bit."""
    looked = 0
    for name in form.features:
        found, rules = risks_by_level(form, name), outside(form, name)
        measured = np.array([risk for level, risk in found.items() if level not in rules])
        for level, rule in rules.items():
            if level not in found or rule == "free":
                continue
            looked += 1
            if rule == "not_better":
                assert (found[level] >= measured.min(axis=0)).all(), f"{name} {level}"
            if rule == "worst":
                assert (found[level] == measured.max(axis=0)).all(), f"{name} {level}"
            if rule == "neutral":
                part = next(p for p in form.parts if name in p.shapes)
                assert part.shapes[name].scores[level - len(atoms_of(form)[name].levels)] == 0.0
    return looked


@pytest.mark.parametrize("adverse", ["positive", "negative"])
@pytest.mark.parametrize("rule", ["not_better", "worst", "neutral"])
@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_keep_the_rules(rows, name, rule, adverse):
    X, y = rows
    if adverse == "negative":  # the same directions, about the good outcome
        y = y.max() - y
        X = X.assign(late=X["late"].where(X["late"] < 0, 6 - X["late"]), income=60 - X["income"])
    schema = schema_with(rule, adverse)
    model = pr.make_classifier(name.split()[0], schema, **MODELS[name]).fit(X, y)
    assert check_rules(model.form_) >= 5
    certificate = model.certify()
    assert certificate.valid, str(certificate)
    assert "empty fields and codes" in [check.name for check in certificate.checks]
    if rule == "not_better":
        kept = [one for one in certificate.outside if one.rule == "not_better"]
        assert kept
        assert all(one.below == one.below_risk == 0.0 for one in kept)


@pytest.mark.parametrize("name", ["ARM1", "SmoothARM1", "DirectARM1", "MixARM1"])
@pytest.mark.parametrize("rule", ["not_better", "worst", "neutral"])
def test_features_without_a_direction_keep_rules_too(rows, name, rule):
    X, y = rows
    features = {"late": {"missing": rule, "special_values": (-9, -8), "special_rules": {-9: rule}, "lower_bound": 0}}
    features["job"] = {"kind": "categorical", "missing": rule, "special_values": ("x",), "special_rules": {"x": rule}}
    schema = pr.Schema(features=features)
    model = pr.make_classifier(name, schema).fit(X, y)
    assert check_rules(model.form_) == 4
    assert model.certify().valid


@pytest.mark.parametrize("adverse", ["positive", "negative"])
def test_lines_are_no_better_than_their_mean(rows, adverse):
    X, y = rows
    if adverse == "negative":
        y = 1 - y
    model = pr.NonnegativeLogisticRegression(schema_with("not_better", adverse), ridge=0.001).fit(X, y)
    for name in ("late", "income"):
        shape = model.form_.parts[0].shapes[name]
        assert isinstance(shape, Line)
        for level, rule in outside(model.form_, name).items():
            assert rule == "free" or model.form_.schema.worse * shape.scores[level] >= 0
    assert model.certify().valid
    with pytest.raises(pr.errors.SchemaError, match="enters as a line, which has no worst level"):
        pr.NonnegativeLogisticRegression(schema_with("worst", adverse)).fit(X, y)


def test_without_rules_the_same_rows_beat_every_measured_level(rows):
    """So the tests above can fail."""
    X, y = rows
    form = pr.make_classifier("ARM1", schema_with("not_better", "positive"), rules="free").fit(X, y).form_
    found = risks_by_level(form, "late")
    measured = np.array([risk for level, risk in found.items() if level not in outside(form, "late")])
    assert all((found[level] < measured.min(axis=0)).any() for level in (*list(outside(form, "late"))[:1], max(found)))
    strict = msgspec.structs.replace(form, schema=schema_with("not_better", "positive").with_rules())
    broken = [check.name for check in pr.RiskModel(strict).certify().checks if not check.holds]
    assert broken == ["empty fields and codes"]


# ---- forms of any kind

SCORES = st.sampled_from([-1.0, -0.3, 0.0, 0.1, 0.30000000000000004, 0.9])
LEVELS = {"u": Bins((1.0,), (-9.0,)), "v": Bins((5.0, 6.0))}


@st.composite
def any_form(draw):
    """Two features, with rules or without, in up to three parts with pairs, behind any link and pool."""
    rule = st.sampled_from(["free", "not_better", "worst", "neutral"])
    directions = {name: draw(st.sampled_from(["increasing", "decreasing", "none"])) for name in LEVELS}
    features = {n: {"direction": directions[n], "missing": draw(rule)} for n in LEVELS}
    features["u"] |= {"special_values": (-9,), "special_rules": {"-9": draw(rule)}}
    schema = pr.Schema(features=features, adverse=draw(st.sampled_from(["positive", "negative"])))
    links = st.sampled_from([Logistic(), Linear(), Linear.from_alpha(2.5), Bands((-1.0, 0.0, 2.0), (0.0, 0.3, 1.0))])

    def numbers(n):
        return tuple(draw(st.lists(SCORES, min_size=n, max_size=n)))

    def part(name):
        shapes = {
            n: Table(levels=lv, scores=numbers(len(lv)), weights=(1.0,) * len(lv), positives=(0.0,) * len(lv))
            for n, lv in LEVELS.items()
        }
        pairs = ()
        if draw(st.booleans()):
            levels = (Bins((1.0,), (-9.0,)), Bins((5.0,)))
            table = tuple(numbers(len(levels[1])) for _ in range(len(levels[0])))
            ones = tuple((1.0,) * len(levels[1]) for _ in range(len(levels[0])))
            pairs = (PairTable(features=("u", "v"), levels=levels, scores=table, weights=ones, positives=ones),)
        return Part(name=name, intercept=draw(SCORES), shapes=shapes, link=draw(links), pairs=pairs)

    n_parts = draw(st.integers(1, 3))
    pool = Alone()
    if n_parts > 1:
        layer = Layer(intercept=0.1, weights=(0.5, 0.25, 2.0)[:n_parts], link=draw(links))
        pool = draw(st.sampled_from([layer, Mixture(((0.5, 0.5), (0.25, 0.25, 0.5))[n_parts - 2])]))
    parts = tuple(part(f"p{k}") for k in range(n_parts))
    return RiskForm(schema=schema, columns=tuple(LEVELS), classes=(0, 1), parts=parts, pool=pool)


@settings(max_examples=150)
@given(any_form())
def test_the_certificate_is_right_about_any_form(form):
    """Bounds hold for all combinations of levels, and a rule that is said to hold does."""
    certificate = pr.RiskModel(form).certify()
    checked = {check.name: check.holds for check in certificate.checks}
    atoms, worse = atoms_of(form), form.schema.worse
    for one in certificate.outside:
        other = next(name for name in LEVELS if name != one.feature)
        own = atoms[one.feature]
        level = own.levels.labels.index(one.level)
        measured = measured_levels(form.schema.features[one.feature], own.levels)
        grid = list(itertools.product([level, *measured], range(len(atoms[other].values))))
        values = {one.feature: [own.values[j] for j, _ in grid], other: [atoms[other].values[k] for _, k in grid]}
        risk = worse * form.risk(value_frame(values)).reshape(1 + len(measured), -1)
        assert (risk[1:].min(axis=0) - risk[0]).max() <= one.below_risk + 1e-12
        assert (risk[1:].max(axis=0) - risk[0]).max() <= one.lowers_risk + 1e-12
        if checked.get("empty fields and codes") and len(form.parts) == 1:
            slack = 1e-12 if form.parts[0].pairs else 0.0  # sums with pairs are rounded
            if one.rule == "not_better":
                assert (risk[0] >= risk[1:].min(axis=0) - slack).all()
            if one.rule == "worst":
                assert (risk[0] >= risk[1:].max(axis=0) - slack).all()
