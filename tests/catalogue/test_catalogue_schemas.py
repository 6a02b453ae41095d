"""Schemas as dicts and as files; drafting and checking them; names in control characters."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk import Schema


def features(**feature):
    return lambda w: Schema(features=w.given({"a": feature}))


def policy(**fields):
    return lambda w: Schema(features={"a": {}}, policy=fields)


def body(data):
    return lambda w: Schema.from_dict(w.given(data))


def cyclic(w):
    data = {"features": {"a": {}}}
    data["features"]["a"]["reasons"] = data
    return Schema.from_dict(data)


def is_schema(found):
    return isinstance(found, Schema)


S = "SchemaError: "
DICTS = {
    "an unknown kind": (features(kind="continous"), S + "'a'.*kind"),
    "an unknown field": (features(diretion="increasing"), S + "'a'.*diretion"),
    "an unknown direction": (features(direction="up"), S + "'a'.*direction"),
    "a direction that is a number": (features(direction=1), S + "'a'.*direction"),
    "a feature that is a text": (lambda w: Schema(features={"a": "continuous"}), S + "'a'"),
    "a feature that is None": (lambda w: Schema(features={"a": None}), S + "'a'"),
    "features as a list": (lambda w: Schema(features=["a"]), S + "features"),
    "features as a text": (lambda w: Schema(features="a"), S + "features"),
    "features as None": (lambda w: Schema(features=None), S + "features"),
    "names that are numbers": (lambda w: Schema(features={1: {}}), S + "1"),
    "names that are None": (lambda w: Schema(features={None: {}}), S + "None"),
    "an empty name": (lambda w: Schema(features={"": {}}), is_schema),
    "an endless name": (lambda w: Schema(features={"a" * 10_000: {}}), is_schema),
    "edges that fall": (features(edges=(2.0, 1.0)), S + "'a'.*edges"),
    "edges that repeat": (features(edges=(1.0, 1.0)), S + "'a'.*edges"),
    "edges of NaN": (features(edges=(float("nan"),)), S + "'a'.*edges"),
    "edges of text": (features(edges=("1",)), S + "'a'.*edges"),
    "edges as a number": (features(edges=3.0), S + "'a'.*edges"),
    "edges of a category": (features(kind="categorical", edges=(1.0,)), S + "'a'.*edges"),
    "too many edges": (features(edges=tuple(map(float, range(70_000)))), S + "'a'.*(edges|65)"),
    "too many categories": (
        features(kind="categorical", categories=tuple(map(str, range(70_000)))),
        S + "'a'.*categories",
    ),
    "edges and max_bins": (features(edges=(1.0,), max_bins=3), S + "'a'.*edges"),
    "max_bins of 1": (features(max_bins=1), S + "'a'.*max_bins"),
    "max_bins of -5": (features(max_bins=-5), S + "'a'.*max_bins"),
    "max_bins of 2.5": (features(max_bins=2.5), S + "'a'.*max_bins"),
    "max_bins of True": (features(max_bins=True), S + "'a'.*max_bins"),
    "special values of text": (features(special_values=("x",)), S + "'a'.*special"),
    "special values of NaN": (features(special_values=(float("nan"),)), S + "'a'.*special"),
    "special values that repeat": (features(special_values=(1, 1.0)), S + "'a'.*special"),
    "special values as a number": (features(special_values=-9), S + "'a'.*special"),
    "special values of None": (features(special_values=(None,)), S + "'a'.*special"),
    "an infinite lower bound": (features(lower_bound=float("inf")), S + "'a'.*lower_bound"),
    "a lower bound of text": (features(lower_bound="0"), S + "'a'.*lower_bound"),
    "categories of a number": (features(categories=("x",)), S + "'a'.*categories"),
    "categories that repeat": (features(kind="categorical", categories=("x", "x")), S + "'a'.*twice"),
    "categories 1 and '1'": (features(kind="categorical", categories=(1, "1")), S + "'a'.*twice"),
    "categories as one text": (features(kind="categorical", categories="xyz"), S + "'a'.*categories"),
    "categories of NaN": (features(kind="categorical", categories=(float("nan"),)), S + "'a'.*categories"),
    "categories of None": (features(kind="categorical", categories=(None,)), S + "'a'.*categories"),
    "a category that is special": (
        features(kind="categorical", categories=("x",), special_values=("x",)),
        S + "'a'.*both",
    ),
    "unseen of another word": (features(unseen="refuse"), S + "'a'.*unseen"),
    "a negative step cost": (features(step_cost=-1), S + "'a'.*step_cost"),
    "a step cost of NaN": (features(step_cost=float("nan")), S + "'a'.*step_cost"),
    "a step cost of text": (features(step_cost="1"), S + "'a'.*step_cost"),
    "an actionable of another word": (features(actionable="sideways"), S + "'a'.*actionable"),
    "up without an order": (features(kind="categorical", actionable="up"), S + "'a'.*order"),
    "a reason that is a number": (features(reason=3), S + "'a'.*reason"),
    "reasons for no level": (features(reasons={"never": "x"}), S + "'a'.*never"),
    "reasons as a list": (features(reasons=["x"]), S + "'a'.*reasons"),
    "a label that is a number": (features(label=3), S + "'a'.*label"),
    "labels of no level": (features(kind="categorical", categories=("x",), labels={"y": "Y"}), S + "'a'.*'y'"),
    "labels as a list": (features(labels=["x"]), S + "'a'.*labels"),
    "a unit that is a number": (features(unit=3), S + "'a'.*unit"),
    "protected and to be moved": (features(protected=True, actionable="up"), S + "'a'.*protected"),
    "protected of another word": (features(protected="yes"), S + "'a'.*protected"),
    "an unknown part of the policy": (policy(cutof=0.2), S + "policy.*Did you mean 'cutoff'"),
    "a policy that is a number": (lambda w: Schema(features={"a": {}}, policy=3), S + "policy"),
    "a cut-off of 2": (policy(cutoff=2), S + "policy.*cutoff"),
    "a cut-off of text": (policy(cutoff="0.2"), S + "policy.*cutoff"),
    "reasons of 0": (policy(reasons=0), S + "policy.*reasons"),
    "an order of another word": (policy(order="size"), S + "policy.*order"),
    "inquiries that are none": (policy(inquiries=["aa"]), S + "policy.*'aa'"),
    "a letter without reasons": (policy(letter={"refused": "No."}), S + "letter.refused needs {reasons}"),
    "a letter with an unknown name": (policy(letter={"approved": "{name}"}), S + "letter.approved has {name}"),
    "limits of drift the wrong way round": (policy(drift={"moderate": 0.3, "large": 0.2}), S + "policy.*drift"),
    "an adverse of another word": (lambda w: Schema(features={"a": {}}, adverse="bad"), S + "adverse"),
    "two words on what is adverse": (
        lambda w: Schema(features={"a": {}}, adverse="negative", outcome={"adverse": "positive"}),
        S + "adverse is 'negative', and outcome says 'positive'",
    ),
    "an unknown part of the outcome": (
        lambda w: Schema(features={"a": {}}, outcome={"postive": "pays"}),
        S + "outcome.*postive",
    ),
    "a target among the features": (lambda w: Schema(target="a", features={"a": {}}), S + "both the target"),
    "a target that is a number": (lambda w: Schema(target=3, features={"a": {}}), S + "target"),
    "a positive of NaN": (lambda w: Schema(positive=float("nan"), features={"a": {}}), S + "positive"),
    "a positive that is a list": (lambda w: Schema(positive=[1], features={"a": {}}), S + "positive"),
    "a subscale of unknown features": (
        lambda w: Schema(features={"income": {}}, subscales={"s": ["incme"]}),
        S + "'incme'.*Did you mean 'income'",
    ),
    "an empty subscale": (lambda w: Schema(features={"a": {}}, subscales={"s": []}), S + "'s' is empty"),
    "a subscale of one feature twice": (lambda w: Schema(features={"a": {}}, subscales={"s": ["a", "a"]}), S + "twice"),
    "a subscale that is a text": (lambda w: Schema(features={"a": {}}, subscales={"s": "a"}), S + "'s'"),
    "a subscale that is a number": (lambda w: Schema(features={"a": {}}, subscales={"s": 3}), S + "'s'"),
    "subscales as a list": (lambda w: Schema(features={"a": {}}, subscales=["a"]), S + "subscales"),
    "a dict that is a list": (body([1]), S + "table"),
    "a dict that is None": (body(None), S + "table"),
    "an unknown part": (body({"feature": {"a": {}}}), S + "feature"),
    "defaults of another kind": (body({"defaults": 3, "features": {"a": {}}}), S + "defaults"),
    "unknown defaults": (body({"defaults": {"kin": 1}, "features": {"a": {}}}), S + "defaults"),
    "a dict that holds itself": (cyclic, S),
    "no features": (lambda w: w.fit(schema=Schema()), S + "no features"),
    "a schema that is a dict": (lambda w: w.fit(schema={"features": {"a": {}}}), "(Schema|Data)Error: Schema.*dict"),
    "a schema that is a path": (lambda w: w.fit(schema="schema.toml"), "(Schema|Data)Error: Schema.*str.*load"),
    "features that are not in the data": (
        lambda w: w.fit(schema=Schema(features={"aa": {}})),
        S + "'aa' is not in the data",
    ),
    "a direction for words without an order": (
        lambda w: w.fit(schema=Schema(features={"c": {"kind": "categorical", "direction": "increasing"}})),
        S + "'c'.*not numbers",
    ),
    "categories that the data never show": (
        lambda w: w.fit(schema=Schema(features={"c": {"kind": "categorical", "categories": ("p", "q")}})),
        lambda m: np.isfinite(m.form_.parts[0].intercept),
    ),
    "edges beyond all data": (
        lambda w: w.fit(schema=Schema(features={"a": {"edges": (1e300,)}})),
        lambda m: np.isfinite(m.form_.parts[0].intercept),
    ),
    "special values everywhere": (
        lambda w: w.fit_column(np.full(40, -9.0), special_values=(-9,)),
        lambda m: np.isfinite(m.form_.parts[0].intercept),
    ),
}


@pytest.mark.parametrize(("call", "expected"), DICTS.values(), ids=DICTS)
def test_schemas(judge, call, expected):
    judge(call, expected)


def load(name, content):
    return lambda w: Schema.load(w.file(name, content))


FILES = {
    "no file": (lambda w: Schema.load("none.toml"), S + "none.toml"),
    "a folder": (lambda w: Schema.load(w.folder), S),
    "a path with a NUL": (lambda w: Schema.load("a\0b.toml"), S),
    "an empty path": (lambda w: Schema.load(""), S),
    "an empty file": (load("s.toml", ""), S + "s.toml.*empty"),
    "an empty JSON": (load("s.json", ""), S + "s.json"),
    "broken TOML": (load("s.toml", "features = {"), S + "s.toml.*TOML"),
    "broken JSON": (load("s.json", "{"), S + "s.json.*JSON"),
    "JSON in TOML": (load("s.toml", '{"features": {}}'), S + "s.toml.*TOML"),
    "a list": (load("s.json", "[]"), S + "s.json"),
    "a number": (load("s.json", "3"), S + "s.json"),
    "not UTF-8": (load("s.toml", b'target = "\xff"'), S + "s.toml.*UTF-8"),
    "a byte-order mark": (load("s.json", b'\xef\xbb\xbf{"features": {"a": {}}}'), is_schema),
    "NUL bytes": (load("s.toml", b"a = 1\0"), S + "s.toml"),
    "JSON 500 deep": (load("s.json", "[" * 500 + "]" * 500), S + "s.json"),
    "JSON 100,000 deep": (load("s.json", '{"features":' * 100_000), S + "s.json"),
    "TOML 500 deep": (load("s.toml", "a = " + "[" * 500 + "]" * 500), S + "s.toml"),
    "a TOML key of 100,000 dots": (load("s.toml", "a." * 100_000 + "a = 1"), S + "s.toml"),
    "a TOML header of 100,000 dots": (load("s.toml", "[" + "a." * 100_000 + "a]"), S + "s.toml"),
    "a number of 5,000 digits in TOML": (load("s.toml", f"[features.a]\nmax_bins = {'9' * 5000}"), S + "s.toml"),
    "a number of 5,000 digits in JSON": (
        load("s.json", '{"features": {"a": {"max_bins": ' + "9" * 5000 + "}}}"),
        S + "s.json",
    ),
    "NaN in TOML": (load("s.toml", "[features.a]\nlower_bound = nan"), S + "s.toml.*lower_bound"),
    "NaN in JSON": (load("s.json", '{"features": {"a": {"lower_bound": NaN}}}'), S + "s.json"),
    "a date in TOML": (load("s.toml", "positive = 2020-01-01\n[features.a]"), S + "s.toml.*positive"),
    "a key twice": (load("s.toml", "[features.a]\n[features.a]"), S + "s.toml"),
    "escapes in a name": (
        load("s.json", json.dumps({"features": {"\x1b[2J": {"kind": "x"}}})),
        S + "s.json",
    ),
    "escapes in a value": (load("s.json", json.dumps({"features": {"a": {"kind": "\x1b[2J\u202e"}}})), S + "s.json"),
    "a lone surrogate": (load("s.json", '{"features": {"a\\ud800": {}}}'), S + "s.json"),
    "an endless device": (lambda w: Schema.load("/dev/zero"), S),
    "more than the limit": (load("s.toml", "# " + "x" * (17 * 2**20)), S + "s.toml.*bytes|large"),
    "another ending to save": (lambda w: w.schema.save("s.yaml"), S + r"\.toml or \.json"),
    "a missing folder to save": (lambda w: w.schema.save("no/such/s.toml"), "OutputError: no/such/s.toml"),
    "a folder to save": (lambda w: w.schema.save(w.folder / "a_folder.toml"), lambda r: r is None),
}


@pytest.mark.parametrize(("call", "expected"), FILES.values(), ids=FILES)
def test_schema_files(judge, call, expected):
    judge(call, expected)


def infer(frame, *args, **options):
    return lambda w: Schema.infer(w.given(frame), *args, **options)


def names_are(*wanted):
    return lambda schema: tuple(schema.features) == wanted


DRAFTS = {
    "no rows": (infer({"a": np.array([])}), "(Schema|Data)Error: no rows"),
    "no columns": (infer(pd.DataFrame(index=range(3))), "(Schema|Data)Error: "),
    "one row": (infer({"a": [1.0]}), is_schema),
    "all missing": (infer({"a": [None] * 5, "b": [1.0, 2, 3, 4, 5]}), names_are("b")),
    "infinity": (infer({"a": [1.0, np.inf] * 5}), "(Schema|Data)Error: 'a'.*infinit"),
    "lists": (infer(pd.DataFrame({"a": [[987654321]] * 5, "b": range(5)})), "(Schema|Data)Error: 'a'"),
    "no such target": (infer({"a": [1.0, 2.0]}, "bad"), "(Schema|Data)Error: 'bad'"),
    "a target of one class": (infer({"a": [1.0, 2.0], "bad": [1, 1]}, "bad"), "(Schema|Data)Error: 'bad'.*[Bb]oth"),
    "a target of three classes": (infer({"a": [1.0] * 3, "bad": [0, 1, 2]}, "bad"), "(Schema|Data)Error: 'bad'.*3"),
    "a target with missing rows": (
        infer({"a": [1.0] * 3, "bad": [0, 1, None]}, "bad"),
        "(Schema|Data)Error: 'bad'.*row 2",
    ),
    "a positive that is none": (
        infer({"a": [1.0] * 4, "bad": [0, 1, 0, 1]}, "bad", positive=7),
        "(Schema|Data)Error: '7'",
    ),
    "a name in control characters": (
        infer({"\x1b[2J": np.arange(40.0) % 7, "b": np.arange(40.0) % 3}),
        lambda s: "\x1b[2J" in s.features,
    ),
    "whole numbers beyond 2**53": (infer({"a": np.array([2**60, 2**60 + 1] * 20)}), is_schema),
    "check against no rows": (
        lambda w: w.schema.check(w.X.head(0).assign(bad=[])),
        lambda ps: "no rows" in ps[0].message,
    ),
    "check against nothing": (lambda w: w.schema.check(None), "(Schema|Data)Error: "),
    "check against infinity": (
        lambda w: w.schema.check(w.X.assign(bad=w.y, a=np.inf)),
        lambda ps: any("infinity" in p.message for p in ps),
    ),
    "check against text": (
        lambda w: w.schema.check(w.X.assign(bad=w.y, a="SECRET-7")),
        lambda ps: "'a'" in ps[0].message and not any("SECRET" in p.message for p in ps),
    ),
    "check against a category per row": (
        lambda w: w.schema.check(w.X.assign(bad=w.y, c=[f"SECRET-7{k}" for k in range(len(w.X))])),
        lambda ps: any("120 categories" in p.message for p in ps),
    ),
    "check against three outcomes": (
        lambda w: w.schema.check(w.X.assign(bad=np.arange(len(w.X)) % 3)),
        lambda ps: "3 labels" in ps[0].message,
    ),
}


@pytest.mark.parametrize(("call", "expected"), DRAFTS.values(), ids=DRAFTS)
def test_drafts_and_checks(judge, call, expected):
    judge(call, expected)


NASTY = {
    "escapes": "\x1b[31mred\x1b[0m",
    "a line break": "two\nlines",
    "right to left": "\u202eabc",
    "a separator of lines": "a\u2028b",
    "markup": "[red]a[/]",
    "mathematics": "$x^{2$",
    "a backslash": "\\frac{",
    "an underscore": "_a",
    "500 characters": "n" * 500,
    "emoji": "\U0001f600",
    "an empty name": "",
    "quotes": "a'b\"c",
    "a slash": "../../etc",
    "a formula": "=cmd|'/C calc'!A0",
    "a number": "7",
    "risk": "risk",
}


@pytest.mark.parametrize("name", NASTY.values(), ids=NASTY)
def test_names_of_features_are_text(judge, name):
    """A feature of any name is fitted, printed, explained, kept in a file, and never sent raw."""

    def call(w):
        frame = w.X.rename(columns={"a": name})
        schema = Schema(features={name: {"direction": "increasing"}, "c": {"kind": "categorical"}})
        model = pr.AdditiveRiskModel(schema).fit(frame, w.y)
        results = [model.explain(frame), model.reasons(frame, 2), model.overview(), model.drift(frame), model.certify()]
        what = model.what_if(frame.tail(1), 0.01)
        schema.save("s.toml")
        model.save("m.json")
        same = pr.load("m.json").predict_proba(frame) == model.predict_proba(frame)
        return (
            [*map(str, [*results, what, model.what_ifs(frame.head(3), 0.2)])],
            Schema.load("s.toml") == schema,
            same.all(),
        )

    def right(result):
        texts, schema_is_same, model_is_same = result
        shown = "".join(texts)
        return schema_is_same and model_is_same and not any(c in shown for c in "\x1b\u202e\u2028")

    judge(call, right)
