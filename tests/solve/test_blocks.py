from __future__ import annotations

import numpy as np
import pytest

from plainrisk._native import level_sums, look_up
from plainrisk.solve.blocks import Block, Layout, split_rows

N = 400


@pytest.fixture(params=["packs", "dense", "both", "neither", "empty dense"])
def design(rng, request):
    """A layout, a block and the dense matrix that they stand for."""
    sizes = [(4, 3), (7, 7), (300, 5)] if request.param in ("packs", "both", "empty dense") else []
    maps = tuple((rng.random(shape) < 0.5).astype(np.float64) for shape in sizes)
    dtypes = [np.uint8, np.uint8, np.uint16]
    packs = tuple(rng.integers(0, len(m), N).astype(t) for m, t in zip(maps, dtypes, strict=False))
    widths = {"dense": 2, "both": 2, "empty dense": 0}
    dense = rng.normal(size=(N, widths[request.param])) if request.param in widths else None
    layout = Layout(maps, widths.get(request.param, 0))
    columns = [m[p] for m, p in zip(maps, packs, strict=True)] + ([] if dense is None else [dense])
    matrix = np.hstack(columns) if columns else np.zeros((N, 0))
    block = Block(packs, rng.integers(0, 2, N).astype(np.uint8), rng.random(N), dense)
    return layout, block, matrix


def scores(layout, intercept, beta, block):
    score = look_up(intercept, block.packs, layout.levels.tables(beta), len(block))
    return score if block.dense is None else score + block.dense @ beta[layout.levels.n_columns :]


def column_sums(layout, values, block):
    by_dense = np.zeros(0) if block.dense is None else values @ block.dense
    by_code = level_sums(values, block.packs, layout.levels.sizes)
    return np.concatenate([layout.levels.by_column(by_code), by_dense])


def test_scores_sums_and_gram_are_those_of_the_dense_matrix(rng, design):
    layout, block, X = design
    beta, values = rng.normal(size=X.shape[1]), rng.normal(size=N)
    assert layout.n_coefficients == X.shape[1]
    np.testing.assert_allclose(scores(layout, 0.7, beta, block), 0.7 + X @ beta, atol=1e-12)
    np.testing.assert_allclose(column_sums(layout, values, block), values @ X, atol=1e-11)
    X1 = np.column_stack([np.ones(N), X])
    np.testing.assert_allclose(layout.gram(values, block), (X1.T * values) @ X1, atol=1e-11)
    np.testing.assert_allclose(layout.gram(None, block), X1.T @ X1, atol=1e-11)


def test_sums_over_pieces_are_the_sum(rng, design):
    layout, block, _ = design
    pieces = split_rows(block, 150)
    assert [len(piece) for piece in pieces] == [150, 150, 100]
    values = rng.normal(size=N)
    parts = np.split(values, [150, 300])
    sums = sum(column_sums(layout, v, piece) for v, piece in zip(parts, pieces, strict=True))
    gram = sum(layout.gram(v, piece) for v, piece in zip(parts, pieces, strict=True))
    np.testing.assert_allclose(sums, column_sums(layout, values, block), atol=1e-11)
    np.testing.assert_allclose(gram, layout.gram(values, block), atol=1e-11)


def test_take_picks_rows_of_everything(design):
    layout, block, X = design
    rows = np.array([5, 3, 399])
    some = block.take(rows)
    beta = np.arange(1.0, 1.0 + X.shape[1])
    np.testing.assert_allclose(scores(layout, 0.0, beta, some), X[rows] @ beta, atol=1e-12)
    np.testing.assert_array_equal(some.positive, block.positive[rows])
    np.testing.assert_array_equal(some.weight, block.weight[rows])
