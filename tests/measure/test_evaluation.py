"""Every figure against an independent one, and its interval against what many samples show."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import ks_2samp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import plainrisk as pr
from plainrisk.errors import DataError
from plainrisk.intervals import Placement, normal_quantile, wilson
from plainrisk.measure.evaluation import METRICS, evaluate_risk

Z = normal_quantile(0.95)


def sample(n=600, seed=0):
    """Outcomes, a calibrated risk, and a noisy copy of it."""
    rng = np.random.default_rng(seed)
    risk = rng.beta(1.5, 4, n)
    noisy = 1 / (1 + np.exp(-(np.log(risk / (1 - risk)) + rng.normal(0, 0.7, n))))
    return (rng.random(n) < risk).astype(int), risk, noisy


def line(y, risk, weight=None):
    """Slope and intercept by scikit-learn, without a penalty."""
    logit = np.log(risk / (1 - risk))[:, None]
    fitted = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(logit, y, weight)
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_figures_are_those_of_other_libraries(weighted):
    y, risk, _ = sample()
    weight = np.random.default_rng(3).uniform(0.5, 2, len(y)) if weighted else None
    found = evaluate_risk(y, risk, sample_weight=weight)
    options = {"sample_weight": weight}
    slope, intercept = line(y, risk, weight)
    expected = {
        "auc": roc_auc_score(y, risk, **options),
        "gini": 2 * roc_auc_score(y, risk, **options) - 1,
        "brier": brier_score_loss(y, risk, **options),
        "log_loss": log_loss(y, risk, **options),
        "ece": pr.metrics.expected_calibration_error(y, risk, weight),
        "gap": np.average(risk - y, weights=weight),
    }
    expected["ks"] = pr.metrics.ks_statistic(y, risk, weight)
    if not weighted:
        assert expected["ks"] == pytest.approx(ks_2samp(risk[y == 1], risk[y == 0]).statistic, abs=1e-12)
    for name, value in expected.items():
        assert found[name].estimate == pytest.approx(value, abs=1e-12), name
        assert found[name].low < found[name].estimate < found[name].high
    assert (found["slope"].estimate, found["intercept"].estimate) == pytest.approx((slope, intercept), abs=1e-4)
    assert tuple(found.figures) == METRICS
    assert found.mean_risk == pytest.approx(np.average(risk, weights=weight))
    assert found.base_rate.estimate == pytest.approx(np.average(y, weights=weight))


def test_intervals_are_as_wide_as_figures_vary():
    """New samples of the same population: the standard deviation of each figure is that of its interval."""
    found = evaluate_risk(*sample(600, 0)[:2])
    many = [sample(600, seed)[:2] for seed in range(1, 201)]
    lines = np.array([line(*one) for one in many])
    figures = {
        "auc": [roc_auc_score(*one) for one in many],
        "ks": [pr.metrics.ks_statistic(*one) for one in many],
        "brier": [brier_score_loss(*one) for one in many],
        "log_loss": [log_loss(*one) for one in many],
        "gap": [np.mean(risk - y) for y, risk in many],
        "slope": lines[:, 0],
        "intercept": lines[:, 1],
    }
    for name, values in figures.items():
        half = (found[name].high - found[name].low) / 2
        assert half == pytest.approx(Z * np.std(values, ddof=1), rel=0.3), name


def test_two_models_are_compared_on_the_same_rows():
    y, risk, noisy = sample()
    found = evaluate_risk(y, risk, against=noisy)
    alone, other = evaluate_risk(y, risk), evaluate_risk(y, noisy)
    assert found.figures == alone.figures
    assert found.against.figures == other.figures
    gap, p = Placement.of(y == 1, risk).less(Placement.of(y == 1, noisy), Z)
    assert (found.differences["auc"], found.p_value) == (gap, p)
    for name in METRICS:
        difference = found.differences[name]
        assert difference.estimate == pytest.approx(alone[name].estimate - other[name].estimate)
        paired = difference.high - difference.low
        apart = math.hypot(alone[name].high - alone[name].low, other[name].high - other[name].low)
        assert paired < 0.9 * apart, f"{name}: rows that both models see cancel"
    same = evaluate_risk(y, risk, against=risk)
    assert same.p_value == 1.0
    assert all(r.estimate == r.low == r.high == 0 for r in same.differences.values())


def test_the_calibration_table():
    y, risk, _ = sample(1000)
    table = evaluate_risk(y, risk, level=0.9).calibration
    assert table.count.tolist() == [100] * 10
    for k, rows in enumerate(np.split(np.argsort(risk), 10)):
        expected = wilson(int(y[rows].sum()), 100, normal_quantile(0.9))
        assert table.predicted[k] == pytest.approx(risk[rows].mean())
        found = (table.observed[k], table.low[k], table.high[k])
        assert found == pytest.approx(tuple(vars(expected).values()))


def test_an_infinite_log_loss_names_its_rows():
    y, risk, _ = sample(100)
    risk[[7, 40]], y[[7, 40]] = [0.0, 1.0], [1, 0]
    risk[3], y[3] = 0.0, 0
    found = evaluate_risk(y, risk)
    assert found["log_loss"].estimate == math.inf
    assert math.isnan(found["log_loss"].high)
    assert found.certain_and_wrong == (7, 40)
    assert "The log loss is infinite: 2 rows have a risk of 0 or 1 that is wrong (counting from 0: 7, 40)" in repr(
        found
    )
    assert "leave out 3 rows" in repr(found)
    both = evaluate_risk(y, np.full(100, 0.3), against=risk)
    assert both.differences["log_loss"].estimate == -math.inf
    weight = np.ones(100)
    weight[:7] = 0
    assert evaluate_risk(y, risk, sample_weight=weight).certain_and_wrong == (7, 40), "rows as the caller counts them"


def test_groups_are_evaluations_of_their_rows():
    y, risk, noisy = sample()
    month = np.array(["2024-01", "2024-02", None], dtype=object)[np.arange(600) % 3]
    month[5] = "2024-03"
    found = evaluate_risk(y, risk, against=noisy, by=month)
    assert list(found.groups) == ["2024-01", "2024-02", "2024-03", "(no group)"]
    assert sum(group.rows for group in found.groups.values()) == 600
    rows = np.flatnonzero(month == "2024-01")
    alone = evaluate_risk(y[rows], risk[rows], against=noisy[rows])
    assert found.groups["2024-01"].figures == alone.figures
    assert found.groups["2024-01"].differences == alone.differences
    assert {name: group.small for name, group in found.groups.items()}["2024-03"]
    assert math.isnan(found.groups["2024-03"]["auc"].estimate)
    assert "2024-03" in repr(found)
    assert "small" in repr(found)


def test_the_same_seed_gives_the_same_figures_and_another_nearly():
    y, risk, _ = sample()
    assert evaluate_risk(y, risk).to_dict() == evaluate_risk(y, risk).to_dict()
    other = evaluate_risk(y, risk, seed=1)
    assert other["ks"] != evaluate_risk(y, risk)["ks"]
    assert other["auc"] == evaluate_risk(y, risk)["auc"]


def test_handing_on():
    y, risk, noisy = sample()
    found = evaluate_risk(y, risk, against=noisy, by=np.arange(600) % 2)
    kept = json.loads(json.dumps(found.to_dict()))
    assert kept["figures"]["auc"]["low"] == found["auc"].low
    assert kept["groups"]["1"]["rows"] == 300
    assert kept["against"]["figures"]["ks"]["estimate"] == found.against["ks"].estimate
    frame = found.to_frame()
    assert list(frame.columns)[:5] == ["group", "metric", "value", "low", "high"]
    assert "DeLong's test of equal AUC: p = " in repr(found)
    pytest.importorskip("matplotlib").use("Agg")
    assert found.plot().get_xlabel() == "predicted risk"


def test_one_outcome_or_one_risk():
    found = evaluate_risk([0] * 40, np.linspace(0, 0.5, 40))
    assert math.isnan(found["auc"].estimate)
    assert math.isnan(found["ks"].estimate)
    assert found["brier"].low < found["brier"].estimate
    assert found.small
    flat = evaluate_risk([0, 1] * 20, np.full(40, 0.5))
    assert flat["auc"].estimate == 0.5
    assert math.isnan(flat["slope"].estimate)
    assert math.isnan(evaluate_risk([0] * 20 + [1] * 20, np.linspace(0.1, 0.9, 40))["slope"].estimate)


# ---- models


@pytest.fixture(scope="module")
def credit():
    made = pr.datasets.make_credit(1500, seed=4, backend="polars")
    y = np.where(made.target == 1, "late", "paid")
    schema = pr.Schema(features=made.schema.features, subscales=made.schema.subscales, target="end", positive="late")
    X = made.frame.with_columns(pl.Series("end", y), pl.Series("month", np.arange(1500) % 4 + 1))
    model = pr.AdditiveRiskModel(schema).fit(X[:1000], y[:1000])
    return X[1000:], y[1000:], model


def test_a_model_its_file_and_its_risks_are_evaluated_alike(credit, tmp_path):
    X, y, model = credit
    model.save(tmp_path / "m.json")
    found = pr.evaluate(model, X, y)
    risk = model.form_.risk(X)
    plain = evaluate_risk(y == "late", risk).to_dict()
    assert found.to_dict() == plain
    assert pr.evaluate(pr.load(tmp_path / "m.json"), X.to_pandas(), y.tolist()).to_dict() == plain
    assert pr.evaluate(model, X).to_dict() == plain, "the schema names the outcome's column"
    assert pr.evaluate(risk, None, y == "late").to_dict() == plain
    assert pr.evaluate(model, X, against=risk).p_value == 1.0


def test_by_a_column_of_the_rows(credit):
    X, y, model = credit
    found = pr.evaluate(model, X, y, by="month")
    assert list(found.groups) == ["1", "2", "3", "4"]
    with pytest.raises(DataError, match=r"by: there is no column 'mnth' in the rows\. Did you mean 'month'"):
        pr.evaluate(model, X, y, by="mnth")


def test_any_classifier_can_be_compared_with(credit):
    X, y, model = credit
    numbers = X.select(pl.col(pl.Float64, pl.Int64)).fill_null(0).to_pandas()
    other = DecisionTreeClassifier(max_depth=4, random_state=0).fit(numbers, y != "late")
    risk = other.predict_proba(numbers)[:, 0]
    assert pr.evaluate(model, X, y, against=risk).against["auc"].estimate == pytest.approx(
        roc_auc_score(y == "late", risk)
    )
    with pytest.raises(DataError, match="the two models predict different outcomes"):
        pr.evaluate(model, X, y, against=other)
    found = pr.evaluate(other, numbers, y != "late")
    assert found["auc"].estimate == pytest.approx(roc_auc_score(y == "late", risk))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda X, y, m: pr.evaluate(m, X, np.where(y == "late", "gone", y)),
            "an outcome that the model does not know",
        ),
        (lambda X, y, m: pr.evaluate(m, X, [None, *y[1:]]), r"row 0 \(counting from 0\) has no outcome"),
        (lambda X, y, m: pr.evaluate(m, X, y[:-1]), "y_prob: has 500 rows where y_true has 499"),
        (lambda X, y, m: pr.evaluate(m, X, y, against=[0.5]), "y_prob: has 1 rows"),
        (lambda X, y, m: pr.evaluate(m, X, y, by=[1, 2]), "by: has 2 rows where y_true has 500"),
        (lambda X, y, m: pr.evaluate(m, X, y, level=1), "level must be"),
        (lambda X, y, m: pr.evaluate(m, X, y, seed=-1), "seed must be a whole number of at least 0"),
        (lambda X, y, m: pr.evaluate(m, None, y), "a model needs the rows X"),
        (lambda X, y, m: pr.evaluate(m, X.drop("end")), "y: there is no column 'end' in the rows"),
        (lambda X, y, m: pr.evaluate(m.predict_proba(X)[:, 1], X), "give the outcomes y"),
    ],
)
def test_what_makes_no_sense_is_refused(credit, call, message):
    with pytest.raises(DataError, match=message):
        call(*credit)


def test_outcomes_may_be_truth_values_where_the_model_knows_numbers():
    frame = pd.DataFrame({"x": np.arange(60) % 7})
    y = (np.arange(60) % 7 > 3).astype(int)
    y[::5] = 1 - y[::5]
    model = pr.AdditiveRiskModel().fit(frame, y)
    assert pr.evaluate(model, frame, y == 1).to_dict() == pr.evaluate(model, frame, y).to_dict()
