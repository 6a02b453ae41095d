"""Blocks of Lending Club's full file, on small files of its format."""

from __future__ import annotations

import csv
import gzip
import io

import narwhals as nw
import numpy as np
import pytest

from plainrisk import datasets
from plainrisk.datasets import lending_club
from plainrisk.datasets.lending_club import read_block, resolved_loans
from plainrisk.datasets.registry import schema_of
from plainrisk.errors import DataError

SCHEMA = schema_of("lending_club")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
HEADER = ["id", "member_id", "desc", "loan_status", *reversed(SCHEMA.features)]


def _loan(i, month, status):
    """A row of the file; `loan_amnt` tells it from the others."""
    cells = dict.fromkeys(SCHEMA.features, "0.0")
    cells |= {name: "n" for name, f in SCHEMA.features.items() if f.kind == "categorical"}
    cells |= {
        "id": str(i),
        "member_id": "",
        "desc": 'He said "pay",\nand paid',
        "loan_status": status,
        "issue_d": f"{MONTHS[month % 12]}-{2007 + month // 12}",
        "term": " 36 months",
        "sub_grade": f"{'ABCDEFG'[i % 7]}{i % 5 + 1}",
        "int_rate": " 13.99%" if i % 2 else "13.99",
        "emp_length": "" if i % 3 else "10+ years",
        "mths_since_last_delinq": "",
        "loan_amnt": str(i),
    }
    return [cells[name] for name in HEADER]


def _statuses(rng, n):
    return rng.choice(["Fully Paid", "Charged Off", "Current", "Late (31-120 days)"], n, p=[0.6, 0.2, 0.15, 0.05])


@pytest.fixture
def loans():
    """Months and statuses of 60 loans, newest month first, as chunks of the real file are."""
    rng = np.random.default_rng(5)
    return np.sort(rng.integers(5, 20, 60))[::-1], _statuses(rng, 60)


@pytest.fixture
def file(loans, data):
    rows = [_loan(i, int(m), s) for i, (m, s) in enumerate(zip(*loans, strict=True))]
    note = ["Total amount funded in policy code 1: 460296150", *[""] * (len(HEADER) - 1)]
    text = io.StringIO()
    csv.writer(text).writerows([HEADER, *rows[:30], note, ["Notes"], *rows[30:], note])
    path = data / "accepted_2007_to_2018Q4.csv.gz"
    path.write_bytes(gzip.compress(text.getvalue().encode()))
    return path


def _expected(loans):
    """The resolved loans in order of issue, by plain sorting."""
    resolved = [
        (int(m), i, s) for i, (m, s) in enumerate(zip(*loans, strict=True)) if s in ("Fully Paid", "Charged Off")
    ]
    return sorted(resolved, key=lambda loan: loan[:2])


def test_blocks_are_the_resolved_loans_in_order_of_issue(file, loans):
    expected = _expected(loans)
    seen = []
    for k in range(0, len(expected), 7):
        table = read_block(file, SCHEMA, k // 7, size=7)
        assert len(table.target) == min(7, len(expected) - k)
        seen += zip(
            table.columns["issue_d"].tolist(),
            table.columns["loan_amnt"].tolist(),
            table.target.tolist(),
            strict=True,
        )
    assert seen == [(m, i, int(s == "Charged Off")) for m, i, s in expected]


def test_cells_become_values(file, loans, monkeypatch):
    # Several pieces per block must give what one piece gives.
    monkeypatch.setattr(lending_club, "PIECE_ROWS", 4)
    columns = read_block(file, SCHEMA, 0, size=10).columns
    assert list(columns) == list(SCHEMA.features)
    loan = [i for _, i, _ in _expected(loans)[:10]]
    assert columns["sub_grade"].tolist() == [5 * (i % 7) + i % 5 + 1 for i in loan]
    assert columns["int_rate"].tolist() == [13.99] * 10
    assert set(columns["term"]) == {"36 months"}
    assert columns["emp_length"].tolist() == [None if i % 3 else "10+ years" for i in loan]
    assert np.isnan(columns["mths_since_last_delinq"]).all()


def test_the_order_is_remembered_until_the_file_changes(file):
    first = resolved_loans(file)
    assert resolved_loans(file) is first
    lines = gzip.decompress(file.read_bytes()).decode()
    file.write_bytes(gzip.compress(lines.replace("Charged Off", "Current").encode()))
    assert resolved_loans(file).charged_off.sum() == 0 < first.charged_off.sum()


def test_load_gives_the_papers_features(file, loans, monkeypatch):
    with pytest.raises(DataError, match=r"is not lc_0: \d+ rows, not 100,000"):
        datasets.load("lc_0")
    block = datasets.load("lc_0", verify=False)
    frame = nw.from_native(block.frame, eager_only=True)
    assert frame.columns == list(SCHEMA.features)
    assert block.n_rows == len(_expected(loans))
    assert (block.schema.target, block.schema.positive) == ("charged_off", 1)
    assert len(block.after_the_fact) == 15
    assert len(set(block.schema.features) - set(block.after_the_fact)) == 85
    assert frame["hardship_flag"].dtype == nw.String


@pytest.mark.parametrize("name", ["lc_1", "lc_12"])
def test_a_block_that_is_not_there(file, name):
    with pytest.raises(DataError, match=r"has \d+ resolved loans, so there is no block"):
        datasets.load(name)
    (result,) = datasets.check([name])
    assert (result.status, result.rows) == ("wrong", 0)


def test_check_counts_a_block_without_reading_it(file, loans, monkeypatch):
    monkeypatch.setattr(lending_club, "_read_rows", None)
    (result,) = datasets.check(["lc_0"])
    assert (result.status, result.rows) == ("wrong", len(_expected(loans)))
    assert "Too few" in result.message


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("issue_d", "15-Dec", "'15-Dec' is not a month"),
        ("issue_d", "Dec-15", "'Dec-15' is not a month"),
        ("issue_d", "2015-13-01", "'2015-13-01' is not a month"),
        ("sub_grade", "H1", "'H1' is not a sub-grade"),
        ("dti", "much", "column 'dti', row 0: 'much' is not a number"),
    ],
)
def test_a_strange_cell_is_named(data, column, cell, words):
    row = _loan(0, 3, "Fully Paid")
    row[HEADER.index(column)] = cell
    with (data / "accepted_2007_to_2018Q4.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([HEADER, row])
    with pytest.raises(DataError, match=words):
        datasets.load("lc_0", verify=False)


def test_another_file_is_noticed(data):
    (data / "accepted_2007_to_2018Q4.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no column 'loan_status'"):
        datasets.load("lc_0")


def test_a_cut_archive_is_noticed(file):
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(DataError, match="is damaged or cannot be read"):
        datasets.load("lc_0")


def test_real_rows_in_the_real_format(real_file, data):
    """Real loans of December 2015; only their dates, spoilt by a spreadsheet, are put right."""
    polars = pytest.importorskip("polars")
    raw = polars.read_parquet(real_file("lending_club_2015_12_head.parquet"))
    raw = raw.with_columns(issue_d=polars.lit("Dec-2015"))
    raw.write_csv(data / "accepted_2007_to_2018Q4.csv")
    block = datasets.load("lc_0", verify=False, backend="polars")
    resolved = raw.filter(polars.col("loan_status").is_in(["Fully Paid", "Charged Off"]))
    assert block.n_rows == len(resolved)
    assert round(100 * block.positive_rate, 3) == 18.268
    for name in ("loan_amnt", "int_rate", "dti", "fico_range_low", "bc_util", "mths_since_last_record"):
        assert block.frame[name].cast(float).equals(resolved[name].cast(float)), name
    assert block.frame["term"].to_list() == [term.strip() for term in resolved["term"]]
    assert set(block.frame["issue_d"]) == {107}
