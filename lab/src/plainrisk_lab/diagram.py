"""The drawing of a critical difference diagram: positions in pixels, y pointing down; then SVG, TikZ or matplotlib."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from scipy.optimize import isotonic_regression

from plainrisk._types import Floats
from plainrisk.errors import missing_extra
from plainrisk_lab.tables import escape_latex

__all__ = ["SIZES", "Layout", "build_layout", "shapes", "text_width", "to_matplotlib", "to_svg", "to_tikz"]

INK, STEM, GROUP, QUIET = "#1b1f24", "#8a94a0", "#1f5fa8", "#57606a"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a drawing, in pixels.

    Attributes
    ----------
    font : of every text
    bold : bold text is wider by no more than this factor
    row : between lines of text; also the height in which a stem moves from its rank to its slot
    gap : between bars; also the least distance of two stems, so that a dot belongs to one of them
    margin : around the picture; also the least length of a label's line
    dot : the radius of a dot
    point : points in a pixel
    """

    font: float = 12.0
    bold: float = 1.15
    row: float = 19.0
    gap: float = 10.0
    margin: float = 16.0
    dot: float = 3.2
    point: float = 72.0 / 96.0


SIZES = Sizes()


# ---- primitives


@dataclass(frozen=True)
class Line:
    """A line through points; `about` is its tooltip."""

    points: tuple[tuple[float, float], ...]
    color: str
    width: float
    about: str = ""


@dataclass(frozen=True)
class Dot:
    """A filled circle."""

    x: float
    y: float
    color: str


@dataclass(frozen=True)
class Text:
    """A text with its baseline at y and its start, middle or end at x."""

    x: float
    y: float
    text: str
    anchor: str
    color: str
    bold: bool = False


Shape = Line | Dot | Text


# ---- positions


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
class Layout:
    """A whole diagram; `texts` are its title and notes."""

    width: float
    height: float
    axis: tuple[float, float]
    axis_y: float
    ticks: tuple[Tick, ...]
    labels: tuple[Label, ...]
    bars: tuple[Bar, ...]
    texts: tuple[Text, ...]


def build_layout(
    names: Sequence[str],
    ranks: Floats,
    groups: Sequence[Sequence[str]],
    title: str | None = None,
    notes: Sequence[str] = (),
) -> Layout:
    """Return the positions of axis, labels and bars.

    The best rank is on the left. The better half of the classifiers is named in the left column, the other
    half in the right one, and no two lines cross. Stems closer than a slot are moved apart below the axis,
    by the least sum of squares that keeps their order, so that every dot on a bar belongs to one stem.

    >>> layout = build_layout(["A", "B", "C"], np.array([1.2, 2.9, 1.9]), [("A", "C")])
    >>> [label.name for label in layout.labels], [len(bar.dots) for bar in layout.bars]
    (['A', 'C', 'B'], [2])
    """
    order = np.argsort(ranks, kind="stable")
    shown = [_clean(names[j]) for j in order]
    values = [f"{ranks[j]:.2f}" for j in order]
    heading, notes = _clean(str(title or "")), [_clean(note) for note in notes]
    widest = max([SIZES.bold * text_width(heading), *map(text_width, notes)])
    axis, width = _place_axis(shown, values, widest + 2.0 * SIZES.margin)
    axis_y = SIZES.margin + SIZES.row * (2.0 if heading else 1.0)
    low, high = _axis_range(ranks)
    at = axis[0] + (ranks[order] - low) / (high - low) * (axis[1] - axis[0])
    slots = _spread(at, axis)
    where = {names[j]: float(slot) for j, slot in zip(order, slots, strict=True)}
    bars, bars_end = _place_bars(groups, where, axis_y + SIZES.row + SIZES.gap / 2.0)
    labels = _place_labels(shown, values, at, slots, axis, bars_end + SIZES.row * 0.7)
    bottom = max(label.y for label in labels) + SIZES.row * 0.5
    middle = width / 2.0
    texts = [Text(middle, bottom + SIZES.row * i, note, "middle", QUIET) for i, note in enumerate(notes, start=1)]
    if heading:
        texts.append(Text(middle, SIZES.margin + SIZES.font, heading, "middle", INK, bold=True))
    height = bottom + SIZES.row * len(notes) + SIZES.margin
    return Layout(width, height, axis, axis_y, _ticks(low, high, axis), labels, bars, tuple(texts))


def text_width(text: str) -> float:
    """Return a width no common sans-serif font exceeds, in pixels.

    There is no font to ask when an SVG is written. The classes follow DejaVu Sans, which is wider than
    Helvetica and Arial.

    >>> text_width("ARM1") < text_width("MixMonoXGB")
    True
    """
    return SIZES.font * sum(map(_advance, text))


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
    # A line break or a control character in a name cannot be drawn, and XML does not allow it.
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def _place_axis(names: Sequence[str], values: Sequence[str], least: float) -> tuple[tuple[float, float], float]:
    """Return the ends of the axis and the width of the picture; a long title or note widens the axis."""
    half = (len(names) + 1) // 2
    beside = SIZES.margin + 8.0 + max(map(text_width, values)) + 5.0 + SIZES.margin
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
    offset = SIZES.gap * np.arange(at.size)
    fitted = np.asarray(isotonic_regression(at - offset).x)
    return np.asarray(np.clip(fitted, axis[0], axis[1] - offset[-1]) + offset)


def _place_bars(groups: Sequence[Sequence[str]], where: dict[str, float], top: float) -> tuple[tuple[Bar, ...], float]:
    spans = sorted((sorted((where[m], m) for m in group) for group in groups), key=lambda g: (g[0][0], -g[-1][0]))
    lanes: list[float] = []  # where the last bar of each lane ends
    bars = []
    for group in spans:
        start, end = group[0][0], group[-1][0]
        lane = next((i for i, last in enumerate(lanes) if last + 1.5 * SIZES.gap <= start), len(lanes))
        lanes[lane : lane + 1] = [end]
        dots, members = zip(*group, strict=True)
        bars.append(Bar(top + SIZES.gap * lane, dots, tuple(map(_clean, members))))
    return tuple(bars), top + SIZES.gap * len(lanes)


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
        end = edge + sign * SIZES.margin
        value = end + sign * 5.0
        name = value + sign * (value_width + 8.0)
        y = top + SIZES.row * row
        anchor = "end" if on_left else "start"
        labels.append(Label(names[i], values[i], float(at[i]), float(slots[i]), y, end, value, name, anchor))
    return tuple(labels)


# ---- drawing


def shapes(layout: Layout) -> Iterator[Shape]:
    """Yield what is drawn, from back to front."""
    for bar in layout.bars:
        about = "Not told apart: " + ", ".join(bar.members)
        yield Line(((bar.dots[0], bar.y), (bar.dots[-1], bar.y)), GROUP, 3.0, about)
    for label in layout.labels:
        down = ((label.slot_x, layout.axis_y + SIZES.row), (label.slot_x, label.y), (label.end_x, label.y))
        yield Line(((label.rank_x, layout.axis_y), *down), STEM, 1.0)
    # Dots stand on the stems of the members; a stem that crosses a bar without one is not of the group.
    for bar in layout.bars:
        for x in bar.dots:
            yield Dot(x, bar.y, GROUP)
    yield Line(((layout.axis[0], layout.axis_y), (layout.axis[1], layout.axis_y)), INK, 1.2)
    for tick in layout.ticks:
        height = 6.0 if tick.text else 3.5
        yield Line(((tick.x, layout.axis_y), (tick.x, layout.axis_y - height)), INK, 1.0)
        if tick.text:
            yield Text(tick.x, layout.axis_y - 9.0, tick.text, "middle", INK)
    for label in layout.labels:
        baseline = label.y + 0.36 * SIZES.font
        yield Text(label.value_x, baseline, label.value, label.anchor, QUIET)
        yield Text(label.name_x, baseline, label.name, label.anchor, INK)
    yield from layout.texts


def to_svg(layout: Layout, about: str) -> str:
    """Return the diagram as a stand-alone SVG document."""
    width, height = f"{layout.width:.1f}", f"{layout.height:.1f}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label={quoteattr(about)} '
        "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">"
    )
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, background, *map(_svg_shape, shapes(layout)), "</svg>", ""])


def _svg_shape(shape: Shape) -> str:
    if isinstance(shape, Dot):
        return f'<circle cx="{shape.x:.2f}" cy="{shape.y:.2f}" r="{SIZES.dot}" fill="{shape.color}"/>'
    if isinstance(shape, Text):
        weight = ' font-weight="bold"' if shape.bold else ""
        position = f'x="{shape.x:.2f}" y="{shape.y:.2f}" text-anchor="{shape.anchor}"'
        font = f'font-size="{SIZES.font:g}" fill="{shape.color}"{weight}'
        return f"<text {position} {font}>{escape(shape.text)}</text>"
    points = " ".join(f"{x:.2f},{y:.2f}" for x, y in shape.points)
    style = f'fill="none" stroke="{shape.color}" stroke-width="{shape.width:g}" stroke-linejoin="round"'
    if shape.about:
        return f'<polyline points="{points}" {style}><title>{escape(shape.about)}</title></polyline>'
    return f'<polyline points="{points}" {style}/>'


def to_tikz(layout: Layout) -> str:
    r"""Return the diagram as a tikzpicture, to be read with ``\input``."""
    colors = {"plainriskInk": INK, "plainriskStem": STEM, "plainriskGroup": GROUP, "plainriskQuiet": QUIET}
    name_of = {value: name for name, value in colors.items()}
    define = [rf"\definecolor{{{name}}}{{HTML}}{{{value[1:].upper()}}}" for name, value in colors.items()]
    head = rf"\begin{{tikzpicture}}[x={SIZES.point}pt, y=-{SIZES.point}pt, inner sep=0pt, outer sep=0pt]"
    body = [_tikz_shape(shape, name_of) for shape in shapes(layout)]
    return "\n".join([r"% needs \usepackage{tikz}", head, *define, *body, r"\end{tikzpicture}", ""])


def _tikz_shape(shape: Shape, name_of: dict[str, str]) -> str:
    color = name_of[shape.color]
    if isinstance(shape, Dot):
        return rf"\fill[{color}] ({shape.x:.2f}, {shape.y:.2f}) circle [radius={SIZES.dot * SIZES.point:.2f}pt];"
    if isinstance(shape, Text):
        anchor = {"start": "base west", "middle": "base", "end": "base east"}[shape.anchor]
        size = SIZES.font * SIZES.point
        font = rf"\fontsize{{{size:.2f}}}{{{1.2 * size:.2f}}}\selectfont" + (r"\bfseries" if shape.bold else "")
        position = f"({shape.x:.2f}, {shape.y:.2f})"
        return rf"\node[anchor={anchor}, text={color}, font={font}] at {position} {{{escape_latex(shape.text)}}};"
    path = " -- ".join(f"({x:.2f}, {y:.2f})" for x, y in shape.points)
    return rf"\draw[{color}, line width={shape.width * SIZES.point:.2f}pt] {path};"


def to_matplotlib(layout: Layout) -> Any:
    """Return the diagram as a matplotlib figure of the same size."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("matplotlib", "plot") from error
    # 96 pixels to the inch. A Figure of its own leaves pyplot's state and backend alone.
    figure = Figure(figsize=(layout.width / 96.0, layout.height / 96.0))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, layout.width), ylim=(layout.height, 0.0))
    axes.set_axis_off()
    for depth, shape in enumerate(shapes(layout)):
        _draw(axes, shape, depth)
    return figure


def _draw(axes: Any, shape: Shape, depth: int) -> None:
    if isinstance(shape, Dot):
        size = 2.0 * SIZES.dot * SIZES.point
        axes.plot([shape.x], [shape.y], "o", color=shape.color, markersize=size, markeredgewidth=0, zorder=depth)
    elif isinstance(shape, Text):
        axes.text(
            shape.x,
            shape.y,
            shape.text,
            ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
            va="baseline",
            color=shape.color,
            fontsize=SIZES.font * SIZES.point,
            fontweight="bold" if shape.bold else "normal",
            parse_math=False,  # a name may hold a dollar sign
            zorder=depth,
        )
    else:
        x, y = zip(*shape.points, strict=True)
        axes.plot(x, y, color=shape.color, linewidth=shape.width * SIZES.point, solid_capstyle="butt", zorder=depth)
