"""Every edge case of the encoder, of names and of numbers: the page does as Python does."""

from __future__ import annotations

import itertools
import math
import sys

import msgspec
import numpy as np
import pytest

import plainrisk as pr
from plainrisk import explain as py
from plainrisk.errors import DataError
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Categories,
    Curve,
    Layer,
    Line,
    Linear,
    Logistic,
    PairTable,
    Part,
    RiskForm,
    Table,
    Tree,
    TreeInput,
    TreePart,
)
from plainrisk.receipts.record import canonical
from plainrisk.schema import label_of

HUGE = sys.float_info.max


def table(levels, rng, weights=None):
    n = len(levels)
    weights = tuple(weights or [10.0] * n)
    return Table(levels=levels, scores=tuple(rng.normal(size=n).tolist()), weights=weights, positives=weights)


def form_of(shapes, fields, *, link=None, pairs=(), subscales=None):
    schema = pr.Schema(features=fields, subscales=subscales or {})
    part = Part(name="all", intercept=0.1, shapes=shapes, link=link or Linear(slope=0.01, offset=0.5), pairs=pairs)
    return RiskForm(schema=schema, columns=tuple(fields), classes=(0, 1), parts=(part,), pool=Alone())


def risk_or_error(form, row):
    try:
        return float(form.risk(row)[0])
    except DataError:
        return "error"


def check_values(answers, form, rows):
    """Python sees the rows one by one, as columns of one value: its way for arrays."""
    found = answers(form, rows)["answers"]
    for row, said in zip(rows, found, strict=True):
        page = "error" if isinstance(said["risk"], dict) else said["risk"]
        assert page == risk_or_error(form, row), row
        assert page == risk_or_error(form, {name: [value] for name, value in row.items()}), row


# ---- values


def around(*values):
    return [y for x in values for y in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))]


@pytest.mark.parametrize("unseen", ["neutral", "error"])
@pytest.mark.parametrize(
    "bins",
    [
        Bins((-1.5, 0.0, 2.25, 1e9), (-9.0, 7.0, 2.25), -2.0),
        Bins((), (-9.0,), None),
        Bins((0.1, 0.30000000000000004), (), 0.1),
        Bins((5.0,), (-0.0,), None),
    ],
)
def test_numbers(answers, rng, bins, unseen):
    weights = [0.0 if k % 3 == 2 else 10.0 for k in range(len(bins))]
    form = form_of({"x": table(bins, rng, weights)}, {"x": {"unseen": unseen}})
    values = [*around(*bins.edges, *bins.special_values, -2.0, 0.0, 0.3), None, 3, -7, HUGE, -HUGE, 5e-324, -0.0]
    check_values(answers, form, [{"x": value} for value in values])


@pytest.mark.parametrize("unseen", ["neutral", "error"])
def test_categories(answers, rng, unseen):
    names = ("a", "2", "2.5", "", "missing", "1e+16", "-0", "1e-07", "True", "é", "10")
    levels = Categories(names, 3, {"a": ("b", "7"), "2": ("zwei",)})
    weights = [0.0 if k % 4 == 3 else 10.0 for k in range(len(levels))]
    form = form_of({"x": table(levels, rng, weights)}, {"x": {"kind": "categorical", "unseen": unseen}})
    values = [*names, "b", "7", 7, "zwei", 2, 2.5, "2.0", 1e16, 0, -0.0, 1e-7, 10, " a", "A", "unseen", "nan", None]
    check_values(answers, form, [{"x": value} for value in values])


def test_lines_and_curves(answers, rng):
    bins = Bins((), (-9.0,), -100.0)
    counts = {"weights": (10.0,) * len(bins), "positives": (5.0,) * len(bins), "scores": (0.0, 0.3, -0.2, 0.7)}
    line = Line(slope=0.37, center=1.1, levels=bins, **counts)
    steep = Line(slope=-1e300, center=0.3, levels=bins, **counts)
    curve = Curve(breaks=(0.0, 1.0, 2.5), coefficients=((0.1, -0.2, 0.03), (-0.07, 0.3, 1e-3)), levels=bins, **counts)
    for shape in (line, steep, curve):
        form = form_of({"x": shape}, {"x": {}}, link=Bands((-4.0, -1.0, 1.0, 4.0), (0.02, 0.25, 0.75, 0.98)))
        values = [*around(0.0, 1.0, 2.5, -9.0, -100.0, 1.1), None, HUGE, -HUGE, -50.0, 1e200]
        check_values(answers, form, [{"x": value} for value in values])


def test_trees(answers):
    inputs = (
        TreeInput(feature="x", missing=-9.0),
        TreeInput(feature="job", category="b"),
        TreeInput(feature="job", order=("c", "a")),
    )
    trees = tuple(
        Tree(
            inputs=(j, -1, -1),
            edges=(edge, 0.0, 0.0),
            missing_left=(left, False, False),
            left=(1, 0, 0),
            right=(2, 0, 0),
            values=(0.0, -0.1 * (j + 1), 0.3),
        )
        for j, edge in ((0, 1.5), (1, 0.5), (2, 0.5))
        for left in (True, False)
    )
    part = TreePart(name="all", intercept=0.1, inputs=inputs, trees=trees, link=Linear(slope=0.2, offset=0.5))
    for unseen in ("neutral", "error"):
        schema = pr.Schema(features={"x": {}, "job": {"kind": "categorical", "unseen": unseen}})
        form = RiskForm(schema=schema, columns=("x", "job"), classes=(0, 1), parts=(part,), pool=Alone())
        values = [*around(1.5), -9.0, None, 0.0]
        rows = [{"x": x, "job": job} for x in values for job in ("a", "b", "c", "z", None)]
        check_values(answers, form, rows)


def test_what_is_no_number_or_no_text_is_refused(answers, rng):
    form = form_of({"x": table(Bins((1.0,)), rng)}, {"x": {}})
    found = answers(form, [{"x": "abc"}, {"x": "1"}])["answers"]
    assert [said["risk"]["error"] for said in found] == ["RowError", "RowError"]
    assert risk_or_error(form, {"x": ["1"]}) == "error"


def test_fields_that_the_schema_forbids(answers, rng):
    fields = {
        "x": {"missing": "error", "special_values": [-9, 7.5], "special_rules": {"-9": "error"}, "lower_bound": 0},
        "y": {"below_bound": "error", "lower_bound": 0, "special_values": [-1], "missing": "worst"},
        "job": {"kind": "categorical", "special_values": ["?"], "special_rules": {"?": "error"}, "missing": "error"},
    }
    shapes = {"x": table(Bins((1.0,), (-9.0, 7.5), 0.0), rng), "y": table(Bins((1.0,), (-1.0,), 0.0), rng)}
    shapes["job"] = table(Categories(("a", "?"), 1), rng)
    form = form_of(shapes, fields)
    values = {"x": [0.5, None, -9, 7.5, -3.0], "y": [0.5, None, -1, -0.5], "job": ["a", "?", None, "z"]}
    rows = [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]
    check_values(answers, form, rows)


# ---- random forms


@pytest.mark.parametrize("seed", range(24))
def test_random_forms(compare, random_forms, policed, seed):
    kinds = {"pairs": seed % 2 == 1, "trees": seed % 3 == 2}
    features = {"debt": {"actionable": "down", "step_cost": 2.5, "reason": "Debt"}, "age": {"actionable": "fixed"}}
    features |= {"job": {"reasons": {"b": "Debt", "missing": "No job"}}, "rent": {"direction": "increasing"}}
    form = random_forms.random_form(seed, features=features if seed % 4 else None, **kinds)
    rows = random_forms.all_rows()
    order = np.random.default_rng(seed).permutation(len(rows["age"]))[:80]
    frame = {name: column[order] for name, column in rows.items()}
    adverse, cutoff = ("negative", 0.7) if seed % 5 == 0 else ("positive", 0.3)
    form = msgspec.structs.replace(form, schema=form.schema.replace(adverse=adverse), ranges={"debt": (0.5, 2.0)})
    compare(form, frame, cutoff=cutoff, what_ifs=12)
    compare(policed(form, seed, cutoff), frame, cutoff=cutoff, what_ifs=4)


def test_groups_of_categories(compare, rng):
    job = Categories(("a", "other"), 2, {"other": ("b", "c")})
    pair = PairTable(
        features=("job", "x"),
        levels=(Categories(("a", "b"), 2, {"b": ("c", "other")}), Bins((1.0,))),
        **{
            name: tuple(map(tuple, rng.normal(size=(4, 3)).tolist())) if name == "scores" else ((5.0,) * 3,) * 4
            for name in ("scores", "weights", "positives")
        },
    )
    fields = {"job": {"kind": "categorical"}, "x": {}}
    form = form_of({"job": table(job, rng), "x": table(Bins((0.5, 1.5)), rng)}, fields, pairs=(pair,))
    frame = {"job": np.array(["a", "b", "c", "other", "z", None] * 2, object), "x": np.array([0.0, 2.0] * 6)}
    compare(form, frame, cutoff=0.49, what_ifs=12)


@pytest.mark.parametrize("reference", [{"age": 45.0, "job": "b", "debt": 1.0, "rent": None}, "best"])
def test_other_references(answers, random_forms, reference):
    form = random_forms.random_form(3, pairs=True)
    rows = [{"age": 25.0, "job": "a", "debt": 3.0, "rent": 5.0}, {"age": None, "job": None, "debt": 0.0, "rent": 15.0}]
    found = answers(form, rows, reference=reference)["answers"]
    for row, said in zip(rows, found, strict=True):
        python = py.explain(form, {k: [v] for k, v in row.items()}, reference=reference).to_dict(0)
        explanation = said["explanation"]
        assert explanation["reference"] == python["reference"]
        assert explanation["referenceRisk"] == pytest.approx(python["constant"], abs=1e-15)
        assert [part["total"] for part in explanation["parts"]] == pytest.approx(
            [part["contribution"] for part in python["subscales"]], abs=1e-12
        )


@pytest.mark.parametrize(("adverse", "decided"), [("positive", True), ("negative", False)])
def test_a_risk_at_the_cut_off_is_refused_where_it_is_adverse(answers, random_forms, adverse, decided):
    form = random_forms.random_form(0)
    form = msgspec.structs.replace(form, schema=form.schema.replace(adverse=adverse))
    row = {"age": 25.0, "job": "a", "debt": 3.0, "rent": 5.0}
    said = answers(form, [row], cutoff=float(form.risk(row)[0]), what_ifs=1)
    assert said["answers"][0]["refused"] is decided
    assert all(a["changes"] for a in said["whatIfs"][0]["answers"]) is decided


# ---- names


NAMES = ["10", "2", "1", "__proto__", "constructor", "toString", "a × b", "</script>", "ünï"]


def test_names_in_any_order(compare, rng):
    """Objects in JavaScript sort names that are numbers, and know some names already."""
    shapes = {name: table(Bins((0.5, 1.5)), rng) for name in NAMES}
    form = form_of(shapes, {name: {} for name in NAMES}, subscales={"9": NAMES[:4], "1": NAMES[3:6]})
    frame = {name: rng.integers(0, 3, 60).astype(float) for name in NAMES}
    compare(form, frame, cutoff=0.48, what_ifs=10)


# ---- numbers


def test_numbers_are_written_as_in_python(answers, rng):
    form = form_of({"x": table(Bins((1.0,)), rng)}, {"x": {}})
    values = [0.5, 100000.5, 100001.5, 1000000.5, 123456.5, 12345.65, 1e-5, 0.0001, 1e16, 1e15, 123456789.0, -2.5, 0.1]
    values += (rng.normal(size=300) * 10.0 ** rng.integers(-12, 20, 300)).tolist()
    values += (rng.integers(-(10**7), 10**7, 300) / 2).tolist()
    found = answers(form, [], numbers=values)["numbers"]
    assert found == [label_of(x) for x in values]


def test_what_is_signed_is_written_as_in_python(answers, rng):
    form = form_of({"x": table(Bins((1.0,)), rng)}, {"x": {}})
    values = [0.0, -0.0, 1.0, 1500.0, 1e21, 1e20, 1e-6, 1e-7, 5e-324, HUGE, -2.5, 0.1, 123456789012345680.0]
    values += (rng.normal(size=300) * 10.0 ** rng.integers(-30, 30, 300)).tolist()
    texts = ["", 'q"uote', "back\\slash", "\n\t\x01\x7f", "ünï", "\u2028", "😀", "</script>"]
    value = {**dict.fromkeys(NAMES, values[:3]), "numbers": values, "texts": texts, "é": {"b": None, "a": True}}
    assert answers(form, [], canonical=value)["canonical"] == canonical(value).decode()


# ---- pasted rows


def test_pasted_rows(answers, rng):
    fields = {"age": {}, "job": {"kind": "categorical"}}
    shapes = {"age": table(Bins((30.0,)), rng), "job": table(Categories(("a, b", "2"), 2), rng)}
    texts = {
        'age,job\n25,"a, b"\n': {"age": 25, "job": "a, b"},
        "job\tage\r\n2.0\t 3e1 \r\n": {"age": 30, "job": "2"},
        '{"age": null, "job": 2}': {"age": None, "job": 2},
        '[{"age": 25.5, "job": "new", "other": 1}]': {"age": 25.5, "job": "new"},
        "age;job;id\nNA;;7": {"age": None, "job": None},
    }
    found = answers(form_of(shapes, fields), [], texts=list(texts))["pasted"]
    for said, wanted in zip(found, texts.values(), strict=True):
        assert said == {"row": wanted, "problems": [], "notes": []}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Two lines are needed"),
        ("age,job", "Two lines are needed, the names and one applicant's values; there are 1"),
        ("age,job\n1,a\n2,b", "there are 3"),
        ("age,job\n1", "There are 2 names, but 1 values"),
        ("age,job\nold,a", "age must be a number"),
        ("age,job\n1e999,a", "age is infinite"),
        ('{"age": 1', "This is not JSON"),
        ("[1, 2]", "One applicant is needed, not 2"),
        ("[[1]]", "An object of features is needed"),
        ('{"age": [1], "job": "a"}', "age must be a number or text"),
        ("x,y\n1,2", "None of these names belongs to the model. It reads age, job."),
        ('{"age": 1, "job": "z"}', "job: this value was not in the training data"),
    ],
)
def test_rows_that_cannot_be_read(answers, rng, text, problem):
    fields = {"age": {}, "job": {"kind": "categorical", "unseen": "error"}}
    job = Categories(("a", "b"), 2)
    shapes = {"age": table(Bins((30.0,)), rng), "job": table(job, rng, [9.0, 9.0, 9.0, 0.0])}
    found = answers(form_of(shapes, fields), [], texts=[text])["pasted"][0]
    assert len(found["problems"]) == 1
    assert problem in found["problems"][0]
    assert set(found["row"]) == {"age", "job"}


def test_features_that_are_not_given_are_said(answers, rng):
    shapes = {"age": table(Bins((30.0,)), rng), "pay": table(Bins((30.0,)), rng)}
    found = answers(form_of(shapes, {"age": {}, "pay": {}}), [], texts=['{"age": 1}'])["pasted"][0]
    assert found["problems"] == []
    assert found["notes"] == ["Not given, so the most frequent value is taken: pay."]


def test_a_layer_that_turns_a_part_round(compare, random_forms):
    form = random_forms.random_form(1, pairs=True)
    parts = tuple(msgspec.structs.replace(part, name=f"p{k}") for k, part in enumerate((*form.parts, *form.parts)))
    pool = Layer(0.2, tuple(0.5 - 0.6 * (k % 2) for k in range(len(parts))), Logistic())
    form = msgspec.structs.replace(form, parts=parts, pool=pool)
    rows = random_forms.all_rows()
    compare(form, {name: column[::9] for name, column in rows.items()}, cutoff=0.4, what_ifs=3)
