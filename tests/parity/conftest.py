"""The page's own script, run by Node, beside Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from plainrisk.report import Subject, collect, page

ENGINE = Path(__file__).with_name("engine.mjs")


@pytest.fixture
def answers():
    """What the page says of rows."""
    return _answers


def _answers(form, rows, *, fit=None, data=None, adverse="positive", texts=(), **asked):
    """Ask the page about rows, which are plain dicts."""
    node = shutil.which("node")
    if node is None:
        assert "CI" not in os.environ, "CI has Node"
        pytest.skip("no Node: the page's script is not compared with Python")
    payload = collect([Subject("model", form, fit)], data, adverse=adverse)
    question = {
        "page": page(payload),
        "payload": payload,
        "rows": rows,
        "texts": texts,
        "cutoff": 0.5,
        "what_ifs": 0,
        "options": {},
        **asked,
    }
    done = subprocess.run([node, str(ENGINE)], input=msgspec.json.encode(question), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)
