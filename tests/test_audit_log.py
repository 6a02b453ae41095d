"""The audit log: what is changed, taken out, put in or left unfinished is found."""

import hashlib
import json
import os
import re

import pytest

from plainrisk.audit_log import AuditLog, verify_log
from plainrisk.errors import DataError, OutputError


def written(path, *entries):
    log = AuditLog(path)
    log.append({"time": f"2026-01-0{n}", "risk": n / 10} for n in entries)
    log.close()


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "folder" / "log.jsonl"
    written(path, 1, 2)
    written(path, 3, 4)
    return path


def test_a_log_goes_on_where_it_ended(log):
    found = verify_log(log)
    last = log.read_bytes().splitlines()[-1]
    assert (found.lines, found.first, found.last) == (4, "2026-01-01", "2026-01-04")
    assert found.head == hashlib.sha256(last).hexdigest()
    assert [json.loads(line)["risk"] for line in log.read_text().splitlines()] == [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("line", [0, 1, 2])
@pytest.mark.parametrize("change", ["changed", "taken out", "put in", "swapped"])
def test_a_change_is_named_by_its_line(log, line, change):
    lines = log.read_bytes().splitlines(keepends=True)
    if change == "changed":
        lines[line] = lines[line].replace(b'"risk":0', b'"risk":1')
    elif change == "taken out":
        del lines[line]
    elif change == "put in":
        lines.insert(line + 1, lines[line])
    else:
        lines[line], lines[line + 1] = lines[line + 1], lines[line]
    log.write_bytes(b"".join(lines))
    with pytest.raises(
        DataError, match=rf"log\.jsonl, line {line + (1 if change in ('taken out', 'swapped') else 2)}:"
    ):
        verify_log(log)


@pytest.mark.parametrize("line", [b"[]\n", b"{\n", b"\xff\n", b"[" * 100_000 + b"\n"])
def test_what_is_no_line_of_a_log(log, line):
    with log.open("ab") as file:
        file.write(line)
    with pytest.raises(DataError, match="line 5: it is no line of an audit log"):
        verify_log(log)


def test_what_a_killed_process_left_unfinished_is_told_of(log):
    torn = b'{"time": "2026'
    with log.open("ab") as file:
        file.write(torn)
    with pytest.raises(DataError, match="line 5: the line is not finished"):
        verify_log(log)
    written(log, 5)
    assert verify_log(log).lines == 6
    told = json.loads(log.read_text().splitlines()[4])
    assert told["event"] == "unfinished line"
    assert (told["bytes"], told["sha256"]) == (len(torn), hashlib.sha256(torn).hexdigest())


def test_long_lines_and_files_that_are_none(tmp_path):
    path = tmp_path / "log.jsonl"
    for _ in range(2):
        log = AuditLog(path)
        log.append([{"text": "x" * 200_000}])
        log.close()
    assert verify_log(path).lines == 2
    with pytest.raises(DataError, match=re.escape(str(tmp_path / "none"))):
        verify_log(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        AuditLog(tmp_path / "file" / "log.jsonl")


@pytest.mark.skipif(os.name != "posix", reason="locks and limits of POSIX")
def test_two_writers_and_a_full_disk(log, monkeypatch):
    kept = AuditLog(log)
    with pytest.raises(OutputError, match="another service"):
        AuditLog(log)
    before, write = log.read_bytes(), os.write
    with monkeypatch.context() as patch:
        patch.setattr("plainrisk.audit_log.os.write", _fails_after(write, 10))
        with pytest.raises(OutputError, match="No space left"):
            kept.append([{"risk": 1}])
    assert log.read_bytes() == before
    kept.append([{"risk": 1}])
    kept.close()
    assert verify_log(log).lines == 5


def _fails_after(write, most):
    """Write some bytes, then fail as a full disk does."""
    done = []

    def limited(file, data):
        if done:
            raise OSError(28, "No space left on device")
        done.append(True)
        return write(file, bytes(data)[:most])

    return limited


def test_lines_end_alike_on_every_system(tmp_path, monkeypatch):
    """Where files have a text mode (Windows), a line would be written with another end than the one that is hashed."""
    monkeypatch.setattr(os, "O_BINARY", getattr(os, "O_LARGEFILE", 0) or 0x8000, raising=False)
    asked, opened = [], os.open
    monkeypatch.setattr(os, "open", lambda path, flags, *mode: asked.append(flags) or opened(path, flags, *mode))
    written(tmp_path / "log.jsonl", 1)
    assert all(flags & os.O_BINARY for flags in asked)
    assert len(asked) == 1
