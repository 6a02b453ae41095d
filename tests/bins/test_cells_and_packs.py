from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainrisk.bins import collapse, pack_codes, pack_limit


@st.composite
def coded_rows(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return sizes, [rng.integers(0, size, n).astype(np.uint8) for size in sizes], rng


# ---- cells


@settings(max_examples=100, deadline=None)
@given(coded_rows(), st.booleans())
def test_cells_hold_every_row_once(rows, weighted):
    sizes, codes, rng = rows
    n = len(codes[0])
    target = rng.integers(0, 2, n).astype(np.uint8)
    weight = rng.integers(0, 3, n).astype(np.float64) if weighted else None
    if int(np.prod(sizes)) > 4096:
        return
    one = np.ones(n) if weight is None else weight
    cells = collapse(codes, sizes, target if weight is None else weight * target, weight)
    total, hits = Counter(), Counter()
    for i, key in enumerate(zip(*(c.tolist() for c in codes), strict=True)):
        total[key] += one[i]
        hits[key] += one[i] * target[i]
    found = list(zip(*(c.tolist() for c in cells.codes), strict=True))
    assert len(set(found)) == len(found)
    assert dict(zip(found, cells.weight, strict=True)) == {k: w for k, w in total.items() if w > 0}
    assert dict(zip(found, cells.positive, strict=True)) == {k: hits[k] for k in found}


def test_hardly_fewer_cells_than_rows_are_no_cells():
    codes = [np.zeros(100, dtype=np.uint8)] * 3
    target = np.zeros(100, dtype=np.uint8)
    assert collapse(codes, [16, 16, 16], target) is not None
    assert collapse(codes, [16, 16, 17], target) is None
    # More cells than any integer counts must not overflow into few.
    many = [np.zeros(100, dtype=np.uint8)] * 40
    assert collapse(many, [256] * 40, target) is None


def test_the_codes_of_wide_columns_are_kept():
    wide = np.array([0, 299, 299], dtype=np.uint16)
    cells = collapse([wide, np.array([1, 0, 0], dtype=np.uint8)], [300, 2], np.array([0, 1, 0]))
    assert [c.tolist() for c in cells.codes] == [[0, 299], [1, 0]]
    assert cells.codes[0].dtype == np.uint16
    assert (cells.weight.tolist(), cells.positive.tolist()) == ([1, 2], [0, 1])


# ---- packs


@settings(max_examples=150, deadline=None)
@given(coded_rows(), st.integers(1, 300))
def test_packs_can_be_taken_apart(rows, limit):
    sizes, codes, _ = rows
    seen = [np.bincount(c, minlength=size) > 0 for c, size in zip(codes, sizes, strict=True)]
    packs = pack_codes(codes, seen, limit)
    assert [j for pack in packs for j in pack.features] == list(range(len(sizes)))
    for pack in packs:
        assert len(pack.members) <= limit or len(pack.features) == 1
        assert pack.codes.max() < len(pack.members)
        for column, j in zip(pack.members.T, pack.features, strict=True):
            np.testing.assert_array_equal(column[pack.codes], codes[j])


def test_levels_that_never_occur_take_no_room():
    codes = [np.array([7, 250], dtype=np.uint8), np.array([0, 1], dtype=np.uint8)]
    seen = [np.isin(np.arange(256), [7, 250]), np.array([True, True])]
    (pack,) = pack_codes(codes, seen, limit=16)
    assert len(pack.members) == 4


@pytest.mark.parametrize(("size", "dtype"), [(256, np.uint8), (257, np.uint16), (65536, np.uint16)])
def test_codes_are_as_small_as_can_be(size, dtype):
    (pack,) = pack_codes([np.array([0, size - 1], dtype=np.uint16)], [np.ones(size, dtype=bool)], limit=16)
    assert pack.codes.dtype == dtype
    assert pack.codes.tolist() == [0, size - 1]


def test_a_feature_that_was_never_seen_is_one_level():
    (pack,) = pack_codes([np.zeros(3, dtype=np.uint8)], [np.zeros(2, dtype=bool)], limit=16)
    assert pack.members.tolist() == [[0]]


def test_no_features_give_no_packs():
    assert pack_codes([], [], 16) == []


def test_a_table_of_pairs_does_not_outgrow_the_rows():
    assert [pack_limit(n) for n in (1, 400, 10**4, 10**8)] == [16, 20, 100, 256]
