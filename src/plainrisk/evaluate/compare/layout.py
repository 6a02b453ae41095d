"""Where everything in a critical difference diagram stands: geometry only, in pixels, y pointing down."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression

from plainrisk.evaluate.compare.results import Floats

__all__ = ["Bar", "Label", "Layout", "Note", "Tick", "lay_out", "text_width"]

FONT = 12.0
TITLE_FONT = 14.0
NOTE_FONT = 11.0
ROW = 19.0  # between labels
LANE = 10.0  # between bars
SLOT = 10.0  # the least distance of two stems, so that a dot belongs to one of them
BOLD = 1.15  # bold text is wider by no more than this
MARGIN = 14.0
FAN = 18.0  # height in which a stem moves from its rank to its slot
ELBOW = 16.0  # the least length of a label's line


@dataclass(frozen=True)
class Tick:
    """A mark on the axis; the text is empty for a minor one."""

    x: float
    text: str


@dataclass(frozen=True)
class Label:
    """A classifier: its stem from the axis through the bars, and its name in the left or right column.

    The line runs from (rank_x, axis) to (slot_x, top of the bars), down to (slot_x, y) and across to
    (end_x, y). `anchor` says which end of the texts stands at name_x and value_x.
    """

    name: str
    value: str
    rank_x: float
    slot_x: float
    y: float
    end_x: float
    value_x: float
    name_x: float
    anchor: str


@dataclass(frozen=True)
class Bar:
    """A group: a bar over its span, with one dot for each member."""

    y: float
    dots: tuple[float, ...]
    members: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """A line of text, centred at x, with the baseline at y."""

    x: float
    y: float
    text: str
    size: float


@dataclass(frozen=True)
class Layout:
    """A whole diagram."""

    width: float
    height: float
    axis: tuple[float, float]
    axis_y: float
    ticks: tuple[Tick, ...]
    labels: tuple[Label, ...]
    bars: tuple[Bar, ...]
    title: Note | None
    notes: tuple[Note, ...]


def lay_out(
    names: Sequence[str],
    ranks: Floats,
    groups: Sequence[Sequence[str]],
    title: str | None = None,
    notes: Sequence[str] = (),
) -> Layout:
    """Place axis, labels and bars.

    The best rank is on the left. The better half of the classifiers is named in the left column, the other
    half in the right one, and no two lines cross. Stems closer than a slot are moved apart below the axis,
    by the least sum of squares that keeps their order, so that every dot on a bar belongs to one stem.

    >>> layout = lay_out(["A", "B", "C"], np.array([1.2, 2.9, 1.9]), [("A", "C")])
    >>> [label.name for label in layout.labels], [len(bar.dots) for bar in layout.bars]
    (['A', 'C', 'B'], [2])
    """
    order = np.argsort(ranks, kind="stable")
    shown = [_clean(names[j]) for j in order]
    values = [f"{ranks[j]:.2f}" for j in order]
    heading, notes = _clean(title or ""), [_clean(note) for note in notes]
    widest = max([text_width(heading, BOLD * TITLE_FONT), *(text_width(note, NOTE_FONT) for note in notes)])
    axis, width = _place_axis(shown, values, widest + 2.0 * MARGIN)
    axis_y = MARGIN + (TITLE_FONT + 10.0 if heading else 0.0) + FONT + 10.0
    low, high = _axis_range(ranks)
    at = axis[0] + (ranks[order] - low) / (high - low) * (axis[1] - axis[0])
    slots = _spread(at, axis)
    where = {names[j]: float(slot) for j, slot in zip(order, slots, strict=True)}
    bars, bars_end = _place_bars(groups, where, axis_y + FAN + LANE / 2.0)
    labels = _place_labels(shown, values, at, slots, axis, bars_end + ROW * 0.7)
    bottom = max(label.y for label in labels) + ROW * 0.5
    placed = [Note(width / 2.0, bottom + 22.0 + 15.0 * i, text, NOTE_FONT) for i, text in enumerate(notes)]
    return Layout(
        width=width,
        height=(placed[-1].y + 4.0 if placed else bottom) + MARGIN,
        axis=axis,
        axis_y=axis_y,
        ticks=_ticks(low, high, axis),
        labels=labels,
        bars=bars,
        title=Note(width / 2.0, MARGIN + TITLE_FONT, heading, TITLE_FONT) if heading else None,
        notes=tuple(placed),
    )


def text_width(text: str, size: float = FONT) -> float:
    """Return a width no common sans-serif font exceeds, in pixels.

    There is no font to ask when an SVG is written. The classes follow DejaVu Sans, which is wider than
    Helvetica and Arial.

    >>> text_width("ARM1") < text_width("MixMonoXGB")
    True
    """
    return size * sum(map(_advance, text))


def _advance(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if not character.isascii():
        return 1.15
    if character in "ijl'|,. :;I!":
        return 0.41
    if character in "mMwWQO@%&+<>=~#^":
        return 1.02
    return 0.70 if character.islower() or character.isdigit() or character in "-_()[]{}/\\" else 0.79


def _clean(text: str) -> str:
    # A line break or a control character in a name has no place in a picture, or in XML at all.
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def _place_axis(names: Sequence[str], values: Sequence[str], least: float) -> tuple[tuple[float, float], float]:
    """Return the ends of the axis and the width of the picture; a long title or note widens the axis."""
    half = (len(names) + 1) // 2
    beside = MARGIN + 8.0 + max(map(text_width, values)) + 5.0 + ELBOW
    left = beside + max(map(text_width, names[:half]))
    right = beside + max(map(text_width, names[half:]))
    span = max(360.0, 17.0 * len(names), least - left - right)
    return (left, left + span), left + span + right


def _axis_range(ranks: Floats) -> tuple[int, int]:
    low, high = math.floor(ranks.min()), math.ceil(ranks.max())
    return (low, high) if low < high else (low - 1, high + 1)


def _ticks(low: int, high: int, axis: tuple[float, float]) -> tuple[Tick, ...]:
    span = high - low
    step = 0.5 if span < 3 else next(s for s in (1, 2, 5, 10, 20, 50, 100, span) if span / s <= 20)
    at = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    major = [Tick(axis[0] + (v - low) / span * (axis[1] - axis[0]), f"{v:g}") for v in at]
    between = [Tick((a.x + b.x) / 2.0, "") for a, b in pairwise(major)]
    return tuple(major + between)


def _spread(at: Floats, axis: tuple[float, float]) -> Floats:
    """Move sorted positions at least a slot apart and keep them on the axis, with least squared movement."""
    offset = SLOT * np.arange(at.size)
    fitted = np.asarray(isotonic_regression(at - offset).x)
    return np.asarray(np.clip(fitted, axis[0], axis[1] - offset[-1]) + offset)


def _place_bars(groups: Sequence[Sequence[str]], where: dict[str, float], top: float) -> tuple[tuple[Bar, ...], float]:
    spans = sorted((sorted((where[m], m) for m in group) for group in groups), key=lambda g: (g[0][0], -g[-1][0]))
    lanes: list[float] = []  # where the last bar of each lane ends
    bars = []
    for group in spans:
        start, end = group[0][0], group[-1][0]
        lane = next((i for i, last in enumerate(lanes) if last + 1.5 * SLOT <= start), len(lanes))
        lanes[lane : lane + 1] = [end]
        dots, members = zip(*group, strict=True)
        bars.append(Bar(top + LANE * lane, dots, tuple(map(_clean, members))))
    return tuple(bars), top + LANE * len(lanes)


def _place_labels(
    names: Sequence[str],
    values: Sequence[str],
    at: Floats,
    slots: Floats,
    axis: tuple[float, float],
    top: float,
) -> tuple[Label, ...]:
    k, half = len(names), (len(names) + 1) // 2
    value_width = max(map(text_width, values))
    labels = []
    for i in range(k):
        # The outermost stem is the shortest one: then no line of a column crosses a stem.
        on_left = i < half
        row, sign, edge = (i, -1.0, axis[0]) if on_left else (k - 1 - i, 1.0, axis[1])
        end = edge + sign * ELBOW
        value = end + sign * 5.0
        name = value + sign * (value_width + 8.0)
        y = top + ROW * row
        anchor = "end" if on_left else "start"
        labels.append(Label(names[i], values[i], float(at[i]), float(slots[i]), y, end, value, name, anchor))
    return tuple(labels)
