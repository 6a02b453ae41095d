"""Scoring in blocks, from any kind of table and on any number of threads, against one row at a time in plain Python."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk.data.frame import as_frame
from plainrisk.errors import DataError
from plainrisk.form import (
    Alone,
    Bins,
    Categories,
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
from plainrisk.schema import Schema

NAMES = tuple(f"u{j}" for j in range(9))
PAIRS = (("u0", "u1"), ("u2", "u1"), ("u8", "u3"), ("u7", "u8"))
NUMBERS = st.integers(-6, 6).map(float) | st.sampled_from([0.5, -0.0, 2.5, 1e300, -1e300, 5e-324])


def sorted_edges(draw, most):
    return tuple(sorted(draw(st.sets(st.integers(-5, 5).map(lambda v: v + 0.5) | NUMBERS, max_size=most))))


@st.composite
def any_levels(draw):
    if draw(st.booleans()):
        labels = draw(st.sets(st.sampled_from(["0", "1", "2", "-3", "2.5", "a", "b", "nan", "1e+300"]), max_size=6))
        return Categories(tuple(sorted(labels)), 0)
    special = tuple(draw(st.lists(NUMBERS, max_size=2, unique=True)))
    return Bins(sorted_edges(draw, draw(st.sampled_from([0, 4, 20]))), special, draw(st.none() | NUMBERS))


@st.composite
def any_pair(draw, features):
    levels = draw(any_levels()), draw(any_levels())
    n, m = map(len, levels)
    scores = np.array(draw(st.lists(st.floats(-3, 3), min_size=n * m, max_size=n * m))).reshape(n, m).tolist()
    ones = ((1.0,) * m,) * n
    return PairTable(features=features, levels=levels, scores=tuple(map(tuple, scores)), weights=ones, positives=ones)


@st.composite
def any_part(draw, name):
    shapes = {}
    for feature in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=9, unique=True)):
        levels = draw(any_levels())
        scores = tuple(draw(st.lists(st.floats(-3, 3), min_size=len(levels), max_size=len(levels))))
        ones = (1.0,) * len(levels)
        numbers = {"scores": scores, "weights": ones, "positives": ones}
        if isinstance(levels, Bins) and not levels.edges:
            shapes[feature] = Line(slope=0.3, center=1.5, levels=levels, **numbers)
        else:
            shapes[feature] = Table(levels=levels, **numbers)
    link = draw(st.sampled_from([Logistic(), Linear(slope=0.2, offset=0.5)]))
    pairs = [draw(any_pair(features)) for features in draw(st.lists(st.sampled_from(PAIRS), max_size=3, unique=True))]
    return Part(name=name, intercept=draw(st.floats(-1, 1)), shapes=shapes, link=link, pairs=tuple(pairs))


@st.composite
def any_form(draw):
    parts = [draw(any_part("one"))]
    pool = draw(st.sampled_from([Alone(), Mixture((0.25, 0.75)), Layer(-0.5, (1.5, 2.0), Logistic())]))
    if not isinstance(pool, Alone):
        parts.append(draw(any_part("two")))
    kinds = {}
    for part in parts:
        for name, shape in list(part.shapes.items()):
            kinds.setdefault(name, isinstance(shape.levels, Categories))
            if kinds[name] != isinstance(shape.levels, Categories):  # one kind per feature
                del part.shapes[name]
    for k, part in enumerate(parts):
        for pair in part.pairs:
            for name, levels in zip(pair.features, pair.levels, strict=True):
                kinds.setdefault(name, isinstance(levels, Categories))
        parts[k] = msgspec.structs.replace(part, pairs=tuple(p for p in part.pairs if is_of(p, kinds)))
    features = {name: {"kind": "categorical" if kinds.get(name) else "continuous"} for name in NAMES}
    return RiskForm(schema=Schema(features=features), columns=NAMES, classes=(0, 1), parts=tuple(parts), pool=pool)


def is_of(pair, kinds):
    return all(kinds[n] == isinstance(lv, Categories) for n, lv in zip(pair.features, pair.levels, strict=True))


def level_of(levels, x):
    """Which level a value falls into, as the documentation says it."""
    if isinstance(levels, Categories):
        if x is None or x != x:
            return len(levels.categories)
        if not isinstance(x, str):
            x = str(int(x)) if float(x).is_integer() and abs(x) < 1e16 else str(float(x))
        return levels.categories.index(x) if x in levels.categories else len(levels.categories) + 1
    n = len(levels.edges) + 1
    if math.isnan(x):
        return len(levels) - 1
    if x in levels.special_values:
        return n + levels.special_values.index(x)
    if levels.lower_bound is not None and x < levels.lower_bound:
        return n + len(levels.special_values)
    return sum(x > edge for edge in levels.edges)


def plain_risk(form, row):
    """The formula, in plain Python."""

    def link(it, score):
        if isinstance(it, Logistic):
            return 1 / (1 + math.exp(-score))
        return min(max(it.offset + it.slope * score, it.low), it.high)

    risks = []
    for part in form.parts:
        score = part.intercept
        for name, shape in part.shapes.items():
            level = level_of(shape.levels, row[name])
            line = isinstance(shape, Line) and level == 0
            score += min(max(shape.slope * (row[name] - shape.center), -1e100), 1e100) if line else shape.scores[level]
        for pair in part.pairs:
            u, v = (level_of(lv, row[name]) for lv, name in zip(pair.levels, pair.features, strict=True))
            score += pair.scores[u][v]
        risks.append(link(part.link, score) if abs(score) < 700 else float(score > 0))
    if isinstance(form.pool, Alone):
        return risks[0]
    total = sum(w * r for w, r in zip(form.pool.weights, risks, strict=True))
    return total if isinstance(form.pool, Mixture) else link(form.pool.link, total + form.pool.intercept)


@settings(max_examples=150)
@given(any_form(), st.data())
def test_every_way_of_scoring_gives_the_same_bits_and_the_formula(form, data):
    values = NUMBERS | st.just(math.nan)
    matrix = np.array(data.draw(st.lists(st.lists(values, min_size=9, max_size=9), min_size=1, max_size=12)))
    risk = form.risk(as_frame(matrix, NAMES))
    rows = [dict(zip(NAMES, row, strict=True)) for row in matrix.tolist()]
    np.testing.assert_allclose(risk, [plain_risk(form, row) for row in rows], rtol=1e-12, atol=1e-14)
    ways = {
        "by rows": as_frame(matrix, NAMES),
        "by columns": as_frame(np.asfortranarray(matrix), NAMES),
        "pandas": pd.DataFrame(matrix, columns=NAMES),
        "polars": pl.DataFrame(matrix, schema=list(NAMES), nan_to_null=True),
        "dict": {name: matrix[:, j] for j, name in enumerate(NAMES)},
    }
    with pytest.MonkeyPatch.context() as patch:
        for block in (10**6, 2):
            patch.setattr("plainrisk.form.form.PIECE_ROWS", block)
            for way, table in ways.items():
                np.testing.assert_array_equal(form.risk(table), risk, err_msg=way)
    np.testing.assert_array_equal([form.risk(row)[0] for row in rows], risk)
    np.testing.assert_array_equal(form.probabilities(as_frame(matrix, NAMES)), np.column_stack([1 - risk, risk]))


@settings(max_examples=100)
@given(any_levels(), st.lists(st.integers(-7, 7), min_size=1, max_size=9))
def test_integers_of_any_size_have_the_levels_of_floats(levels, values):
    from plainrisk.data.frame import as_frame

    expected = [level_of(levels, float(v)) for v in values]
    for dtype in (np.int8, np.int32, np.int64, np.float32, np.float64):
        assert levels.codes(as_frame({"u": np.array(values, dtype)}), "u").tolist() == expected
        strided = np.repeat(np.array(values, dtype), 2)[::2]
        assert levels.codes(as_frame({"u": strided}), "u").tolist() == expected
    positive = [abs(v) for v in values]
    codes = levels.codes(as_frame({"u": np.array(positive, np.uint8)}), "u")
    assert codes.tolist() == [level_of(levels, float(v)) for v in positive]


# ---- text, threads, order


def small_form(**feature):
    jobs = Categories(("clerk", "cook"), 0)
    shapes = {
        "job": Table(levels=jobs, scores=(0.1, -0.2, 0.3, 0.7), weights=(1, 1, 1, 0), positives=(0, 0, 0, 0)),
        "age": Table(levels=Bins((30.0,)), scores=(0.5, -0.5, 0.1), weights=(1, 1, 0), positives=(0, 0, 0)),
    }
    schema = Schema(features={"job": {"kind": "categorical", **feature}, "age": {}})
    part = Part(name="all", intercept=0.25, shapes=shapes, link=Linear(slope=0.1, offset=0.5))
    return RiskForm(schema=schema, columns=("job", "age"), classes=(0, 1), parts=(part,), pool=Alone())


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, dict])
def test_text_and_threads(library, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    monkeypatch.setattr("plainrisk.form.form.PIECE_ROWS", 7)
    rng = np.random.default_rng(0)
    jobs = rng.choice(np.array(["clerk", "cook", None], dtype=object), 500)
    jobs[333] = "king"  # in one piece only, so the others are read the quick way
    ages = rng.choice([20.0, 30.0, 40.0, np.nan], 500)
    job = {"clerk": 0.1, "cook": -0.2, None: 0.3, "king": 0.7}
    expected = [
        0.5 + 0.1 * (0.25 + job[j] + (0.1 if a != a else 0.5 if a <= 30 else -0.5))
        for j, a in zip(jobs, ages.tolist(), strict=True)
    ]
    np.testing.assert_allclose(small_form().risk(library({"job": jobs.tolist(), "age": ages})), expected, rtol=1e-15)


@pytest.mark.parametrize("block", [7, 10**6])
def test_what_is_refused_in_a_block_is_named_with_its_row(block, monkeypatch):
    monkeypatch.setattr("plainrisk.form.form.PIECE_ROWS", block)
    X = pd.DataFrame({"job": ["cook"] * 100, "age": 40.0})
    strict = small_form(unseen="error")
    assert strict.risk(X).shape == (100,)
    X.loc[71, "job"] = "king"
    with pytest.raises(DataError, match="feature 'job', row 71: level 'unseen'"):
        strict.risk(X)
    X["age"] = X["age"].astype(object)
    X.loc[50, "age"] = "old"
    with pytest.raises(DataError, match="'age' is continuous but holds text in row 50"):
        small_form().risk(X)


def test_scores_keep_an_exact_order():
    rng = np.random.default_rng(1)
    shapes = {}
    for name in NAMES:
        bins = Bins(tuple(np.arange(6.0)))
        steps = np.cumsum(rng.choice([0.0, 1e-17, 1e-16, 0.1], 7))
        shapes[name] = Table(levels=bins, scores=(*steps, 0.0), weights=(1,) * 8, positives=(0,) * 8)
    part = Part(name="all", intercept=-1 / 3, shapes=shapes, link=Logistic())
    schema = Schema(features={name: {"direction": "increasing"} for name in NAMES})
    form = RiskForm(schema=schema, columns=NAMES, classes=(0, 1), parts=(part,), pool=Alone())
    low = rng.uniform(-1, 6, (5000, 9))
    high = low + rng.choice([0.0, 0.0, 1.0], low.shape)
    low, high = as_frame(low, NAMES), as_frame(high, NAMES)
    assert (form.score(high) >= form.score(low)).all()
    assert (form.risk(high) >= form.risk(low)).all()
    assert (form.score(high) > form.score(low)).mean() > 0.5


# ---- one row


ROW = {"job": "cook", "age": 40.0}


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        {**ROW, "other": 1, "note": "x", "gap": None},
        {**ROW, "age": 40},
        {**ROW, "age": np.float64(40.0)},
        {**ROW, "age": np.int64(40)},
        {**ROW, "age": True},
        {**ROW, "age": None},
        {**ROW, "age": math.nan},
        {**ROW, "age": 10**400 // 10**390},
        {**ROW, "age": 2**60},
        {**ROW, "job": None},
        {**ROW, "job": math.nan},
        {**ROW, "job": 3},
        {**ROW, "job": 3.5},
        {**ROW, "job": True},
        {**ROW, "job": np.str_("cook")},
        {"job": ["cook"], "age": [40.0]},
    ],
    ids=str,
)
def test_a_dict_of_one_row_is_a_table_of_one_row(row):
    form = small_form()
    columns = {name: value if isinstance(value, list) else [value] for name, value in row.items()}
    np.testing.assert_array_equal(form.risk(row), form.risk(columns))
    np.testing.assert_array_equal(form.probabilities(row)[:, 1], form.risk(columns))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"job": "cook"}, "feature 'age' is not in the data"),
        ({**ROW, "age": "old"}, "holds text in row 0"),
        ({**ROW, "age": math.inf}, r"'age' holds infinity \(row 0\)"),
        ({**ROW, "age": -math.inf}, r"'age' holds infinity \(row 0\)"),
        ({**ROW, "age": 10**400}, r"'age' holds infinity \(row 0\)"),
        ({**ROW, "job": "king"}, "feature 'job', row 0: level 'unseen'"),
        ({**ROW, "other": [1, 2]}, "different lengths"),
    ],
    ids=str,
)
def test_a_row_is_refused_as_a_table_is(row, message):
    with pytest.raises(DataError, match=message):
        small_form(unseen="error").risk(row)
