"""A manuscript as a Word document, by python-docx; the same manuscript gives the same bytes."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from plainrisk.document.blocks import Block, Bullets, Gap, Grid, Heading, Manuscript, Paragraph, Picture
from plainrisk.document.pictures import png
from plainrisk.errors import missing_extra
from plainrisk.text import visible

__all__ = ["require_docx", "to_docx"]

FONT, MONO = "Arial", "Courier New"
LINE = 100  # characters of a table's line, at 8 points on A4, also in the wider fonts that stand in for Arial
PADDING = 3  # of a cell, in characters
BOLD = 1.15  # how much wider a heading may be than the figures below it
ONE_PAGE = 16  # lines of text of a table that is not torn apart
WIDTH = 17.0  # of the text, in cm
SHADE, RULE = "EAEAEA", "9A9A9A"
MADE = datetime(2000, 1, 1)  # a document of the same numbers has the same bytes whenever it is written


def require_docx() -> None:
    """Raise before any work starts if python-docx is not installed."""
    try:
        import docx  # noqa: F401
    except ImportError:
        raise missing_extra("python-docx", "document") from None


def to_docx(manuscript: Manuscript) -> bytes:
    """Return the bytes of a .docx file."""
    require_docx()
    import docx

    document, title, subtitle = docx.Document(), visible(manuscript.title), visible(manuscript.subtitle)
    _set_styles(document)
    _set_page(document, manuscript)
    document.add_paragraph(title, style="Title").paragraph_format.space_after = 0
    document.add_paragraph(subtitle, style="Subtitle")
    for block in manuscript.blocks:
        _add(document, block)
    properties = document.core_properties
    properties.title, properties.subject = title, subtitle
    properties.author = properties.last_modified_by = manuscript.footer
    properties.created = properties.modified = MADE
    properties.comments, properties.language = "", "en-US"
    file = io.BytesIO()
    document.save(file)
    return _same_bytes(file)


def _same_bytes(file: io.BytesIO) -> bytes:
    """Repack a file without time stamps."""
    packed = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, old.read(name))
    return packed.getvalue()


# ---- the page


def _set_styles(document: Any) -> None:
    from docx.shared import Pt, RGBColor

    sizes = {"Normal": 9.5, "List Bullet": 9.5, "Title": 22, "Subtitle": 12}
    sizes |= {"Heading 1": 15, "Heading 2": 12, "Heading 3": 10}
    for name, size in sizes.items():
        style = document.styles[name]
        style.font.name, style.font.size, style.font.color.rgb = FONT, Pt(size), RGBColor(0x1A, 0x1A, 0x1A)
        fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
        for key in [key for key in fonts.attrib if key.endswith("Theme")]:
            del fonts.attrib[key]  # a theme's font would take precedence
        fonts.set(_qn("w:hAnsi"), FONT)
        fonts.set(_qn("w:eastAsia"), FONT)
        style.paragraph_format.space_after = Pt(4)
        if name.startswith("Heading"):
            style.paragraph_format.space_before = Pt({"Heading 1": 18, "Heading 2": 12}.get(name, 8))
            style.paragraph_format.keep_with_next = True
    document.styles["Subtitle"].font.italic = False
    for border in document.styles["Title"].element.pPr.findall(_qn("w:pBdr")):
        document.styles["Title"].element.pPr.remove(border)
    for name in ("Header", "Footer"):
        style = document.styles[name]
        style.font.name, style.font.size = FONT, Pt(8)
        style.paragraph_format.tab_stops.clear_all()


def _qn(name: str) -> str:
    from docx.oxml.ns import qn

    return str(qn(name))


def _element(name: str, **attributes: str) -> Any:
    """Return an element of WordprocessingML."""
    from docx.oxml import OxmlElement

    element = OxmlElement(f"w:{name}")
    for attribute, text in attributes.items():
        element.set(_qn(f"w:{attribute}"), text)
    return element


def _set_page(document: Any, manuscript: Manuscript) -> None:
    from docx.enum.text import WD_TAB_ALIGNMENT
    from docx.shared import Cm

    section = document.sections[0]
    section.page_width, section.page_height = Cm(21.0), Cm(29.7)
    section.left_margin = section.right_margin = Cm(2.0)
    section.top_margin, section.bottom_margin = Cm(2.2), Cm(2.0)
    for part, text in ((section.header, manuscript.header), (section.footer, manuscript.footer)):
        line = part.paragraphs[0]
        line.paragraph_format.tab_stops.add_tab_stop(Cm(WIDTH), WD_TAB_ALIGNMENT.RIGHT)
        line.add_run(visible(text))
    footer = section.footer.paragraphs[0]
    for text, field in (("\tPage ", "PAGE"), (" of ", "NUMPAGES")):
        footer.add_run(text)
        _add_field(footer, field)


def _add_field(paragraph: Any, name: str) -> None:
    """Add a field that Word fills in, such as the number of the page."""
    field = _element("instrText")
    field.text = name
    paragraph.add_run()._r.extend(
        [_element("fldChar", fldCharType="begin"), field, _element("fldChar", fldCharType="end")]
    )


# ---- blocks


def _text(text: str) -> str:
    """Return a text that never breaks a line between a sign and its number."""
    return re.sub(r"(?<=\s)-(?=\d)", "\N{NON-BREAKING HYPHEN}", visible(text))


def _add(document: Any, block: Block) -> None:
    if isinstance(block, Heading):
        document.add_heading(visible(block.text), block.level)
    elif isinstance(block, Paragraph):
        document.add_paragraph().add_run(_text(block.text)).bold = block.strong
    elif isinstance(block, Bullets):
        for item in block.items:
            document.add_paragraph(_text(item), style="List Bullet")
    elif isinstance(block, Gap):
        paragraph = document.add_paragraph()
        paragraph.add_run(visible(block.text)).italic = True
        _shade(paragraph._p.get_or_add_pPr())
    elif isinstance(block, Picture):
        _add_picture(document, block)
    else:
        _add_grid(document, block)


def _shade(properties: Any) -> None:
    properties.append(_element("shd", val="clear", color="auto", fill=SHADE))


def _add_picture(document: Any, picture: Picture) -> None:
    from docx.shared import Cm

    paragraph = document.add_paragraph()
    paragraph.paragraph_format.keep_with_next = True
    shape = paragraph.add_run().add_picture(io.BytesIO(png(picture)), width=Cm(WIDTH))
    shape._inline.docPr.set("descr", visible(picture.caption))
    _add_small(document, picture.caption)


def _add_small(document: Any, text: str, command: str = "", *, above: bool = False) -> None:
    """Add a caption above a table, or a note below a table or a picture."""
    from docx.shared import Pt

    paragraph = document.add_paragraph()
    layout = paragraph.paragraph_format
    layout.keep_with_next = above
    layout.space_before, layout.space_after = Pt(6 if above else 2), Pt(2 if above else 8)
    run = paragraph.add_run(visible(text))
    run.bold, run.font.size = above, Pt(8.5 if above else 8)
    if command:
        code = paragraph.add_run(("  " if text else "") + visible(command))
        code.font.name, code.font.size = MONO, Pt(7.5)


def _add_grid(document: Any, grid: Grid) -> None:
    from docx.shared import Cm

    _add_small(document, grid.caption, above=True)
    header = [tuple(grid.header)] if any(grid.header) else []
    lines = [*header, *grid.rows]
    shares = _shares(lines, grid)
    torn = sum(_height(cells, shares) for cells in lines) > ONE_PAGE
    table = document.add_table(rows=len(lines), cols=len(grid.header))
    table.autofit = False
    _rule(table)
    widths = [Cm(WIDTH * share) for share in shares]
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    for i, (row, cells) in enumerate(zip(table.rows, lines, strict=True)):
        last = i == len(lines) - 1
        together = bool(grid.note or grid.command) if last else not torn or i == 0
        _fill(row, cells, widths, grid.left, head=bool(header) and i == 0, together=together)
    _add_small(document, grid.note, grid.command)


def _fill(
    row: Any, cells: Sequence[str], widths: Sequence[Any], left: Sequence[int], *, head: bool, together: bool
) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt

    properties = row._tr.get_or_add_trPr()
    properties.append(_element("cantSplit"))
    if head:
        properties.append(_element("tblHeader"))
    for j, (cell, text) in enumerate(zip(row.cells, cells, strict=True)):
        cell.width = widths[j]
        paragraph = cell.paragraphs[0]
        layout = paragraph.paragraph_format
        layout.space_before = layout.space_after = Pt(1)
        layout.keep_with_next = together
        if j not in left:
            paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
        run = paragraph.add_run(_text(text))
        run.font.size, run.bold = Pt(8), head
        if head:
            _shade(cell._tc.get_or_add_tcPr())


def _rule(table: Any) -> None:
    """Draw thin lines above, below and between the rows."""
    borders = _element("tblBorders")
    borders.extend(_element(side, val="single", sz="4", space="0", color=RULE) for side in ("top", "bottom", "insideH"))
    table._tbl.tblPr.append(borders)


def _shares(lines: Sequence[Sequence[str]], grid: Grid) -> Sequence[float]:
    """Divide the width among the columns: each gets its longest word, and of the rest what its texts need."""
    if grid.widths:
        return grid.widths
    least, wanted = [], []
    for j in range(len(grid.header)):
        texts = [str(line[j]) for line in lines]
        head = max(map(len, str(grid.header[j]).split(" "))) * BOLD
        least.append(min(max((head, *(len(word) for text in texts for word in text.split(" ")))), 66) + PADDING)
        wanted.append(min(max(map(len, texts), default=1), 60) + PADDING)
    spare = max(LINE - sum(least), 0)
    more = [max(w - a, 0) for w, a in zip(wanted, least, strict=True)]
    total = sum(more)
    shares = [a + (spare * m / total if total > spare else m) for a, m in zip(least, more, strict=True)]
    return [share / max(sum(shares), LINE * 0.6) for share in shares]


def _height(cells: Sequence[str], shares: Sequence[float]) -> int:
    """Return how many lines of text a row takes, about."""
    return max(math.ceil(len(text) / max(LINE * share - PADDING, 1)) for text, share in zip(cells, shares, strict=True))
