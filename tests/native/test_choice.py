from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from plainrisk._native import COMPILED


@pytest.mark.skipif(os.environ.get("PLAINRISK_KERNELS") == "numpy", reason="they are turned off")
@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="there is no C compiler here")
def test_where_there_is_a_compiler_the_loops_are_compiled():
    assert COMPILED, "the C files do not compile: pip install --verbose --editable . says why"


def test_they_can_be_turned_off():
    code = "from plainrisk._native import COMPILED; print(COMPILED)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PLAINRISK_KERNELS": "numpy"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
