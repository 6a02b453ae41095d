"""A layout as SVG, TikZ or a matplotlib figure: one list of lines, dots and texts, written three ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from plainrisk.errors import missing_extra
from plainrisk.evaluate.compare.layout import FAN, FONT, Layout
from plainrisk.evaluate.compare.tables import escape_latex

__all__ = ["to_matplotlib", "to_svg", "to_tikz"]

INK, STEM, GROUP, QUIET = "#1b1f24", "#8a94a0", "#1f5fa8", "#57606a"
DOT = 3.2
PX_TO_PT = 0.75


@dataclass(frozen=True)
class Line:
    """A line through points; `about` is what a pointer resting on it is told."""

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
    size: float
    bold: bool = False


Shape = Line | Dot | Text


def shapes(layout: Layout) -> Iterator[Shape]:
    """Yield what is drawn, from back to front."""
    for bar in layout.bars:
        about = "Not told apart: " + ", ".join(bar.members)
        yield Line(((bar.dots[0], bar.y), (bar.dots[-1], bar.y)), GROUP, 3.0, about)
    for label in layout.labels:
        down = ((label.slot_x, layout.axis_y + FAN), (label.slot_x, label.y), (label.end_x, label.y))
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
            yield Text(tick.x, layout.axis_y - 9.0, tick.text, "middle", INK, FONT)
    for label in layout.labels:
        baseline = label.y + 0.36 * FONT
        yield Text(label.value_x, baseline, label.value, label.anchor, QUIET, FONT)
        yield Text(label.name_x, baseline, label.name, label.anchor, INK, FONT)
    if layout.title:
        yield Text(layout.title.x, layout.title.y, layout.title.text, "middle", INK, layout.title.size, bold=True)
    for note in layout.notes:
        yield Text(note.x, note.y, note.text, "middle", QUIET, note.size)


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
        return f'<circle cx="{shape.x:.2f}" cy="{shape.y:.2f}" r="{DOT}" fill="{shape.color}"/>'
    if isinstance(shape, Text):
        weight = ' font-weight="bold"' if shape.bold else ""
        place = f'x="{shape.x:.2f}" y="{shape.y:.2f}" text-anchor="{shape.anchor}"'
        font = f'font-size="{shape.size:g}" fill="{shape.color}"{weight}'
        return f"<text {place} {font}>{escape(shape.text)}</text>"
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
    head = rf"\begin{{tikzpicture}}[x={PX_TO_PT}pt, y=-{PX_TO_PT}pt, inner sep=0pt, outer sep=0pt]"
    body = [_tikz_shape(shape, name_of) for shape in shapes(layout)]
    return "\n".join([r"% needs \usepackage{tikz}", head, *define, *body, r"\end{tikzpicture}", ""])


def _tikz_shape(shape: Shape, name_of: dict[str, str]) -> str:
    color = name_of[shape.color]
    if isinstance(shape, Dot):
        return rf"\fill[{color}] ({shape.x:.2f}, {shape.y:.2f}) circle [radius={DOT * PX_TO_PT:.2f}pt];"
    if isinstance(shape, Text):
        anchor = {"start": "base west", "middle": "base", "end": "base east"}[shape.anchor]
        size = shape.size * PX_TO_PT
        font = rf"\fontsize{{{size:.2f}}}{{{1.2 * size:.2f}}}\selectfont" + (r"\bfseries" if shape.bold else "")
        place = f"({shape.x:.2f}, {shape.y:.2f})"
        return rf"\node[anchor={anchor}, text={color}, font={font}] at {place} {{{escape_latex(shape.text)}}};"
    path = " -- ".join(f"({x:.2f}, {y:.2f})" for x, y in shape.points)
    return rf"\draw[{color}, line width={shape.width * PX_TO_PT:.2f}pt] {path};"


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
        size = 2.0 * DOT * PX_TO_PT
        axes.plot([shape.x], [shape.y], "o", color=shape.color, markersize=size, markeredgewidth=0, zorder=depth)
    elif isinstance(shape, Text):
        axes.text(
            shape.x,
            shape.y,
            shape.text,
            ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
            va="baseline",
            color=shape.color,
            fontsize=shape.size * PX_TO_PT,
            fontweight="bold" if shape.bold else "normal",
            parse_math=False,  # a name may hold a dollar sign
            zorder=depth,
        )
    else:
        x, y = zip(*shape.points, strict=True)
        axes.plot(x, y, color=shape.color, linewidth=shape.width * PX_TO_PT, solid_capstyle="butt", zorder=depth)
