"""Names from outside can not command a terminal, wherever they are shown."""

from __future__ import annotations

import numpy as np
import pytest

import plainrisk as pr
from plainrisk import errors
from plainrisk.text import one_line, visible

HOSTILE = "a\x1b[2J\x07\x7f\x9b\r\u202e\u2066\u2028\x00b"
COMMANDS = set(HOSTILE) - set("ab[2J")


@pytest.mark.parametrize("character", [*sorted(COMMANDS), "\ud800", "\x85", "\u200f", "\t"], ids=ascii)
def test_a_character_that_a_terminal_obeys_is_shown_as_an_escape(character):
    assert visible(f"a{character}b") == f"a\\u{ord(character):04x}b"


@pytest.mark.parametrize("text", ["größe", "収入", "دخل", "👩‍👩‍👧", "two\nlines", "[red]x[/]", "\\frac"], ids=ascii)
def test_other_text_stays(text):
    assert visible(text) == text


def test_a_cell_has_one_line():
    assert one_line("a\nb\r") == "a\\nb\\u000d"


TREE = [getattr(errors, name) for name in errors.__all__ if isinstance(getattr(errors, name), type)]


@pytest.mark.parametrize("kind", TREE)
def test_errors_and_warnings_show_escapes(kind):
    assert not COMMANDS & set(str(kind(f"feature {HOSTILE}")))
    assert "two\nlines" in str(kind("two\nlines"))


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(0)
    X = {HOSTILE: rng.normal(size=300), "c": rng.choice([HOSTILE, "x"], 300)}
    y = (X[HOSTILE] + rng.normal(size=300) > 0).astype(int)
    features = {HOSTILE: {"direction": "increasing", "reason": HOSTILE}, "c": {"kind": "categorical"}}
    schema = pr.Schema(features=features, subscales={HOSTILE: [HOSTILE], "rest": ["c"]})
    return pr.TwoLayerRiskModel(schema=schema, link="linear").fit(X, y), X, y


def test_results_print_escapes(hostile):
    model, X, y = hostile
    one = {name: column[:1] for name, column in X.items()}
    shown = [
        model.explain(X),
        model.reasons(X),
        model.what_if(one, 0.2),
        model.what_ifs(X, 0.2),
        model.overview(),
        model.drift(X),
        model.certify(),
        pr.bootstrap(model, X, y, n=2),
        pr.RiskModel(model.form_),
        pr.fairness(model.predict_proba(X)[:, 1], None, y, by=X["c"], cutoff=0.5),
    ]
    decided = model.annotate(cutoff=0.0).decide(X)
    shown.append(decided)
    texts = [write(one) for one in shown for write in (str, repr)] + [decided.letter(0)]
    assert "\\u001b[2J" in decided.letter(0)
    for text in texts:
        assert not COMMANDS & set(text), text
    assert "\\u001b[2J" in repr(model.overview())
