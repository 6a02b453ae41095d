"""Rows with equal codes are one weighted cell: nothing is lost, and most rows are gone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import cell_counts, cell_sums, list_cells, small_codes

__all__ = ["Cells", "cells_of", "collapse", "counted_cells"]

Codes = npt.NDArray[np.unsignedinteger[Any]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """Distinct rows.

    Attributes
    ----------
    codes : per column, (cells,)
    weight : (cells,) total weight of the rows in the cell
    positive : (cells,) weight of those with the positive outcome
    """

    codes: tuple[Codes, ...]
    weight: Floats
    positive: Floats


def collapse(
    codes: Sequence[Codes],
    sizes: Sequence[int],
    positive: npt.NDArray[Any],
    weight: Floats | None = None,
) -> Cells | None:
    """Return the cells of coded rows, or None where there would be hardly fewer cells than rows.

    Parameters
    ----------
    codes : per column, (n,)
    sizes : how many codes each column can have
    positive, weight : (n,) weight of the positive outcome, as bytes 0 or 1, and total weight (default 1 each)
    """
    n = len(positive)
    if math.prod(sizes) > max(4096, 2 * n):
        return None
    if weight is None and positive.dtype == np.uint8:
        cells = counted_cells(cell_counts(codes, sizes, positive), sizes)
    else:
        cells = cells_of(*cell_sums(codes, sizes, positive, weight), sizes)
    return cells if 2 * len(cells.weight) <= n or n <= 4096 else None


def cells_of(total: Floats, hits: Floats, sizes: Sequence[int]) -> Cells:
    """Return the cells in which there are rows."""
    used = np.flatnonzero(total > 0)
    return Cells(_codes_of(used, sizes), total[used], hits[used])


def counted_cells(counts: npt.NDArray[np.uint32], sizes: Sequence[int]) -> Cells:
    """Return the same of rows that were counted by outcome: (cells, 2)."""
    codes, total, hits = list_cells(counts, sizes)
    return Cells(codes, total, hits)


def _codes_of(keys: npt.NDArray[np.intp], sizes: Sequence[int]) -> tuple[Codes, ...]:
    return tuple(
        column.astype(small_codes(size))
        for column, size in zip(np.unravel_index(keys, tuple(sizes)), sizes, strict=True)
    )
