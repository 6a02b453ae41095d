from __future__ import annotations

import numpy as np
import pytest

from plainrisk import AdditiveRiskModel, Feature, Schema
from plainrisk.datasets import make_credit
from plainrisk_lab.paper import slsqp, variants

pytestmark = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")


@pytest.fixture(scope="module")
def credit():
    return make_credit(400, 3)


def test_slsqp_with_steps_enough_finds_our_optimum(credit) -> None:
    theirs = slsqp.SlsqpRiskModel(credit.schema, ridge=0.01, steps=1000).fit(credit.frame, credit.target)
    ours = AdditiveRiskModel(credit.schema, ridge=0.01, min_bin_rows=1).fit(credit.frame, credit.target)
    assert theirs.result_.objective == pytest.approx(ours.solution_.objective, abs=1e-4)
    np.testing.assert_allclose(theirs.predict_proba(credit.frame), ours.predict_proba(credit.frame), atol=0.02)


def test_fewer_steps_leave_more_undone(credit) -> None:
    few, many = (slsqp.arm1(credit.schema, steps=n).fit(credit.frame, credit.target).result_ for n in (3, 30))
    assert (few.iterations, many.iterations) == (3, 30)
    assert few.objective > many.objective


def test_lines_keep_their_signs(credit) -> None:
    model = slsqp.nnlr(credit.schema, scaled=True).fit(credit.frame, credit.target)
    matrix, signs = model._matrix(slsqp.as_frame(credit.frame))
    assert matrix.shape == (400, len(signs))
    assert (model.result_.coefficients * signs >= 0).all()
    assert (signs != 0).any()
    risk = model.predict_proba(credit.frame)[:, 1]
    assert risk[credit.target == 1].mean() > risk[credit.target == 0].mean()


def test_mixture_and_two_layers_take_slsqp_inside(credit) -> None:
    for make in (slsqp.arm2, slsqp.mixture):
        risk = make(credit.schema).fit(credit.frame, credit.target).predict_proba(credit.frame)[:, 1]
        assert risk[credit.target == 1].mean() > risk[credit.target == 0].mean()


def test_only_categories_lose_their_order(credit) -> None:
    model = variants.without_order(credit.schema, make="ARM1")
    for name, feature in model.schema.features.items():
        known = credit.schema.features[name]
        assert feature.direction == ("none" if known.kind == "categorical" else known.direction)
    assert (model.ridge, model.class_weight) == (0.0, "balanced")


def test_lines_take_a_line_as_link_and_a_number_of_steps(credit) -> None:
    curved, straight = (
        slsqp.nnlr(credit.schema, scaled=True, linearised=line, steps=7).fit(credit.frame, credit.target)
        for line in (False, True)
    )
    assert curved.result_.iterations == straight.result_.iterations == 7
    odds = curved.predict_proba(credit.frame)[:, 1]
    score = np.log(odds / (1 - odds))
    expected = np.clip(0.5 + score / (2 * 2.599681908314322), 0, 1)
    np.testing.assert_allclose(straight.predict_proba(credit.frame)[:, 1], expected, atol=1e-9)


def test_the_second_layer_is_fitted_on_lines(credit) -> None:
    model = variants.refitted_line(credit.schema, ridge=0.01).fit(credit.frame, credit.target)
    parts = np.column_stack([m.predict_proba(credit.frame)[:, 1] for m in model.estimator_.estimators_.values()])
    pool = model.form_.pool
    score = pool.intercept + parts @ np.array(pool.weights)
    expected = np.clip(0.5 + score / (2 * 2.599681908314322), 0, 1)
    np.testing.assert_allclose(model.predict_proba(credit.frame)[:, 1], expected, atol=1e-9)
    assert all(part.link.slope == pytest.approx(pool.link.slope) for part in model.form_.parts)


def test_a_code_is_read_as_a_number() -> None:
    schema = Schema(
        features={"x": Feature(special_values=(-6.0,), lower_bound=-5.5), "z": Feature()}, subscales={"a": ("x", "z")}
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = (x + rng.normal(size=300) > 0).astype(int)
    gaps = np.where(np.arange(300) % 5 == 0, np.nan, x)
    z = rng.normal(size=300)
    model = variants.codes_as_numbers(schema, make="arm1", steps=20).fit({"x": gaps, "z": z}, y)
    filled = model.predict_proba({"x": np.where(np.isnan(gaps), -6.0, gaps), "z": z})
    np.testing.assert_array_equal(model.predict_proba({"x": gaps, "z": z}), filled)
    lowest = model.predict_proba({"x": np.full(2, -50.0), "z": np.zeros(2)})
    np.testing.assert_array_equal(lowest, model.predict_proba({"x": np.full(2, np.nan), "z": np.zeros(2)}))
