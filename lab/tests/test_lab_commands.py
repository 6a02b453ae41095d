"""What the lab adds to the command line, and what it costs those who do not ask for it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import plainrisk as pr
from plainrisk.cli import commands as ours
from plainrisk.cli.commands import load_command
from plainrisk_lab.cli import commands as added

LAB = Path(__file__).parents[1]


def command_of(name):
    first, *rest = name.split()
    loaded = load_command(first)
    return loaded.commands[rest[0]] if rest else loaded


def test_the_lists_agree():
    assert [name for names in added.PANELS.values() for name in names] == list(added.COMMANDS) == list(added.LINES)
    assert tuple(added.COMMANDS) == ours.LAB
    assert set(added.PANELS) <= set(ours.PANELS)
    assert not set(added.COMMANDS) & set(ours.COMMANDS)
    inside = {f"study {name}" for name in load_command("study").commands}
    assert set(added.EXAMPLES) == {"study", "compare"} | inside == {"study", "compare", *inside}


def test_the_help_lists_them_in_their_panel(run):
    shown = run("--help").stdout
    fit = shown[shown.index("─ Fit ─") : shown.index("─ Explain ─")]
    assert re.findall(r"^│ ([a-z-]+) ", fit, flags=re.MULTILINE) == ["demo", "fit", "study", "compare"]


@pytest.mark.parametrize("name", added.LINES)
def test_a_line_is_how_the_help_of_the_command_begins(name):
    first = inspect.cleandoc(load_command(name).help).partition("\n\n")[0]
    assert added.LINES[name] == " ".join(first.split())


@pytest.mark.parametrize("name", added.EXAMPLES)
def test_every_option_has_a_sentence_and_every_command_an_example(run, name):
    sentence = re.compile(r"\.( \(example: .+\))?$")
    assert all(sentence.search(parameter.help or "") for parameter in command_of(name).params)
    shown = run(*name.split(), "--help")
    assert shown.exit_code == 0
    assert " ".join(shown.stdout.split()).endswith(f"Example: {added.EXAMPLES[name]}")
    assert added.EXAMPLES[name].startswith(f"plainrisk {name}")


def test_a_word_that_is_nearly_one_of_them_is_told(run):
    done = run("studdy")
    assert done.exit_code == 2
    assert "Did you mean 'study'" in done.stderr


@pytest.mark.parametrize(
    ("words", "modules"),
    [
        ("--version", []),
        ("data list", []),
        ("--help", ["plainrisk_lab", "plainrisk_lab.cli", "plainrisk_lab.cli.commands"]),
    ],
)
def test_only_the_help_reads_their_list(words, modules):
    code = (
        "import sys; from plainrisk_command import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sorted(name for name in sys.modules if name.startswith('plainrisk_lab')), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert done.stderr.splitlines()[-1].split() == modules


def test_it_asks_for_the_plainrisk_it_was_written_with():
    project = tomllib.loads((LAB / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == pr.__version__
    assert project["dependencies"] == [f"plainrisk[cli,plot]=={pr.__version__}"]
