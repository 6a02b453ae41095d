"""Every number of a model file that says where something is, or how much there is, is checked before it is used.

The file is one that a careful forger hands in: each change is made in a form, and all hashes are made to fit it. What
is not refused here would be looked up by the kernels, by numpy or by Python, which reads negative places from the end.
"""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path

import msgspec
import pytest

import plainrisk as pr
from plainrisk.errors import ModelFileError

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus" / "form"


def plain(name):
    return json.loads((CORPUS / name).read_text(encoding="utf-8"))


def sha256(content):
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def signed(content):
    """The file with hashes that fit it."""
    file = {"format": 3, "plainrisk": "0.1.0", "form_sha256": sha256(content["form"]), "form": content["form"]}
    file |= {"fit": content["fit"]} if content.get("fit") else {}
    return {**file, "sha256": sha256(file)}


def find(content, kind, field):
    """The first object in a document that is of a kind and has something in a field."""
    if isinstance(content, dict):
        if content.get("kind") == kind and content.get(field):
            return content
        content = list(content.values())
    found = (find(value, kind, field) for value in content) if isinstance(content, list) else ()
    return next((one for one in found if one is not None), None)


def tree(content):
    return next(part for part in content["form"]["parts"] if part["kind"] == "trees")["trees"][0]


def at(kind, field, change):
    """Change a field of the first object of a kind."""

    def make(content):
        place = find(content["form"], kind, field)
        place[field] = change(place[field])

    return make


def in_tree(field, node, value):
    def make(content):
        tree(content)[field][node] = value

    return make


def in_fit(field, change):
    def make(content):
        content["fit"][field] = change(content["fit"][field])

    return make


def cells(where, number):
    """Count training rows in a cell of the probabilities."""

    def make(content):
        content["fit"]["risks"][where][str(number)] = 1.0

    return make


def set_pool(field, value):
    def make(content):
        content["form"]["pool"][field] = value

    return make


MANY = [float(k) for k in range(2**16)]
# The file that is changed, how, and what is said.
CHECKS = {
    "a tree reads an input before the first": ("trees.json", in_tree("inputs", 0, -2), "an input that does not exist"),
    "a tree reads an input after the last": ("trees.json", in_tree("inputs", 0, 3), "an input that does not exist"),
    "a tree reads an input beyond 64 bits": ("trees.json", in_tree("inputs", 0, 2**63), "input that does not|damaged"),
    "a left child before its parent": ("trees.json", in_tree("left", 1, 0), "children must come after"),
    "a left child that is its parent": ("trees.json", in_tree("left", 0, 0), "children must come after"),
    "a left child after the last": ("trees.json", in_tree("left", 0, 7), "children must come after"),
    "a right child before the first": ("trees.json", in_tree("right", 0, -1), "children must come after"),
    "a right child after the last": ("trees.json", in_tree("right", 0, 7), "children must come after"),
    "a tree without a node's edge": ("trees.json", lambda c: tree(c)["edges"].pop(), "arrays differ in length"),
    "a tree without a leaf's value": ("trees.json", lambda c: tree(c)["values"].pop(), "arrays differ in length"),
    "a tree without a child": ("trees.json", lambda c: tree(c)["left"].pop(), "arrays differ in length"),
    "a tree without a direction": ("trees.json", lambda c: tree(c)["missing_left"].pop(), "arrays differ in length"),
    "a tree without nodes": ("trees.json", lambda c: tree(c).update({key: [] for key in tree(c)}), "differ in length"),
    "edges that fall": ("alone.json", at("bins", "edges", lambda e: [9.0, 1.0]), "strictly increasing"),
    "edges that are equal": ("alone.json", at("bins", "edges", lambda e: [1.0, 1.0]), "strictly increasing"),
    "fewer levels than scores": ("alone.json", at("bins", "edges", lambda e: []), "levels has"),
    "more levels than scores": ("alone.json", at("bins", "edges", lambda e: [*e, 1e6]), "levels has"),
    "more special values than scores": ("alone.json", at("bins", "special_values", lambda s: [*s, 7.0]), "levels has"),
    "more levels than codes": ("alone.json", at("bins", "edges", lambda e: MANY), "65,536 levels"),
    "fewer scores than levels": ("alone.json", at("table", "scores", lambda s: s[:-1]), "scores"),
    "more scores than levels": ("alone.json", at("table", "scores", lambda s: [*s, 0.0]), "scores"),
    "fewer weights than levels": ("alone.json", at("table", "weights", lambda s: s[:-1]), "weights"),
    "fewer positives than levels": ("alone.json", at("table", "positives", lambda s: s[:-1]), "positives"),
    "more ordered categories than there are": ("alone.json", at("categories", "n_ordered", lambda n: 4), "invalid"),
    "fewer ordered categories than none": ("alone.json", at("categories", "n_ordered", lambda n: -1), "invalid"),
    "a category twice": ("alone.json", at("categories", "categories", lambda c: ["a", "a", "c"]), "twice"),
    "a category less": ("alone.json", at("categories", "categories", lambda c: c[:-1]), "invalid|levels has"),
    "more categories than codes": (
        "alone.json",
        at("categories", "categories", lambda c: [f"c{k}" for k in range(2**16)]),
        "invalid",
    ),
    "a table of a pair with a row less": ("mixture.json", at("pair", "scores", lambda t: t[:-1]), "rows of"),
    "a table of a pair with a cell less": (
        "mixture.json",
        at("pair", "scores", lambda t: [*t[:-1], t[-1][:-1]]),
        "rows of",
    ),
    "weights of a pair with a row more": ("mixture.json", at("pair", "weights", lambda t: [*t, t[0]]), "rows of"),
    "positives of a pair with a cell more": (
        "mixture.json",
        at("pair", "positives", lambda t: [[*t[0], 0.0], *t[1:]]),
        "rows of",
    ),
    "levels of a pair the other way round": ("mixture.json", at("pair", "levels", lambda v: v[::-1]), "rows of|levels"),
    "a pair of three": ("mixture.json", at("pair", "levels", lambda v: [*v, v[0]]), "length|array"),
    "a pair of a feature with itself": ("mixture.json", at("pair", "features", lambda f: [f[0], f[0]]), "two features"),
    "a curve with a piece more than breaks": (
        "layer.json",
        at("curve", "coefficients", lambda c: [*c, c[0]]),
        "one polynomial",
    ),
    "a curve with breaks that fall": ("layer.json", at("curve", "breaks", lambda b: b[::-1]), "rising breaks"),
    "a curve whose pieces differ in degree": (
        "layer.json",
        at("curve", "coefficients", lambda c: [[*c[0], 1.0], *c[1:]]),
        "one polynomial",
    ),
    "a curve with one break": ("layer.json", at("curve", "breaks", lambda b: b[:1]), "one polynomial"),
    "a link with a knot more than values": ("layer.json", at("bands", "knots", lambda k: [*k, 9.0]), "knots|values"),
    "a link with knots that fall": ("layer.json", at("bands", "knots", lambda k: k[::-1]), "rise|increas|knots"),
    "a pool with a weight less": ("mixture.json", set_pool("weights", [1.0]), "do not fit a pool of 1"),
    "a pool without weights": ("layer.json", set_pool("weights", []), "do not fit a pool of 0"),
    "probabilities before the first cell": ("fitted.json", cells("rows", -1), "cells 0 to 401"),
    "probabilities after the last cell": ("fitted.json", cells("rows", 402), "cells 0 to 401"),
    "positives in a cell far away": ("fitted.json", cells("positives", 2**31), "cells 0 to 401"),
    "a covariance with a number less": ("fitted.json", in_fit("covariance", lambda c: c[:-1]), "covariance of 10"),
    "a covariance of another size": ("fitted.json", in_fit("covariance", lambda c: c[:45]), "covariance of 10 numbers"),
    "a covariance of huge numbers": ("fitted.json", in_fit("covariance", lambda c: [1e300] * 55), "covariance of 10"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHECKS)
def test_a_place_that_is_none_is_refused_by_the_reader(tmp_path, what):
    name, change, message = CHECKS[what]
    content = plain(name)
    before = copy.deepcopy(content)
    change(content)
    assert content != before
    path = tmp_path / "model.json"
    path.write_text(json.dumps(signed(content)), encoding="utf-8")
    with pytest.raises(ModelFileError, match=message) as caught:
        pr.load(path)
    assert "was changed" not in str(caught.value), "the hash must not be what finds it"


@pytest.mark.parametrize("name", ["alone.json", "fitted.json", "layer.json", "mixture.json", "trees.json"])
def test_the_same_files_unchanged_are_read(tmp_path, name):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(signed(plain(name))), encoding="utf-8")
    assert pr.load(path).form_.features


def test_a_covariance_of_a_model_that_can_have_none(tmp_path):
    content = plain("mixture.json")
    content["fit"] = plain("fitted.json")["fit"]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(signed(content)), encoding="utf-8")
    with pytest.raises(ModelFileError, match="only a model of one additive part has a covariance"):
        pr.load(path)


@pytest.mark.parametrize("outcomes", [["no", 1], ["no", "no"], [0, 0.0], [0, 2**64], [False, 0], [True, "yes"]])
def test_outcomes_that_no_array_holds(tmp_path, outcomes):
    content = plain("alone.json")
    content["form"]["classes"] = outcomes
    path = tmp_path / "model.json"
    path.write_text(json.dumps(signed(content)), encoding="utf-8")
    with pytest.raises(ModelFileError, match="the outcomes must be two"):
        pr.load(path)
