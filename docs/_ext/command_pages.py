"""The directive `commands`: every command of the program with its options, from the program itself."""

from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from plainrisk.cli.commands import COMMANDS, EXAMPLES, LINES, PANELS, load_command


def described(parameter: click.Parameter) -> str:
    """Return one row of the table of options."""
    if isinstance(parameter, click.Argument):
        name = f"`{parameter.make_metavar(click.Context(click.Command('')))}`"
    else:
        name = ", ".join(f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts))
    words = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
    default = parameter.default
    if not parameter.required and default not in (None, False, (), []) and not callable(default):
        words += f" Default: `{default}`."
    return f"| {name} | {words} |"


def page_of(name: str, command: click.Command, level: str) -> list[str]:
    """Return the section of a command, and those of the commands inside it."""
    lines = [f"{level} {name}", "", LINES.get(name) or " ".join((command.help or "").split()), ""]
    within = getattr(command, "commands", {})
    if not within:
        shown = [p for p in command.params if not getattr(p, "hidden", False)]
        body = "\n\n".join((command.help or "").replace("\b", "").split("\n\n")[1:])
        lines += ["```console", f"$ {EXAMPLES[name]}", "```", "", body, ""]
        lines += ["| | |", "| --- | --- |", *map(described, shown), ""]
    for inner, below in within.items():
        lines += page_of(f"{name} {inner}", below, level + "#")
    return lines


class Commands(SphinxDirective):
    """One section per command, in the order of work."""

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        for panel, names in PANELS.items():
            lines += [f"## {panel}", ""]
            for name in names:
                lines += page_of(name, load_command(name), "###")
        assert {name for names in PANELS.values() for name in names} == set(COMMANDS)
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
