"""Columns of numbers, some of them as codes: what is taken of them is what is taken of the matrix."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk._native import Coded, Numbers
from plainrisk.solve import Block
from plainrisk.solve.sampling import every


@pytest.fixture
def numbers(rng):
    codes, values = rng.integers(0, 5, 5000).astype(np.uint8), rng.normal(size=5)
    return Numbers((rng.normal(size=5000), Coded(codes, values)))


def test_they_are_a_matrix(numbers):
    matrix = np.asarray(numbers)
    assert matrix.shape == numbers.shape == (5000, 2)
    assert len(numbers) == 5000
    np.testing.assert_array_equal(matrix[:, 0], numbers.columns[0])
    np.testing.assert_array_equal(matrix[:, 1], numbers.columns[1].values[numbers.columns[1].codes])
    np.testing.assert_array_equal(np.asarray(Numbers.of(matrix)), matrix)
    assert Numbers.of(numbers) is numbers
    assert Numbers.of(None).shape == (0, 0)


@pytest.mark.parametrize("rows", [slice(7, 90), slice(None, None, 3), np.array([4, 4, 0])])
def test_some_rows_of_them(rows, numbers):
    np.testing.assert_array_equal(np.asarray(numbers[rows]), np.asarray(numbers)[rows])
    columns, tables = numbers[rows].compiled
    assert [column.flags.c_contiguous for column in columns][1]
    np.testing.assert_array_equal(tables[1][columns[1]], np.asarray(numbers)[rows][:, 1])
    assert len(tables[0]) == 0


def test_they_become_a_matrix_by_a_copy_only(numbers):
    with pytest.raises(ValueError, match="copying"):
        np.asarray(numbers, copy=False)


def test_other_numbers_are_read_as_doubles():
    columns, tables = Numbers((np.arange(3), Coded(np.zeros(3, np.uint8), np.ones(4, np.float32)[::2]))).compiled
    assert columns[0].dtype == tables[1].dtype == np.float64
    assert tables[1].flags.c_contiguous


def test_one_row_in_so_many(numbers):
    target = np.arange(5000) % 2
    few = every(Block((), target, None, numbers), 16)
    same = every(Block((), target, None, np.asarray(numbers)), 16)
    np.testing.assert_array_equal(few.matrix, same.matrix)
    np.testing.assert_array_equal(few.positive, same.positive)
