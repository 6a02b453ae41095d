"""What a document is made of, whatever it is written as: headings, paragraphs, tables, pictures and marked gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Block", "Bullets", "Gap", "Grid", "Heading", "Manuscript", "Paragraph", "Picture", "gaps_of"]


@dataclass(frozen=True)
class Heading:
    """A heading of a chapter (level 1), of a section (2) or inside one (3)."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text; one that is strong states a result."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Gap:
    """What a person must complete, since no program can know it.

    Attributes
    ----------
    who : whose it is, such as "the model owner"
    what : what is to be stated
    name : under which the model file may hold the text, so that nothing is left to complete
    """

    who: str
    what: str
    name: str = ""

    @property
    def text(self) -> str:
        """The gap as the document shows it."""
        return f"[To be completed by {self.who}: {self.what}]"


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes
    ----------
    caption : what it shows
    header, rows : texts
    command : what prints the same figures; empty where no command does
    note : how to read it
    left : columns that are set flush left; the others hold numbers
    widths : of the columns, as shares of the text's width; none for what the texts need
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    command: str = ""
    note: str = ""
    left: Sequence[int] = (0,)
    widths: Sequence[float] = ()


@dataclass(frozen=True)
class Picture:
    """A picture, drawn when the document is written.

    Attributes
    ----------
    caption : what it shows, also for readers who do not see it
    draw : draws it into an empty figure
    height : in inches; pictures are as wide as the text, or half of it
    """

    caption: str
    draw: Callable[[Any], None] = field(compare=False)
    height: float = 2.9


Block = Heading | Paragraph | Bullets | Gap | Grid | Picture


@dataclass(frozen=True)
class Manuscript:
    """A whole document.

    Attributes
    ----------
    title, subtitle : of the first page
    header, footer : of every page
    blocks : in their order
    """

    title: str
    subtitle: str
    header: str
    footer: str
    blocks: Sequence[Block]


def gaps_of(blocks: Sequence[Block]) -> Iterator[Gap]:
    """Yield the gaps that are left for people."""
    yield from (block for block in blocks if isinstance(block, Gap))
