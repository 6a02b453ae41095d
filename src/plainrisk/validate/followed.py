"""The share of a slice of rows that a calibration line, or the levels of a model, can fit; residuals do not show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plainrisk._types import Bools, Floats
from plainrisk.data.frame import Frame
from plainrisk.form import Part, RiskForm

__all__ = ["Line", "Moments", "followed", "levels_met"]

LEAST = 1e-300  # in place of 0, in denominators
FLAT = 1e-9  # of a variance: less is rounding
JITTER = 1e-8  # the levels of every feature add up to the constant, so their products have no inverse


@dataclass(frozen=True)
class Moments:
    """For every slice: the sum of the weights v, the weighted mean of the log odds s, and their weighted variance."""

    total: Floats
    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, members: Any, v: Floats, s: Floats) -> Moments:
        """Add up the rows of slices, (slices, n)."""
        total = members @ v
        mean = (members @ (v * s)) / np.maximum(total, LEAST)
        return cls(total, mean, members @ (v * s**2) - mean**2 * total)

    @property
    def sizes(self) -> tuple[Floats, Floats]:
        """The variances of the sum of a slice's residuals, and of their slope on the log odds."""
        return self.total, self.spread

    def vary(self, size: Floats, taken: Floats) -> Bools:
        """Whether anything remains of a variance after a share of it is removed."""
        return np.asarray((size > FLAT * np.maximum(self.total, LEAST)) & (taken < 1 - FLAT))


@dataclass(frozen=True)
class Line:
    """A calibration line through rows with weights v and log odds s."""

    v: Floats
    centered: Floats
    mean: float
    total: float
    spread: float

    @classmethod
    def of(cls, v: Floats, s: Floats) -> Line:
        """Return the line of some rows."""
        total = max(float(v.sum()), LEAST)
        mean = float(v @ s) / total
        return cls(v, s - mean, mean, total, max(float(v @ (s - mean) ** 2), LEAST))

    def without(self, residuals: Floats) -> Floats:
        """Return residuals, one sample per column, less their regression on the line."""
        level, slope = residuals.sum(axis=0) / self.total, (self.centered @ residuals) / self.spread
        return np.asarray(residuals - self.v[:, None] * (level + self.centered[:, None] * slope))

    def taken(self, slices: Moments) -> tuple[Floats, Floats]:
        """Return the shares of the two variances of slices that the line takes."""
        shift = (slices.mean - self.mean) ** 2
        return slices.total * (1 / self.total + shift / self.spread), slices.spread / self.spread


def followed(members: Any, levels: Any, v: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return the share of both variances of the slices that sums over levels explain beyond the calibration line."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.sparse import diags_array

    weighted, slices = diags_array(v) @ levels, Moments.of(members, v, s)
    sums = (members @ weighted).toarray()
    slopes = (members @ (diags_array(s) @ weighted)).toarray() - slices.mean[:, None] * sums
    products = (levels.T @ weighted).toarray()
    products.flat[:: len(products) + 1] += JITTER * products.trace()
    base, shares = cholesky(products, lower=True), []
    for size, taken, side in zip(slices.sizes, Line.of(v, s).taken(slices), (sums, slopes), strict=True):
        known = slices.vary(size, taken)
        share = (solve_triangular(base, side.T, lower=True) ** 2).sum(axis=0) / np.where(known, size, 1.0)
        shares.append(np.where(known, np.clip((share - taken) / np.where(known, 1 - taken, 1.0), 0, 1), 1.0))
    return shares[0], shares[1]


def levels_met(form: RiskForm | None, frame: Frame) -> Any:
    """Return the level of each row in every table of one additive part, (n, levels), or None for other forms."""
    from scipy.sparse import csr_array

    if form is None or len(form.parts) > 1 or not isinstance(form.parts[0], Part):
        return None
    rows = form.align(frame)
    places = [shape.levels.codes(rows, name) for name, shape in form.parts[0].shapes.items()]
    places += [pair.cells(*pair.codes(rows)) for pair in form.parts[0].pairs]
    tables = [np.unique(codes, return_inverse=True) for codes in places]
    starts = np.cumsum([0, *(len(met) for met, _ in tables)])
    columns = np.column_stack([start + codes for start, (_, codes) in zip(starts, tables, strict=False)])
    ends = np.arange(frame.n_rows + 1) * len(tables)
    return csr_array((np.ones(columns.size), columns.ravel(), ends), shape=(frame.n_rows, int(starts[-1])))
