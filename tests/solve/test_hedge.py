"""SubscaleHedge: the closed form against the algorithm as written, and what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from plainrisk.solve.hedge import hedge_weights, learning_rate, loss_sums, regret_range, row_losses
from plainrisk.solve.rows import PIECE_ROWS


def summed_losses(*args):
    return loss_sums(*args)[:-1]


def hedge_weights_in_sequence(losses, eta):
    """The weights by the algorithm as written: multiply and renormalize, row after row."""
    weights = np.full(losses.shape[1], 1.0 / losses.shape[1])
    for row in losses:
        weights = weights * np.exp(-eta * row)
        weights = weights / weights.sum()
    return weights


sizes = st.tuples(st.integers(1, 200), st.integers(1, 8))


@settings(deadline=None, max_examples=60)
@given(size=sizes, scale=st.sampled_from([1e-3, 1.0, 30.0]), rate=st.floats(0.0, 0.5), seed=st.integers(0, 2**32 - 1))
def test_the_closed_form_is_the_algorithm_in_any_order(size, scale, rate, seed):
    rng = np.random.default_rng(seed)
    losses = scale * rng.exponential(size=size)
    wanted = hedge_weights_in_sequence(losses, rate)
    np.testing.assert_allclose(hedge_weights(losses.sum(axis=0), rate), wanted, rtol=0, atol=1e-12)
    shuffled = hedge_weights_in_sequence(losses[rng.permutation(len(losses))], rate)
    np.testing.assert_allclose(shuffled, wanted, rtol=0, atol=1e-12)


def test_the_sequence_is_the_algorithm_by_hand():
    """Two rows, two experts, eta = ln 2: weights 1:1 -> 1:2 -> 1:2 * 2:1."""
    losses = np.array([[1.0, 0.0], [0.0, 3.0]])
    assert hedge_weights_in_sequence(losses[:1], math.log(2)) == pytest.approx([1 / 3, 2 / 3])
    assert hedge_weights_in_sequence(losses, math.log(2)) == pytest.approx([4 / 5, 1 / 5])


def test_the_weights_are_a_softmax_and_see_differences_only(rng):
    losses = 50.0 * rng.random((40, 6))
    weights = hedge_weights(losses, 0.7)
    np.testing.assert_allclose(weights, softmax(-0.7 * losses, axis=1), atol=1e-13)
    np.testing.assert_allclose(hedge_weights(losses + 1e4, 0.7), weights, atol=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-15)
    np.testing.assert_array_equal(np.argsort(-weights, axis=1), np.argsort(losses, axis=1))


def test_learning_rates():
    assert learning_rate("paper", 5, 1000.0) == pytest.approx(8 * math.log(5) / 1000)
    assert learning_rate("hedge", 5, 1000.0) == pytest.approx(math.sqrt(8 * math.log(5) / 1000))
    assert learning_rate(0.25, 5, 1000.0) == 0.25
    assert learning_rate(np.float64(2.0), 5, 1000.0) == 2.0


def test_the_paper_s_rate_sees_the_mean_loss_only(rng):
    risks, y = rng.random((50, 4)), rng.integers(0, 2, 50)
    once = summed_losses(risks, y)
    many = summed_losses(np.tile(risks, (9, 1)), np.tile(y, 9))
    paper = hedge_weights(once, learning_rate("paper", 4, 50))
    np.testing.assert_allclose(hedge_weights(many, learning_rate("paper", 4, 450)), paper, atol=1e-12)
    np.testing.assert_allclose(paper, softmax(-8 * math.log(4) * once / 50), atol=1e-13)
    assert np.abs(hedge_weights(many, learning_rate("hedge", 4, 450)) - paper).max() > 0.01


def test_no_rate_is_equal_weights_and_one_expert_has_all(rng):
    assert hedge_weights(rng.random(7), 0.0).tolist() == [1 / 7] * 7
    for rule in ("paper", "hedge", 3.0):
        assert hedge_weights(np.array([1e6]), learning_rate(rule, 1, 100)).tolist() == [1.0]


def test_the_classical_rate_picks_a_winner_of_many_rows():
    losses = 1e6 * np.array([0.60, 0.61, 0.70])
    assert hedge_weights(losses, learning_rate("hedge", 3, 1e6))[0] > 0.999
    assert hedge_weights(losses, learning_rate("paper", 3, 1e6))[0] < 0.5


# ---- losses


def test_the_log_loss_charges_the_probability_of_what_happened():
    losses = row_losses(np.array([[0.2, 0.5], [0.2, 0.5]]), np.array([1, 0]))
    np.testing.assert_allclose(losses, [[-math.log(0.2), math.log(2)], [-math.log(0.8), math.log(2)]])


def test_the_brier_loss_is_the_squared_error(rng):
    risks, y = rng.random((30, 3)), rng.integers(0, 2, 30)
    np.testing.assert_allclose(row_losses(risks, y, "brier"), (risks - y[:, None]) ** 2, atol=1e-15)
    certain = row_losses(np.array([[0.0, 1.0]]), np.array([1]), "brier", clip=0.1)
    assert certain.tolist() == [[1.0, 0.0]], "the clip is the log loss's alone"


def test_the_clip_bounds_certainty_on_both_sides_expert_by_expert():
    clip = np.array([0.1, 1e-15])
    wrong, right, mild = row_losses(np.array([[0.0, 0.0], [1.0, 1.0], [0.3, 0.3]]), np.array([1, 1, 1]), clip=clip)
    np.testing.assert_allclose(wrong, [-math.log(0.1), -math.log(1e-15)])
    np.testing.assert_allclose(right, [-math.log(0.9), -math.log(1 - 1e-15)], atol=1e-18)
    np.testing.assert_allclose(mild, -math.log(0.3))
    assert np.isfinite(row_losses(np.array([[0.0, 1.0]]), np.array([0]))).all()


@pytest.mark.parametrize("n", [1, PIECE_ROWS - 1, PIECE_ROWS, PIECE_ROWS + 1, 2 * PIECE_ROWS + 7])
def test_blocks_add_up(rng, n):
    risks, y, w = rng.random((n, 3)), rng.integers(0, 2, n), rng.random(n)
    losses = row_losses(risks, y)
    np.testing.assert_allclose(summed_losses(risks, y), losses.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(summed_losses(risks, y, w), w @ losses, rtol=1e-12)
    np.testing.assert_allclose(summed_losses(risks, y, None, "brier"), ((risks - y[:, None]) ** 2).sum(axis=0))


def test_a_weight_is_a_number_of_equal_rows(rng):
    risks, y, w = rng.random((60, 4)), rng.integers(0, 2, 60), rng.integers(0, 5, 60)
    repeated = summed_losses(np.repeat(risks, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(summed_losses(risks, y, w.astype(float)), repeated, rtol=1e-12)


def test_disjoint_rows_merge(rng):
    """The losses of two branches of a bank add up to those of the bank."""
    risks, y = rng.random((1000, 5)), rng.integers(0, 2, 1000)
    parts = summed_losses(risks[:300], y[:300]) + summed_losses(risks[300:], y[300:])
    np.testing.assert_allclose(parts, summed_losses(risks, y), rtol=1e-12)


def test_a_million_rows_of_large_losses_do_not_underflow():
    n = 1_000_000
    risks = np.broadcast_to(np.array([0.0, 1e-12, 2e-12]), (n, 3))  # a view: the rows are not held in memory
    losses = summed_losses(risks, np.ones(n, dtype=np.uint8))
    assert losses[0] == pytest.approx(n * -math.log(1e-15))
    naive = np.exp(-losses / 100)
    assert naive.sum() == 0.0, "the product of the algorithm box is 0 / 0 here"
    weights = hedge_weights(losses, 1 / n)
    expected = np.array([1e-15, 1e-12, 2e-12])  # w is proportional to exp(-mean loss) = the risk said
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-9)
    assert hedge_weights(losses, 1.0).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("eta", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_regret_of_every_order_of_the_rows_lies_in_the_range(eta, weighted):
    rng = np.random.default_rng(5)
    risks, target = rng.uniform(0.05, 0.95, (200, 4)), rng.integers(0, 2, 200)
    weight = rng.uniform(0.1, 2.0, 200) if weighted else None
    sums = loss_sums(risks, target, weight)
    np.testing.assert_allclose(sums[:-1], summed_losses(risks, target, weight))
    least, greatest, bound = regret_range(sums[:-1], sums[-1], eta)
    assert least <= greatest <= bound
    losses = row_losses(risks, target) * (1.0 if weight is None else weight[:, None])
    for _ in range(20):
        losses = rng.permutation(losses)
        paid, before = 0.0, np.zeros(4)
        for row in losses:  # the algorithm as written
            paid += hedge_weights(before, eta) @ row
            before = before + row
        assert least - 1e-9 <= paid - before.min() <= greatest + 1e-9


def test_the_bound_of_hedge_s_own_rate_is_the_textbook_s():
    """Losses within [0, 1] that spread over all of it, M rows, n experts: sqrt(M ln(n) / 2)."""
    risks = np.tile([[0.0, 1.0, 0.5]], (400, 1))
    losses = loss_sums(risks, np.arange(400) % 2, None, "brier")
    assert losses[-1] == 400
    bound = regret_range(losses[:-1], losses[-1], learning_rate("hedge", 3, 400))[2]
    assert bound == pytest.approx(np.sqrt(400 * np.log(3) / 2), rel=1e-12)
    # The paper's rate does not grow more careful with the rows: its bound is M / 8 and a constant.
    assert regret_range(losses[:-1], losses[-1], learning_rate("paper", 3, 400))[2] == pytest.approx(50 + np.log(3))
