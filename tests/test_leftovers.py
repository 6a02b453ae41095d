"""What a killed process leaves is removed by the next; what a living one holds is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from plainrisk import leftovers
from plainrisk.files import replacing, write_text
from plainrisk.leftovers import temporary_folder

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has other locks")
NAME = ".plainrisk-0123456789abcdef-"

WRITING = """
import signal, sys
from plainrisk.files import replacing
from plainrisk.leftovers import temporary_folder
with replacing("out.csv") as path, temporary_folder() as folder:
    path.write_text("half")
    (folder / "half.csv").write_text("half")
    print(path.name, folder.name, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A folder of outputs and the system's temporary folder."""
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    out.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return out, temporary


def start(folder):
    job = subprocess.Popen(
        [sys.executable, "-c", WRITING], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return job, job.stdout.readline().split()


@POSIX
def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(folders):
    out, temporary = folders
    living, (file, folder) = start(out)
    killed, _ = start(out)
    killed.kill()
    assert killed.communicate()[0] == ""
    assert killed.returncode == -signal.SIGKILL
    assert (len(os.listdir(out)), len(os.listdir(temporary))) == (2, 2)
    others = [f"{NAME[:-2]}-x.csv", ".plainrisk-notes.csv", "plainrisk-2024"]
    for name in others:
        (out / name).write_text("mine")
    (out / f"{NAME}link.csv").symlink_to(out / others[0])
    write_text(out / "out.csv", "new")
    assert sorted(os.listdir(out)) == sorted([*others, f"{NAME}link.csv", file, "out.csv"])
    with temporary_folder() as own:
        assert sorted(os.listdir(temporary)) == sorted([folder, own.name])
    living.communicate()
    assert living.returncode == 0
    assert (out / "out.csv").read_text() == "half"
    assert os.listdir(temporary) == []


@POSIX
def test_one_process_may_write_several_files_at_a_time(tmp_path):
    with replacing(tmp_path / "a.csv") as a, replacing(tmp_path / "b.csv") as b, temporary_folder() as folder:
        with temporary_folder() as another:
            assert folder.is_dir()
            assert another.is_dir()
        for path in (a, b):
            path.write_text(path.name[-5:])
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv"]


@POSIX
def test_a_file_that_is_taken_for_a_leftover_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    lock, taken = leftovers._lock, []

    def late(descriptor):
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        return lock(descriptor)

    monkeypatch.setattr(leftovers, "_lock", late)
    write_text(tmp_path / "a.json", "{}")
    assert len(taken) == 1
    assert (tmp_path / "a.json").read_text() == "{}"


@POSIX
def test_files_of_others_and_where_locks_are_unknown_stay(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}a.csv").write_text("somebody's")
    with monkeypatch.context() as patch:
        patch.setattr(leftovers, "_lock", lambda descriptor: None)
        write_text(tmp_path / "b.json", "{}")
    assert (tmp_path / f"{NAME}a.csv").exists()
    if os.geteuid() == 0:
        os.chown(tmp_path / f"{NAME}a.csv", 12345, 12345)
        write_text(tmp_path / "b.json", "{}")
        assert (tmp_path / f"{NAME}a.csv").exists()


def test_a_folder_of_that_name_is_no_leftover_of_a_file(tmp_path):
    (tmp_path / f"{NAME}a.csv").mkdir()
    write_text(tmp_path / "b.json", "{}")
    assert (tmp_path / f"{NAME}a.csv").is_dir()
    assert Path(tmp_path / "b.json").read_text() == "{}"
