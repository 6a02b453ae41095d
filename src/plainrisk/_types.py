"""Array types by the names the package uses for them, and the text of a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Bools", "Codes", "Counts", "Floats", "Index", "Outcome", "label_of"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.unsignedinteger[Any]]  # levels or joint codes: uint8, uint16 or uint32
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Outcome = npt.NDArray[np.uint8]  # 1 where the outcome is the positive one


def label_of(value: object) -> str:
    """Return the text that stands for a category or a class, the same whatever type it was stored as.

    >>> label_of(2), label_of(2.0), label_of("2"), label_of(2.5), label_of(True)
    ('2', '2', '2', '2.5', 'True')
    """
    if isinstance(value, str):
        return str(value)  # numpy's own text type too
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    item = getattr(value, "item", None)
    return label_of(item()) if item is not None else str(value)
