"""Joint codes: the levels of several features in one small integer, so that a pass over the rows reads few bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plainrisk._types import Codes, Floats, Index

__all__ = ["JointCode", "code_type", "joint_codes"]


@dataclass(frozen=True)
class JointCode:
    """The levels of neighbouring features as the digits of one number.

    Attributes
    ----------
    features : positions of the features
    sizes : how many levels each of them has

    Examples
    --------
    >>> joint = JointCode((0, 1), (2, 3))
    >>> joint.encode([np.array([0, 1, 1], np.uint8), np.array([2, 0, 2], np.uint8)]).tolist()
    [2, 3, 5]
    >>> [levels.tolist() for levels in joint.levels]
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
    >>> [sums.tolist() for sums in joint.margins(np.array([1.0, 0.0, 2.0, 0.0, 0.0, 4.0]))]
    [[3.0, 4.0], [1.0, 0.0, 6.0]]
    """

    features: tuple[int, ...]
    sizes: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """How many codes there are."""
        return math.prod(self.sizes)

    @cached_property
    def levels(self) -> tuple[Index, ...]:
        """Per feature, (size,): the level that each code stands for."""
        return np.unravel_index(np.arange(self.size), self.sizes)

    def encode(self, codes: Sequence[Codes]) -> Codes:
        """Return the joint code of every row, given the level of each feature."""
        kind = code_type(self.size)
        out = codes[0].astype(kind)
        for code, size in zip(codes[1:], self.sizes[1:], strict=True):
            out *= kind(size)
            out += code.astype(kind, copy=False)
        return out

    def margins(self, by_code: Floats) -> list[Floats]:
        """Return sums by the level of each feature, given sums by joint code."""
        grid = by_code.reshape(self.sizes)
        axes = range(len(self.sizes))
        return [grid.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]


def joint_codes(sizes: Sequence[int], groups: Sequence[Sequence[int]], n_rows: int) -> tuple[JointCode, ...]:
    """Join neighbouring features of a group while there are at most min(256, sqrt(n_rows)) codes.

    So a code is one byte, and a table of pairs of codes does not outgrow the rows it counts.

    Parameters
    ----------
    sizes : per feature, how many levels it has
    groups : positions of features; none is joined with one of another group
    """
    limit = int(np.clip(n_rows**0.5, 16, 256))
    found: list[JointCode] = []
    for group in groups:
        joined: list[int] = []
        for j in group:
            if joined and math.prod(sizes[k] for k in (*joined, j)) > limit:
                found.append(JointCode(tuple(joined), tuple(sizes[k] for k in joined)))
                joined = []
            joined.append(j)
        if joined:
            found.append(JointCode(tuple(joined), tuple(sizes[k] for k in joined)))
    return tuple(found)


def code_type(size: int) -> Any:
    """Return the smallest type that holds the codes from 0 to ``size - 1``."""
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32
