from __future__ import annotations

import dataclasses
import itertools
import sys

import msgspec
import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import ModelFileError
from plainrisk.explain import certify, explain, recheck
from plainrisk.form import (
    Alone,
    Bins,
    Curve,
    Layer,
    Linear,
    Logistic,
    Mixture,
    Part,
    RiskForm,
    Table,
    form_hash,
    read_model,
    write_model,
)

FEATURES = {
    "up": {"direction": "increasing", "special_values": (-9,)},
    "down": {"direction": "decreasing"},
    "free": {},
    "grade": {"kind": "categorical", "direction": "increasing", "categories": ("A", "B", "C")},
}
SCHEMA = pr.Schema(features=FEATURES, subscales={"one": ("up", "down"), "two": ("free", "grade", "up")})


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    n = 800
    X = pd.DataFrame({
        "up": np.where(rng.random(n) < 0.1, -9.0, rng.normal(size=n).round(1)),
        "down": rng.normal(size=n).round(1),
        "free": rng.normal(size=n).round(1),
        "grade": rng.choice(["A", "B", "C"], n),
    })  # fmt: skip
    score = np.where(X["up"] == -9, 0, X["up"]) - X["down"] + (X["grade"] == "C") + 2.5 * rng.normal(size=n)
    return X, (score > 0.5).astype(int)


MODELS = {
    "ARM1": pr.AdditiveRiskModel(SCHEMA),
    "direct ARM1": pr.AdditiveRiskModel(SCHEMA, link="linear", ridge=0.01),
    "NNLR": pr.NonnegativeLogisticRegression(SCHEMA),
    "ARM2": pr.TwoLayerRiskModel(schema=SCHEMA),
    "direct ARM2": pr.TwoLayerRiskModel(schema=SCHEMA, link="linear", ridge=0.01),
}


@pytest.fixture(scope="module", params=MODELS, ids=str)
def form(request, data):
    return MODELS[request.param].fit(*data).form_


def broken(certificate):
    return [check.name for check in certificate.checks if not check.holds]


def test_fitted_models_are_certified_in_every_feature_with_a_direction(form):
    certificate = pr.RiskModel(form).certify()
    assert certificate.valid
    names = [check.name for check in certificate.checks]
    assert [n for n in names if n.startswith("monotone")] == [
        "monotone in up",
        "monotone in down",
        "monotone in grade",
    ]
    assert "BROKEN" not in str(certificate)
    assert certificate.to_dict()["valid"] is True


def tampered_shape(form, feature, change):
    """The same form with one shape replaced in every part that has it."""
    parts = []
    for part in form.parts:
        shapes = dict(part.shapes)
        if feature in shapes:
            shapes[feature] = change(shapes[feature])
        parts.append(msgspec.structs.replace(part, shapes=shapes))
    return msgspec.structs.replace(form, parts=tuple(parts))


def least_step_back(shape):
    """Move one ordered score back past its neighbor by one unit in the last place."""
    if not isinstance(shape, Table):
        return msgspec.structs.replace(shape, slope=-5e-324 if shape.slope > 0 else 5e-324)
    scores = list(shape.scores)
    toward = -np.inf if scores[0] <= scores[1] and scores[0] <= scores[shape.levels.n_ordered - 1] else np.inf
    scores[1] = float(np.nextafter(scores[0], toward))
    return msgspec.structs.replace(shape, scores=tuple(scores))


@pytest.mark.parametrize("feature", ["up", "down", "grade"])
def test_one_score_wrong_by_one_unit_in_the_last_place_is_refused(form, feature):
    certificate = pr.RiskModel(tampered_shape(form, feature, least_step_back)).certify()
    assert broken(certificate) == [f"monotone in {feature}"]
    assert not certificate.valid
    assert "BROKEN" in str(certificate)
    assert f"monotone in {feature}" in str(certificate)


def swap_first_step(shape):
    scores = np.array(shape.scores)
    ordered = scores[: shape.levels.n_ordered]
    j = int(np.argmax(np.abs(np.diff(ordered))))
    ordered[[j, j + 1]] = ordered[[j + 1, j]]
    return msgspec.structs.replace(shape, scores=tuple(scores.tolist()))


def test_two_swapped_scores_are_refused(data):
    form = MODELS["ARM1"].fit(*data).form_
    for feature in ("up", "down", "grade"):
        certificate = pr.RiskModel(tampered_shape(form, feature, swap_first_step)).certify()
        assert broken(certificate) == [f"monotone in {feature}"]
    # Without a direction any order is allowed.
    assert pr.RiskModel(tampered_shape(form, "free", swap_first_step)).certify().valid


def test_levels_outside_the_order_are_free(data):
    form = MODELS["ARM1"].fit(*data).form_

    def special_far_up(shape):
        scores = list(shape.scores)
        scores[shape.levels.n_ordered] = 99.0
        return msgspec.structs.replace(shape, scores=tuple(scores))

    assert pr.RiskModel(tampered_shape(form, "up", special_far_up)).certify().valid


@pytest.mark.parametrize("name", ["ARM2", "direct ARM2"])
def test_a_negative_weight_is_refused(data, name):
    form = MODELS[name].fit(*data).form_
    pool = msgspec.structs.replace(form.pool)
    msgspec.structs.force_setattr(pool, "weights", (-1e-12, *pool.weights[1:]))
    certificate = pr.RiskModel(msgspec.structs.replace(form, pool=pool)).certify()
    said = ["monotone in up", "monotone in down", "empty fields and codes", "subscale weights not negative"]
    assert broken(certificate) == said


def test_weights_of_a_mixture_that_are_no_distribution_are_refused(data):
    form = MODELS["ARM2"].fit(*data).form_
    mixed = msgspec.structs.replace(form, pool=Mixture((0.25, 0.75)))
    assert pr.RiskModel(mixed).certify().valid
    for weights in [(-0.25, 1.25), (0.5, 0.6), (0.25, 0.7499)]:
        pool = Mixture((0.25, 0.75))
        msgspec.structs.force_setattr(pool, "weights", weights)
        certificate = pr.RiskModel(msgspec.structs.replace(form, pool=pool)).certify()
        assert "weights are a distribution" in broken(certificate)


def test_a_link_that_leaves_the_unit_interval_is_refused(data):
    form = MODELS["direct ARM1"].fit(*data).form_
    link = Linear()
    msgspec.structs.force_setattr(link, "high", 1.25)
    part = msgspec.structs.replace(form.parts[0], link=link)
    certificate = pr.RiskModel(msgspec.structs.replace(form, parts=(part,))).certify()
    assert broken(certificate) == ["risk inside [0, 1]"]


def test_the_certificate_says_in_which_unit_contributions_add_up(data):
    details = {name: MODELS[name].fit(*data).certify().checks[-1].detail for name in MODELS}
    assert "points of the probability, exact on a straight link" in details["direct ARM1"]
    assert "points of the probability, exact on a straight link" in details["direct ARM2"]
    assert "by the mean slope of a curved link" in details["ARM1"]
    assert "by the mean slopes of curved links" in details["ARM2"]


def test_notes_name_thin_and_empty_levels():
    schema = pr.Schema(features={"u": {"edges": (0.0, 1.0, 2.0)}})
    X = {"u": [-1.0] * 50 + [1.5] * 50 + [9.0] * 3}
    model = pr.AdditiveRiskModel(schema).fit(X, [0, 1] * 51 + [1])
    notes = model.certify().notes
    assert notes == (
        "u: levels with fewer than 30 training rows: 'x > 2' (3)",
        "u: levels without training rows: '0 < x <= 1'",
    )


# ---- curves


def curve_form(breaks, coefficients, direction):
    n = len(coefficients[0])
    curve = Curve(
        breaks=breaks,
        coefficients=tuple(c + (0.0,) * (n - len(c)) for c in coefficients),
        levels=Bins(),
        scores=(0.0, 0.0),
        weights=(9.0, 0.0),
        positives=(1.0, 0.0),
    )
    return RiskForm(
        schema=pr.Schema(features={"u": {"direction": direction}}),
        columns=("u",),
        classes=(0, 1),
        parts=(Part(name="all", intercept=0.0, shapes={"u": curve}, link=Logistic()),),
        pool=Alone(),
    )


CURVES = {
    "a line": ((0.0, 1.0), ((0.0, 1.0),), True),
    "a cube": ((-1.0, 0.0, 1.0), ((-1.0, 3.0, -3.0, 1.0), (0.0, 0.0, 0.0, 1.0)), True),
    "a bend inside": ((0.0, 1.0), ((0.0, 1.0, -2.0, 1.2),), False),
    "falls beyond the last break": ((0.0, 1.0), ((0.0, 1.0, -0.25),), False),
    "falls before the first break": ((0.0, 1.0), ((0.0, 1.0, 0.25),), False),
    "jumps down between pieces": ((0.0, 1.0, 2.0), ((0.0, 1.0), (0.5, 1.0)), False),
    "jumps up between pieces": ((0.0, 1.0, 2.0), ((0.0, 1.0), (1.5, 1.0)), True),
}


@pytest.mark.parametrize(("breaks", "coefficients", "holds"), CURVES.values(), ids=CURVES.keys())
@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
def test_curves_are_certified_if_and_only_if_they_rise(breaks, coefficients, holds, direction):
    sign = 1.0 if direction == "increasing" else -1.0
    signed = tuple(tuple(sign * c for c in piece) for piece in coefficients)
    form = curve_form(breaks, signed, direction)
    x = np.linspace(-30.0, 30.0, 20_001)
    steps = sign * np.diff(form.parts[0].shapes["u"].at(x))
    assert (steps >= -1e-9).all() == holds, "the case is not what it says"
    assert pr.RiskModel(form).certify().valid == holds


def test_layer_of_fitted_forms_has_a_layer(data):
    assert isinstance(MODELS["ARM2"].fit(*data).form_.pool, Layer)


# ---- against brute force, on forms small enough to try every combination of levels


def directed(make_form, seed, ordered):
    """A random form whose schema states directions, with ordered shapes or as they come."""
    known = {"age": "decreasing", "debt": "increasing", "rent": "increasing"}
    form = make_form(seed, features={name: {"direction": d} for name, d in known.items()})
    if not ordered:
        return form
    parts = []
    for part in form.parts:
        shapes = dict(part.shapes)
        for name in set(shapes) & set(known):
            n = shapes[name].levels.n_ordered
            inside = sorted(shapes[name].scores[:n], reverse=known[name] == "decreasing")
            shapes[name] = msgspec.structs.replace(shapes[name], scores=(*inside, *shapes[name].scores[n:]))
        parts.append(msgspec.structs.replace(part, shapes=shapes))
    return msgspec.structs.replace(form, parts=tuple(parts))


def brute_force(form, every_row, name, sign):
    """Whether the risk obeys the direction over the measured levels of a feature, whatever the others are."""
    risk = form.risk(every_row)
    measured = {"age": [25.0, 35.0, 45.0], "debt": [0.0, 1.0, 2.0, 3.0], "rent": [5.0, 15.0]}[name]
    others = [n for n in every_row if n != name]
    key = [tuple(str(every_row[n][i]) for n in others) for i in range(len(risk))]
    by_level = [dict(zip((k for k, v in zip(key, every_row[name], strict=True) if v == x), risk[every_row[name] == x], strict=True)) for x in measured]  # fmt: skip  # noqa: E501
    return all(sign * (after[k] - before[k]) >= 0 for before, after in itertools.pairwise(by_level) for k in before)


@pytest.mark.parametrize("ordered", [True, False])
def test_certificates_agree_with_brute_force_over_all_levels(make_form, every_row, ordered):
    refused = 0
    for seed in range(60):
        form = directed(make_form, seed, ordered)
        checks = {c.name: c.holds for c in pr.RiskModel(form).certify().checks}
        strict = all(isinstance(link, Logistic) for link in form.links)
        for name, feature in form.schema.features.items():
            used = any(name in p.features for p in form.parts)
            if feature.sign == 0 or not used:
                continue
            holds = brute_force(form, every_row, name, feature.sign)
            said = checks[f"monotone in {name}"]
            assert holds or not said  # what is certified is so
            if strict:
                assert said == holds  # and what is so is certified, unless a link hides it by clipping
            refused += not said
        assert checks["contributions add up"]
        assert checks["risk inside [0, 1]"]
        risk = form.risk(every_row)
        assert risk.min() >= 0
        assert risk.max() <= 1
    assert (refused == 0) == ordered


def test_sums_that_do_not_add_up_are_refused(make_form, monkeypatch):
    form = make_form(1)
    assert certify(form).valid

    def wrong(form, X, **options):
        found = explain(form, X, **options)
        return dataclasses.replace(found, constant=found.constant + 1e-6)

    monkeypatch.setattr(sys.modules[certify.__module__], "explain", wrong)
    assert broken(certify(form)) == ["contributions add up"]


# ---- in the model file


def test_the_certificate_stands_in_the_file_with_the_hash_of_the_form(data, tmp_path):
    model = MODELS["ARM1"].fit(*data)
    model.save(tmp_path / "m.json")
    content = read_model(tmp_path / "m.json")
    assert content.certificate == model.certify()
    assert content.certificate.form_sha256 == content.form_sha256 == form_hash(model.form_)
    found = recheck(content)
    assert found.valid
    assert found.differences == ()


def edited(path, *edits):
    text = path.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


def test_a_single_tampered_coefficient_is_refused(data, tmp_path):
    """In the file; with the form's hash put right; and with the certificate's hash put right too."""
    model = MODELS["ARM1"].fit(*data)
    path = tmp_path / "m.json"
    scores = model.form_.parts[0].shapes["up"].scores
    old, new = repr(scores[1]), repr(scores[0] - 1e-9)  # the second bin below the first, in a feature that must rise
    model.save(path)
    with pytest.raises(ModelFileError, match="the form does not match its hash"):
        read_model(edited(path, (old, new)))
    table = msgspec.structs.replace(
        model.form_.parts[0].shapes["up"], scores=(scores[0], scores[0] - 1e-9, *scores[2:])
    )
    part = msgspec.structs.replace(model.form_.parts[0], shapes={**model.form_.parts[0].shapes, "up": table})
    tampered = msgspec.structs.replace(model.form_, parts=(part,))
    write_model(path, tampered, model.fit_record_, model.certify())
    with pytest.raises(ModelFileError, match="a certificate of another form"):
        read_model(path)
    forged = msgspec.structs.replace(model.certify(), form_sha256=form_hash(tampered))
    write_model(path, tampered, model.fit_record_, forged)
    found = recheck(read_model(path))
    assert not found.valid
    assert found.differences == ("monotone in up: stored it holds, checked now it is broken",)


@pytest.mark.filterwarnings("ignore:The model reads protected features")
def test_protected_features_are_never_a_reason_and_never_changed(rng):
    X = pd.DataFrame({"age": rng.normal(size=300), "debt": rng.normal(size=300)})
    schema = pr.Schema(features={"age": {"protected": True}, "debt": {}})
    found = pr.AdditiveRiskModel(schema).fit(X, X["debt"] + rng.normal(size=300) > 0).certify()
    (check,) = (check for check in found.checks if check.name == "protected features")
    assert check.holds
    assert check.detail == "age: never a reason, never changed; the model reads age"


def test_notes_that_differ_are_told_unless_other_levels_are_asked_for(data, tmp_path):
    model = MODELS["ARM1"].fit(*data)
    replace, own = msgspec.structs.replace, model.certify()
    for stored, differences in (
        (replace(own, notes=(*own.notes, "all is well")), ("the notes on levels differ",)),
        (replace(own, notes=(), thin=1.0), ()),
    ):
        write_model(tmp_path / "m.json", model.form_, model.fit_record_, stored)
        assert recheck(read_model(tmp_path / "m.json"), thin=own.thin).differences == differences


def test_a_file_without_certificate_is_certified_all_the_same(data, tmp_path):
    write_model(tmp_path / "m.json", MODELS["ARM1"].fit(*data).form_)
    found = recheck(read_model(tmp_path / "m.json"))
    assert found.stored is None
    assert found.valid
    assert recheck(read_model(tmp_path / "m.json"), thin=1e9).fresh.thin == 1e9


def test_any_coefficient_moved_by_a_bit_changes_the_hash(data):
    form = MODELS["direct ARM2"].fit(*data).form_
    first = form_hash(form)
    for k, part in enumerate(form.parts):
        for name, shape in part.shapes.items():
            for j in range(len(shape.scores)):
                scores = list(shape.scores)
                scores[j] = float(np.nextafter(scores[j], 9.0))
                moved = msgspec.structs.replace(shape, scores=tuple(scores))
                other = msgspec.structs.replace(part, shapes={**part.shapes, name: moved})
                parts = tuple(other if i == k else p for i, p in enumerate(form.parts))
                assert form_hash(msgspec.structs.replace(form, parts=parts)) != first
