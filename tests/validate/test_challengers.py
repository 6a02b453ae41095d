"""Challengers: the figures of a loop over the same folds, and no model's refusal ends the comparison."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import plainrisk as pr
from plainrisk.errors import DataError, MissingExtraError
from plainrisk.intervals import Range
from plainrisk.validate import challengers as module
from plainrisk.validate.challengers import Challengers, Line, Rival, RivalModel

N = 400
SCHEMA = pr.Schema(
    features={
        "late": {"direction": "increasing", "special_values": [-9]},
        "income": {},
        "job": {"kind": "categorical"},
    },
    target="end",
    positive="bad",
)
GOOD = pr.Schema(features=SCHEMA.features, target="end", positive="good", adverse="negative")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    late = np.where(rng.random(N) < 0.1, -9.0, rng.integers(0, 5, N))
    income = np.where(rng.random(N) < 0.1, np.nan, rng.normal(30, 8, N))
    job = rng.choice(["clerk", "cook", "driver"], N)
    score = np.where(late < 0, 1.0, late) - 2 + (job == "cook")
    y = np.where(rng.random(N) < 1 / (1 + np.exp(-score)), "bad", "good")
    return pl.DataFrame({"late": late, "income": income, "job": job}), y


@pytest.fixture
def only(monkeypatch):
    """Leave only some challengers, or other ones."""

    def choose(**rivals):
        monkeypatch.setattr(module, "RIVALS", {n: module.RIVALS.get(n) or r for n, r in rivals.items()})

    return choose


@pytest.fixture
def logistic(monkeypatch):
    monkeypatch.setattr(module, "RIVALS", {"logistic regression": module.RIVALS["logistic regression"]})


def plain_matrix(X):
    jobs = np.column_stack([X["job"] == job for job in ("clerk", "cook", "driver")])
    return np.column_stack([X["late"], X["income"], jobs]).astype(float)


def held_out(model, X, y, splits, weight=None, name="sample_weight"):
    risk = np.full(len(y), np.nan)
    for train, test in splits:
        own = {} if weight is None else {name: weight[train]}
        risk[test] = clone(model).fit(X[train], y[train], **own).predict_proba(X[test])[:, 1]
    return risk


def assert_figures(line, bad, risk, weight=None):
    assert line.note == ""
    assert line.figures["auc"] == pytest.approx(roc_auc_score(bad, risk, sample_weight=weight), abs=1e-12)
    assert line.figures["log_loss"] == pytest.approx(log_loss(bad, risk, sample_weight=weight), abs=1e-9)
    assert line.figures["brier"] == pytest.approx(brier_score_loss(bad, risk, sample_weight=weight), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_figures_are_those_of_the_challengers_on_the_same_folds(data, only, weighted):
    xgboost = pytest.importorskip("xgboost")
    only(**{"xgboost": None, "logistic regression": None})
    (X, y), model = data, pr.AdditiveRiskModel(SCHEMA)
    weight = np.random.default_rng(0).uniform(0.5, 2, N) if weighted else None
    found = pr.challengers({"ARM1": model}, X, y, cv=3, seed=5, sample_weight=weight)
    bad, matrix = (y == "bad").astype(int), plain_matrix(X)
    splits = list(StratifiedKFold(3, shuffle=True, random_state=5).split(bad, bad))
    steps = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), LogisticRegression(max_iter=1000))
    risks = {
        "ARM1": pr.cross_validate(model, X, y, cv=3, seed=5, sample_weight=weight).risk,
        "xgboost": held_out(xgboost.XGBClassifier(), matrix, bad, splits, weight).astype(float),
        "logistic regression": held_out(steps, matrix, bad, splits, weight, "logisticregression__sample_weight"),
    }
    assert [line.name for line in found] == list(risks)
    for line in found:
        assert_figures(line, bad, risks[line.name], weight)
        assert line.seconds > 0
    for line in found.rivals:
        direct = pr.evaluate(risks[line.name], None, bad, against=risks["ARM1"], sample_weight=weight, seed=5)
        for name, gap in line.differences.items():
            np.testing.assert_allclose(list(vars(gap).values()), list(vars(direct.differences[name]).values()))
    again = pr.challengers({"ARM1": model}, X, y, cv=3, seed=5, sample_weight=weight)
    without = [{**line.to_dict(), "seconds": 0} for line in found]
    assert without == [{**line.to_dict(), "seconds": 0} for line in again]


@pytest.mark.filterwarnings("ignore:Missing values detected")
def test_ebm_reads_numbers_and_labels_as_they_are(data, only):
    glassbox = pytest.importorskip("interpret.glassbox")
    only(EBM=None)
    X, y = data[0].with_columns(job=pl.when(pl.col("late") == 4).then(None).otherwise("job")), data[1]
    found = pr.challengers(pr.AdditiveRiskModel(SCHEMA), X, y, cv=2)["EBM"]
    bad = (y == "bad").astype(int)
    splits = StratifiedKFold(2, shuffle=True, random_state=0).split(bad, bad)
    ebm = glassbox.ExplainableBoostingClassifier(feature_types=["continuous", "continuous", "nominal"])
    assert_figures(found, bad, held_out(ebm, X.to_pandas().to_numpy(dtype=object), bad, splits))


def test_groups_stay_together_and_the_reader_is_told(data, logistic):
    X, y = data
    groups, bad = np.arange(N) // 4, (y == "bad").astype(int)
    found = pr.challengers(pr.AdditiveRiskModel(SCHEMA), X, y, cv=3, groups=groups)
    splits = StratifiedGroupKFold(3, shuffle=True, random_state=0).split(bad, bad, groups)
    rival = module.RIVALS["logistic regression"].build(SCHEMA)
    assert_figures(found["logistic regression"], bad, held_out(rival.estimator, plain_matrix(X), bad, splits))
    assert "too short" in repr(found)
    assert found.to_dict()["notes"] == list(found.notes)


def test_times_hold_out_later_rows_alone(data, logistic):
    X, y = data
    found = pr.challengers(pr.AdditiveRiskModel(SCHEMA), X, y, cv=3, time=np.arange(N) // 100)
    assert (found.rows, found.folds) == (300, 3)
    assert found.rivals[0].note == ""


class Raises(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no\nconvergence " + "x" * 400)

    def predict_proba(self, X):
        raise AssertionError


class Dumb(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.where(np.arange(len(X))[:, None] > 0, np.nan, [[0.5, 0.5]])


def refuses(_):
    raise OSError("a library cannot be loaded")


def test_a_challenger_that_raises_is_a_line(data, only):
    told = []
    only(
        raises=Rival("", "", lambda schema: RivalModel(Raises(), schema)),
        refuses=Rival("", "", refuses),
        dumb=Rival("", "", lambda schema: RivalModel(Dumb(), schema)),
        **{"logistic regression": None},
    )
    found = pr.challengers(pr.AdditiveRiskModel(SCHEMA), *data, cv=2, progress=lambda *step: told.append(step))
    assert found["raises"].note.startswith("not fitted: no convergence xx")
    assert len(found["raises"].note) < 260
    assert found["refuses"].note == "not fitted: a library cannot be loaded"
    assert found["dumb"].note == "not compared: some of its risks are not numbers"
    assert found["logistic regression"].note == ""
    assert "raises: not fitted: no convergence" in repr(found)
    assert [step for step in told if step[0] == "logistic regression"] == [
        ("logistic regression", 1, 2),
        ("logistic regression", 2, 2),
    ]
    frame = found.to_frame()
    assert frame["note"].tolist()[1] == found["raises"].note
    assert math.isnan(frame["auc"][1])


def test_one_of_ours_that_raises_is_a_line(data, logistic):
    grouped = pr.Schema(
        features={"late": {}, "income": {}, "job": {"kind": "categorical", "rare": 0.2}}, positive="bad"
    )
    models = {"ARM1": pr.AdditiveRiskModel(grouped), "XGB": pr.make_classifier("XGB", grouped)}
    found = pr.challengers(models, *data, cv=2)
    assert found["XGB"].note.startswith("not fitted: ")
    assert found["logistic regression"].differences
    last = pr.challengers(dict(reversed(models.items())), *data, cv=2)
    assert last["logistic regression"].figures
    assert not last["logistic regression"].differences
    assert last.verdict.startswith("XGB has no figures to compare with, not fitted: ")


@pytest.mark.parametrize(("package", "name"), [("xgboost", "xgboost"), ("interpret.glassbox", "EBM")])
def test_a_package_that_is_missing_is_said_with_how_to_get_it(data, only, monkeypatch, package, name):
    only(**{name: None, "logistic regression": None})
    monkeypatch.setitem(sys.modules, package, None)
    found = pr.challengers(pr.AdditiveRiskModel(SCHEMA), *data, cv=2)
    assert found[name].note.startswith("not installed: pip install ")
    assert found["logistic regression"].figures


def test_nobody_to_compare_with(data, only):
    only(refuses=Rival("", "", refuses))
    assert pr.challengers(pr.AdditiveRiskModel(SCHEMA), *data, cv=2).verdict == "No challenger could be compared."


def test_a_model_does_not_differ_from_its_copy(data, only):
    model = pr.AdditiveRiskModel(SCHEMA)
    only(copy=Rival("", "", lambda schema: model))
    found = pr.challengers({"ARM1": model, "twin": clone(model)}, *data, cv=3)
    for name in ("copy", "twin"):
        for gap in found[name].differences.values():
            assert gap.low <= 0 <= gap.high
    assert found.verdict == "No challenger is ahead beyond chance."


def test_arrays_without_names_and_outcomes_in_the_frame(data, logistic):
    X, y = data
    array = X.select("late", "income").to_numpy()
    found = pr.challengers(pr.AdditiveRiskModel(), array, y, cv=2)
    assert found["logistic regression"].note == ""
    whole = X.with_columns(end=pl.Series(y))
    one, two = (
        pr.challengers(pr.AdditiveRiskModel(SCHEMA), *rows, cv=2)["logistic regression"]
        for rows in ((X, y), (whole, None))
    )
    assert one.figures == two.figures


def test_risks_of_the_other_outcome_are_not_compared(data, logistic):
    X, y = data
    models = {"ARM1": pr.AdditiveRiskModel(SCHEMA), "other": pr.AdditiveRiskModel(GOOD)}
    found = pr.challengers(models, X, y, cv=2)
    assert found["other"].note.startswith("not compared: its positive outcome is the other one")
    assert found["logistic regression"].differences


def test_json_and_text(data, logistic):
    found = pr.challengers(pr.AdditiveRiskModel(SCHEMA), *data, cv=2)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["verdict"] == found.verdict
    assert plain["rivals"][0]["figures"] == found.rivals[0].figures
    assert repr(found).startswith("Challengers: 400 held-out rows, 2 folds")
    assert repr(found).endswith(found.verdict)


def compared(**gaps):
    first = Line("ARM1", "", {"auc": 0.7}, {}, 0.1)
    rivals = [
        Line(name, "", {"auc": 0.7 + auc.estimate}, {"auc": auc, "log_loss": loss, "brier": loss}, 0.1)
        for name, (auc, loss) in gaps.items()
    ]
    return Challengers((first,), tuple(rivals), 100, 2).verdict


def test_the_verdict_names_who_is_ahead():
    up, none, down = Range(0.012, 0.006, 0.018), Range(0.001, -0.003, 0.005), Range(-0.012, -0.018, -0.006)
    assert compared(xgboost=(up, none)) == "xgboost is ahead: its AUC is higher by 0.012 (0.006 to 0.018)."
    both = compared(EBM=(up, down), xgboost=(Range(0.02, 0.01, 0.03), up))
    assert both == (
        "xgboost is ahead: its AUC is higher by 0.020 (0.010 to 0.030), but its log loss is higher by 0.012 "
        "(0.006 to 0.018); EBM is ahead: its AUC is higher by 0.012 (0.006 to 0.018)."
    )
    assert compared(EBM=(none, down)) == "EBM is ahead: its log loss is lower by 0.012 (0.006 to 0.018)."
    assert compared(EBM=(none, none), xgboost=(down, up)) == "No challenger is ahead beyond chance."
    assert compared(EBM=(down, up)) == (
        "ARM1 is ahead: the nearest challenger is EBM, and its AUC is lower by 0.012 (0.006 to 0.018)."
    )
    infinite = Range(-math.inf, math.nan, math.nan)
    assert compared(EBM=(none, infinite)) == "EBM is ahead: its log loss is finite."


def test_what_can_not_be_compared_at_all_is_an_error(data, logistic):
    X, y = data
    model = pr.AdditiveRiskModel(SCHEMA)
    with pytest.raises(DataError, match="some sample_weight is 0"):
        pr.challengers(model, X, y, sample_weight=np.arange(N))
    with pytest.raises(DataError, match="cv must be 2 folds or more"):
        pr.challengers(model, X, y, cv=1)
    with pytest.raises(DataError, match="challengers: model"):
        pr.challengers({}, X, y)
    with pytest.raises(DataError, match="challengers: model must be a classifier with fit and predict_proba"):
        pr.challengers("ARM1", X, y)


def test_an_import_error_of_ours_is_told_in_its_own_words(data, logistic, monkeypatch):
    def fails(*_):
        raise MissingExtraError("xgboost is needed")

    monkeypatch.setattr(pr.BoostedRiskModel, "_fit", fails)
    found = pr.challengers({"XGB": pr.BoostedRiskModel(SCHEMA)}, *data, cv=2)
    assert found["XGB"].note == "not fitted: xgboost is needed"
