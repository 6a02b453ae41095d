"""Overrides by brute force, and kappa as scikit-learn has it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.intervals import wilson


def sample(n=400):
    rng = np.random.default_rng(8)
    risk = rng.beta(1, 3, n)
    people = np.where(risk + rng.normal(0, 0.15, n) < 0.3, "approved", "refused").astype(object)
    y = np.where((people == "approved") & (rng.random(n) < 0.9), (rng.random(n) < risk).astype(float), np.nan)
    return risk, people, y


def test_cells_by_brute_force():
    risk, people, y = sample()
    found = pr.overrides(risk, None, y, decisions=people, cutoff=0.3)
    model = np.where(risk < 0.3, "approved", "refused")
    for cell in found.cells:
        rows = (model == cell.model) & (people == cell.person)
        outcomes = y[rows & ~np.isnan(y)]
        assert (cell.rows, cell.known) == (rows.sum(), len(outcomes))
        assert vars(cell.rate) == pytest.approx(vars(wilson(rows.sum(), (model == cell.model).sum())))
        assert cell.risk == pytest.approx(risk[rows].mean())
        expected = wilson(outcomes.sum(), len(outcomes)) if len(outcomes) else None
        assert expected is None or vars(cell.bad_rate) == pytest.approx(vars(expected))
        assert len(outcomes) or np.isnan(cell.bad_rate.estimate)
    assert found.kappa == pytest.approx(cohen_kappa_score(model, people))
    assert found.agreement.estimate == pytest.approx((model == people).mean())
    assert [(c.model, c.person) for c in found.cells[1:3]] == [("approved", "refused"), ("refused", "approved")]
    assert found.columns()["bad_rate"][0] == found.cells[0].bad_rate.estimate
    assert "agree on" in repr(found)


def test_where_the_good_outcome_is_predicted_the_sides_change():
    schema = pr.Schema(features={"income": {}}, adverse="negative")
    X = pl.DataFrame({"income": np.arange(200.0)})
    y = (np.random.default_rng(1).random(200) < np.arange(200) / 200).astype(int)
    model = pr.AdditiveRiskModel(schema).fit(X, y)
    risk, people = model.predict_proba(X)[:, 1], ["yes", "no"] * 100
    found = pr.overrides(model, X, y, decisions=people, cutoff=0.5)
    both = (risk >= 0.5) & (np.array(people) == "yes")
    assert found.cells[0].rows == both.sum()
    assert found.cells[0].bad_rate.estimate == pytest.approx((1 - y[both]).mean())
    assert found.cells[0].risk == pytest.approx(1 - risk[both].mean())


def test_words_for_approved_and_rows_without_a_decision():
    risk, people, _ = sample()
    whole = pr.overrides(risk, None, decisions=people, cutoff=0.3)
    coded = np.where(people == "approved", 7.0, 9.0)
    assert pr.overrides(risk, None, decisions=coded, approved=7, cutoff=0.3).cells == whole.cells
    holes = people.copy()
    holes[:50] = None
    some = pr.overrides(risk, None, decisions=holes, cutoff=0.3)
    assert (some.rows, some.undecided) == (350, 50)
    assert some.cells == pr.overrides(risk[50:], None, decisions=people[50:], cutoff=0.3).cells
    with pytest.raises(DataError, match="which of '7', '9' means approved"):
        pr.overrides(risk, None, decisions=coded, cutoff=0.3)
    with pytest.raises(DataError, match=r"no decision is 'approve'\. Did you mean 'approved'"):
        pr.overrides(risk, None, decisions=people, approved="approve", cutoff=0.3)
    with pytest.raises(DataError, match="decisions must be of two kinds, and there are 3"):
        pr.overrides(risk[:3], None, decisions=["a", "b", "c"], cutoff=0.3)
    with pytest.raises(DataError, match="there are 3 decisions for 400 rows"):
        pr.overrides(risk, None, decisions=["a", "b", "c"], cutoff=0.3)
    with pytest.raises(DataError, match="no row has a decision"):
        pr.overrides(risk, None, decisions=[None] * 400, approved="yes", cutoff=0.3)
    with pytest.raises(DataError, match="overrides: give a cutoff"):
        pr.overrides(risk, None, decisions=people)
