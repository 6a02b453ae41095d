"""What the pictures share: colours, axes with units, labels that fit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from plainrisk.errors import missing_extra

__all__ = [
    "DOWN",
    "NEUTRAL",
    "PALE",
    "TOTAL",
    "UP",
    "cut",
    "level",
    "name_levels",
    "name_rows",
    "new_axes",
    "note",
    "short",
    "signed",
    "tidy",
    "unit_axis",
    "with_value",
]

UP, DOWN, TOTAL, NEUTRAL = "#D55E00", "#0072B2", "#333333", "#8C8C8C"
PALE = {UP: "#F3C6A5", DOWN: "#A6CBE3"}


def new_axes(width: float, height: float, rows: int = 1, ratios: Sequence[float] = (1,)) -> Any:
    """Return the axes of a new figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("matplotlib", "plot") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    if rows == 1:
        return figure.subplots()
    return figure.subplots(rows, 1, sharex=True, height_ratios=list(ratios))


def name_rows(ax: Any, labels: Sequence[str], bold: Sequence[int] = ()) -> None:
    """Name horizontal bars, in letters and words as long as the figure has room for."""
    width, height = ax.figure.get_size_inches()
    room = int(np.clip(5.5 * width, 18, 60))
    size = float(np.clip(72 * 0.7 * height / (1.25 * len(labels)), 5.5, 10))
    ax.set_yticks(range(len(labels)), [cut(label, room) for label in labels], fontsize=size)
    for i in bold:
        ax.get_yticklabels()[i].set_fontweight("bold")


def name_levels(ax: Any, x: Any, labels: Sequence[str]) -> None:
    """Name levels below bars: wrapped where that fits, else turned."""
    room = int(0.8 * ax.figure.get_figwidth() / len(labels) / 0.07)
    longest = max(len(word) for label in labels for word in label.split())
    if longest <= room:
        ax.set_xticks(x, ["\n".join(textwrap.wrap(label, max(room, longest))) for label in labels], fontsize=8)
    else:
        ax.set_xticks(x, [short(label, 22) for label in labels], fontsize=7, rotation=40, ha="right")


def with_value(name: str, value: str) -> str:
    """Return a feature with its value."""
    return f"{name} = {value}" if value else name


def cut(label: str, room: int) -> str:
    """Shorten a label; of a feature with its value, the name."""
    name, equals, value = label.rpartition(" = ")
    return short(name, max(8, room - 3 - len(value))) + equals + value if equals else short(label, room)


def note(ax: Any, amount: float, y: float, unit: str, bold: bool = False) -> None:
    """Write a number at the end of its bar."""
    side = 4 if amount >= 0 else -4
    ax.annotate(
        signed(amount, unit),
        (amount, y),
        (side, 0),
        textcoords="offset points",
        va="center",
        ha="left" if amount >= 0 else "right",
        fontsize=8,
        fontweight="bold" if bold else "normal",
    )


def signed(amount: float, unit: str) -> str:
    """Return a contribution as text, in percentage points where it is a probability."""
    return f"{100 * amount:+.1f}" if unit == "probability" else f"{amount:+.2f}"


def level(value: float, unit: str) -> str:
    """Return a risk in percent, or a score."""
    return f"{value:.1%}" if unit == "probability" else f"{value:+.2f}"


def unit_axis(ax: Any, unit: str, what: str, axis: str = "x", signed: bool = False) -> None:
    """Name an axis with its unit; probabilities in percent, differences of them in percentage points."""
    which = ax.xaxis if axis == "x" else ax.yaxis
    if unit == "probability":
        which.set_major_formatter(lambda v, _: f"{100 * v:+g}" if signed else f"{100 * v:g}%")
        which.set_label_text(f"{what} (% points)" if signed else what)
    else:
        which.set_label_text(what if unit in what else f"{what} ({unit})")


def short(text: str, width: int = 34) -> str:
    """Cut a text to a width."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def tidy(ax: Any, grid: str) -> None:
    """Take away what is not needed, and lay a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color=NEUTRAL, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
