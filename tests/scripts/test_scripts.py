"""The scripts count and compare as they say."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name):
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def orientation():
    return script("orientation")


def test_python_constants_are_numbers_in_upper_case(orientation, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "A = 3\n_B = -1e-9\nC: float = 2**16 + A\nD, E = 1, 'text'\nF = (0.1, 0.2)\nG = np.float64(1e-3)\n"
        "lower = 4\nTEXT = 'x'\nFLAG = True\nALIAS = A\nNAMES = ('a', 'b')\n__all__ = ['A']\n"
        "class Rule:\n    H = 7\nclass Kind(Enum):\n    I = 1\ndef f():\n    J = 2\n"
    )
    assert list(orientation.python_constants(path)) == ["A", "_B", "C", "D", "F", "G", "H"]


def test_c_constants_are_defines_enums_and_static_numbers(orientation, tmp_path):
    path = tmp_path / "kernel.c"
    path.write_text(
        "#define ROWS (1 << 16) /* rows */\n#define GUARD_H\n#define SQUARE(x) ((x) * 2)\n#define NAME value\n"
        "enum { LOWER = -1, FREE = 0, UPPER };\nstatic const double TINY = 1e-9;\nstatic const char *TEXT = 0;\n"
    )
    assert list(orientation.c_constants(path)) == ["ROWS", "LOWER", "FREE", "TINY"]


def test_numbers_that_are_not_tuned_are_listed_and_not_counted(orientation, monkeypatch):
    assert all(orientation.NOT_TUNED.values())
    assert not set(orientation.constants()) & set(orientation.NOT_TUNED)
    monkeypatch.setitem(orientation.NOT_TUNED, "form/trees.py:TWIG", "a mark")
    with pytest.raises(SystemExit, match=r"no longer there: form/trees\.py:TWIG"):
        orientation.constants()


def test_complexity_counts_branches_conditions_and_comprehensions(orientation):
    code = "def f(x):\n    if x and x > 1 or x < 0:\n        return [y for y in x if y]\n    return 1 if x else 2\n"
    assert orientation.complexity(ast.parse(code).body[0]) == 1 + 1 + 2 + 2 + 1


def test_the_table_replaces_what_is_between_the_markers(orientation, tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{orientation.BEGIN}\nold\n{orientation.END}\nafter\n")
    monkeypatch.setattr(orientation, "PAGE", page)
    orientation.write_table([("lines", "7", "9")])
    text = page.read_text()
    assert "| lines | 7 | 9 |" in text
    assert "old" not in text
    assert (text.startswith("before\n"), text.endswith("\nafter\n")) == (True, True)
    assert "| lines | 7 | 9 |" in capsys.readouterr().out


def test_the_table_of_the_page_is_that_of_today():
    """Counted by a process of its own: another test may have wrapped functions or watch the threads."""
    command = [sys.executable, SCRIPTS / "orientation.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_a_table_of_yesterday_or_above_a_limit_is_refused(orientation, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    kept = [("lines", "1,000", "1,100"), ("lengths", "7, 20, 150", "")]
    page.write_text(f"{orientation.BEGIN}\n{orientation.written(kept)}\n{orientation.END}\n")
    monkeypatch.setattr(orientation, "PAGE", page)
    assert orientation.check_table([("lines", "1,049", "1,100"), kept[1]]) is None
    for lines in [("lines", "1,051", "1,100"), ("lines", "1,000", "1,200"), ("lines", "1,000", "999")]:
        with pytest.raises(SystemExit, match=r"run make orientation\. Today:\nlines: 1,0"):
            orientation.check_table([lines, kept[1]])
    with pytest.raises(SystemExit, match="lengths: 7, 20, 190; on the page 7, 20, 150"):
        orientation.check_table([kept[0], ("lengths", "7, 20, 190", "")])
    with pytest.raises(SystemExit, match="run make orientation"):
        orientation.check_table(kept[:1])


def stored(folder, name, risks, *, converged=True, error=""):
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{name}.npy", np.array(risks, dtype=float))
    (folder / f"{name}.json").write_text(json.dumps({"converged": converged, "error": error}))


def test_models_are_compared_by_their_largest_difference(tmp_path):
    same_models = script("same_models")
    old, new = tmp_path / "old", tmp_path / "new"
    stored(old, "german-ARM1", [0.1, 0.2])
    stored(new, "german-ARM1", [0.1, 0.2 + 1e-6])
    stored(old, "german-NNLR", [0.1], converged=False)
    stored(new, "german-NNLR", [0.3])
    stored(old, "german-XGB", [], error="ValueError: no")
    stored(new, "german-XGB", [], error="ValueError: no, too")
    stored(old, "german-ARM2", [0.5])
    stored(new, "german-ARM2", [], error="TypeError: broken")
    stored(old, "german-LinARM1", [0.5])  # not fitted by the new one
    stored(new, "german-SmoothARM1", [0.5])  # not known to the old one
    found = {row["name"]: row for row in same_models.compare(old, new, [], [])}
    assert {name: row["gap"] for name, row in found.items()} == {
        "ARM1": pytest.approx(1e-6),
        "ARM2": np.inf,
        "LinARM1": np.inf,
        "NNLR": pytest.approx(0.2),
        "XGB": 0.0,
    }
    assert [name for name, row in found.items() if not row["optimum"]] == ["NNLR"]
    text = same_models.table(list(found.values()))
    assert "DIFFERS: ARM1 on german by 1.0e-06" in text
    assert "differs, but has no optimum: NNLR on german by 2.0e-01" in text
    assert [row["name"] for row in same_models.compare(old, new, ["ARM1"], ["german"])] == ["ARM1"]


@pytest.mark.skipif(os.name != "posix", reason="kills processes by signal")
def test_commands_that_are_killed_leave_whole_files():
    """Whenever the signal comes, early or late on a slow machine, the rules are the same."""
    killed_runs = script("killed_runs")
    found = killed_runs.run(8, seed=3, rows=20_000, works=("fit", "score parquet", "reasons jsonl", "study"))
    assert len(found) == 8
    assert [f for f in found if f["broken"]] == []


@pytest.fixture
def beside(monkeypatch):
    """Scripts that import one another."""
    monkeypatch.syspath_prepend(SCRIPTS)
    return script


@pytest.mark.skipif(os.name != "posix", reason="strace, limits and mounts are those of POSIX")
def test_commands_whose_reads_and_writes_fail_leave_whole_files(beside):
    """With strace, with a file system in memory and with neither: what this machine can do."""
    faults, told = beside("injected_faults"), []
    works = ("bins", "export sql", "annotate")
    found = faults.run(9, seed=4, rows=2000, works=works, tell=told.append)
    assert len(found) == 9
    assert [f for f in found if f["broken"]] == [], told
    assert {f["work"] for f in found} == set(works)


@pytest.mark.skipif(os.name != "posix", reason="strace, limits and mounts are those of POSIX")
def test_kinds_of_faults_that_cannot_be_made_are_said(beside, monkeypatch):
    faults, told = beside("injected_faults"), []
    monkeypatch.setattr(faults, "may_mount_here", lambda: False)
    monkeypatch.setattr(faults.shutil, "which", lambda name: None)
    assert faults.kinds_here(["calls", "full", "vanished", "read-only"], told.append) == ["vanished"]
    assert len(told) == 3
    assert "strace is not installed" in told[0]


def test_what_a_killed_or_failing_command_must_not_leave_is_seen(tmp_path):
    """The judge itself: half of an output, an old one that is gone, a file that nobody asked for."""
    killed_runs = script("killed_runs")

    class Bench:
        inputs, whole = tmp_path / "inputs", tmp_path / "whole"

    Bench.inputs.mkdir()
    (Bench.inputs / "model.json").write_text("{}")
    (Bench.whole / "export sql").mkdir(parents=True)
    for name in ("s.sql", "s.test.sql"):
        (Bench.whole / "export sql" / name).write_text("whole")
    place = killed_runs.Place(Bench, "export sql", tmp_path, old=True)
    assert (place.state(), place.broken(), place.left()) == ("old file", [], [])
    (place.folder / "s.sql").write_text("whole")
    assert (place.state(), place.broken()) == ("new file and old file", [])
    (place.folder / "s.sql").write_text("who")
    (place.folder / "s.test.sql").unlink()
    (place.folder / "stray").write_text("x")
    (place.folder / ".plainrisk-0123456789abcdef-s.sql").write_text("x")
    assert place.broken() == ["half of s.sql", "the old s.test.sql is gone"]
    assert place.left() == [".plainrisk-0123456789abcdef-s.sql", "stray"]
    assert place.left_after_next() == []
    place.remove()
    assert not place.folder.exists()


def test_random_forms_are_the_same_everywhere_and_a_difference_is_seen(monkeypatch):
    differential, told = script("differential"), []
    surfaces = ["Python", "SQL, SQLite"]
    found = differential.run(2, 60, 7, surfaces, told.append)
    assert {surface: count["forms"] for surface, count in found.items()} == dict.fromkeys(surfaces, 2)
    assert min(count["rows"] for count in found.values()) > 40
    assert told == []
    right = differential.engine_of

    def wrong(facts):
        engine, run = right(facts)
        return engine, lambda jobs: [[{**row, "risk": row["risk"] + 1e-6} for row in rows] for rows in run(jobs)]

    monkeypatch.setattr(differential, "engine_of", wrong)
    found = differential.run(1, 60, 7, ["Python"], told.append)
    assert found["Python"]["differ"] == 1
    assert "Python, seed 7" in told[0]


def test_the_table_of_killed_runs_names_what_broke():
    killed_runs = script("killed_runs")
    fine = {"work": "fit", "cause": "SIGINT", "code": 130, "state": "old file", "broken": [], "said": ""}
    bad = {**fine, "work": "study", "code": 0, "state": "new file", "broken": ["left .x"], "said": "oh"}
    text = killed_runs.table([fine, bad])
    assert "| fit | SIGINT | 1 | 0 | 1 | 1 | 0 | 0 | 0 |" in text
    assert "| all |  | 2 | 1 | 1 | 1 | 0 | 1 | 1 |" in text
    assert text.endswith("study, SIGINT: left .x\noh")


def test_other_pythons_are_the_first_of_every_version_that_is_supported(tmp_path):
    others = script("other_pythons")
    for name in ("a/python3.12", "a/python3.12-config", "a/python3", "b/python3.13"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = others.candidates(os.pathsep.join(str(tmp_path / name) for name in ("a", "none", "b")), tmp_path)
    assert [file.relative_to(tmp_path).as_posix() for file in found] == ["a/python3.12", "b/python3.13"]
    versions = [
        ((3, 13), "one"),
        ((), "none"),
        ((3, 9), "old"),
        ((3, 11), "ours"),
        ((3, 12), "two"),
        ((3, 13), "three"),
    ]
    assert others.others(versions, (3, 11)) == {(3, 12): "two", (3, 13): "one"}
    assert others.version_of(sys.executable) == sys.version_info[:2]


def test_every_change_of_a_function_is_made_and_taken_back(tmp_path):
    mutants = script("mutants")
    source = "LIMIT = 3\n\ndef f(x, y=1):\n    return x < 2 and not y\n"
    changes = [text for _, text, _ in mutants.mutants(source)]
    assert sorted(changes) == [
        "return x < 2 and y",
        "return x < 2 or not y",
        "return x < 3 and (not y)",
        "return x <= 2 and (not y)",
    ]
    path = tmp_path / "changed.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("changed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.f(2, 0) is False
    tree = next(tree for _, text, tree in mutants.mutants(source) if "<=" in text)
    assert mutants.exchange(module, tree) == 1
    assert module.f(2, 0) is True
