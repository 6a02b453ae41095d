"""Types by meaning, not by the file: what a value is does not depend on the other rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import plainrisk as pr
from plainrisk.data.columns import label_of
from plainrisk.data.frame import as_frame
from plainrisk.data.reader import open_table
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.form import Categories
from plainrisk.form.beyond import counts

KINDS = {"code": "categorical", "x": "continuous", "id": "text"}


def read(tmp_path, text, kinds=KINDS, **options):
    (tmp_path / "t.csv").write_text(text)
    return open_table(tmp_path / "t.csv").read_as(kinds, **options).collect()


@pytest.fixture
def coded():
    """Codes of which 01 is bad and 1 is good."""
    codes = ["01", "02", "1", "A7"] * 250
    bad = [int(i % 10 < {"01": 8, "02": 3, "1": 1, "A7": 5}[code]) for i, code in enumerate(codes)]
    return pl.DataFrame({"code": codes, "bad": bad})


@pytest.fixture
def coded_model(coded):
    return pr.AdditiveRiskModel(pr.Schema(features={"code": {"kind": "categorical"}})).fit(
        coded[["code"]], coded["bad"]
    )


class TestReader:
    def test_categories_and_text_are_read_as_they_are_written(self, tmp_path):
        found = read(tmp_path, 'code,x,id\n01,1,00123\n1.0,2,1E2\n" a ",3,\n,4,7\n')
        assert found["code"].to_list() == ["01", "1.0", " a ", None]
        assert found["id"].to_list() == ["00123", "1E2", None, "7"]
        assert found["x"].to_list() == [1, 2, 3, 4]

    @pytest.mark.parametrize("other", ["true", "1", "maybe", ""])
    def test_truth_values_have_one_label_whatever_stands_beside_them(self, tmp_path, other):
        found = read(tmp_path, f"code,id\ntrue,true\nFALSE,FALSE\nTrue,x\n{other},\n")
        assert found["code"].to_list()[:3] == ["True", "False", "True"]
        assert found["id"].to_list()[:2] == ["true", "FALSE"]

    @pytest.mark.parametrize("other", ["7", "+7", "true", '"7"', "NaN", ""])
    def test_numbers_are_numbers_whatever_stands_beside_them(self, tmp_path, other):
        found = read(tmp_path, f"x,code\n1e2,a\n007,a\n{other},a\n")["x"]
        assert found.to_list()[:2] == [100, 7]
        assert found.dtype.is_numeric()

    def test_text_among_numbers_stays_for_the_model_to_refuse(self, tmp_path):
        assert read(tmp_path, "x,code\n1,a\nten,a\n")["x"].dtype == pl.String

    def test_copies_are_as_written_beside_what_a_column_means(self, tmp_path):
        found = read(tmp_path, "code,x\ntrue,007\n01,1E2\n", copies={"c": "code", "n": "x", "none": "y"})
        assert found.to_dict(as_series=False) == {
            "code": ["True", "01"],
            "x": [7.0, 100.0],
            "c": ["true", "01"],
            "n": ["007", "1E2"],
        }

    def test_where_nothing_is_known_leading_zeros_are_text(self, tmp_path):
        found = read(tmp_path, "zip,n,f\n01,10,0.5\n1,0,-0.25\n,20,0\n", None)
        assert found["zip"].to_list() == ["01", "1", None]
        assert (found["n"].dtype, found["f"].dtype) == (pl.Int64, pl.Float64)

    def test_files_that_differ_in_what_their_codes_look_like(self, tmp_path):
        (tmp_path / "1.csv").write_text("code,bad\n01,0\n1,1\n")
        (tmp_path / "2.csv").write_text("code,bad\nA7,0\n")
        with pytest.raises(DataError, match="name it as text"):
            pr.rows.csv(str(tmp_path / "*.csv"))
        rows = pr.rows.csv(str(tmp_path / "*.csv"), text=["code"])
        assert [v for batch in rows.batches(["code"]) for v in batch.column("code").to_list()] == ["01", "1", "A7"]

    def test_a_category_may_be_a_decimal_comma(self, tmp_path):
        (tmp_path / "t.csv").write_text('code,x\n"1,5",1\n')
        assert open_table(tmp_path / "t.csv", texts=["code"]).collect()["code"].to_list() == ["1,5"]


class TestStreams:
    @pytest.mark.parametrize("batch_rows", [1, 7, 1_000])
    def test_categories_are_those_of_the_schema(self, tmp_path, coded, coded_model, batch_rows):
        coded.filter(pl.col("code") != "A7").write_csv(tmp_path / "t.csv")
        schema = pr.Schema(features={"code": {"kind": "categorical"}})
        model = pr.AdditiveRiskModel(schema).fit(pr.rows.csv(tmp_path / "t.csv", batch_rows=batch_rows), y="bad")
        assert model.form_.parts[0].shapes["code"].levels.categories == ("01", "1", "02")

    def test_without_a_schema_codes_with_leading_zeros_are_categories(self, tmp_path, coded):
        coded.filter(pl.col("code") != "A7").write_csv(tmp_path / "t.csv")
        model = pr.AdditiveRiskModel().fit(pr.rows.csv(tmp_path / "t.csv"), y="bad")
        assert model.form_.schema.features["code"].kind == "categorical"


class TestLabels:
    def test_a_model_whose_label_is_true_as_text_knows_the_truth_value(self):
        levels = Categories(("false", "true", "maybe"), 3)
        assert [levels.level_of(v) for v in ("true", "True", "False", "maybe", "TRUE")] == [1, 1, 0, 2, 4]
        assert Categories(("True", "true"), 2).level_of("True") == 0

    def test_numbers_in_a_frame_meet_the_label_of_their_value(self, coded_model):
        risks = [coded_model.predict_proba({"code": [v, v]})[0, 1] for v in (1, 1.0, "1")]
        assert len(set(risks)) == 1
        assert coded_model.predict_proba({"code": "1.0"})[0, 1] not in risks


def test_a_draft_says_why_a_code_is_text():
    found = pr.Schema.infer(pl.DataFrame({"branch": ["01", "1", "7"] * 10, "bad": [0, 1, 1] * 10}), "bad")
    assert found.features["branch"].kind == "categorical"
    assert any("'01' has a leading zero" in finding.text for finding in found.findings)


def test_groups_that_are_numbers_as_text_come_in_their_order():
    assert list(pr.data.columns.labels_of(np.array(["10", "9", "1"], object)).groups()) == ["1", "9", "10"]


# ---- truth values, times and decimals

DAY, MOMENT = dt.datetime(2018, 12, 31), dt.datetime(2018, 12, 31, 9, 30)
FRAMES = {
    "polars": lambda values: pl.DataFrame({"a": values}),
    "pandas": lambda values: pd.DataFrame({"a": pd.Series(values).convert_dtypes()}),
    "pandas object": lambda values: pd.DataFrame({"a": pd.Series(values, dtype=object)}),
    "pandas categories": lambda values: pd.DataFrame({"a": pd.Series(values).convert_dtypes().astype("category")}),
    "pyarrow": lambda values: pa.table({"a": values}),
    "pyarrow categories": lambda values: pa.table({"a": pa.array(values).dictionary_encode()}),
    "list": lambda values: {"a": values},
}


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([True, None, False], ("False", "True")),
        ([dt.date(2018, 12, 31), None, dt.date(2019, 1, 1)], ("2018-12-31", "2019-01-01")),
        ([DAY, None, MOMENT], ("2018-12-31", "2018-12-31 09:30:00")),
        ([dt.time(9, 30), None, dt.time(9, 30, 0, 5)], ("09:30:00", "09:30:00.000005")),
        ([MOMENT.replace(tzinfo=dt.UTC), None], ("2018-12-31 09:30:00+00:00",)),
        ([Decimal("1.10"), None, Decimal("2.00")], ("1.1", "2")),
    ],
    ids=["truth", "days", "times", "times of day", "zones", "decimals"],
)
def test_every_library_has_the_same_labels(library, values, labels):
    found = as_frame(FRAMES[library](values)).labels("a")
    assert found.labels == labels
    assert [None if code < 0 else labels[code] for code in found.codes] == [
        None if v is None else label_of(v) for v in values
    ]


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_times_of_numpy_are_labeled_alike_one_or_many(unit):
    days = np.array(["2018-12-31", "NaT", "2019-01-01"], f"datetime64[{unit}]")
    assert as_frame({"a": days}).labels("a").labels == ("2018-12-31", "2019-01-01")
    levels = Categories(("2018-12-31", "2019-01-01"), 2)
    assert [levels.codes(as_frame({"a": days[[k]]}), "a")[0] for k in range(3)] == [0, 2, 1]


def test_a_decimal_beside_text_has_the_label_of_its_number():
    assert as_frame({"a": [Decimal("1.0"), "x"]}).labels("a").labels == ("1", "x")


def test_durations_are_refused_by_name():
    with pytest.raises(DataError, match="column 'a' holds values of type Duration"):
        as_frame(pl.DataFrame({"a": [dt.timedelta(1)]})).labels("a")


@pytest.mark.parametrize("library", FRAMES)
def test_a_truth_value_that_is_missing_takes_no_other_with_it(library):
    truth = [True, False] * 50
    schema = pr.Schema(features={"a": {"kind": "categorical"}})
    bad = [int(t) if i % 10 else int(not t) for i, t in enumerate(truth)]
    model = pr.AdditiveRiskModel(schema).fit(pl.DataFrame({"a": truth}), bad)
    expected = [model.predict_proba({"a": t})[0, 1] for t in (True, False)]
    assert expected[0] != expected[1]
    found = model.predict_proba(FRAMES[library]([True, False, None]))[:, 1]
    assert found[:2].tolist() == expected
    refitted = pr.AdditiveRiskModel(schema).fit(FRAMES[library]([*truth, None]), [*bad, 0])
    assert refitted.form_.parts[0].shapes["a"].levels.categories == ("False", "True")


@pytest.mark.parametrize("library", FRAMES)
def test_a_truth_value_that_is_a_measurement_is_1_or_0(library):
    np.testing.assert_array_equal(as_frame(FRAMES[library]([True, False, None])).numbers("a"), [1, 0, np.nan])


def test_a_truth_value_beside_numbers_stays_one():
    assert as_frame({"a": [True, 1, 2.5]}).labels("a").labels == ("1", "2.5", "True")
    assert as_frame({"a": [True, 2.5]}).numbers("a").tolist() == [1.0, 2.5]


# ---- what is unusual is said


def test_a_column_of_new_categories_alone_is_warned_of(coded, coded_model):
    other = coded.select(pl.col("code").str.to_lowercase() + "x")
    with pytest.warns(PlainriskWarning, match=r"every row of column 'code' holds a category that training"):
        coded_model.predict_proba(other.head(20))
    coded_model.predict_proba(other.head(19))
    coded_model.predict_proba(pl.concat([other.head(20), coded[["code"]].head(1)]))


def test_counts_of_unusual_values():
    frame = pl.DataFrame({"x": [float(i) for i in range(100)], "c": ["a", "b"] * 50})
    form = pr.AdditiveRiskModel().fit(frame, [0, 1, 1, 1] * 25).form_
    assert counts(form, form.align(frame)) == {}
    odd = {"x": [None, -1.0, 5.0, 100.0], "c": ["c", None, None, "a"]}
    assert counts(form, form.align(odd)) == {
        "x": {"missing": 1, "out_of_range": 2},
        "c": {"missing": 2, "unseen": 1},
    }
