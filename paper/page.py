"""The page around the blocks of a report: one file, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from plainrisk.study.pieces import Block, Heading, to_html
from plainrisk.study.pieces import _slug as slug

__all__ = ["render_page"]

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
        f'<a href="#{slug(b.text)}"{"" if b.level == 1 else " class=sub"}>{escape(b.text, quote=False)}</a>'
        for b in blocks
        if isinstance(b, Heading) and b.level <= 2
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<p>{escape(lead, quote=False)}</p>\n<nav>{links}</nav>\n"
        f"{to_html(blocks)}\n</body>\n</html>\n"
    )
