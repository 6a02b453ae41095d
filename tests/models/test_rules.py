"""Rules for empty and special fields in the models: defaults, errors, warnings, files. Bounds: tests/property."""

from __future__ import annotations

import warnings

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning, SchemaError

N = 900
LATE = {"direction": "increasing", "special_values": (-9,)}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"late": rng.integers(0, 6, N).astype(float), "age": rng.normal(40, 9, N)})
    y = (rng.random(N) < 1 / (1 + np.exp(2 - X["late"]))).astype(int).to_numpy(copy=True)
    for value, rate in ((np.nan, 0.02), (-9.0, 0.01)):
        at = rng.random(N) < 0.1
        X.loc[at, "late"] = value
        y[at] = rng.random(at.sum()) < rate
    return X, y


def schema(**late):
    return pr.Schema(features={"late": {**LATE, **late}, "age": {}})


def scores(model, name="late"):
    return np.array(model.form_.parts[0].shapes[name].scores)


def test_the_form_keeps_the_rule_that_held(rows):
    for name, rule in (
        ("ARM1", "not_better"),
        ("SmoothARM1", "not_better"),
        ("ARM2", "not_better"),
        ("NNLR", "not_better"),
    ):
        assert pr.make_classifier(name, schema()).fit(*rows).form_.schema.features["late"].missing == rule
    for name in ("ARM1", "NNLR", "ARM2", "MixLinARM1"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            model = pr.make_classifier(name, schema(), paper=True).fit(*rows)
        assert model.form_.schema.features["late"].missing == "free"
        assert "empty fields and codes" not in [check.name for check in model.certify().checks]


def test_trees_keep_no_rule_and_say_so(rows):
    pytest.importorskip("xgboost")
    X, y = rows
    model = pr.make_classifier("MonoXGB", schema(special_values=())).fit(X[X["late"] != -9], y[X["late"] != -9])
    assert model.form_.schema.features["late"].missing == "free"
    (missing,) = [one for one in model.certify().outside if (one.feature, one.level) == ("late", "missing")]
    assert missing.rule == "free"
    assert 0 < missing.below_risk <= 1


def test_not_better_is_the_bounded_optimum(rows):
    """The bound holds, and its level is one with the best bin: the fit of rows where they are the same level."""
    X, y = rows
    model = pr.AdditiveRiskModel(schema(special_rules={"-9": "free"}, edges=(0.5, 1.5, 2.5, 3.5, 4.5))).fit(X, y)
    own = scores(model)
    assert own[-1] == own[0] < own[1]
    assert own[-2] < own[0]
    as_zero = X.assign(late=X["late"].fillna(0.0))
    same = pr.AdditiveRiskModel(schema(special_rules={"-9": "free"}, edges=(0.5, 1.5, 2.5, 3.5, 4.5))).fit(as_zero, y)
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(as_zero), atol=1e-6)


def test_a_level_that_is_worse_by_itself_is_left_alone(rows):
    X, y = rows
    y = np.where(X["late"].isna(), 1 - y, y)
    for name in ("ARM1", "DirectARM1", "SmoothARM1"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            held, free = (pr.make_classifier(name, schema(), rules=r).fit(X, y) for r in ("schema", "free"))
        np.testing.assert_array_equal(held.predict_proba(X), free.predict_proba(X))


def test_levels_that_training_never_saw_keep_rules_too(rows):
    X, y = rows
    known = X["late"].notna()
    worst = pr.AdditiveRiskModel(schema(missing="worst")).fit(X[known], y[known])
    assert scores(worst)[-1] == scores(worst)[: worst.form_.parts[0].shapes["late"].levels.n_ordered].max()
    for rule in ("not_better", "neutral"):
        assert scores(pr.AdditiveRiskModel(schema(missing=rule)).fit(X[known], y[known]))[-1] == 0.0


# ---- refused


def test_a_forbidden_field_is_refused_at_fit_with_its_count(rows):
    X, y = rows
    count = int(X["late"].isna().sum())
    with pytest.raises(SchemaError, match=f"feature 'late' is missing in {count} rows, and the schema says missing"):
        pr.AdditiveRiskModel(schema(missing="error")).fit(X, y)


def test_a_forbidden_field_is_refused_in_batches(rows, tmp_path):
    X, _ = rows
    X = pd.concat([X[X["late"].notna()], X[X["late"].isna()]])
    pl.DataFrame(X.assign(bad=1)).write_parquet(tmp_path / "rows.parquet")
    with pytest.raises((DataError, SchemaError), match=r"feature 'late'.* missing.*schema says missing = 'error'"):
        pr.AdditiveRiskModel(schema(missing="error")).fit(pr.rows.parquet(tmp_path / "rows.parquet"), "bad")


@pytest.mark.parametrize("name", ["ARM1", "SmoothARM1", "NNLR", "MixARM1", "XGB"])
def test_a_forbidden_field_is_refused_at_scoring_with_its_row(rows, name):
    X, y = rows
    known = X["late"].notna()
    if name == "XGB":
        pytest.importorskip("xgboost")
    model = pr.make_classifier(name, schema(missing="error")).fit(X[known], y[known])
    new = pd.DataFrame({"late": [1.0, 2.0, np.nan], "age": [30.0, 40.0, np.nan]})
    said = "feature 'late', row 2: the value is missing, and the schema says missing = 'error'"
    for call in (model.predict_proba, model.predict, model.drift):
        with pytest.raises(DataError, match=said):
            call(new)
    with pytest.raises(DataError, match="feature 'late', row 0: the value is missing"):
        model.predict_proba({"late": None, "age": 30.0})
    assert model.predict_proba({"late": 1.0, "age": None}).shape == (1, 2)
    if name not in ("XGB", "NNLR"):
        with pytest.raises(DataError, match=said):
            model.reasons(new)


# ---- told


def told(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(one.message) for one in caught if "Empty or special" in str(one.message)]


@pytest.mark.parametrize("name", ["ARM1", "SmoothARM1", "BandARM1", "ARM2", "MixARM1", "NNLR"])
def test_a_free_level_that_beats_all_measured_ones_is_told_once(rows, name):
    X, y = rows
    at = X["late"] == -9
    (said,) = told(pr.make_classifier(name, schema()), X, y)
    assert f"'late' = -9 ({at.sum()} rows, {y[at].mean():.1%} bad)" in said
    assert "missing (" not in said.partition("Rules such as")[0]


def test_what_is_stated_or_kept_is_not_told(rows):
    X, y = rows
    for known in (schema(special_rules={"-9": "free"}), schema(special_rules={"-9": "not_better"})):
        assert not told(pr.AdditiveRiskModel(known), X, y)
    assert not told(pr.AdditiveRiskModel(schema(), rules="free"), X, y)
    assert not told(pr.AdditiveRiskModel(), X, y)


def test_the_rate_is_that_of_the_bad_outcome(rows):
    X, y = rows
    known = msgspec.structs.replace(schema(direction="decreasing"), adverse="negative")
    (said,) = told(pr.AdditiveRiskModel(known), X, 1 - y)
    assert f"{y[X['late'] == -9].mean():.1%} bad" in said


# ---- elsewhere


def test_pairs_need_a_direction_to_hold_a_level(rows):
    X, y = rows
    known = pr.Schema(features={"late": {"missing": "not_better", "special_values": (-9,)}, "age": {}})
    with pytest.raises(DataError, match="feature 'late' has a rule 'not_better' or 'worst' but no direction"):
        pr.AdditiveRiskModel(known, shapes="smooth", pairs=[("late", "age")]).fit(X, y)
    assert pr.AdditiveRiskModel(known, shapes="smooth", pairs=3).fit(X, y).form_.parts[0].pairs == ()


@pytest.mark.parametrize("rule", ["not_better", "worst", "neutral"])
@pytest.mark.parametrize("direction", ["increasing", "none"])
def test_refits_keep_the_rules(rows, rule, direction):
    X, y = rows
    model = pr.AdditiveRiskModel(schema(missing=rule, direction=direction)).fit(X, y)
    for form in pr.bootstrap(model, X, y, n=5).forms:
        assert pr.RiskModel(form).certify().valid


def test_reasons_go_by_the_outcome_that_the_schema_calls_adverse():
    german = pr.datasets.load("german")
    model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    found = model.reasons(german.frame[:5])
    assert found.adverse == "negative"
    best = model.explain(german.frame[:5], reference="best")
    np.testing.assert_array_less(0, found.costs[:, 0])
    for i in range(5):
        lost = dict(zip(best.names, best.contributions[i], strict=True))
        assert [-lost[name] for name in found.named(i)] == pytest.approx(found.costs[i, : len(found.named(i))])
    assert model.what_if(german.frame[1:2], 0.6).adverse == "negative"
    np.testing.assert_array_equal(model.decide(german.frame[:5]).refused, found.risk < 0.6)
    # The same probabilities, read as those of the bad outcome: what was for an applicant is now against them.
    turned = pr.RiskModel(msgspec.structs.replace(model.form_, schema=german.schema.replace(adverse="positive")))
    other = turned.reasons(german.frame[:5])
    assert other.adverse == "positive"
    np.testing.assert_array_equal(other.risk, found.risk)
    assert all(set(other.named(i)) != set(found.named(i)) for i in range(5))
    np.testing.assert_array_equal(turned.decide(german.frame[:5]).refused, found.risk >= 0.6)
    assert turned.what_if(german.frame[:1], 0.6).adverse == "positive"


def test_a_file_keeps_rules_and_certificate(rows, tmp_path):
    model = pr.AdditiveRiskModel(schema(special_rules={-9: "worst"})).fit(*rows)
    model.save(tmp_path / "m.json")
    loaded = pr.load(tmp_path / "m.json")
    assert loaded.form_ == model.form_
    found = loaded.certify()
    assert found.valid
    assert {(one.level, one.rule) for one in found.outside if one.feature == "late"} == {
        ("= -9", "worst"),
        ("missing", "not_better"),
    }
    assert "empty fields and codes: " in str(found)
    assert found.to_dict()["outside"][0]["feature"] == "late"
