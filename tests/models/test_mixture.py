"""SubscaleMixture: experts, their weights by the algorithm as written, and what stays exact."""

from __future__ import annotations

import itertools
import math
import warnings

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import nnls
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskError, PlainriskWarning
from plainrisk.fit.bands import ScoreSums, calibrating_bands
from plainrisk.fit.splits import stratified_folds
from plainrisk.form import Bands, Linear, Logistic, Mixture, PairTable
from plainrisk.models.experts import _renamed
from plainrisk.models.mixture import loss_clip


def hedge_weights_in_sequence(losses, eta):
    """The weights by the algorithm as written: multiply and renormalize, row after row."""
    weights = np.full(losses.shape[1], 1.0 / losses.shape[1])
    for row in losses:
        weights = weights * np.exp(-eta * row)
        weights = weights / weights.sum()
    return weights


N = 600
SCHEMA = pr.Schema(
    features={"a": {"direction": "increasing"}, "b": {"direction": "decreasing"}, "c": {}, "d": {}},
    subscales={"strong": ("a", "b"), "weak": ("c",), "noise": ("d",)},
)
CERTAIN = 1 / (1 + math.exp(pr.ALPHA_STAR))  # 0.0691589: what a linearised expert can express


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(12)
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd"))
    score = 1.5 * X["a"] - X["b"] + 0.6 * X["c"] + rng.normal(size=N)
    return X, (score > 0.3).to_numpy().astype(int)


@pytest.fixture(scope="module")
def mixture(data):
    return pr.SubscaleMixture(schema=SCHEMA).fit(*data)


def expert_risks(model, X):
    """What every expert says, asked one by one."""
    columns = []
    for expert in model.experts_.values():
        rows = X if hasattr(expert.model, "form_") else X[list(expert.features)]
        form = getattr(expert.model, "form_", None)
        columns.append(expert.model.predict_proba(rows)[:, 1] if form is None else form.risk(rows))
    return np.column_stack(columns)


def log_losses(risks, y, clip):
    said = np.where(y[:, None] == 1, risks, 1 - risks)
    return -np.log(np.clip(said, clip, 1 - np.asarray(clip)))


# ---- the weights


@pytest.mark.parametrize(
    ("rule", "eta"),
    [("paper", 8 * math.log(3) / N), ("hedge", math.sqrt(8 * math.log(3) / N)), (0.01, 0.01)],
)
def test_the_weights_are_those_of_the_algorithm(data, rule, eta):
    X, y = data
    model = pr.SubscaleMixture(schema=SCHEMA, learning_rate=rule).fit(X, y)
    assert model.learning_rate_ == pytest.approx(eta)
    losses = log_losses(expert_risks(model, X), y, 1e-15)
    for order in (np.arange(N), np.random.default_rng(1).permutation(N)):
        wanted = hedge_weights_in_sequence(losses[order], eta)
        np.testing.assert_allclose(list(model.weights_.values()), wanted, rtol=0, atol=1e-12)
    assert list(model.weights_) == ["strong", "weak", "noise"]
    assert model.weights_["strong"] > model.weights_["weak"] > model.weights_["noise"]
    assert model.form_.pool == Mixture(tuple(model.weights_.values()))
    np.testing.assert_allclose(model.losses_, losses.sum(axis=0), rtol=1e-12)


def test_the_pool_is_the_weighted_mean_of_the_experts(data, mixture):
    X, _ = data
    expected = expert_risks(mixture, X) @ list(mixture.weights_.values())
    np.testing.assert_allclose(mixture.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(mixture.predict(X), (expected > 0.5).astype(int))
    for name, expert in mixture.experts_.items():
        alone = pr.AdditiveRiskModel(SCHEMA.select(SCHEMA.subscales[name])).fit(*data)
        np.testing.assert_allclose(expert.model.predict_proba(X), alone.predict_proba(X), atol=1e-12)


def test_no_learning_is_equal_weights(data):
    model = pr.SubscaleMixture(schema=SCHEMA, learning_rate=0).fit(*data)
    assert list(model.weights_.values()) == [1 / 3] * 3


def test_one_subscale_is_the_expert_itself(data):
    X, y = data
    one = pr.Schema(features=SCHEMA.features, subscales={"all": tuple("abcd")})
    model = pr.SubscaleMixture(schema=one).fit(X, y)
    assert model.weights_ == {"all": 1.0}
    np.testing.assert_array_equal(model.predict_proba(X), pr.AdditiveRiskModel(SCHEMA).fit(X, y).predict_proba(X))


def test_without_subscales_every_feature_is_one(data):
    X, y = data
    assert set(pr.SubscaleMixture().fit(X, y).weights_) == set("abcd")


@pytest.mark.parametrize("learning_rate", ["paper", "hedge"])
@pytest.mark.parametrize("loss", ["log", "brier"])
def test_a_weight_is_a_number_of_equal_rows(data, learning_rate, loss):
    X, y = data
    w = np.random.default_rng(3).integers(0, 4, N)
    options = {"schema": SCHEMA, "learning_rate": learning_rate, "loss": loss}
    weighted = pr.SubscaleMixture(**options).fit(X, y, sample_weight=w)
    rows = np.repeat(np.arange(N), w)
    repeated = pr.SubscaleMixture(**options).fit(X.iloc[rows], y[rows])
    np.testing.assert_allclose(list(weighted.weights_.values()), list(repeated.weights_.values()), atol=1e-8)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)


def test_the_brier_loss(data):
    X, y = data
    model = pr.SubscaleMixture(schema=SCHEMA, loss="brier").fit(X, y)
    losses = ((expert_risks(model, X) - y[:, None]) ** 2).sum(axis=0)
    np.testing.assert_allclose(
        list(model.weights_.values()), softmax(-8 * math.log(3) / N * losses), rtol=0, atol=1e-12
    )


# ---- the clip


def test_an_expert_is_charged_no_more_certainty_than_its_link_expresses(data):
    X, y = data
    assert pytest.approx(0.0691589, abs=1e-7) == CERTAIN
    model = pr.SubscaleMixture(pr.Linearised(pr.AdditiveRiskModel()), SCHEMA).fit(X, y)
    assert model.clips_ == pytest.approx([CERTAIN] * 3, abs=1e-15)
    risks = expert_risks(model, X)
    assert ((risks == 0) | (risks == 1)).any(), "an expert that says 0 or 1 is what the clip is for"
    wanted = hedge_weights_in_sequence(log_losses(risks, y, CERTAIN), 8 * math.log(3) / N)
    np.testing.assert_allclose(list(model.weights_.values()), wanted, rtol=0, atol=1e-12)
    harsh = pr.SubscaleMixture(pr.Linearised(pr.AdditiveRiskModel()), SCHEMA, clip=1e-15).fit(X, y)
    wanted = hedge_weights_in_sequence(log_losses(risks, y, 1e-15), 8 * math.log(3) / N)
    np.testing.assert_allclose(list(harsh.weights_.values()), wanted, rtol=0, atol=1e-12)
    assert harsh.weights_["strong"] < model.weights_["strong"], "one error of a certain expert costs it its weight"


def test_the_auto_clip_by_link():
    assert loss_clip(Linear.from_alpha(pr.ALPHA_STAR)) == pytest.approx(CERTAIN)
    assert loss_clip(Linear.from_alpha(4.0)) == pytest.approx(1 / (1 + math.exp(4)))
    assert loss_clip(Logistic()) == loss_clip(None) == 1e-15
    assert loss_clip(Linear()) == 1e-3
    assert loss_clip(Bands((-3.0, 0.0, 2.0), (0.05, 0.5, 0.9))) == pytest.approx(0.05)
    assert loss_clip(Bands((-3.0, 0.0, 2.0), (0.0, 0.5, 1.0))) == 1e-15


# ---- held-out folds


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the outcome of every row it was trained on, and nothing else."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = {tuple(row): label for row, label in zip(np.asarray(X).tolist(), y, strict=True)}
        return self

    def predict_proba(self, X):
        said = [self.known_.get(tuple(row)) for row in np.asarray(X).tolist()]
        risk = np.array([0.5 if s is None else 0.02 + 0.96 * s for s in said])
        return np.column_stack([1 - risk, risk])


def test_experts_judged_out_of_fold_do_not_flatter_themselves(data):
    X, y = data
    experts = {"strong": pr.AdditiveRiskModel(), "weak": pr.AdditiveRiskModel(), "noise": Memory()}
    inside = pr.SubscaleMixture(experts, SCHEMA).fit(X, y)
    outside = pr.SubscaleMixture(experts, SCHEMA, cv=5).fit(X, y)
    assert inside.weights_["noise"] > inside.weights_["strong"] > 0.05
    assert outside.weights_["noise"] < outside.weights_["strong"]
    # Out of its fold the memory says 1/2 of every row.
    assert outside.losses_[2] == pytest.approx(N * math.log(2))
    # The experts that score are those fitted on all rows.
    np.testing.assert_allclose(expert_risks(outside, X), expert_risks(inside, X))
    again = pr.SubscaleMixture(experts, SCHEMA, cv=5).fit(X, y)
    assert again.weights_ == outside.weights_


def test_held_out_losses_are_those_of_refitted_experts(data):
    X, y = data
    w = np.random.default_rng(8).uniform(0.5, 2.0, N)
    model = pr.SubscaleMixture(schema=SCHEMA, cv=3).fit(X, y, sample_weight=w)
    folds = stratified_folds(y, 3)
    losses = np.zeros(3)
    for k in range(3):
        train, test = folds != k, folds == k
        fitted = pr.SubscaleMixture(schema=SCHEMA).fit(X[train], y[train], sample_weight=w[train])
        losses += w[test] @ log_losses(expert_risks(fitted, X[test]), y[test], 1e-15)
    np.testing.assert_allclose(model.losses_, losses, rtol=1e-9)


# ---- new rows


@pytest.mark.parametrize("rule", ["paper", "hedge", 0.02])
@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 3.0}], ids=["plain", "class weights"])
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_weights_move_on_with_new_rows_and_experts_stay(data, rule, class_weight):
    X, y = data
    w = np.random.default_rng(5).uniform(0.5, 2.0, N)
    first, second = slice(0, 400), slice(400, N)
    model = pr.SubscaleMixture(schema=SCHEMA, learning_rate=rule, class_weight=class_weight)
    model.fit(X[first], y[first], sample_weight=w[first])
    experts = model.experts_
    before = expert_risks(model, X)
    factor = np.ones(N) if class_weight is None else np.where(y == 1, 3.0, 1.0)
    assert model.partial_fit(X[second], y[second], sample_weight=w[second]) is model
    assert model.experts_ is experts
    np.testing.assert_array_equal(expert_risks(model, X), before)
    total = (w * factor).sum()
    eta = {"paper": 8 * math.log(3) / total, "hedge": math.sqrt(8 * math.log(3) / total)}.get(rule, rule)
    losses = (w * factor)[:, None] * log_losses(before, y, 1e-15)
    wanted = hedge_weights_in_sequence(losses, eta)
    np.testing.assert_allclose(list(model.weights_.values()), wanted, rtol=0, atol=1e-12)
    assert model.form_.pool.weights == tuple(model.weights_.values())
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], before @ wanted, rtol=0, atol=1e-12)


def test_balanced_classes_keep_their_factors(data):
    X, y = data
    keep = (y == 1) | (np.arange(N) % 3 == 0)
    X, y = X[keep], y[keep]
    with pytest.warns(PlainriskWarning, match="class_weight moves the base rate"):
        model = pr.SubscaleMixture(schema=SCHEMA, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(model.class_factors_, len(y) / (2 * np.bincount(y)), rtol=1e-12)
    losses = model.losses_.copy()
    model.partial_fit(X, y)
    np.testing.assert_allclose(model.losses_, 2 * losses, rtol=1e-12)
    path = model.weight_path(X, y)
    np.testing.assert_allclose(path[-1], list(model.weights_.values()), rtol=0, atol=1e-12)


def test_a_month_without_bad_loans_is_a_batch_too(data):
    X, y = data
    labels = np.array(["good", "bad"])[y]
    schema = pr.Schema(features=SCHEMA.features, subscales=SCHEMA.subscales, target="loan", positive="bad")
    model = pr.SubscaleMixture(schema=schema, learning_rate=0.01).fit(X, labels)
    good = X[y == 0]
    risks = expert_risks(model, good)
    before = model.losses_.copy()
    model.partial_fit(good, labels[y == 0])
    np.testing.assert_allclose(model.losses_ - before, -np.log(1 - risks).sum(axis=0), rtol=1e-12)
    model.partial_fit(X[y == 1][:1], ["bad"])
    with pytest.raises(DataError, match=r"does not know the outcome 'ugly'"):
        model.partial_fit(X[:1], ["ugly"])


def test_the_first_call_fits(data, mixture):
    X, y = data
    assert pr.SubscaleMixture(schema=SCHEMA).partial_fit(X, y, classes=[0, 1]).weights_ == mixture.weights_
    stacked = pr.SubscaleMixture(schema=SCHEMA, weights="stacking").fit(X, y)
    with pytest.raises(DataError, match="with weights='stacking' fit again"):
        stacked.partial_fit(X, y)


def test_the_weight_path(data, mixture):
    X, y = data
    path = mixture.weight_path(X, y)
    assert path.shape == (N + 1, 3)
    assert path[0].tolist() == [1 / 3] * 3
    np.testing.assert_allclose(path[-1], list(mixture.weights_.values()), rtol=0, atol=1e-12)
    np.testing.assert_allclose(path.sum(axis=1), 1.0, atol=1e-12)
    losses = log_losses(expert_risks(mixture, X), y, 1e-15)
    for rows in (1, 77, 300):
        wanted = hedge_weights_in_sequence(losses[:rows], mixture.learning_rate_)
        np.testing.assert_allclose(path[rows], wanted, rtol=0, atol=1e-12)


def test_the_weight_path_as_a_plot(data, mixture):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes = mixture.plot_weights(*data)
    assert [line.get_label() for line in axes.lines] == ["strong", "weak", "noise"]
    path = mixture.weight_path(*data)
    for line, column in zip(axes.lines, path.T, strict=True):
        np.testing.assert_allclose(line.get_ydata(), column)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rows seen", "weight")
    own = plt.subplots()[1]
    assert mixture.plot_weights(*data, ax=own) is own
    plt.close("all")


# ---- dropping an expert


def test_without_an_expert_the_pool_is_still_exact(data, mixture, tmp_path):
    X, _ = data
    less = mixture.without("weak")
    w = mixture.weights_
    left = w["strong"] + w["noise"]
    assert less.form_.pool.weights == (w["strong"] / left, w["noise"] / left)
    risks = expert_risks(mixture, X)
    expected = (w["strong"] * risks[:, 0] + w["noise"] * risks[:, 2]) / left
    np.testing.assert_allclose(less.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(less.explain(X).total, expected, rtol=0, atol=1e-12)
    # The subscale's columns are no longer asked for.
    np.testing.assert_array_equal(less.predict_proba(X.drop(columns="c")), less.predict_proba(X))
    assert less.certify().valid
    less.save(tmp_path / "less.json")
    assert pr.load(tmp_path / "less.json").form_ == less.form_
    assert mixture.weights_ == w, "the mixture itself is as it was"
    alone = mixture.without("weak", "noise")
    np.testing.assert_array_equal(
        alone.predict_proba(X)[:, 1], mixture.experts_["strong"].risk(pr.data.frame.as_frame(X))
    )


def test_experts_that_can_not_be_dropped(mixture):
    with pytest.raises(DataError, match=r"There is no subscale 'week'\. Did you mean 'weak'"):
        mixture.without("week")
    with pytest.raises(DataError, match="No weight is left"):
        mixture.without("strong", "weak", "noise")


# ---- stacking


@pytest.mark.parametrize("weighted", [False, True])
def test_stacking_is_nonnegative_least_squares_scaled(data, weighted):
    X, y = data
    w = np.random.default_rng(9).uniform(0.2, 3.0, N) if weighted else None
    model = pr.SubscaleMixture(schema=SCHEMA, weights="stacking").fit(X, y, sample_weight=w)
    root = np.ones(N) if w is None else np.sqrt(w)
    found, _ = nnls(root[:, None] * expert_risks(model, X), root * y)
    np.testing.assert_allclose(list(model.weights_.values()), found / found.sum(), atol=1e-9)
    assert model.certify().valid


def test_stacking_drops_an_expert_that_speaks_against_the_truth(data):
    X, y = data

    class Contrary(GaussianNB):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    experts = {"strong": pr.AdditiveRiskModel(), "weak": Contrary(), "noise": GaussianNB()}
    model = pr.SubscaleMixture(experts, SCHEMA, weights="stacking").fit(X, y)
    found, _ = nnls(expert_risks(model, X), y.astype(float))
    assert found[1] == 0.0 == model.weights_["weak"]
    np.testing.assert_allclose(list(model.weights_.values()), found / found.sum(), atol=1e-9)


# ---- whose experts


def test_an_estimator_per_subscale(data):
    X, y = data
    experts = {
        "strong": pr.AdditiveRiskModel(link="linear", ridge=0.1),
        "weak": pr.NonnegativeLogisticRegression(),
        "noise": LogisticRegression(),
        "unused": GaussianNB(),
    }
    model = pr.SubscaleMixture(experts, SCHEMA).fit(X, y)
    assert [type(e.model).__name__ for e in model.experts_.values()] == [
        "AdditiveRiskModel",
        "NonnegativeLogisticRegression",
        "LogisticRegression",
    ]
    assert not hasattr(experts["weak"], "form_"), "the given estimators are not fitted, clones are"
    np.testing.assert_allclose(model.explain(X).total, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    with pytest.raises(DataError, match="There is no estimator for subscale 'noise'"):
        pr.SubscaleMixture({"strong": GaussianNB(), "weak": GaussianNB()}, SCHEMA).fit(X, y)


def test_logistic_regression_has_a_form(data, tmp_path):
    X, y = data
    named = pr.SubscaleMixture(LogisticRegression(), SCHEMA).fit(X, y)
    wrapped = pr.SubscaleMixture(pr.Linearised(LogisticRegression()), SCHEMA).fit(X, y)
    risks = [LogisticRegression().fit(X[list(f)], y).predict_proba(X[list(f)])[:, 1] for f in SCHEMA.subscales.values()]
    expected = np.column_stack(risks) @ list(named.weights_.values())
    np.testing.assert_allclose(named.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-9)
    assert [part.features for part in named.form_.parts] == [("a", "b"), ("c",), ("d",)]
    named.save(tmp_path / "m.json")
    np.testing.assert_array_equal(pr.load(tmp_path / "m.json").predict_proba(X), named.predict_proba(X))
    lines = [np.clip(0.5 + np.log(r / (1 - r)) / (2 * pr.ALPHA_STAR), 0, 1) for r in risks]
    expected = np.column_stack(lines) @ list(wrapped.weights_.values())
    np.testing.assert_allclose(wrapped.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-9)
    assert set(wrapped.explain(X).features) == set("abcd")


def test_foreign_experts_of_a_matrix(data):
    """Without a schema every column is a subscale, named by its position."""
    X, y = data
    matrix = X.to_numpy()
    model = pr.SubscaleMixture(LogisticRegression()).fit(matrix, y)
    risks = [LogisticRegression().fit(matrix[:, [j]], y).predict_proba(matrix[:, [j]])[:, 1] for j in range(4)]
    expected = np.column_stack(risks) @ list(model.weights_.values())
    np.testing.assert_allclose(model.predict_proba(matrix)[:, 1], expected, rtol=0, atol=1e-9)


def test_experts_without_a_form_score_and_explain_by_subscale(data, tmp_path):
    X, y = data
    for rows in (pl.DataFrame(X), X):
        model = pr.SubscaleMixture(RandomForestClassifier(n_estimators=8, random_state=0), SCHEMA).fit(rows, y)
        assert not hasattr(model, "form_")
        columns = [rows[list(f)] for f in SCHEMA.subscales.values()]
        experts = [e.model for e in model.experts_.values()]
        risks = np.column_stack([m.predict_proba(c)[:, 1] for m, c in zip(experts, columns, strict=True)])
        expected = risks @ list(model.weights_.values())
        np.testing.assert_allclose(model.predict_proba(rows)[:, 1], expected, rtol=0, atol=1e-12)
        assert set(model.predict(rows)) <= {0, 1}
        explained = model.explain(rows)
        assert explained.unit == "probability"
        assert explained.subscales == ("strong", "weak", "noise")
        assert explained.features == (None, None, None)
        np.testing.assert_allclose(explained.contributions, risks * list(model.weights_.values()), rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.total, expected, rtol=0, atol=1e-12)
        model.partial_fit(rows, y)
        assert model.weight_path(rows, y).shape == (N + 1, 3)
    said = "The expert of 'strong' is a RandomForestClassifier, which has no risk form"
    for call in (
        lambda: model.save(tmp_path / "m.json"),
        lambda: model.certify(),
        lambda: model.without("weak"),
        lambda: model.at_base_rate(0.1),
    ):
        with pytest.raises(PlainriskError, match=said):
            call()
    with pytest.raises(DataError, match="the model knows its features by name"):
        model.predict_proba(X.to_numpy())
    with pytest.raises(DataError, match="there is no column 'd'"):
        model.predict_proba(X[["a", "b", "c"]])


def test_an_expert_of_several_parts_has_no_part_in_the_form(data, tmp_path):
    X, y = data
    experts = {"strong": pr.TwoLayerRiskModel(), "weak": pr.AdditiveRiskModel(), "noise": pr.AdditiveRiskModel()}
    model = pr.SubscaleMixture(experts, SCHEMA).fit(X, y)
    expected = expert_risks(model, X) @ list(model.weights_.values())
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.explain(X).total, expected, rtol=0, atol=1e-12)
    with pytest.raises(PlainriskError, match="The expert of 'strong' is a TwoLayerRiskModel"):
        model.save(tmp_path / "m.json")


def test_a_second_fit_forgets_the_form_of_the_first(data):
    X, y = data
    model = pr.SubscaleMixture(schema=SCHEMA).fit(X, y)
    model.set_params(estimator=DecisionTreeClassifier(max_depth=2, random_state=0)).fit(X, y)
    assert not hasattr(model, "form_")
    expected = expert_risks(model, X) @ list(model.weights_.values())
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-12)


def test_weights_that_an_expert_does_not_take(data):
    X, y = data
    with pytest.raises(DataError, match=r"Subscale 'strong': Memory.fit takes no sample_weight"):
        pr.SubscaleMixture(Memory(), SCHEMA).fit(X, y, sample_weight=np.arange(N))


# ---- monotone


@pytest.mark.parametrize(
    "expert",
    [
        pr.AdditiveRiskModel(),
        pr.AdditiveRiskModel(link="linear"),
        pr.Linearised(pr.AdditiveRiskModel()),
        pr.Linearised(pr.AdditiveRiskModel(), pieces=3),
        pr.NonnegativeLogisticRegression(),
        pr.BoostedRiskModel(monotone=True, n_estimators=10),
    ],
    ids=["ARM1", "direct", "line", "bands", "NNLR", "trees"],
)
def test_a_mixture_of_monotone_experts_is_monotone(data, expert):
    """Certified, and over all combinations of values on both sides of every edge."""
    X, y = data
    schema = pr.Schema(
        features={"a": {"direction": "increasing"}, "b": {"direction": "decreasing"}, "c": {}},
        subscales={"one": ("a", "b"), "two": ("b", "c")},  # b stands in both
    )
    model = pr.SubscaleMixture(expert, schema).fit(X, y)
    assert model.certify().valid
    grid = {name: np.unique(np.concatenate([edges_of(model.form_, name), [-9.0, 0.0, 9.0]])) for name in "abc"}
    rows = pd.DataFrame(itertools.product(*grid.values()), columns=list(grid))
    risk = model.form_.risk(rows).reshape([len(values) for values in grid.values()])
    assert (np.diff(risk, axis=0) >= 0).all()
    assert (np.diff(risk, axis=1) <= 0).all()
    assert (np.diff(risk, axis=0) > 0).any()
    assert (np.diff(risk, axis=1) < 0).any()


def edges_of(form, name):
    """All edges of a feature and the numbers right after them, at most 20."""
    edges = set()
    for part in form.parts:
        if hasattr(part, "trees"):
            wanted = {k for k, i in enumerate(part.inputs) if i.feature == name}
            edges |= {e for t in part.trees for e, j in zip(t.edges, t.inputs, strict=True) if j in wanted}
        elif name in part.shapes:
            edges |= set(part.shapes[name].levels.edges)
    found = np.sort(np.array(sorted(edges)[:: max(1, len(edges) // 10)]))
    return np.concatenate([found, np.nextafter(found, np.inf)])


def test_one_expert_that_is_not_monotone_is_found(data):
    X, _ = data
    rng = np.random.default_rng(4)
    y = (np.sin(3 * X["a"]) + rng.normal(size=N) > 0).astype(int)
    experts = {"strong": pr.BoostedRiskModel(), "weak": pr.AdditiveRiskModel(), "noise": pr.AdditiveRiskModel()}
    certificate = pr.SubscaleMixture(experts, SCHEMA).fit(X, y).certify()
    assert not certificate.valid
    assert {c.name for c in certificate.checks if not c.holds} >= {"monotone in a"}


# ---- settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "stack"}, "weights must be 'hedge' or 'stacking', not 'stack'"),
        ({"loss": "logg"}, r"loss must be 'log' or 'brier', not 'logg'\. Did you mean 'log'"),
        ({"learning_rate": "papers"}, r"not 'papers'\. Did you mean 'paper'"),
        ({"learning_rate": -1.0}, "learning_rate must be 'paper', 'hedge' or a finite number of at least 0"),
        ({"clip": 0.0}, "clip must be 'auto' or a finite number above 0 and below 0.5, not 0.0"),
        ({"clip": 0.5}, "clip must be"),
        ({"clip": "none"}, "clip must be"),
        ({"cv": 1}, "cv must be None, a whole number of at least 2, .*, not 1"),
        ({"cv": 2.5}, "cv must be"),
    ],
)
def test_wrong_settings_are_named(data, options, message):
    with pytest.raises(DataError, match=message):
        pr.SubscaleMixture(schema=SCHEMA, **options).fit(*data)


def test_before_fit_every_method_says_so(data, tmp_path):
    X, y = data
    fresh = pr.SubscaleMixture(schema=SCHEMA)
    for call in (
        lambda: fresh.predict(X),
        lambda: fresh.predict_proba(X),
        lambda: fresh.explain(X),
        lambda: fresh.certify(),
        lambda: fresh.save(tmp_path / "m.json"),
        lambda: fresh.without("weak"),
        lambda: fresh.weight_path(X, y),
    ):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            call()


def test_what_the_experts_warn_of_is_said_once_if_at_all(data):
    """One expert's clipped line is not the pool's; where all say 0 together, it is."""
    X, _ = data
    y = (X["a"] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlainriskWarning)
        warnings.filterwarnings("ignore", "Data: feature 'a' may be a leak")
        model = pr.SubscaleMixture(pr.Linearised(pr.AdditiveRiskModel()), SCHEMA).fit(X, y)
    assert (model.form_.part_risks(X)[:, 0] == 0).mean() > 0.3
    assert model.fit_record_.clipped == 0.0
    rare = (np.arange(N) % 40 == 0).astype(int)
    told = r"SubscaleMixture: the line is cut off at 0 or 1 for \d+% of the training rows"
    with pytest.warns(PlainriskWarning, match=told) as caught:
        model = pr.SubscaleMixture(pr.Linearised(pr.AdditiveRiskModel()), SCHEMA).fit(X, rare)
    assert len(caught) == 1
    risk = model.predict_proba(X)[:, 1]
    assert model.fit_record_.clipped == pytest.approx((risk == 0).mean())
    assert (risk == 0).mean() > 0.1


# ---- tables of all kinds


@pytest.mark.parametrize(
    "expert", [LogisticRegression(), RandomForestClassifier(n_estimators=4, random_state=0)], ids=["form", "none"]
)
def test_the_library_of_the_rows_makes_no_difference(data, expert):
    X, y = data
    kinds = (X, pl.DataFrame(X), pl.DataFrame(X).to_arrow(), {c: X[c].to_numpy() for c in X})
    risks = [pr.SubscaleMixture(expert, SCHEMA).fit(rows, y).predict_proba(rows) for rows in kinds]
    for risk in risks[1:]:
        np.testing.assert_allclose(risk, risks[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("expert", [None, LogisticRegression(), GaussianNB()], ids=["ours", "form", "none"])
def test_the_positive_outcome_is_the_schema_s(data, expert):
    X, y = data
    schema = pr.Schema(features=SCHEMA.features, subscales=SCHEMA.subscales, target="loan", positive="bad")
    labels = np.array(["good", "bad"])[y]
    model = pr.SubscaleMixture(expert, schema).fit(X, labels)
    assert (model.classes_.tolist(), model.positive_) == (["bad", "good"], "bad")
    coded = pr.SubscaleMixture(expert, SCHEMA).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, ::-1], coded.predict_proba(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.array(["good", "bad"])[coded.predict(X)])


def test_a_form_under_other_names_reads_the_same_columns_in_shapes_and_pairs():
    credit = pr.datasets.make_credit(1500, 3, backend="pandas")
    schema = msgspec.structs.replace(credit.schema, subscales={})
    fitted = pr.AdditiveRiskModel(schema).fit(credit.frame, credit.target).form_
    part = fitted.parts[0]
    u, v = list(part.shapes)[:2]
    levels = (part.shapes[u].levels, part.shapes[v].levels)
    table = tuple(tuple(0.1 * a - 0.2 * b for b in range(len(levels[1]))) for a in range(len(levels[0])))
    pair = PairTable(features=(u, v), levels=levels, scores=table, weights=table, positives=table)
    replace = msgspec.structs.replace
    form = replace(fitted, parts=(replace(part, pairs=(pair,)),))
    new = tuple(f"x{j}" for j in range(len(form.columns)))
    renamed = _renamed(form, new)
    assert renamed.parts[0].pairs[0].features == (new[form.columns.index(u)], new[form.columns.index(v)])
    frame = credit.frame[list(form.columns)]
    np.testing.assert_array_equal(renamed.risk(frame.set_axis(list(new), axis=1)), form.risk(frame))


def test_splits_name_rows_before_those_without_weight_are_left_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    weight = rng.integers(0, 3, 200).astype(float)
    whole = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    kept = np.flatnonzero(weight)
    own = [tuple(np.flatnonzero(np.isin(kept, rows)) for rows in split) for split in whole]
    one = pr.SubscaleMixture(cv=whole).fit(X, y, weight)
    other = pr.SubscaleMixture(cv=own).fit(X[kept], y[kept], weight[kept])
    assert one.form_ == other.form_


# ---- calibrated


def by_folds(credit):
    """The pooled and the calibrated risk of every row, by models fitted without it, and the last of these."""
    frame = pl.DataFrame(credit.frame)
    pooled, risk = np.zeros((2, credit.n_rows))
    folds = stratified_folds(credit.target, 5)
    for fold in range(5):
        test = folds == fold
        model = pr.make_classifier("CalibratedMixARM1", credit.schema).fit(frame.filter(~test), credit.target[~test])
        pooled[test] = model.form_.score(frame.filter(test))
        risk[test] = model.predict_proba(frame.filter(test))[:, 1]
    return pooled, risk, model


def assert_calibrated(credit, at_most):
    """The goals of calibrated mixtures, on rows the models have not seen; return the two errors."""
    pooled, risk, model = by_folds(credit)
    metrics, y = pr.metrics, credit.target
    before, after = (metrics.expected_calibration_error(y, each) for each in (pooled, risk))
    assert after <= at_most < before
    assert metrics.log_loss(y, risk) < metrics.log_loss(y, pooled)
    assert model.certify().valid
    for reference in ("typical", "zero"):
        told = model.explain(credit.frame, reference=reference)
        np.testing.assert_allclose(told.total, model.predict_proba(credit.frame)[:, 1], rtol=0, atol=1e-12)
    alone = model.form_.score(credit.frame), model.predict_proba(credit.frame)[:, 1]
    auc = [metrics.roc_auc(y, each) for each in alone]
    assert auc[0] == pytest.approx(auc[1], abs=5e-4)


@pytest.mark.filterwarnings("ignore:.*protected")
def test_calibration_cures_what_pooling_does_to_probabilities():
    assert_calibrated(pr.datasets.make_credit(4_000, seed=2, base_rate=0.2), 0.02)


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_calibration_on_heloc():
    try:
        heloc = pr.datasets.load("heloc")
    except DataError as error:
        pytest.skip(str(error))
    assert_calibrated(heloc, 0.02)


def test_without_calibration_nothing_changes(data, mixture):
    calibrated = pr.SubscaleMixture(schema=SCHEMA, calibrate=True).fit(*data)
    assert (mixture.link_, mixture.form_.pool.link) == (None, None)
    assert b"link" not in msgspec.json.encode(mixture.form_.pool)
    assert calibrated.weights_ == mixture.weights_
    assert calibrated.form_.parts == mixture.form_.parts
    np.testing.assert_array_equal(calibrated.form_.score(data[0]), mixture.form_.risk(data[0]))


def test_the_line_on_the_pool_is_the_best_line_in_log_odds_where_nothing_bends(data):
    """With one piece more or less: where the outcomes say no more, the line of log odds is Platt's, by scikit-learn."""
    X, y = data
    mixture = pr.SubscaleMixture(schema=SCHEMA, calibrate=True, cv=5).fit(X, y)
    rng = np.random.default_rng(0)
    pooled = rng.uniform(0.25, 0.75, 20_000)
    score = np.log(pooled / (1 - pooled))
    outcome = rng.random(20_000) < 1 / (1 + np.exp(0.3 - 2.5 * score))
    line = calibrating_bands(ScoreSums.of(score, None, outcome.astype(float)))
    platt = LogisticRegression(C=np.inf).fit(score[:, None], outcome).predict_proba(score[:, None])[:, 1]
    assert np.abs(line.value(pooled) - platt).max() < 0.02
    assert line.value(pooled).mean() == pytest.approx(outcome.mean(), abs=0.002)
    assert min(mixture.link_.rates) > 0


def test_sums_in_batches_give_the_same_line():
    rng = np.random.default_rng(1)
    score, outcome = rng.normal(size=3_000), (rng.random(3_000) < 0.3).astype(float)
    whole = ScoreSums.of(score, None, outcome)
    halves = ScoreSums.of(score[:900], None, outcome[:900]) + ScoreSums.of(score[900:], None, outcome[900:])
    for a, b in zip(calibrating_bands(whole).values, calibrating_bands(halves).values, strict=True):
        assert a == pytest.approx(b, abs=1e-9)


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_separable_and_hopeless_outcomes_can_be_calibrated():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    for y in ((X[:, 0] > 0).astype(int), rng.integers(0, 2, 300)):
        model = pr.SubscaleMixture(calibrate=True).fit(X, y)
        risk = model.predict_proba(X)[:, 1]
        assert ((risk >= 0) & (risk <= 1)).all()
        assert model.certify().valid


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_foreign_experts_can_be_calibrated(data):
    X, y = data
    pool = pr.SubscaleMixture(GaussianNB(), SCHEMA, calibrate=True).fit(X, y)
    plain = pr.SubscaleMixture(GaussianNB(), SCHEMA).fit(X, y)
    risk, pooled = (m.predict_proba(X)[:, 1] for m in (pool, plain))
    np.testing.assert_array_equal(risk, pool.link_.value(pooled))
    assert pr.metrics.log_loss(y, risk) < pr.metrics.log_loss(y, pooled)
    explained = pool.explain(X)
    np.testing.assert_allclose(explained.total, risk, rtol=0, atol=1e-12)


def test_what_is_left_of_a_calibrated_mixture(data):
    X, y = data
    model = pr.SubscaleMixture(schema=SCHEMA, calibrate=True).fit(X, y)
    assert model.without("noise").form_.pool.link == model.link_
    moved = model.partial_fit(X[:100], y[:100])
    assert moved.form_.pool.link == moved.link_ == model.link_
    with pytest.raises(PlainriskError, match=r"Linearise the experts instead: SubscaleMixture\(Linearised"):
        pr.Linearised(pr.SubscaleMixture(schema=SCHEMA, calibrate=True)).fit(X, y)
    with pytest.raises(DataError, match="calibrate must be"):
        pr.SubscaleMixture(schema=SCHEMA, calibrate="bands").fit(X, y)


def test_regret_stands_beside_its_bound(data, tmp_path):
    X, y = data
    model = pr.SubscaleMixture(schema=SCHEMA).fit(X, y)
    regret = model.fit_record_.regret
    assert regret == model.regret_
    assert regret.best == min(zip(model.losses_, model.weights_, strict=True))[1]
    assert 0 < regret.least <= regret.greatest <= regret.bound
    assert str(regret).endswith(f"summed over the rows; at most {regret.bound:,.4g}")
    model.save(tmp_path / "m.json")
    assert pr.load(tmp_path / "m.json").fit_record_.regret == regret
    moved = model.partial_fit(X[:100], y[:100])
    assert moved.fit_record_.regret == moved.regret_ != regret
    for options in ({"weights": "stacking"}, {"learning_rate": 0.0}):
        assert pr.SubscaleMixture(schema=SCHEMA, **options).fit(X, y).fit_record_.regret is None
