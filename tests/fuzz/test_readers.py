"""Every reader takes what it is given or refuses it by an error of ours; longer: make fuzz."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz.py"
CORPUS = Path(__file__).with_name("corpus")
RUNS = 250
TARGETS = ("arrow", "csv", "form", "json", "model", "parquet", "plan", "schema")


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("POLARS_MAX_THREADS", "RUST_BACKTRACE"):
            patch.setenv(name, "")  # the script sets them for its own process
        spec.loader.exec_module(module)
    return module


def test_every_target_has_a_corpus():
    assert sorted(path.name for path in CORPUS.iterdir()) == list(TARGETS)
    assert all(any(folder.iterdir()) for folder in CORPUS.iterdir())
    assert max(path.stat().st_size for path in CORPUS.glob("*/*")) < 10_000


@pytest.mark.parametrize("target", TARGETS)
def test_a_reader(target):
    """The corpus itself and some hundred damaged inputs, in a process that an input may end."""
    command = [sys.executable, str(SCRIPT), "--only", target, "--runs", str(RUNS), "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.startswith(f"{target}: {RUNS} inputs, ")
    assert " 0 taken" not in done.stdout
    assert " 0 refused" not in done.stdout


def test_the_same_seed_damages_alike_and_every_input_differs(fuzz):
    pool = [path.read_bytes() for path in sorted(CORPUS.glob("*/*"))]
    first, again, other = ([fuzz.damaged(data, pool, random.Random(seed)) for data in pool] for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert sum(a != b for a, b in zip(first, pool, strict=True)) > len(pool) // 2


@pytest.mark.parametrize(
    ("read", "finding"),
    [
        (lambda place, data: 1 // 0, "ZeroDivisionError"),
        (lambda place, data: {}["x"], "KeyError"),
        (lambda place, data: exit_by_panic(), "Panic"),
    ],
)
def test_what_must_not_happen_is_a_finding(fuzz, monkeypatch, tmp_path, capsys, read, finding):
    """The harness itself: other exceptions, also those that are no `Exception`."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import fuzz_targets

    monkeypatch.setitem(fuzz_targets.TARGETS, "broken", read)
    monkeypatch.setattr(fuzz, "KEPT", tmp_path)
    monkeypatch.setattr(fuzz.tempfile, "gettempdir", lambda: str(tmp_path))
    target = fuzz.Target("broken")
    assert target.attempt(b"input") == "finding"
    assert target.attempt(b"again") == "finding"
    target.place.close()
    assert target.counts == {"inputs": 2, "finding": 2}
    said = capsys.readouterr().out
    assert said.count("FINDING broken") == 1, "the same finding is told once"
    assert finding in said
    assert next(tmp_path.glob("broken-*")).read_bytes() == b"input"


class Panic(BaseException):
    """What polars raises."""


def exit_by_panic():
    raise Panic("of another language")
