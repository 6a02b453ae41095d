"""A manuscript as Markdown and as HTML."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from plainrisk.document.blocks import Block, Bullets, Gap, Grid, Heading, Manuscript, Paragraph, Picture
from plainrisk.document.pictures import png
from plainrisk.text import visible

__all__ = ["to_html", "to_markdown"]

_MARKDOWN = str.maketrans({c: "\\" + c for c in "\\`*_[]<>|#"})


# ---- Markdown


def to_markdown(document: Manuscript) -> str:
    """Return Markdown without pictures; their captions say so."""
    head = [f"# {_plain(document.title)}", _plain(document.subtitle), _plain(document.header)]
    return "\n\n".join([*head, *map(_in_markdown, document.blocks)]) + "\n"


def _plain(text: str) -> str:
    return " ".join(visible(text).split()).translate(_MARKDOWN)


def _in_markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * (block.level + 1)} {_plain(block.text)}"
    if isinstance(block, Paragraph):
        return f"**{_plain(block.text)}**" if block.strong else _plain(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_plain(item)}" for item in block.items)
    if isinstance(block, Gap):
        return f"**{_plain(block.text)}**"
    if isinstance(block, Picture):
        return f"*Picture, in the .docx and .html documents: {_plain(block.caption)}*"
    return _table(block)


def _table(grid: Grid) -> str:
    rule = ["---" if j in grid.left else "---:" for j in range(len(grid.header))]
    lines = [[_plain(cell) for cell in grid.header], rule, *([_plain(cell) for cell in row] for row in grid.rows)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    below = [_plain(grid.note)] * bool(grid.note) + [f"`{grid.command}`"] * bool(grid.command)
    return "\n\n".join([f"*{_plain(grid.caption)}*", table, *below])


# ---- HTML

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; width: 100%; font-size: 13px }
caption { text-align: left; font-weight: 600; padding: .4rem 0 }
th, td { border-bottom: 1px solid #bbb; padding: .25rem .5rem; text-align: right; vertical-align: top }
td { overflow-wrap: anywhere }
.left { text-align: left }
.gap { background: #eee; border-left: 4px solid #555; padding: .4rem .6rem }
.note { font-size: 13px; color: #444 }
img { width: 100% }
header, footer { color: #555 }
h2 { border-bottom: 2px solid #1a1a1a; margin-top: 2.5rem }
@media print { h2 { break-before: page } tr, img { break-inside: avoid } }
"""


def to_html(document: Manuscript) -> str:
    """Return one HTML page that loads nothing; pictures need matplotlib, and are left out without it."""
    texts = (document.title, document.subtitle, document.header, document.footer)
    title, subtitle, header, footer = map(_escaped, texts)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}: {subtitle}</title>\n'
        f"<style>{_STYLE}</style>\n<header>{header}</header>\n<h1>{title}</h1>\n<p>{subtitle}</p>\n"
        + "\n".join(map(_in_html, document.blocks))
        + f"\n<footer>{footer}</footer>\n</html>\n"
    )


def _escaped(text: str) -> str:
    return html.escape(visible(text))


def _in_html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level + 1}>{_escaped(block.text)}</h{block.level + 1}>"
    if isinstance(block, Paragraph):
        text = _escaped(block.text)
        return f"<p>{f'<strong>{text}</strong>' if block.strong else text}</p>"
    if isinstance(block, Bullets):
        return f"<ul>{''.join(f'<li>{_escaped(item)}</li>' for item in block.items)}</ul>"
    if isinstance(block, Gap):
        return f'<p class="gap">{_escaped(block.text)}</p>'
    if isinstance(block, Picture):
        return _picture(block)
    return "\n".join(_html_table(block))


def _picture(block: Picture) -> str:
    caption = _escaped(block.caption)
    if find_spec("matplotlib") is None:
        return f'<p class="note">Picture left out, since matplotlib is not installed: {caption}</p>'
    data = base64.b64encode(png(block)).decode()
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )


def _html_table(grid: Grid) -> Iterator[str]:
    def line(cells: Sequence[str], tag: str) -> str:
        marks = [' class="left"' if j in grid.left else "" for j in range(len(cells))]
        texts = [f"<{tag}{mark}>{_escaped(cell)}</{tag}>" for mark, cell in zip(marks, cells, strict=True)]
        return f"<tr>{''.join(texts)}</tr>"

    yield f"<table><caption>{_escaped(grid.caption)}</caption>"
    if any(grid.header):
        yield f"<thead>{line(grid.header, 'th')}</thead>"
    yield f"<tbody>{''.join(line(row, 'td') for row in grid.rows)}</tbody></table>"
    if grid.note or grid.command:
        command = f" <code>{_escaped(grid.command)}</code>" if grid.command else ""
        yield f'<p class="note">{_escaped(grid.note)}{command}</p>'
