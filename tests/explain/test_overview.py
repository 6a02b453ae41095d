from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain.reference import zero_reference
from plainrisk.form import Table

pytestmark = pytest.mark.filterwarnings("ignore:.*the line is cut off")


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(3000, 5, backend="polars")


@pytest.fixture(scope="module", params=["ARM1", "DirectARM1", "DirectARM2", "MixLinARM1", "MixARM1", "BandARM1"])
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


def test_an_effect_is_what_the_level_does_to_the_risk(model, credit):
    """Where there is one: swap one feature between two levels and look at rows that nothing clips."""
    found = model.overview()
    straight = model.form_.speaks_probability and "Band" not in type(model.form_.last_link).__name__
    assert all((t.effect is not None) == straight for t in found.shapes)
    if not straight:
        return
    raised, lowered = (credit.frame.with_columns(pl.lit(v, dtype=pl.Int32).alias("age")) for v in (20, 45))
    change = model.predict_proba(raised)[:, 1] - model.predict_proba(lowered)[:, 1]
    clipped = (model.explain(raised).clipping != 0) | (model.explain(lowered).clipping != 0)
    table = found.shape("age")
    shape = next(p.shapes["age"] for p in model.form_.parts if "age" in p.shapes)
    a, b = (int(shape.levels.code_numbers(np.array([v]))[0]) for v in (20.0, 45.0))
    assert (~clipped).sum() > 100
    np.testing.assert_allclose(change[~clipped], table.effect[a] - table.effect[b], rtol=0, atol=1e-12)


def test_importance_from_counts_is_the_mean_over_the_training_rows(model, credit):
    """For one part and straight links, counting levels and averaging rows give the same."""
    found = model.overview()
    assert [i.mean for i in found.importance] == sorted((i.mean for i in found.importance), reverse=True)
    for i in found.importance:
        table = found.shape(i.feature, i.subscale)
        amount = table.score if table.effect is None else table.effect
        codes = (
            next(p for p in model.form_.parts if p.name == i.subscale)
            .shapes[i.feature]
            .levels.codes(model.form_.align(credit.frame), i.feature)
        )
        assert i.mean == pytest.approx(np.abs(amount[codes]).mean())
        assert i.span == pytest.approx(np.ptp(amount[codes]))


def test_importance_over_given_rows(model, credit):
    rows = credit.frame[:200]
    said = model.explain(rows, reference=zero_reference(model.form_), split="chord")
    found = {(i.subscale, i.feature): i.mean for i in model.overview(rows).importance}
    for s, f, column in zip(said.subscales, said.features, said.contributions.T, strict=True):
        assert found[s, f] == pytest.approx(np.abs(column).mean())


def test_weights_of_the_subscales(credit):
    mixed = pr.SubscaleMixture(pr.AdditiveRiskModel(), credit.schema).fit(credit.frame, credit.target)
    assert mixed.overview().weights == pytest.approx(mixed.weights_)
    alone = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    assert alone.overview().weights == {}


def test_lines_have_no_one_effect_but_an_importance_over_rows(credit):
    model = pr.NonnegativeLogisticRegression(credit.schema.select(["income", "age"])).fit(credit.frame, credit.target)
    found = model.overview()
    assert np.isnan(found.shape("income").score[0])
    assert all(np.isnan(i.mean) for i in found.importance)
    assert not any(isinstance(s, Table) for s in model.form_.parts[0].shapes.values())
    assert model.overview(credit.frame).importance[0].mean > 0
    with pytest.raises(DataError, match="need rows"):
        found.plot_importance()


def test_handing_on(model):
    found = model.overview()
    for like in (pd.DataFrame(), pl.DataFrame()):
        frame = found.to_frame(like)
        assert list(frame.columns) == ["part", "feature", "level", "rows", "bad_rate", "score", "effect"]
        assert len(frame) == sum(len(t.labels) for t in found.shapes)
        assert len(found.to_frame(like, what="importance")) == len(found.importance)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["shapes"][0]["feature"] == found.shapes[0].feature
    with pytest.raises(DataError, match=r"There is no table of 'agee'. Did you mean 'age'"):
        found.shape("agee")
    with pytest.raises(DataError, match="what must be 'shapes' or 'importance'"):
        found.to_frame(what="all")
