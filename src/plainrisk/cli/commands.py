"""The commands by name, as commands.json lists them; a command is imported when it is run."""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from plainrisk.errors import MissingExtraError

__all__ = [
    "COMMANDS",
    "EXAMPLES",
    "LAB",
    "LINES",
    "PANELS",
    "START",
    "VALUES",
    "added_lists",
    "load_command",
    "name_values",
]

# JSON, since reading TOML takes a tenth of the time of `plainrisk --version`.
_LIST: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_ENTRIES: dict[str, dict[str, Any]] = _LIST["commands"]

# The commands by purpose, in the order of work.
PANELS: dict[str, tuple[str, ...]] = {}
for _name, _entry in _ENTRIES.items():
    PANELS[_entry["panel"]] = (*PANELS.get(_entry["panel"], ()), _name)
# By the module next to this one and the name in it: a function, or a group of commands.
COMMANDS = {name: tuple(entry["function"].split(".")) for name, entry in _ENTRIES.items()}
# How each command's own help begins, and how it ends; those inside a group have two words.
LINES: dict[str, str] = {name: entry["line"] for name, entry in _ENTRIES.items()}
EXAMPLES: dict[str, str] = {name: entry["example"] for name, entry in _ENTRIES.items()}
EXAMPLES |= {f"{group} {name}": text for group, e in _ENTRIES.items() for name, text in e.get("examples", {}).items()}
# A value of every option that takes one, and what to do first.
VALUES: dict[str, str] = _LIST["values"]
START: dict[str, str] = _LIST["start"]
# Commands of plainrisk-lab, a separate package: an error says if it is not installed.
LAB = ("study", "compare")
# The placeholder of a value in the help, by the type of an option; typer's releases name types differently.
_METAVARS = dict.fromkeys(("int", "integer", "integer range"), "N")
_METAVARS |= dict.fromkeys(("float", "float range"), "NUMBER") | dict.fromkeys(("Path", "path", "file"), "FILE")


@functools.cache
def added_lists() -> tuple[Any, ...]:
    """Import the modules that list the commands of other packages, in dictionaries like these.

    Entry points of the group "plainrisk.commands" name them. Finding these takes longer than the list of commands
    above, so only the help and a command that is not in it ask for them.
    """
    from importlib.metadata import entry_points

    return tuple(map(_load_list, entry_points(group="plainrisk.commands")))


def _load_list(point: Any) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise MissingExtraError(
            f"{point.dist.name} adds commands to plainrisk and cannot be imported: {error}. Install it again, or "
            f"remove it: pip uninstall {point.dist.name}"
        ) from None


def load_command(name: str) -> Any:
    """Import a command, or a group of commands, and return it as typer runs it."""
    here = sys.modules[__name__]
    listed = here if name in COMMANDS else next(other for other in added_lists() if name in other.COMMANDS)
    module, attribute = listed.COMMANDS[name]
    found = getattr(importlib.import_module(f"{listed.__package__}.{module}"), attribute)
    holder = typer.Typer(add_completion=False, rich_markup_mode="rich")
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    command: Any = typer.main.get_group(holder).commands[name]
    within = {f"{name} {own}": one for own, one in getattr(command, "commands", {}).items()}
    for path, one in {name: command, **within}.items():
        one.epilog = f"Example: {listed.EXAMPLES[path]}"
        for parameter in one.params:
            _add_value(path, parameter, {**VALUES, **listed.VALUES})
        one.get_params = functools.partial(_named, one.get_params)
    return command


def _add_value(path: str, parameter: Any, values: Mapping[str, str]) -> None:
    """Append an example value to the help of an option that takes one, to show how it is written."""
    flag = max(parameter.opts, key=len)
    value = values.get(f"{path} {flag}", values.get(flag))
    if parameter.param_type_name == "option" and not parameter.is_flag and value is not None:
        short = next((name for name in parameter.opts if name == "-o"), flag)
        parameter.help = f"{parameter.help} (example: {short} {value})"


def _named(get_params: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    return name_values(get_params(context))


def name_values(parameters: list[Any]) -> list[Any]:
    """Set in words what options take, unless a metavar is declared; a flag takes nothing."""
    for one in parameters:
        if one.param_type_name == "argument" and hasattr(one, "display_type_rich"):
            one.display_type_rich = _no_type  # newer releases show the type beside the name
        if one.metavar is not None:
            continue
        if getattr(one, "is_flag", False):
            one.metavar = ""
        else:
            kind = getattr(one, "type_descriptor", None)
            name = one.type.name if kind is None else getattr(kind.annotation, "__name__", "")
            one.metavar = _METAVARS.get(name, "TEXT")
    return parameters


def _no_type(**_: Any) -> None:
    return None
