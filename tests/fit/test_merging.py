"""Runs of levels: against all ways to cut, and within a budget."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from plainrisk.fit.merge import best_runs, merged_scores, rows_within


def brute_force(scores, weights, k, mass=None, floor=0.0):
    best = np.inf
    for cuts in itertools.combinations(range(1, len(scores)), k - 1):
        cost = 0.0
        for a, b in itertools.pairwise([0, *cuts, len(scores)]):
            if mass is not None and mass[a:b].sum() < floor:
                cost = np.inf
                break
            mean = np.average(scores[a:b], weights=weights[a:b])
            cost += 0.5 * weights[a:b] @ (scores[a:b] - mean) ** 2
        best = min(best, cost)
    return best


def test_the_runs_are_the_best_of_all(rng):
    for _ in range(10):
        scores, weights = rng.normal(size=8), rng.uniform(0.1, 3.0, 8)
        runs = best_runs(scores, weights)
        for k in range(1, 9):
            assert runs.costs[k - 1] == pytest.approx(brute_force(scores, weights, k), abs=1e-12)
            starts = runs.starts(k)
            assert len(starts) == k
            assert starts[0] == 0
            own = merged_scores(scores, weights, starts)
            cost = 0.5 * weights @ (scores - np.repeat(own, np.diff([*starts, 8]))) ** 2
            assert cost == pytest.approx(runs.costs[k - 1], abs=1e-12)


def test_the_runs_are_the_best_of_those_with_enough_mass(rng):
    for floor in (1.0, 2.5, 4.0):
        scores, weights, mass = rng.normal(size=8), rng.uniform(0.1, 3.0, 8), rng.integers(0, 4, 8).astype(float)
        runs = best_runs(scores, weights, mass, floor)
        assert 1 <= len(runs.costs) <= max(1, mass.sum() / floor)
        for k, cost in enumerate(runs.costs, start=1):
            wanted = brute_force(scores, weights, k, mass, floor)
            assert cost == (pytest.approx(wanted, abs=1e-12) if np.isfinite(wanted) else np.inf)
            if np.isfinite(cost):
                assert np.add.reduceat(mass, runs.starts(k)).min() >= floor
        for tolerance in (0.0, 0.1, 1e9):
            (k,) = rows_within([runs], runs.costs.min() + tolerance)
            assert np.isfinite(runs.costs[k - 1])


def test_too_little_mass_is_one_run():
    runs = best_runs(np.arange(4.0), np.ones(4), np.ones(4), floor=9.0)
    assert len(runs.costs) == 1
    assert runs.starts(1) == [0]
    assert rows_within([runs], 0.0) == [1]


def test_the_budget_is_kept_and_used(rng):
    tables = [best_runs(np.cumsum(rng.normal(size=20)), np.ones(20)) for _ in range(5)]
    kept = []
    for tolerance in (0.0, 0.1, 1.0, 10.0, 1e9):
        counts = rows_within(tables, tolerance)
        assert sum(t.costs[k - 1] for t, k in zip(tables, counts, strict=True)) <= tolerance + 1e-12
        kept.append(sum(counts))
    assert kept[0] == 100
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == 5
    assert max(rows_within(tables, 0.0, most=3)) == 3


def test_equal_levels_are_one_and_empty_ones_cost_nothing():
    runs = best_runs(np.array([1.0, 1.0, 2.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0, 1.0]))
    assert rows_within([runs], 0.0) == [2]
    assert runs.starts(2) in ([0, 1], [0, 2])  # nobody is in level 1


def test_merged_scores_of_a_monotone_shape_are_exactly_monotone(rng):
    for _ in range(200):
        scores = np.sort(rng.normal(size=12).round(1)) / 3.0
        starts = sorted({0, *rng.integers(1, 12, 4).tolist()})
        merged = merged_scores(scores, rng.uniform(0, 1, 12) * (rng.random(12) < 0.7), starts)
        assert (np.diff(merged) >= 0).all()


def test_no_tables():
    assert rows_within([], 1.0) == []
