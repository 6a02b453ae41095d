"""One pass of the logistic loss: the compiled way and numpy agree to rounding, and both with the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plainrisk._native import Coded, LevelMap, Numbers, logistic

SIZES = [5, 125, 256, 3, 700, 2]


NOTHING = LevelMap((), ())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_dense", [0, 1, 4, 20])
@pytest.mark.parametrize("n", [0, 1, 1023, 3000])
def test_both_ways_agree(n, n_dense, weighted, in_numpy):
    rng = np.random.default_rng(n)
    packs = [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in SIZES]
    features = tuple(rng.normal(size=(size, 1 + size // 40)) for size in SIZES)
    levels = LevelMap(features, tuple(np.arange(size)[:, None] for size in SIZES))
    target = rng.integers(0, 2, n).astype(np.uint8)
    weight = rng.random(n) if weighted else None
    positive = target * weight if weighted else target
    dense = rng.normal(size=(n, n_dense)) if n_dense else None
    point = rng.normal(size=1 + levels.n_columns + n_dense)
    args = (point, packs, levels, positive, weight, dense)
    found, plain = logistic.logistic_sums(*args), in_numpy(logistic, logistic.logistic_sums, *args)
    assert found.loss == pytest.approx(plain.loss, rel=1e-13, abs=1e-12)
    np.testing.assert_allclose(found.gradient, plain.gradient, rtol=0, atol=1e-10)


def test_packs_of_several_features(in_numpy):
    rng = np.random.default_rng(0)
    members = np.stack(np.meshgrid(range(3), range(4), indexing="ij"), axis=-1).reshape(-1, 2)
    pack, target = rng.integers(0, 12, 500).astype(np.uint8), rng.integers(0, 2, 500).astype(np.uint8)
    features = (rng.normal(size=(3, 2)), rng.normal(size=(4, 3)))
    X = np.column_stack([np.ones(500), features[0][members[pack, 0]], features[1][members[pack, 1]]])
    point = rng.normal(size=6)
    args = (point, [pack], LevelMap(features, (members,)), target)
    residual = 1 / (1 + np.exp(-X @ point)) - target
    for found in (logistic.logistic_sums(*args), in_numpy(logistic, logistic.logistic_sums, *args)):
        np.testing.assert_allclose(found.gradient, residual @ X, atol=1e-11)


def test_every_score_is_exact_to_rounding():
    scores = np.concatenate([np.linspace(-700, 700, 1401), np.random.default_rng(0).normal(size=500) * 5])
    for s in map(float, scores):
        found = logistic.logistic_sums(np.array([s]), [], NOTHING, np.zeros(1, np.uint8))
        small = math.exp(-abs(s))
        assert found.loss == pytest.approx(max(s, 0.0) + math.log1p(small), rel=1e-15, abs=1e-306)
        assert found.gradient[0] == pytest.approx((1.0 if s >= 0 else small) / (1.0 + small), rel=1e-15, abs=1e-306)


def test_the_loss_of_many_rows_is_exact_to_rounding():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=256) * 4
    pack, target = rng.integers(0, 256, 5000).astype(np.uint8), rng.integers(0, 2, 5000).astype(np.uint8)
    expected = math.fsum(math.log1p(math.exp(s if t == 0 else -s)) for s, t in zip(scores[pack], target, strict=True))
    levels = LevelMap((scores[:, None],), (np.arange(256)[:, None],))
    found = logistic.logistic_sums(np.array([0.0, 1.0]), [pack], levels, target)
    assert found.loss == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("s", [-1e300, -1e4, 1e4, 1e300])
def test_scores_beyond_reason_give_no_nonsense(s):
    found = logistic.logistic_sums(np.array([s]), [], NOTHING, np.ones(1, np.uint8))
    assert found.loss == pytest.approx(max(-s, 0.0), abs=1e-300)
    assert found.gradient[0] == pytest.approx(-1.0 if s < 0 else 0.0, abs=1e-15)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"weight": np.zeros(2)}, "do not fit"),
        ({"dense": np.zeros((2, 1))}, "do not fit"),
        ({"dense": np.zeros((3, 1), np.float32)}, "do not fit"),
        ({"gradient": np.zeros(1)}, "do not fit"),
        ({"positive": np.zeros(3, np.int16)}, "do not fit"),
        ({"dense": np.zeros((3, 3))}, "a coefficient for every column"),
        ({"dense": np.zeros((3, 1))}, "a column is beyond"),
        ({"packs": [np.zeros(2, np.uint8)]}, "one small integer per row"),
    ],
)
def test_what_does_not_fit_is_refused(changed, what, in_numpy):
    byte, levels = np.zeros(3, np.uint8), LevelMap((np.ones((1, 1)),), (np.zeros((1, 1), int),))
    args = {"point": np.zeros(2), "packs": [byte], "map": levels.compiled, "positive": byte, "weight": None}
    args |= {"dense": None, "gradient": np.zeros(2)} | changed
    with pytest.raises(ValueError, match=what):
        logistic.compiled.logistic(*args.values())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 1023, 3000])
def test_curvatures(n, weighted, in_numpy):
    rng = np.random.default_rng(n)
    packs = [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in SIZES]
    levels = LevelMap(tuple(4 * rng.normal(size=(s, 2)) for s in SIZES), tuple(np.arange(s)[:, None] for s in SIZES))
    point, dense = rng.normal(size=1 + 2 * len(SIZES) + 3), 100 * rng.normal(size=(n, 3))
    weight = rng.random(n) if weighted else None
    found, expected = np.empty(n), np.empty(n)
    sums = logistic.curvatures(point, packs, levels, found, weight, dense)
    plain = in_numpy(logistic, logistic.curvatures, point, packs, levels, expected, weight, dense)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)
    for one, other in zip(sums, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("s", [0.0, 1.0, -3.0, 30.0, -700.0, 800.0])
def test_a_curvature_is_exact_to_rounding(s, in_numpy):
    bend = np.empty(1)
    logistic.curvatures(np.array([s]), [], NOTHING, bend)
    small = math.exp(-abs(s))
    assert bend[0] == pytest.approx(small / (1 + small) ** 2, rel=1e-15, abs=1e-306)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"codes": np.zeros(2)}, "one sum for every code"),
        ({"weight": np.zeros(2)}, "do not fit"),
        ({"packs": [np.zeros(2, np.uint8)]}, "one small integer per row"),
    ],
)
def test_curvatures_that_do_not_fit_are_refused(changed, what, in_numpy):
    levels = LevelMap((np.ones((1, 1)),), (np.zeros((1, 1), int),))
    args = {"point": np.zeros(2), "packs": [np.zeros(3, np.uint8)], "map": levels.compiled, "weight": None}
    args |= {"dense": None, "bend": np.zeros(3), "codes": np.zeros(1)} | changed
    with pytest.raises(ValueError, match=what):
        logistic.compiled.curvatures(*args.values())


@pytest.mark.parametrize("order", ["C", "F", "coded"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [0, 1, 1023, 3000])
@pytest.mark.parametrize("q", [1, 3, 4, 6])
def test_all_of_a_newton_step_in_one_pass(q, n, weighted, order, in_numpy):
    rng = np.random.default_rng(n)
    dense = rng.normal(size=(n, q))
    if order == "coded":  # every second column
        types = [np.uint8, np.uint16, np.uint32] * 2
        columns = [Coded(rng.integers(0, 7, n).astype(kind), rng.normal(size=7)) for kind in types[:q]]
        given = Numbers(tuple(columns[j] if j % 2 == 0 else dense[:, j] for j in range(q)))
        dense = np.asarray(given)
    else:
        given = dense = np.asarray(dense, order=order)
    weight = rng.integers(0, 3, n) * 0.5 if weighted else None
    target = rng.integers(0, 2, n).astype(np.uint8)
    positive = target if weight is None else weight * target
    point = rng.normal(size=1 + q)
    sums, hessian = logistic.dense_newton(point, given, positive, weight)
    plain = logistic.logistic_sums(point, [], NOTHING, positive, weight, dense)
    assert sums.loss == pytest.approx(plain.loss, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(sums.gradient, plain.gradient, rtol=1e-12, atol=1e-12)
    X = np.column_stack([np.ones(n), dense])
    p = 1 / (1 + np.exp(-X @ point))
    wanted = (X.T * (p * (1 - p) * (1.0 if weight is None else weight))) @ X
    np.testing.assert_allclose(hessian, wanted, rtol=1e-11, atol=1e-11)
    other, slow = in_numpy(logistic, logistic.dense_newton, point, given, positive, weight)
    assert sums.loss == pytest.approx(other.loss, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(other.gradient, sums.gradient, atol=1e-10)
    np.testing.assert_allclose(slow, wanted, atol=1e-10)
    for call in logistic.dense_newton, lambda *args, **how: in_numpy(logistic, logistic.dense_newton, *args, **how):
        straight, none = call(point, given, positive, weight, bent=False)
        assert none is None
        assert straight.loss == pytest.approx(sums.loss, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(straight.gradient, sums.gradient, atol=1e-10)


@pytest.mark.parametrize(
    "changed",
    [
        {"point": np.zeros(2)},
        {"positive": np.zeros(2)},
        {"positive": np.zeros(3, np.int32)},
        {"positive": None},
        {"weight": np.zeros(2)},
        {"columns": [np.zeros(3)]},
        {"columns": [np.zeros(3), np.zeros(2)]},
        {"columns": [np.zeros(3), np.zeros(3, np.float32)]},
        {"columns": [np.zeros(3), np.zeros((3, 1))]},
        {"tables": [np.zeros(0)]},
        {"tables": [np.zeros(0), np.zeros(1)]},
        {"tables": [np.zeros(0), np.zeros(1)], "columns": [np.zeros(3), np.zeros(6, np.uint8)[::2]]},
        {"gradient": np.zeros(2)},
        {"table": np.zeros((2, 2))},
    ],
)
def test_numbers_that_do_not_fit_are_refused(changed, in_numpy):
    args = {"point": np.zeros(3), "positive": np.zeros(3), "weight": None}
    args |= {"columns": [np.zeros(3)] * 2, "tables": [np.zeros(0)] * 2}
    args |= {"gradient": np.zeros(3), "table": np.zeros((3, 3))} | changed
    with pytest.raises(ValueError, match="do not fit"):
        logistic.compiled.dense_newton(*args.values())


@pytest.mark.parametrize("n", [0, 1, 1025])
def test_risks_are_looked_up(n, in_numpy):
    rng = np.random.default_rng(n)
    packs = [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in (3, 300)]
    tables = [4 * rng.normal(size=3), 4 * rng.normal(size=300)]
    found, other = np.empty(n), np.empty(n)
    logistic.look_up_risks(-1.0, packs, tables, found)
    in_numpy(logistic, logistic.look_up_risks, -1.0, packs, tables, other)
    wanted = 1 / (1 + np.exp(1.0 - tables[0][packs[0]] - tables[1][packs[1]]))
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    np.testing.assert_allclose(other, wanted, rtol=1e-14)


def test_risks_that_do_not_fit_are_refused(in_numpy):
    with pytest.raises(ValueError, match="as many tables as packs"):
        logistic.compiled.look_up_risks(0.0, [np.zeros(3, np.uint8)], [], np.zeros(3))
    with pytest.raises(ValueError, match="one small integer per row"):
        logistic.compiled.look_up_risks(0.0, [np.zeros(3, np.uint8)], [np.zeros(1)], np.zeros(2))
