from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from plainrisk.cli.tables import check_output, write_lazy
from plainrisk.errors import DataError, OutputError, PlainriskWarning


def test_the_same_rows_give_the_same_gzip_file(tmp_path) -> None:
    lazy = pl.LazyFrame({"a": [1.5, 2.5]})
    write_lazy(lazy, tmp_path / "one.csv.gz")
    write_lazy(lazy, tmp_path / "two.csv.gz")
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.csv.gz", "two.csv.gz"]


def test_what_a_format_cannot_hold_is_said(tmp_path) -> None:
    with pytest.raises(DataError, match=r"t\.csv was not written: .*nested"):
        write_lazy(pl.LazyFrame({"a": [[1, 2]]}), tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("old")
    lazy = pl.LazyFrame({"a": ["x"]}).select(pl.col("a").cast(pl.Int64))
    with pytest.raises(DataError, match=r"t\.csv was not written"):
        write_lazy(lazy, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "old"


def test_output_in_the_present_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    check_output(Path("m.json"), (".json",))
    with pytest.raises(DataError, match=r"The name must end in \.json"):
        check_output(Path("m.pickle"), (".json",))


def test_a_folder_that_may_not_be_written_to(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(OutputError, match="may not be written to"):
        check_output(tmp_path / "m.json", (".json",))


def test_every_command_refuses_a_damaged_file_alike(run, credit, damaged, tmp_path) -> None:
    path, message = damaged
    output = tmp_path / "written.json"
    model = credit.model_file
    said = set()
    commands = (
        ("fit", path, "--column", "b", "-o", output),
        ("fit", path, "--schema", credit.schema_file, "--stream", "-o", output),
        ("score", model, path),
        ("score", model, path, "-o", tmp_path / "written.csv"),
        ("explain", model, path),
        ("explain", model, credit.csv, "--reference", "portfolio", "--portfolio", path),
        ("reasons", model, path, "-o", tmp_path / "written.csv"),
        ("what-if", model, path, "--cutoff", "0.1"),
        ("drift", model, path),
        ("drift", model, credit.csv, "--old", path),
        ("schema", "infer", path, "-o", tmp_path / "written.toml"),
        ("schema", "check", path, "--schema", credit.schema_file),
        ("compare", path),
    )
    # One reader serves all commands: every kind of file goes through all of them, every damage through three.
    for words in commands if path.name in ("short.csv", "half.csv.gz", "no.parquet") else commands[1:4]:
        result = run(*words)
        assert (result.exit_code, result.stdout) == (2, ""), words
        said.add(result.stderr)
    assert len(said) == 1
    assert re.search(message, said.pop())
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_formulas_in_a_csv_are_written_as_they_are_and_said(tmp_path, name) -> None:
    texts = {
        "name": ["=cmd|' /C calc'!A0", None],
        "phone": ["1", "+49 30"],
        "code": ["-9", "+1.5"],
        "note": ["a=b", "-"],
    }
    frame = pl.DataFrame({**texts, "number": [-1, 2]})
    with pytest.warns(PlainriskWarning, match=r"texts in 'name', 'note', 'phone' begin with =, \+, -, @") as said:
        write_lazy(frame.lazy(), tmp_path / name)
    assert len(said) == 1
    assert pl.read_csv(tmp_path / name, infer_schema=False)["name"][0] == texts["name"][0]
    for safe in ("a.parquet", "a.jsonl"):
        write_lazy(frame.lazy(), tmp_path / safe)
    write_lazy(frame.select("code", "number").lazy(), tmp_path / name)
    with pytest.warns(PlainriskWarning, match="texts in '=x'"):
        write_lazy(pl.DataFrame({"=x": [1]}).lazy(), tmp_path / name)
