"""Which rows a Hessian is taken of: all of them, or a sample where they are many.

The sample shapes the path to the optimum, not the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plainrisk._native import Numbers, level_sums, sample_rows
from plainrisk.solve.blocks import Block, Layout

__all__ = ["every", "hessian_rows"]

Floats = npt.NDArray[np.float64]
_Any = TypeVar("_Any", bound=np.generic)

# Row-pair visits a Hessian may cost before it is taken from a sample of the rows.
_HESSIAN_BUDGET = 1.5e7
_DENSE_ROWS = 1 << 17
# A sample of fewer rows than this per coefficient is too far from the Hessian: steps then gain little each.
_ROWS_PER_COEFFICIENT = 60
# More than this are no nearer to the Hessian of the optimum, since the point at hand is not.
_ENOUGH_ROWS = 1 << 18
# A sample of nearly all rows takes longer than they do.
_WORTH_IT = 1.5
# Where rows are numbers only, and columns few.
_FEW_ROWS, _ROWS_PER_COLUMN = 1 << 15, 500
# In the sample, a level with fewer rows than this keeps them all: losing a rare level loses its curvature.
_RARE = 100
# Rows by which rare levels are told.
_COUNTED = 1 << 15
# Of one row in so many, how many are neighbours.
_RUN = 1 << 8


def hessian_rows(layout: Layout, blocks: Sequence[Block], n_rows: int) -> Sequence[Block]:
    """Return the rows a Hessian is taken of, with weights by which they stand for all: the blocks where that is all."""
    at_hand = isinstance(blocks, list)  # and not on a disk
    if layout.is_few_numbers or (layout.has_few_packs and at_hand):
        return blocks
    n_columns = len(layout.levels.members) + layout.n_dense
    wanted = _HESSIAN_BUDGET / max(1, n_columns * (n_columns + 1) // 2)
    if layout.n_dense:
        wanted = max(wanted / 10, _DENSE_ROWS)  # products of numbers take longer than sums by level
    wanted = max(min(wanted, _ENOUGH_ROWS), _ROWS_PER_COEFFICIENT * layout.n_coefficients)
    if not layout.features:  # no level could be lost; a solver that does not get on asks for all rows
        wanted = min(wanted, max(_FEW_ROWS, _ROWS_PER_COLUMN * n_columns))
    return blocks if n_rows <= _WORTH_IT * wanted else _sample(layout, blocks, n_rows, wanted / n_rows)


def every(block: Block, step: int) -> Block:
    """Return one row in so many, in one piece."""
    # Rows of one level may stand together, so of packs no run of rows is left out.
    some = _strided if block.packs else _in_runs
    positive, packs = some(step, block.positive), tuple(some(step, pack) for pack in block.packs)
    weight = None if block.weight is None else some(step, block.weight)
    return Block(packs, positive, weight, _dense(block, partial(some, step)))


def _dense(block: Block, choose: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Floats | Numbers | None:
    if block.dense is None or isinstance(block.dense, Numbers):
        return None if block.dense is None else block.dense.each(choose)
    return np.stack([choose(column) for column in block.dense.T]).T


def _sample(layout: Layout, blocks: Sequence[Block], n_rows: int, share: float) -> list[Block]:
    floors = _chances_by_level(layout, blocks, max(1, n_rows // _COUNTED), share) if layout.features else {}
    sample, first = [], 0
    for block in blocks:
        packs = [block.packs[k] for k in floors]
        rows, weights = sample_rows(packs, list(floors.values()), share, len(block), first)
        sample.append(_standing_for(block.take(rows), weights))
        first += len(block)
    return sample


def _standing_for(block: Block, weights: Floats | float) -> Block:
    """Return rows each of which stands for several."""
    weight = np.ones(len(block)) * weights if block.weight is None else block.weight * weights
    return Block(block.packs, block.positive, weight, block.dense)


def _chances_by_level(layout: Layout, blocks: Sequence[Block], step: int, share: float) -> dict[int, Floats]:
    """The chance a row must at least have to be in the sample, by its code in every pack that has rare levels.

    One row in so many tells which levels are rare.
    """
    counts = [np.zeros(size) for size in layout.levels.sizes]
    for block in blocks:
        packs = [_strided(step, pack) for pack in block.packs]
        for count, more in zip(counts, level_sums(None, packs, layout.levels.sizes), strict=True):
            count += step * more
    # What is rare is a column (a level of one feature), not a pack code (a combination of levels), and the smaller side
    # of a column is what a sample could lose.
    total = counts[0].sum()
    inside = layout.levels.by_column(counts)  # matrices are of 0 and 1
    rare = _RARE / np.maximum(np.minimum(inside, total - inside), 1.0)
    chances = {}
    for k, (matrix, columns) in enumerate(zip(layout.levels.matrices, layout.levels.columns, strict=True)):
        if rare[columns].max(initial=0.0) > share:
            side = (matrix != 0) == (2 * inside[columns] <= total)
            chances[k] = np.clip(np.where(side, rare[columns], 0.0).max(axis=1), share, 1.0)
    return chances


def _strided(step: int, values: npt.NDArray[_Any]) -> npt.NDArray[_Any]:
    """Return every so manieth value."""
    return np.ascontiguousarray(values[::step])


def _in_runs(step: int, values: npt.NDArray[_Any]) -> npt.NDArray[_Any]:
    """Return one value in so many: runs of neighbours, which are quick to copy, and what is left at the end."""
    whole = len(values) // (step * _RUN) * (step * _RUN)
    runs = values[:whole].reshape(-1, step * _RUN)[:, :_RUN]
    return np.concatenate([runs.ravel(), values[whole::step]])
