import numpy as np
import pytest

from plainrisk._native import reading
from plainrisk.bins import level_counts


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_counts_are_sums_over_the_rows(monkeypatch, dtype):
    monkeypatch.setattr(reading, "_BLOCK", 7)
    rng = np.random.default_rng(0)
    codes, target = rng.integers(0, 5, 100).astype(dtype), rng.integers(0, 2, 100).astype(np.uint8)
    weight = rng.random(100)
    for w in (None, weight):
        mass = np.ones(100) if w is None else w
        total, positive = level_counts(codes, 6, target, w)
        assert total.dtype == positive.dtype == np.float64
        assert total.tolist() == pytest.approx([mass[codes == k].sum() for k in range(6)])
        assert positive.tolist() == pytest.approx([mass[(codes == k) & (target == 1)].sum() for k in range(6)])


def test_no_rows():
    total, positive = level_counts(np.zeros(0, np.uint8), 2, np.zeros(0, np.uint8))
    assert total.tolist() == positive.tolist() == [0.0, 0.0]
