"""The decision at a cut-off, defined once for scoring, cut-off tables, groups and the service."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from plainrisk._types import Bools

__all__ = ["refused"]


def refused(risk: Any, cutoff: float, adverse: Literal["positive", "negative"]) -> Bools:
    """Return who is refused: a risk at or above the cut-off or, if the positive outcome is the good one, below it.

    >>> refused([0.1, 0.2, 0.3], 0.2, "positive").tolist()
    [False, True, True]
    >>> refused([0.1, 0.2, 0.3], 0.2, "negative").tolist()
    [True, False, False]
    """
    return np.asarray(risk) >= cutoff if adverse == "positive" else np.asarray(risk) < cutoff
