"""The directive `fields`: the fields of a record of plainrisk as a table, with types, defaults and meanings."""

import importlib
import inspect
from typing import Any

import msgspec
from docutils import nodes
from numpydoc.docscrape import NumpyDocString
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def documented(record: type) -> dict[str, tuple[str, str]]:
    """Return what the docstring of a record says of its fields: what each may be, and what it means."""
    doc = NumpyDocString(inspect.getdoc(record) or "")
    said: dict[str, tuple[str, str]] = {}
    for section in ("Parameters", "Attributes"):
        for names, kind, lines in doc[section]:
            text = " ".join(" ".join(lines).split())
            # Attributes have their meaning where parameters have their type.
            both = (kind, text) if section == "Parameters" else ("", f"{kind} {text}".strip())
            said |= dict.fromkeys((name.strip() for name in names.split(",")), both)
    return said


def default_of(field: msgspec.structs.FieldInfo) -> str:
    """Return a field's default as one would write it."""
    if field.default is not msgspec.NODEFAULT:
        value = field.default
        return "" if value is None or isinstance(value, msgspec.Struct) else f"`{value!r}`"
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{field.default_factory()!r}`"
    return "needed"


def type_of(record: type, name: str) -> str:
    """Return the annotation of a field as the code has it."""
    return next(str(cls.__annotations__[name]) for cls in record.__mro__ if name in inspect.get_annotations(cls))


def table(record: type) -> list[str]:
    """Return the table of a record's fields."""
    said = documented(record)
    lines = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    for field in msgspec.structs.fields(record):
        kind, meaning = said.get(field.name, ("", ""))
        written = kind.removesuffix(", optional") or f"`{type_of(record, field.name)}`"
        cells = (f"`{field.encode_name}`", written, default_of(field), meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


class Fields(SphinxDirective):
    """The table of the record whose full name is the argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        record = getattr(importlib.import_module(module), name)
        return self.parse_text_to_nodes("\n".join(table(record)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("fields", Fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
