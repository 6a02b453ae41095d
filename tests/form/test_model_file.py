from __future__ import annotations

import contextlib
import json
import pickle
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.errors import DataError, ModelFileError
from plainrisk.explain import certify
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Categories,
    Curve,
    FitRecord,
    Layer,
    Line,
    Linear,
    Logistic,
    Part,
    RiskForm,
    Table,
    form_hash,
    read_model,
    write_model,
)
from plainrisk.form.file import OutsideLevel

NOTE = 'a remark, with ümlauts, "quotes" and \\ and 日本'
AWKWARD = (0.1 + 0.2, 1 / 3, 5e-324, -2.2250738585072014e-308, 1e-17, -0.0, 9.8e99, 123456789.123456789)


def make_form(scores=(0.1, -0.2, 0.3, 0.0)):
    schema = pr.Schema(
        target="bad",
        positive="yes",
        features={
            "age": {"direction": "decreasing", "special_values": (-9,), "lower_bound": 0, "note": NOTE},
            "job": {"kind": "categorical", "categories": ("a", "b"), "unseen": "error", "reason": "Job"},
            "debt": {"direction": "increasing", "edges": (0.5,)},
        },
        subscales={"person": ("age", "job"), "money": ("debt",)},
    )
    age = Bins(edges=(30.5,), special_values=(-9.0,), lower_bound=0.0)
    count = {"weights": (1.0, 2.0, 3.0, 4.0), "positives": (0.0, 1.0, 1.5, 2.0)}
    two = {"weights": (5.0, 0.0), "positives": (2.0, 0.0), "scores": (0.0, 0.1)}
    curve = Curve(breaks=(0.0, 1.0, 2.0), coefficients=((0.0, 1.0), (1.0, 0.5)), levels=Bins(), **two)
    parts = (
        Part(
            name="person",
            intercept=1 / 3,
            link=Logistic(),
            shapes={
                "age": Table(levels=age, scores=(0.1, 0.0, 0.2, 0.3, 0.4), weights=(1.0,) * 5, positives=(0.5,) * 5),
                "job": Table(levels=Categories(("a", "b"), 2), scores=scores, **count),
            },
        ),
        Part(
            name="money",
            intercept=0.0,
            link=Bands((-1.0, 0.0, 1.0), (0.1, 0.5, 0.9)),
            shapes={"debt": curve},
        ),
        Part(
            name="line",
            intercept=-0.5,
            link=Linear.from_alpha(2.6),
            shapes={"debt": Line(slope=1e-3, center=12.5, levels=Bins(), **two)},
        ),
    )
    return RiskForm(
        schema=schema,
        columns=("age", "job", "debt"),
        classes=("no", "yes"),
        parts=parts,
        pool=Layer(-1.5, (1.0, 2.0, 0.25), Logistic()),
    )


RECORD = FitRecord(
    estimator="TwoLayerRiskModel",
    parameters={"ridge": "'auto'"},
    rows=10,
    weight=10.0,
    positive_weight=4.5,
    base_rate=1 / 3,
    objective=(0.6,),
    kkt=(1e-17,),
    iterations=(5,),
)


@pytest.fixture
def path(tmp_path):
    write_model(tmp_path / "model.json", make_form(), RECORD)
    return tmp_path / "model.json"


def damaged(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFileError, match=r"model\.json") as caught:
        read_model(path)
    assert caught.value.__cause__ is None, "the user sees one error, not a chain"
    return str(caught.value)


# ---- round trips


def test_everything_comes_back(path):
    content = read_model(path)
    assert content.form == make_form()
    assert content.fit == RECORD
    assert content.plainrisk == pr.__version__


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(st.floats(-1e100, 1e100), min_size=4, max_size=4))
def test_floats_come_back_to_the_last_bit(tmp_path, numbers):
    write_model(tmp_path / "m.json", make_form(tuple(numbers)))
    back = read_model(tmp_path / "m.json").form.parts[0].shapes["job"].scores
    assert np.array(back).tobytes() == np.array(numbers, dtype=np.float64).tobytes()


def test_awkward_floats_come_back_to_the_last_bit(tmp_path):
    for k in range(len(AWKWARD) - 3):
        write_model(tmp_path / "m.json", make_form(AWKWARD[k : k + 4]))
        back = read_model(tmp_path / "m.json").form.parts[0].shapes["job"].scores
        assert np.array(back).tobytes() == np.array(AWKWARD[k : k + 4]).tobytes()


def test_the_same_form_gives_the_same_bytes_and_hash(path, tmp_path):
    write_model(tmp_path / "again.json", read_model(path).form, RECORD)
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    # Whole numbers given as such are the floats they stand for.
    assert form_hash(make_form((1, 0, 2, 0))) == form_hash(make_form((1.0, 0.0, 2.0, 0.0)))
    assert form_hash(make_form((1.0, 0.0, 2.0, 0.0))) != form_hash(make_form((1.0, 0.0, 2.0, 5e-324)))


@pytest.mark.parametrize(
    "labels",
    [("good", "bad"), (0, 1), (False, True), (1, 2), (0.0, 1.0), ("0", "1"), ("ja", "né")],
    ids=repr,
)
@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_a_loaded_model_is_the_fitted_one(labels, link, tmp_path, rng):
    X = pd.DataFrame({"u": rng.normal(size=80), "v": rng.choice(["a", "b"], 80)})
    y = np.array(labels)[(X["u"] + rng.normal(size=80) > 0).astype(int)]
    schema = pr.Schema(features={"u": {}, "v": {"kind": "categorical"}}, positive=labels[1])
    model = pr.AdditiveRiskModel(schema, link=link, ridge=0.01).fit(X, y)
    model.save(tmp_path / "m.json")
    loaded = pr.load(tmp_path / "m.json")
    assert loaded.form_ == model.form_
    assert loaded.classes_.tolist() == model.classes_.tolist() == sorted(labels)
    assert loaded.positive_ == model.positive_ == labels[1]
    assert {type(c) for c in loaded.classes_.tolist()} == {type(c) for c in labels}
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.explain(X).contributions, model.explain(X).contributions)
    assert str(loaded.certify()) == str(model.certify())
    assert "2 features" in repr(loaded)


def test_the_file_is_readable_json_and_says_what_it_is(path):
    plain = json.loads(path.read_text(encoding="utf-8"))
    assert plain["format"] == 3
    assert plain["form"]["schema"]["features"]["age"]["note"] == NOTE
    assert plain["form"]["pool"]["kind"] == "layer"


# ---- damage


def test_a_file_cut_off_anywhere_is_damaged(path):
    raw = path.read_bytes()
    for end in range(1, len(raw) - 2, 50):
        assert "damaged" in damaged(path, raw[:end])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_bit_is_found_or_leaves_form_and_record_alone(path, data):
    raw = bytearray(path.with_name("model.json").read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    flipped = path.with_name("flipped.json")
    flipped.write_bytes(raw)
    with contextlib.suppress(ModelFileError):
        content = read_model(flipped)
        assert (content.form, content.fit) == (make_form(), RECORD)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(junk=st.binary(max_size=60))
def test_junk_is_refused(path, junk):
    damaged(path.with_name("junk-model.json"), junk)


def test_any_change_of_the_form_is_found(path):
    text = path.read_text(encoding="utf-8")
    for old, new in [
        ("a remark", "b remark"),
        ("0.3333333333333333", "0.3333333333333334"),
        ('"Job"', '"job"'),
        ('"no"', '"No"'),
        ("30.5", "30.25"),
    ]:
        assert text.count(old) >= 1
        assert "was changed" in damaged(path, text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"positive_weight": 4.5', '"positive_weight": 1.5'),
        ('"base_rate": 0.3333333333333333', '"base_rate": 0.5'),
        ('"rows": 10', '"rows": 1000000000000000000000000'),
        ("'auto'", "'none'"),
        ('"thin": 30.0', '"thin": 0.0'),
        ('"holds": true', '"holds": false'),
        ('"detail": "', '"detail": "surely '),
        (f'"plainrisk": "{pr.__version__}"', '"plainrisk": "0.0.1"'),
        ('"sha256": "', '"sha256": "0'),
    ],
)
def test_any_change_of_the_rest_is_found(path, old, new):
    write_model(path, make_form(), RECORD, certify(make_form()))
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    assert "was changed" in damaged(path, text.replace(old, new, 1))


def test_white_space_is_no_change(path):
    plain = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(plain, indent=7, ensure_ascii=True).replace("\n", "\r\n"), encoding="utf-8-sig")
    assert read_model(path).fit == RECORD


# ---- format 1, whose hash covers the form alone


@pytest.fixture
def old_path(path):
    """The same model as a file of format 1."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    del plain["sha256"]
    path.write_text(json.dumps({**plain, "format": 1}), encoding="utf-8")
    return path


def test_format_1_is_read_and_written_as_format_3(old_path):
    content = read_model(old_path)
    assert (content.form, content.fit, content.protected) == (make_form(), RECORD, False)
    pr.load(old_path).save(old_path)
    assert read_model(old_path).protected


def test_the_base_rate_of_format_1_is_used_with_a_warning(old_path, tmp_path):
    with pytest.warns(pr.errors.PlainriskWarning, match=r"model\.json is a model file of format 1") as said:
        old = pr.load(old_path).at_base_rate(0.1)
    assert len(said) == 1
    write_model(tmp_path / "new.json", make_form(), RECORD)
    assert pr.load(tmp_path / "new.json").at_base_rate(0.1).form_ == old.form_


# ---- hostile and foreign files


def with_literal(path, where, literal):
    plain = json.loads(path.read_text(encoding="utf-8"))
    place = plain
    for key in where[:-1]:
        place = place[key]
    assert where[-1] in place or isinstance(place, list)
    place[where[-1]] = "@here@"
    return json.dumps(plain).replace('"@here@"', literal)


PLACES = {
    "intercept": ("form", "parts", 0, "intercept"),
    "score": ("form", "parts", 0, "shapes", "age", "scores", 0),
    "edge": ("form", "parts", 0, "shapes", "age", "levels", "edges", 0),
    "slope": ("form", "parts", 2, "shapes", "debt", "slope"),
    "link": ("form", "parts", 2, "link", "slope"),
    "knot": ("form", "parts", 1, "link", "knots", 0),
    "pool": ("form", "pool", "weights", 0),
    "schema": ("form", "schema", "features", "age", "lower_bound"),
    "record": ("fit", "weight"),
}


NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "0x1f", "1_0"]


@pytest.mark.parametrize("literal", NO_NUMBERS, ids=lambda text: text[:9])
@pytest.mark.parametrize("place", PLACES)
def test_numbers_that_are_none_are_refused(path, place, literal):
    damaged(path, with_literal(path, PLACES[place], literal))


@pytest.mark.parametrize("literal", ["null", "true", '"0.5"', "[]", "{}", '"\\ud800"'])
@pytest.mark.parametrize("place", ["intercept", "score", "slope", "pool", "record"])
def test_wrong_types_are_refused(path, place, literal):
    damaged(path, with_literal(path, PLACES[place], literal))


def test_unknown_fields_are_refused_wherever_they_stand(path):
    for where in [(), ("form",), ("form", "parts", 0), ("form", "pool"), ("form", "schema"), ("fit",)]:
        plain = json.loads(path.read_text(encoding="utf-8"))
        place = plain
        for key in where:
            place = place[key]
        place["__reduce__"] = "os.system"
        assert "unknown field `__reduce__`" in damaged(path.with_name("x-model.json"), json.dumps(plain))


def test_missing_fields_are_named(path):
    plain = json.loads(path.read_text(encoding="utf-8"))
    del plain["form"]["pool"]
    assert "missing required field `pool`" in damaged(path, json.dumps(plain))


def test_a_newer_file_says_what_to_do(path):
    plain = json.loads(path.read_text(encoding="utf-8"))
    newer = {**plain, "format": 4, "plainrisk": "99.0", "form": {"of": "the future"}}
    message = damaged(path, json.dumps(newer))
    assert "format 4, written by plainrisk 99.0; this version reads up to 3. Upgrade plainrisk" in message
    assert "no version" in damaged(path, json.dumps({**plain, "format": 0}))


@pytest.mark.parametrize("depth", [200, 5000, 500_000])
def test_deep_nesting_is_refused(path, depth):
    raw = path.read_text(encoding="utf-8")
    damaged(path, "[" * depth)
    damaged(path, '{"a":' * depth)
    damaged(path, '{"format":1,"plainrisk":"x","x":' + "[" * depth + "]" * depth + "}")
    damaged(path, raw.replace('"parts": [', '"parts": ' + "[" * depth, 1))


def test_files_of_another_kind_are_refused(path):
    for content in [b"", b"\n", b"null", b"[]", b"{}", b'"model"', b"\x00" * 64, b"PK\x03\x04", b"a,b\n1,2"]:
        damaged(path, content)
    damaged(path, pickle.dumps({"format": 1}))
    assert "UTF-8" in damaged(path, json.dumps({"format": 1}).encode("utf-16"))
    assert "UTF-8" in damaged(path, b'{"format": 1, "plainrisk": "\xff"}')


def test_a_file_that_is_not_there_or_no_file(tmp_path):
    with pytest.raises(ModelFileError, match=r"gone\.json does not exist"):
        pr.load(tmp_path / "gone.json")
    with pytest.raises(ModelFileError, match="is a folder"):
        pr.load(tmp_path)


def test_a_huge_file_is_not_even_read(path, monkeypatch):
    size = path.stat().st_size
    monkeypatch.setattr("plainrisk.form.file.SIZE_LIMIT", size)
    read_model(path)
    monkeypatch.setattr("plainrisk.form.file.SIZE_LIMIT", size - 1)
    with pytest.raises(ModelFileError, match=f"too large: at most {size - 1:,} bytes"):
        read_model(path)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (("form", "parts", 0, "shapes", "age", "scores"), [0.0], "5 levels has 1 scores"),
        (("form", "parts", 0, "shapes", "age", "levels", "edges"), [2.0, 1.0], "strictly increasing"),
        (("form", "pool", "weights"), [1.0], "3 parts do not fit a pool of 1"),
        (("form", "pool", "weights"), [], "3 parts do not fit a pool of 0"),
        (("form", "parts", 2, "link", "slope"), -1.0, "must rise"),
        (("form", "parts", 1, "name"), "person", "the same name"),
        (("form", "schema", "subscales", "person"), ["nobody"], "'nobody'"),
        (("form", "schema", "features", "age", "direction"), "upward", "direction|Invalid enum"),
        (("form", "classes"), ["a"], "length 2|array"),
        (("form", "parts", 0, "kind"), "exec", "Invalid value 'exec'|kind"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(path, where, value, message):
    path.write_text(with_literal(path, where, json.dumps(value)), encoding="utf-8")
    with pytest.raises(ModelFileError, match=message):
        read_model(path)


def test_a_form_without_a_record_can_be_kept(tmp_path):
    write_model(tmp_path / "m.json", make_form())
    loaded = pr.load(tmp_path / "m.json")
    assert loaded.fit_record_ is None
    with pytest.raises(pr.errors.PlainriskError, match="does not say at which base rate"):
        loaded.at_base_rate(0.1)
    nonsense = msgspec.structs.replace(RECORD, weight=0.0)
    with pytest.raises(pr.errors.PlainriskError, match="does not say at which base rate"):
        pr.RiskModel(make_form(), nonsense).at_base_rate(0.1)


def test_alone_is_kept_too(tmp_path):
    form = make_form()
    one = msgspec.structs.replace(form, parts=form.parts[:1], pool=Alone())
    write_model(tmp_path / "m.json", one)
    assert read_model(tmp_path / "m.json").form == one


# ---- a cut-off, and texts about the model


def test_a_cutoff_and_texts_are_kept_under_the_hash(tmp_path):
    model = pr.RiskModel(make_form(), RECORD)
    model.save(tmp_path / "plain.json")
    model.save(tmp_path / "kept.json", cutoff=0.0, about={"owner": "Retail", "purpose": "cards"})
    loaded = pr.load(tmp_path / "kept.json")
    assert (loaded.cutoff, loaded.about) == (0.0, {"owner": "Retail", "purpose": "cards"})
    loaded.save(tmp_path / "changed.json", cutoff=0.25, about={"owner": "Risk"})
    changed = pr.load(tmp_path / "changed.json")
    assert (changed.cutoff, changed.about) == (0.25, {"owner": "Risk", "purpose": "cards"})
    changed.about = {}
    changed.annotate({"policy": {"cutoff": None}}).save(tmp_path / "cleared.json")
    assert (tmp_path / "cleared.json").read_bytes() == (tmp_path / "plain.json").read_bytes()
    text = (tmp_path / "changed.json").read_text(encoding="utf-8")
    (tmp_path / "forged.json").write_text(text.replace('"cutoff": 0.25', '"cutoff": 0.75'), encoding="utf-8")
    with pytest.raises(ModelFileError, match="the form does not match its hash"):
        pr.load(tmp_path / "forged.json")


def test_a_model_without_them_has_none(tmp_path):
    pr.RiskModel(make_form(), RECORD).save(tmp_path / "m.json")
    assert "cutoff" not in (tmp_path / "m.json").read_text(encoding="utf-8")
    loaded = pr.load(tmp_path / "m.json")
    assert (loaded.cutoff, loaded.about) == (None, {})
    assert loaded.at_base_rate(0.1).cutoff is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cutoff": 1.5}, "cutoff must be None or a probability"),
        ({"cutoff": "0.2"}, "cutoff must be None or a probability"),
        ({"about": {"owner": 1}}, "about must be a dict of texts by name"),
        ({"about": "owner"}, "about must be a dict of texts by name"),
    ],
)
def test_cutoffs_and_texts_are_checked_before_anything_is_written(tmp_path, given, message):
    with pytest.raises(DataError, match=message):
        pr.RiskModel(make_form(), RECORD).save(tmp_path / "m.json", **given)
    if "about" in given:
        with pytest.raises(DataError, match=message):
            pr.RiskModel(make_form(), RECORD, **given)
    assert not list(tmp_path.iterdir())


def test_format_1_holds_no_cutoff(tmp_path):
    old = json.loads((Path(__file__).parents[1] / "golden" / "ARM1.model.json").read_text(encoding="utf-8"))
    assert old["format"] == 1
    (tmp_path / "m.json").write_text(json.dumps({**old, "cutoff": 0.2}), encoding="utf-8")
    with pytest.raises(ModelFileError, match="format 1, whose hash covers no cut-off"):
        pr.load(tmp_path / "m.json")


def test_format_2_held_its_cutoff_beside_the_form(tmp_path):
    """It is read into the policy; a file of format 3 has it there alone."""
    old = json.loads((Path(__file__).parents[1] / "golden" / "ARM1.format2.model.json").read_text(encoding="utf-8"))
    assert old["format"] == 2
    path = tmp_path / "m.json"
    path.write_text(json.dumps(old), encoding="utf-8")
    content = read_model(path)
    assert content.certificate.form_sha256 == content.form_sha256 == form_hash(content.form)
    pr.load(path).save(path, cutoff=0.25)
    new = json.loads(path.read_text(encoding="utf-8"))
    assert (new["format"], new["form"]["schema"]["policy"]) == (3, {"cutoff": 0.25})
    assert "cutoff" not in new
    path.write_text(json.dumps({**new, "cutoff": 0.2}), encoding="utf-8")
    with pytest.raises(ModelFileError, match="cutoff"):
        pr.load(path)


def test_what_the_lender_decided_is_kept_under_the_hash(tmp_path):
    model = pr.RiskModel(make_form(), RECORD).annotate(
        {
            "outcome": {"positive": "does not repay"},
            "policy": {"cutoff": 0.25, "reasons": 2, "letter": {"approved": "Ja."}, "drift": {"large": 0.3}},
            "features": {"age": {"label": "Age", "unit": "years", "protected": True}},
        }
    )
    path = tmp_path / "m.json"
    model.save(path)
    loaded = pr.load(path)
    assert loaded.form_ == model.form_
    assert loaded.form_.schema.protected == ("age",)
    text = path.read_text(encoding="utf-8")
    for before, after in (
        ('"protected": true', '"protected": false'),
        ("Ja.", "No."),
        ('"reasons": 2', '"reasons": 9'),
    ):
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")
        with pytest.raises(ModelFileError, match="the form does not match its hash"):
            pr.load(path)


def test_what_an_empty_field_can_win_is_said_in_points():
    level = OutsideLevel("debt", "missing", "free", rows=9.0, below=1.0, below_risk=0.125, lowers=2.0, lowers_risk=0.25)
    said = "debt, missing (free): up to 12.5 points better than the best measured level, and 25 than the worst"
    assert str(level) == said
