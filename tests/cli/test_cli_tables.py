from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from plainrisk.cli.tables import check_output, read_table, write_lazy
from plainrisk.errors import DataError, OutputError, PlainriskWarning


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", r"empty.csv cannot be read: .*header line and rows"),
        ("ragged.csv", b"a,b\n1,2\n3,4,5\n", r"ragged.csv cannot be read: .*more fields than the header"),
        ("latin.csv", "a\nMüller\n".encode("latin1"), r"latin.csv cannot be read: .*Save it as UTF-8"),
        ("twice.csv", b"a,a\n1,2\n", r"twice.csv: column 'a' appears more than once"),
        ("no.parquet", b"PAR1 or not", r"no.parquet cannot be read: .*Is it a Parquet file"),
        ("no.csv.gz", b"a,b\n", r"no.csv.gz cannot be read: Not a gzipped file"),
        ("half.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 99, mtime=0)[:-12], r"half.csv.gz cannot be read"),
        ("rows.xlsx", b"", r"rows.xlsx: cannot read this kind of file. .* \.csv, \.csv\.gz or \.parquet"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_a_remedy(tmp_path, name, content, message) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(DataError, match=r"none\.csv does not exist"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv is a folder"):
        read_table(tmp_path / "folder.csv")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_found(tmp_path, separator) -> None:
    (tmp_path / "t.csv").write_text(f"a{separator}b\n1{separator}x\n")
    assert read_table(tmp_path / "t.csv").rows() == [(1, "x")]


def test_a_name_is_no_pattern(tmp_path) -> None:
    (tmp_path / "a[1].csv").write_text("a\n1\n")
    (tmp_path / "a1.csv").write_text("a\n2\n")
    assert read_table(tmp_path / "a[1].csv").rows() == [(1,)]


def test_types_come_from_all_rows(tmp_path) -> None:
    rows = "\n".join(["a,b", *["1,"] * 2000, "2.5,late"])
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(rows.encode()))
    table = read_table(tmp_path / "t.csv.gz")
    assert table.schema == {"a": pl.Float64, "b": pl.String}
    assert table["b"].null_count() == 2000


def test_words_for_missing(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\nNA\n?\n")
    assert read_table(tmp_path / "t.csv", ["NA", "?"])["a"].to_list() == [1, None, None]


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
