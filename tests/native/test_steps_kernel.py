"""Steps from a Hessian in blocks: the compiled way and numpy agree, and both with linear algebra."""

import numpy as np
import pytest

from plainrisk._native import BlockHessian, Blocks, steps


def hessian_of(rng, widths=(3, 1, 4), ridge=0.0):
    """Return a Hessian in blocks, and the matrix that it stands for, without damping."""
    p = sum(widths)
    A = rng.normal(size=(50, 1 + p))
    A[:, 0] = 1.0
    whole = A.T @ A / 50
    blocks, dense, start = Blocks.of(widths), whole.copy(), 1
    dense[1:, 1:] = np.outer(whole[0, 1:], whole[0, 1:]) / whole[0, 0]  # what blocks share by way of the intercept
    for block, width in zip(blocks, widths, strict=True):
        at = slice(start, start + width)
        block[:] = dense[at, at] = whole[at, at]
        start += width
    dense[np.arange(1, 1 + p), np.arange(1, 1 + p)] += ridge
    return BlockHessian(whole[0, :1].copy(), whole[0, 1:].copy(), blocks, np.full(p, ridge)), dense


NOTHING = np.zeros((0, 9))
FREE = np.full(9, np.inf)


def step_of(point, gradient, lower, upper, hessian, memory=(NOTHING, NOTHING), longest=np.inf):
    return steps.block_step(point, gradient, lower, upper, hessian, *memory, longest)


def both(in_numpy, *args, **options):
    """Return the step, the same both ways."""
    found = step_of(*args, **options)
    np.testing.assert_allclose(in_numpy(steps, step_of, *args, **options), found, rtol=1e-6, atol=1e-9)
    return found


def test_without_memory_the_step_solves_the_blocks(rng, in_numpy):
    hessian, dense = hessian_of(rng, ridge=0.1)
    g = rng.normal(size=9)
    found = both(in_numpy, np.zeros(9), g, -FREE, FREE, hessian)
    np.testing.assert_allclose(found * 3**0.5, np.linalg.solve(dense, -g), rtol=1e-4)


def test_the_last_step_is_learned(rng, in_numpy):
    """What L-BFGS promises: the remembered change of the gradient is undone by the remembered step."""
    hessian, _ = hessian_of(rng)
    memory = rng.normal(size=(3, 9))
    curved = memory @ (np.eye(9) + np.ones((9, 9)))
    found = both(in_numpy, np.zeros(9), -curved[2], -FREE, FREE, hessian, (memory, curved))
    np.testing.assert_allclose(found, memory[2], atol=1e-9)


def test_variables_held_by_a_bound_stay(rng, in_numpy):
    hessian, dense = hessian_of(rng, ridge=0.1)
    lower, upper = np.full(9, -np.inf), np.full(9, np.inf)
    lower[2], upper[5] = 0.0, 0.0
    g = rng.normal(size=9)
    g[2], g[5] = 2.0, -2.0
    found = both(in_numpy, np.zeros(9), g, lower, upper, hessian)
    free = np.ones(9, bool)
    free[[2, 5]] = False
    assert found[~free].tolist() == [0.0, 0.0]
    wanted = np.linalg.solve(dense[np.ix_(free, free)], -g[free])
    np.testing.assert_allclose(found[free] * 3**0.5, wanted, rtol=1e-4)


def test_variables_that_would_leave_end_at_the_bound(rng, in_numpy):
    hessian, dense = hessian_of(rng, ridge=0.1)
    g = rng.normal(size=9)
    plain = step_of(np.zeros(9), g, -FREE, FREE, hessian)
    upper = np.full(9, np.inf)
    out = np.argmax(plain[1:]) + 1
    upper[out] = plain[out] / 3
    found = both(in_numpy, np.zeros(9), g, -FREE, upper, hessian)
    assert found[out] == upper[out]
    others = np.arange(9) != out
    wanted = np.linalg.solve(dense[np.ix_(others, others)], -g[others])
    np.testing.assert_allclose(found[others] * 3**0.5, wanted, rtol=1e-4)


def test_no_variable_moves_further_than_asked(rng, in_numpy):
    hessian, _ = hessian_of(rng)
    g = 100 * rng.normal(size=9)
    far, near = (both(in_numpy, np.zeros(9), g, -FREE, FREE, hessian, longest=most) for most in (np.inf, 0.5))
    np.testing.assert_allclose(near, far * 0.5 / np.abs(far).max())


def test_columns_that_say_the_same_are_no_harm(rng, in_numpy):
    hessian, _ = hessian_of(rng, widths=(4, 4))
    block = next(iter(hessian.blocks))
    hessian.border[:4] = 0.0
    block[:] = [[2, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    found = step_of(np.zeros(9), np.ones(9), -FREE, FREE, hessian)
    assert np.isfinite(found).all()
    assert found[2] == 0.0
    np.testing.assert_allclose(found[3] + found[4], -(0.5**0.5), rtol=1e-4)
    assert np.isfinite(in_numpy(steps, step_of, np.zeros(9), np.ones(9), -FREE, FREE, hessian)).all()


@pytest.mark.parametrize(
    "changed",
    [
        {"point": np.zeros(8)},
        {"gradient": np.zeros(8)},
        {"lower": np.zeros(10)},
        {"upper": np.zeros(10)},
        {"corner": np.zeros(2)},
        {"border": np.zeros(9)},
        {"ridge": np.zeros(7)},
        {"widths": np.array([3, 5])},
        {"widths": np.array([-1, 9])},
        {"widths": np.array([9, -1])},
        {"widths": np.array([2**62, 2**62])},
        {"blocks": np.zeros(31)},
        {"steps": np.zeros((1, 9))},
        {"d": np.zeros(8)},
        {"point": np.zeros(0)},
    ],
)
def test_what_does_not_fit_is_refused(changed, in_numpy):
    args = {name: np.zeros(9) for name in ("point", "gradient", "lower", "upper")}
    args |= {"corner": np.ones(1), "border": np.zeros(8), "ridge": np.zeros(8), "widths": np.array([4, 4])}
    args |= {"blocks": np.zeros(32), "steps": np.zeros((0, 9)), "changes": np.zeros((0, 9)), "d": np.zeros(9)}
    with pytest.raises(ValueError, match="do not fit"):
        steps.compiled.block_step(*(args | changed).values(), 1.0)
