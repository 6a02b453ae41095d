"""One reader of tables: what it reads, what it refuses, and that every way to a file passes through it."""

from __future__ import annotations

import dataclasses
import gzip
import os
from pathlib import Path

import polars as pl
import pytest

import plainrisk as pr
from plainrisk.data.reader import open_table, read_file
from plainrisk.errors import DataError


def test_a_damaged_file_is_refused_by_name_and_line(damaged):
    path, message = damaged
    ways = [open_table, read_file]
    if path.name.endswith((".csv", ".csv.gz")):
        ways.append(pr.rows.csv)
    if path.name.endswith(".parquet"):
        ways.append(pr.rows.parquet)
    for way in ways:
        with pytest.raises(DataError, match=message):
            way(path)


@pytest.mark.parametrize("text", ["a;b\n1,5;2\n3;4\n", 'a,b\n"1,5",2\n'])
def test_numbers_with_commas_are_no_categories_unless_something_says_how_they_are_read(tmp_path, text):
    path = tmp_path / "comma.csv"
    path.write_text(text)
    ways = [
        read_file,
        lambda file: open_table(file).read_as({"a": "continuous"}),
        lambda file: pr.rows.csv(file).read_as(None),
    ]
    for way in ways:
        with pytest.raises(DataError, match=r"comma\.csv: column 'a' holds numbers with commas.*read = 'amount'"):
            way(path)
    assert open_table(path).read_as({"a": "text"}).collect()["a"][0] == "1,5"
    assert open_table(path).read_as(None, drafting=True).collect()["a"][0] == "1,5"


def test_pandas_and_arrow_are_checked_alike(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;x\n2;y\n")
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    assert list(read_file(path)["b"]) == ["x", "y"]
    path.write_text("a;b\n1;x\n2\n")
    with pytest.raises(DataError, match="line 3: the record has 1 field"):
        read_file(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv does not exist"):
        open_table(tmp_path / "none.csv").collect()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv is a folder"):
        open_table(tmp_path / "folder.csv").collect()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_and_a_name_without_end(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r"pipe\.csv is a pipe or a device"):
        open_table(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="does not exist"):
        open_table("a" * 5_000 + ".csv")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_found(tmp_path, separator):
    (tmp_path / "t.csv").write_text(f"a{separator}b\n1{separator}x\n")
    assert open_table(tmp_path / "t.csv").collect().rows() == [(1, "x")]


def test_a_name_is_no_pattern(tmp_path):
    (tmp_path / "a[1].csv").write_text("a\n1\n")
    (tmp_path / "a1.csv").write_text("a\n2\n")
    assert open_table(tmp_path / "a[1].csv").collect().rows() == [(1,)]


def test_types_come_from_all_rows(tmp_path):
    rows = "\n".join(["a,b", *["1,"] * 2000, "2.5,late"])
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(rows.encode()))
    table = open_table(tmp_path / "t.csv.gz").collect()
    assert table.schema == {"a": pl.Float64, "b": pl.String}
    assert table["b"].null_count() == 2000


def test_words_for_missing(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\nNA\n?\n")
    assert open_table(tmp_path / "t.csv", ["NA", "?"]).collect()["a"].to_list() == [1, None, None]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_quoted_fields_hold_separators_quotes_and_lines(tmp_path, ending):
    text = ending.join(["a,b", '"a,5","x""y"', f'2,"two{ending}lines, and more"', '"",""', "3,z"])
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    table = open_table(tmp_path / "t.csv")
    assert table.n_rows == 4
    assert table.collect().rows() == [("a,5", 'x"y'), ("2", f"two{ending}lines, and more"), (None, None), ("3", "z")]


def test_a_header_alone_is_a_table_of_no_rows(tmp_path):
    (tmp_path / "t.csv").write_text("a,b")
    table = open_table(tmp_path / "t.csv")
    assert (table.n_rows, table.collect().shape) == (0, (0, 2))


class TestSeveralFiles:
    def test_rows_come_in_the_order_of_the_names_and_columns_by_name(self, tmp_path):
        (tmp_path / "2.csv").write_text("b;a\nx;2.5\n")
        (tmp_path / "1.csv").write_text("a,b\n1,y\n")
        (tmp_path / "3.csv").write_text("a,b\n,\n")
        table = open_table(str(tmp_path / "*.csv"))
        assert table.collect().rows() == [(1.0, "y"), (2.5, "x"), (None, None)]
        assert table.where(2) == f"{tmp_path / '3.csv'}, row 0, the first being 0"

    def test_parquet_of_whole_and_other_numbers(self, tmp_path):
        pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "1.parquet")
        pl.DataFrame({"a": [2.5]}).write_parquet(tmp_path / "2.parquet")
        pl.DataFrame({"a": [None]}, {"a": pl.String}).write_parquet(tmp_path / "3.parquet")
        rows = pr.rows.parquet(str(tmp_path / "*.parquet"))
        assert [v for batch in rows.batches() for v in batch.numbers("a")][:2] == [1, 2.5]
        assert len(rows) == 3

    def test_other_columns(self, tmp_path):
        (tmp_path / "1.csv").write_text("a,b\n1,2\n")
        (tmp_path / "2.csv").write_text("a,c\n1,2\n")
        with pytest.raises(DataError, match=r"2\.csv: the columns differ from those of .*1\.csv: it lacks 'b'"):
            pr.rows.csv(str(tmp_path / "*.csv"))

    def test_other_types(self, tmp_path):
        (tmp_path / "1.csv").write_text("a\n1\n")
        (tmp_path / "2.csv").write_text("a\nsecret\n")
        with pytest.raises(DataError, match=r"column 'a' is Int64 in .*1\.csv, but String in .*2\.csv\. Store"):
            pr.rows.csv(str(tmp_path / "*.csv"))

    def test_two_formats(self, tmp_path):
        (tmp_path / "1.csv").write_text("a\n1\n")
        pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "2.parquet")
        with pytest.raises(DataError, match="CSV and Parquet files are mixed"):
            open_table(str(tmp_path / "*"))

    def test_a_damaged_one_is_named(self, tmp_path):
        (tmp_path / "1.csv").write_text("a,b\n1,2\n")
        (tmp_path / "2.csv").write_text("a,b\n1\n")
        with pytest.raises(DataError, match=r"2\.csv, line 2: the record has 1 field"):
            open_table(str(tmp_path / "*.csv"))


# ---- what fuzzing found

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"


@pytest.mark.parametrize("kinds", [None, {'a "b"': "categorical"}, {'a "b"': "continuous"}])
def test_a_name_with_quotes_is_that_of_the_header(tmp_path, kinds):
    """polars leaves quotes in names doubled, and the file was an internal error."""
    path = tmp_path / "quotes.csv"
    path.write_text('id,"a ""b""","c,d"\n1,2,"say ""no"""\n')
    found = open_table(path).read_as(kinds).collect()
    assert found.columns == ["id", 'a "b"', "c,d"]
    assert [str(value) for value in found.row(0)] in (["1", "2", 'say "no"'], ["1", "2.0", 'say "no"'])
    assert pr.rows.csv(path).names == ("id", 'a "b"', "c,d")


@pytest.mark.parametrize("name", ["panic-at-the-head.parquet", "panic-in-a-page.parquet"])
def test_a_parquet_file_at_which_polars_panics_is_damaged(name, tmp_path, capfd):
    """A panic is no `Exception`."""
    with pytest.raises(DataError, match=rf"{name} cannot be read: .*(damaged|complete)"):
        open_table(CORPUS / "parquet" / name).collect()
    capfd.readouterr()  # polars itself writes to stderr


def test_a_parquet_file_that_holds_fewer_rows_than_it_says(tmp_path):
    path = tmp_path / "short.parquet"
    pl.DataFrame({"a": [1, 2, 3]}).write_parquet(path)
    table = dataclasses.replace(open_table(path), parts=((str(path), 11),))
    with pytest.raises(DataError, match=r"short\.parquet says that it has 11 rows and holds 3"):
        table.collect()
