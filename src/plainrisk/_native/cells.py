"""Look-ups of small signed codes."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["recode"]

Number = TypeVar("Number", bound=np.integer[Any])


def recode(codes: npt.NDArray[np.signedinteger[Any]], table: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return ``table[codes]``, where code -1 stands for the last entry and no other is negative.

    >>> recode(np.array([1, -1, 0], np.int8), np.array([7, 8, 9], np.uint8))
    array([8, 9, 7], dtype=uint8)
    """
    return table.take(codes, mode="wrap")
