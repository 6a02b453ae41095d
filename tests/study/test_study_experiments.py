from __future__ import annotations

import numpy as np
import pytest

from plainrisk import AdditiveRiskModel
from plainrisk.datasets import make_credit
from plainrisk.study import experiments, slsqp

pytestmark = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")


@pytest.fixture(scope="module")
def credit():
    return make_credit(400, 3)


def test_slsqp_with_steps_enough_finds_our_optimum(credit) -> None:
    theirs = slsqp.SlsqpRiskModel(credit.schema, ridge=0.01, steps=1000).fit(credit.frame, credit.target)
    ours = AdditiveRiskModel(credit.schema, ridge=0.01).fit(credit.frame, credit.target)
    assert theirs.solution_.objective == pytest.approx(ours.solution_.objective, abs=1e-4)
    np.testing.assert_allclose(theirs.predict_proba(credit.frame), ours.predict_proba(credit.frame), atol=0.02)


def test_fewer_steps_leave_more_undone(credit) -> None:
    few, many = (slsqp.arm1(credit.schema, steps=n).fit(credit.frame, credit.target).solution_ for n in (3, 30))
    assert (few.iterations, many.iterations) == (3, 30)
    assert few.objective > many.objective


def test_lines_keep_their_signs(credit) -> None:
    model = slsqp.nnlr(credit.schema, scaled=True).fit(credit.frame, credit.target)
    matrix, signs = model._matrix(slsqp.as_frame(credit.frame))
    assert matrix.shape == (400, len(signs))
    assert (model.solution_.coefficients * signs >= 0).all()
    assert (signs != 0).any()
    risk = model.predict_proba(credit.frame)[:, 1]
    assert risk[credit.target == 1].mean() > risk[credit.target == 0].mean()


def test_mixture_and_two_layers_take_slsqp_inside(credit) -> None:
    for make in (slsqp.arm2, slsqp.mixture):
        risk = make(credit.schema).fit(credit.frame, credit.target).predict_proba(credit.frame)[:, 1]
        assert risk[credit.target == 1].mean() > risk[credit.target == 0].mean()


def test_only_categories_lose_their_order(credit) -> None:
    model = experiments.without_order(credit.schema, make="ARM1")
    for name, feature in model.schema.features.items():
        known = credit.schema.features[name]
        assert feature.direction == ("none" if known.kind == "categorical" else known.direction)
    assert (model.ridge, model.class_weight) == (0.0, "balanced")


def test_tuned_models_are_free_of_the_schema_s_bins(credit) -> None:
    model = experiments.tuned(credit.schema, link="linear", max_bins=7)
    assert (model.link, model.max_bins, model.ridge) == ("linear", 7, "cv")
    assert all(f.max_bins is None for f in model.schema.features.values())
