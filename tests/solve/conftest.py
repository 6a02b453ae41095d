"""A small logistic problem, in several representations of the same rows, and as a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from plainrisk.solve import Block, Layout, LogisticLoss, Rows

N = 600
LEVELS = (4, 3, 5)
STEPS = np.array([True] * 3 + [False] * 3 + [True] * 4)  # which coefficients of the three features are steps


def contrasts():
    """Steps upward, one indicator per level, steps downward: the columns that fitted features have."""
    return [np.tri(4, 3, -1), np.eye(3), np.tri(5, 4, -1)[::-1]]


@dataclass(frozen=True)
class Problem:
    """Rows as codes of single features, and as the matrix of a textbook."""

    codes: list
    target: np.ndarray
    weight: np.ndarray
    X: np.ndarray
    steps: np.ndarray

    def loss(self, way="features"):
        """The loss of the rows coded feature by feature, as one joint code, or as one row per code with its weight."""
        positive = self.weight * self.target
        if way == "features":
            return LogisticLoss(Layout(tuple(contrasts())), Rows([Block(tuple(self.codes), positive, self.weight)]))
        joint = np.ravel_multi_index(self.codes, LEVELS).astype(np.uint8)
        members = np.unravel_index(np.arange(60), LEVELS)
        layout = Layout((np.hstack([m[level] for m, level in zip(contrasts(), members, strict=True)]),))
        if way == "joint":
            return LogisticLoss(layout, Rows([Block((joint,), positive, self.weight)]))
        cells = np.arange(60, dtype=np.uint8)
        counts = [np.bincount(joint, values, minlength=60) for values in (positive, self.weight)]
        return LogisticLoss(layout, Rows([Block((cells,), *counts)]))


def _make(seed, *, weighted=False):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, N).astype(np.uint8) for size in LEVELS]
    score = -1.0 + 0.6 * codes[0] - 0.5 * (codes[1] == 1) + rng.normal(size=N) - 0.2 * (codes[2] > 2)
    weight = rng.integers(0, 4, N).astype(np.float64) if weighted else np.ones(N)
    X = np.hstack([m[c] for m, c in zip(contrasts(), codes, strict=True)])
    return Problem(codes, (score > 0).astype(np.float64), weight, X, STEPS)


@pytest.fixture
def make_problem():
    """A function from a seed to a problem."""
    return _make
