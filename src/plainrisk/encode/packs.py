"""Several features in one small integer, so that a pass over the rows reads few bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.kernels import add_places

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
    packs: list[Pack] = []
    group: list[int] = []
    size = 1
    for j, levels in enumerate(seen):
        n_seen = max(1, int(levels.sum()))
        if group and size * n_seen > limit:
            packs.append(_pack(group, codes, seen))
            group, size = [], 1
        group.append(j)
        size *= n_seen
    return [*packs, _pack(group, codes, seen)] if group else packs


def _pack(group: list[int], codes: Sequence[Codes], seen: Sequence[npt.NDArray[np.bool_]]) -> Pack:
    levels = [np.flatnonzero(seen[j]) if seen[j].any() else np.zeros(1, np.intp) for j in group]
    size = int(np.prod([len(v) for v in levels]))
    dtype = np.uint8 if size <= 256 else np.uint16 if size <= 65536 else np.uint32
    places: list[Codes] = []
    stride = size
    for j, observed in zip(group, levels, strict=True):
        stride //= len(observed)
        place: Codes = np.zeros(len(seen[j]), dtype)
        place[observed] = np.arange(len(observed)) * stride
        places.append(place)
    packed = add_places([codes[j] for j in group], places)
    members = np.stack(np.meshgrid(*levels, indexing="ij"), axis=-1).reshape(size, len(group))
    return Pack(tuple(group), packed, members)
