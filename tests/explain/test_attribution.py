"""Explanations from zero: the paper's attributions, computed again from coefficients, values, weights and experts."""

import warnings

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.form import Line, Linear

ALPHA = 2.5996819083143223


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german")


def fitted(german, name):
    # Lines clip a fifth of German's rows, and say so.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return pr.make_classifier(name, german.schema).fit(german.frame, german.target)


def test_a_line_contributes_its_coefficient_times_the_value(german):
    model = fitted(german, "LinNNLR")
    logistic = model.estimator_
    found = model.explain(german.frame, reference="zero")
    measured = [f for f, shape in model.form_.parts[0].shapes.items() if isinstance(shape, Line)]
    assert len(measured) == 9
    for name, coefficient in zip(measured, logistic.coef_[0], strict=True):
        wanted = coefficient / (2 * ALPHA) * np.asarray(german.frame[name].to_numpy(), dtype=float)
        column = found.contributions[:, found.features.index(name)]
        np.testing.assert_allclose(column, wanted, rtol=0, atol=1e-12)
    # Categories have effects of their own beside the intercept of the lines.
    score = np.asarray(logistic.form_.score(german.frame))
    inside = np.abs(score) < ALPHA
    assert 700 < inside.sum() < 1000
    np.testing.assert_allclose(found.total, 0.5 + score / (2 * ALPHA), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.total[inside], found.risk[inside], rtol=0, atol=1e-12)
    assert (found.bends == ~inside).all()
    np.testing.assert_array_equal(found.constant, found.constant[0])


def test_clipped_rows_say_what_the_pieces_add_up_to(german):
    found = fitted(german, "LinNNLR").explain(german.frame, reference="zero")
    row = int(np.flatnonzero(found.total > 1.01)[0])
    assert found.risk[row] == 1.0
    note = found.notes(row)[0]
    assert note == f"The pieces add up to {found.total[row]:.1%}; the line is clipped at 100.0%."


def test_a_calibrated_mixture_adds_up_from_zero_and_is_cut_off_nowhere(german):
    found = fitted(german, "CalibratedMixARM1").explain(german.frame, reference="zero")
    np.testing.assert_allclose(found.total, found.risk, rtol=0, atol=1e-12)
    for row in range(20):
        assert not any("clipped" in note for note in found.notes(row))


@pytest.mark.parametrize("name", ["MixARM1", "MixLinARM1", "MixXGB"])
def test_a_mixture_contributes_weight_times_risk(german, name):
    model = fitted(german, name)
    found = model.explain(german.frame, reference="zero")
    assert found.subscales == tuple(model.weights_)
    for j, (subscale, weight) in enumerate(model.weights_.items()):
        expert = model.experts_[subscale].model
        own = german.frame[list(model.experts_[subscale].features)]
        risk = expert.predict_proba(own)[:, list(expert.classes_).index(model.positive_)]
        np.testing.assert_allclose(found.part_risks[:, j], risk, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.contributions[:, j], weight * risk, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.risk, rtol=0, atol=1e-12)
    assert not found.constant.any()
    table = found.to_frame()
    assert [c for c in table.columns if c.endswith("(risk)")] == [f"{s} (risk)" for s in model.weights_]


def test_foreign_experts_have_the_same_attribution():
    credit = pr.datasets.make_credit(400, seed=3)
    numbers = [n for n, f in credit.schema.features.items() if f.kind == "continuous"]
    frame = credit.frame[numbers].fill_null(0.0)
    features = {name: pr.Feature() for name in numbers}
    schema = pr.Schema(features=features, subscales={"first": numbers[:2], "rest": numbers[2:]})
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = pr.SubscaleMixture(tree, schema).fit(frame, credit.target)
    found = model.explain(frame, reference="zero")
    for j, (subscale, columns) in enumerate(schema.subscales.items()):
        alone = DecisionTreeClassifier(max_depth=2, random_state=0).fit(frame[columns].to_numpy(), credit.target)
        risk = alone.predict_proba(frame[columns].to_numpy())[:, 1]
        np.testing.assert_allclose(found.contributions[:, j], model.weights_[subscale] * risk, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.part_risks[:, j], risk, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.total, model.predict_proba(frame)[:, 1], rtol=0, atol=1e-12)
    with pytest.raises(pr.errors.PlainriskError, match="has no risk form"):
        model.explain(frame, reference="typical")


def test_two_lines_of_two_layers(german):
    model = fitted(german, "LinARM2")
    pool = model.form_.pool
    assert isinstance(pool.link, Linear)
    found = model.explain(german.frame, reference="zero")
    inner = model.form_.part_risks(german.frame)
    np.testing.assert_allclose(found.contributions, pool.link.slope * inner * pool.weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.constant, 0.5 + pool.intercept / (2 * ALPHA), rtol=0, atol=1e-12)
    held = ~found.bends
    np.testing.assert_allclose(found.total[held], found.risk[held], rtol=0, atol=1e-12)
    assert held.mean() > 0.9


def test_log_odds_of_a_logistic_model_are_its_terms(german):
    model = fitted(german, "ARM1")
    found = model.explain(german.frame, reference="zero", unit="log odds")
    part = model.form_.parts[0]
    frame = model.form_.align(german.frame)
    np.testing.assert_array_equal(found.constant, part.intercept)
    for j, values in enumerate(part.terms(frame, model.form_.schema).values()):
        np.testing.assert_allclose(found.contributions[:, j], values, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("ARM1", {}, "the last link of this model is logistic. Use 'typical', or unit='log odds'"),
        ("BandARM1", {}, "the last link of this model is a link of bands. Use 'typical', or pr.linearise"),
    ],
)
def test_what_is_no_sum_of_terms_is_refused(german, name, options, match):
    with pytest.raises(DataError, match=match):
        fitted(german, name).explain(german.frame, reference="zero", **options)
