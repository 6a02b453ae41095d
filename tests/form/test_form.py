from __future__ import annotations

import math

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import PPoly

from plainrisk.errors import DataError, ModelFileError
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
    Part,
    RiskForm,
    Table,
)
from plainrisk.schema import Schema

SCHEMA = Schema(
    features={
        "income": {"direction": "decreasing", "special_values": (-9,), "lower_bound": 0.0},
        "job": {"kind": "categorical"},
        "debt": {"direction": "increasing"},
    }
)


def shape(kind, levels, scores, **more):
    counts = tuple(float(10 * (s != 0)) for s in scores)
    numbers = {"scores": scores, "weights": counts, "positives": tuple(0.3 * c for c in counts)}
    return kind(levels=levels, **numbers, **more)


def part(name="all", link=None, sign=1.0):
    income = Bins(edges=(10.0, 20.0), special_values=(-9.0,), lower_bound=0.0)
    return Part(
        name=name,
        intercept=-0.25 * sign,
        shapes={
            "income": shape(Table, income, (0.5, 0.25, -0.125, 0.75, -0.3, 0.0)),
            "job": shape(Table, Categories(("clerk", "cook"), 2), (0.1, -0.2, 0.3, 0.0)),
            "debt": shape(Line, Bins(), (0.0, -0.4), slope=0.02 * sign, center=30.0),
        },
        link=Logistic() if link is None else link,
    )


def form(pool=None, parts=None, schema=SCHEMA):
    return RiskForm(
        schema=schema,
        columns=("income", "job", "debt"),
        classes=("good", "bad"),
        parts=(part(),) if parts is None else parts,
        pool=Alone() if pool is None else pool,
    )


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "income": rng.choice([5.0, 10.0, 15.0, 20.0, 25.0, -9.0, -3.0, np.nan], n),
        "job": rng.choice(np.array(["clerk", "cook", "king", None], dtype=object), n),
        "debt": rng.choice([0.0, 30.0, 77.5, np.nan], n),
    })  # fmt: skip


# ---- evaluation, against plain Python


def plain_terms(income, job, debt, sign):
    if income == -9:
        a = 0.75
    elif math.isnan(income):
        a = 0.0
    elif income < 0:
        a = -0.3
    else:
        a = 0.5 if income <= 10 else 0.25 if income <= 20 else -0.125
    b = 0.3 if job is None or job != job else {"clerk": 0.1, "cook": -0.2}.get(job, 0.0)
    c = -0.4 if math.isnan(debt) else sign * 0.02 * (debt - 30.0)
    return -0.25 * sign + a + b + c


def plain_link(link, score):
    if isinstance(link, Logistic):
        return 1 / (1 + math.exp(-score))
    if isinstance(link, Bands):  # with one piece
        return min(max(link.values[0] + link.rates[0] * (score - link.knots[0]), 0.0), 1.0)
    return min(max(link.offset + link.slope * score, link.low), link.high)


STRAIGHT = Linear(slope=0.5, offset=0.4, low=0.2, high=0.7)
PARTS = (part("one"), part("two", STRAIGHT, -2.0))
FORMS = {
    "alone, logistic": form(),
    "alone, linear": form(parts=(part(link=STRAIGHT),)),
    "mixture": form(Mixture((0.25, 0.75)), PARTS),
    "mixture, calibrated": form(Mixture((0.25, 0.75), Bands((0.2, 0.6), (0.1, 0.8))), PARTS),
    "layer, logistic": form(Layer(-1.0, (2.0, 0.5), Logistic()), PARTS),
    "layer, linear": form(Layer(0.1, (0.9, 0.5), Linear()), PARTS),
}
every_form = pytest.mark.parametrize("model", FORMS.values(), ids=FORMS.keys())


@every_form
def test_risks_and_scores_are_those_of_the_formula(model):
    X = rows()
    signs = (1.0,) if isinstance(model.pool, Alone) else (1.0, -2.0)
    part_scores, part_risks = model.part_scores(X), model.part_risks(X)
    whole_scores, whole_risks = model.score(X), model.risk(X)
    for i, row in enumerate(X.itertuples(index=False)):
        scores = [plain_terms(*row, sign) for sign in signs]
        risks = [plain_link(p.link, s) for p, s in zip(model.parts, scores, strict=True)]
        if isinstance(model.pool, Alone):
            score, risk = scores[0], risks[0]
        else:
            score = sum(w * r for w, r in zip(model.pool.weights, risks, strict=True))
            score += model.pool.intercept if isinstance(model.pool, Layer) else 0.0
            risk = score if model.pool.link is None else plain_link(model.pool.link, score)
        assert part_scores[i] == pytest.approx(scores, abs=1e-14)
        assert part_risks[i] == pytest.approx(risks, abs=1e-14)
        assert whole_scores[i] == pytest.approx(score, abs=1e-14)
        assert whole_risks[i] == pytest.approx(risk, abs=1e-14)


@every_form
def test_a_row_has_the_same_risk_to_the_last_bit_in_any_company(model, monkeypatch):
    X = rows(150)
    methods = ("risk", "score", "part_risks", "part_scores")
    whole = {method: getattr(model, method)(X) for method in methods}
    assert len(np.unique(whole["risk"])) > 20
    np.testing.assert_array_equal([model.risk(X.iloc[[i]])[0] for i in range(12)], whole["risk"][:12])
    monkeypatch.setattr("plainrisk.form.form.PIECE_ROWS", 37)
    for method in methods:
        np.testing.assert_array_equal(getattr(model, method)(X), whole[method])


@every_form
def test_no_rows_give_no_risks(model):
    assert model.risk(rows().iloc[:0]).shape == (0,)


def test_a_pool_of_certain_parts_is_certain_and_no_more():
    n = next(n for n in range(2, 100) if np.cumsum([1 / n] * n)[-1] > 1)  # Python 3.12 adds without rounding
    model = form(Mixture((1 / n,) * n), tuple(part(f"p{j}", Linear(offset=9.0)) for j in range(n)))
    assert (model.risk(rows()) == 1.0).all()


def test_a_curve_is_scipys_piecewise_polynomial(rng):
    breaks, table = np.array([-1.0, 0.5, 2.0, 3.0]), rng.normal(size=(3, 4))
    curve = Curve(
        breaks=tuple(breaks),
        coefficients=tuple(map(tuple, table.tolist())),
        levels=Bins(),
        scores=(0.0, 0.5),
        weights=(1.0, 1.0),
        positives=(0.0, 0.0),
    )
    x = np.concatenate([rng.uniform(-3, 5, 200), breaks])
    np.testing.assert_allclose(curve.at(x), PPoly(table[:, ::-1].T, breaks)(x), rtol=1e-12, atol=1e-12)
    assert curve.values(pd_frame([np.nan]), "u").tolist() == [0.5]


def pd_frame(values):
    from plainrisk.data.frame import as_frame

    return as_frame({"u": values})


# ---- rows in, rows refused


def test_columns_are_found_by_name_never_by_position():
    model, X = form(), rows()
    risk = model.risk(X)
    np.testing.assert_array_equal(model.risk(X[["debt", "job", "income"]].assign(other=1)), risk)
    with pytest.raises(DataError, match="the model knows its features by name, but the rows have no column names"):
        model.risk(X.to_numpy())
    np.testing.assert_array_equal(model.risk(model.align(X.to_numpy(), list(X.columns))), risk)
    with pytest.raises(DataError, match=r"feature 'income' is not in the data\. Did you mean 'incme'"):
        model.risk(X.rename(columns={"income": "incme"}))


def test_a_feature_that_no_part_uses_need_not_be_there():
    wide = msgspec.structs.replace(SCHEMA, features={**SCHEMA.features, "zip": {}})
    X = rows()
    np.testing.assert_array_equal(form(schema=wide).risk(X), form().risk(X))


@pytest.mark.parametrize("block", [3, 10**6])
def test_a_refused_level_is_named_with_its_row(block, monkeypatch):
    monkeypatch.setattr("plainrisk.form.form.PIECE_ROWS", block)
    strict = {**SCHEMA.features, "job": {"kind": "categorical", "unseen": "error"}}
    model = form(schema=msgspec.structs.replace(SCHEMA, features=strict))
    X = rows().assign(job="cook")
    assert model.risk(X).shape == (40,)
    X.loc[17, "job"] = "king"
    with pytest.raises(DataError, match="feature 'job', row 17: level 'unseen' was not in the training"):
        model.risk(X)


@pytest.mark.parametrize("block", [3, 10**6])
def test_a_bad_value_is_named_with_its_row(block, monkeypatch):
    monkeypatch.setattr("plainrisk.form.form.PIECE_ROWS", block)
    X = rows()
    X.loc[23, "debt"] = np.inf
    with pytest.raises(DataError, match=r"feature 'debt' holds infinity \(row 23\)"):
        form().risk(X)


def test_numbers_beyond_all_bounds_still_give_a_risk():
    parts = (part(), part("down", sign=-2.0))
    model = form(Layer(0.0, (1.0, 1.0), Logistic()), parts)
    steep = msgspec.structs.replace(part().shapes["debt"], slope=1e300)
    fall = msgspec.structs.replace(part().shapes["debt"], slope=-1e300, center=-1e308)
    both = Part(name="all", intercept=0.0, shapes={"debt": steep, "income": fall}, link=Logistic())
    far = 1.7e308
    X = pd.DataFrame({"income": [far, -far, far], "job": "cook", "debt": [far, far, -far]})
    for m in (model, form(parts=(both,))):
        with np.errstate(all="raise", under="ignore"):
            risk = m.risk(X)
        assert ((risk >= 0) & (risk <= 1)).all()


# ---- forms that may not be


def replaced(struct, **fields):
    return lambda: msgspec.structs.replace(struct, **fields)


TABLE, LINE = part().shapes["income"], part().shapes["debt"]
NAN, INF = float("nan"), float("inf")
BAD = {
    "no parts": (lambda: form(parts=()), "0 parts do not fit a pool of 1"),
    "two alone": (lambda: form(Alone(), PARTS), "2 parts do not fit a pool of 1"),
    "one weight for two": (lambda: form(Mixture((1.0,)), PARTS), "2 parts do not fit a pool of 1"),
    "a layer without weights": (lambda: form(Layer(0.0, (), Logistic())), "1 parts do not fit a pool of 0"),
    "twins": (lambda: form(Mixture((0.5, 0.5)), (part("a"), part("a"))), "the same name"),
    "unknown feature": (lambda: form(schema=SCHEMA.select(["job", "debt"])), "'income', which the schema"),
    "weights over one": (lambda: Mixture((0.5, 0.6)), "sum to 1"),
    "negative weight": (lambda: Mixture((-0.5, 1.5)), "nonnegative"),
    "weight not a number": (lambda: Mixture((NAN, 1.0)), "nonnegative"),
    "layer not a number": (lambda: Layer(NAN, (1.0,), Logistic()), "second layer"),
    "layer infinite": (lambda: Layer(0.0, (INF,), Logistic()), "second layer"),
    "intercept": (replaced(part(), intercept=INF), "intercept of 'all'"),
    "huge intercept": (replaced(part(), intercept=1e300), "intercept of 'all'"),
    "score": (replaced(TABLE, scores=(NAN, *TABLE.scores[1:])), "scores of a shape"),
    "huge score": (replaced(TABLE, scores=(1e300, *TABLE.scores[1:])), "scores of a shape"),
    "weight": (replaced(TABLE, weights=(INF, *TABLE.weights[1:])), "weights of a shape"),
    "too few scores": (replaced(TABLE, scores=TABLE.scores[1:]), "6 levels has 5 scores"),
    "too many positives": (replaced(LINE, positives=(0.0, 0.0, 0.0)), "2 levels has 3 positives"),
    "slope": (replaced(LINE, slope=INF), "finite slope"),
    "center": (replaced(LINE, center=NAN), "finite slope"),
}  # fmt: skip


@pytest.mark.parametrize(("build", "message"), BAD.values(), ids=BAD.keys())
def test_no_form_is_made_that_can_not_be_evaluated(build, message):
    with pytest.raises(ModelFileError, match=message):
        build()


def test_structure():
    assert FORMS["mixture"].last_link is None
    assert FORMS["layer, linear"].last_link == Linear()
    assert FORMS["alone, linear"].last_link == STRAIGHT
    speaks = {name: model.speaks_probability for name, model in FORMS.items()}
    assert [name for name, holds in speaks.items() if holds] == ["alone, linear"]
    bands = Bands((-1.0, 1.0), (0.1, 0.9))
    straight = (part("one", bands), part("two", STRAIGHT))
    assert form(Layer(0.1, (0.9, 0.5), Linear()), straight).speaks_probability
    assert form(Mixture((0.5, 0.5)), straight).speaks_probability
