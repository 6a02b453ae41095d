"""Reading text files: formats, missing marks, and what is wrong with a damaged one."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainrisk import datasets
from plainrisk.datasets.tables import numbers, read_raw, tidy, words
from plainrisk.errors import DataError


@given(st.lists(st.floats(allow_infinity=False), min_size=1))
def test_numbers_come_back_as_they_were_written(values):
    texts = ["?" if np.isnan(v) else repr(v) for v in values]
    np.testing.assert_array_equal(numbers(texts, "here").astype(float), values)


def test_whole_numbers_become_integers_unless_one_is_missing():
    assert numbers(["1", "2.0"], "here").dtype == np.int64
    assert numbers(["1", ""], "here").dtype == np.float64
    assert numbers(["A11", "A65"], "here", "A").tolist() == [11, 65]
    assert tidy(np.array([0.5])).dtype == np.float64


def test_a_word_among_numbers_is_an_error_that_names_the_row():
    with pytest.raises(DataError, match="here, row 1: 'abc' is not a number"):
        numbers(["1", "abc"], "here")


def test_categories_with_leading_zeros_are_words():
    assert words(["00202", "00043", "?"]).tolist() == ["00202", "00043", None]
    assert words(["-1", " 2", "0"]).tolist() == [-1, 2, 0]
    assert words(["a", "1"]).tolist() == ["a", "1"]
    assert words(["?", ""]).tolist() == [None, None]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1,x y\n2,?\n"),
        ("t.csv", "\ufeffa,b\r\n1,x y\r\n2,?\r\n\r\n"),
        (
            "t.arff",
            "% note\n@relation r\n@attribute a numeric\n@ATTRIBUTE 'b' {x,y}\n\n@data\n1,x y\n%\n2,?\n",
        ),
    ],
)
def test_formats_with_a_header(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    raw = read_raw(tmp_path / name)
    assert raw.names == ("a", "b")
    assert raw.columns == [("1", "2"), ("x y", "?")]


@pytest.mark.parametrize(("name", "text"), [("t.data", "1,x\n2,?\n"), ("t.dat", "1 x \n2   ?\n")])
def test_formats_without_a_header(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_raw(tmp_path / name).columns == [("1", "2"), ("x", "?")]
    assert read_raw(tmp_path / name).names is None


def _german(data, lines, name="german.data"):
    (data / name).write_text("\n".join(lines) + "\n")
    return datasets.load("german")


def test_the_public_file_gives_what_is_built_in(data, german_lines):
    built_in = datasets.load("german")
    public = _german(data, german_lines)
    assert public.path == data / "german.data"
    assert public.frame.equals(built_in.frame)
    np.testing.assert_array_equal(public.target, built_in.target)


def test_a_changed_cell_is_noticed(data, german_lines):
    german_lines[10] = german_lines[10].replace("A32", "A33")
    with pytest.raises(DataError, match=r"german\.data is not german: its values or their order differ"):
        _german(data, german_lines)


def test_an_exchanged_row_is_noticed(data, german_lines):
    german_lines[0], german_lines[2] = german_lines[2], german_lines[0]
    with pytest.raises(DataError, match="its values or their order differ"):
        _german(data, german_lines)


def test_a_lost_row_is_noticed(data, german_lines):
    with pytest.raises(DataError, match="999 rows, not 1,000"):
        _german(data, german_lines[1:])


def test_other_outcomes_are_noticed(data, german_lines):
    good = german_lines[0]
    german_lines[0] = good[:-1] + "2"
    with pytest.raises(DataError, match="699 rows are 'good', not 700"):
        _german(data, german_lines)
    german_lines[0] = good[:-1] + "3"
    with pytest.raises(DataError, match="the outcome must be '1' or '2', not '3'"):
        _german(data, german_lines)


def test_verify_false_takes_another_file(data, german_lines):
    (data / "german.data").write_text("\n".join(german_lines[:50]) + "\n")
    assert datasets.load("german", verify=False).n_rows == 50


def test_a_ragged_row_is_noticed(data, german_lines):
    german_lines[7] += " 1"
    with pytest.raises(DataError, match="row 7 has 22 cells, not 21"):
        _german(data, german_lines)


def test_too_few_columns_are_noticed(data, german_lines):
    with pytest.raises(DataError, match="has 20 columns; german has 21"):
        _german(data, [line.rpartition(" ")[0] for line in german_lines])


@pytest.mark.parametrize("damage", ["cut", "not gzip", "empty"])
def test_a_damaged_archive_is_noticed(data, german_lines, damage):
    text = io.StringIO()
    csv.writer(text).writerows([["h"] * 21, *(line.split() for line in german_lines)])
    packed = gzip.compress(text.getvalue().encode())
    broken = {"cut": packed[:-200], "not gzip": b"<html>", "empty": gzip.compress(b"")}[damage]
    (data / "german_credit.csv.gz").write_bytes(broken)
    with pytest.raises(DataError, match=r"german_credit\.csv\.gz is damaged"):
        datasets.load("german")


def test_a_file_that_is_not_text_is_noticed(data):
    (data / "german.data").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is damaged or cannot be read"):
        datasets.load("german")


def test_a_missing_column_is_named(data):
    (data / "heloc.csv").write_text("RiskPerformance,ExternalRiskEstimate\nBad,55\n")
    with pytest.raises(DataError, match="is not heloc: it has no column 'MSinceOldestTradeOpen'"):
        datasets.load("heloc")


COLUMNS = {"a": np.array([1.0, np.nan, 0.0]), "b": np.array(["x", None, ""], dtype=object)}
TARGET = np.array([0, 1, 1], dtype=np.uint8)


def test_the_content_hash_sees_values_not_types():
    same = {"a": np.array([1.0, -np.nan, -0.0]), "b": COLUMNS["b"]}
    assert datasets.content_sha256(same, TARGET) == datasets.content_sha256(COLUMNS, TARGET)
    whole = {"a": np.array([1, 2, 3])}
    assert datasets.content_sha256(whole, TARGET) == datasets.content_sha256({"a": whole["a"] * 1.0}, TARGET)


def test_the_content_hash_sees_every_change():
    known = {datasets.content_sha256(COLUMNS, TARGET)}
    changed = [
        ({**COLUMNS, "a": np.array([1.0, np.nan, 1.0])}, TARGET),
        ({**COLUMNS, "b": np.array(["x", "", ""], dtype=object)}, TARGET),
        ({**COLUMNS, "b": np.array(["", "x", None], dtype=object)}, TARGET),
        ({"b": COLUMNS["b"], "a": COLUMNS["a"]}, TARGET),
        ({"c": COLUMNS["a"], "b": COLUMNS["b"]}, TARGET),
        (COLUMNS, TARGET[::-1]),
        (COLUMNS, 1 - TARGET),
    ]
    for columns, target in changed:
        known.add(datasets.content_sha256(columns, target))
    assert len(known) == 1 + len(changed)


def test_the_content_hash_is_the_stated_one():
    numbers = b"a\0n" + struct.pack("<3d", 1.0, float("nan"), 0.0)
    text = b"b\0w" + b"\x1fx" + b"\x1e" + b"\x1f"
    expected = hashlib.sha256(numbers + text + bytes([0, 1, 1])).hexdigest()
    assert datasets.content_sha256(COLUMNS, TARGET) == expected
