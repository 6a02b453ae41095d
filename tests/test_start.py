"""A command imports what it needs, and the list of commands says what their own help says."""

from __future__ import annotations

import inspect
import os
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


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_linear_algebra_has_one_thread_unless_more_are_asked_for(given, used, model):
    code = (
        f"{SCRIPT}\nfrom threadpoolctl import threadpool_info\n"
        "found = {info['num_threads'] for info in threadpool_info() if info['internal_api'] == 'openblas'}\n"
        "print(*found, file=sys.stderr)"
    )
    outside = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", code, "certify", str(model)],
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
        env=outside | given,
    )
    threads = done.stderr.splitlines()[-1]
    if not threads:
        pytest.skip("numpy has other linear algebra than OpenBLAS")
    assert threads == used


def test_no_equation_is_solved_when_a_link_is_imported():
    code = "import sys, plainrisk.form.links; print('numpy.polynomial' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=600)
    assert done.stdout.strip() == "False"


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
