import numpy as np

from plainrisk.solve import Block, Layout, LogisticLoss, count_pairs
from plainrisk.threads import MANY_ROWS


def problem(n):
    rng = np.random.default_rng(0)
    sizes = (3, 5, 4)
    packs = tuple(rng.integers(0, size, n).astype(np.uint8) for size in sizes)
    layout = Layout(tuple(np.eye(size)[:, 1:] for size in sizes))
    return layout, Block(packs, (rng.random(n) < 0.3).astype(np.uint8)), sizes


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
