"""The compiled chains give the scores of numpy, to the last bit, and the formula's."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plainrisk._native import scores
from plainrisk._native.scores import Chain, Plan, Ramp, add_chains

FLOATS = st.integers(-6, 6).map(float) | st.sampled_from([0.5, -0.0, 2.5, 1e300, -1e300, 5e-324, 0.1])
VALUES = st.floats(-3, 3)
TYPES = [np.float64, np.float32, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, bool]
# Around the sizes of a tile, of columns that are far and of others.
N_ROWS = [0, 1, 7, 127, 128, 129, 300, 2047, 2048, 2049]


@st.composite
def any_chain(draw, most_edges=60):
    edges = tuple(sorted(draw(st.sets(FLOATS | st.floats(-9, 9), max_size=draw(st.sampled_from([0, 5, most_edges]))))))
    low, ramp = draw(st.sampled_from([-math.inf, -2.0, 1.0])), None
    if draw(st.booleans()) and not edges:
        ramp = Ramp(draw(VALUES), draw(FLOATS), draw(st.sampled_from([2.0, 1e100])), low, draw(VALUES))
    return Chain(
        values=tuple(draw(st.lists(VALUES, min_size=len(edges) + 1, max_size=len(edges) + 1))),
        edges=edges,
        ramp=ramp,
        equal=tuple(draw(st.lists(st.tuples(FLOATS, VALUES), max_size=draw(st.sampled_from([0, 1, 2, 3, 19]))))),
        limit=draw(st.sampled_from([math.inf, sys.float_info.max, 1e200])),
        missing=draw(VALUES),
    )


def value_of(chain, x):
    """The documentation of `Chain`, word by word."""
    value = chain.values[0]
    for edge, above in zip(chain.edges, chain.values[1:], strict=True):
        value = above if x > edge else value
    if chain.ramp is not None:
        ramp = chain.ramp
        value = min(max(ramp.slope * (x - ramp.center), -ramp.most), ramp.most)
        value = ramp.below if x < ramp.low else value
    for number, equal in chain.equal:
        value = equal if x == number else value
    value = math.nan if abs(x) > chain.limit else value
    return chain.missing if math.isnan(x) else value


def random_column(rng, n, dtype, layout):
    """Numbers of a type, stored one after the other, apart, or backwards."""
    if np.dtype(dtype).kind == "f":
        numbers = rng.choice([*np.arange(-6.0, 7), 0.5, -0.0, 0.1, 1e30, -1e30, np.nan], n).astype(dtype)
    elif dtype is bool:
        numbers = rng.integers(0, 2, n).astype(bool)
    else:
        ends = np.iinfo(dtype)
        numbers = rng.choice(np.array([*range(7), ends.min, ends.max, ends.max - 1], dtype), n)
    if layout == "apart":
        return np.repeat(numbers, 3)[::3]
    return numbers[::-1].copy()[::-1] if layout == "backwards" else numbers


def scored(columns, plan, n):
    """Two scores, the first in one piece and the second a column of a matrix."""
    matrix = np.linspace(-1, 1, 3 * n).reshape(n, 3)
    found = [np.linspace(-1, 1, n), matrix[:, 1]]
    good = add_chains(found, columns, plan)
    np.testing.assert_array_equal(matrix[:, ::2], np.linspace(-1, 1, 3 * n).reshape(n, 3)[:, ::2])
    return found, good


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(any_chain(), min_size=1, max_size=12), st.sampled_from(N_ROWS), st.integers(0, 99), st.data())
def test_same_bits_for_any_chains_and_columns(in_numpy, chains, n, seed, data):
    rng = np.random.default_rng(seed)
    kinds = st.tuples(st.sampled_from(TYPES), st.sampled_from(["together", "apart", "backwards"]))
    columns = [random_column(rng, n, *data.draw(kinds)) for _ in chains]
    plan = Plan(tuple((int(rng.integers(len(chains))), int(rng.integers(2)), chain) for chain in chains))
    found, good = scored(columns, plan, n)
    wanted, as_good = in_numpy(scores, scored, columns, plan, n)
    assert good == as_good
    if good:
        for one, other in zip(found, wanted, strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("width", [1, 7, 8, 9, 30])
@pytest.mark.parametrize("n", N_ROWS)
def test_same_bits_for_a_matrix(in_numpy, n, width, order, dtype):
    rng = np.random.default_rng(n + width)
    matrix = np.array(rng.normal(size=(n, width)), dtype=dtype, order=order)
    plan = Plan(tuple((j, j % 2, Chain((0.1, j / 3, 0.7, -j / 7), (-1.0, 0.0, 0.5))) for j in range(width)))
    columns = [matrix[:, j] for j in range(width)]
    found, good = scored(columns, plan, n)
    wanted, _ = in_numpy(scores, scored, columns, plan, n)
    assert good
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=200)
@given(any_chain(), st.lists(FLOATS | st.just(math.nan) | st.just(math.inf) | st.just(-math.inf), max_size=20))
def test_the_formula(chain, x):
    found = [np.zeros(len(x))]
    good = add_chains(found, [np.array(x)], Plan(((0, 0, chain),)))
    wanted = [0.0 + value_of(chain, number) for number in x]
    assert good == (not any(map(math.isnan, wanted)))
    if good:
        np.testing.assert_array_equal(found[0], wanted)


@pytest.mark.parametrize("n", [1, 8, 9, 16, 47, 48, 49, 50, 64, 101, 1000])
def test_values_between_and_on_any_number_of_edges(n):
    rng = np.random.default_rng(n)
    values = rng.normal(size=n + 1)
    x = np.arange(-1, n + 0.5, 0.5)
    score = np.zeros(len(x))
    assert add_chains([score], [x], Plan(((0, 0, Chain(tuple(values), tuple(np.arange(float(n))))),)))
    np.testing.assert_array_equal(score, values[np.clip(np.ceil(x), 0, n).astype(int)])


def test_order_of_addition():
    """From left to right: 1 is lost beside 1e16, unless it comes after 1e16 is taken back."""
    columns = [np.zeros(3)] * 3
    big, small, back = Chain((1e16,)), Chain((1.0,)), Chain((-1e16,))
    for chains, wanted in (((big, small, back), 0.0), ((big, back, small), 1.0)):
        score = np.zeros(3)
        assert add_chains([score], columns, Plan(tuple((j, 0, chain) for j, chain in enumerate(chains))))
        assert score.tolist() == [wanted] * 3


@pytest.mark.parametrize("row", [0, 130, 2999])
def test_one_row_without_a_number_is_told(row):
    x = np.zeros((3000, 9))
    x[row, 4] = np.inf
    for matrix in (x, np.asfortranarray(x)):
        plan = Plan(tuple((j, 0, Chain(limit=sys.float_info.max)) for j in range(9)))
        assert not add_chains([np.zeros(3000)], list(matrix.T), plan)
        assert add_chains([np.zeros(3000)], list(matrix[:, :4].T), Plan(plan.steps[:4]))


SCORE, COLUMN = [np.zeros(3)], [np.zeros(3)]
STEP = (0, 0, 0, 0, 0)  # column, score, where its numbers start, edges, numbers to be equal to: 9 numbers in all


@pytest.mark.parametrize(
    ("score", "column", "what"),
    [
        ([np.zeros(2)], COLUMN, "a column must have one number per row"),
        ([np.zeros(3, np.float32)], COLUMN, "a score must be float64"),
        ([np.zeros(3, np.int64)], COLUMN, "a score must be float64"),
        ([np.zeros(3)[::-1]], COLUMN, "a score must be float64"),
        (SCORE, [np.zeros(2)], "a column must have one number per row"),
        (SCORE, [np.zeros((3, 1))], "a column must have one number per row"),
        (SCORE, [np.zeros(3, np.float16)], "of a type that is known here"),
        (SCORE, [np.zeros(3, np.longdouble)], "of a type that is known here"),
        (SCORE, [np.zeros(3, ">f8")], "of a type that is known here"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(score, column, what, in_numpy):
    with pytest.raises(ValueError, match=what):
        scores.compiled.add_chains(score, column, 3, np.array(STEP), np.zeros(9))


@pytest.mark.parametrize(
    ("step", "n_numbers"),
    [
        (STEP, 8),
        ((1, 0, 0, 0, 0), 99),
        ((-1, 0, 0, 0, 0), 99),
        ((0, 1, 0, 0, 0), 99),
        ((0, -1, 0, 0, 0), 99),
        ((0, 0, 1, 0, 0), 9),
        ((0, 0, -1, 0, 0), 99),
        ((0, 0, 2**62, 0, 0), 99),
        ((0, 0, 0, 2, 0), 12),
        ((0, 0, 0, 0, 2), 12),
        ((0, 0, 0, 1, 0), 99),
        ((0, 0, 0, -2, 0), 99),
        ((0, 0, 0, 2**62, 2**62), 99),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(step, n_numbers, in_numpy):
    with pytest.raises(ValueError, match="the plan does not fit"):
        scores.compiled.add_chains(SCORE, COLUMN, 3, np.array(step), np.zeros(n_numbers))


def test_the_smallest_plan_fits(in_numpy):
    assert scores.compiled.add_chains(SCORE, COLUMN, 3, np.array(STEP), np.zeros(9)) is True
    assert scores.compiled.add_chains(SCORE, COLUMN, 3, np.array((0, 0, 0, 2, 2)), np.zeros(17)) is True
