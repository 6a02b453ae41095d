from __future__ import annotations

import json

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain import Refits, explain, overview
from plainrisk.explain.overview import shape_table
from plainrisk.explain.reference import make_reference
from plainrisk.form import Alone

pytestmark = pytest.mark.filterwarnings("ignore:.*the line is cut off")


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(3000, 5, backend="polars")


@pytest.fixture(scope="module", params=["ARM1", "DirectARM1", "LinARM2", "MixLinARM1", "MixARM1", "BandARM1"])
def model(request, credit):
    return pr.make_classifier(request.param, credit.schema).fit(credit.frame, credit.target)


def test_the_tables_are_those_of_the_form(model, credit):
    found = model.overview()
    for part in model.form_.parts:
        for name, shape in part.shapes.items():
            table = found.shape(name, part.name)
            assert table.labels == shape.levels.labels
            assert table.score.tolist() == list(shape.scores)
            assert table.rows.sum() == 3000
            codes = shape.levels.codes(model.form_.align(credit.frame), name)
            rates = pd.Series(credit.target).groupby(codes).mean()
            np.testing.assert_allclose(table.bad_rate[rates.index], rates)


def test_an_effect_is_what_the_level_does_to_the_typical_applicant(model):
    """By brute force: score the parts of the typical applicant with one level changed."""
    form = model.form_
    found = model.overview()
    weights = [1.0] if isinstance(form.pool, Alone) else form.pool.weights

    def risk(scores):
        values = [float(part.link.value(np.array([s]))[0]) for part, s in zip(form.parts, scores, strict=True)]
        if isinstance(form.pool, Alone):
            return values[0]
        score = getattr(form.pool, "intercept", 0.0) + np.dot(weights, values)
        return float(score if form.last_link is None else form.last_link.value(np.array([score]))[0])

    means = {
        (p.name, name): np.dot(s.weights, s.scores) / np.sum(s.weights)
        for p in form.parts
        for name, s in p.shapes.items()
    }
    typical = [p.intercept + sum(means[p.name, name] for name in p.shapes) for p in form.parts]
    for k, part in enumerate(form.parts):
        for name, shape in part.shapes.items():
            table = found.shape(name, part.name)
            for j, score in enumerate(shape.scores):
                changed = [s + (score - means[part.name, name]) * (i == k) for i, s in enumerate(typical)]
                assert table.effect[j] == pytest.approx(risk(changed) - risk(typical), abs=1e-12)
    assert {i.unit for i in found.importance} == {"probability"}


def test_importance_from_counts_is_the_mean_over_the_training_rows(model, credit):
    """Counting levels and averaging the effects of rows' levels give the same."""
    found = model.overview()
    assert [i.mean for i in found.importance] == sorted((i.mean for i in found.importance), reverse=True)
    for i in found.importance:
        table = found.shape(i.feature, i.subscale)
        codes = (
            next(p for p in model.form_.parts if p.name == i.subscale)
            .shapes[i.feature]
            .levels.codes(model.form_.align(credit.frame), i.feature)
        )
        assert i.mean == pytest.approx(np.abs(table.effect[codes]).mean())
        assert i.span == pytest.approx(np.ptp(table.effect[codes]))


def test_importance_over_given_rows(model, credit):
    rows = credit.frame[:200]
    said = model.explain(rows)
    found = {(i.subscale, i.feature): i.mean for i in model.overview(rows).importance}
    for s, f, column in zip(said.subscales, said.features, said.contributions.T, strict=True):
        assert found[s, f] == pytest.approx(np.abs(column).mean())


def test_weights_of_the_subscales(credit):
    mixed = pr.SubscaleMixture(pr.AdditiveRiskModel(), credit.schema).fit(credit.frame, credit.target)
    assert mixed.overview().weights == pytest.approx(mixed.weights_)
    alone = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    assert alone.overview().weights == {}


def test_lines_show_a_step_and_are_ranked_by_their_mean_distance(credit):
    schema = credit.schema.select(["income", "age"])
    model = pr.make_classifier("LinNNLR", schema).fit(credit.frame, credit.target)
    found = model.overview()
    table = found.shape("age")
    shape, link = model.form_.parts[0].shapes["age"], model.form_.last_link
    assert table.labels[0] == "per unit"
    assert table.score[0] == pytest.approx(shape.slope)
    assert table.effect[0] == pytest.approx(shape.slope * link.slope)
    age = np.asarray(credit.frame["age"].to_numpy(), dtype=float)
    age = age[~np.isnan(age)]
    assert shape.deviation == pytest.approx(np.abs(age - age.mean()).mean(), rel=1e-9)
    # What a line does is its slope times the distance from the mean, on average over the measured rows.
    (one,) = [i for i in found.importance if i.feature == "age"]
    missing = shape.weights[-1] * abs(table.effect[-1])
    wanted = (len(age) * shape.deviation * abs(shape.slope) * link.slope + missing) / len(credit.frame)
    assert one.mean == pytest.approx(wanted, rel=1e-6)
    assert one.span == pytest.approx(np.ptp(age) * abs(shape.slope) * link.slope, rel=1e-6)
    values, effects = table.curve
    assert (values[0], values[-1]) == (age.min(), age.max())
    np.testing.assert_allclose(np.diff(effects) / np.diff(values), shape.slope * link.slope, rtol=1e-6)
    figure = found.plot("age")[0].figure
    assert len(figure.axes[0].lines[0].get_xdata()) == len(values)
    assert len(found.plot_importance(most=2).patches) == 2
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_a_linearised_regression_is_seen_like_any_other(credit):
    frame = credit.frame.select(["income", "age"])
    values = np.nan_to_num(frame.to_numpy().astype(float), nan=40.0) / [1000.0, 1.0]
    rows = pd.DataFrame(values, columns=["income", "age"])
    model = pr.linearise(LogisticRegression().fit(rows, credit.target), rows)
    found = model.overview()
    over_rows = {i.feature: i.mean for i in model.overview(rows).importance}
    for one in found.importance:
        assert one.mean == pytest.approx(over_rows[one.feature], rel=0.1)  # over rows, clipped ones count less
    found.plot("age")
    assert model.scorecard().rows[0].level == "per unit"
    bare = pr.linearise(LogisticRegression().fit(rows, credit.target))
    with pytest.raises(DataError, match="lines without counts need rows"):
        bare.overview().plot_importance()
    bare.overview(rows).plot("age")


def test_without_training_counts_the_rows_say_who_is_typical(model, credit):
    bare = [
        msgspec.structs.replace(
            part,
            shapes={
                name: msgspec.structs.replace(s, weights=(0.0,) * len(s.scores)) for name, s in part.shapes.items()
            },
        )
        for part in model.form_.parts
    ]
    form = msgspec.structs.replace(model.form_, parts=tuple(bare))
    assert all(table.effect is None for table in overview(form).shapes)
    known, given = model.overview(credit.frame), overview(form, credit.frame)
    for a, b in zip(known.shapes, given.shapes, strict=True):
        np.testing.assert_allclose(a.effect, b.effect, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_pairs_have_tables_and_importance(make_form, every_row, seed):
    form = make_form(seed, pairs=True)
    found, by_rows = overview(form), overview(form, every_row)
    start = explain(form, every_row).constant[0]
    for part in form.parts:
        for pair in part.pairs:
            table = found.shape(pair.name, part.name)
            assert table.score.tolist() == np.ravel(pair.scores).tolist()
            assert table.labels[1] == f"{pair.levels[0].labels[0]} × {pair.levels[1].labels[1]}"
            if isinstance(form.pool, Alone):
                mean = np.vdot(pair.weights, pair.scores) / np.sum(pair.weights)
                typical = make_reference(form, "typical").points[0].score
                risk = form.last_link.value(typical + table.score - mean)
                np.testing.assert_allclose(table.effect, risk - start, rtol=0, atol=1e-12)
            for view in (found, by_rows):
                names = [i.feature for i in view.importance]
                assert pair.name in names


def test_intervals_of_pairs(make_form):
    form = next(f for f in (make_form(s, pairs=True) for s in range(12)) if isinstance(f.pool, Alone))
    pair = form.parts[0].pairs[0]
    other = msgspec.structs.replace(pair, scores=tuple(tuple(s + 1.0 for s in row) for row in pair.scores))
    part = msgspec.structs.replace(form.parts[0], pairs=(other, *form.parts[0].pairs[1:]))
    refits = Refits(form, (form, msgspec.structs.replace(form, parts=(part,))))
    assert refits.shape(pair.name).estimate.tolist() == np.ravel(pair.scores).tolist()
    assert (refits.shape(pair.name).high > refits.shape(pair.name).low).all()
    np.testing.assert_array_equal(refits.effects(pair.name).estimate, overview(form).shape(pair.name).effect)


def test_handing_on(model):
    found = model.overview()
    for like in (pd.DataFrame(), pl.DataFrame()):
        frame = found.to_frame(like)
        assert list(frame.columns) == ["part", "feature", "level", "rows", "bad_rate", "score", "effect"]
        assert len(frame) == sum(len(t.labels) for t in found.shapes)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["shapes"][0]["feature"] == found.shapes[0].feature
    with pytest.raises(DataError, match=r"There is no table of 'agee'. Did you mean 'age'"):
        found.shape("agee")


def test_counts_that_are_none_give_no_rate_above_1(make_form):
    """A forged file may say that a level has fewer rows than bad ones."""
    form = make_form(0)
    (part, *others) = form.parts
    name, shape = next(iter(part.shapes.items()))
    forged = msgspec.structs.replace(shape, weights=(1e-320, *shape.weights[1:]))
    shapes = {**part.shapes, name: forged}
    form = msgspec.structs.replace(form, parts=(msgspec.structs.replace(part, shapes=shapes), *others))
    assert forged.positives[0] > 0
    assert shape_table(form, None, 0, name).bad_rate[0] == 1.0
