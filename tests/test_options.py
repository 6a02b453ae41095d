"""Options are declared once: functions, methods and commands take exactly the fields of the options classes."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain.options import (
    DecideOptions,
    ExplainOptions,
    Options,
    ReasonOptions,
    WhatIfOptions,
    WhatIfsOptions,
)
from plainrisk.model import FormMethods

VERBS = {
    "explain": ExplainOptions,
    "reasons": ReasonOptions,
    "decide": DecideOptions,
    "what_if": WhatIfOptions,
    "what_ifs": WhatIfsOptions,
}
MODELS = [
    FormMethods,
    *(v for v in map(pr.__dict__.get, pr.__all__) if inspect.isclass(v) and issubclass(v, FormMethods)),
]
MAKERS = {
    ExplainOptions: ("contributions", "explainer"),
    ReasonOptions: ("reasons", "reasoner"),
    DecideOptions: ("reasons", "decider"),
    WhatIfOptions: ("what_if", "planner"),
    WhatIfsOptions: ("what_if", "planner"),
}
# A value other than the default for every option.
OTHER = {
    "reference": "typical",
    "portfolio": "the first 50 rows",
    "unit": "probability",
    "min_rows": 300.0,
    "k": 2,
    "target": 0.7,
    "frozen": ["Purpose"],
    "cost": "steps",
    "answers": 2,
    "values": {"Credit amount": [1000, 2000]},
    "columns": list(pr.datasets.load("german").schema.features),
}


def declared(options):
    """Name, default and kind of every option, as a signature shows them."""
    return [(p.name, p.default, p.kind) for p in inspect.signature(options).parameters.values()]


def shown(function):
    return [(p.name, p.default, p.kind) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("verb", VERBS)
def test_functions_take_the_declared_options(verb):
    assert shown(getattr(pr.explain, verb))[2:] == declared(VERBS[verb])


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_methods_take_the_declared_options(model, verb):
    assert shown(getattr(model, verb))[2:] == declared(VERBS[verb])


def test_every_verb_with_options_is_looked_at():
    """A new method or function that forwards options has to be listed above."""
    for owner in (FormMethods, pr.explain):
        takers = {n for n, f in vars(owner).items() if inspect.isfunction(f) and hasattr(f, "__signature__")}
        assert takers == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_documented_with_its_default(verb):
    for owner in (FormMethods, pr.explain):
        text = inspect.getdoc(getattr(owner, verb))
        for name, default, _ in declared(VERBS[verb]):
            line = re.search(rf"^{name} : (.+)$", text, re.MULTILINE)
            assert line is not None
            if default is not inspect.Parameter.empty:
                assert line[1].endswith(f"default={default!r}")


@pytest.mark.parametrize("command", ["explain", "reasons", "what-if"])
def test_commands_take_the_declared_options(command):
    from plainrisk.cli.commands import load_command

    options = VERBS[command.replace("-", "_")]
    found = {p.name: p for p in load_command(command).params}
    assert "columns" not in found, "files have headers"
    for field in dataclasses.fields(options):
        if field.name == "columns":
            continue
        assert field.name in found, f"plainrisk {command} has no option for {field.name}"
        if field.default is dataclasses.MISSING:
            assert found[field.name].required
        else:
            assert (found[field.name].default or None) == (field.default or None)
        flags = found[field.name].opts
        name = {"target": "cutoff"}.get(field.name, field.name)  # one name for one thing in all commands
        assert flags == [f"-{name}"] or flags == [f"--{name.replace('_', '-')}"]


# ---- every option arrives


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german", backend="polars")


@pytest.fixture(scope="module")
def model(german):
    return pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)


@pytest.mark.parametrize(("verb", "name"), [(verb, f.name) for verb in VERBS for f in dataclasses.fields(VERBS[verb])])
def test_a_method_hands_on_every_option(model, german, monkeypatch, verb, name):
    """What a method is told is what the prepared object is asked for."""
    asked = []
    module, maker = MAKERS[VERBS[verb]]
    prepared = sys.modules[f"plainrisk.explain.{module}"]  # a function of this name hides some of these modules
    monkeypatch.setattr(prepared, maker, lambda form, options: asked.append(options) or _Answers())
    monkeypatch.setattr(sys.modules["plainrisk.explain.reasons"].Decisions, "of", lambda ranked: ranked)
    value = german.frame[:50] if name == "portfolio" else OTHER[name]
    options = {"target": 0.5, name: value} if "what" in verb else {name: value}
    getattr(model, verb)(german.frame[:1], **options)
    assert asked == [VERBS[verb](**options)] if name != "portfolio" else asked[0].portfolio is value


class _Answers:
    def explain(self, X):
        none = np.empty(0)
        return pr.explain.Explanation("probability", none, none, none, (), (), "typical")

    def reasons(self, X):
        return None

    def solve(self, X):
        return [None]


def test_what_if_of_a_model_heeds_min_rows(model, german):
    """Level A202 of 'foreign worker' has 37 training rows. A protected feature is not moved whatever is asked."""
    row = german.frame[1:2]
    free = model.annotate({"features": {"foreign worker": {"protected": False, "actionable": None}}})
    for asked, min_rows, moved in ((free, 0, True), (free, 38, False), (model, 0, False)):
        for found in (
            asked.what_if(row, 0.9, answers=50, min_rows=min_rows),
            asked.what_ifs(row, 0.9, answers=50, min_rows=min_rows)[0],
        ):
            assert found.answers
            assert any("foreign worker" in answer.features for answer in found.answers) == moved


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["adverse", "order", "barred", "inquiries", "cutoff"])
def test_what_the_policy_says_is_no_option(model, german, verb, name):
    with pytest.raises(DataError, match=f"there is no option '{name}'"):
        getattr(model, verb)(german.frame[:1], **{name: None})


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_option_is_refused_with_the_nearest_name(model, german, verb):
    target = {} if verb in ("explain", "reasons", "decide") else {"target": 0.5}
    for owner in (getattr(model, verb), lambda X, **o: getattr(pr.explain, verb)(model.form_, X, **o)):
        with pytest.raises(DataError, match=f"{verb}: there is no option 'min_row'. Did you mean 'min_rows'"):
            owner(german.frame[:1], min_row=3, **target)


@pytest.mark.parametrize("options", VERBS.values(), ids=VERBS)
def test_known_words_are_kept_and_others_refused(options):
    start = {"target": 0.5} if issubclass(options, WhatIfOptions) else {}
    for field in dataclasses.fields(options):
        for word in field.metadata["words"]:
            assert getattr(options(**{**start, field.name: word}), field.name) == word
        if field.metadata["words"]:
            with pytest.raises(DataError, match=rf"{field.name} must be '.*, not 'nonsense'"):
                options(**{**start, field.name: "nonsense"})


def test_options_are_frozen():
    assert issubclass(ExplainOptions, Options)
    with pytest.raises(dataclasses.FrozenInstanceError, match="reference"):
        ExplainOptions().reference = "best"
