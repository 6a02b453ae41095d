"""What a report is made of: headings, prose, tables and pictures, written as HTML or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Block", "Fold", "Grid", "Heading", "Items", "Mark", "Pictures", "Prose", "to_html", "to_markdown"]


@dataclass(frozen=True)
class Mark:
    """A cell with more to say.

    Attributes
    ----------
    text : what stands in the cell
    aside : a smaller second line, such as the published figure
    below : a smaller last line
    bold : set in bold
    tone : "good", "bad" or nothing
    """

    text: str
    aside: str = ""
    below: str = ""
    bold: bool = False
    tone: str = ""


Cell = str | Mark


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is a part of the report."""

    level: int
    text: str


@dataclass(frozen=True)
class Prose:
    """A paragraph, however its lines are broken; **bold** and `code` are read."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table: the first column holds names, the others figures unless `words` says so."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    words: bool = False


@dataclass(frozen=True)
class Pictures:
    """SVG pictures side by side under a legend, with what they show in words."""

    svgs: tuple[str, ...]
    caption: str
    legend: str = ""


@dataclass(frozen=True)
class Fold:
    """Blocks that a reader opens."""

    title: str
    blocks: tuple[Block, ...]


Block = Heading | Prose | Items | Grid | Pictures | Fold


def to_html(blocks: Sequence[Block]) -> str:
    """Return blocks as the body of a page."""
    return "\n".join(_html(block) for block in blocks)


def to_markdown(blocks: Sequence[Block], depth: int = 0) -> str:
    """Return blocks as Markdown; pictures are named and left to the page."""
    return "\n\n".join(text for text in (_markdown(block, depth) for block in blocks) if text)


def _flowing(text: str) -> str:
    return " ".join(text.split())


# ---- HTML


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        tag = f"h{block.level + 1}"
        return f'<{tag} id="{_slug(block.text)}">{_inline(block.text)}</{tag}>'
    if isinstance(block, Prose):
        return f"<p>{_inline(_flowing(block.text))}</p>"
    if isinstance(block, Items):
        return "<ul>" + "".join(f"<li>{_inline(line)}</li>" for line in block.lines) + "</ul>"
    if isinstance(block, Grid):
        return _html_grid(block)
    if isinstance(block, Pictures):
        # Inside a page an SVG needs no name space, and the page no address.
        svgs = "".join(f'<div class="picture">{_bare(svg)}</div>' for svg in block.svgs)
        kind = "pictures" if len(block.svgs) > 1 else "pictures one"
        legend = f'<div class="legend">{_bare(block.legend)}</div>' if block.legend else ""
        caption = f"<figcaption>{_inline(block.caption)}</figcaption>" if block.caption else ""
        return f'<figure>{legend}<div class="{kind}">{svgs}</div>{caption}</figure>'
    return f"<details><summary>{_inline(block.title)}</summary>\n{to_html(block.blocks)}\n</details>"


def _html_grid(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{_inline(name)}</th>' for name in grid.header)
    body = "\n".join("<tr>" + "".join(_html_cell(c, j == 0) for j, c in enumerate(row)) + "</tr>" for row in grid.rows)
    note = f'<p class="note">{_inline(grid.note)}</p>' if grid.note else ""
    kind = ' class="words"' if grid.words else ""
    return (
        f'<div class="table"><table{kind}><caption>{_inline(grid.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>{note}"
    )


def _html_cell(cell: Cell, first: bool) -> str:
    mark = cell if isinstance(cell, Mark) else Mark(cell)
    text = _inline(mark.text)
    text = f"<b>{text}</b>" if mark.bold else text
    below = f'<small class="aside">{_inline(mark.aside)}</small>' if mark.aside else ""
    below += f"<small>{_inline(mark.below)}</small>" if mark.below else ""
    if first:
        return f'<th scope="row">{text}{below}</th>'
    tone = f' class="{mark.tone}"' if mark.tone else ""
    return f"<td{tone}>{text}{below}</td>"


def _inline(text: str) -> str:
    text = escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)


def _bare(svg: str) -> str:
    return re.sub(r' xmlns="[^"]*"', "", svg.strip())


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


# ---- Markdown


def _markdown(block: Block, depth: int) -> str:
    if isinstance(block, Heading):
        return "#" * (block.level + 1 + depth) + " " + block.text
    if isinstance(block, Prose):
        return _flowing(block.text)
    if isinstance(block, Items):
        return "\n".join(f"- {line}" for line in block.lines)
    if isinstance(block, Grid):
        return _markdown_grid(block)
    if isinstance(block, Pictures):
        return f"*In the page: {block.caption or 'a diagram'}*"
    return f"**{block.title}**\n\n{to_markdown(block.blocks, depth)}"


def _markdown_grid(grid: Grid) -> str:
    rule = ["---", *("---" if grid.words else "---:" for _ in grid.header[1:])]
    lines = [list(grid.header), rule, *([_markdown_cell(c) for c in row] for row in grid.rows)]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    note = f"\n\n{grid.note}" if grid.note else ""
    return f"**{grid.caption}**\n\n{table}{note}"


def _markdown_cell(cell: Cell) -> str:
    mark = cell if isinstance(cell, Mark) else Mark(cell)
    text = mark.text.replace("|", "\\|")
    text = f"**{text}**" if mark.bold and text else text
    text = f"{text} / {mark.aside}" if mark.aside else text
    return f"{text} ({mark.below})" if mark.below else text
