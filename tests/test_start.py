"""A command imports what it needs, and the list of commands says what their own help says."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import typer

import plainrisk as pr
from plainrisk.cli.commands import COMMANDS, LINES, load_command

FITTING = {"joblib", "pandas", "pyarrow", "scipy", "sklearn", "xgboost"}
ELSEWHERE = {"matplotlib", "onnx", "starlette", "uvicorn"}
SCRIPT = """
import sys
from plainrisk_command import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr)
print(*sorted(name for name in sys.modules if name.startswith("plainrisk.")), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("start") / "german.json"
    german = pr.datasets.load("german")
    pr.make_classifier("ARM1", schema=german.schema).fit(german.frame, german.target).save(path, cutoff=0.4)
    return path


def loaded_by(words, folder):
    """The packages that a command loads, and the modules of plainrisk."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], check=True, capture_output=True, text=True, timeout=600, cwd=folder
    )
    assert done.stdout, words
    packages, modules = done.stderr.splitlines()[-2:]
    return set(packages.split()), set(modules.split())


@pytest.mark.parametrize("words", ["--version", "--help", "certify {model}", "annotate {model}", "data list"])
def test_what_reads_no_rows_loads_no_frame_package(words, model):
    packages, modules = loaded_by(words.format(model=model).split(), model.parent)
    assert not packages & {*FITTING, *ELSEWHERE, "polars"}
    assert not [name for name in modules if name.startswith(("plainrisk.bins", "plainrisk.models", "plainrisk.solve"))]


@pytest.mark.parametrize(
    "words",
    [
        "explain {model} german --row 4",
        "reasons {model} german --row 4",
        "what-if {model} german --row 4",
        "score {model} german -o scores.csv",
        "schema check german",
    ],
)
def test_what_reads_rows_loads_nothing_for_fitting(words, model):
    packages, modules = loaded_by(words.format(model=model).split(), model.parent)
    assert "polars" in packages
    assert not packages & {*FITTING, *ELSEWHERE}
    assert not [name for name in modules if name.startswith(("plainrisk.bins", "plainrisk.models", "plainrisk.solve"))]


def test_the_version_loads_no_model(model):
    _, modules = loaded_by(["--version"], model.parent)
    assert not modules & {"plainrisk.explain", "plainrisk.form", "plainrisk.model", "plainrisk.schema"}


# ---- the list of commands


def test_every_command_has_a_line():
    assert list(LINES) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_is_how_the_help_of_the_command_begins(name):
    command = load_command(name)
    assert command.name == name
    first = inspect.cleandoc(command.help).partition("\n\n")[0]
    assert LINES[name] == " ".join(first.split())


def test_a_group_has_its_commands():
    group = load_command("schema")
    assert isinstance(group, typer.core.TyperGroup)
    assert list(group.commands) == ["infer", "check"]
