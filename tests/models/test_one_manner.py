"""evaluate, cutoffs, fairness and drift: model, rows, outcomes; probabilities in place of a model give the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import plainrisk as pr
from plainrisk.errors import DataError


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german")


@pytest.fixture(scope="module")
def model(german):
    fitted = pr.make_classifier("ARM1", german.schema).fit(german.frame, german.target)
    return fitted.annotate(cutoff=0.6)


@pytest.fixture(scope="module")
def risk(model, german):
    """The probability of the positive outcome, whatever its column."""
    return model.predict_proba(german.frame)[:, list(model.classes_).index(model.positive_)]


@pytest.fixture(scope="module")
def outcomes(model, german):
    return (np.asarray(german.target) == model.positive_).astype(int)


def test_cutoffs_of_a_model_are_those_of_its_probabilities(model, german, risk, outcomes):
    found = pr.cutoffs(model, german.frame, german.target, gain_good=0.2)
    plain = pr.cutoffs(risk, None, outcomes, gain_good=0.2, adverse=german.schema.adverse, cutoff=0.6)
    np.testing.assert_array_equal(found.profit, plain.profit)
    assert found.adverse == "negative"
    assert found.chosen == plain.chosen == found.at(cutoff=0.6)
    assert pr.cutoffs(risk, None, outcomes).chosen is None
    amounts = pr.cutoffs(model, german.frame, german.target, gain_good=0.2, amount="Credit amount")
    assert amounts.best.profit.estimate > found.best.profit.estimate


def test_fairness_of_a_model_is_that_of_its_probabilities(model, german, risk, outcomes):
    found = pr.fairness(model, german.frame, german.target, by="Housing")
    groups = german.frame["Housing"]
    plain = pr.fairness(risk, None, outcomes, by=groups, cutoff=0.6, adverse="negative")
    assert found.groups == plain.groups
    assert found.cutoff == 0.6
    assert np.isnan(pr.fairness(model, german.frame, by="Housing").groups[0].auc.estimate), "no outcomes in these rows"


def test_drift_of_a_model_and_of_probabilities(model, german, risk, outcomes):
    new, old = german.frame.head(300), german.frame.tail(700)
    found = pr.drift(model, new, german.target[:300], old=old, old_y=german.target[300:])
    plain = pr.drift(risk[:300], None, outcomes[:300], old=risk[300:], old_y=outcomes[300:])
    assert found.features
    assert not plain.features
    assert plain.risk.psi == pytest.approx(found.risk.psi)
    assert plain.risk.new_risk == pytest.approx(found.risk.new_risk)
    assert "Drift of 300 rows" in repr(plain)
    assert plain.auc_change == found.auc_change
    assert pr.drift(model, new) == model.drift(new)


def test_a_model_of_another_library(german):
    X, y = german.frame[["Duration in month"]], german.target
    other = LogisticRegression().fit(X, y)
    risk = other.predict_proba(X)[:, 1]
    zero_one = (np.asarray(y) == other.classes_[1]).astype(int)
    np.testing.assert_array_equal(pr.cutoffs(other, X, y).bad_rate, pr.cutoffs(risk, None, zero_one).bad_rate)
    found = pr.drift(other, X.head(300), y[:300], old=X.tail(700))
    assert found == pr.drift(risk[:300], None, zero_one[:300], old=risk[300:])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, g: pr.cutoffs(m, None, g.target), "cutoffs: a model needs the rows X"),
        (lambda m, g: pr.cutoffs(m, g.frame), "cutoffs: y: there is no column"),
        (lambda m, g: pr.cutoffs([0.1, 0.2], None), "cutoffs: give the outcomes y"),
        (lambda m, g: pr.cutoffs([0.1, 0.2], None, [0, 1], amount="a"), "there are no rows X to take it from"),
        (lambda m, g: pr.fairness([0.1, 0.2], None, by=["a", "b"]), "fairness: give a cutoff"),
        (lambda m, g: pr.fairness(m, g.frame), "fairness: by which groups"),
        (lambda m, g: pr.fairness(m, g.frame, by="Hosing"), "Did you mean 'Housing'"),
        (lambda m, g: pr.drift([0.1, 0.2], None), "drift: give the old rows"),
        (lambda m, g: pr.drift([0.1, 2.0], None, old=[0.1]), "the new probabilities must be"),
        (lambda m, g: pr.drift([0.1, 0.2], None, [0, 5], old=[0.1]), "each 0 or 1"),
    ],
)
def test_errors_name_the_function(model, german, call, message):
    with pytest.raises(DataError, match=message):
        call(model, german)
