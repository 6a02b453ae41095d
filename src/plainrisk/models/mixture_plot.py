"""Draw how Hedge moves its weights through the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plainrisk.errors import missing_extra

__all__ = ["draw_weight_path"]

_POINTS = 2000  # more can not be seen
# Okabe and Ito's colours, told apart by colour-blind eyes too; line styles help in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", ":", "-.")


def draw_weight_path(path: npt.NDArray[np.float64], names: tuple[str, ...], ax: Any = None) -> Any:
    """Draw the weights, (rows + 1, subscales), against the number of rows seen; returns the axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing_extra("matplotlib", "plot") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    rows = np.unique(np.linspace(0, len(path) - 1, _POINTS).astype(np.intp))
    for j, name in enumerate(names):
        ax.plot(rows, path[rows, j], _STYLES[j % 4], color=_COLOURS[j % 7], label=name)
    ax.set(xlabel="rows seen", ylabel="weight", ylim=(0, None), xlim=(0, len(path) - 1))
    ax.legend(fontsize="small", ncols=1 + len(names) // 12, loc="upper left", bbox_to_anchor=(1.01, 1))
    return ax
