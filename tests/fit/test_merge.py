"""Merged tables: what they cost, the rows each row of a table stands for, and what their scores are means of."""

from __future__ import annotations

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.fit.basis import table_part
from plainrisk.fit.finer import code_fine_rows, some_cuts
from plainrisk.fit.merge import FineTables
from plainrisk.fit.plan import Plan, fit_plan
from plainrisk.fit.training import read_training
from plainrisk.form import Bins, Logistic

pytestmark = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")


@pytest.fixture(scope="module", params=[False, True], ids=["rows", "weights"])
def tables(request):
    credit = pr.datasets.make_credit(2000, 6, backend="pandas")
    weight = np.random.default_rng(0).uniform(0.1, 3.0, 2000) if request.param else None
    training = read_training(credit.frame, credit.target, credit.schema, weight, None)
    coded = code_fine_rows(training)
    fitted = fit_plan(Plan(coded, credit.schema, "logistic", "smooth", total=2000.0, cuts=some_cuts(coded, 64)))
    part = table_part(fitted.basis, float(fitted.point[0]), fitted.point[1:], Logistic(), credit.schema)
    return FineTables(part, fitted.basis, [], credit.schema), credit, weight


def loss_of(part, credit, weight):
    form = pr.form.RiskForm(
        schema=credit.schema, columns=tuple(credit.frame), classes=(0, 1), parts=(part,), pool=pr.form.Alone()
    )
    score = form.score(credit.frame)
    return np.average(np.logaddexp(0, score) - credit.target * score, weights=weight)


@pytest.mark.parametrize("floor", [0.0, 0.01, 0.1, 0.6])
@pytest.mark.parametrize("tolerance", [0.0, 1e-4])
def test_every_row_of_a_table_stands_for_enough_rows(tables, floor, tolerance):
    fine, credit, weight = tables
    merged = fine.merged(tolerance, None, floor)
    finest = fine.merged(0.0, None, floor)
    total = 2000 if weight is None else weight.sum()
    for table in merged.part.shapes.values():
        inside = table.weights[: table.levels.n_ordered]
        assert sum(table.weights) == pytest.approx(total)
        if isinstance(table.levels, Bins) and sum(inside) >= floor * total:
            assert min(inside) >= floor * total * (1 - 1e-9)
        if floor == 0.6 and isinstance(table.levels, Bins):
            assert len(inside) == 1
    assert loss_of(merged.part, credit, weight) <= loss_of(finest.part, credit, weight) + tolerance + 1e-12


def test_a_limit_of_rows_goes_before_the_tolerance(tables):
    fine, _, _ = tables
    merged = fine.merged(0.0, 3, 0.0)
    counts = [t.levels.n_ordered for t in merged.part.shapes.values() if isinstance(t.levels, Bins)]
    assert max(counts) == 3


def test_each_score_is_a_mean_of_the_levels_it_stands_for(tables):
    """So its covariance follows from theirs."""
    fine, _, _ = tables
    merged = fine.merged(1e-3, None, 0.01)
    for j, (name, table) in enumerate(merged.part.shapes.items()):
        means = merged.means[j]
        np.testing.assert_allclose(means.sum(axis=1), 1.0)
        n = table.levels.n_ordered
        scores = np.asarray(fine.part.shapes[name].scores)
        np.testing.assert_allclose((means @ scores)[:n], table.scores[:n], atol=1e-12)
        if isinstance(table.levels, Bins):
            assert len(means) == len(table.scores) < len(scores)


def test_the_scores_of_levels_are_those_of_their_rows(tables):
    fine, credit, _ = tables
    merged = fine.merged(1e-3, None, 0.01)
    frame = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target).form_.align(credit.frame)
    for j, (name, table) in enumerate(merged.part.shapes.items()):
        coarse, own = table.levels.codes(frame, name), fine.basis.coded.levels[j].codes(frame, name)
        np.testing.assert_array_equal(np.asarray(table.scores)[coarse], merged.level_scores[j][own])


def test_edges_that_the_schema_states_stay(tables):
    _, credit, _ = tables
    schema = pr.Schema(features={"age": {"edges": (30.0, 50.0)}, "income": {}})
    model = pr.AdditiveRiskModel(schema, shapes="smooth", min_bin_rows=900).fit(credit.frame, credit.target)
    shapes = model.form_.parts[0].shapes
    assert shapes["age"].levels.edges == (30.0, 50.0)
    assert shapes["income"].levels.n_ordered <= 2
