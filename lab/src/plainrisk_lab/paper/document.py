"""A document: headings, prose, tables and pictures, written as one HTML page that fetches nothing, or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Block", "Fold", "Grid", "Heading", "Items", "Mark", "Pictures", "Prose", "render_page", "to_markdown"]


@dataclass(frozen=True)
class Mark:
    """A cell with more to say.

    Attributes
    ----------
    text : the text of the cell
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


def _to_html(blocks: Sequence[Block]) -> str:
    """Return blocks as the body of a page."""
    return "\n".join(_html(block) for block in blocks)


def to_markdown(blocks: Sequence[Block], depth: int = 0) -> str:
    """Return blocks as Markdown; pictures are named and left to the page."""
    return "\n\n".join(text for text in (_markdown(block, depth) for block in blocks) if text)


def _flowing(text: str) -> str:
    return " ".join(text.split())


# ---- HTML

_STYLE = """
:root { --ink: #1b1f24; --quiet: #57606a; --line: #d8dee4; --soft: #f6f8fa; --blue: #1f5fa8; color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 76rem; color: var(--ink); background: #fff;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.55rem; margin: 3.5rem 0 .75rem; padding-top: 1.25rem; border-top: 3px solid var(--ink); }
h3 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; }
h4 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p, ul { max-width: 46rem; margin: .6rem 0; }
li { margin: .3rem 0; }
code { font: .9em ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: var(--soft); padding: .1em .3em;
  border-radius: 3px; }
nav { margin: 1.25rem 0; padding: .75rem 1rem; background: var(--soft); border-radius: 6px; max-width: 46rem;
  columns: 2 18rem; }
nav a { display: block; color: var(--blue); text-decoration: none; padding: .15rem 0; }
nav a:hover { text-decoration: underline; }
nav a.sub { padding-left: 1.25rem; font-size: .93rem; }
.table { overflow-x: auto; margin: 1.25rem 0 .4rem; }
table { border-collapse: collapse; font-size: .84rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; font-size: .95rem; padding: .25rem 0 .5rem; caption-side: top; }
th, td { padding: .28rem .55rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 500; }
th:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
tbody tr:hover td, tbody tr:hover th { background: var(--soft); }
table.words td, table.words th { text-align: left; white-space: normal; vertical-align: top; min-width: 6rem; }
td small, th small { display: block; color: var(--quiet); font-size: .86em; font-weight: 400; line-height: 1.2; }
td.good small:not(.aside) { color: #1a7f37; }
td.bad { background: #fff1ea; }
td.bad small:not(.aside) { color: #b3350a; font-weight: 600; }
.note { color: var(--quiet); font-size: .86rem; margin-top: .2rem; }
figure { margin: 1.5rem 0; }
figcaption { color: var(--quiet); font-size: .88rem; max-width: 46rem; margin-top: .4rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: .75rem; }
.legend { margin-bottom: .5rem; }
.pictures.one { display: block; overflow-x: auto; }
.pictures svg { max-width: 100%; height: auto; }
.pictures.one svg { max-width: none; }
details { margin: 1rem 0; border: 1px solid var(--line); border-radius: 6px; padding: .5rem .9rem; }
summary { cursor: pointer; font-weight: 600; }
@media print { details { border: 0; padding: 0; } nav { display: none; } h2 { break-before: page; } }
"""


def render_page(title: str, lead: str, blocks: Sequence[Block]) -> str:
    """Return a complete HTML document."""
    links = "".join(
        f'<a href="#{_slug(b.text)}"{"" if b.level == 1 else " class=sub"}>{escape(b.text, quote=False)}</a>'
        for b in blocks
        if isinstance(b, Heading) and b.level <= 2
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<p>{escape(lead, quote=False)}</p>\n<nav>{links}</nav>\n"
        f"{_to_html(blocks)}\n</body>\n</html>\n"
    )


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
    return f"<details><summary>{_inline(block.title)}</summary>\n{_to_html(block.blocks)}\n</details>"


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
