import os
import threading
import time

import pytest

from plainrisk.threads import MANY_ROWS, one_blas_thread, parallel_for, parallel_map


@pytest.mark.parametrize("threads", ["1", "3"])
def test_results_come_in_order(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert list(parallel_map(lambda i: i * i, range(20))) == [i * i for i in range(20)]


def test_few_rows_start_no_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    here = threading.get_ident()
    assert set(parallel_map(lambda _: threading.get_ident(), range(5), MANY_ROWS - 1)) == {here}
    both = threading.Barrier(2)
    assert len(set(parallel_map(lambda _: (both.wait(600) and 0) or threading.get_ident(), range(2), MANY_ROWS))) == 2


def test_the_first_error_is_raised(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")

    def fail(k):
        if k in (2, 3):
            time.sleep(0.02 if k == 2 else 0.0)
            raise ValueError(f"item {k}")

    for _ in range(5):
        with pytest.raises(ValueError, match="item 2"):
            list(parallel_map(fail, range(9)))


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with pytest.raises(ZeroDivisionError, match="by zero"):
        list(parallel_map(lambda i: 1 // i, range(3)))


def test_every_start_is_taken_once(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    taken = []
    parallel_for(taken.extend, range(0, 1000, 7))
    assert sorted(taken) == list(range(0, 1000, 7))


def test_work_inside_work_gets_no_further_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    inner = parallel_map(lambda _: list(parallel_map(lambda i: threading.get_ident(), range(3))), range(4))
    assert all(len(set(idents)) == 1 for idents in inner)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_copy_of_the_process_has_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert list(parallel_map(abs, [-1, -2])) == [1, 2]
    child = os.fork()
    if child == 0:
        os._exit(0 if list(parallel_map(abs, [-3, -4])) == [3, 4] else 1)
    assert os.waitpid(child, 0)[1] == 0


def blas_threads():
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    """Linear algebra on two threads, whatever the machine has; any thread may change it, as in a fresh process."""
    from threadpoolctl import ThreadpoolController

    def set_threads(counts):
        for library, count in zip(libraries, counts, strict=True):
            library.set_num_threads(count)
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread()

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [library.get_num_threads() for library in libraries]
    set_threads([2] * len(before))
    if blas_threads() != {2}:
        pytest.skip("linear algebra cannot run on two threads here")
    yield
    set_threads(before)


@pytest.mark.usefixtures("two_blas_threads")
def test_one_blas_thread_ends_with_its_outermost_block():
    with one_blas_thread():
        with pytest.raises(ZeroDivisionError, match="by zero"), one_blas_thread():
            1 / 0
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_blocks_of_two_threads_end_with_the_last_of_them(order):
    """The setting belongs to the process: the block that ends first must leave the other one limited."""
    inside = {name: threading.Event() for name in order}
    leave = {name: threading.Event() for name in order}

    def fit(name):
        with one_blas_thread():
            inside[name].set()
            leave[name].wait(600)

    fits = {name: threading.Thread(target=fit, args=(name,)) for name in order}
    found = []
    for name in ("first", "second"):
        fits[name].start()
        inside[name].wait(600)
    for name in order:
        found.append(blas_threads())
        leave[name].set()
        fits[name].join(600)
    assert found == [{1}, {1}]
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_many_blocks_in_many_threads_leave_the_setting_as_it_was():
    start = threading.Barrier(4)

    def work():
        start.wait(600)
        for _ in range(200):
            with one_blas_thread():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert blas_threads() == {2}
