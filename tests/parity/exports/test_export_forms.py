"""Exports of random forms with everything a form may hold, at, beside and far from all their cuts; hostile names."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk import RiskModel
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
    Mixture,
    PairTable,
    Part,
    RiskForm,
    Table,
)
from plainrisk.schema import Feature, Policy, Schema

LABELS = (
    "a",
    "B",
    "b",
    "",
    "it's",
    'say "no"',
    "1",
    "2.5",
    "line\nbreak",
    "é",
    "😀",
    "'); DROP TABLE applicants; --",
    "x" * 50,
)


class Drawn:
    """Choices by hypothesis, which makes failures small."""

    def __init__(self, draw):
        self._draw = draw

    def whole(self, low, high):
        return self._draw(st.integers(low, high))

    def number(self, low=-3.0, high=3.0):
        return round(self._draw(st.floats(low, high, allow_nan=False)), 4)

    def choice(self, values):
        return self._draw(st.sampled_from(list(values)))


class Seeded(Drawn):
    """Choices by a seed, for engines that take too long for hypothesis."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def whole(self, low, high):
        return self._random.randint(low, high)

    def number(self, low=-3.0, high=3.0):
        return round(self._random.uniform(low, high), self._random.choice([0, 1, 4, 15]))

    def choice(self, values):
        return self._random.choice(list(values))


@st.composite
def forms(draw):
    return make_form(Drawn(draw))


def make_form(pick, names=None, labels=LABELS):
    """Return a form of 2 to 5 features in 1 to 3 parts."""
    names = names or [f"feature {j}" for j in range(pick.whole(2, 5))]
    kinds = {name: pick.choice(["bins", "bins", "categories", "line", "curve"]) for name in names}
    levels = {name: _levels(pick, kind, labels) for name, kind in kinds.items()}
    n_parts = pick.whole(1, 3)
    parts = []
    for k in range(n_parts):
        own = [name for name in names if n_parts == 1 or pick.whole(0, 1)] or [names[0]]
        shapes = {name: _shape(pick, kinds[name], levels[name]) for name in own}
        pairs = ()
        if len(own) > 1 and pick.whole(0, 1):
            pairs = (_pair(pick, own[0], own[1], levels),)
            if pick.whole(0, 1) and kinds[own[1]] in ("bins", "categories"):
                del shapes[own[1]]  # a feature that stands in a pair alone
        parts.append(Part(name=f"part {k}", intercept=pick.number(), shapes=shapes, link=_link(pick), pairs=pairs))
    used = {name for part in parts for name in part.features}
    features = {
        name: Feature(
            kind="categorical" if kinds[name] == "categories" else "continuous",
            reason=pick.choice([None, "the same words", f"words for {name}"]),
            reasons=pick.choice([{}, {"missing": "the same words"}, {"missing": "not given"}]),
            unseen=pick.choice(["neutral", "neutral", "neutral", "error"]),
            protected=pick.whole(0, 3) == 0,
            actionable="fixed",
        )
        for name in names
        if name in used
    }
    subscales = {"s 0": tuple(features)[:1], "s 1": tuple(features)[1:3]} if len(features) > 1 else {}
    policy = Policy(
        cutoff=pick.choice([None, 0.5, 0.25]),
        reasons=pick.whole(1, 6),
        order=pick.choice(["feature", "subscale"]),
        reference=pick.choice(["best", "best", "typical"]),
        inquiries=tuple(n for n, f in features.items() if pick.whole(0, 2) == 0 and not f.protected),
    )
    schema = Schema(
        features=features,
        subscales={s: own for s, own in subscales.items() if own},
        policy=policy,
        adverse=pick.choice(["positive", "negative"]),
    )
    return RiskForm(
        schema=schema, columns=tuple(features), classes=(0, 1), parts=tuple(parts), pool=_pool(pick, n_parts)
    )


def _levels(pick, kind, labels):
    if kind == "categories":
        known = tuple(dict.fromkeys(pick.choice(labels) for _ in range(pick.whole(1, 4))))
        return Categories(known, len(known))
    edges = tuple(sorted({pick.number(-2, 9) for _ in range(pick.whole(0, 6))})) if kind == "bins" else ()
    special = tuple({-9.0: None, float(pick.whole(-9, -5)): None}) if pick.whole(0, 1) else ()
    return Bins(edges, special, pick.choice([None, 0.0, -1.5]))


def _counted(pick, n):
    weights = [float(pick.whole(0, 5)) for _ in range(n)]
    weights[0] = 3.0
    return tuple(weights), tuple(w / 2 for w in weights)


def _shape(pick, kind, levels):
    scores = [pick.number() for _ in range(len(levels))]
    weights, positives = _counted(pick, len(levels))
    if kind in ("bins", "categories"):
        return Table(levels=levels, scores=tuple(scores), weights=weights, positives=positives)
    more = {"levels": levels, "scores": (0.0, *scores[1:]), "weights": weights, "positives": positives}
    if kind == "line":
        return Line(slope=pick.choice([0.0, 1.25, -0.3]), center=pick.number(), **more)
    coefficients = tuple(tuple(pick.number(-1, 1) for _ in range(3)) for _ in range(2))
    return Curve(breaks=(0.0, 1.5, 4.0), coefficients=coefficients, **more)


def _pair(pick, u, v, levels):
    n, m = len(levels[u]), len(levels[v])
    scores = tuple(tuple(pick.number(-1, 1) for _ in range(m)) for _ in range(n))
    weights = tuple(tuple(float((i + j) % 3 + 1) for j in range(m)) for i in range(n))
    return PairTable(features=(u, v), levels=(levels[u], levels[v]), scores=scores, weights=weights, positives=weights)


def _link(pick):
    return pick.choice([
        Logistic(),
        Linear(slope=0.2, offset=0.5),
        Linear(slope=0.1, offset=0.4, low=0.1, high=0.8),
        Bands((-4.0, -1.0, 1.0, 4.0), (0.02, 0.25, 0.75, 0.98)),
        Bands((-2.0, 0.1, 2.0), (-0.1, 0.4, 1.1)),
    ])  # fmt: skip


def _pool(pick, n):
    if n == 1:
        return Alone()
    if pick.whole(0, 1):
        link = pick.choice([None, Bands((0.1, 0.4, 0.6, 0.9), (0.02, 0.3, 0.75, 0.95))])
        return Mixture(tuple([0.25] * (n - 1) + [1 - 0.25 * (n - 1)]), link)
    return Layer(pick.number(-1, 1), tuple(float(pick.whole(0, 3)) for _ in range(n)), _link(pick))


# ---- random forms

PLAIN = ["python", "javascript", "c", "onnx", "duckdb", "sqlite", "postgres", "pmml", "jpmml"]


@settings(max_examples=20)
@given(form=forms())
def test_random_forms_agree_in_plain_python_and_sqlite(form, check, edge_rows):
    kept = edge_rows(form)
    if not kept:
        return
    for target in ("python", "sqlite"):
        found = check(RiskModel(form), target, kept, portfolio=kept)
        assert found.agrees, (target, found)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("target", PLAIN, indirect=True)
def test_random_forms_agree(target, seed, check, edge_rows):
    form = make_form(Seeded(seed), labels=[label for label in LABELS if label])
    rows = edge_rows(form, 200, seed)
    # The typical applicant is not far away: PostgreSQL refuses products that underflow.
    found = check(RiskModel(form), target, rows, portfolio=edge_rows(form, 50, near=False))
    assert found.rows == len(rows) > 20
    assert found.agrees, found


@pytest.mark.parametrize("target", ["xlsx"], indirect=True)
def test_a_workbook_agrees(target, check, edge_rows):
    form = make_form(Seeded(2), labels=[label for label in LABELS if label])
    rows = edge_rows(form, 30, near=False)
    found = check(RiskModel(form), target, rows, portfolio=rows)
    assert found.rows == len(rows) > 10
    assert found.agrees, found


# ---- names and labels from outside

HOSTILE = [
    "'); DROP TABLE applicants; --",
    'quote " and `tick` and ]',
    "two\nlines\\",
    "smile 😀 -- /* */",
    "x" * 10_000,
]


@pytest.mark.parametrize("target", [*PLAIN, "xlsx"], indirect=True)
def test_hostile_names_and_labels_run_and_agree(target, check, edge_rows):
    pick = Seeded(11)
    form = make_form(pick, names=HOSTILE, labels=[*HOSTILE, "??/", "\\", "%s {0} $1 :x", "</Constant>", "=1+1"])
    rows = edge_rows(form, 40, near=False)
    found = check(RiskModel(form), target, rows, portfolio=rows)
    assert found.rows == len(rows) > 10
    assert found.agrees, found
