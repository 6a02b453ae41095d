"""Rows are put in the order of their folds as a stable sort does."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk import kernels
from plainrisk.kernels import dealing


@pytest.mark.parametrize(("n_rows", "n_folds", "dtype"), [(0, 2, np.uint8), (7, 3, np.uint8), (5000, 300, np.uint16)])
def test_rows_of_a_fold_stand_together_in_their_order(in_numpy, n_rows, n_folds, dtype):
    fold = np.random.default_rng(0).integers(0, n_folds, n_rows).astype(dtype)
    order, ends = dealing.fold_order(fold, n_folds)
    np.testing.assert_array_equal(order, sorted(range(n_rows), key=lambda row: fold[row]))
    assert ends.tolist() == [int((fold <= k).sum()) for k in range(n_folds)]
    for ours, plain in zip((order, ends), in_numpy(dealing, dealing.fold_order, fold, n_folds), strict=True):
        np.testing.assert_array_equal(ours, plain)


@pytest.mark.skipif(not kernels.COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")
@pytest.mark.parametrize(
    ("fold", "order"),
    [
        (np.zeros(3, np.uint8), np.zeros(2, np.int64)),
        (np.zeros(3, np.uint8), np.zeros(3, np.int32)),
        (np.zeros(3, np.uint32), np.zeros(3, np.int64)),
        (np.full(3, 2, np.uint8), np.zeros(3, np.int64)),
        (np.full(3, 2, np.uint16), np.zeros(3, np.int64)),
    ],
)
def test_what_does_not_fit_is_refused(fold, order):
    with pytest.raises(ValueError, match="a fold and a place in the order per row"):
        dealing.compiled.fold_order(fold, order, np.zeros(2, np.int64))
