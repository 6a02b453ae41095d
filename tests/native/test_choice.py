from __future__ import annotations

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from plainrisk import __version__
from plainrisk._native import COMPILED, choice, kernels
from plainrisk.errors import PlainriskWarning


@pytest.mark.skipif(os.environ.get("PLAINRISK_KERNELS") == "numpy", reason="they are turned off")
@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="there is no C compiler here")
def test_where_there_is_a_compiler_the_loops_are_compiled():
    assert COMPILED, "the C files do not compile: pip install --verbose --editable . says why"


def test_they_can_be_turned_off():
    code = "from plainrisk._native import COMPILED, kernels; print(COMPILED, kernels())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PLAINRISK_KERNELS": "numpy"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False numpy kernels: PLAINRISK_KERNELS=numpy"


@pytest.mark.skipif(not COMPILED, reason="there was no C compiler, or PLAINRISK_KERNELS=numpy")
def test_what_is_compiled_is_said():
    assert __version__ == choice.compiled.VERSION
    assert kernels().startswith(f"compiled kernels {__version__}, _compiled.")
    routines = {name for name in vars(choice.compiled) if callable(getattr(choice.compiled, name)) and name[0] != "_"}
    assert routines == set(choice.ROUTINES)


ALL = dict.fromkeys(choice.ROUTINES, print)


@pytest.mark.parametrize(
    ("module", "version"),
    [
        (SimpleNamespace(VERSION="0.0.9", **ALL), "0.0.9"),
        (SimpleNamespace(**ALL), "unknown"),
        (SimpleNamespace(VERSION=__version__), __version__),
    ],
    ids=["older", "before versions", "without a routine"],
)
def test_a_module_of_another_version_is_not_used(module, version):
    with pytest.warns(PlainriskWarning, match="the slower numpy kernels are used. Build it again") as said:
        found, reason = choice.fitting(module)
    assert len(said) == 1
    assert (found, reason) == (None, f"the compiled module is of version {version}, not {__version__}")


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
    print(interpreters.exec(interpreters.create(), "import plainrisk"))
except ImportError:
    import _xxsubinterpreters as interpreters
    try:
        interpreters.run_string(interpreters.create(), "import plainrisk")
    except interpreters.RunFailedError as error:
        print(error)
"""


def test_a_subinterpreter_is_refused_at_once():
    """scipy hangs in one, so the answer comes before scipy is imported."""
    done = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True, timeout=300)
    assert "plainrisk cannot be imported in a subinterpreter" in done.stdout
