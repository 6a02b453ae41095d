"""A schema in one line, and in a few: the number of features by kind, their requirements, and the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from plainrisk.text import counted, one_line

if TYPE_CHECKING:
    from plainrisk.schema.schema import Schema

__all__ = ["in_lines", "in_one_line"]

WIDTH = 100  # letters of a line
NAMED = 4  # features or subscales by name in a line


def in_one_line(schema: Schema) -> str:
    """Return the counts alone.

    >>> from plainrisk.schema import Schema
    >>> in_one_line(Schema(target="bad", features={"age": {"direction": "decreasing"}, "job": {"kind": "categorical"}}))
    "Schema(2 features: 1 continuous, 1 categorical; 1 decreasing; target 'bad')"
    """
    features = schema.features.values()
    cutoff = schema.policy.cutoff
    said = [
        f"{counted(len(features), 'feature')}{_counts(': ', [f.kind for f in features])}",
        _counts("", [f.direction for f in features if f.direction != "none"]),
        f"{len(schema.protected)} protected" if schema.protected else "",
        counted(len(schema.subscales), "subscale") if schema.subscales else "",
        "" if schema.target is None else f"target {schema.target!r}",
        "" if cutoff is None else f"cut-off {cutoff:g}",
    ]
    return one_line(f"Schema({'; '.join(text for text in said if text)})")


def in_lines(schema: Schema) -> str:
    """Return a summary of at most ten lines, with the names of a few features.

    >>> from plainrisk.schema import Schema
    >>> features = {"age": {"direction": "decreasing", "protected": True}, "job": {"kind": "categorical"}}
    >>> print(in_lines(Schema(target="bad", features=features, policy={"cutoff": 0.3})))
    Schema of 2 features: 1 continuous, 1 categorical
      target: 'bad'
      decreasing: 1, 'age'
      protected: 1, 'age'
      policy: cut-off 0.3, compared with 'best'
    """
    features = schema.features
    first = f"Schema of {counted(len(features), 'feature')}{_counts(': ', [f.kind for f in features.values()])}"
    return "\n".join([first, *(_short(f"  {line}") for line in _lines(schema))])


def _lines(schema: Schema) -> Iterator[str]:
    if schema.target is not None:
        yield f"target: {schema.target!r}" + ("" if schema.positive is None else f", positive {schema.positive!r}")
    words = schema.outcome
    if schema.adverse != "positive" or words.positive or words.negative:
        said = ", ".join(f"{name} {text!r}" for name in ("positive", "negative") if (text := getattr(words, name)))
        yield f"outcome: {said}{'; ' if said else ''}{schema.adverse} is adverse"
    named = {
        **{way: [n for n, f in schema.features.items() if f.direction == way] for way in ("increasing", "decreasing")},
        "protected": schema.protected,
        "subscales": tuple(schema.subscales),
        "findings": tuple(finding.text for finding in schema.findings),
    }
    for title, names in named.items():
        if names:
            yield f"{title}: {_named(names)}"
    policy = schema.policy
    if policy != type(policy)():
        decided = "no cut-off" if policy.cutoff is None else f"cut-off {policy.cutoff:g}"
        most = "" if policy.reasons is None else f", at most {counted(policy.reasons, 'reason')}"
        yield f"policy: {decided}{most}, compared with {policy.reference!r}"


def _named(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > NAMED else ""
    return f"{len(names):,}, {', '.join(map(repr, names[:NAMED]))}{more}"


def _counts(before: str, words: Sequence[str]) -> str:
    counted = ", ".join(f"{number:,} {word}" for word, number in Counter(words).most_common())
    return before + counted if counted else ""


def _short(line: str) -> str:
    line = one_line(line)
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…"
