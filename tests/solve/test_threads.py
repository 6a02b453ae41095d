import os
import threading
import time

import numpy as np
import pytest

from plainrisk.solve import Block, Layout, LogisticLoss, count_pairs
from plainrisk.solve.threads import one_thread
from plainrisk.threads import MANY_ROWS, side_by_side


def problem(n):
    rng = np.random.default_rng(0)
    sizes = (3, 5, 4)
    packs = tuple(rng.integers(0, size, n).astype(np.uint8) for size in sizes)
    layout = Layout(tuple(np.eye(size)[:, 1:] for size in sizes))
    return layout, Block(packs, (rng.random(n) < 0.3).astype(np.uint8)), sizes


@pytest.mark.parametrize("threads", ["1", "3"])
def test_results_come_in_order(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert list(side_by_side(lambda i: i * i, range(20))) == [i * i for i in range(20)]


def test_few_rows_start_no_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    here = threading.get_ident()
    assert set(side_by_side(lambda _: threading.get_ident(), range(5), MANY_ROWS - 1)) == {here}
    both = threading.Barrier(2)
    assert len(set(side_by_side(lambda _: (both.wait(10) and 0) or threading.get_ident(), range(2), MANY_ROWS))) == 2


def test_the_first_error_is_raised(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")

    def fail(k):
        if k in (2, 3):
            time.sleep(0.02 if k == 2 else 0.0)
            raise ValueError(f"item {k}")

    for _ in range(5):
        with pytest.raises(ValueError, match="item 2"):
            list(side_by_side(fail, range(9)))


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with pytest.raises(ZeroDivisionError, match="by zero"):
        list(side_by_side(lambda i: 1 // i, range(3)))


def test_sums_do_not_depend_on_the_threads(monkeypatch):
    layout, block, sizes = problem(MANY_ROWS + 12_345)
    levels = Layout(tuple(map(np.eye, sizes)))
    point = np.linspace(-1, 1, 1 + layout.n_coefficients)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        loss = LogisticLoss(layout, [block])
        value, gradient = loss.value_and_gradient(point)
        pairs = count_pairs([block], levels).pairs
        found.append((value, gradient.tobytes(), loss.hessian(point).tobytes(), pairs.tobytes()))
    assert found[0] == found[1] == found[2]


def test_work_inside_work_gets_no_further_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    inner = side_by_side(lambda _: list(side_by_side(lambda i: threading.get_ident(), range(3))), range(4))
    assert all(len(set(idents)) == 1 for idents in inner)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_copy_of_the_process_has_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert list(side_by_side(abs, [-1, -2])) == [1, 2]
    child = os.fork()
    if child == 0:
        os._exit(0 if list(side_by_side(abs, [-3, -4])) == [3, 4] else 1)
    assert os.waitpid(child, 0)[1] == 0


def blas_threads():
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread_is_a_limit_that_ends():
    before = blas_threads()
    with one_thread():
        with pytest.raises(ZeroDivisionError, match="by zero"), one_thread():
            1 / 0
        assert blas_threads() == {1}
    assert blas_threads() == before
