"""What differs between two models."""

import numpy as np
import pytest
from scipy.stats import spearmanr

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskError


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german")


@pytest.fixture(scope="module")
def model(german):
    return pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)


@pytest.fixture(scope="module")
def edited(german, model):
    schema = model.schema_with_bins().edit("Credit amount", merge=[(2, 3)])
    schema = schema.edit("Purpose", merge=[("A40", "A41")]).drop("Telephone")
    return pr.AdditiveRiskModel(schema).fit(german.frame, german.target)


def test_a_model_does_not_differ_from_itself(model, german):
    change = pr.diff(model, model.form_, german.frame, cutoff=0.5)
    assert {term.status for term in change.terms} == {"same"}
    assert (change.settings, change.added, change.removed) == ((), (), ())
    assert (change.rows.largest_move, change.rows.largest, change.rows.first_reason) == (0.0, (), 0.0)
    assert (change.rows.rose, change.rows.fell) == (0, 0)
    assert change.rows.rank_correlation == pytest.approx(1.0)


def test_moves_are_what_scoring_shows(model, edited, german):
    """Every move of a level is the difference of what the two forms add for a row with that level."""
    change = pr.diff(model, edited)
    assert change.removed == ("Telephone",)
    frame = german.frame
    for term in change.terms:
        (a,), (b,) = model.form_.parts, edited.form_.parts
        aligned = model.form_.align(frame)
        old = a.terms(aligned, model.form_.schema)[term.feature]
        new = b.terms(aligned, edited.form_.schema).get(term.feature, np.zeros(len(old)))
        moved = {(round(m.before, 9), round(m.after, 9)) for m in term.moves}
        assert set(zip(old.round(9).tolist(), new.round(9).tolist(), strict=True)) <= moved
        assert abs(term.moves[0].risk) == max(abs(m.risk) for m in term.moves)
    amount = next(term for term in change.terms if term.feature == "Credit amount")
    assert len(amount.moves) == 5, "the merged bins are told apart, as in the first model"
    purpose = next(term for term in change.terms if term.feature == "Purpose")
    assert {"new car", "used car"} <= {move.level for move in purpose.moves}


def test_rows_and_decisions(model, edited, german):
    change = pr.diff(model, edited, german.frame, cutoff=0.6)
    old, new = (m.predict_proba(german.frame)[:, 1] for m in (model, edited))
    rows = change.rows
    assert rows.mean_move == pytest.approx(np.abs(new - old).mean())
    assert rows.rose == int(((old < 0.6) & (new >= 0.6)).sum())
    assert rows.fell == int(((old >= 0.6) & (new < 0.6)).sum())
    row = int(np.abs(new - old).argmax())
    assert rows.largest[0] == (row, pytest.approx(old[row]), pytest.approx(new[row]))
    assert rows.rank_correlation == pytest.approx(spearmanr(old, new).statistic)
    said = [m.reasons(german.frame, k=1).to_dict() for m in (model, edited)]
    first = [[row["reasons"][0]["feature"] if row["reasons"] else None for row in one] for one in said]
    assert rows.first_reason == pytest.approx(np.mean([a != b for a, b in zip(*first, strict=True)]))
    assert change.to_dict()["rows"]["rose"] == rows.rose
    assert "rank correlation" in repr(change)


def test_pairs_lines_and_other_parts(german):
    schema = german.schema
    pairs = [[("Age in years", "Credit amount")], None]
    with_pair, without = (
        pr.AdditiveRiskModel(schema, shapes="smooth", pairs=p).fit(german.frame, german.target) for p in pairs
    )
    term = next(t for t in pr.diff(with_pair, without).terms if "×" in t.feature)
    assert term.status == "removed"
    assert all(move.after == 0.0 for move in term.moves)
    lines = [
        pr.NonnegativeLogisticRegression(schema, ridge=r).fit(german.frame, german.target).form_ for r in (0.0, 50.0)
    ]
    moved = next(t for t in pr.diff(*lines).terms if t.feature == "Age in years")
    slopes = [form.parts[0].shapes["Age in years"].slope for form in lines]
    assert (moved.moves[0].level, moved.moves[0].before, moved.moves[0].after) == ("slope", *slopes)
    layers = pr.make_classifier("ARM2", schema.drop(*schema.unassigned)).fit(german.frame, german.target)
    settings = {s.name: (s.before, s.after) for s in pr.diff(without, layers).settings}
    assert settings["pool"] == ("alone", "layer")
    assert settings["weight of 'Personal'"][0] == "none"


def test_what_cannot_be_compared(model, german):
    other = pr.AdditiveRiskModel().fit({"x": [1, 2, 3, 4] * 10}, ["good", "bad", "bad", "good"] * 10)
    with pytest.raises(DataError, match="about different outcomes"):
        pr.diff(model, other)
    with pytest.raises(DataError, match="cutoff needs rows"):
        pr.diff(model, model, cutoff=0.5)
    with pytest.raises(PlainriskError, match="cutoff"):
        pr.diff(model, model, german.frame, cutoff=2.0)
    with pytest.raises(PlainriskError, match="model_b must be a fitted model or a RiskForm"):
        pr.diff(model, pr.AdditiveRiskModel())
    with pytest.raises(DataError, match="X has no rows"):
        pr.diff(model, model, german.frame[:0])


def test_a_good_end_is_not_compared_with_a_bad_one(model, german):
    schema = german.schema.replace(target="bad", adverse="positive")
    turned = pr.AdditiveRiskModel(schema).fit(german.frame, 1 - german.target)
    with pytest.raises(DataError, match="about different outcomes"):
        pr.diff(model, turned)
    with pytest.raises(DataError, match="predict different outcomes"):
        pr.evaluate(model, german.frame, german.target, against=turned)
    renamed = pr.AdditiveRiskModel(german.schema.replace(target="repaid")).fit(german.frame, german.target)
    assert [(s.before, s.after) for s in pr.diff(model, renamed).settings if s.name == "outcome"] == [
        ("good", "repaid")
    ]
