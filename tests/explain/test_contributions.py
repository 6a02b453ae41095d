from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain.contributions import mean_rate
from plainrisk.explain.explanation import SHARES
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
        numbers |= {k: tuple(map(abs, numbers[k])) for k in ("weights", "positives")}
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
    "mixture": [Mixture((0.3, 0.7)), Mixture((0.3, 0.7), Bands((0.2, 0.5, 0.7), (0.1, 0.6, 0.8)))],
    "layer": [Layer(-0.4, (1.2, 0.9), LINKS[name]) for name in ("logistic", "clipped")],
}
CASES = {
    f"{kind} {k}: {', '.join(names)}": (make_form(pool, [LINKS[n] for n in names]), names)
    for kind, pools in POOLS.items()
    for k, pool in enumerate(pools)
    for names in itertools.combinations_with_replacement(LINKS, 1 if kind == "alone" else 2)
}
every_form = pytest.mark.parametrize("form", [f for f, _ in CASES.values()], ids=CASES.keys())


REFERENCES = {"typical": "typical", "best": "best", "row": rows(1)}


@every_form
@pytest.mark.parametrize("reference", REFERENCES)
def test_the_risk_of_the_reference_and_one_piece_per_shape_are_the_risk(form, reference):
    X = rows()
    found = pr.RiskModel(form).explain(X, reference=REFERENCES[reference], portfolio=X)
    assert (found.unit, found.reference) == ("probability", reference)
    np.testing.assert_array_equal(found.risk, form.risk(X))
    np.testing.assert_allclose(found.total, form.risk(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.constant + sum(found.by_subscale.values()), found.total, rtol=0, atol=1e-12)
    assert len(np.unique(found.constant)) == 1
    assert 0 <= found.constant[0] <= 1
    if reference == "row":
        assert found.constant[0] == pytest.approx(form.risk(REFERENCES["row"])[0], abs=1e-15)


@every_form
def test_log_odds_add_up_to_the_score_where_the_last_link_is_logistic(form):
    X, model = rows(), pr.RiskModel(form)
    if isinstance(form.last_link, Logistic):
        found = model.explain(X, unit="log odds")
        assert found.unit == "log odds"
        np.testing.assert_allclose(found.total, form.score(X), rtol=0, atol=1e-12)
    else:
        with pytest.raises(DataError, match="unit must be 'probability' for this model: its last link is not logistic"):
            model.explain(X, unit="log odds")


@every_form
def test_a_subscales_piece_is_the_chord_of_the_last_link(form):
    """By brute force: every subscale's risk less the reference's, times its weight and the outer mean slope."""
    X, r = rows(), rows(1)
    found = pr.RiskModel(form).explain(X, reference=r)
    if isinstance(form.pool, Alone):
        return
    steps = (form.part_risks(X) - form.part_risks(r)) * np.array(form.pool.weights)
    run, rise = form.score(X) - form.score(r), form.risk(X) - form.risk(r)
    rate = rise / np.where(run == 0, 1.0, run)
    for k, part in enumerate(form.parts):
        np.testing.assert_allclose(found.by_subscale[part.name], steps[:, k] * rate, rtol=0, atol=1e-12)


@every_form
def test_inside_a_subscale_pieces_stand_as_the_differences_of_scores(form):
    X, r = form.align(rows()), form.align(rows(1))
    found = pr.RiskModel(form).explain(X, reference=r)
    for part in form.parts:
        terms, zeros = (part.terms(frame, form.schema) for frame in (X, r))
        gaps = np.column_stack([terms[name] - zeros[name] for name in part.features])
        own = [j for j, key in enumerate(found.subscales) if isinstance(form.pool, Alone) or key == part.name]
        pieces = found.contributions[:, own]
        # Two vectors are parallel if all products across are equal.
        across = pieces[:, :1] * gaps - gaps[:, :1] * pieces
        np.testing.assert_allclose(across, 0.0, rtol=0, atol=1e-12)


@every_form
def test_there_is_one_piece_per_shape(form):
    found = pr.RiskModel(form).explain(rows())
    assert found.contributions.shape == (300, len(found.subscales)) == (300, len(found.features))
    pairs = list(zip(found.subscales, found.features, strict=True))
    assert len(set(pairs)) == len(pairs)
    if isinstance(form.pool, Alone):
        homes = {"age": "person", "job": "person", "debt": "money", "rent": "(no subscale)"}
        assert {f: s for s, f in pairs} == homes
        return
    for part in form.parts:
        assert {f for s, f in pairs if s == part.name} == set(part.shapes)


# ---- the mean slope of one link

POINTS = np.array([-30.0, -4.0, -1.0, -0.5, -1e-7, 0.0, 1e-12, 0.2, 0.35, 0.9, 1.0, 1.3, 7.0, 1e20])


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_the_mean_rate_is_the_mean_of_the_slope_on_the_way(link):
    start, score = (v.ravel() for v in np.meshgrid(POINTS[:-1], POINTS[:-1]))
    rate, bends = mean_rate(link, start, score)
    share = (np.arange(20_000) + 0.5) / 20_000
    for a, b, found in zip(start, score, rate, strict=True):
        assert found == pytest.approx(link.derivative(a + (b - a) * share).mean(), abs=2e-4)
    rise, run = link.value(score) - link.value(start), score - start
    np.testing.assert_allclose(rate * run, rise, rtol=0, atol=1e-14)
    same = run == 0
    np.testing.assert_allclose(rate[same], link.derivative(score[same]), rtol=1e-15)
    assert not bends[same].any()
    assert bends.any()


def test_a_way_on_one_straight_piece_does_not_bend_and_has_its_slope():
    link = LINKS["bands"]  # knots at -1, 0.2 and 1; 0 and 1 are reached at about -1.13 and 1.2
    start = np.array([-0.9, 0.3, -1.0, -5.0, -5.0, -0.9, 0.3, 3.0])
    score = np.array([0.1, 1.1, -1.1, -9.0, 9.0, 0.3, 3.0, 9.0])
    rate, bends = mean_rate(link, start, score)
    assert bends.tolist() == [False, False, False, False, True, True, True, False]
    first, second = link.rates
    assert rate[~bends].tolist() == [first, second, first, 0.0, 0.0]
    assert rate[4] == pytest.approx(1 / 14)


def test_the_text_says_that_points_are_shares_where_the_link_is_not_straight():
    form = make_form(Alone(), [LINKS["bands"]])
    X = rows()
    found = pr.RiskModel(form).explain(X)
    link, score = form.last_link, form.score(X)
    np.testing.assert_array_equal(found.rate, link.derivative(score))
    np.testing.assert_array_equal(found.band, link.band(score))
    inside = int(np.flatnonzero(found.bends & (found.rate > 0))[0])
    assert found.notes(inside) == [SHARES]
    plain = found.to_dict(inside)
    assert plain["bends"] is True
    assert plain["notes"] == found.notes(inside)
    assert plain["further_step"] == {"band": int(found.band[inside]), "rate": found.rate[inside]}
    straight = int(np.flatnonzero(~found.bends)[0])
    assert found.notes(straight) == []
    step = 1e-6
    np.testing.assert_allclose(
        (link.value(score + step) - found.risk)[inside], step * found.rate[inside], rtol=1e-6, atol=0
    )


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
    np.testing.assert_allclose(found.total, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    # The typical applicant of a fitted model is the intercept: its shapes are centered.
    if layers == 1:
        typical = model.form_.last_link.value(np.array([model.form_.parts[0].intercept]))
        assert found.constant[0] == pytest.approx(typical[0], abs=1e-9)


def test_no_rows_and_one_row():
    model = pr.RiskModel(make_form(Mixture((0.3, 0.7)), [LINKS["linear"]] * 2))
    assert model.explain(rows().iloc[:0]).total.shape == (0,)
    one = model.explain({"age": 31, "job": "a", "debt": 0.5, "rent": 1.0})
    assert one.total[0] == pytest.approx(one.risk[0], abs=1e-14)


FAR = (0.3, 1e5, -1e10, 1e20, -1e20, 1.7e308)
FAR_ROWS = pd.DataFrame([{"age": 25.0, "job": "a", "debt": debt, "rent": rent} for debt in FAR for rent in FAR])


@every_form
@pytest.mark.parametrize("reference", ["typical", "near", "far", "one far, one near"])
def test_contributions_add_up_far_outside_the_data(form, reference):
    row = {"near": 0, "far": 21, "one far, one near": 18}
    options = {"reference": FAR_ROWS.iloc[[row[reference]]] if reference in row else reference}
    found = pr.RiskModel(form).explain(FAR_ROWS, **options)
    np.testing.assert_allclose(found.total, form.risk(FAR_ROWS), rtol=0, atol=1e-12)
    assert np.abs(found.contributions).max() <= 250.0
    assert 0 <= found.constant.min() <= found.constant.max() <= 1


def test_contributions_far_out_keep_their_proportions():
    form = make_form(Alone(), [Linear(slope=0.4, offset=0.5)])
    X = FAR_ROWS.head(1).assign(debt=-2e20, rent=1e20)
    found = pr.RiskModel(form).explain(X)
    assert found.risk[0] != found.constant[0]
    names = list(found.features)
    debt, rent = (found.contributions[0, names.index(name)] for name in ("debt", "rent"))
    slopes = [form.parts[0].shapes[name].slope for name in ("debt", "rent")]
    assert debt / rent == pytest.approx(-2 * slopes[0] / slopes[1], rel=1e-12)
    assert 0 <= found.risk[0] <= 1


def test_two_features_that_offset_each_other_far_out():
    """The score is as the typical applicant's, yet each of two features is worth 1e20: the pieces stay numbers."""
    line = {"levels": Bins(), "scores": (0.0, 0.0), "weights": (9.0, 0.0), "positives": (4.0, 0.0), "center": 0.0}
    shapes = {"debt": Line(slope=1.0, **line), "rent": Line(slope=-1.0, **line)}
    part = Part(name="all", intercept=0.25, shapes=shapes, link=Linear())
    form = RiskForm(schema=SCHEMA, columns=tuple(SCHEMA.features), classes=(0, 1), parts=(part,), pool=Alone())
    found = pr.RiskModel(form).explain({"debt": [1e20, 0.5, 1e6], "rent": [1e20, 0.25, 1e6]})
    np.testing.assert_allclose(found.total, found.risk, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.contributions[:, 0] + found.contributions[:, 1], found.risk - 0.25, atol=1e-12)
    assert found.contributions[0].tolist() == pytest.approx([100, -100], abs=0.3)
    assert found.contributions[1].tolist() == [0.5, -0.25]


@pytest.mark.filterwarnings("ignore:.*the line is cut off")
def test_a_banded_model_is_explained_from_a_typical_risk():
    """Defect: a risky applicant's explanation began at a constant of 94%."""
    d = pr.datasets.make_credit(3000, 4)
    for name in ("BandARM1", "ARM1", "LinARM1"):
        model = pr.make_classifier(name, d.schema).fit(d.frame, d.target)
        found = model.explain(d.frame)
        worst = int(found.risk.argmax())
        assert found.risk[worst] > 0.5
        assert 0.02 < found.constant[worst] < 0.3
        assert np.abs(found.contributions[worst]).max() > 0.1
        assert np.abs(found.contributions).max() < 1.0
