"""The paper's twelve and those beyond: each is built, fitted, exact, certified and saved."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.form import Alone, Bands, Layer, Linear, Logistic, Mixture, Part, TreePart

TWELVE = (
    "NNLR",
    "LinNNLR",
    "ARM1",
    "LinARM1",
    "XGB",
    "MonoXGB",
    "MixARM1",
    "MixLinARM1",
    "ARM2",
    "LinARM2",
    "MixXGB",
    "MixMonoXGB",
)
BEYOND = ("BandARM1", "DirectARM1", "SmoothARM1", "CalibratedMixARM1", "SmoothDirectARM1")
FREE = ("XGB", "MixXGB")  # trees that know no directions
# pool, links of the parts, link of the pool
STRUCTURE = {
    "NNLR": (Alone, Logistic, None),
    "LinNNLR": (Alone, Linear, None),
    "ARM1": (Alone, Logistic, None),
    "LinARM1": (Alone, Linear, None),
    "XGB": (Alone, Logistic, None),
    "MonoXGB": (Alone, Logistic, None),
    "MixARM1": (Mixture, Logistic, None),
    "MixLinARM1": (Mixture, Linear, None),
    "ARM2": (Layer, Logistic, Logistic),
    "LinARM2": (Layer, Linear, Linear),
    "MixXGB": (Mixture, Logistic, None),
    "MixMonoXGB": (Mixture, Logistic, None),
    "BandARM1": (Alone, Bands, None),
    "DirectARM1": (Alone, Linear, None),
    "SmoothARM1": (Alone, Bands, None),
    "CalibratedMixARM1": (Mixture, Logistic, Bands),
    "SmoothDirectARM1": (Alone, Linear, None),
}


@cache
def data(name):
    return pr.datasets.load("german") if name == "german" else pr.datasets.make_credit(1200, seed=9, base_rate=0.2)


@cache
def fitted(name, on):
    if "XGB" in name:
        pytest.importorskip("xgboost")
    d = data(on)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return pr.make_classifier(name, d.schema).fit(d.frame, d.target)


every_classifier = pytest.mark.parametrize("name", [*TWELVE, *BEYOND])
# Every classifier on one data set; on another one for every class, the others share their way of a fit.
AGAIN = ("NNLR", "LinARM1", "MixLinARM1", "ARM2", "SmoothARM1", "MonoXGB")
every_fit = pytest.mark.parametrize(
    ("name", "on"), [*((name, "german") for name in [*TWELVE, *BEYOND]), *((name, "make_credit") for name in AGAIN)]
)
both = pytest.mark.parametrize("on", ["german", "make_credit"])


def test_the_names():
    assert tuple(n for n, c in pr.CLASSIFIERS.items() if c.in_paper) == TWELVE
    assert tuple(n for n, c in pr.CLASSIFIERS.items() if not c.in_paper) == BEYOND
    assert all(c.name == n and c.description.endswith(".") for n, c in pr.CLASSIFIERS.items())


@every_fit
def test_each_fits_and_its_parts_add_up(name, on, tmp_path):
    model, X = fitted(name, on), data(on).frame
    risk = model.predict_proba(X)
    assert risk.shape == (data(on).n_rows, 2)
    assert ((risk >= 0) & (risk <= 1)).all()
    np.testing.assert_allclose(risk.sum(axis=1), 1.0, atol=1e-15)
    assert pr.metrics.roc_auc(data(on).target, risk[:, 1]) > 0.7
    explained = model.explain(X, portfolio=X)
    assert explained.unit == "probability"
    np.testing.assert_allclose(explained.total, risk[:, 1], rtol=0, atol=1e-12)
    by_subscale = sum(explained.by_subscale.values()) + explained.constant
    np.testing.assert_allclose(by_subscale, explained.total, rtol=0, atol=1e-12)
    assert 0 < explained.constant[0] < 1
    model.save(tmp_path / "model.json")
    again = pr.load(tmp_path / "model.json")
    assert again.form_ == model.form_
    np.testing.assert_array_equal(again.predict_proba(X), risk)
    np.testing.assert_array_equal(again.explain(X, portfolio=X).total, explained.total)


@every_fit
def test_each_keeps_the_directions_but_free_trees(name, on):
    certificate = fitted(name, on).certify()
    assert certificate.valid is (name not in FREE), str(certificate)
    broken = [c.name for c in certificate.checks if not c.holds]
    assert all(b.startswith("monotone in ") for b in broken)


@every_fit
def test_each_is_what_its_name_says(name, on):
    form = fitted(name, on).form_
    pool, inner, outer = STRUCTURE[name]
    assert type(form.pool) is pool
    assert {type(part.link) for part in form.parts} == {inner}
    assert outer is None or type(form.pool.link) is outer
    assert {type(part) for part in form.parts} == {TreePart if "XGB" in name else Part}
    if pool is not Alone:
        assert [part.name for part in form.parts] == list(data(on).schema.subscales)
    if name.startswith("Lin") or "MixLin" in name:
        assert {part.link for part in form.parts} == {Linear.from_alpha(pr.ALPHA_STAR)}
    straight = inner in (Linear, Bands) and outer is not Logistic
    assert form.speaks_probability is straight


@both
@pytest.mark.parametrize(
    ("mixture", "model"), [("MixARM1", "ARM1"), ("MixLinARM1", "LinARM1"), ("MixMonoXGB", "MonoXGB")]
)
def test_the_experts_are_the_model_on_their_subscale(mixture, model, on):
    d, form = data(on), fitted(mixture, on).form_
    features = next(iter(d.schema.subscales.values()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        alone = pr.make_classifier(model, d.schema.select(features)).fit(d.frame, d.target)
    np.testing.assert_allclose(form.part_risks(d.frame)[:, 0], alone.predict_proba(d.frame)[:, 1], rtol=0, atol=1e-12)


# ---- options


def test_the_paper_s_conventions():
    for name in TWELVE:
        plain, paper = (pr.make_classifier(name, paper=p).get_params() for p in (False, True))
        ridges = {k: v for k, v in paper.items() if k.split("__")[-1] == "ridge"}
        assert set(ridges.values()) <= {0.0}
        assert bool(ridges) is ("XGB" not in name)
        weights = {k: v for k, v in paper.items() if k.split("__")[-1] == "class_weight"}
        # One place each: a mixture weighs for all its experts.
        outermost = min(weights, key=lambda k: k.count("__"))
        assert weights[outermost] == "balanced"
        assert all(v is None for k, v in weights.items() if k != outermost)
        if name.startswith("Mix"):
            assert (plain["clip"], paper["clip"]) == ("auto", 1e-15)
            assert plain["learning_rate"] == paper["learning_rate"] == "paper"
        assert all(v is None for k, v in plain.items() if k.split("__")[-1] == "class_weight")
        default = {k: v for k, v in plain.items() if k.split("__")[-1] == "ridge"}
        assert set(default.values()) <= ({0.0} if "NNLR" in name else {"auto"})


def test_balanced_training_under_the_paper_s_conventions():
    d = data("make_credit")
    for name in ("ARM1", "MixARM1", "ARM2"):
        with pytest.warns(PlainriskWarning, match="class_weight moves the base rate from .* to 50.0%") as caught:
            model = pr.make_classifier(name, d.schema, paper=True, ridge="auto").fit(d.frame, d.target)
        others = [str(w.message) for w in caught if "class_weight" not in str(w.message)]
        assert len(caught) - len(others) == 1
        assert all("reads protected features" in message for message in others)
        assert model.predict_proba(d.frame)[:, 1].mean() == pytest.approx(0.5, abs=0.15)
        assert model.fit_record_.positive_weight == pytest.approx(model.fit_record_.weight / 2)
        assert model.fit_record_.base_rate == pytest.approx(d.target.mean())


def test_options_given_go_before_the_paper_s():
    model = pr.make_classifier("MixLinARM1", paper=True, ridge=0.3, clip=0.01, class_weight=None, learning_rate="hedge")
    assert model.estimator.estimator.ridge == 0.3
    assert (model.clip, model.class_weight, model.learning_rate) == (0.01, None, "hedge")


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("NNLR", {"ridge": 2.0}, {"ridge": 2.0}),
        ("LinNNLR", {"ridge": "auto", "alpha": 4.0}, {"estimator__ridge": "auto", "alpha": 4.0}),
        ("ARM1", {"max_bins": 7, "shapes": "smooth"}, {"max_bins": 7, "shapes": "smooth"}),
        ("LinARM1", {"pieces": 3, "ridge": 0.1}, {"pieces": 3, "estimator__ridge": 0.1}),
        ("BandARM1", {}, {"pieces": 3}),
        ("BandARM1", {"pieces": 5}, {"pieces": 5}),
        ("LinARM2", {"epsilon": 0.1, "criterion": "entropy"}, {"epsilon": 0.1, "estimator__criterion": "entropy"}),
        ("XGB", {"max_depth": 3, "learning_rate": 0.2}, {"max_depth": 3, "learning_rate": 0.2, "monotone": False}),
        (
            "MixMonoXGB",
            {"n_estimators": 9, "cv": 3},
            {"estimator__n_estimators": 9, "cv": 3, "estimator__monotone": True},
        ),
        ("MixARM1", {"max_bins": 4, "weights": "stacking"}, {"estimator__max_bins": 4, "weights": "stacking"}),
        ("MixLinARM1", {"alpha": 3.0, "ridge": 0.5}, {"estimator__alpha": 3.0, "estimator__estimator__ridge": 0.5}),
        ("MixXGB", {"learning_rate": 0.3}, {"estimator__learning_rate": 0.1, "learning_rate": 0.3}),
        ("MixXGB", {"class_weight": "balanced"}, {"estimator__class_weight": None, "class_weight": "balanced"}),
        ("DirectARM1", {"ridge": "auto"}, {"ridge": "auto", "link": "linear"}),
        ("ARM2", {"ridge": 0.1, "link": "linear"}, {"ridge": 0.1, "link": "linear"}),
        ("MixARM1", {"loss": "brier", "link": "linear"}, {"loss": "brier", "estimator__link": "linear"}),
    ],
)
def test_options_reach_the_model_they_are_for(name, options, found):
    parameters = pr.make_classifier(name, **options).get_params()
    assert {k: parameters[k] for k in found} == found


@every_classifier
def test_an_option_goes_to_the_outermost_model_that_has_it(name):
    plain = pr.make_classifier(name).get_params()
    options = pr.CLASSIFIERS[name].options
    assert list(options) == sorted(set(options))
    assert set(options) == {key.split("__")[-1] for key in plain} - {"estimator", "schema"}
    for option in options:
        mark = object()
        found = pr.make_classifier(name, **{option: mark}).get_params()
        outermost = min((key for key in plain if key.split("__")[-1] == option), key=lambda key: key.count("__"))
        assert [key for key, value in found.items() if value is mark] == [outermost]


@every_classifier
def test_a_made_classifier_can_be_cloned(name):
    model = pr.make_classifier(name, data("german").schema)
    assert repr(clone(model)) == repr(model)
    assert clone(model).schema == data("german").schema


def test_what_is_made_twice_shares_nothing():
    one, two = (pr.make_classifier("MixLinARM1") for _ in range(2))
    one.set_params(estimator__estimator__max_bins=9)
    assert two.estimator.estimator.max_bins is None


def test_unknown_names_and_options_are_met_with_known_ones():
    with pytest.raises(DataError, match=r"There is no classifier 'LinARM'\. Did you mean 'LinARM"):
        pr.make_classifier("LinARM")
    with pytest.raises(DataError, match=r"ARM1 has no option 'rigde'\. Did you mean 'ridge'"):
        pr.make_classifier("ARM1", rigde=1.0)
    with pytest.raises(DataError, match="XGB has no option 'ridge'"):
        pr.make_classifier("XGB", ridge=1.0)
    with pytest.raises(DataError, match="pieces need bands: AdditiveRiskModel\\(link='bands', pieces"):
        pr.make_classifier("ARM1", pieces=3).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(DataError, match="MixXGB has no option 'hedge_rate'"):
        pr.make_classifier("MixXGB", hedge_rate=0.1)
    with pytest.raises(DataError, match="MixARM1 has no option 'estimator'"):
        pr.make_classifier("MixARM1", estimator=None)


def test_the_schema_reaches_the_model():
    d = data("german")
    for name in (*TWELVE, *BEYOND):
        assert pr.make_classifier(name, d.schema).schema == d.schema
        assert pr.make_classifier(name).schema is None
