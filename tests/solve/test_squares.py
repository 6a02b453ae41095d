from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from plainrisk.bins import pack_codes
from plainrisk.solve import Block, Layout, count_pairs, kkt_residual, minimise_squares

N = 300
SIZES = (4, 3, 6, 2)


def rows(rng):
    codes = [rng.integers(0, size, N).astype(np.uint8) for size in SIZES]
    target = (rng.random(N) < 0.2 + 0.1 * codes[0]).astype(np.uint8)
    return codes, target


def brute_force_pairs(codes, weight):
    """Count level by level, in plain Python."""
    starts = np.cumsum([0, *SIZES])
    out = np.zeros((starts[-1], starts[-1]), dtype=weight.dtype)
    for i in range(N):
        levels = [int(start + code[i]) for start, code in zip(starts, codes, strict=False)]
        for a in levels:
            for b in levels:
                out[a, b] += weight[i]
    return out


def packed(codes, limit):
    packs = pack_codes(codes, [np.ones(size, dtype=bool) for size in SIZES], limit)
    layout = Layout(tuple(map(np.eye, SIZES)), members=tuple(p.members for p in packs))
    return [p.codes for p in packs], layout


@pytest.mark.parametrize("limit", [1, 12, 1000])
def test_pair_counts_are_the_counts_as_integers(rng, limit):
    codes, target = rows(rng)
    packs, layout = packed(codes, limit)
    assert len(packs) == {1: 4, 12: 2, 1000: 1}[limit]
    counts = count_pairs([Block(tuple(packs), target)], layout)
    assert counts.pairs.dtype == np.int64
    np.testing.assert_array_equal(counts.pairs, brute_force_pairs(codes, np.ones(N, dtype=np.int64)))
    hits = brute_force_pairs(codes, target.astype(np.int64))
    np.testing.assert_array_equal(counts.positives, np.diag(hits))
    assert (counts.total, counts.positive_total) == (N, target.sum())


def test_pair_counts_with_weights(rng):
    codes, target = rows(rng)
    weight = rng.random(N) * (rng.random(N) < 0.8)
    packs, layout = packed(codes, 12)
    counts = count_pairs([Block(tuple(packs), weight * target, weight)], layout)
    np.testing.assert_allclose(counts.pairs, brute_force_pairs(codes, weight), rtol=1e-12, atol=1e-13)
    hits = brute_force_pairs(codes, weight * target)
    np.testing.assert_allclose(counts.positives, np.diag(hits), rtol=1e-12, atol=1e-13)


def test_pair_counts_add_up_over_blocks_and_folds_subtract(rng):
    codes, target = rows(rng)
    packs, layout = packed(codes, 12)
    whole = Block(tuple(packs), target)
    first, second = whole.take(slice(0, 100)), whole.take(slice(100, N))
    together = count_pairs([first, second], layout)
    one, two = (count_pairs([block], layout) for block in (first, second))
    for counts in (together, one + two):
        np.testing.assert_array_equal(counts.pairs, count_pairs([whole], layout).pairs)
    rest = together - one
    np.testing.assert_array_equal(rest.pairs, two.pairs)
    np.testing.assert_array_equal(rest.positives, two.positives)
    assert (rest.total, rest.positive_total) == (two.total, two.positive_total)


def lsq_reference(X, y, w, ridge, lower, upper):
    """scipy's bounded least squares, the ridge as further rows: (objective, point)."""
    n, p = X.shape
    root = np.sqrt(w / w.sum())
    A = np.vstack([np.column_stack([np.ones(n), X]) * root[:, None], np.zeros((p, 1 + p))])
    A[n:, 1:] = np.sqrt(ridge) * np.eye(p)
    b = np.concatenate([root * y, np.zeros(p)])
    bounds = (np.concatenate([[-np.inf], lower]), np.concatenate([[np.inf], upper]))
    found = lsq_linear(A, b, bounds, method="bvls", tol=1e-15, max_iter=1000)
    return float(((A @ found.x - b) ** 2).sum()), found.x


@pytest.mark.parametrize("ridge", [0.0, 1 / (2 * N), 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_line_equals_scipy(ridge, weighted, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((N, 9)) < 0.4).astype(np.float64)
    y = (rng.random(N) < 0.3 + 0.2 * X[:, 0] - 0.1 * X[:, 1]).astype(np.float64)
    w = rng.integers(0, 4, N).astype(np.float64) if weighted else np.ones(N)
    lower = np.where(np.arange(9) < 5, 0.0, -np.inf)
    upper = np.where(np.arange(9) == 8, 0.05, np.inf)
    A = np.column_stack([np.ones(N), X])
    found = minimise_squares((A.T * w) @ A, A.T @ (w * y), w.sum(), ridge=ridge, lower=lower, upper=upper)
    value, point = lsq_reference(X, y, w, ridge, lower, upper)
    assert found.objective == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose([found.intercept, *found.coefficients], point, atol=1e-9)
    assert found.converged
    assert found.kkt < 1e-12
    assert (found.coefficients >= lower).all()
    assert (found.coefficients <= upper).all()
    assert (found.coefficients == 0).any(), "no bound is active, so the test says little"


def test_duplicate_and_constant_columns_have_the_same_fit(rng):
    X = (rng.random((N, 4)) < 0.5).astype(np.float64)
    y = (rng.random(N) < 0.2 + 0.5 * X[:, 0]).astype(np.float64)
    twice = np.column_stack([X, X[:, 0], np.ones(N), np.zeros(N)])

    def fit(Z):
        A = np.column_stack([np.ones(N), Z])
        found = minimise_squares(A.T @ A, A.T @ y, N)
        return found, A @ [found.intercept, *found.coefficients]

    plain, line = fit(X)
    doubled, line_of_doubled = fit(twice)
    assert doubled.converged
    assert doubled.objective == pytest.approx(plain.objective, rel=1e-12)
    np.testing.assert_allclose(line_of_doubled, line, atol=1e-9)


def test_an_unsolved_problem_does_not_call_itself_solved(monkeypatch):
    A = np.column_stack([np.ones(4), np.arange(4.0)])
    y = np.array([0.0, 1.0, 1.0, 0.0])
    monkeypatch.setattr("plainrisk.solve.squares.BoxedQuadratic.minimise", lambda _, g, lower, upper: 0 * g + 0.1)
    found = minimise_squares(A.T @ A, A.T @ y, 4.0)
    assert found.kkt > 0.01
    assert not found.converged
    assert "optimum" not in found.reason


def test_kkt_residual_counts_only_what_breaks_the_conditions():
    lower, upper = np.array([0.0, 0.0, -np.inf, 0.0]), np.array([1.0, 1.0, np.inf, 1.0])
    point = np.array([0.0, 1.0, 5.0, 0.5])
    assert kkt_residual(point, np.array([2.0, -3.0, 0.0, 0.0]), lower, upper) == 0
    assert kkt_residual(point, np.array([-0.5, -3.0, 0.25, 0.0]), lower, upper) == 0.5
    assert kkt_residual(point, np.array([0.0, 0.7, 0.0, -0.2]), lower, upper) == 0.7
    assert kkt_residual(point, np.array([0.0, 0.0, 0.0, -0.2]), lower, upper) == 0.2
    assert kkt_residual(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)) == 0
