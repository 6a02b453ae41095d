from __future__ import annotations

import os
import stat

import pytest

from plainrisk.errors import ModelFileError, SchemaError
from plainrisk.files import read_text, replacing, write_text


def test_what_is_written_is_read_and_nothing_is_left_behind(tmp_path):
    path = tmp_path / "a.toml"
    write_text(path, "grün\n")
    write_text(path, "日本\n")
    assert read_text(path, limit=100, error=SchemaError) == "日本\n"
    assert os.listdir(tmp_path) == ["a.toml"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failing_writer_leaves_the_old_file_and_no_other(tmp_path, failure):
    path = tmp_path / "model.json"
    path.write_text("old")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("ha")
            raise failure("disk full")

    with pytest.raises(failure, match="disk full"):
        write_half()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.json"]


def test_the_old_file_stands_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_the_temporary_file_keeps_all_suffixes_and_lies_beside_the_file(tmp_path):
    with replacing(tmp_path / "rows.csv.gz") as temporary:
        assert temporary.name.endswith(".csv.gz")
        assert temporary.parent == tmp_path


def test_a_failed_first_write_leaves_no_file(tmp_path):
    def write_badly():
        with replacing(tmp_path / "a.json"):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        write_badly()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_rights_of_any_new_file(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_text(tmp_path / "a.json", "{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == mode


def test_writing_never_changes_the_umask(tmp_path, monkeypatch):
    """It belongs to the process: a file that another thread creates meanwhile would be open to all."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail(f"the umask was set to {mask:o}"))
    write_text(tmp_path / "a.json", "{}")


def test_the_size_limit_counts_bytes_and_is_inclusive(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("é".encode() * 3)
    assert read_text(path, limit=6, error=SchemaError) == "ééé"
    with pytest.raises(SchemaError, match=r"a\.txt is too large: 6 bytes, at most 5 are read"):
        read_text(path, limit=5, error=SchemaError)


def test_reading_trouble_is_the_error_that_was_asked_for(tmp_path):
    with pytest.raises(ModelFileError, match=r"gone\.json does not exist"):
        read_text(tmp_path / "gone.json", limit=9, error=ModelFileError)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFileError, match="is not a text file"):
        read_text(tmp_path / "binary", limit=9, error=ModelFileError)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelFileError, match=r"folder (cannot be read|is too large)"):
        read_text(tmp_path / "folder", limit=10**6, error=ModelFileError)
