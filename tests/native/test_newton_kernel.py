"""Small logistic problems at one go: the minimum is that of the step-by-step way, or there is none."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk._native import Coded, LevelMap, Numbers, Problem, newton
from plainrisk.solve import Block, Layout, LogisticLoss, minimise


def problem_of(n, lower, ridge, steps=40, is_far=False):
    free = np.full(n, np.inf)
    return Problem(np.r_[0.0, np.full(n - 1, ridge)], lower, free, 1e-11, 2e-10, 1e-11, steps, is_far)


@pytest.mark.parametrize("is_far", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["packs", "dense", "coded"])
def test_the_minimum_is_that_of_the_step_by_step_way(kind, weighted, is_far, rng, in_numpy):
    n = 5000
    levels = [rng.integers(0, size, n) for size in (3, 4, 5)]
    dense = rng.normal(size=(n, 3))
    if kind == "coded":
        tables = [rng.normal(size=size) for size in (3, 300, 70_000)]
        types = (np.uint8, np.uint16, np.uint32)
        codes = [rng.integers(0, len(t), n).astype(kind) for t, kind in zip(tables, types, strict=True)]
        dense = Numbers(tuple(map(Coded, codes, tables)))
    first = np.asarray(dense)[:, 0]
    target = (rng.random(n) < 1 / (1 + np.exp(1 - 0.5 * levels[0] + 0.3 * levels[1] - first))).astype(np.uint8)
    weight = rng.integers(1, 4, n).astype(np.float64) if weighted else None
    positive = target * weight if weighted else target
    if kind == "packs":
        steps = tuple(np.tril(np.ones((size, size)))[:, 1:] for size in (3, 4, 5))
        members = (np.stack(np.meshgrid(range(3), range(4), indexing="ij"), -1).reshape(-1, 2), np.arange(5)[:, None])
        layout = Layout(steps, members=members)
        packs = ((levels[0] * 4 + levels[1]).astype(np.uint8), levels[2].astype(np.uint8))
        block = Block(packs, positive, weight)
    else:
        layout, block = Layout((), 3), Block((), positive, weight, dense)
    loss = LogisticLoss(layout, [block])
    p = layout.n_coefficients
    wanted = problem_of(1 + p, np.r_[-np.inf, np.zeros(p)], 1e-4, is_far=is_far)
    found = newton.minimise_logistic(
        loss.start, block.packs, layout.levels, block.positive, weight, block.dense, loss.total, wanted
    )
    slow = in_numpy(newton, minimise, loss, ridge=1e-4, lower=np.zeros(p))
    assert len(slow.history) == slow.iterations > 2
    np.testing.assert_allclose(found.point, np.r_[slow.intercept, slow.coefficients], rtol=0, atol=1e-9)
    assert found.value == pytest.approx(slow.objective, rel=1e-13)
    assert (found.point[1:] == 0).any()
    assert np.abs(found.gradient[found.point != 0]).max() < 1e-10
    assert (found.gradient[1:][found.point[1:] == 0] >= 0).all()
    assert (np.diff(found.history[:, 0]) <= 1e-15).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [(7,), (7, 1), (3, 300), (4, 5, 6), (2, 3, 1, 4), (3, 300, 2, 5, 2)])
def test_any_number_of_packs(sizes, weighted, rng, in_numpy):
    n = 3000
    codes = [rng.integers(0, size, n) for size in sizes]
    score = sum(code / max(size - 1, 1) for code, size in zip(codes, sizes, strict=True))
    target = (score - np.median(score) + rng.logistic(size=n) > 0).astype(np.uint8)
    weight = rng.integers(1, 4, n).astype(np.float64) if weighted else None
    layout = Layout(tuple(np.tri(size)[:, 1:] for size in sizes))
    packs = tuple(code.astype(np.min_scalar_type(size - 1)) for code, size in zip(codes, sizes, strict=True))
    block = Block(packs, target * weight if weighted else target, weight)
    loss = LogisticLoss(layout, [block])
    p = layout.n_coefficients
    wanted = problem_of(1 + p, np.r_[-np.inf, np.zeros(p)], 1e-3)
    args = (block.packs, layout.levels, block.positive, weight, None, loss.total)
    found = newton.minimise_logistic(loss.start, *args, wanted)
    if p >= newton.MOST_VARIABLES:
        assert found is None
        return
    slow = in_numpy(newton, minimise, loss, ridge=1e-3, lower=np.zeros(p))
    np.testing.assert_allclose(found.point, np.r_[slow.intercept, slow.coefficients], rtol=0, atol=1e-9)
    # From a point near by, all steps are short, and one Hessian serves them all.
    near = np.maximum(found.point + 1e-4 * rng.normal(size=1 + p), wanted.lower)
    again = newton.minimise_logistic(near, *args, wanted)
    assert (again.history[:, 2] < 1e-2).all()
    np.testing.assert_allclose(again.point, found.point, rtol=0, atol=1e-9)
    assert again.value == pytest.approx(found.value, rel=1e-14)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("outcome", [np.uint8, np.float64])
def test_codes_and_outcomes_of_any_size(kind, outcome, rng, in_numpy):
    n = 5003
    pack = rng.integers(0, 3, n).astype(kind)
    target = (rng.random(n) < 0.2 * (1 + pack)).astype(outcome)
    levels = LevelMap((np.tri(3)[:, 1:],), (np.arange(3)[:, None],))
    args = (np.zeros(3), [pack], levels, target, None, None, float(n))
    found = newton.minimise_logistic(*args, problem_of(3, np.full(3, -np.inf), 0.0, is_far=True))
    rates = [target[pack == k].mean() for k in range(3)]
    np.testing.assert_allclose(1 / (1 + np.exp(-np.cumsum(found.point))), rates, rtol=0, atol=1e-10)


@pytest.mark.parametrize("case", ["one outcome in the sample", "a level not in it", "both"])
def test_some_rows_that_tell_nothing_do_no_harm(case, rng, in_numpy):
    n = 5000
    pack, target = rng.integers(0, 2, n).astype(np.uint8), (rng.random(n) < 0.3).astype(np.uint8)
    if case != "a level not in it":
        target[::8] = 0
    if case != "one outcome in the sample":
        pack[::8] = 0
    levels = LevelMap((np.array([[0.0], [1.0]]),), (np.array([[0], [1]]),))
    args = (np.array([-1.0, 0.0]), [pack], levels, target, None, None, float(n))
    free = np.full(2, -np.inf)
    far, near = (newton.minimise_logistic(*args, problem_of(2, free, 0.0, is_far=f)) for f in (True, False))
    np.testing.assert_allclose(far.point, near.point, rtol=0, atol=1e-10)
    rates = [target[pack == k].mean() for k in (0, 1)]
    np.testing.assert_allclose(1 / (1 + np.exp(-np.cumsum(far.point))), rates, rtol=0, atol=1e-10)


def test_some_of_many_rows_save_steps(rng, in_numpy):
    n = 20_000
    dense = rng.normal(size=(n, 2))
    target = (dense[:, 0] - 2.0 + rng.logistic(size=n) > 0).astype(np.uint8)
    args = (np.zeros(3), [], LevelMap((), ()), target, None, dense, float(n))
    free = np.full(3, -np.inf)
    far, near = (newton.minimise_logistic(*args, problem_of(3, free, 1e-6, is_far=f)) for f in (True, False))
    assert len(far.history) < len(near.history)
    np.testing.assert_allclose(far.point, near.point, rtol=0, atol=1e-9)


def test_what_takes_more_care_is_left_to_the_other_way(in_numpy):
    levels = LevelMap((np.eye(2),), (np.array([[0], [1]]),))
    pack, target = np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.uint8)
    args = (np.array([5.0, 0.0, 0.0]), [pack], levels, target, None, None, 4.0)
    free = np.full(3, -np.inf)
    assert newton.minimise_logistic(*args, problem_of(3, free, 1e-3)) is not None
    assert newton.minimise_logistic(*args, problem_of(3, free, 1e-3, steps=1)) is None  # not settled by then
    assert newton.minimise_logistic(*args, problem_of(3, free, 0.0)) is None  # the levels add up to the intercept


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"ridge": np.zeros(2)}, "do not fit"),
        ({"lower": np.zeros(2)}, "do not fit"),
        ({"upper": np.zeros(2)}, "do not fit"),
        ({"gradient": np.zeros(2)}, "do not fit"),
        ({"weight": np.zeros(2)}, "do not fit"),
        ({"positive": np.zeros(4, np.int16)}, "do not fit"),
        ({"columns": [np.zeros(3)], "tables": [np.zeros(0)]}, "do not fit"),
        ({"columns": [np.zeros(4)], "tables": []}, "do not fit"),
        ({"columns": [np.zeros(4)], "tables": [np.zeros(0)]}, "not both"),
        ({"columns": [np.zeros(4)], "tables": [np.zeros(0)], "packs": []}, "do not fit"),
        ({"columns": [np.zeros(4, np.uint8)], "tables": [np.zeros(0)], "packs": []}, "do not fit"),
        ({"columns": [np.zeros(4)], "tables": [np.zeros(1)], "packs": []}, "do not fit"),
        ({"columns": [np.zeros(8, np.uint8)[::2]], "tables": [np.zeros(1)], "packs": []}, "do not fit"),
        ({"columns": [np.zeros(4, np.uint8)], "tables": [np.zeros(1, np.float32)], "packs": []}, "do not fit"),
        ({"packs": [np.zeros(3, np.uint8)]}, "one small integer per row"),
        ({"packs": [np.zeros((1, 4), np.uint8)]}, "one small integer per row"),
    ],
)
def test_what_does_not_fit_is_refused(changed, what, in_numpy):
    levels = LevelMap((np.eye(2),), (np.array([[0], [1]]),))
    args = {"point": np.zeros(3), "packs": [np.zeros(4, np.uint8)], "map": levels.compiled}
    args |= {"positive": np.zeros(4, np.uint8), "weight": None, "columns": [], "tables": []}
    args |= {
        "ridge": np.zeros(3),
        "lower": np.zeros(3),
        "upper": np.ones(3),
        "total": 4.0,
        "tolerance": 1e-11,
        "settled": 1e-10,
    }
    args |= {"gradient": np.zeros(3), "history": np.zeros((5, 3)), "flat": 1e-11, "is_far": True} | changed
    with pytest.raises(ValueError, match=what):
        newton.compiled.newton(*args.values())
