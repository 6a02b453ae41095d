"""Symmetric matrices that a quadratic problem needs, dense or as products of few rows, and their factors.

With more coefficients than rows, a Hessian ``R'R + diag(d)``, R with one line per row, is never formed: its products
and its inverse need only R (Woodbury's formula), so that 3,000 features on 300 rows take 300 equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from plainrisk._types import Bools, Floats, Index

__all__ = ["Curvature", "Factor", "LowRank", "add_diagonal", "corrected", "factorize", "solve_semidefinite"]

# A direction whose curvature is less than this share of the largest is rounding: nothing moves along it.
_FLAT = 1e-11
# Below this share of the largest slope, the slope along such a direction is also rounding error.
_SLOPE = 1e-8
# A factor is corrected for so many changes of its variables, as a share of them, before a new one takes less time.
_CHANGES = 1.0 / 16.0


@dataclass(frozen=True, eq=False)
class LowRank:
    """The matrix ``root.T @ root + diag(extra)``.

    Attributes
    ----------
    root : (m, n), m less than n
    extra : (n,), not below 0
    """

    root: Floats
    extra: Floats

    def __len__(self) -> int:
        return len(self.extra)

    def __matmul__(self, vector: Floats) -> Floats:
        return np.asarray(self.root.T @ (self.root @ vector) + self.extra * vector)

    def __rmul__(self, factor: float) -> LowRank:
        return LowRank(factor**0.5 * self.root, factor * self.extra)

    def diagonal(self) -> Floats:
        """Return the diagonal."""
        return np.asarray(np.einsum("ij,ij->j", self.root, self.root) + self.extra)


Curvature = Floats | LowRank


def add_diagonal(H: Curvature, diagonal: Floats, factor: float = 1.0) -> Curvature:
    """Return ``factor * H + diag(diagonal)``, a new matrix."""
    out = factor * H
    if isinstance(out, LowRank):
        return LowRank(out.root, out.extra + diagonal)
    out.flat[:: len(out) + 1] += diagonal
    return out


class Factor(Protocol):
    """The free rows and columns of a matrix, ready to solve."""

    def solve(self, right: Floats) -> Floats:
        """Solve ``H d = right``; the shortest of many solutions (see `solve_semidefinite`)."""

    def inverse_blocks(self, blocks: Sequence[Index]) -> list[Floats]:
        """Return rows and columns of the inverse, for each of these sets of variables."""


def factorize(H: Curvature, free: Bools) -> Factor:
    """Prepare to solve ``H d = right`` in the free variables."""
    if not isinstance(H, LowRank):
        return _Dense(H, free)
    root, extra = H.root[:, free], H.extra[free]
    return _Woodbury(root, extra) if extra.any() else _Projected(root)


def corrected(H: Curvature, before: Bools, factor: Factor, free: Bools) -> Factor | None:
    """Return the factor of other free variables by one that was made before, or None where that would not pay."""
    if not isinstance(factor, _Dense) or isinstance(H, LowRank) or factor.H is not None:
        return None
    if np.count_nonzero(before != free) > _CHANGES * np.count_nonzero(before):
        return None
    return _Corrected.of(H, before, factor, free)


class _Dense:
    """A Cholesky factor or, where a pivot is mere rounding error, the matrix itself."""

    def __init__(self, H: Floats, free: Bools) -> None:
        at = np.flatnonzero(free)
        self.factor = _cholesky(H.take(at, axis=0).take(at, axis=1), H.diagonal()[at])
        self.H = H[np.ix_(at, at)] if self.factor is None else None

    def solve(self, right: Floats) -> Floats:
        if self.H is not None:
            return solve_semidefinite(self.H, right)
        return np.asarray(dpotrs(self.factor, right, lower=1)[0])

    def inverse_blocks(self, blocks: Sequence[Index]) -> list[Floats]:
        if self.H is not None:
            inverse = np.asarray(np.linalg.pinv(self.H, hermitian=True), np.float64)
            return [inverse[np.ix_(block, block)] for block in blocks]
        # With H = LL', a block is the product of columns of L^-1: the whole inverse would take twice as long.
        inverse = dtrtri(self.factor, lower=1)[0]
        columns = [inverse[block.min(initial=len(inverse)) :, block] for block in blocks]
        return [block.T @ block for block in columns]


class _Corrected:
    """The inverse for other free variables than those of a Cholesky factor, which is that of H_FF.

    With A the variables that are free now and R those that are no longer, B = [H_FA, I_FR] and W = H_FF^-1 B, let

        S = [[H_AA, 0], [0, 0]] - B'W,    V = [[W], [-I_A, 0]].

    Then the inverse is that of H_FF, with rows and columns of 0 for A, plus V S^-1 V'. Its rows in R are 0.

    Attributes
    ----------
    size : how many variables F has
    place : where each variable that is free now stands in F, or behind F if it is in A
    V, middle : V and S^-1
    """

    def __init__(self, factor: _Dense, size: int, place: Index, V: Floats, middle: Floats) -> None:
        self.factor, self.size, self.place, self.V, self.middle = factor, size, place, V, middle

    @classmethod
    def of(cls, H: Floats, before: Bools, factor: _Dense, free: Bools) -> _Corrected | None:
        """Return the correction of a factor, or None where a pivot is rounding."""
        F, A, R = np.flatnonzero(before), np.flatnonzero(free & ~before), np.flatnonzero(before & ~free)
        B = np.zeros((len(F), len(A) + len(R)))
        B[:, : len(A)] = H[np.ix_(F, A)]
        B[np.searchsorted(F, R), len(A) + np.arange(len(R))] = 1.0
        W = factor.solve(B)
        S = -B.T @ W
        S[: len(A), : len(A)] += H[np.ix_(A, A)]
        if _cholesky(S[: len(A), : len(A)].copy(), H.diagonal()[A]) is None:
            return None
        place = np.empty(len(free), np.intp)
        place[F], place[A] = np.arange(len(F)), len(F) + np.arange(len(A))
        return cls(
            factor,
            len(F),
            place[free],
            np.vstack([W, -np.eye(len(A), len(A) + len(R))]),
            np.asarray(np.linalg.inv(S), np.float64),
        )

    def solve(self, right: Floats) -> Floats:
        full = np.zeros(len(self.V))
        full[self.place] = right
        out = self.V @ (self.middle @ (self.V.T @ full))
        out[: self.size] += self.factor.solve(full[: self.size])
        return np.asarray(out[self.place])

    def inverse_blocks(self, blocks: Sequence[Index]) -> list[Floats]:
        places = [self.place[block] for block in blocks]
        each = self.factor.inverse_blocks([place[place < self.size] for place in places])
        out = [self.V[place] @ self.middle @ self.V[place].T for place in places]
        for inverse, place, own in zip(out, places, each, strict=True):
            inverse[np.ix_(place < self.size, place < self.size)] += own
        return out


class _Woodbury:
    """The inverse of ``R'R + diag(e)`` by the m x m matrix ``K = I + R diag(1/e) R'``, where most e are above 0.

    Columns Z with e = 0 (the intercept) are solved for in the space of the rows: with P the others,

        Z'K^-1 Z d_Z = r_Z - Z'K^-1 P r_P/e,     u = K^-1 (P r_P/e + Z d_Z),     d_P = (r_P - P'u)/e
    """

    def __init__(self, root: Floats, extra: Floats) -> None:
        self.penalized = extra > 0
        self.P, self.Z, self.e = root[:, self.penalized], root[:, ~self.penalized], extra[self.penalized]
        K = (self.P / self.e) @ self.P.T
        K.flat[:: len(K) + 1] += 1.0
        self.K = dpotrf(K, lower=1, clean=0, overwrite_a=1)[0]
        self.KZ = self._rows(self.Z)

    def _rows(self, right: Floats) -> Floats:
        return np.asarray(dpotrs(self.K, right, lower=1)[0]) if right.size else right

    def solve(self, right: Floats) -> Floats:
        d = np.empty(len(right))
        r = right[self.penalized]
        q = self.P @ (r / self.e)
        free = solve_semidefinite(self.Z.T @ self.KZ, right[~self.penalized] - self.KZ.T @ q)
        d[~self.penalized] = free
        d[self.penalized] = (r - self.P.T @ self._rows(q + self.Z @ free)) / self.e
        return d

    def inverse_blocks(self, blocks: Sequence[Index]) -> list[Floats]:
        # With e as above and V = (Z'K^-1 Z)^-1, the inverse is V for Z, and for P
        #   diag(1/e) - diag(1/e) P' (K^-1 - K^-1 Z V Z'K^-1) P diag(1/e)
        V = np.asarray(np.linalg.pinv(self.Z.T @ self.KZ, hermitian=True), np.float64)
        cross = -(V @ (self.KZ.T @ self.P)) / self.e
        inner = self._rows(self.P)
        place = np.where(self.penalized, np.cumsum(self.penalized), np.cumsum(~self.penalized)) - 1
        return [self._block(block, place, V, cross, inner) for block in blocks]

    def _block(self, block: Index, place: Index, V: Floats, cross: Floats, inner: Floats) -> Floats:
        is_p = self.penalized[block]
        p, z = place[block[is_p]], place[block[~is_p]]
        out = np.zeros((len(block), len(block)))
        e = self.e[p]
        between = self.P[:, p].T @ inner[:, p] / np.outer(e, e)
        out[np.ix_(is_p, is_p)] = np.diag(1.0 / e) - between + cross[:, p].T @ (self.Z.T @ self.KZ) @ cross[:, p]
        out[np.ix_(~is_p, is_p)] = cross[np.ix_(z, p)]
        out[np.ix_(is_p, ~is_p)] = cross[np.ix_(z, p)].T
        out[np.ix_(~is_p, ~is_p)] = V[np.ix_(z, z)]
        return out


class _Projected:
    """The shortest solutions of ``R'R d = right``, as `solve_semidefinite` has them, from the m x m matrix R R'."""

    def __init__(self, root: Floats) -> None:
        diagonal = np.einsum("ij,ij->j", root, root)
        self.scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scaled = root * self.scale
        values, vectors = np.linalg.eigh(scaled @ scaled.T)
        self.least = _FLAT * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
        steep = values > self.least
        self.values = values[steep]
        self.vectors = scaled.T @ (vectors[:, steep] / np.sqrt(self.values))

    def solve(self, right: Floats) -> Floats:
        scaled = self.scale * right
        slope = self.vectors.T @ scaled
        flat = scaled - self.vectors @ slope
        flat[np.abs(flat) <= _SLOPE * np.abs(scaled).max(initial=0.0)] = 0.0
        return np.asarray(self.scale * (self.vectors @ (slope / self.values) + flat / self.least))

    def inverse_blocks(self, blocks: Sequence[Index]) -> list[Floats]:
        root = self.scale[:, None] * self.vectors / np.sqrt(self.values)
        return [root[block] @ root[block].T for block in blocks]


def _cholesky(H: Floats, diagonal: Floats) -> Floats | None:
    """Return the lower Cholesky factor, made in place, or None where a pivot is rounding beside this diagonal."""
    factor, failed = dpotrf(H.T, lower=1, overwrite_a=1)  # H is symmetric, and its transpose in LAPACK's order
    return None if failed or (factor.diagonal() ** 2 < _FLAT * diagonal).any() else factor


def solve_semidefinite(H: Floats, right: Floats) -> Floats:
    """Return the shortest solution of ``H d = right``, H positive semidefinite, in units that make its diagonal 1.

    Directions without curvature (an indicator per level adds up to the intercept) stay where they are, unless `right`
    truly points along them: then the step is long, and a bound will stop it. The eigenvalues show which directions
    these are, so the answer does not depend on how a library rounds, as that of a damped system would.

    >>> solve_semidefinite(np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([4.0, 4.0])).round(9)
    array([1., 1.])
    """
    diagonal = H.diagonal()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(scale[:, None] * H * scale)
    slope = vectors.T @ (scale * right)
    most = float(values.max(initial=0.0))
    least = _FLAT * (most if most > 0 else 1.0)
    steep = np.abs(slope) > _SLOPE * np.abs(slope).max(initial=0.0)
    along = np.where((values > least) | steep, slope / np.maximum(values, least), 0.0)
    return np.asarray(scale * (vectors @ along))
