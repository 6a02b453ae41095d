from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.form import (
    Alone,
    Bands,
    Bins,
    Categories,
    Layer,
    Line,
    Linear,
    Logistic,
    Mixture,
    Part,
    RiskForm,
    Table,
)

SCHEMA = pr.Schema(
    features={"age": {}, "job": {"kind": "categorical"}, "debt": {}, "rent": {}},
    subscales={"person": ("age", "job"), "money": ("debt", "job")},
)
LINKS = {
    "logistic": Logistic(),
    "linear": Linear(slope=0.4, offset=0.5),
    "clipped": Linear(slope=1.5, offset=0.3, low=0.1, high=0.8),
    "bands": Bands((-1.0, 0.2, 1.0), (0.05, 0.5, 0.9)),
}


def make_part(name, features, link, seed):
    rng = np.random.default_rng(seed)
    levels = {"job": Categories(("a", "b"), 2), "age": Bins((30.0, 40.0))}
    shapes = {}
    for feature in features:
        lv = levels.get(feature, Bins())
        numbers = {k: tuple(rng.normal(size=len(lv)).tolist()) for k in ("scores", "weights", "positives")}
        if feature in levels:
            shapes[feature] = Table(levels=lv, **numbers)
        else:
            shapes[feature] = Line(levels=lv, slope=rng.normal(), center=rng.normal(), **numbers)
    return Part(name=name, intercept=rng.normal(), shapes=shapes, link=link)


def make_form(pool, links):
    if isinstance(pool, Alone):
        parts = (make_part("all", SCHEMA.features, links[0], 0),)
    else:
        parts = tuple(
            make_part(s, members, link, k)
            for k, ((s, members), link) in enumerate(zip(SCHEMA.subscales.items(), links, strict=True))
        )
    return RiskForm(schema=SCHEMA, columns=tuple(SCHEMA.features), classes=(0, 1), parts=parts, pool=pool)


def rows(n=300):
    rng = np.random.default_rng(9)
    return pd.DataFrame({
        "age": rng.choice([25.0, 35.0, 45.0, np.nan], n),
        "job": rng.choice(np.array(["a", "b", "c", None], dtype=object), n),
        "debt": rng.normal(size=n) * 2,
        "rent": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
    })  # fmt: skip


POOLS = {
    "alone": [Alone()],
    "mixture": [Mixture((0.3, 0.7))],
    "layer": [Layer(-0.4, (1.2, 0.9), LINKS[name]) for name in ("logistic", "clipped")],
}
CASES = {
    f"{kind} {k}: {', '.join(names)}": (make_form(pool, [LINKS[n] for n in names]), names)
    for kind, pools in POOLS.items()
    for k, pool in enumerate(pools)
    for names in itertools.product(LINKS, repeat=1 if kind == "alone" else 2)
}
every_form = pytest.mark.parametrize("form", [f for f, _ in CASES.values()], ids=CASES.keys())


@every_form
def test_the_contributions_add_up(form):
    X = rows()
    found = pr.RiskModel(form).explain(X)
    np.testing.assert_array_equal(found.risk, form.risk(X))
    last = form.last_link
    if isinstance(last, Logistic):
        assert found.unit == "log odds"
        np.testing.assert_allclose(found.total, form.score(X), rtol=0, atol=1e-12)
    else:
        assert found.unit == "probability"
        np.testing.assert_allclose(found.total, form.risk(X), rtol=0, atol=1e-12)
    by_subscale = sum(found.by_subscale.values())
    np.testing.assert_allclose(found.constant + by_subscale + found.clipping, found.total, rtol=0, atol=1e-12)


@every_form
def test_the_finest_exact_pieces_are_named(form):
    found = pr.RiskModel(form).explain(rows())
    assert found.contributions.shape == (300, len(found.subscales)) == (300, len(found.features))
    pairs = list(zip(found.subscales, found.features, strict=True))
    assert len(set(pairs)) == len(pairs)
    if isinstance(form.pool, Alone):
        homes = {"age": "person", "job": "person", "debt": "money", "rent": "(no subscale)"}
        assert {f: s for s, f in pairs} == homes
        return
    for part in form.parts:
        own = {f for s, f in pairs if s == part.name}
        assert own == ({None} if isinstance(part.link, Logistic) else set(part.shapes))


def test_the_cases_clip_and_do_not():
    """The sums above mean little unless some rows are clipped and some are not."""
    for form, names in CASES.values():
        clipping = pr.RiskModel(form).explain(rows()).clipping
        if "clipped" in names:
            assert (clipping < -1e-6).any()
            assert (clipping > 1e-6).any()
            assert (np.abs(clipping) < 1e-12).any()
        if set(names) == {"logistic"} and isinstance(form.pool, Alone):
            assert (clipping == 0).all()


def test_a_contribution_is_what_the_feature_changes():
    """On one straight piece, swapping one feature changes the risk by the difference of its contributions."""
    form = make_form(Alone(), [Linear(slope=0.02, offset=0.5)])
    X = rows(2).assign(age=[25.0, 45.0], job=["a", "a"], debt=[1.0, 1.0], rent=[0.5, 0.5])
    found = pr.RiskModel(form).explain(X)
    age = found.features.index("age")
    change = found.contributions[1] - found.contributions[0]
    assert change[age] == pytest.approx(found.risk[1] - found.risk[0], abs=1e-15)
    assert change[age] != 0
    assert np.delete(change, age).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("link", ["logistic", "linear"])
@pytest.mark.parametrize("layers", [1, 2])
def test_fitted_models_explain_themselves(link, layers, rng):
    X = rows(400)
    y = (X["debt"] + rng.normal(size=400) > 0).astype(int)
    kind = pr.AdditiveRiskModel if layers == 1 else pr.TwoLayerRiskModel
    model = kind(schema=SCHEMA, link=link, ridge=0.01).fit(X, y)
    found = model.explain(X)
    whole = model.predict_proba(X)[:, 1] if link == "linear" else model.form_.score(X)
    np.testing.assert_allclose(found.total, whole, rtol=0, atol=1e-12)
    assert found.unit == ("probability" if link == "linear" else "log odds")


def test_no_rows_and_one_row():
    model = pr.RiskModel(make_form(Mixture((0.3, 0.7)), [LINKS["linear"]] * 2))
    assert model.explain(rows().iloc[:0]).total.shape == (0,)
    one = model.explain({"age": 31, "job": "a", "debt": 0.5, "rent": 1.0})
    assert one.total[0] == pytest.approx(one.risk[0], abs=1e-14)


FAR = (0.3, 1e5, -1e10, 1e20, -1e20, 1.7e308)
FAR_ROWS = pd.DataFrame([{"age": 25.0, "job": "a", "debt": debt, "rent": rent} for debt in FAR for rent in FAR])


@every_form
@pytest.mark.parametrize("reference", ["constant", "near", "far", "one far, one near"])
def test_contributions_add_up_far_outside_the_data(form, reference):
    row = {"near": 0, "far": 21, "one far, one near": 18}
    options = {"reference": FAR_ROWS.iloc[[row[reference]]] if reference in row else reference}
    for unit in (None, "probability"):
        found = pr.RiskModel(form).explain(FAR_ROWS, unit=unit, **options)
        if found.unit == "log odds" and isinstance(form.pool, Alone):
            continue  # the sum itself is huge
        whole = form.score(FAR_ROWS) if found.unit == "log odds" else found.risk
        np.testing.assert_allclose(found.total, whole, rtol=0, atol=1e-12)
        assert np.abs(found.contributions).max() <= 100.0 * (1 + 1e-15)


def test_contributions_far_out_keep_their_proportions():
    form = make_form(Alone(), [Linear(slope=0.4, offset=0.5)])
    X = FAR_ROWS.head(1).assign(debt=2e20, rent=-1e20)
    found = pr.RiskModel(form).explain(X)
    names = list(found.features)
    debt, rent = (found.contributions[0, names.index(name)] for name in ("debt", "rent"))
    slopes = [form.parts[0].shapes[name].slope for name in ("debt", "rent")]
    assert debt / rent == pytest.approx(-2 * slopes[0] / slopes[1], rel=1e-12)
    assert 10 < max(abs(debt), abs(rent)) <= 100


def test_a_reference_that_is_cut_off_far_out_is_said_to_be():
    form = make_form(Alone(), [Linear(slope=0.4, offset=0.5)])
    near, far = FAR_ROWS.iloc[[0]], FAR_ROWS.iloc[[18]]
    found = pr.RiskModel(form).explain(near, reference=far)
    (what, _), *others = found.cuts(0)
    assert what.startswith("row cut off at")
    assert not others
