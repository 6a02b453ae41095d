"""Packs and cells: the compiled way and numpy give the same, and both what the numbering says."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk.kernels import cells

SIZES = [7, 300, 4]


@pytest.fixture(params=[0, 1, 1024, 3001])
def codes(request):
    rng = np.random.default_rng(request.param)
    return [rng.integers(0, size, request.param).astype(np.min_scalar_type(size - 1)) for size in SIZES]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_places_are_added(codes, dtype, in_numpy):
    rng = np.random.default_rng(0)
    places = [rng.integers(0, 80, size).astype(dtype) for size in SIZES]
    found = cells.add_places(codes, places)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, sum(p[c].astype(int) for p, c in zip(places, codes, strict=True)))
    np.testing.assert_array_equal(found, in_numpy(cells, cells.add_places, codes, places))


@pytest.mark.parametrize("weighted", [False, True])
def test_cells(codes, weighted, in_numpy):
    rng = np.random.default_rng(1)
    n = len(codes[0])
    weight = rng.random(n) if weighted else None
    target = rng.integers(0, 2, n).astype(np.uint8)
    positive = target * weight if weighted else target
    total, hits = cells.cell_sums(codes, SIZES, positive, weight)
    at = np.ravel_multi_index([c.astype(np.intp) for c in codes], SIZES)
    expected = np.zeros(np.prod(SIZES))
    np.add.at(expected, at, np.ones(n) if weight is None else weight)
    np.testing.assert_array_equal(total, expected)
    plain = in_numpy(cells, cells.cell_sums, codes, SIZES, positive, weight)
    np.testing.assert_array_equal((total, hits), plain)


def test_what_does_not_fit_is_refused(in_numpy):
    byte, wide = np.zeros(3, np.uint8), np.zeros(2, np.uint16)
    with pytest.raises(ValueError, match="as many places"):
        cells.compiled.pack([byte], [], byte.copy())
    with pytest.raises(ValueError, match="of one type"):
        cells.compiled.pack([byte], [wide], byte.copy())
    with pytest.raises(ValueError, match="do not fit"):
        cells.compiled.cell_sums([byte], np.zeros(2, np.int64), byte, None, np.zeros(1), np.zeros(1))
