"""Several features in one small integer, so that a pass over the rows reads few bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk._native import pack_seen
from plainrisk.threads import side_by_side

__all__ = ["Pack", "pack_codes", "pack_limit"]

Codes = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Pack:
    """The codes of some neighbouring features as one integer per row.

    Attributes
    ----------
    features : positions of the features
    codes : (n,)
    members : (size, features): the level of each feature that a pack code stands for
    """

    features: tuple[int, ...]
    codes: Codes
    members: npt.NDArray[np.int64]


def pack_limit(n_rows: int) -> int:
    """Return how many codes a pack may have: a table of pairs should not outgrow the rows it counts."""
    return int(np.clip(n_rows**0.5, 16, 256))


def pack_codes(codes: Sequence[Codes], seen: Sequence[npt.NDArray[np.bool_]], limit: int) -> list[Pack]:
    """Pack neighbouring features while the product of their seen levels is at most `limit`.

    Parameters
    ----------
    codes : per feature, (n,)
    seen : per feature, (levels,): which levels occur; the others take no room
    """
    sizes = [max(1, int(np.count_nonzero(levels))) for levels in seen]
    groups = _groups(sizes, limit)

    def pack(group: range) -> Pack:
        size = math.prod(sizes[j] for j in group)
        return Pack(tuple(group), *pack_seen([codes[j] for j in group], [seen[j] for j in group], size))

    return list(side_by_side(pack, groups, len(codes[0]) if groups else 0))


def _groups(sizes: Sequence[int], limit: int) -> list[range]:
    """Return neighbours the product of whose sizes is at most `limit`."""
    groups: list[range] = []
    start, product = 0, 1
    for j, size in enumerate(sizes):
        if j > start and product * size > limit:
            groups.append(range(start, j))
            start, product = j, 1
        product *= size
    return [*groups, range(start, len(sizes))] if sizes else groups
