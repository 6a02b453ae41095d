"""New figures; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plainrisk.errors import missing_extra

__all__ = ["new_axes"]


def new_axes(width: float, height: float, rows: int = 1, ratios: Sequence[float] = (1,), columns: int = 1) -> Any:
    """Return the axes of a new figure, which pyplot knows: a notebook shows it once, as `plt.show()` does in a script.

    Parameters
    ----------
    width, height : in inches
    rows : how many axes there are, one below the other, with one scale of x
    ratios : of their heights
    columns : how many stand beside each other, with scales of their own
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing_extra("matplotlib", "plot") from None
    _, axes = plt.subplots(
        rows, columns, sharex=columns == 1, figsize=(width, height), height_ratios=list(ratios), layout="constrained"
    )
    return axes
