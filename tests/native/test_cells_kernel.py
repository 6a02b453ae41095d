"""Packs and cells: the compiled way and numpy give the same, and both what the numbering says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from plainrisk._native import cells

SIZES = [7, 300, 4]


@pytest.fixture(params=[0, 1, 1024, 3001])
def codes(request):
    rng = np.random.default_rng(request.param)
    return [rng.integers(0, size, request.param).astype(np.min_scalar_type(size - 1)) for size in SIZES]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("step", [None, 0, 1, 7])
def test_places_are_added(codes, dtype, step, in_numpy):
    rng = np.random.default_rng(0)
    codes = [code % 30 for code in codes]
    places = [rng.integers(0, 80, size) if step is None else np.arange(size) % 30 * step % 80 for size in SIZES]
    places = [place[:30].astype(dtype) for place in places]
    found = cells.add_places(codes, places)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, sum(p[c].astype(int) for p, c in zip(places, codes, strict=True)))
    np.testing.assert_array_equal(found, in_numpy(cells, cells.add_places, codes, places))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.intp])
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint16])
def test_codes_become_others_and_minus_one_the_last(dtype, kind, in_numpy):
    rng = np.random.default_rng(2)
    codes = rng.integers(-1, 128, 3001).astype(dtype)
    table = rng.integers(0, 120, 129).astype(kind)
    found = cells.recode(codes[::2], table)
    assert found.dtype == kind
    assert found.tolist() == [int(table[code]) for code in codes[::2].tolist()]
    np.testing.assert_array_equal(found, in_numpy(cells, cells.recode, codes[::2], table))


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


def test_cells_by_outcome(codes, in_numpy):
    target = np.random.default_rng(3).integers(0, 2, len(codes[0])).astype(np.uint8)
    found = cells.cell_counts(codes, SIZES, target)
    total, hits = cells.cell_sums(codes, SIZES, target)
    np.testing.assert_array_equal(found.sum(axis=1), total)
    np.testing.assert_array_equal(found[:, 1], hits)
    np.testing.assert_array_equal(found, in_numpy(cells, cells.cell_counts, codes, SIZES, target))


@pytest.mark.parametrize("sizes", [SIZES, [64], [8, 8], [3, 1], [65536, 40]])
@pytest.mark.parametrize("n", [0, 1, 1024, 3001])
def test_occupied_cells(n, sizes, in_numpy):
    rng = np.random.default_rng(n)
    codes = [rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in sizes]
    for code, size in zip(codes, sizes, strict=True):
        code[-1:] = size - 1  # the very last cell
    key = np.ravel_multi_index([code.astype(np.intp) for code in codes], sizes)
    used, cell = cells.occupied_cells(codes, sizes)
    np.testing.assert_array_equal(used, np.unique(key))
    np.testing.assert_array_equal(used[cell], key)
    for one, other in zip((used, cell), in_numpy(cells, cells.occupied_cells, codes, sizes), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_many_cells_are_numbered_in_two_bytes(in_numpy):
    code = np.arange(300, dtype=np.uint16)
    used, cell = cells.occupied_cells([code[::-1]], [1000])
    assert cell.dtype == np.uint16
    np.testing.assert_array_equal(cell, code[::-1])
    np.testing.assert_array_equal(used, code)


def test_cells_that_do_not_fit_are_refused(in_numpy):
    byte, strides, bits = np.zeros(3, np.uint8), np.ones(1, np.int64), np.zeros(1, np.uint64)
    mark, number = cells.compiled.mark_cells, cells.compiled.number_cells
    with pytest.raises(ValueError, match="beyond the size"):
        mark([np.array([64], np.uint8)], strides, bits)
    for args in ([byte], np.ones(2, np.int64), bits), ([byte], strides, np.zeros(2, np.uint8)), ([], bits[:0], bits):
        with pytest.raises(ValueError, match="do not fit"):
            mark(*args)
    with pytest.raises(ValueError, match="one small integer per row"):
        mark([byte, byte[:2]], np.ones(2, np.int64), bits)
    assert mark([byte], strides, bits) == 1
    with pytest.raises(ValueError, match="beyond the size"):
        number([np.full(3, 64, np.uint8)], strides, bits, np.zeros(1, np.int64), byte.copy())
    for used, out in (np.zeros(2, np.int64), byte.copy()), (np.zeros(1, np.int64), np.zeros(2, np.uint8)):
        with pytest.raises(ValueError, match="a number for every row"):
            number([byte], strides, bits, used, out)


def test_what_does_not_fit_is_refused(in_numpy):
    byte, wide = np.zeros(3, np.uint8), np.zeros(2, np.uint16)
    with pytest.raises(ValueError, match="as many places"):
        cells.compiled.pack([byte], [], byte.copy())
    with pytest.raises(ValueError, match="of one type"):
        cells.compiled.pack([byte], [wide], byte.copy())
    with pytest.raises(ValueError, match="do not fit"):
        cells.compiled.cell_sums([byte], np.zeros(2, np.int64), byte, None, np.zeros(1), np.zeros(1))
    counts = np.zeros((1, 2), np.uint32)
    with pytest.raises(ValueError, match="outcomes and counts do not fit"):
        cells.compiled.cell_counts([byte], np.zeros(2, np.int64), byte, counts)
    with pytest.raises(ValueError, match="outcomes and counts do not fit"):
        cells.compiled.cell_counts([byte], np.zeros(1, np.int64), byte, np.zeros((1, 2)))
    beyond = np.array([0, 1, 2], np.uint8)
    with pytest.raises(ValueError, match="beyond the size of its pack"):
        cells.compiled.cell_counts([beyond], np.ones(1, np.int64), byte, np.zeros((2, 2), np.uint32))
    with pytest.raises(ValueError, match="beyond the size of its pack"):
        cells.compiled.cell_sums([beyond], np.ones(1, np.int64), byte, None, np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("n", [0, 1, 3001])
@pytest.mark.parametrize("sizes", [(3,), (4, 1, 5), (6, 50), (300, 300), (2, 3, 2, 3)])
@pytest.mark.parametrize("which", ["some", "the first", "all", "none of one"])
def test_features_packed_by_the_levels_that_were_seen(which, n, sizes, in_numpy):
    rng = np.random.default_rng(n)
    share = {"some": 0.7, "all": 1.0}.get(which, 0.5)
    seen = [rng.random(size) < share if which == "some" else np.arange(size) < share * size for size in sizes]
    if which == "none of one":
        seen[0][:] = False
    some = [np.flatnonzero(flags) if flags.any() else np.zeros(1, int) for flags in seen]
    codes = [rng.choice(levels, n).astype(np.min_scalar_type(levels.max())) for levels in some]
    size = int(np.prod([len(levels) for levels in some]))
    packed, members = cells.pack_seen(codes, seen, size)
    assert packed.dtype == cells.small_codes(size)
    np.testing.assert_array_equal(members[packed], np.stack(codes, axis=1))
    assert [tuple(row) for row in members.tolist()] == list(itertools.product(*(levels.tolist() for levels in some)))
    for one, other in zip((packed, members), in_numpy(cells, cells.pack_seen, codes, seen, size), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"seen": []}, "as many places"),
        ({"seen": [np.ones(2)]}, "must be one byte"),
        ({"seen": [np.ones(3, bool)]}, "a code for all levels"),
        ({"seen": [np.array([True, False])]}, "a code for all levels"),
        ({"members": np.zeros(2, np.int64)}, "a column for every feature"),
        ({"members": np.zeros((2, 2), np.int64)}, "a column for every feature"),
        ({"members": np.zeros((2, 1), np.int32)}, "a column for every feature"),
        ({"members": np.zeros((0, 1), np.int64)}, "a column for every feature"),
        ({"members": np.zeros((300, 1), np.int64), "seen": [np.ones(300, bool)]}, "more codes than the type"),
        ({"out": np.zeros(3, np.int64)}, "one, two or four bytes"),
        ({"out": np.zeros(2, np.uint8)}, "one small integer per row"),
    ],
)
def test_packs_that_do_not_fit_are_refused(changed, what, in_numpy):
    args = {"codes": [np.zeros(3, np.uint8)], "seen": [np.ones(2, bool)]}
    args |= {"members": np.zeros((2, 1), np.int64), "out": np.zeros(3, np.uint8)}
    cells.compiled.pack_seen(*args.values())
    with pytest.raises(ValueError, match=what):
        cells.compiled.pack_seen(*(args | changed).values())


@pytest.mark.parametrize("sizes", [SIZES, [64], [1, 1], [3, 1, 300], [2, 70_000]])
def test_cells_are_listed(sizes, in_numpy):
    rng = np.random.default_rng(len(sizes))
    grid = int(np.prod(sizes))
    counts = np.where(rng.random((grid, 2)) < 0.3, rng.integers(0, 2**32, (grid, 2)), 0).astype(np.uint32)
    counts[-1] = 2**32 - 1
    codes, total, hits = cells.list_cells(counts, sizes)
    used = np.flatnonzero(counts.any(axis=1))
    at = np.zeros(len(used), np.intp)
    for code, size in zip(codes, sizes, strict=True):
        at = at * size + code
    np.testing.assert_array_equal(at, used)
    np.testing.assert_array_equal(total, counts[used].astype(np.float64).sum(axis=1))
    np.testing.assert_array_equal(hits, counts[used, 1])
    other, *sums = in_numpy(cells, cells.list_cells, counts, sizes)
    for one, two in zip((*codes, total, hits), (*other, *sums), strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"counts": np.ones((5, 2), np.uint32)}, "do not fit"),
        ({"counts": np.ones((6, 2), np.uint8)}, "do not fit"),
        ({"counts": np.ones(13, np.uint32)}, "do not fit"),
        ({"sizes": np.array([2])}, "do not fit"),
        ({"sizes": np.array([6, 0])}, "do not fit"),
        ({"sizes": np.array([-2, -3])}, "do not fit"),
        ({"sizes": np.array([2, 6])}, "do not fit"),
        ({"codes": []}, "do not fit"),
        ({"codes": [np.zeros(6, np.uint8), np.zeros(5, np.uint8)]}, "one small integer per row"),
        ({"hits": np.zeros(5)}, "do not fit"),
        ({"counts": np.ones((600, 2), np.uint32), "sizes": np.array([2, 300])}, "do not fit"),
        ({"counts": np.zeros((6, 2), np.uint32)}, "as many cells as have rows"),
        (
            {"total": np.zeros(5), "hits": np.zeros(5), "codes": [np.zeros(5, np.uint8), np.zeros(5, np.uint8)]},
            "as many cells as have rows",
        ),
    ],
)
def test_lists_that_do_not_fit_are_refused(changed, what, in_numpy):
    args = {"counts": np.ones((6, 2), np.uint32), "sizes": np.array([2, 3])}
    args |= {"codes": [np.zeros(6, np.uint8), np.zeros(6, np.uint8)], "total": np.zeros(6), "hits": np.zeros(6)}
    cells.compiled.list_cells(*args.values())
    with pytest.raises(ValueError, match=what):
        cells.compiled.list_cells(*(args | changed).values())
