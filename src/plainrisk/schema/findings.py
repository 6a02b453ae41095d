"""The findings of a draft in the data, for a person to judge; no finding changes a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

__all__ = ["Finding", "by_feature", "in_words", "subscale_findings"]

# The most important findings come first.
Kind = Literal[
    "leak",
    "protected",
    "duplicate",
    "code",
    "identifier",
    "category",
    "text",
    "many",
    "missing",
    "direction",
    "value",
    "flag",
    "subscale",
    "left out",
]
_RANK = {kind: k for k, kind in enumerate(get_args(Kind))}
_ALARMS = ("leak", "protected", "duplicate", "code", "identifier", "category", "text")


@dataclass(frozen=True)
class Finding:
    """One thing that a draft has seen.

    Attributes
    ----------
    feature : the column it is about; for a subscale, its suggested name
    kind : "leak", "protected", "duplicate", "code", "identifier", "category" (numbers that may be codes), "text" (how
        texts are read), "many" (categories), "missing", "direction",
        "value" (information value), "flag", "subscale" or "left out"
    text : in words
    figures : the same in numbers and names
    """

    feature: str
    kind: Kind
    text: str
    figures: dict[str, Any] = field(default_factory=dict)


def by_feature(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return the findings of each feature, what matters first: alarms, then by information value."""
    findings_of: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.kind not in ("subscale", "left out"):
            findings_of.setdefault(finding.feature, []).append(finding)
    for group in findings_of.values():
        group.sort(key=lambda finding: _RANK[finding.kind])
    return dict(sorted(findings_of.items(), key=lambda item: _weight(item[1])))


def _weight(findings: Sequence[Finding]) -> tuple[int, float]:
    value = max((f.figures["information_value"] for f in findings if f.kind == "value"), default=0.0)
    return (_RANK[findings[0].kind] if findings[0].kind in _ALARMS else len(_ALARMS)), -value


def in_words(findings: Iterable[Finding]) -> str:
    """Return the findings about one feature as one line."""
    return "; ".join(finding.text for finding in findings)


# ---- subscales by name


def subscale_findings(names: Sequence[str]) -> list[Finding]:
    """Suggest subscales of features whose names differ in a number at the end, or share their first word.

    >>> found = subscale_findings(["age", "BILL_AMT1", "BILL_AMT2", "PAY_0", "PAY_2"])
    >>> [(f.feature, f.figures["features"]) for f in found]
    [('BILL_AMT', ['BILL_AMT1', 'BILL_AMT2']), ('PAY', ['PAY_0', 'PAY_2'])]
    """
    stems: dict[str, list[str]] = {}
    for name in names:
        stem = re.sub(r"[\W_]*\d+$", "", name)
        if stem and stem != name:
            stems.setdefault(stem, []).append(name)
    stems = {stem: members for stem, members in stems.items() if len(members) > 1}
    taken = {name for members in stems.values() for name in members}
    words: dict[str, list[str]] = {}
    for name in names:
        first = re.match(r"[A-Z]+[a-z]*|[a-z]+", name)
        if name not in taken and first and first[0] != name:
            words.setdefault(first[0], []).append(name)
    stems |= {word: members for word, members in words.items() if len(members) > 2 and word not in stems}
    # A stem that all features share distinguishes nothing.
    return [
        Finding(stem, "subscale", f"{len(members)} features share the name {stem!r}", {"features": members})
        for stem, members in stems.items()
        if len(members) < len(names)
    ]
