"""How a column of text is read, as a draft finds it: texts that mean missing, signs of percent and currency, commas.

A draft only proposes: what it finds is written into the schema as a rule, with a remark for a person to confirm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from plainrisk.data.columns import PADDED
from plainrisk.data.texts import Read, Reading, parse
from plainrisk.schema.check import FEW_ROWS

__all__ = ["TextFormat", "code_name", "text_format"]

# Texts that mean missing, in lower case. Among categories, "none" and "unknown" are answers.
_NULLS = frozenset({"", "?", "-", "--", ".", "n/a", "#n/a", "na", "nan", "null", "<na>"})
_NULLS_OF_NUMBERS = _NULLS | {"none", "nil", "missing", "unknown", "not available", "n.a.", "#value!", "#div/0!"}
_STRANGE_WORDS = 3  # other texts among numbers, at most
_MANY_NUMBERS = 50  # distinct numbers, from which on a strange word among them is taken to mean missing
# Names of codes that are written as numbers.
_CODES = re.compile(
    r"\b(zip|zipcode|postal|postcode|plz|naics|nace|sic|mcc|fips|iso|code|codes|cd|type|class|category|branch|county|"
    r"region|area|industry|sector|occupation|status|purpose|state|bank|dealer|product)\b"
)


@dataclass(frozen=True)
class TextFormat:
    """How the texts of a column are written.

    Attributes
    ----------
    read : how its numbers are written; None if it holds categories
    nulls : the texts that mean missing, as written
    strange : those of them that are only guessed to mean missing
    ambiguous : whether its commas could be decimal commas, too
    """

    read: Read | None = None
    nulls: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    ambiguous: bool = False

    @property
    def kind(self) -> Literal["continuous", "categorical"]:
        """The kind of feature that it is."""
        return "categorical" if self.read is None else "continuous"

    @property
    def reading(self) -> Reading:
        """The same as a rule."""
        return Reading(self.read is not None, self.read or "number", frozenset(self.nulls))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the feature that state it."""
        is_plain = self.read == "number" and self.nulls
        fields = {"kind": self.kind, "read": None if is_plain else self.read, "null_values": self.nulls}
        return {field: value for field, value in fields.items() if value and value != "continuous"}

    def remarks(self) -> Iterator[str]:
        """Yield how the texts are read, for a person to confirm."""
        usual = [text for text in self.nulls if text not in self.strange]
        if usual:
            names = ", ".join(repr(text) if text else "a blank" for text in usual)
            yield f"{names} read as missing"
        if self.strange:
            yield f"numbers except for {', '.join(map(repr, self.strange))}, read as missing: check"
        if self.read == "number" and not self.nulls:
            yield "numbers as text"
        if self.read == "percent":
            yield "percent signs: 35.5% is read as 35.5"
        if self.read == "amount":
            yield "currency signs or commas for thousands: $1,100.00 is read as 1100"
        if self.ambiguous:
            yield "if its commas are decimal commas, read = 'decimal_comma'"
        if self.read == "decimal_comma":
            yield "decimal commas: 1.100,50 is read as 1100.5"


def text_format(labels: Sequence[str], missing: Iterable[str] = ()) -> TextFormat:
    """Find how the distinct texts of a column are written.

    Parameters
    ----------
    labels : the texts
    missing : texts that mean missing, in addition to the usual ones

    >>> text_format(["$1,100.00", "$90", "n/a"])
    TextFormat(read='amount', nulls=('n/a',), strange=(), ambiguous=False)
    >>> text_format(["home", "rent", "?"])
    TextFormat(read=None, nulls=('?',), strange=(), ambiguous=False)
    """
    given = {text.strip() for text in missing}
    texts = sorted({label.strip() for label in labels})
    nulls = [text for text in texts if text in given or text.lower() in _NULLS_OF_NUMBERS]
    rest = [text for text in texts if text not in nulls]
    # A leading zero is that of a code: 01 and 1 are two categories.
    if rest and not any(re.match(PADDED, text) for text in rest):
        for read in get_args(Read):
            strange = [text for text in rest if not _is_number(text, read)]
            if _are_numbers(read, rest, strange, has_nulls=bool(nulls)):
                both = read == "amount" and all(parse(text, "decimal_comma") is not None for text in rest)
                return TextFormat(read, (*nulls, *strange), tuple(strange), both)
    answers = {"-"} if "+" in texts else set()
    return TextFormat(None, tuple(t for t in nulls if t in given or (t.lower() in _NULLS and t not in answers)))


def _is_number(text: str, read: Read) -> bool:
    return text.lower() not in ("true", "false") and parse(text, read) is not None


def _are_numbers(read: Read, texts: Sequence[str], strange: Sequence[str], *, has_nulls: bool) -> bool:
    """Whether texts are numbers in this notation, except for one or two strange words among many."""
    n_numbers = len(texts) - len(strange)
    if strange:
        return len(strange) <= _STRANGE_WORDS and n_numbers > _MANY_NUMBERS
    # A few numbers stored as text may be categories, unless one of the words or signs shows that they are just dirty
    # numbers.
    return has_nulls or read != "number" or n_numbers > FEW_ROWS


def code_name(name: str) -> str | None:
    """Return the word in a name that suggests codes, None if none does.

    >>> code_name("ZipCode"), code_name("loan_type"), code_name("income"), code_name("NAICS")
    ('zip', 'type', None, 'naics')
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    match = _CODES.search(re.sub(r"[\W_\d]+", " ", spaced).lower())
    return None if match is None else match[1]
