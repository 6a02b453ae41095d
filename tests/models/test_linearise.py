"""Linearised: the line of every logistic model by the formula, bands that keep the order, and what is refused."""

from __future__ import annotations

import itertools
import warnings

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import plainrisk as pr
from plainrisk.errors import DataError, ExtractionError, PlainriskWarning
from plainrisk.form import Bands, Linear, Logistic
from plainrisk.form.links import best_bands

MODELS = {
    "ARM1": lambda s: pr.AdditiveRiskModel(s),
    "NNLR": lambda s: pr.NonnegativeLogisticRegression(s, ridge="auto"),
    "XGB": lambda s: pr.BoostedRiskModel(s, n_estimators=20),
    "stumps": lambda s: pr.BoostedRiskModel(s, n_estimators=20, max_depth=1, monotone=True),
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def credit():
    return pr.datasets.make_credit(1200, seed=4, base_rate=0.3, backend="pandas")


@pytest.fixture(scope="module")
def fitted(credit):
    # The data have special values, of which trees under a direction warn.
    return quietly(
        lambda: {name: make(credit.schema).fit(credit.frame, credit.target) for name, make in MODELS.items()}
    )


@pytest.fixture(scope="module")
def two_layers(credit):
    return pr.TwoLayerRiskModel(schema=credit.schema).fit(credit.frame, credit.target)


def without_risks(record):
    """A linearised model does not know the training probabilities anew; one that is fitted does."""
    return msgspec.structs.replace(record, risks=None)


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return call()


# ---- one piece: the paper's line


@every_model
@pytest.mark.parametrize(("alpha", "epsilon"), [(pr.ALPHA_STAR, 0.0), (pr.ALPHA_STAR, 0.05), (6.0, 0.0), (1.0, 0.01)])
def test_the_line_is_the_formula_of_the_model_s_own_log_odds(credit, fitted, name, alpha, epsilon):
    X = credit.frame
    model = quietly(lambda: pr.linearise(fitted[name], X, alpha=alpha, epsilon=epsilon))
    own = logit(fitted[name].predict_proba(X)[:, 1])
    expected = np.clip(0.5 + own / (2 * alpha), epsilon, 1 - epsilon)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-12)
    assert model.form_.parts[0].link == Linear.from_alpha(alpha, epsilon)
    again = quietly(
        lambda: pr.Linearised(MODELS[name](credit.schema), alpha=alpha, epsilon=epsilon).fit(X, credit.target)
    )
    assert again.form_ == model.form_
    assert without_risks(again.fit_record_) == without_risks(model.fit_record_)


def test_the_default_is_the_paper_s(credit):
    model = quietly(lambda: pr.Linearised(pr.AdditiveRiskModel(credit.schema)).fit(credit.frame, credit.target))
    assert model.form_.parts[0].link == Linear(slope=1 / (2 * 2.5996819083143223), offset=0.5)
    assert model.form_.speaks_probability


def test_a_wider_line_clips_less_and_epsilon_bounds_the_risk(credit, fitted):
    clipped = []
    for alpha in (1.0, pr.ALPHA_STAR, 4.0, 12.0):
        risk = quietly(lambda a=alpha: pr.linearise(fitted["ARM1"], credit.frame, alpha=a)).predict_proba(credit.frame)
        clipped.append(((risk[:, 1] == 0) | (risk[:, 1] == 1)).mean())
    assert clipped[0] > clipped[1] > clipped[2] > clipped[3] == 0
    narrow = quietly(lambda: pr.linearise(fitted["ARM1"], credit.frame, epsilon=0.1)).predict_proba(credit.frame)[:, 1]
    assert (narrow.min(), narrow.max()) == (0.1, 0.9)


def test_both_layers_of_a_two_layer_model_are_lines(credit, two_layers):
    X, a = credit.frame, pr.ALPHA_STAR
    model = quietly(lambda: pr.make_classifier("LinARM2", credit.schema).fit(X, credit.target))
    assert {type(link) for link in model.form_.links} == {Linear}
    inner = np.column_stack(
        [logit(two_layers.estimators_[part.name].predict_proba(X)[:, 1]) for part in model.form_.parts]
    )
    risks = np.clip(0.5 + inner / (2 * a), 0, 1)
    outer = two_layers.solution_.intercept + risks @ list(two_layers.weights_.values())
    expected = np.clip(0.5 + outer / (2 * a), 0, 1)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-12)
    explained = model.explain(X)
    assert None not in explained.features
    np.testing.assert_allclose(explained.total, expected, rtol=0, atol=1e-12)
    assert model.certify().valid


def test_experts_of_a_mixture_become_lines_and_keep_their_weights(credit):
    X = credit.frame
    mixture = pr.SubscaleMixture(schema=credit.schema).fit(X, credit.target)
    model = pr.linearise(mixture, X)
    assert model.form_.pool == mixture.form_.pool
    expected = np.clip(0.5 + mixture.form_.part_scores(X) / (2 * pr.ALPHA_STAR), 0, 1) @ mixture.form_.pool.weights
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-12)


def test_other_libraries_models_before_and_after_fitting(credit):
    X = credit.frame.select_dtypes("number").fillna(0.0)
    X = (X - X.mean()) / X.std()
    for model in (LogisticRegression(C=0.1), make_pipeline(StandardScaler(), LogisticRegression())):
        before = quietly(lambda m=model: pr.Linearised(m).fit(X, credit.target))
        own = before.estimator_.decision_function(X)
        risk = before.predict_proba(X)[:, 1]
        np.testing.assert_allclose(risk, np.clip(0.5 + own / (2 * pr.ALPHA_STAR), 0, 1), rtol=0, atol=1e-9)
        after = quietly(lambda m=model: pr.linearise(clone(m).fit(X, credit.target), X))
        np.testing.assert_allclose(after.predict_proba(X)[:, 1], risk, rtol=0, atol=1e-12)
        assert before.classes_.tolist() == [0, 1]
        assert before.fit_record_.rows == len(X)
        assert before.fit_record_.base_rate == pytest.approx(credit.target.mean())


def test_the_line_of_a_foreign_model_under_weights(rng):
    """Rows of weight 0 are no rows, for the wrapped model, for the counts and for the bands."""
    X, w = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    y = np.array(["no", "yes"])[(X[:, 0] + rng.normal(size=300) > 0).astype(int)]
    for pieces in (1, 3):
        weighted = quietly(lambda p=pieces: pr.Linearised(LogisticRegression(), pieces=p).fit(X, y, sample_weight=w))
        repeated = quietly(
            lambda p=pieces: pr.Linearised(LogisticRegression(), pieces=p).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        )
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)
        assert weighted.fit_record_.rows == np.count_nonzero(w)
        assert weighted.fit_record_.weight == w.sum()
        assert weighted.classes_.tolist() == ["no", "yes"]
        assert set(weighted.predict(X)) == {"no", "yes"}


def test_a_model_that_takes_no_weights_is_named():
    class NoWeights(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    X, y = np.arange(20.0)[:, None], np.tile([0, 1], 10)
    with pytest.raises(DataError, match=r"NoWeights.fit takes no sample_weight\. Fit without weights"):
        pr.Linearised(NoWeights()).fit(X, y, sample_weight=np.arange(20))


# ---- bands


@every_model
@pytest.mark.parametrize("pieces", [2, 3, 4, 7])
def test_bands_keep_the_order_and_clip_no_training_row(credit, fitted, name, pieces):
    X, y = credit.frame, credit.target
    model = pr.linearise(fitted[name], X, pieces=pieces)
    link = model.form_.parts[0].link
    assert isinstance(link, Bands)
    assert len(link.rates) == pieces
    assert min(link.rates) > 0
    assert (np.diff(link.knots) > 0).all()
    risk, own = model.predict_proba(X)[:, 1], fitted[name].form_.score(X)
    order = np.argsort(own, kind="stable")
    assert (np.diff(risk[order])[np.diff(own[order]) > 0] > 0).all()
    assert roc_auc_score(y, risk) == roc_auc_score(y, own) == roc_auc_score(y, fitted[name].predict_proba(X)[:, 1])
    assert ((risk > 0) & (risk < 1)).all()
    assert model.fit_record_.clipped == 0.0
    # The ends lie on the sigmoid, at the least and the greatest score seen.
    np.testing.assert_allclose([link.knots[0], link.knots[-1]], [own.min(), own.max()], atol=1e-12)
    np.testing.assert_allclose([risk.min(), risk.max()], logistic(np.array([own.min(), own.max()])), atol=1e-12)


def logistic(score):
    return 1 / (1 + np.exp(-score))


@every_model
def test_more_pieces_follow_the_sigmoid_more_closely(credit, fitted, name):
    X = credit.frame
    own = fitted[name].predict_proba(X)[:, 1]
    errors = [
        ((quietly(lambda k=k: pr.linearise(fitted[name], X, pieces=k)).predict_proba(X)[:, 1] - own) ** 2).mean()
        for k in (1, 3, 5, 8)
    ]
    assert all(later < 0.6 * before for before, later in itertools.pairwise(errors))


def extreme_rows(form):
    """One row with every level's least score, one with the greatest."""
    rows = []
    for pick in (np.argmin, np.argmax):
        row = {}
        for name, shape in form.parts[0].shapes.items():
            levels, k = shape.levels, int(pick(shape.scores))
            row[name] = value_of(levels, k)
        rows.append(row)
    return pd.DataFrame(rows)


def value_of(levels, k):
    """A value that falls into a level."""
    if hasattr(levels, "categories"):
        return [*levels.categories, None, "never seen"][k]
    if k < levels.n_ordered:
        return (*levels.edges, (levels.edges[-1] + 1.0) if levels.edges else 1.0)[k]
    below = [] if levels.lower_bound is None else [levels.lower_bound - 12345.5]
    return [*levels.special_values, *below, np.nan][k - levels.n_ordered]


def test_bands_without_rows_are_the_best_for_the_sigmoid(fitted):
    for pieces in (2, 3, 6):
        best, link = best_bands(pieces), pr.linearise(fitted["ARM1"], pieces=pieces).form_.parts[0].link
        assert (link.knots, link.values) == (best.knots, best.values)


def test_bands_of_two_layers(credit, two_layers):
    X, y = credit.frame, credit.target
    model = pr.linearise(two_layers, X, pieces=3)
    assert {type(link) for link in model.form_.links} == {Bands}
    wrapped = pr.Linearised(pr.TwoLayerRiskModel(schema=credit.schema), pieces=3).fit(X, y)
    for link, other in zip(model.form_.parts, wrapped.form_.parts, strict=True):
        assert (link.link.knots[0], link.link.knots[-1]) == pytest.approx((other.link.knots[0], other.link.knots[-1]))
    # The wrapped model knows the outcomes, and they do not speak against the sigmoid.
    np.testing.assert_allclose(wrapped.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-9)
    explained = model.explain(X)
    np.testing.assert_allclose(explained.total, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    assert None not in explained.features
    assert model.certify().valid
    assert model.fit_record_.clipped == 0.0


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_bands_of_two_layers_follow_outcomes_that_speak():
    rare = pr.datasets.make_credit(1200, seed=4, backend="pandas")
    X, y = rare.frame, rare.target
    straight = pr.linearise(pr.TwoLayerRiskModel(schema=rare.schema).fit(X, y), X, pieces=3)
    followed = pr.Linearised(pr.TwoLayerRiskModel(schema=rare.schema), pieces=3).fit(X, y)
    losses = [log_loss(y, m.predict_proba(X)[:, 1]) for m in (straight, followed)]
    assert losses[1] < losses[0] - 1e-3


@pytest.mark.parametrize("pieces", [1, 2, 3, 5])
def test_contributions_are_exact_at_the_mean_rate_of_the_bands(credit, fitted, pieces):
    X = credit.frame
    form = fitted["ARM1"].form_
    model = quietly(lambda: pr.linearise(form, X, pieces=pieces))
    explained = model.explain(X)
    risk, score = model.predict_proba(X)[:, 1], form.score(X)
    np.testing.assert_allclose(explained.total, risk, rtol=0, atol=1e-12)
    if pieces == 1:
        slope = np.where((risk == 0) | (risk == 1), 0.0, 1 / (2 * pr.ALPHA_STAR))
    else:
        # The band by hand: how many inner knots are at or below the score.
        link = model.form_.parts[0].link
        band = (score[:, None] >= np.array(link.knots[1:-1])).sum(axis=1)
        assert set(band) == set(range(pieces))
        np.testing.assert_array_equal(explained.band, band)
        width, rise = np.diff(link.knots), np.diff(link.values)
        slope = np.where((risk == 0) | (risk == 1), 0.0, (rise / width)[band])
    np.testing.assert_allclose(explained.rate, slope, rtol=0, atol=1e-12)
    logistic_effects = fitted["ARM1"].explain(X, unit="log odds")
    rate = (risk - explained.constant) / (score - logistic_effects.constant)
    by_feature = dict(zip(logistic_effects.features, logistic_effects.contributions.T, strict=True))
    for feature, column in zip(explained.features, explained.contributions.T, strict=True):
        np.testing.assert_allclose(column, rate * by_feature[feature], rtol=0, atol=1e-10)


def test_trees_are_linearised_as_a_whole(credit, fitted):
    X = credit.frame
    for pieces in (1, 3):
        model = quietly(lambda p=pieces: pr.linearise(fitted["XGB"], X, pieces=p))
        explained = model.explain(X, portfolio=X)
        assert explained.features == (None,)
        assert not model.form_.speaks_probability
        np.testing.assert_allclose(explained.total, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.02}, {"pieces": 3}, {"pieces": 4}], ids=str)
def test_saved_and_loaded(credit, tmp_path, options):
    X = credit.frame
    for estimator in (pr.AdditiveRiskModel(credit.schema), pr.TwoLayerRiskModel(schema=credit.schema)):
        model = quietly(lambda e=estimator: pr.Linearised(e, **options).fit(X, credit.target))
        model.save(tmp_path / "line.json")
        again = pr.load(tmp_path / "line.json")
        assert again.form_ == model.form_
        assert without_risks(again.fit_record_) == without_risks(model.fit_record_)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.explain(X).contributions, model.explain(X).contributions)


def test_lines_and_bands_keep_the_directions(credit, fitted):
    for pieces in (1, 3):
        model = quietly(lambda p=pieces: pr.linearise(fitted["ARM1"], credit.frame, pieces=p))
        certificate = model.certify()
        assert certificate.valid
        assert "points of the probability" in str(certificate)


# ---- what the user is told


def test_clipping_is_told_with_its_cure(credit, fitted):
    rare = pr.datasets.make_credit(1200, seed=5, base_rate=0.05, backend="pandas")
    plain = pr.AdditiveRiskModel(rare.schema)
    told = r"Linearised\(AdditiveRiskModel\): the line is cut off at 0 or 1 for \d+% of the training rows.*link='bands'"
    with pytest.warns(PlainriskWarning, match=told) as caught:
        model = pr.Linearised(plain).fit(rare.frame, rare.target)
    assert len([one for one in caught if "cut off" in str(one.message)]) == 1
    risk = model.predict_proba(rare.frame)[:, 1]
    share = ((risk == 0) | (risk == 1)).mean()
    assert model.fit_record_.clipped == pytest.approx(share)
    assert share > 0.5
    with pytest.warns(PlainriskWarning, match=told):
        after = pr.linearise(clone(plain).fit(rare.frame, rare.target), rare.frame)
    assert without_risks(after.fit_record_) == without_risks(model.fit_record_)
    # The cure works, and warns of nothing.
    cured = pr.Linearised(plain, pieces=3).fit(rare.frame, rare.target)
    assert cured.fit_record_.clipped == 0.0
    # Without rows nobody knows how many are clipped, so no record says 0.
    assert pr.linearise(fitted["ARM1"]).fit_record_ is None


def test_the_record_is_that_of_the_fit(credit, fitted):
    model = pr.linearise(fitted["ARM1"], credit.frame, pieces=3)
    was = fitted["ARM1"].fit_record_
    expected = msgspec.structs.replace(was, estimator="Linearised(AdditiveRiskModel)", clipped=0.0)
    assert model.fit_record_ == without_risks(expected)


# ---- refusals


def test_a_model_that_is_linear_already_is_refused(credit):
    X, y = credit.frame, credit.target
    said = "The model has no logistic link to linearize: its contributions are probabilities already"
    for name in ("DirectARM1", "LinARM1", "BandARM1", "LinARM2", "MixLinARM1"):
        model = quietly(lambda n=name: pr.make_classifier(n, credit.schema).fit(X, y))
        with pytest.raises(ExtractionError, match=said):
            pr.linearise(model, X)
    wrapped = pr.Linearised(pr.AdditiveRiskModel(credit.schema, link="linear", ridge=1.0))
    with pytest.raises(ExtractionError, match=said):
        wrapped.fit(X, y)


def test_models_without_additive_log_odds_are_refused(rng):
    X = rng.normal(size=(90, 2))
    y = (X[:, 0] > 0).astype(int)
    for model, said in (
        (RandomForestClassifier(n_estimators=3), "votes of trees"),
        (CalibratedClassifierCV(LogisticRegression(), cv=2), "calibration"),
    ):
        with pytest.raises(ExtractionError, match=said):
            pr.Linearised(model).fit(X, y)
    with pytest.raises(DataError, match="Only binary classification is supported"):
        pr.Linearised(LogisticRegression()).fit(X, rng.integers(0, 3, 90))
    three = LogisticRegression().fit(X, rng.integers(0, 3, 90))
    with pytest.raises(ExtractionError, match="it is multi-class"):
        pr.linearise(three, X)
    with pytest.raises(ExtractionError, match="not fitted"):
        pr.linearise(LogisticRegression(), X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must be a finite number above 0, not 0.0"),
        ({"alpha": -1.0}, "alpha must be a finite number above 0"),
        ({"alpha": np.inf}, "alpha must be a finite number above 0"),
        ({"epsilon": 0.5}, "epsilon must be a finite number of at least 0 and below 0.5, not 0.5"),
        ({"epsilon": -0.1}, "epsilon must be a finite number of at least 0"),
        ({"pieces": 0}, "pieces must be a whole number from 1 to 30 or 'auto', not 0"),
        ({"pieces": 2.0}, "pieces must be a whole number"),
        ({"pieces": 31}, "pieces must be a whole number"),
    ],
)
def test_wrong_options_are_named(credit, fitted, options, message):
    with pytest.raises(DataError, match=message):
        pr.linearise(fitted["ARM1"], credit.frame, **options)
    with pytest.raises(DataError, match=message):
        pr.Linearised(pr.AdditiveRiskModel(credit.schema), **options).fit(credit.frame, credit.target)


def test_a_link_that_is_no_logistic_one_stays_as_it_is(credit):
    """A mixture of a logistic and a linear expert: only the logistic one is replaced."""
    experts = {name: pr.AdditiveRiskModel(link="linear") for name in credit.schema.subscales}
    first = next(iter(experts))
    experts[first] = pr.AdditiveRiskModel()
    mixture = pr.SubscaleMixture(experts, credit.schema).fit(credit.frame, credit.target)
    model = pr.linearise(mixture, credit.frame)
    links = {part.name: part.link for part in model.form_.parts}
    assert links.pop(first) == Linear.from_alpha(pr.ALPHA_STAR)
    assert set(links.values()) == {Linear()}
    assert not any(isinstance(link, Logistic) for link in model.form_.links)


def test_weights_of_a_portfolio_are_checked(credit, fitted):
    weight = np.full(len(credit.frame), -1.0)
    with pytest.raises(DataError, match="sample_weight must be finite and not negative"):
        pr.linearise(next(iter(fitted.values())), credit.frame, sample_weight=weight, pieces=3)
