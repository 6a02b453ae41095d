"""The picture of the best clipped line: its squared error, and the line beside the sigmoid."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.special import expit

from plainrisk.errors import DataError, missing_extra
from plainrisk.form import ALPHA_STAR
from plainrisk_lab.paper.alpha import squared_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_alpha"]

# Okabe and Ito's colors, told apart by color-blind readers; line styles tell them apart without color.
_BLUE, _VERMILLION, _GRAY = "#0072B2", "#D55E00", "#6B6B6B"


def plot_alpha(target: str | PathLike[str] | Sequence[Axes]) -> Figure:
    """Draw the squared error against alpha, and the sigmoid with its best clipped line.

    Parameters
    ----------
    target : path or two axes
        Where to save the figure (the suffix chooses the format), or the axes to draw into.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that was drawn.

    Examples
    --------
    >>> figure = plot_alpha("alpha.png")  # doctest: +SKIP
    """
    if not isinstance(target, (str, PathLike)):
        axes = list(target)
        if len(axes) != 2:
            raise DataError(f"plot_alpha: needs a path or two axes, got {len(axes)} axes")
        _draw_error(axes[0])
        _draw_line(axes[1])
        return cast("Figure", axes[0].figure)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("matplotlib", "plot") from None
    figure = Figure(figsize=(10.0, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_error(left)
    _draw_line(right)
    figure.savefig(target, dpi=160)
    return figure


def _draw_error(ax: Axes) -> None:
    alphas = np.geomspace(0.02, 10.0, 300)
    least = squared_error(ALPHA_STAR)
    ax.plot(alphas, [squared_error(a) for a in alphas], color=_BLUE, linewidth=2)
    ax.plot([ALPHA_STAR], [least], "o", color=_VERMILLION, markersize=7, clip_on=False, zorder=3)
    ax.annotate(
        f"$\\alpha^\\star$ = {ALPHA_STAR:.4f}\nsquared error {least:.5f}",
        (ALPHA_STAR, least),
        xytext=(ALPHA_STAR, 0.24),
        horizontalalignment="center",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
        arrowprops={"arrowstyle": "-", "color": _GRAY, "shrinkB": 6},
    )
    ax.set(xlim=(0, 10), ylim=(0, None), xlabel="$\\alpha$", ylabel="squared error")
    ax.set_title("One best slope for every model", loc="left", fontsize=11)
    _tidy(ax)


def _draw_line(ax: Axes) -> None:
    x = np.linspace(-7.0, 7.0, 561)
    ends = np.array([-7.0, -ALPHA_STAR, ALPHA_STAR, 7.0])
    low, high = expit(-ALPHA_STAR), expit(ALPHA_STAR)
    ax.axvspan(-ALPHA_STAR, ALPHA_STAR, color=_GRAY, alpha=0.08, linewidth=0)
    ax.plot(x, expit(x), color=_BLUE, linewidth=2, label="sigmoid")
    ax.plot(ends, [0, 0, 1, 1], color=_VERMILLION, linewidth=2, linestyle="--", label="clipped line")
    unclipped = f"not clipped: {low:.1%} to {high:.1%}"
    ax.text(0.0, 1.05, unclipped, horizontalalignment="center", color=_GRAY, fontsize=8)
    ax.set(xlim=(-7, 7), ylim=(-0.04, 1.12), xlabel="score", ylabel="risk", yticks=[0, 0.25, 0.5, 0.75, 1])
    ax.set_xticks([-6, -ALPHA_STAR, 0, ALPHA_STAR, 6], ["$-6$", "$-\\alpha^\\star$", "0", "$\\alpha^\\star$", "6"])
    ax.legend(loc="center right", frameon=False)
    ax.set_title("The sigmoid and its best clipped line", loc="left", fontsize=11)
    _tidy(ax)


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color=_GRAY, alpha=0.2, linewidth=0.6)
    ax.set_axisbelow(True)
