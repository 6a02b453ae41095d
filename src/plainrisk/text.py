"""Text from outside (names, labels, contents of files), made safe to show on a terminal."""

from __future__ import annotations

import math
import re

__all__ = ["as_number", "counted", "is_number", "one_line", "plain_number", "plural", "show_p", "visible"]

# C0 without the line feed, DEL, C1, marks and overrides of writing direction, line separators, lone surrogates.
_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: object) -> str:
    r"""Return a text with escapes for the characters that a terminal obeys or that change how a line reads.

    Line feeds stay, since messages have several lines. The escapes are those of JSON, so JSON does not change.

    >>> visible("income\x1b[2J\u202e")
    'income\\u001b[2J\\u202e'
    """
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", str(text))


def one_line(text: object) -> str:
    r"""Return a visible text of one line, for the cells of tables.

    >>> one_line("a\nb")
    'a\\nb'
    """
    return visible(text).replace("\n", "\\n")


def plain_number(value: float, digits: int = 6) -> str:
    """Write a number with some digits and separators of thousands, never with an exponent that makes it large.

    >>> plain_number(3158290.4), plain_number(1250.5), plain_number(0.12345678)
    ('3,158,290', '1,250.5', '0.123457')
    """
    text = f"{value:,.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def as_number(text: str) -> float | None:
    """Return the number that a text is, as Python writes numbers; None for other texts.

    >>> as_number("1.5"), as_number("one")
    (1.5, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    return math.isfinite(math.nan if (number := as_number(text)) is None else number)


def counted(number: int, noun: str) -> str:
    """Write how many there are.

    >>> counted(1, "category"), counted(1200, "category"), counted(2, "row")
    ('1 category', '1,200 categories', '2 rows')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun: most add an s."""
    return f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"


def show_p(p: float) -> str:
    """Write a p-value.

    >>> show_p(0.03217), show_p(3e-9)
    ('0.0322', '<0.0001')
    """
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"
