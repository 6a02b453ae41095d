from __future__ import annotations

import errno
import os
import pathlib
import stat
import subprocess
import sys
import time

import pytest

import plainrisk as pr
from plainrisk import files
from plainrisk.cli import tables
from plainrisk.errors import DataError, ModelFileError, OutputError, SchemaError
from plainrisk.files import parse_json, parse_toml, read_text, replacing, write_text, write_texts
from plainrisk.leftovers import hold_new_file

POSIX = pytest.mark.skipif(os.name == "nt", reason="modes, links and devices are POSIX's")
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


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


def test_a_temporary_file_is_closed_before_it_is_removed(tmp_path, monkeypatch):
    """Windows removes no file that is open."""
    held, removed = [], []
    monkeypatch.setattr(files, "hold_new_file", lambda *given: held.append(hold_new_file(*given)) or held[-1])

    def unlink(path, **_):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(held[0])
        removed.append(path.parent)

    def write_badly():
        with monkeypatch.context() as patched, replacing(tmp_path / "a.json"):
            patched.setattr(pathlib.Path, "unlink", unlink)
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        write_badly()
    assert removed == [tmp_path]


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
    with pytest.raises(SchemaError, match=r"a\.txt is too large: at most 5 bytes are read"):
        read_text(path, limit=5, error=SchemaError)


def test_reading_trouble_is_the_error_that_was_asked_for(tmp_path):
    with pytest.raises(ModelFileError, match=r"gone\.json does not exist"):
        read_text(tmp_path / "gone.json", limit=9, error=ModelFileError)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFileError, match="is not a text file"):
        read_text(tmp_path / "binary", limit=9, error=ModelFileError)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelFileError, match=r"folder is a folder\. Give the name of a file"):
        read_text(tmp_path / "folder", limit=10**6, error=ModelFileError)


# ---- files that belong together


@pytest.fixture
def two(tmp_path):
    """A query and its test, both old."""
    paths = {tmp_path / "a.sql": "query", tmp_path / "a.test.sql": "test"}
    for path in paths:
        path.write_text("old")
    return paths


def test_of_two_files_one_that_cannot_be_written_leaves_both_old(two, tmp_path):
    (tmp_path / "a.test.sql").unlink()
    (tmp_path / "a.test.sql").mkdir()
    with pytest.raises(OutputError, match=r"a\.test\.sql cannot be written: it is a folder"):
        write_texts(two)
    assert (tmp_path / "a.sql").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.sql", "a.test.sql"]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_interrupt_among_the_renames_leaves_both_old_or_both_new(two, tmp_path, monkeypatch, at):
    rename, renamed = pathlib.Path.replace, []

    def interrupted(path, target):
        renamed.append(target)
        if len(renamed) == 2 and at == 2:
            rename(path, target)
        if len(renamed) == max(at, 1):
            if at == 1:
                rename(path, target)
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(pathlib.Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        write_texts(two)
    assert [path.read_text() for path in two] == (["old", "old"] if at == 0 else ["query", "test"])
    assert sorted(os.listdir(tmp_path)) == ["a.sql", "a.test.sql"]


# ---- what a new file keeps of the old one


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_of_the_old_file_stays_and_is_never_wider_meanwhile(tmp_path, mode):
    path = tmp_path / "scores.csv"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as temporary:
        assert mode_of(temporary) & ~mode == 0
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert mode_of(path) == mode


@POSIX
def test_the_owner_of_the_old_file_stays_where_permitted(tmp_path, monkeypatch):
    path = tmp_path / "scores.csv"
    path.write_text("old")
    path.chmod(0o664)
    asked = []
    other = os.stat_result((*path.stat()[:4], 12345, 54321, *path.stat()[6:]))
    stat_of = pathlib.Path.stat
    monkeypatch.setattr(pathlib.Path, "stat", lambda p, **more: other if p == path else stat_of(p, **more))
    monkeypatch.setattr(os, "chown", lambda _, uid, gid: asked.append((uid, gid)))
    write_text(path, "new")
    assert asked == [(12345, 54321)]

    def refuse(_, uid, gid):
        raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    write_text(path, "newer")
    monkeypatch.undo()
    assert path.read_text() == "newer"
    assert mode_of(path) == 0o604, "the mode of another group says nothing about ours"


@POSIX
def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path):
    (tmp_path / "models").mkdir()
    target = tmp_path / "models" / "model-7.json"
    target.write_text("old")
    link, dangling = tmp_path / "model.json", tmp_path / "next.json"
    link.symlink_to("models/model-7.json")
    dangling.symlink_to("models/model-8.json")
    for path in (link, dangling):
        write_text(path, "new")
        assert path.is_symlink()
    assert target.read_text() == "new"
    assert sorted(p.name for p in target.parent.iterdir()) == ["model-7.json", "model-8.json"]


@POSIX
def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to_device").symlink_to("/dev/null")
    (tmp_path / "loop").symlink_to("loop")
    for path, message in [
        (tmp_path / "pipe", "pipe cannot be written: it is a device or a pipe.* Write to a file, then copy"),
        (tmp_path / "folder", "folder cannot be written: it is a folder. Give the name of a file"),
        (tmp_path / "to_device", "to_device cannot be written: it is a device"),
        (tmp_path / "loop", "loop cannot be written: Too many levels"),
        (tmp_path / "no" / "a.json", r"no/a\.json cannot be written: the folder .*no does not exist. Make it first"),
        ("a\0b", "is not the name of a file"),
        (7, "7 is not the name of a file"),
    ]:
        with pytest.raises(OutputError, match=message) as caught:
            write_text(path, "new")
        assert isinstance(caught.value, OSError)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@POSIX
@pytest.mark.skipif(IS_ROOT, reason="root may write everywhere")
def test_a_read_only_file_or_folder_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(OutputError, match=r"a\.json cannot be written: it is read-only"):
        write_text(path, "new")
    tmp_path.chmod(0o555)
    with pytest.raises(OutputError, match=r"b\.json cannot be written: the folder .* may not be written to"):
        write_text(tmp_path / "b.json", "new")
    tmp_path.chmod(0o755)
    assert path.read_text() == "old"


def test_the_longest_names_can_be_written(tmp_path):
    path = tmp_path / ("a" * 250 + ".json")
    write_text(path, "new")
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (OSError(errno.EROFS, "Read-only file system"), "the disk is read-only"),
        (OSError("No space left on device (os error 28)"), "the disk is full"),  # as polars says it
        (Exception(OSError(errno.ENOSPC, "No space left on device")), "the disk is full"),  # as xlsxwriter does
        (RuntimeError("parquet: underlying IO error: No space left on device (os error 28)"), "the disk is full"),
    ],
    ids=["full", "read-only", "polars", "xlsx", "parquet"],
)
def test_a_full_disk_names_the_file_of_the_user(tmp_path, problem, words):
    path = tmp_path / "risks.csv"
    path.write_text("old")

    def write():
        with replacing(path):
            raise problem

    with pytest.raises(OutputError, match=rf"risks\.csv cannot be written: {words}") as caught:
        write()
    assert ".plainrisk-" not in str(caught.value)
    assert os.listdir(tmp_path) == ["risks.csv"]
    assert path.read_text() == "old"


def test_an_error_never_names_the_temporary_file(tmp_path):
    def write():
        with replacing(tmp_path / "a.csv") as temporary:
            raise ValueError(f"cannot make sense of {temporary}")

    with pytest.raises(OutputError, match=r"a\.csv cannot be written: cannot make sense of .*a\.csv\.$") as caught:
        write()
    assert ".plainrisk-" not in str(caught.value)


def test_an_error_about_another_file_stays_as_it_is(tmp_path):
    def write():
        with replacing(tmp_path / "a.csv"):
            (tmp_path / "input.csv").read_text()

    with pytest.raises(FileNotFoundError, match=r"input\.csv"):
        write()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_rows_that_cannot_be_computed_leave_no_file_however_late_their_writer_starts(tmp_path, suffix):
    import polars as pl

    def fail(batch):
        raise DataError("Data: a row cannot be scored.")

    rows = pl.DataFrame({"a": range(100)}).lazy().map_batches(fail, streamable=True)
    for _ in range(50):
        with pytest.raises(DataError, match="cannot be scored"):
            tables.write_lazy(rows, tmp_path / f"risks{suffix}")
    time.sleep(0.2)  # for threads that are still at work
    assert os.listdir(tmp_path) == []


LIMITED = """
import resource, signal, sys
import polars as pl
from plainrisk.cli import tables
from plainrisk.errors import OutputError
from plainrisk.files import write_text
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
rows = pl.DataFrame({"a": range(20_000)}).lazy()
for name in sys.argv[1:]:
    try:
        write_text(name, "x" * 5000) if name.endswith(".json") else tables.write_lazy(rows, name)
    except OutputError as error:
        print(error)
"""


@POSIX
def test_a_real_limit_of_the_disk_leaves_the_old_files(tmp_path):
    pytest.importorskip("polars")
    pytest.importorskip("xlsxwriter")
    names = ["a.csv", "a.csv.gz", "a.json", "a.jsonl", "a.parquet", "a.xlsx"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for name in names:
        (tmp_path / name).write_text("old")
    command = [sys.executable, "-c", LIMITED, *names]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, env=environment)
    assert os.listdir(temporary) == []
    temporary.rmdir()
    assert done.stdout.splitlines() == [f"{name} cannot be written: File too large." for name in names], done.stderr
    assert sorted(os.listdir(tmp_path)) == names
    assert {(tmp_path / name).read_text() for name in names} == {"old"}


# ---- reading with limits


@POSIX
def test_an_endless_device_is_read_to_the_limit():
    with pytest.raises(SchemaError, match="/dev/zero is too large: at most 1,000 bytes are read"):
        read_text("/dev/zero", limit=1000, error=SchemaError)
    with pytest.raises(SchemaError, match="/dev/zero is too large"):
        pr.Schema.load("/dev/zero")


@POSIX
def test_a_pipe_is_read_to_the_limit():
    read, write = os.pipe()
    os.write(write, b"x" * 60)
    with pytest.raises(SchemaError, match="is too large: at most 50 bytes"):
        read_text(f"/dev/fd/{read}", limit=50, error=SchemaError)
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("load", [pr.load, pr.Schema.load], ids=["model", "schema"])
def test_paths_that_are_none(tmp_path, load):
    (tmp_path / "empty.json").touch()
    for path, message in [
        ("a\0b.json", "is not the name of a file"),
        ("\ud800.json", "is not the name of a file"),
        (7, "7 is not the name of a file"),
        (None, "None is not the name of a file"),
        (tmp_path, "is a folder. Give the name of a file"),
        ("x" * 5000, "cannot be read: File name too long"),
        (tmp_path / "empty.json", r"empty\.json is empty"),
        (tmp_path / "gone.json", r"gone\.json does not exist"),
    ]:
        with pytest.raises((ModelFileError, SchemaError), match=message):
            load(path)


def test_a_byte_order_mark_and_ends_of_lines_do_not_matter(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\rc = 3\n")
    assert parse_toml(read_text(path, limit=99, error=SchemaError), path, SchemaError) == {"a": 1, "b": 2, "c": 3}


DOTTED = ".".join("a" * 100_000) + " = 1"
DEEP_TOML = {
    "dots": DOTTED,
    "quoted dots": ".".join(['"a"'] * 100_000) + " = 1",
    "spaced dots": " . ".join("a" * 100_000) + " = 1",
    "header": "[" + ".".join("a" * 100_000) + "]",
    "array": "x = " + "[" * 500 + "]" * 500,
    "tables": "x = " + "{a = " * 500 + "1" + "}" * 500,
    "in a table": "x = {" + DOTTED + "}",
    "after a text": 'x = ["""a"""", {' + DOTTED + "}]",
}


@pytest.mark.parametrize("text", DEEP_TOML.values(), ids=DEEP_TOML)
def test_deep_toml_is_refused_before_it_is_parsed(text, monkeypatch):
    monkeypatch.setattr("tomllib.loads", lambda text: pytest.fail("it was parsed"))
    with pytest.raises(SchemaError, match=r"s\.toml is nested too deep: at most 64"):
        parse_toml(text, "s.toml", SchemaError)


def test_what_only_looks_deep_is_read():
    deep = "." * 1000 + "[{" * 1000
    texts = f'a = "{deep}"  # {deep}\nb = \'{deep}\'\nc = """\\"\n{deep}"""\nd = \'\'\'\n{deep}\'\'\'\n'
    numbers = f"e = [{', '.join(['0.5'] * 1000)}]\n"
    tables = "".join(f"[t.s{k}]\nx.y = {{z = [1.5]}}\n" for k in range(300))
    assert len(parse_toml(texts + numbers + tables, "s.toml", SchemaError)["t"]) == 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "9" * 5000, "is not valid TOML: a whole number has too many digits"),
        ("a = ", "is not valid TOML: Invalid value"),
        ("a = 1\na = 2", "is not valid TOML: Cannot overwrite"),
    ],
    ids=["digits", "cut off", "twice"],
)
def test_toml_that_is_none(text, message):
    with pytest.raises(SchemaError, match=message):
        parse_toml(text, "s.toml", SchemaError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": ' + "[" * 100_000, r"s\.json is damaged, or not a schema: it is nested too deep"),
        ('{"a": ' + "9" * 5000 + "}", r"s\.json is not a schema: Integer value out of range"),
        ("{", r"s\.json is damaged: it is not valid JSON: Input data was truncated"),
    ],
    ids=["deep", "digits", "cut off"],
)
def test_json_that_is_none(text, message):
    with pytest.raises(SchemaError, match=message):
        parse_json(text, dict, "s.json", SchemaError, "a schema")


def test_what_xlsxwriter_cannot_write_is_said_of_the_output(tmp_path):
    """Its error is no `OSError` and names no file, whatever went wrong with the disk."""
    from xlsxwriter.exceptions import FileCreateError

    def write():
        with replacing(tmp_path / "card.xlsx"):
            raise FileCreateError(OSError(5, "Input/output error"))

    with pytest.raises(OutputError, match=r"card\.xlsx cannot be written: Input/output error"):
        write()
    assert os.listdir(tmp_path) == []
