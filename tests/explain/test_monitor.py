from __future__ import annotations

import math

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.explain import Profile, drift
from plainrisk.explain.monitor import psi
from plainrisk.form.risks import count_risks
from plainrisk.form.wording import say_levels
from plainrisk.intervals import newcombe

pytestmark = pytest.mark.filterwarnings("ignore:.*the line is cut off")


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(4000, 3, backend="polars")


@pytest.fixture(scope="module")
def model(credit):
    return pr.AdditiveRiskModel(credit.schema, link="linear").fit(credit.frame, credit.target)


def test_the_index_by_hand():
    found = psi(np.array([60.0, 40.0]), np.array([30.0, 70.0]))
    expected = [(0.3 - 0.6) * math.log(0.3 / 0.6), (0.7 - 0.4) * math.log(0.7 / 0.4)]
    assert found.tolist() == pytest.approx(expected)
    assert psi(np.array([10.0, 0.0]), np.array([8.0, 2.0])).sum() == pytest.approx(
        (0.8 - 1.0) * math.log(0.8) + (0.2 - 0.05) * math.log(0.2 / 0.05)
    )  # an empty level counts as half a row
    assert psi(np.array([5.0, 0.0]), np.array([9.0, 0.0])).tolist() == [0.0, 0.0]


def test_against_the_training_rows_nothing_has_moved(model, credit):
    found = model.drift(credit.frame)
    assert max(f.psi for f in found.features) < 1e-12
    assert max(abs(f.shift) for f in found.features) < 1e-12
    assert found.risk.psi < 1e-12
    assert found.risk.old_risk == pytest.approx(found.risk.new_risk, abs=1e-12)
    assert found.old_rows == found.new_rows == 4000


@pytest.mark.filterwarnings("ignore:class_weight moves the base rate")
def test_training_risks_are_counted_without_class_weights_and_travel_in_the_file(credit, tmp_path):
    """The index of the risk by hand, in ten groups of the training rows; class weights move risks, not counts."""
    weighted = pr.AdditiveRiskModel(credit.schema, class_weight="balanced").fit(credit.frame, credit.target)
    weighted.save(tmp_path / "m.json")
    loaded, new = pr.load(tmp_path / "m.json"), credit.frame.filter(pl.col("bureau_score") < 660)
    old_risk, new_risk = (weighted.predict_proba(X)[:, 1] for X in (credit.frame, new))
    kept = loaded.fit_record_.risks
    assert kept.counts().tolist() == count_risks(old_risk).tolist()
    assert sum(kept.positives.values()) == credit.target.sum()
    assert kept.mean == pytest.approx(old_risk.mean())
    assert kept.auc == pytest.approx(roc_auc_score(credit.target, old_risk), abs=2e-4)
    assert kept.share_below(0.4) == pytest.approx((old_risk < 0.4).mean(), abs=2e-3)
    found = pr.drift(loaded, new)
    assert found.risk == pr.drift(loaded, new, old=credit.frame).risk
    old, now, below, shares = count_risks(old_risk), count_risks(new_risk), 0, {}
    group = 0
    for before, after in zip(old, now, strict=True):
        group = 10 * below // 4000 if before else group
        shares[group] = np.add(shares.get(group, (0, 0)), (before, after))
        below += before
    p, q = np.maximum(list(shares.values()), 0.5).T / [[4000], [len(new)]]
    assert found.risk.psi == pytest.approx(((q - p) * np.log(q / p)).sum())
    assert found.risk.psi > 0.25
    assert loaded.at_base_rate(0.3).fit_record_.risks is None  # other probabilities


@pytest.mark.parametrize("name", ["ARM1", "SmoothARM1"])
@pytest.mark.parametrize("scale", [1 / 4000, 1e3])
def test_the_scale_of_weights_is_no_shift(credit, name, scale):
    """Of weights that add up to 1, an empty level's half row would be half of all."""
    equal = pr.make_classifier(name, credit.schema).fit(credit.frame, credit.target, sample_weight=[scale] * 4000)
    found = equal.drift(credit.frame)
    assert found.old_rows == found.new_rows == 4000
    assert max(f.psi for f in found.features) < 1e-12
    assert max(abs(f.shift) for f in found.features) < 1e-12
    assert found.risk.psi < 1e-12


def test_a_shift_is_the_change_of_the_mean_score_at_the_rate_of_the_line(model, credit):
    new = credit.frame.filter(pl.col("income") < credit.frame["income"].median())
    found = model.drift(new, credit.frame)
    assert found.features[0].feature == "income"
    assert found.features[0].psi > 0.25
    assert found.unit == "probability"
    part, align = model.form_.parts[0], model.form_.align
    now, then = (part.terms(align(X), credit.schema) for X in (new, credit.frame))
    for f in found.features:
        expected = part.link.slope * (now[f.feature].mean() - then[f.feature].mean())
        assert f.shift == pytest.approx(expected, abs=1e-12)
        assert sum(f.parts) == pytest.approx(f.psi)
        assert sum(f.old) == pytest.approx(1)
    assert found.subscales[0].new_risk == pytest.approx(model.form_.risk(new).mean())
    assert found.subscales[0].old_risk == pytest.approx(model.form_.risk(credit.frame).mean())


def test_counts_by_level_are_those_of_the_rows(model, credit):
    new = credit.frame[:700]
    for f in model.drift(new, credit.frame).features:
        shape = model.form_.parts[0].shapes[f.feature]
        codes = shape.levels.codes(model.form_.align(new), f.feature)
        assert f.new == pytest.approx((np.bincount(codes, minlength=len(f.levels)) / 700).tolist())


def test_batches_add_up(model, credit):
    whole = drift(model.form_, credit.frame[:1500], credit.frame)
    new, old = Profile(model.form_), Profile(model.form_)
    for a, b in ((0, 400), (400, 1500)):
        new.add(credit.frame[a:b])
    for start in range(0, 4000, 900):
        old.add(credit.frame[start : start + 900])
    again = drift(model.form_, new, old)
    assert [f.feature for f in again.features] == [f.feature for f in whole.features]
    assert [f.psi for f in again.features] == pytest.approx([f.psi for f in whole.features])
    assert [s.psi for s in again.subscales] == pytest.approx([s.psi for s in whole.subscales])


def test_subscales_of_a_pool(credit):
    model = pr.SubscaleMixture(pr.AdditiveRiskModel(), credit.schema).fit(credit.frame, credit.target)
    new = credit.frame.filter(pl.col("bureau_score") < 640)
    found = model.drift(new, credit.frame)
    assert {s.subscale for s in found.subscales} == {*credit.schema.subscales, "risk"}
    assert found.subscales[0].subscale == "Bureau"
    assert found.unit == "score"
    same = model.drift(credit.frame, credit.frame)
    assert max(s.psi for s in same.subscales) == 0


def test_ten_groups_of_the_old_sample(credit, model):
    """The subscale index from the risks themselves."""
    new = credit.frame[:500]
    found = model.drift(new, credit.frame).subscales[0]
    old_risk, new_risk = (model.predict_proba(X)[:, 1] for X in (credit.frame, new))
    assert 0 <= found.psi < 0.2
    moved = model.drift(credit.frame.filter(pl.Series(old_risk > np.median(old_risk))), credit.frame).subscales[0]
    assert moved.psi > 1  # half of the groups are empty
    assert new_risk.mean() == pytest.approx(found.new_risk)


def test_handing_on(model, credit):
    found = model.drift(credit.frame[:500], credit.frame)
    for like in (pd.DataFrame(), pl.DataFrame()):
        assert list(found.to_frame(like).columns) == ["feature", "psi", "size", "shift"]
        levels = found.to_frame(like, levels=True)
        assert list(levels.columns) == ["feature", "level", "old_share", "new_share", "psi"]
        assert float(levels["psi"].sum()) == pytest.approx(sum(f.psi for f in found.features))
    assert found.to_dict()["features"][0]["feature"] == found.features[0].feature


def test_forms_without_counts_need_the_old_rows(credit):
    model = pr.NonnegativeLogisticRegression(credit.schema.select(["income", "age"])).fit(credit.frame, credit.target)
    counted = model.drift(credit.frame)
    assert (counted.features, counted.risk.psi) == ((), 0.0)
    older = pr.RiskModel(model.form_, msgspec.structs.replace(model.fit_record_, risks=None))
    with pytest.raises(DataError, match="no training counts of feature 'income' to compare with"):
        older.drift(credit.frame)
    found = model.drift(credit.frame[:100], credit.frame)
    assert {f.feature for f in found.features} == {"income", "age"}
    with pytest.raises(DataError, match="a sample has no rows"):
        model.drift(credit.frame[:0], credit.frame)


def test_features_in_pairs_are_counted_by_their_shapes_and_without_shapes_by_a_pair(make_form, every_row):
    """Edges of pairs lie between those of shapes, and divide nothing here; risks are compared with pairs."""
    with_shape = 0
    for seed in range(20):
        form, n = make_form(seed, pairs=True), len(every_row["age"])
        half = {name: values[: n // 2] for name, values in every_row.items()}
        found = drift(form, every_row, half)
        assert {f.feature for f in found.features} == set(form.features)
        for f in found.features:
            shapes = [p.shapes[f.feature] for p in form.parts if f.feature in p.shapes]
            if shapes:
                with_shape += 1
                assert f.levels == say_levels(form.schema.features[f.feature], shapes[0].levels)
        risk = next(s for s in found.subscales if s.subscale == "risk")
        assert risk.new_risk == pytest.approx(form.risk(every_row).mean(), abs=1e-12)
    assert with_shape > 20


def test_levels_are_named_in_words_without_exponents():
    """Large incomes, and codes of many digits, as they stand on the page and in letters."""
    rng = np.random.default_rng(1)
    income = rng.integers(200_000, 9_000_000, 900).astype(float)
    income[:90] = 9_999_999
    frame = pd.DataFrame({"income": income})
    edges, special = (1_250_000.0, 5_000_000.0), (9_999_999,)
    schema = pr.Schema(features={"income": {"edges": edges, "special_values": special, "unit": "EUR"}})
    y = rng.random(900) < 0.5 - income / 3e7
    model = pr.AdditiveRiskModel(schema).fit(frame, y)
    words = (
        "up to 1,250,000 EUR",
        "over 1,250,000, up to 5,000,000 EUR",
        "over 5,000,000 EUR",
        "code 9999999",
        "not given",
    )
    assert model.drift(frame[:500]).features[0].levels == words
    change = pr.diff(model, pr.AdditiveRiskModel(schema).fit(frame[:600], y[:600]))
    assert {move.level for move in change.terms[0].moves} <= set(words)
    labels = ("x <= 1250000", "1250000 < x <= 5000000", "x > 5000000", "= 9999999", "missing")
    assert model.form_.parts[0].shapes["income"].levels.labels == labels
    told = schema.replace(
        features={
            "income": {**msgspec.to_builtins(schema.features["income"]), "reasons": {"9999999": "Income unknown"}}
        }
    )
    assert pr.AdditiveRiskModel(told).fit(frame, y).reasons(frame[:1])


def test_a_model_with_pairs_knows_its_training_rows():
    credit = pr.datasets.make_credit(3000, 3, backend="polars")
    pairs = [("debt_ratio", "savings"), ("bureau_score", "months_employed")]
    model = pr.AdditiveRiskModel(credit.schema, shapes="smooth", pairs=pairs).fit(credit.frame, credit.target)
    assert model.form_.parts[0].pairs
    assert max(f.psi for f in model.drift(credit.frame).features) < 1e-12
    part = model.form_.parts[0]
    shapes = {name: shape for name, shape in part.shapes.items() if name != part.pairs[0].features[0]}
    bare = msgspec.structs.replace(model.form_, parts=(msgspec.structs.replace(part, shapes=shapes),))
    found = drift(bare, credit.frame)
    assert max(f.psi for f in found.features) < 1e-12
    assert part.pairs[0].features[0] in {f.feature for f in found.features}


# ---- performance


def test_performance_then_and_now(model, credit):
    rng = np.random.default_rng(2)
    new = pr.datasets.make_credit(1500, 11, backend="polars")
    y = np.where(rng.random(1500) < 0.2, 1 - new.target, new.target)  # outcomes that the model foresees less well
    found = model.drift(new.frame, credit.frame, y=y, old_y=credit.target)
    for performance, frame, outcome in (
        (found.new_performance, new.frame, y),
        (found.old_performance, credit.frame, credit.target),
    ):
        expected = pr.evaluate(model.form_.risk(frame), None, outcome)
        assert performance.rows == len(outcome)
        assert vars(performance.auc) == pytest.approx(vars(expected["auc"]), abs=1e-12)
        assert vars(performance.base_rate) == pytest.approx(vars(expected.base_rate))
        assert performance.mean_risk == pytest.approx(expected.mean_risk)
        assert performance.gap.estimate == pytest.approx(expected["gap"].estimate)
    change = found.auc_change
    assert change.estimate == found.new_performance.auc.estimate - found.old_performance.auc.estimate
    assert change.high < 0
    apart = newcombe(found.new_performance.gap, found.old_performance.gap)
    assert found.gap_change == apart
    assert found.risk.new_risk == found.new_risk == pytest.approx(model.form_.risk(new.frame).mean())
    assert "mean risk" in repr(found)


def test_outcomes_may_come_late_and_batch_by_batch(model, credit):
    y = credit.target.astype(float)
    y[:1000] = np.nan
    whole = model.drift(credit.frame, y=y)
    assert whole.new_performance.rows == 3000
    assert whole.old_performance is None
    assert whole.auc_change is None
    assert whole.risk.psi == 0.0
    profile = Profile(model.form_)
    for start in range(0, 4000, 1000):
        profile.add(credit.frame[start : start + 1000], y[start : start + 1000])
    assert drift(model.form_, profile).new_performance == whole.new_performance
    halves = [Profile(model.form_).add(credit.frame[at : at + 2000], y[at : at + 2000]) for at in (0, 2000)]
    assert drift(model.form_, halves[0] + halves[1]).new_performance == whole.new_performance
    assert model.drift(credit.frame).new_performance is None
    assert model.drift(credit.frame, y=np.full(4000, np.nan)).new_performance is None


def test_outcomes_that_do_not_fit_are_refused(model, credit):
    with pytest.raises(DataError, match="3 outcomes for 4,000 rows"):
        model.drift(credit.frame, y=[0, 1, 0])
    with pytest.raises(DataError, match=r"row 0 \(counting from 0\) has an outcome that the model does not know"):
        model.drift(credit.frame, y=["late"] * 4000)
