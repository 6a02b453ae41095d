"""What is found about rows goes back to them: in pandas by their index, in polars and arrow by their order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

import plainrisk as pr
from plainrisk.threads import PIECE_ROWS
from plainrisk.validate.bootstrap import bootstrap

CREDIT = pr.datasets.make_credit(400, seed=5, n_features=6)
ROWS = CREDIT.frame.to_pandas()
MODEL = pr.AdditiveRiskModel(CREDIT.schema).fit(CREDIT.frame, CREDIT.target).annotate(cutoff=0.25)
VERBS = ("explain", "reasons", "decide", "what_ifs")


def answers(verb, rows):
    return getattr(MODEL, verb)(rows)


def cells(frame):
    """The cells of a frame, rounded: rows are added up in blocks."""
    return frame.round(12).astype(object).where(frame.notna(), None).to_dict("list")


def indexes(n):
    """Labels of every kind for n rows."""
    rng = np.random.default_rng(n)
    return {
        "shuffled": pd.Index(rng.permutation(n), name="applicant"),
        "text": pd.Index([f"A{k}" for k in rng.permutation(n)]),
        "repeated": pd.Index(np.arange(n) // 3),
        "dates": pd.date_range("2024-03-01", periods=n, name="day")[::-1],
        "two levels": pd.MultiIndex.from_arrays([np.arange(n) % 3, rng.permutation(n)], names=["branch", None]),
        "missing labels": pd.Index([np.nan, *range(n - 1)]),
        "categories": pd.CategoricalIndex(np.arange(n) % 2),
    }


def test_every_applicant_of_a_split_is_joined_to_his_own_risk():
    _, test = train_test_split(ROWS, random_state=0)
    risk = MODEL.predict_proba(test)[:, 1]
    for verb in VERBS:
        for frame in (answers(verb, test).to_frame(test), answers(verb, test).to_frame()):
            np.testing.assert_array_equal(test.join(frame.add_prefix("its "))["its risk"], risk)
    parts = test.join(MODEL.explain(test).to_frame().add_prefix("its ")).drop(columns=[*ROWS, "its risk", "its rate"])
    np.testing.assert_allclose(parts.sum(axis=1), risk, atol=1e-12)
    reasons = MODEL.reasons(test)
    assert [*test.join(reasons.to_frame(test))["reason_1"]] == [reasons.words(i)[0] for i in range(len(test))]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", indexes(3))
def test_the_index_of_the_rows_is_that_of_the_answers(verb, kind):
    rows = ROWS.head(12).set_axis(indexes(12)[kind])
    found = answers(verb, rows)
    plain = answers(verb, ROWS.head(12))
    for frame in (found.to_frame(), found.to_frame(rows), found.to_frame(pd.DataFrame({"a": [1]}))):
        pd.testing.assert_index_equal(frame.index, rows.index)
        pd.testing.assert_frame_equal(frame.reset_index(drop=True), plain.to_frame())
    assert found.to_dict() == plain.to_dict()
    assert repr(found) == repr(plain)


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(30)), st.integers(0, 30))
def test_rows_in_any_order_are_found_again_by_their_labels(order, kept):
    rows = ROWS.iloc[list(order)[:kept]]
    for verb in VERBS:
        wanted = answers(verb, ROWS.head(30)).to_frame().loc[rows.index]
        assert cells(answers(verb, rows).to_frame()) == cells(wanted)


@pytest.mark.parametrize(
    "change", [lambda f: f[f.iloc[:, 0] > f.iloc[:, 0].median()], lambda f: f.sort_values(list(f))]
)
def test_filtered_and_sorted_rows_keep_their_labels(change):
    rows, whole = change(ROWS), MODEL.reasons(ROWS).to_frame()
    pd.testing.assert_frame_equal(MODEL.reasons(rows).to_frame(), whole.loc[rows.index], rtol=1e-12)


def test_more_rows_than_a_block():
    n = 2 * PIECE_ROWS + 7
    rows = ROWS.iloc[np.arange(n) % len(ROWS)].set_axis(np.random.default_rng(1).permutation(n))
    risk = pd.Series(MODEL.predict_proba(rows)[:, 1], rows.index)
    for found in (MODEL.explain(rows), MODEL.reasons(rows), MODEL.decide(rows)):
        pd.testing.assert_series_equal(found.to_frame()["risk"], risk, check_names=False)
    frame = MODEL.explain(rows).rows
    block = frame.take(PIECE_ROWS, PIECE_ROWS + 5)
    assert list(block.origin.index) == list(rows.index[PIECE_ROWS : PIECE_ROWS + 5])
    assert list(frame.rows(np.array([n - 1, 0])).origin.index) == list(rows.index[[n - 1, 0]])


@pytest.mark.parametrize("verb", VERBS)
def test_polars_and_arrow_get_their_own_back_in_the_order_of_the_rows(verb):
    rows = CREDIT.frame.head(20)
    found = answers(verb, rows)
    assert isinstance(found.to_frame(), pl.DataFrame)
    assert isinstance(answers(verb, rows.to_arrow()).to_frame(), pa.Table)
    assert found.to_frame()["risk"].to_list() == answers(verb, rows.to_arrow()).to_frame()["risk"].to_pylist()
    assert list(found.to_frame(ROWS).index) == list(range(20)), "rows of polars have no labels, whatever it is like"
    labeled = answers(verb, ROWS.head(20).set_axis(range(20, 0, -1)))
    assert isinstance(labeled.to_frame(rows), pl.DataFrame)
    assert isinstance(labeled.to_frame(rows.to_arrow()), pa.Table)


@pytest.mark.parametrize("verb", VERBS)
def test_rows_without_labels_get_none(verb):
    rows = ROWS.head(1)
    one = answers(verb, rows.to_dict("records")[0])
    for frame in (one.to_frame(), one.to_frame(rows.set_axis([7]))):
        assert isinstance(frame.index, pd.RangeIndex)
    assert isinstance(answers(verb, ROWS.head(3).to_dict("list")).to_frame().index, pd.RangeIndex)


@pytest.mark.parametrize("verb", VERBS)
def test_no_rows_and_one(verb):
    for n in (0, 1):
        rows = ROWS.tail(n)
        frame = answers(verb, rows).to_frame()
        pd.testing.assert_index_equal(frame.index, rows.index)
        assert len(frame) == n


def test_numbers_without_names_under_a_label():
    X = pd.DataFrame(np.random.default_rng(2).normal(size=(60, 2)))
    model = pr.AdditiveRiskModel().fit(X.to_numpy(), X[0] > 0)
    named = X.set_axis(["x0", "x1"], axis=1).iloc[::-1]
    assert list(model.explain(named).to_frame().index) == list(named.index)
    assert isinstance(model.explain(X.to_numpy()).to_frame().index, pd.RangeIndex)


def test_labels_are_copied():
    rows = ROWS.head(3).rename_axis("applicant")
    frame = MODEL.explain(rows).to_frame()
    frame.index.name = "other"
    assert rows.index.name == "applicant"


def test_labels_are_neither_compared_nor_plain_data():
    rows = ROWS.head(3)
    assert MODEL.what_ifs(rows) == MODEL.what_ifs(rows.set_axis([7, 8, 9]))


def test_intervals_of_rows_have_their_index():
    rows = ROWS.head(4).set_axis(list("dbca"))
    model = pr.AdditiveRiskModel(CREDIT.schema).fit(ROWS, CREDIT.target)
    refits = bootstrap(model, ROWS, CREDIT.target, n=2)
    risk = refits.risk(rows)
    assert list(risk.to_frame().index) == list("dbca")
    assert list(risk.to_dict()) == ["estimate", "low", "high"]
    pieces = refits.contributions(rows)
    assert list(pieces.to_frame().index) == [label for label in "dbca" for _ in range(pieces.low.shape[1])]
    assert len(refits.shape(next(iter(model.form_.features))).to_frame()) > 0
