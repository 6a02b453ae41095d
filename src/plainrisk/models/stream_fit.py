"""From rows, in memory or in batches, to the problem a solver sees.

Rows in batches are read twice: once for what the levels depend on, once to code them. The codes of several features
share a byte and are spooled, to disk if need be, so that a solver's passes read some fifteen bytes a row.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from plainrisk._native import cell_sums
from plainrisk.bins import Criterion, LevelFinder, Pack, cells_of, find_levels, pack_codes, pack_limit
from plainrisk.data.spool import Spool
from plainrisk.errors import PlainriskWarning
from plainrisk.form import Levels
from plainrisk.models.fitting import Design, Encoded, Penalty, design_columns, encode_rows, encode_with
from plainrisk.models.streams import Stream
from plainrisk.models.training import Training
from plainrisk.solve import Block, PairCounts

__all__ = ["AnyRows", "Blocks", "Chosen", "StreamedDesign", "dense_blocks", "lay_out", "learn_stream"]

AnyRows = Training | Stream
Floats = npt.NDArray[np.float64]

# Cells a subscale's grid may have to be summed up as a table of 16 MB.
_MOST_CELLS = 1 << 20


def lay_out(
    rows: AnyRows,
    *,
    max_bins: int,
    criterion: Criterion = "gini",
    min_rows: int = 1,
    penalty: Penalty = "levels",
    encoded: Encoded | None = None,
) -> tuple[Encoded, Design]:
    """Find the levels of every feature, code the rows unless they are `encoded` already, and lay them out."""
    if isinstance(rows, Training):
        if encoded is None:
            encoded = encode_rows(rows, max_bins=max_bins, criterion=criterion, min_rows=min_rows)
        design = Design.of(encoded, rows, penalty)
        return replace(encoded, codes=()), design  # the rows are in packs now
    finders = learn_stream(rows)
    levels = [f.levels(max_bins=max_bins, criterion=criterion, min_rows=min_rows) for f in finders]
    return _encode_stream(rows, levels, penalty)


def learn_stream(rows: Stream, *, lines: bool = False) -> list[LevelFinder]:
    """Look at all rows once; say where a feature has too many values to be binned exactly."""
    finders = [LevelFinder(name, feature, lines=lines) for name, feature in rows.schema.features.items()]
    for batch in rows.batches(task="finding bins"):
        find_levels(finders, batch.frame, batch.target, batch.weight)
    coarse = [f for f in finders if f.values.bits]
    if coarse:
        worst = max(f.values.bits for f in coarse)
        others = f" and {len(coarse) - 1} more" if len(coarse) > 1 else ""
        warnings.warn(
            f"Data: feature {coarse[0].name!r}{others} has more than {coarse[0].values.most:,} distinct values. Bin "
            f"edges there are exact to one part in {2 ** (23 - worst):,} of the value; no row is lost.",
            PlainriskWarning,
            stacklevel=4,
        )
    return finders


def _encode_stream(rows: Stream, levels: Sequence[Levels], penalty: Penalty) -> tuple[Encoded, Design]:
    names = tuple(rows.schema.features)
    spool = Spool()
    # Which levels occur is known at the end only, so every level gets room in a pack.
    seen = [np.ones(len(lv), bool) for lv in levels]
    weights, positives = ([np.zeros(len(lv)) for lv in levels] for _ in range(2))
    packs: list[Pack] = []
    for batch in rows.batches(task="coding rows"):
        part = encode_with(batch, names, levels)
        packs = pack_codes(part.codes, seen, pack_limit(rows.n_rows))
        own = () if batch.weight is None else (batch.weight,)
        spool.append((*(p.codes for p in packs), batch.positive, *own))
        for total, more in zip((*weights, *positives), (*part.weights, *part.positives), strict=True):
            total += more
    encoded = Encoded(names, tuple(levels), (), tuple(weights), tuple(positives))
    packs = [replace(p, codes=p.codes[:0]) for p in packs]
    empty = Block(tuple(p.codes for p in packs), np.zeros(0, np.uint8))
    stored = Blocks(spool, len(packs))
    return encoded, StreamedDesign(design_columns(encoded, rows.schema, penalty), packs, empty, stored, rows.n_rows)


class _OnDemand(Sequence[Block]):
    """Blocks that are made when they are asked for, one in memory at a time."""

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> list[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | list[Block]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._read(index)

    def __iter__(self) -> Iterator[Block]:
        return (self[i] for i in range(len(self)))

    def _read(self, index: int) -> Block:
        raise NotImplementedError


class Blocks(_OnDemand):
    """Blocks of rows in a spool, one in memory at a time.

    Parameters
    ----------
    spool : per group: the packs, positive, then the weight if there is one, then the dense columns if there are any
    n_packs : how many packs there are
    chosen : positions of the packs that are wanted; default all
    dense : whether there are dense columns
    """

    def __init__(self, spool: Spool, n_packs: int, *, chosen: Sequence[int] | None = None, dense: bool = False) -> None:
        self.spool, self.n_packs, self.dense = spool, n_packs, dense
        self.chosen = range(n_packs) if chosen is None else chosen

    def __len__(self) -> int:
        return len(self.spool)

    def _read(self, index: int) -> Block:
        arrays: tuple[npt.NDArray[Any], ...] = self.spool[index]
        positive, *rest = arrays[self.n_packs :]
        dense = rest.pop() if self.dense else None
        return Block(tuple(arrays[k] for k in self.chosen), positive, rest[0] if rest else None, dense)


class Chosen(_OnDemand):
    """Some rows of blocks, cut out when they are read."""

    def __init__(self, blocks: Sequence[Block], mask: npt.NDArray[np.bool_]) -> None:
        starts = np.cumsum([0, *(len(b) for b in blocks)])
        self.blocks = blocks
        self.masks = [mask[a:b] for a, b in itertools.pairwise(starts)]

    def __len__(self) -> int:
        return len(self.blocks)

    def _read(self, index: int) -> Block:
        return self.blocks[index].take(np.flatnonzero(self.masks[index]))


@dataclass(frozen=True)
class StreamedDesign(Design):
    """A design whose rows lie in a spool; `rows` is empty."""

    stored: Sequence[Block]
    n_rows: int

    @cached_property
    def blocks(self) -> Sequence[Block]:
        """All rows, as weighted cells where the features are few."""
        return self._collapsed(self.stored, self.n_rows)

    def rows_where(self, mask: npt.NDArray[np.bool_]) -> Sequence[Block]:
        """Return some of the rows."""
        return Chosen(self.stored, mask)

    def cells_where(self, mask: npt.NDArray[np.bool_]) -> Sequence[Block]:
        """Return some of the rows, as weighted cells where the features are few."""
        return self._collapsed(self.rows_where(mask), int(mask.sum()))

    def pair_counts(self, rows: Sequence[Block] | None = None) -> PairCounts:
        """Count the pairs of columns, over all rows or some."""
        return super().pair_counts(self.stored if rows is None else rows)

    def _collapsed(self, blocks: Sequence[Block], n_rows: int) -> Sequence[Block]:
        sizes = [len(p.members) for p in self.packs]
        grid = float(np.prod(np.asarray(sizes, dtype=np.float64)))
        if grid > min(max(4096, n_rows // 4), _MOST_CELLS):
            return blocks
        total, hits = np.zeros(int(grid)), np.zeros(int(grid))
        for block in blocks:
            more = cell_sums(block.packs, sizes, block.positive, block.weight)
            total += more[0]
            hits += more[1]
        cells = cells_of(total, hits, sizes)
        return [Block(cells.codes, cells.positive, cells.weight)]


def dense_blocks(rows: AnyRows, columns: Callable[[Training], Floats]) -> Sequence[Block]:
    """Return blocks of numeric columns computed from the rows, batch by batch; spooled if there are several."""
    spool = Spool()
    for batch in rows.batches(task="scoring subscales"):
        own = () if batch.weight is None else (batch.weight,)
        spool.append((batch.positive, *own, columns(batch)))
    return Blocks(spool, 0, dense=True)
