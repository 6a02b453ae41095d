"""-o wherever there is a table: every ending holds the same figures, and an unknown one is refused before any work."""

from __future__ import annotations

import functools
import html
import json
import re
import zipfile
from xml.etree import ElementTree

import polars as pl
import pytest

import plainrisk as pr
from plainrisk.cli import tables
from plainrisk.errors import DataError

COMMANDS = {
    "evaluate": ("evaluate", "MODEL", "DATA", "--against", "MODEL"),
    "evaluate by": ("evaluate", "MODEL", "DATA", "--by", "housing"),
    "cutoffs": ("cutoffs", "MODEL", "DATA", "--gain-good", "0.2"),
    "fairness": ("fairness", "MODEL", "DATA", "--by", "housing", "--cutoff", "0.3"),
    "drift": ("drift", "MODEL", "DATA"),
    "certify": ("certify", "MODEL"),
    "diff": ("diff", "MODEL", "OTHER"),
    "scorecard": ("scorecard", "MODEL"),
    "compare": ("compare", "RESULTS"),
}


@pytest.fixture
def words(credit, tmp_path):
    results = tmp_path / "results.csv"
    names = [f"d{i}" for i in range(8)]
    pl.DataFrame({"data": names, "A": [0.7 + i / 100 for i in range(8)], "B": [0.6] * 8, "C": [0.65] * 8}).write_csv(
        results
    )
    other = tmp_path / "other.json"
    rows = credit.frame[: credit.frame.height // 2]
    pr.AdditiveRiskModel(credit.schema).fit(rows.drop("bad", "id"), rows["bad"]).save(other)
    known = {"MODEL": credit.model_file, "OTHER": other, "DATA": credit.csv, "RESULTS": results}
    return lambda name: [known.get(word, word) for word in COMMANDS[name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_ending_is_written(run, words, tmp_path, name):
    # One writer serves all commands: every ending of one table, and of the others those that are compared.
    for ending in tables.WRITE if name == "cutoffs" else (".json", ".parquet", ".html", ".md"):
        output = tmp_path / f"table{ending}"
        result = run(*words(name), "-o", output)
        assert result.exit_code == 0, result.stderr
        assert output.stat().st_size > 0
    written = json.loads((tmp_path / "table.json").read_text("utf-8"))
    read = pl.read_parquet(tmp_path / "table.parquet")
    assert len(written) == read.height > 0
    assert list(written[0]) == read.columns
    assert (tmp_path / "table.html").read_text("utf-8").count("<tr>") == read.height + 1
    if name != "scorecard":  # which has facts below, and bases
        assert (tmp_path / "table.md").read_text("utf-8").count("\n") == read.height + 2


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_ending_is_refused_before_any_work(run, tmp_path, name):
    absent = {"MODEL": "none.json", "OTHER": "none.json", "DATA": "none.csv", "RESULTS": "none.csv"}
    result = run(*(absent.get(word, word) for word in COMMANDS[name]), "-o", tmp_path / "table.docx")
    assert result.exit_code == 2
    assert "cannot write this kind of file. The name must end in .csv, .xlsx, .md, .html, .json" in result.stderr


def test_a_missing_package_is_said_before_any_work(run, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    result = run("cutoffs", "none.json", "none.csv", "-o", tmp_path / "t.xlsx")
    assert result.exit_code == 3
    assert "pip install 'plainrisk[export]'" in result.stderr


def test_texts_are_escaped_and_numbers_are_plain(tmp_path):
    columns = {"a|b": ["<i>", "x|y"], "n": [3158290.0, float("nan")], "k": [1200, None], "ok": [True, False]}
    tables.write_table(columns, tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text("utf-8")
    assert "&lt;i&gt;" in page
    assert "3,158,290" in page
    tables.write_table(columns, tmp_path / "t.md")
    text = (tmp_path / "t.md").read_text("utf-8")
    assert text.splitlines()[0] == "| a\\|b | n | k | ok |"
    assert text.splitlines()[2] == "| <i> | 3,158,290 | 1,200 | yes |"
    tables.write_table(columns, tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text("utf-8"))[1] == {"a|b": "x|y", "n": None, "k": None, "ok": False}


# ---- a line per row

ROW_COMMANDS = {
    "score": ("--decision", "--reasons", "2", "--beyond"),
    "explain": (),
    "reasons": ("-k", "2"),
    "what-if": ("--frozen", "Purpose"),
}
DIGITS = {".md": 6, ".html": 6, ".xlsx": 16}  # pages are for people, with separators of thousands


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A model of German credit, and a file of its first rows, of which one has a text that markup would mistake."""
    folder = tmp_path_factory.mktemp("german")
    loaded = pr.datasets.load("german", backend="polars")
    model = pr.make_classifier("ARM1", schema=loaded.schema).fit(loaded.frame, loaded.target)
    model.save(folder / "model.json", cutoff=0.4)
    rows = loaded.frame.head(120).with_columns(id=pl.int_range(pl.len()) + 10**15)
    rows.with_columns(note=pl.Series(["<b>|=1+1", *["plain"] * 119])).write_parquet(folder / "rows.parquet")
    return folder


def cell_of(text):
    """A cell of a page or of Markdown as data."""
    text = html.unescape(text).replace("\\|", "|")
    number = text.replace(",", "")
    if re.fullmatch(r"-?[\d.]+(e-\d+)?", number):
        return float(number)
    return {"": None, "yes": True, "no": False}.get(text, text)


def read_sheet(path):
    """The lines of a workbook's first sheet; empty cells at the end of a line are left out."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as book:
        texts = ["".join(text.itertext()) for text in ElementTree.fromstring(book.read("xl/sharedStrings.xml"))]
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    kinds = {"s": lambda text: texts[int(text)], "b": lambda text: text == "1", "n": float}
    for line in sheet.iter(f"{space}row"):
        cells = []
        for cell in line:
            letters = re.match("[A-Z]+", cell.get("r"))[0]
            place = functools.reduce(lambda total, letter: 26 * total + ord(letter) - 64, letters, 0)
            value = cell.find(f"{space}v")
            cells += [None] * (place - 1 - len(cells))
            cells.append(None if value is None else kinds[cell.get("t", "n")](value.text))
        yield cells


def read_back(path):
    """The names and the lines of a table in any format."""
    if path.suffix == ".md":
        head, _, *lines = [re.split(r" (?<!\\)\| ", line[2:-2]) for line in path.read_text("utf-8").splitlines()]
        return head, [[cell_of(text.strip()) for text in line] for line in lines]
    if path.suffix == ".html":
        page = path.read_text("utf-8")
        lines = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in re.findall(r"<tr>(.*?)</tr>", page)[1:]]
        return re.findall(r"<th>(.*?)</th>", page), [list(map(cell_of, line)) for line in lines]
    if path.suffix == ".xlsx":
        (head, *lines) = read_sheet(path)
        return head, [line + [None] * (len(head) - len(line)) for line in lines]
    if path.suffix == ".json":
        records = json.loads(path.read_text("utf-8"))
        return list(records[0]), [list(record.values()) for record in records]
    readers = {".csv": pl.read_csv, ".gz": pl.read_csv, ".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}
    frame = readers[path.suffix](path)
    return frame.columns, [list(line) for line in frame.iter_rows()]


def as_expected(cell, name, ending):
    if ending == ".xlsx" and name == "id":
        return str(cell)  # a spreadsheet would round so large a number
    if cell == "" and ending in DIGITS:
        return None  # an empty text is an empty cell
    if isinstance(cell, float) and ending in DIGITS:
        return pytest.approx(cell, rel=10.0 ** (1 - DIGITS[ending]), abs=1e-300)
    return cell


@pytest.mark.parametrize("ending", tables.WRITE)
@pytest.mark.parametrize("name", ROW_COMMANDS)
def test_rows_are_the_same_in_every_format(run, german, tmp_path, name, ending):
    words = (
        name,
        german / "model.json",
        german / "rows.parquet",
        *ROW_COMMANDS[name],
        "--keep",
        "id",
        "--keep",
        "note",
    )
    for output in (tmp_path / "expected.parquet", tmp_path / f"rows{ending}"):
        result = run(*words, "-o", output)
        assert result.exit_code == 0, result.stderr
    expected = pl.read_parquet(tmp_path / "expected.parquet")
    names, lines = read_back(tmp_path / f"rows{ending}")
    assert names == expected.columns
    assert len(lines) == expected.height == 120
    for line, row in zip(lines, expected.iter_rows(), strict=True):
        assert line == [as_expected(cell, n, ending) for n, cell in zip(names, row, strict=True)]


@pytest.mark.parametrize("ending", tables.WRITE)
def test_no_rows_are_a_table_without_lines(run, german, tmp_path, ending):
    empty = tmp_path / "empty.parquet"
    pl.read_parquet(german / "rows.parquet").clear().write_parquet(empty)
    result = run("score", german / "model.json", empty, "-o", tmp_path / f"rows{ending}")
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / f"rows{ending}").read_bytes()
    if ending in (".json", ".jsonl"):  # which have no header
        assert text.split() == ([b"[]"] if ending == ".json" else [])
    else:
        assert read_back(tmp_path / f"rows{ending}") == (["risk"], [])


def test_a_sheet_that_is_too_small_is_refused_and_the_old_file_stays(monkeypatch, tmp_path):
    (tmp_path / "t.xlsx").write_text("old")
    monkeypatch.setattr(tables, "SHEET_ROWS", 3)
    tables.write_table({"a": [1, 2, 3]}, tmp_path / "three.xlsx")
    with pytest.raises(DataError, match=r"t\.xlsx was not written: an Excel sheet holds at most 3 rows.*Write \.csv"):
        tables.write_table({"a": [1, 2, 3, 4]}, tmp_path / "t.xlsx")
    with pytest.raises(DataError, match="32,767 characters in a cell, and a text in 'a' is longer"):
        tables.write_table({"a": ["x" * 40_000]}, tmp_path / "t.xlsx")
    monkeypatch.setattr(tables, "SHEET_COLUMNS", 1)
    with pytest.raises(DataError, match="1 columns, and there are 2"):
        tables.write_table({"a": [1], "b": [2]}, tmp_path / "t.xlsx")
    assert (tmp_path / "t.xlsx").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.xlsx", "three.xlsx"]


def test_the_limit_of_a_sheet_is_that_of_excel():
    assert (tables.SHEET_ROWS, tables.SHEET_COLUMNS) == (1_048_575, 16_384)


@pytest.mark.parametrize("ending", [".xlsx", ".json", ".md", ".html"])
def test_an_error_in_a_row_writes_nothing(run, tmp_path, ending):
    levels = pl.DataFrame({"job": ["clerk", "cook"] * 50})
    schema = pr.Schema(features={"job": {"kind": "categorical", "unseen": "error"}})
    pr.AdditiveRiskModel(schema).fit(levels, [0, 1, 1, 1] * 25).save(tmp_path / "m.json")
    pl.concat([levels, pl.DataFrame({"job": ["clown"]})]).write_parquet(tmp_path / "t.parquet")
    result = run("score", tmp_path / "m.json", tmp_path / "t.parquet", "-o", tmp_path / f"r{ending}")
    assert result.exit_code == 2
    assert "level 'unseen' was not in the training data" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.json", "t.parquet"]
