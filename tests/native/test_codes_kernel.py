"""The compiled search finds the cells of numpy, and those of the definition, whatever the numbers and their storage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plainrisk._native import codes
from plainrisk._native.codes import Term, add_scores, code_numbers, is_readable

FLOATS = st.integers(-6, 6).map(float) | st.sampled_from([0.5, -0.0, 2.5, 1e300, -1e300, 5e-324, 0.1])
ANY = FLOATS | st.sampled_from([math.nan, math.inf, -math.inf, 1.7976931348623157e308])
TYPES = [np.float64, np.float32, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, bool]
N_ROWS = [0, 1, 7, 511, 512, 513, 1300]  # around the size of a tile


@st.composite
def sorted_cuts(draw, most=60):
    size = draw(st.sampled_from([0, 1, 5, most]))
    return np.array(sorted(draw(st.lists(FLOATS | st.floats(-9, 9) | st.just(-math.inf), max_size=size))))


def cell_of(cuts, x):
    """The definition, word by word."""
    return len(cuts) + 1 if math.isnan(x) else sum(x > cut for cut in cuts)


def random_column(rng, n, dtype, layout):
    """Numbers of a type, stored one after the other, apart, or backward."""
    if np.dtype(dtype).kind == "f":
        some = [*np.arange(-6.0, 7), 0.5, -0.0, 0.1, 1e4, -1e4, np.nan, np.inf, -np.inf]
        numbers = rng.choice(some, n).astype(dtype)
    elif dtype is bool:
        numbers = rng.integers(0, 2, n).astype(bool)
    else:
        ends = np.iinfo(dtype)
        numbers = rng.choice(np.array([*range(7), ends.min, ends.max, ends.max - 1], dtype), n)
    if layout == "apart":
        return np.repeat(numbers, 3)[::3]
    return numbers[::-1].copy()[::-1] if layout == "backward" else numbers


LAYOUTS = ["together", "apart", "backward"]


@settings(max_examples=300)
@given(sorted_cuts(), st.lists(ANY, max_size=20))
def test_codes_are_those_of_the_definition(cuts, x):
    levels = np.arange(len(cuts) + 2, dtype=np.uint8)
    assert code_numbers(np.array(x), cuts, levels).tolist() == [cell_of(cuts, number) for number in x]


@pytest.mark.parametrize("n_cuts", [0, 1, 3, 4, 5, 8, 31, 32, 33, 64, 101, 1000])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_any_number_of_cuts(n_cuts, dtype, in_numpy):
    rng = np.random.default_rng(n_cuts)
    cuts = np.arange(float(n_cuts))
    x = np.concatenate([np.arange(-1, n_cuts + 0.5, 0.5), [np.nan]])
    levels = rng.integers(0, 200, n_cuts + 2).astype(dtype)
    found = code_numbers(x, cuts, levels)
    expected = levels[np.append(np.clip(np.ceil(x[:-1]), 0, n_cuts).astype(int), -1)]
    np.testing.assert_array_equal(found, expected, strict=True)
    np.testing.assert_array_equal(in_numpy(codes, code_numbers, x, cuts, levels), expected, strict=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*TYPES, np.float16, np.longdouble, ">f8", ">i4"])
@pytest.mark.parametrize("n", N_ROWS)
def test_codes_of_any_type(n, dtype, layout, in_numpy):
    x = random_column(np.random.default_rng(n), n, dtype, layout)
    for cuts in (np.array([-1.0, 0.0, 2.5]), np.linspace(-7, 7, 40)):
        levels = np.arange(len(cuts) + 2, dtype=np.uint8)
        found = code_numbers(x, cuts, levels)
        np.testing.assert_array_equal(found, in_numpy(codes, code_numbers, x, cuts, levels))
        assert found.tolist() == [cell_of(cuts, float(number)) for number in x]


@st.composite
def any_terms(draw):
    terms = []
    for _ in range(draw(st.integers(1, 12))):
        cuts = draw(sorted_cuts())
        size = len(cuts) + 2
        table = draw(st.lists(st.floats(-3, 3) | st.just(math.nan), min_size=size, max_size=size))
        terms.append(Term(draw(st.integers(0, 1)), cuts, np.array(table)))
    return terms


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_terms(), st.sampled_from(N_ROWS), st.integers(0, 99), st.data())
def test_same_bits_for_any_terms_and_columns(in_numpy, terms, n, seed, data):
    rng = np.random.default_rng(seed)
    kinds = st.tuples(st.sampled_from(TYPES), st.sampled_from(LAYOUTS))
    columns = [random_column(rng, n, *data.draw(kinds)) for _ in terms]
    assert all(map(is_readable, columns))
    found, wanted = np.tile(np.linspace(-1, 1, n), (2, 1)), np.tile(np.linspace(-1, 1, n), (2, 1))
    add_scores(list(found), columns, terms)
    in_numpy(codes, add_scores, list(wanted), columns, terms)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", N_ROWS)
def test_the_columns_of_a_matrix(n, order, dtype, in_numpy):
    rng = np.random.default_rng(n)
    matrix = np.array(rng.normal(size=(n, 9)), dtype=dtype, order=order)
    terms = [Term(0, np.array([-1.0, 0.0, 0.5]), np.array([0.1, j / 3, 0.7, -j / 7, 0.0])) for j in range(9)]
    found, wanted = np.zeros(n), np.zeros(n)
    add_scores([found], list(matrix.T), terms)
    in_numpy(codes, add_scores, [wanted], list(matrix.T), terms)
    np.testing.assert_array_equal(found, wanted)


def test_order_of_addition():
    """From left to right: 1 is lost beside 1e16, unless it comes after 1e16 is taken back."""
    columns = [np.zeros(3)] * 3
    big, small, back = (Term(0, np.zeros(0), np.array([v, 0.0])) for v in (1e16, 1.0, -1e16))
    for terms, wanted in (((big, small, back), 0.0), ((big, back, small), 1.0)):
        score = np.zeros(3)
        add_scores([score], columns, terms)
        assert score.tolist() == [wanted] * 3


ROWS, ZERO, CUTS, TABLE, LEVELS, OUT = (
    np.zeros(3), np.zeros(1, np.int64), np.zeros(1), np.zeros(3), np.zeros(3), np.zeros(3, np.uint8)
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (([np.zeros(2)], ZERO, [ROWS], [CUTS], [TABLE]), "one number per row"),
        (([np.zeros(3, np.float32)], ZERO, [ROWS], [CUTS], [TABLE]), "a score must be float64 in one piece"),
        (([np.zeros(3, np.int64)], ZERO, [ROWS], [CUTS], [TABLE]), "a score must be float64 in one piece"),
        (([np.zeros(6)[::2]], ZERO, [ROWS], [CUTS], [TABLE]), "a score must be float64 in one piece"),
        (([ROWS], ZERO + 1, [ROWS], [CUTS], [TABLE]), "a score that is not there"),
        (([ROWS], ZERO - 1, [ROWS], [CUTS], [TABLE]), "a score that is not there"),
        (([ROWS], ZERO[:0], [ROWS], [CUTS], [TABLE]), "needed for every column"),
        (([ROWS], np.zeros(1, np.int32), [ROWS], [CUTS], [TABLE]), "needed for every column"),
        (([ROWS], ZERO, [ROWS], [], [TABLE]), "needed for every column"),
        (([ROWS], ZERO, [ROWS], [CUTS], []), "needed for every column"),
        (([ROWS], ZERO, [ROWS], [CUTS], [TABLE[:2]]), "one float64 per cell"),
        (([ROWS], ZERO, [ROWS], [CUTS.astype(np.float32)], [TABLE]), "one float64 per cell"),
        (([ROWS], ZERO, [ROWS[:2]], [CUTS], [TABLE]), "one number per row"),
        (([ROWS], ZERO, [np.zeros((3, 1))], [CUTS], [TABLE]), "one number per row"),
        (([ROWS], ZERO, [np.zeros(3, np.float16)], [CUTS], [TABLE]), "of a type that is known here"),
        (([ROWS], ZERO, [np.zeros(3, ">f8")], [CUTS], [TABLE]), "of a type that is known here"),
    ],
)
def test_scores_that_do_not_fit_are_refused(arguments, what, in_numpy):
    with pytest.raises(ValueError, match=what):
        codes.compiled.add_scores(3, *arguments)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((ROWS, CUTS, LEVELS[:2], OUT), "a level for every cell"),
        ((ROWS, CUTS, LEVELS.astype(np.uint8), OUT), "a level for every cell"),
        ((ROWS, CUTS, LEVELS, np.zeros(3)), "a small code per row"),
        ((ROWS, CUTS.astype(np.float32), LEVELS, OUT), "a level for every cell"),
        ((ROWS, CUTS, LEVELS + 256, OUT), "too large for its code"),
        ((ROWS, CUTS, LEVELS + 65536, OUT.astype(np.uint16)), "too large for its code"),
        ((ROWS, CUTS, LEVELS - 1, OUT), "too large for its code"),
        ((ROWS, CUTS, LEVELS * math.nan, OUT), "too large for its code"),
        ((ROWS[:2], CUTS, LEVELS, OUT), "one number per row"),
        ((np.zeros((3, 1)), CUTS, LEVELS, OUT), "one number per row"),
        ((np.zeros(3, "c8"), CUTS, LEVELS, OUT), "of a type that is known here"),
    ],
)
def test_codes_that_do_not_fit_are_refused(arguments, what, in_numpy):
    with pytest.raises(ValueError, match=what):
        codes.compiled.code_numbers(*arguments)
