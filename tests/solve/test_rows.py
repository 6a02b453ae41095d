"""Sums over rows: the same however rows are cut into blocks and shared between threads."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk.solve import Block, Layout, LogisticLoss, Moments, Rows
from plainrisk.solve.rows import PIECE_ROWS
from plainrisk.threads import MANY_ROWS

SIZES = (3, 5, 300)


def make_block(n, *, weighted=True, n_dense=2):
    rng = np.random.default_rng(n)
    codes = tuple(rng.integers(0, size, n).astype(np.min_scalar_type(size - 1)) for size in SIZES)
    weight = rng.random(n) if weighted else None
    target = (rng.random(n) < 0.3).astype(np.uint8)
    dense = rng.normal(size=(n, n_dense)) if n_dense else None
    return Block(codes, target if weight is None else weight * target, weight, dense)


def make_layout(n_dense=2):
    rng = np.random.default_rng(7)
    return Layout(tuple((rng.random((size, 3)) < 0.5).astype(np.float64) for size in SIZES), n_dense)


def matrix_of(layout, block):
    """The columns of a layout written out row by row, the constant 1 first."""
    columns = [np.ones((len(block), 1))]
    columns += [matrix[code] for matrix, code in zip(layout.matrices, block.codes, strict=True)]
    return np.hstack([*columns, *([] if block.dense is None else [block.dense])])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_dense", [0, 2])
@pytest.mark.parametrize("n", [1, 700])
def test_gram_is_the_product_of_the_columns(n, n_dense, weighted):
    layout, block = make_layout(n_dense), make_block(n, weighted=weighted, n_dense=n_dense)
    X = matrix_of(layout, block)
    wanted = X.T @ (X if block.weight is None else block.weight[:, None] * X)
    np.testing.assert_allclose(layout.gram(block.weight, block), wanted, rtol=1e-12, atol=1e-11)


def test_a_layout_without_numeric_columns_takes_a_block_with_an_empty_matrix():
    """As many features as none may be lines."""
    block = make_block(50, n_dense=0)
    empty = Block(block.codes, block.positive, block.weight, np.zeros((50, 0)))
    layout = make_layout(0)
    np.testing.assert_array_equal(layout.gram(None, empty), layout.gram(None, block))


def test_coefficients_become_scores_and_sums_by_code_become_sums_by_coefficient(rng):
    layout, block = make_layout(), make_block(400)
    beta, values = rng.normal(size=layout.n_coefficients), rng.normal(size=400)
    X = matrix_of(layout, block)[:, 1:]
    scores = sum(table[code] for table, code in zip(layout.tables(beta), block.codes, strict=True))
    np.testing.assert_allclose(scores + block.dense @ layout.dense_part(beta), X @ beta, rtol=0, atol=1e-12)
    by_code = [np.bincount(code, values, minlength=n) for code, n in zip(block.codes, SIZES, strict=True)]
    np.testing.assert_allclose(layout.gather(by_code, values @ block.dense), values @ X, rtol=0, atol=1e-11)
    assert [s.stop - s.start for s in layout.columns] == [3, 3, 3]
    assert layout.sizes == SIZES


def test_nothing_to_fit_is_a_layout_too():
    layout, block = Layout(()), Block((), np.array([1, 0, 1], np.uint8))
    assert layout.n_coefficients == 0
    np.testing.assert_array_equal(layout.gram(None, block), [[3.0]])
    assert layout.gather([], None).shape == (0,)


@pytest.mark.parametrize("weighted", [False, True])
def test_totals(weighted):
    blocks = [make_block(n, weighted=weighted) for n in (5, 0, 40)]
    n_rows, total, positive = Rows(blocks).totals
    assert n_rows == 45
    assert total == pytest.approx(sum(len(b) if b.weight is None else b.weight.sum() for b in blocks), rel=1e-14)
    assert positive == pytest.approx(sum(b.positive.sum(dtype=float) for b in blocks), rel=1e-14)


def test_sums_of_blocks_are_those_of_one_block():
    whole, layout = make_block(1000), make_layout()
    cuts = [slice(0, 1), slice(1, 1), slice(1, 600), slice(600, 1000)]
    parts = Rows([whole.take(cut) for cut in cuts])
    one, several = Moments.of(layout, Rows([whole])), Moments.of(layout, parts)
    np.testing.assert_allclose(several.gram, one.gram, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(several.moment, one.moment, rtol=1e-12, atol=1e-11)


def test_a_function_sees_every_row_once_in_pieces_or_in_whole_blocks():
    n = PIECE_ROWS + 17
    block = Block((), np.ones(n, np.uint8), None, np.arange(n, dtype=np.float64)[:, None])
    rows = Rows([block, block.take(slice(0, 3))])
    for whole_blocks, sizes in ((False, [PIECE_ROWS, 17, 3]), (True, [n, 3])):
        seen = []
        total, lists = rows.sum(
            lambda b, seen=seen: (seen.append(len(b)) or float(b.dense.sum()), [b.dense.sum(), np.ones(2)]),
            whole_blocks=whole_blocks,
        )
        assert seen == sizes
        assert total == lists[0] == n * (n - 1) / 2 + 3
        np.testing.assert_array_equal(lists[1], np.full(2, len(sizes)))


def test_pieces_are_views():
    block = make_block(PIECE_ROWS + 1)
    first, last = block.pieces()
    assert np.shares_memory(first.dense, block.dense)
    assert (len(first), len(last)) == (PIECE_ROWS, 1)


def test_sums_do_not_depend_on_the_threads(monkeypatch):
    layout, rows = make_layout(0), Rows([make_block(MANY_ROWS + 12_345, n_dense=0)])
    point = np.linspace(-1, 1, 1 + layout.n_coefficients)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        loss = LogisticLoss(layout, rows)
        value, gradient = loss.value_and_gradient(point)
        H = loss.hessian(point, exact=True)
        found.append((value, gradient.tobytes(), H.tobytes(), Moments.of(layout, rows).gram.tobytes()))
    assert found[0] == found[1] == found[2]
