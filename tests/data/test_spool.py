"""Groups of arrays, in memory and on disk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from plainrisk.data.spool import Spool


def groups():
    rng = np.random.default_rng(0)
    return [(rng.integers(0, 9, n).astype(np.uint8), rng.normal(size=(n, 3)), np.arange(n)) for n in (5, 0, 400, 7)]


@pytest.mark.parametrize(("limit", "on_disk"), [(1 << 20, False), (100, True), (0, True)])
def test_what_goes_in_comes_out(limit, on_disk):
    spool = Spool(limit)
    for group in groups():
        spool.append(group)
        assert len(spool[-1][0]) == len(group[0])  # reading in between does no harm
    assert spool.on_disk is on_disk
    assert len(spool) == 4
    for _ in range(2):
        for found, given in zip(spool, groups(), strict=True):
            for a, b in zip(found, given, strict=True):
                np.testing.assert_array_equal(a, b)
                assert a.dtype == b.dtype


@pytest.mark.parametrize("limit", [None, 0])
def test_there_is_nothing_beyond_the_end(limit):
    spool = Spool(limit)
    spool.append((np.arange(3),))
    with pytest.raises(IndexError, match="index out of range"):
        spool[1]


def test_threads_may_read_at_the_same_time():
    spool = Spool(limit=0)
    for k in range(40):
        spool.append((np.full(2000, k), np.full(3, -k)))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: [set(a.tolist()) for a in spool[k]], [k % 40 for k in range(400)]))
    assert found == [[{k % 40}, {-(k % 40)}] for k in range(400)]
