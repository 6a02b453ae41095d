"""Write a schema as TOML for a person to edit.

The standard library reads TOML but does not write it. A schema needs a few kinds of lines only, so they are
written here rather than through one more dependency.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plainrisk.schema.findings import Finding, by_feature, in_words
from plainrisk.text import one_line

__all__ = ["schema_to_toml"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def schema_to_toml(schema: Mapping[str, Any], findings: Sequence[Finding] = ()) -> str:
    """Return the TOML text of a schema given as plain data, with what a draft has seen as comments."""
    return "\n".join([*_lines(schema, by_feature(findings)), *_remarks(findings)]) + "\n"


def _remarks(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the comments at the end: subscales that the names suggest, and columns that are not features."""
    subscales = [finding for finding in findings if finding.kind == "subscale"]
    if subscales:
        yield "\n# Subscales that the names suggest. Models with subscales use no other features than those in one."
        yield "# [subscales]"
        yield from (f"# {_key(f.feature)} = {_value(f.figures['features'])}" for f in subscales)
    left_out: dict[str, list[str]] = {}
    for finding in findings:
        if finding.kind == "left out" and "fields" in finding.figures:
            yield f"\n# [features.{_key(finding.feature)}]"
            yield _comment(finding.text)
            yield from (f"# {line}" for line in _entries("", finding.figures["fields"]))
        elif finding.kind == "left out":
            left_out.setdefault(finding.text, []).append(repr(finding.feature))
    for why, names in left_out.items():
        yield f"\n{_comment(f'{why}: ' + ', '.join(names))}"


def _comment(text: str) -> str:
    return f"# {one_line(text)}"


def _lines(schema: Mapping[str, Any], seen: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    for key in ("target", "positive"):
        if schema.get(key) is not None:
            yield f"{key} = {_value(schema[key])}"
    adverse = {"adverse": schema["adverse"]} if schema.get("adverse") is not None else {}
    yield from _table("outcome", {**schema.get("outcome", {}), **adverse})
    for name, feature in schema.get("features", {}).items():
        yield ""
        yield f"[features.{_key(name)}]"
        if name in seen:
            yield _comment(in_words(seen[name]))
        yield from _entries(f"features.{_key(name)}", feature)
    if schema.get("subscales"):
        yield ""
        yield "[subscales]"
        for name, members in schema["subscales"].items():
            yield f"{_key(name)} = {_value(members)}"
    yield from _table("policy", schema.get("policy", {}))


def _table(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table under its own heading, unless it is empty."""
    if table:
        yield f"\n[{path}]"
        yield from _entries(path, table)


def _entries(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the entries of a table, plain ones first, then the tables inside it."""
    for key, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{_key(key)} = {_value(value)}"
    for key, inside in table.items():
        if isinstance(inside, Mapping):
            yield f"[{path}.{_key(key)}]"
            yield from _entries(f"{path}.{_key(key)}", inside)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # A JSON string is a TOML basic string, except for DEL, which TOML requires to be escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
