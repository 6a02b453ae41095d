"""The elements of a document in any format: headings, paragraphs, tables, pictures and marked gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "OWNER",
    "VALIDATOR",
    "Block",
    "Bullets",
    "Columns",
    "Gap",
    "Grid",
    "Heading",
    "Manuscript",
    "Paragraph",
    "Picture",
    "gaps_of",
    "table",
]

OWNER, VALIDATOR = "the model owner", "the validator"


@dataclass(frozen=True)
class Heading:
    """A heading of a chapter (level 1), of a section (2) or inside one (3)."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text; a strong one states a result."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Gap:
    """A gap for a person to complete, since no program can know the content.

    Attributes
    ----------
    who : who completes it, such as "the model owner"
    what : what is to be stated
    name : the name of the text in the model file that fills the gap, if there is one
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
    caption, note : what it shows, and how to read it
    header, rows : texts
    command : the command that prints the same figures; empty if there is none
    left : the columns that are set flush left; the others hold numbers
    widths : of the columns, as shares of the text's width; empty for what the texts need
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    command: str = ""
    note: str = ""
    left: Sequence[int] = (0,)
    widths: Sequence[float] = ()


Columns = Sequence[tuple[str, str, Callable[..., Any]]]


def table(caption: str, columns: Columns, records: Iterable[Any], **options: Any) -> Grid:
    """Return a table with one line per record.

    A column is its header, the key of its values, and the function that writes a value. A key may lead into a record
    ("approval.estimate"); the empty key means the whole record.

    >>> columns = [("group", "name", str), ("rows", "size.n", "{:,}".format)]
    >>> table("Sizes.", columns, [{"name": "a", "size": {"n": 1000}}]).rows
    [('a', '1,000')]
    """
    lines = [tuple(str(write(_value(record, key))) for _, key, write in columns) for record in records]
    return Grid(caption, [header for header, _, _ in columns], lines, **options)


def _value(record: Any, key: str) -> Any:
    for name in key.split(".") if key else ():
        record = record[name]
    return record


@dataclass(frozen=True)
class Picture:
    """A picture, drawn when the document is written.

    Attributes
    ----------
    caption : what it shows, also for readers who do not see it
    draw : draws it into an empty figure
    height : in inches; pictures are as wide as the text
    """

    caption: str
    draw: Callable[[Any], None] = field(compare=False)
    height: float = 2.9


Block = Heading | Paragraph | Bullets | Gap | Grid | Picture


@dataclass(frozen=True)
class Manuscript:
    """A whole document: its first page has title and subtitle, every page has header and footer."""

    title: str
    subtitle: str
    header: str
    footer: str
    blocks: Sequence[Block]


def gaps_of(blocks: Sequence[Block]) -> Iterator[Gap]:
    """Yield the gaps that are left for people."""
    yield from (block for block in blocks if isinstance(block, Gap))
