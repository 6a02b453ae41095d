"""The real files: rows, outcomes, no column lost, and the public source's own formats."""

from __future__ import annotations

import csv
import gzip
import json

import narwhals as nw
import numpy as np
import pytest

from plainrisk import datasets
from plainrisk.errors import DataError, PlainriskWarning

# name: file, rows, rows with the outcome, the raw outcome that counts
FILES = {
    "german": ("german_credit.csv.gz", 1_000, 700, "1"),
    "heloc": ("heloc.csv.gz", 10_459, 5_459, "Bad"),
    "gmsc": ("give_me_some_credit.csv.gz", 150_000, 10_026, "1"),
    "taiwan": ("taiwan_credit_default.csv.gz", 30_000, 6_636, "1"),
    "japan": ("japanese_credit_crx.csv.gz", 690, 383, "-"),
    "australia": ("australian_credit.csv.gz", 690, 383, "0"),
    "poland_0": ("polish_bankruptcy_1year.csv.gz", 7_027, 271, "1"),
    "poland_4": ("polish_bankruptcy_5year.csv.gz", 5_910, 410, "1"),
}


def _rows(path):
    with gzip.open(path, "rt", newline="") as stream:
        return list(csv.reader(stream))


@pytest.fixture
def linked(real_file, data):
    """Put a real file, or a rewritten copy of it, into the data folder."""

    def link(name, as_name=None, rewrite=None):
        path = real_file(name)
        if rewrite is None:
            (data / name).symlink_to(path)
        else:
            (data / as_name).write_text(rewrite(_rows(path)), encoding="utf-8")
        return path

    return link


@pytest.mark.parametrize("name", [name for name in FILES if name != "gmsc"])
def test_rows_outcomes_and_columns(linked, name):
    file, rows, positives, label = FILES[name]
    path = linked(file)
    loaded = datasets.load(name)
    frame = nw.from_native(loaded.frame, eager_only=True)
    assert loaded.path.name == file
    assert (loaded.n_rows, int(loaded.target.sum()), len(frame)) == (rows, positives, rows)
    assert frame.columns == list(loaded.schema.features)
    assert loaded.schema.positive == 1
    header, *raw = _rows(path)
    outcome = 0 if name == "heloc" else len(header) - 1
    assert loaded.target.tolist() == [int(row[outcome] == label) for row in raw]


@pytest.mark.parametrize("name", ["heloc", "gmsc", "poland_0"])
def test_values_are_those_another_reader_sees(linked, paper, name):
    polars = pytest.importorskip("polars")
    file, rows, positives, _ = FILES[name]
    raw = polars.read_csv(linked(file), null_values=["NA", ""], infer_schema_length=None)
    if name == "poland_0":
        raw = raw.rename(json.loads((paper / "schemas.json").read_text())["poland"]["attribute_names"])
    loaded = datasets.load(name, backend="polars")
    assert (loaded.n_rows, int(loaded.target.sum())) == (rows, positives)
    for column in loaded.frame.columns:
        assert loaded.frame[column].cast(float).equals(raw[column].cast(float)), column
    if name == "gmsc":
        assert loaded.target.tolist() == raw["SeriousDlqin2yrs"].to_list()
        assert loaded.frame["MonthlyIncome"].null_count() == 29_731


def test_japan_keeps_zip_codes_as_words_and_question_marks_as_missing(linked):
    linked("japanese_credit_crx.csv.gz")
    frame = nw.from_native(datasets.load("japan").frame, eager_only=True)
    assert sum(frame[c].null_count() for c in frame.columns) == 67
    assert frame["ZipCode"].to_list()[:2] == ["00202", "00043"]
    assert frame["CreditScore"].to_list()[:2] == [1, 6]
    assert frame["Age"].to_list()[0] == 30.83
    for column in ("Age", "Debt", "YearsEmployed", "CreditScore", "Income"):
        assert frame[column].dtype.is_numeric()


def test_taiwan_has_an_ordered_category(linked):
    linked("taiwan_credit_default.csv.gz")
    taiwan = datasets.load("taiwan")
    assert (taiwan.schema.features["PAY_0"].kind, taiwan.schema.features["PAY_0"].sign) == ("categorical", 1)
    values = nw.from_native(taiwan.frame, eager_only=True)["PAY_0"]
    assert values.dtype.is_integer()
    assert sorted(values.unique().to_list()) == list(range(-2, 9))


def test_the_partial_polish_year_says_so(linked):
    linked("polish_bankruptcy_3year_partial.csv.gz")
    with pytest.warns(PlainriskWarning, match=r"poland_2: .* holds 9,977 of 10,503 rows"):
        poland = datasets.load("poland_2")
    assert poland.partial
    assert (poland.n_rows, int(poland.target.sum()), datasets.info(poland.name).rows) == (9_977, 468, 10_503)
    (result,) = datasets.check(["poland_2"])
    assert (result.status, result.rows, result.message) == ("partial", 9_977, "9,977 of 10,503 rows")


def test_a_partial_file_is_not_taken_for_a_full_one(linked):
    linked("polish_bankruptcy_3year_partial.csv.gz", "polish_bankruptcy_3year.csv", _as_csv)
    with pytest.raises(DataError, match="9,977 rows, not 10,503"):
        datasets.load("poland_2")


# ---- the files as their public sources give them


def _as_csv(rows):
    return "".join(",".join(row) + "\n" for row in rows)


def _as_blanks(rows):
    return "".join(" ".join(row) + " \n" for row in rows[1:])


def _as_arff(rows):
    attributes = [f"@attribute {name} numeric\n" for name in rows[0][:-1]]
    cells = [",".join(cell or "?" for cell in row) + "\n" for row in rows[1:]]
    return "".join(["@relation 'x'\n\n", *attributes, "@attribute class {0,1}\n\n@data\n", *cells])


def _as_sheet(rows):
    codes = ["", *(f"X{i}" for i in range(1, 24)), "Y"]
    return _as_csv([codes, [*rows[0][:-1], "default payment next month"], *rows[1:]])


def _as_uci_table(rows):
    return _as_csv([["ID", *(f"X{i}" for i in range(1, 24)), "Y"], *rows[1:]])


@pytest.mark.parametrize(
    ("name", "as_name", "rewrite"),
    [
        ("german", "german.data", _as_blanks),
        ("australia", "australian.dat", _as_blanks),
        ("japan", "crx.data", lambda rows: _as_csv(rows[1:])),
        ("heloc", "heloc_dataset_v1.csv", _as_csv),
        ("taiwan", "UCI_Credit_Card.csv", _as_sheet),
        ("taiwan", "taiwan_credit_default.csv", _as_uci_table),
        ("poland_4", "5year.arff", _as_arff),
    ],
)
def test_public_formats_have_the_same_content(linked, data, name, as_name, rewrite):
    # load() itself compares the content with the hash in the registry.
    assert datasets.info(name).content_sha256 is not None
    linked(FILES[name][0], as_name, rewrite)
    loaded = datasets.load(name)
    assert loaded.path == data / as_name
    assert loaded.n_rows == FILES[name][1]


# ---- Lending Club, 2007 to 2011

YEARS = "lending_club_2007_2011"


def test_lending_club_years_have_the_features_that_are_not_empty(linked, paper):
    polars = pytest.importorskip("polars")
    raw = polars.read_parquet(linked(f"{YEARS}.parquet"))
    listed = json.loads((paper / "schemas.json").read_text())["lending_club"]["features"]
    expected = [f for f in listed if f in raw.columns and raw[f].null_count() < len(raw)]
    leaky = datasets.load(f"{YEARS}_leaky", backend="polars")
    assert leaky.frame.columns == expected == list(leaky.schema.features)
    assert (leaky.n_rows, int(leaky.target.sum())) == (42_535, 6_431)
    assert leaky.target.tolist() == raw["loan_status"].str.contains("Charged Off").cast(int).to_list()
    for column in ("loan_amnt", "annual_inc", "dti", "recoveries", "pub_rec_bankruptcies"):
        assert leaky.frame[column].cast(float).equals(raw[column].cast(float)), column
    np.testing.assert_allclose(leaky.frame["int_rate"], 100 * raw["int_rate"], rtol=1e-12)


def test_lending_club_words_are_those_of_the_full_file(linked):
    linked(f"{YEARS}.parquet")
    frame = nw.from_native(datasets.load(YEARS).frame, eager_only=True)
    assert sorted(frame["term"].unique().to_list()) == ["36 months", "60 months"]
    assert frame["sub_grade"].to_list()[:3] == [14, 12, 3]  # C4, C2, A3
    assert (frame["issue_d"].min(), frame["issue_d"].max()) == (5, 59)  # June 2007 to December 2011
    assert "n/a" not in frame["emp_length"].unique().to_list()


def test_hindsight_is_left_out_unless_asked_for(linked):
    linked(f"{YEARS}.parquet")
    honest, leaky = datasets.load(YEARS), datasets.load(f"{YEARS}_leaky")
    assert honest.after_the_fact == ()
    assert {"recoveries", "total_pymnt", "debt_settlement_flag"} <= set(leaky.after_the_fact)
    assert set(leaky.schema.features) - set(honest.schema.features) == set(leaky.after_the_fact)
    kept = leaky.select(honest.schema.features)
    assert kept.frame.equals(honest.frame)
    assert kept.schema == honest.schema
    assert not [f for f in honest.schema.features if f.startswith(("total_pymnt", "total_rec", "last_", "out_"))]


def test_a_damaged_parquet_file_is_noticed(data):
    (data / f"{YEARS}.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"2011\.parquet cannot be read: .*Is it a Parquet file, and complete"):
        datasets.load(YEARS)


def test_check_agrees_with_load(linked):
    linked("australian_credit.csv.gz")
    (result,) = datasets.check(["australia"])
    loaded = datasets.load("australia")
    assert (result.status, result.path) == ("present", loaded.path)
    assert (result.rows, result.positive_rate) == (loaded.n_rows, loaded.positive_rate)
