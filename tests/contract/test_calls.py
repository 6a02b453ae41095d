"""Many calls beside LogisticRegression: the same figures under any labels, or a refusal."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import plainrisk as pr
from plainrisk.errors import PlainriskError

pytestmark = pytest.mark.filterwarnings("ignore:The outcomes .* do not say", "ignore:.*in no subscale")

# (the good outcome, the bad one): sorted both ways, of every type.
LABELS = {
    "0, 1": (0, 1),
    "1, 0": (1, 0),
    "1, 2": (1, 2),
    "2, 1": (2, 1),
    "-1.0, 1.0": (-1.0, 1.0),
    "False, True": (False, True),
    "True, False": (True, False),
    "Good, Bad": ("Good", "Bad"),
    "a good, bad": ("a good", "bad"),
    "paid, default": ("paid", "default"),
}
SCORERS = ("roc_auc", "neg_log_loss", "accuracy", "balanced_accuracy", "average_precision", "f1", "neg_brier_score")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"debt": rng.normal(size=500), "income": rng.normal(size=500)})
    bad = rng.random(500) < 1 / (1 + np.exp(0.7 - 1.4 * X["debt"] + X["income"]))
    return X, bad.to_numpy()


def ours(positive=None):
    features = {"debt": {"direction": "increasing"}, "income": {"direction": "decreasing"}}
    return pr.AdditiveRiskModel(pr.Schema(features=features, positive=positive))


def asked(call):
    """What a call gives, or with which words it is refused."""
    try:
        return call(), None
    except PlainriskError as error:
        return None, str(error)


def labeled(labels, bad):
    return np.array(labels, dtype=object if isinstance(labels[0], str) else None)[bad.astype(int)]


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of scores that it cannot compute
@pytest.mark.parametrize("kind", LABELS)
def test_scorers_see_what_they_see_of_logistic_regression(rows, kind):
    X, bad = rows
    y = labeled(LABELS[kind], bad)
    if LABELS[kind][1] in ("Bad", "bad", "default"):
        y = y.astype(str)
    asked = (ours(LABELS[kind][1]), y), (LogisticRegression(), y), (ours(1), bad.astype(int))
    scores = [cross_validate(model, X, outcomes, scoring=SCORERS, cv=3) for model, outcomes in asked]
    for scorer in SCORERS:
        found, rival, coded = (one[f"test_{scorer}"] for one in scores)
        assert np.isnan(found).all() == np.isnan(rival).all(), "a score that is refused is refused for both"
        if not np.isnan(rival).all():
            assert np.abs(found - rival).max() < 0.12, (scorer, found, rival)
            if scorer in ("roc_auc", "neg_log_loss", "accuracy", "balanced_accuracy"):  # whichever outcome is asked
                np.testing.assert_allclose(found, coded, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", LABELS)
def test_columns_are_those_of_the_sorted_classes(rows, kind):
    X, bad = rows
    y = labeled(LABELS[kind], bad)
    model = ours(LABELS[kind][1]).fit(X, y)
    rival = LogisticRegression().fit(X, y)
    assert model.classes_.tolist() == rival.classes_.tolist()
    assert model.positive_ == LABELS[kind][1]
    column = list(model.classes_).index(model.positive_)
    np.testing.assert_array_equal(model.predict_proba(X)[:, column], model.form_.risk(X))
    assert np.corrcoef(model.predict_proba(X)[:, 1], rival.predict_proba(X)[:, 1])[0, 1] > 0.9
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


# scikit-learn encodes labels as 0 and 1 here. A positive label 1 of the labels 1 and 2 is then taken for the 2: nothing
# in what the model is given tells them apart.
@pytest.mark.parametrize("kind", [kind for kind in LABELS if kind != "2, 1"])
def test_held_out_probabilities_are_the_same_or_refused(rows, kind):
    X, bad = rows
    y = labeled(LABELS[kind], bad)
    held_out, error = asked(lambda: cross_val_predict(ours(LABELS[kind][1]), X, y, cv=3, method="predict_proba"))
    if error is not None:
        assert "the positive label" in error
        assert set(LABELS[kind]) - {0, 1}
        return
    assert metrics.roc_auc_score(y == np.unique(y)[1], held_out[:, 1]) > 0.7


def meta_estimators(model):
    beside = LogisticRegression()
    return {
        "voting": VotingClassifier([("a", model), ("b", beside)], voting="soft"),
        "stacking": StackingClassifier([("a", model), ("b", beside)], cv=3),
        "calibrated": CalibratedClassifierCV(model, cv=3),
        "bagging": BaggingClassifier(model, 3, random_state=0),
        "one against the rest": OneVsRestClassifier(model),
        "pipeline": make_pipeline(FunctionTransformer(), model),
        "grid": GridSearchCV(model, {"max_bins": [2, 6]}, scoring="neg_log_loss", cv=3),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stated", [True, False], ids=["schema", "no schema"])
@pytest.mark.parametrize("kind", ["0, 1", "1, 0", "Good, Bad", "paid, default"])
@pytest.mark.parametrize("name", meta_estimators(None))
def test_meta_estimators_give_the_same_or_refuse(rows, name, kind, stated):
    """Those that encode labels hide what the schema calls positive: that is refused, never guessed."""
    X, bad = rows
    y = labeled(LABELS[kind], bad)
    model = ours(LABELS[kind][1]) if stated else pr.AdditiveRiskModel()
    found, error = asked(lambda: meta_estimators(model)[name].fit(X, y))
    if error is not None and name == "bagging":  # it strips the names of columns
        assert stated
        assert "rows have no column names" in error
        return
    if error is not None:
        assert stated
        assert "positive label" in error
        assert name in ("voting", "stacking", "one against the rest")
        assert kind not in ("0, 1", "1, 0") or name == "one against the rest"
        return
    rival = meta_estimators(LogisticRegression())
    rival = (rival[name] if name != "grid" else LogisticRegression()).fit(X, y)
    assert found.classes_.tolist() == rival.classes_.tolist()
    column = found.predict_proba(X)[:, 1]
    assert metrics.roc_auc_score(y == found.classes_[1], column) > 0.7
    assert np.corrcoef(column, rival.predict_proba(X)[:, 1])[0, 1] > 0.6


@pytest.mark.parametrize("kind", ["0, 1", "Good, Bad"])
def test_grid_search_takes_the_best(rows, kind):
    """Defect: with labels of which the positive one sorts first it took the worst."""
    X, bad = rows
    y = labeled(LABELS[kind], bad)
    model = ours(LABELS[kind][1])
    grid = GridSearchCV(model, {"max_bins": [1, 2, 6]}, scoring="roc_auc", cv=3).fit(X, y)
    by_hand = [
        cross_val_score(clone(model).set_params(max_bins=n), X, y, scoring="roc_auc", cv=3).mean() for n in (1, 2, 6)
    ]
    np.testing.assert_allclose(grid.cv_results_["mean_test_score"], by_hand)
    assert grid.best_params_["max_bins"] == (1, 2, 6)[int(np.argmax(by_hand))]
    assert max(by_hand) > 0.7


def test_directions_are_not_fitted_upside_down(rows):
    """Defect: positive = "bad" and outcomes of 0 and 1: the text was ignored, and 1 taken for it."""
    X, bad = rows
    for y in (bad.astype(int), 1 - bad.astype(int)):
        with pytest.raises(PlainriskError, match="the positive label 'bad' is not in the target, whose outcomes are"):
            ours("bad").fit(X, y)


def test_words_say_which_outcome_is_bad(rows):
    X, bad = rows
    for good_label, bad_label in (("Good", "Bad"), ("Current", "Charged Off"), ("no", "yes"), ("Paid", "Unknown")):
        model = pr.AdditiveRiskModel().fit(X, np.where(bad, bad_label, good_label))
        assert model.positive_ == bad_label
    with pytest.warns(pr.errors.PlainriskWarning, match="do not say which one is bad; 'b' was taken"):
        assert pr.AdditiveRiskModel().fit(X, np.where(bad, "a", "b")).positive_ == "b"


def test_a_split_a_pipeline_and_frames(rows):
    X, bad = rows
    y = pd.Series(np.where(bad, "Bad", "Good"), index=X.index)
    train, test, fitted, asked = train_test_split(X, y, random_state=0)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), ours("Bad")).fit(train, fitted)
    assert pipeline.score(test, asked) > 0.6
    assert metrics.roc_auc_score(asked == "Bad", pipeline.predict_proba(test)[:, 0]) > 0.7
