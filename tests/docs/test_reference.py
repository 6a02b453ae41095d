"""The reference: every public name and every method of a public class has an example that runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import plainrisk as pr
from plainrisk.cli.commands import COMMANDS, EXAMPLES, load_command

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
# What the pages of the reference show is run by test_pages.
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = "\n".join(block for page in sorted(REFERENCE.glob("*.md")) for block in BLOCK.findall(page.read_text("utf-8")))
NOT_CALLED = {"rows.as_batches"}  # by commands alone, which have opened the table already
# A class shows how it is fitted; what a model does with rows is shown once, under RiskModel.
OF_THE_CLASS = {"fit", "predict", "predict_proba", "explain", "plot_weights"}


def has_example(name: str, thing: Any) -> bool:
    """Whether the docstring has an example, or a block of the reference uses the name."""
    return ">>> " in (inspect.getdoc(thing) or "") or re.search(rf"\b{re.escape(name)}\b", SHOWN) is not None


def public() -> Iterator[tuple[str, Any]]:
    """Yield every public name with what it stands for; results and errors are what calls give, not what people call."""
    for name in pr.__all__:
        thing = getattr(pr, name)
        if isinstance(thing, ModuleType):
            if thing is not pr.errors:
                inside = ((own, getattr(thing, own)) for own in thing.__all__)
                yield from ((f"{name}.{own}", what) for own, what in inside if inspect.isfunction(what))
            continue
        yield name, thing
        if inspect.isclass(thing):
            yield from ((f"{name}.{own}", what) for own, what in methods(thing) if own not in OF_THE_CLASS)


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods of a class that are ours."""
    for name in dir(cls):
        what = inspect.getattr_static(cls, name)
        what = what.__func__ if isinstance(what, staticmethod | classmethod) else what
        if not name.startswith("_") and inspect.isfunction(what) and what.__module__.startswith("plainrisk"):
            yield name, what


def test_every_public_name_has_an_example():
    names = dict(public())
    assert len(names) > 100
    without = {name for name, thing in names.items() if not has_example(name.rpartition(".")[2], thing)}
    assert without == NOT_CALLED


def test_a_name_without_an_example_is_found():
    def nobody_shows_this():
        """Return nothing."""

    assert not has_example("nobody_shows_this", nobody_shows_this)


def test_every_public_name_has_a_page():
    listed = (REFERENCE / "api.md").read_text("utf-8")
    assert not [name for name in pr.__all__ if not re.search(rf"\b{name}\b", listed)]


def test_every_command_has_an_example():
    def inside(name, command):
        groups = getattr(command, "commands", {})
        return [name] if not groups else [own for key, sub in groups.items() for own in inside(f"{name} {key}", sub)]

    names = [name for top in COMMANDS for name in inside(top, load_command(top))]
    assert not [name for name in names if not EXAMPLES.get(name, "").startswith(f"plainrisk {name}")]
