"""Coefficients of a layer: their groups, what is known of them, and refits that begin elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.fit.choices import APART, SPREAD, TAIL
from plainrisk.fit.finer import code_fine_rows, some_cuts
from plainrisk.fit.pairs import PairRows, coarse_axes
from plainrisk.fit.plan import Fitted, Plan, _carried, fit_plan
from plainrisk.fit.training import read_training

PAIRS = [("bureau_score", "utilization"), ("age", "housing")]


@pytest.fixture(scope="module")
def plan():
    credit = pr.datasets.make_credit(1500, 3, backend="pandas")
    training = read_training(credit.frame, credit.target, credit.schema, None, None)
    coded = code_fine_rows(training)
    return Plan(coded, credit.schema, "logistic", "smooth", total=1500.0, cuts=some_cuts(coded, 16))


def with_pairs(plan, pairs):
    scores = [np.zeros(len(weights)) for weights in plan.coded.weights]
    return replace(plan, pairs=PairRows(plan.coded, coarse_axes(plan.coded, plan.schema, scores), pairs))


def finer(plan):
    more = some_cuts(plan.coded, 64)
    return replace(plan, cuts={name: cuts | more[name] for name, cuts in plan.cuts.items()})


def test_every_coefficient_has_one_place_and_one_group(plan):
    for some in (plan, finer(plan), with_pairs(plan, PAIRS)):
        basis = some.basis({name: {} for name in plan.coded.names})
        n = basis.layout.n_coefficients
        assert sorted(basis.places.values()) == list(range(n))
        assert len(basis.group_of) == len(basis.lower) == n
        assert np.bincount(basis.group_of).tolist() == [group.size for group in basis.groups]
        assert len({(group.names, group.kind) for group in basis.groups}) == len(basis.groups)
        outside = [u for u, group in enumerate(basis.groups) if group.kind == "outside"]
        assert len(outside) > 1
        assert len(set(basis.precision_of[outside])) == 1
        assert basis.precision_of.max() + 1 == len(basis.groups) - len(outside) + 1


def test_tails_are_the_steps_beyond_which_few_rows_are(plan):
    basis = plan.basis({name: {} for name in plan.coded.names})
    j = plan.coded.names.index("bureau_score")
    sizes = {group.kind: group.size for group in basis.groups if group.names == ("bureau_score",)}
    weights = plan.coded.weights[j][: plan.coded.levels[j].n_ordered]
    share = np.cumsum(weights) / weights.sum()
    below = np.array([share[cut - 1] for cut in sorted(plan.cuts["bureau_score"])])
    assert sizes["lower tail"] == (below < TAIL).sum() > 0
    assert sizes["upper tail"] == (below > 1 - TAIL).sum() > 0
    assert sizes["steps"] == len(below) - sizes["lower tail"] - sizes["upper tail"]


def test_what_is_known_of_precisions_beforehand(plan):
    basis = with_pairs(plan, PAIRS).basis({name: {} for name in plan.coded.names})
    prior = basis.hyperprior()
    assert (prior.spread, prior.apart) == (SPREAD, APART)
    at = {(group.names, group.kind): basis.precision_of[u] for u, group in enumerate(basis.groups)}
    for (names, kind), u in at.items():
        if kind in ("lower tail", "upper tail"):
            assert prior.parent[u] == at[names, "steps"]
            assert np.isnan(prior.unit[u])
        else:
            assert prior.parent[u] == -1
            assert np.isnan(prior.unit[u]) == (kind == "outside")
    # The variance over the rows of a feature's score, where its coefficients have variance 1.
    j, rng = plan.coded.names.index("housing"), np.random.default_rng(0)
    contrast, weights = basis.contrasts[j], plan.coded.weights[j]
    scores = contrast.matrix @ rng.normal(size=(len(contrast.keys), 4000))
    mean = weights @ scores / weights.sum()
    variance = (weights @ (scores - mean) ** 2 / weights.sum()).mean()
    assert np.exp(prior.unit[at[("housing",), "levels"]]) == pytest.approx(variance, rel=0.1)


def test_a_refit_that_begins_elsewhere_ends_at_the_same_place(plan):
    """From coarser bins, from finer ones, with pairs and without: where the search begins does not matter."""
    coarse, fine, paired = fit_plan(plan), fit_plan(finer(plan)), fit_plan(with_pairs(plan, PAIRS))
    for wanted, own, starts in (
        (coarse, plan, (fine, paired)),
        (fine, finer(plan), (coarse, paired)),
        (paired, with_pairs(plan, PAIRS), (coarse, fine)),
    ):
        for start in starts:
            found = fit_plan(own, start)
            assert found.evidence.converged
            scores, other = (f.basis.level_scores(f.point[1:]) for f in (wanted, found))
            for name, a, b, weight in zip(plan.coded.names, scores, other, plan.coded.weights, strict=True):
                assert np.sqrt(np.average((a - b) ** 2, weights=weight)) < 0.01, name


def test_at_known_precisions_it_is_the_same_solution(plan):
    steps = replace(plan, shapes="steps", ridge=1e-3)
    wanted = fit_plan(steps)
    rng = np.random.default_rng(1)
    start = replace(wanted, point=wanted.point + 0.01 * np.abs(rng.normal(size=len(wanted.point))))
    np.testing.assert_allclose(fit_plan(steps, start).point, wanted.point, atol=1e-6)


def test_coefficients_are_carried_by_what_they_mean(plan):
    first = fit_plan(plan)
    for other in (finer(plan), with_pairs(plan, PAIRS)):
        basis = other.basis(first.basis.held)
        point = _carried(first, basis)
        assert point[0] == first.point[0]
        for key, place in basis.places.items():
            before = first.basis.places.get(key)
            assert point[1 + place] == (0.0 if before is None else first.point[1 + before])
        assert len(basis.places) > len(first.basis.places)
        back = _carried(Fitted(basis, point), first.basis)
        np.testing.assert_array_equal(back, first.point)


def test_steps_in_directions_are_bounded_and_others_free(plan):
    basis = plan.basis({name: {} for name in plan.coded.names})
    for (names, key), place in basis.places.items():
        sign = plan.schema.features[names[0]].sign
        assert basis.lower[place] == (0.0 if sign and key[0] == "cut" else -np.inf)
    assert basis.upper is None
