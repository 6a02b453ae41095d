"""Array types by the names the package uses for them, and the text of a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Bools", "Codes", "Counts", "Floats", "Index", "Outcome"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.unsignedinteger[Any]]  # levels or joint codes: uint8, uint16 or uint32
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Outcome = npt.NDArray[np.uint8]  # 1 where the outcome is the positive one
