from __future__ import annotations

import numpy as np
import pytest

from plainrisk.errors import DataError
from plainrisk_lab.compare import bayesian_signed_rank


def by_double_sum(d, rope, samples, seed):
    """The definition: Dirichlet weights, every pair (i, j), the largest of three sums."""
    z = np.concatenate([[0.0], d])
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.concatenate([[0.5], np.ones(len(d))]), size=samples)
    total = z[:, None] + z[None, :]
    left = np.einsum("si,sj,ij->s", weights, weights, (total < -2 * rope).astype(float))
    right = np.einsum("si,sj,ij->s", weights, weights, (total > 2 * rope).astype(float))
    theta = np.column_stack([left, 1 - left - right, right])
    return np.bincount(theta.argmax(axis=1), minlength=3) / samples


@pytest.mark.parametrize("rope", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("shift", [-0.02, 0.0, 0.03])
def test_against_the_double_sum(rope, shift):
    a = np.random.default_rng(1).normal(shift, 0.05, size=15)
    expected = by_double_sum(a, rope, 20_000, seed=99)
    # Two independent samples of 20 000: five standard errors of a difference of shares.
    assert tuple(bayesian_signed_rank(a, np.zeros(15), rope, 20_000)) == pytest.approx(expected, abs=0.025)


def test_one_pair_in_closed_form():
    # z = (0, 1), r = 0: right wins if 1 - w0**2 > w0**2, that is w0 < sqrt(1/2), with w0 ~ Beta(1/2, 1),
    # whose distribution function is sqrt(w): the probability is 2**(-1/4).
    result = bayesian_signed_rank([1.0], [0.0], rope=0.0, samples=200_000)
    assert result.right == pytest.approx(2**-0.25, abs=0.005)
    assert result.left == 0.0


def test_same_seed_same_figures_and_another_seed_others():
    a, b = np.random.default_rng(0).normal(0.8, 0.02, size=(2, 20))
    first = bayesian_signed_rank(a, b, samples=5_000, seed=7)
    assert bayesian_signed_rank(a, b, samples=5_000, seed=7) == first
    assert bayesian_signed_rank(a, b, samples=5_000, seed=8) != first


def test_swapping_swaps_left_and_right():
    a, b = np.random.default_rng(3).normal(0.8, 0.02, size=(2, 20))
    left, rope, right = bayesian_signed_rank(a, b, samples=4_000)
    assert tuple(bayesian_signed_rank(b, a, samples=4_000)) == (right, rope, left)
    assert left + rope + right == pytest.approx(1.0)


def test_a_difference_on_the_edge_is_inside():
    # In binary 0.91 - 0.90 and 0.23 - 0.22 are a little more than 0.01.
    for high, low in [(0.91, 0.90), (0.23, 0.22)]:
        a, b = np.full(10, high), np.full(10, low)
        assert high - low > 0.01
        assert bayesian_signed_rank(a, b, rope=0.01, samples=1_000).rope == 1.0
    assert bayesian_signed_rank(a, b, rope=0.0099, samples=1_000).right > 0.9


def test_errors():
    with pytest.raises(DataError, match=r"rope must be a finite number of at least 0, not -0\.1"):
        bayesian_signed_rank([1.0], [2.0], rope=-0.1)
    with pytest.raises(DataError, match="samples must be a whole number from 1 to 1,000,000, not 0"):
        bayesian_signed_rank([1.0], [2.0], samples=0)
    with pytest.raises(DataError, match="a has 2 and b has 1"):
        bayesian_signed_rank([1.0, 2.0], [2.0])


def test_table():
    markdown = bayesian_signed_rank([1.0, 1.0], [0.0, 0.0], samples=100).to_markdown()
    assert "| a \\< b | 0.0000 |" in markdown
    assert "Equivalent: within 0.01." in markdown
