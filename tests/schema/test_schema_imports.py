from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "plainrisk"


def imported_by(path):
    """The modules that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", sorted((SOURCE / "data").rglob("*.py")), ids=lambda p: p.name)
def test_reading_data_needs_no_schema(path):
    """A schema is checked against data, so data that knew the schema would be a circle."""
    assert not [name for name in imported_by(path) if name.startswith("plainrisk.schema")]


@pytest.mark.parametrize("path", sorted((SOURCE / "schema").glob("*.py")), ids=lambda p: p.name)
def test_schemas_are_imported_without_delay(path):
    """No function of a schema imports a module, which would hide a circle."""
    functions = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)]
    hidden = [n for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not hidden
