"""Several features in one small integer, so that a pass over the rows reads few bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.kernels import add_places, small_codes
from plainrisk.threads import side_by_side

__all__ = ["Pack", "pack_codes", "pack_limit"]

Codes = npt.NDArray[np.unsignedinteger[Any]]
Levels = npt.NDArray[np.intp]


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
    members: npt.NDArray[np.intp]


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
    observed = [np.flatnonzero(levels) for levels in seen]
    groups = _groups([max(1, len(levels)) for levels in observed], limit)
    n_rows = len(codes[0]) if groups else 0
    return list(side_by_side(lambda group: _pack(group, codes, seen, observed), groups, n_rows))


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


def _pack(
    group: range, codes: Sequence[Codes], seen: Sequence[npt.NDArray[np.bool_]], observed: Sequence[Levels]
) -> Pack:
    size = math.prod(max(1, len(observed[j])) for j in group)
    dtype = small_codes(size)
    members = np.zeros((size, len(group)), np.intp)
    places: list[Codes] = []
    stride = size
    for column, j in enumerate(group):
        levels = observed[j]
        place: Codes = np.zeros(len(seen[j]), dtype)
        if len(levels):
            stride //= len(levels)
            place[levels] = np.arange(0, stride * len(levels), stride)
            members[:, column].reshape(-1, len(levels), stride)[:] = levels[:, None]
        places.append(place)
    packed = add_places([codes[j] for j in group], places)
    return Pack(tuple(group), packed, members)
