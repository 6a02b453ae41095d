"""Parameters of classifiers and of the functions around them: kinds, ranges, NaN, unknown words."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import plainrisk as pr

NAN, INF = float("nan"), float("inf")


def fitted(model):
    return ((model.predict_proba(ROW)[:, 1] >= 0) & (model.predict_proba(ROW)[:, 1] <= 1)).all()


ROW = {"a": [10.0], "b": [1.0], "c": ["x"]}


def fit(name="ARM1", **options):
    return lambda w: w.fit(name=name, **options)


D = "(Data|Schema|Plainrisk)Error: "
CLASSIFIERS = {
    "an unknown name": (fit("ARM3"), D + "ARM3.*Did you mean 'ARM"),
    "a name in lower case": (fit("arm1"), D + "arm1"),
    "a name that is None": (fit(None), D + "None"),
    "an unknown option": (fit(ridg=1.0), D + "ridg.*ridge"),
    "a link": (fit(link="probit"), D + "link.*probit"),
    "a link that is None": (fit(link=None), D + "link"),
    "max_bins of 0": (fit(max_bins=0), D + "max_bins"),
    "max_bins of -1": (fit(max_bins=-1), D + "max_bins"),
    "max_bins of 2.5": (fit(max_bins=2.5), D + "max_bins"),
    "max_bins of NaN": (fit(max_bins=NAN), D + "max_bins"),
    "max_bins of text": (fit(max_bins="5"), D + "max_bins"),
    "max_bins of None": (fit(max_bins=None), fitted),
    "max_bins of True": (fit(max_bins=True), D + "max_bins"),
    "max_bins of numpy": (fit(max_bins=np.int64(4)), fitted),
    "max_bins beyond all rows": (fit(max_bins=200), fitted),
    "max_bins of 10**30": (fit(max_bins=10**30), fitted),
    "a ridge of -1": (fit(ridge=-1.0), D + "ridge"),
    "a ridge of NaN": (fit(ridge=NAN), D + "ridge"),
    "a ridge of infinity": (fit(ridge=INF), D + "ridge"),
    "a ridge of another word": (fit(ridge="aut"), D + "ridge.*auto"),
    "a ridge of True": (fit(ridge=True), D + "ridge"),
    "a ridge of None": (fit(ridge=None), D + "ridge"),
    "a ridge of a list": (fit(ridge=[0.1]), D + "ridge"),
    "a ridge of 1e300": (fit(ridge=1e300), fitted),
    "a ridge of 1e-300": (fit(ridge=1e-300), fitted),
    "a penalty": (fit(penalty="x"), D + "penalty"),
    "a penalty of 1": (fit(penalty=1), D + "penalty"),
    "a criterion": (fit(criterion="entropi"), D + "criterion"),
    "min_bin_rows of 0": (fit(min_bin_rows=-1), D + "min_bin_rows"),
    "min_bin_rows of NaN": (fit(min_bin_rows=NAN), D + "min_bin_rows"),
    "min_bin_rows of text": (fit(min_bin_rows="many"), D + "min_bin_rows"),
    "min_bin_rows beyond all rows": (fit(min_bin_rows=10**6), fitted),
    "pieces of 0": (fit("BandARM1", pieces=0), D + "pieces"),
    "pieces of 1.5": (fit("BandARM1", pieces=1.5), D + "pieces"),
    "pieces of 10**6": (fit("BandARM1", pieces=10**6), D + "pieces"),
    "an alpha of 0": (fit("LinARM1", alpha=0.0), D + "alpha"),
    "an alpha of text": (fit("LinARM1", alpha="x"), D + "alpha"),
    "an alpha of NaN": (fit("LinARM1", alpha=NAN), D + "alpha"),
    "an alpha of infinity": (fit("LinARM1", alpha=INF), D + "alpha"),
    "an alpha of -2": (fit("LinARM1", alpha=-2.0), D + "alpha"),
    "an epsilon of 0.5": (fit("LinARM1", epsilon=0.5), D + "epsilon"),
    "an epsilon of -1": (fit("LinARM1", epsilon=-1.0), D + "epsilon"),
    "an epsilon of NaN": (fit("LinARM1", epsilon=NAN), D + "epsilon"),
    "trees of depth -1": (fit("MonoXGB", max_depth=-1), D + "max_depth"),
    "trees of depth 0": (fit("MonoXGB", max_depth=0), D + "max_depth"),
    "trees of depth 1.5": (fit("MonoXGB", max_depth=1.5), D + "max_depth"),
    "no trees": (fit("MonoXGB", n_estimators=0), D + "n_estimators"),
    "trees of text": (fit("MonoXGB", n_estimators="50"), D + "n_estimators"),
    "params of text": (fit("MonoXGB", params="x"), D + "params"),
    "params of a list": (fit("MonoXGB", params=[1]), D + "params"),
    "params of another objective": (fit("MonoXGB", params={"objective": "reg:squarederror"}), D + "objective"),
    "a learning rate of 0": (fit("XGB", learning_rate=0.0), D + "learning_rate"),
    "a learning rate of NaN": (fit("XGB", learning_rate=NAN), D + "learning_rate"),
    "monotone of text": (fit("XGB", monotone="yes"), D + "monotone"),
    "a rate of hedge of -1": (fit("MixARM1", learning_rate=-1.0), D + "learning_rate"),
    "a rate of hedge of another word": (fit("MixARM1", learning_rate="papr"), D + "learning_rate.*paper"),
    "a loss of mixtures": (fit("MixARM1", loss="brie"), D + "loss.*brier"),
    "a clip of mixtures": (fit("MixARM1", clip=0.7), D + "clip"),
    "weights of mixtures": (fit("MixARM1", weights="hedg"), D + "weights.*hedge"),
    "folds of mixtures of 1": (fit("MixARM1", weights="stacking", cv=1), D + "cv"),
    "folds of mixtures of 10**9": (fit("MixARM1", weights="stacking", cv=10**9), fitted),
    "folds of mixtures of 2.5": (fit("MixARM1", weights="stacking", cv=2.5), D + "cv"),
    "a mixture without subscales": (
        lambda w: w.fit(name="MixARM1", schema=pr.Schema(features=w.schema.features)),
        fitted,
    ),
    "two layers without subscales": (
        lambda w: w.fit(name="ARM2", schema=pr.Schema(features=w.schema.features)),
        fitted,
    ),
    "a mixture of no model": (
        lambda w: pr.SubscaleMixture(estimator=3, schema=w.schema).fit(w.X, w.y),
        D + "estimator",
    ),
    "two layers of no model": (
        lambda w: pr.TwoLayerRiskModel(estimator="ARM1", schema=w.schema).fit(w.X, w.y),
        D + "estimator",
    ),
    "a class for a model": (
        lambda w: pr.SubscaleMixture(pr.AdditiveRiskModel, w.schema).fit(w.X, w.y),
        D + "estimator",
    ),
    "linearised nothing": (lambda w: pr.Linearised(None).fit(w.X, w.y), "(Data|Extraction|Plainrisk)Error: "),
}


@pytest.mark.parametrize(("call", "expected"), CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_parameters_of_classifiers(judge, call, expected):
    judge(call, expected)


def arm(w):
    return pr.make_classifier("ARM1", w.schema)


def validate(**options):
    return lambda w: pr.cross_validate(arm(w), w.X, w.y, **{"cv": 2, **options})


def bootstrap(**options):
    return lambda w: pr.bootstrap(w.model("ARM1"), w.X, w.y, **{"n": 2, **options})


def worked(result):
    return result is not None


def same(call, **options):
    """Whether two runs of one seed agree."""
    return lambda w: [call(**options)(w) for _ in range(2)]


RESAMPLING = {
    "1 fold": (validate(cv=1), D + "cv|fold"),
    "0 folds": (validate(cv=0), D + "cv|fold"),
    "-3 folds": (validate(cv=-3), D + "cv|fold"),
    "2.5 folds": (validate(cv=2.5), D + "cv|fold"),
    "NaN folds": (validate(cv=NAN), D + "cv|fold"),
    "more folds than rows of a class": (validate(cv=100), D + "cv|fold"),
    "folds of text": (validate(cv="ten"), D + "cv|fold"),
    "folds of None": (validate(cv=None), D + "cv|fold"),
    "a splitter of no rows": (validate(cv=[(np.arange(60), np.array([], int))]), D + "rows"),
    "a splitter of rows beyond": (validate(cv=[(np.arange(60), np.array([10**6]))]), D + "cv|fold|row"),
    "a seed of -1": (validate(seed=-1), D + "seed"),
    "a seed of 1.5": (validate(seed=1.5), D + "seed"),
    "a seed of text": (validate(seed="x"), D + "seed"),
    "a seed of NaN": (validate(seed=NAN), D + "seed"),
    "a seed of None": (validate(seed=None), D + "seed"),
    "a seed of 2**32": (
        same(validate, seed=2**32),
        lambda r: np.array_equal(r[0].risk, r[1].risk) if hasattr(r[0], "risk") else True,
    ),
    "a seed of 2**70": (validate(seed=2**70), worked),
    "groups too few": (validate(groups=[1, 2]), D + "samples|groups"),
    "one group": (validate(groups=np.zeros(120)), D + "group|fold"),
    "groups of NaN": (validate(groups=np.full(120, NAN)), D + "group"),
    "no model": (lambda w: pr.cross_validate(None, w.X, w.y, cv=2), D + "model|estimator|fit"),
    "a text for a model": (lambda w: pr.cross_validate("ARM1", w.X, w.y, cv=2), D + "model|estimator|fit"),
    "a class for a model": (
        lambda w: pr.cross_validate(pr.AdditiveRiskModel, w.X, w.y, cv=2),
        D + "model|class|estimator",
    ),
    "one class in the outcome": (lambda w: pr.cross_validate(arm(w), w.X, np.ones(120), cv=2), D),
    "no rows": (lambda w: pr.cross_validate(arm(w), w.X.head(0), w.y[:0], cv=2), D),
    "no refits": (bootstrap(n=0), D + "n "),
    "-1 refits": (bootstrap(n=-1), D + "n "),
    "1.5 refits": (bootstrap(n=1.5), D + "n "),
    "NaN refits": (bootstrap(n=NAN), D + "n "),
    "a bootstrap seed of -1": (bootstrap(seed=-1), D + "seed"),
    "a bootstrap seed of 0.5": (bootstrap(seed=0.5), D + "seed"),
    "a bootstrap seed of 2**70": (bootstrap(seed=2**70), worked),
    "a bootstrap without outcomes": (lambda w: pr.bootstrap(w.model("ARM1"), w.X, n=2), D),
    "a bootstrap of other rows": (lambda w: pr.bootstrap(w.model("ARM1"), w.X[["a"]], w.y, n=2), D + "'b'"),
    "a bootstrap of a number": (lambda w: pr.bootstrap(3, w.X, w.y, n=2), D),
    "a bootstrap of another library": (
        lambda w: pr.bootstrap(LogisticRegression(), w.X, w.y, n=2),
        "(NotFitted|Data|Plainrisk|Extraction)Error: ",
    ),
    "an interval level of 1.5": (lambda w: bootstrap()(w).contributions(w.X.head(2), level=1.5), D + "level"),
    "an interval level of NaN": (lambda w: bootstrap()(w).contributions(w.X.head(2), level=NAN), D + "level"),
}


@pytest.mark.parametrize(("call", "expected"), RESAMPLING.values(), ids=RESAMPLING)
def test_cross_validation_and_bootstrap(judge, call, expected):
    judge(call, expected)


Y = np.arange(40) % 2
P = np.linspace(0.01, 0.99, 40)


def metric(name="roc_auc", y=Y, p=P, **options):
    return lambda w: getattr(pr.metrics, name)(w.given(y), w.given(p), **options)


METRICS = {
    "risks beyond 1": (metric(p=P * 2), D + "1"),
    "negative risks": (metric(p=P - 0.5), D + "0"),
    "risks of NaN": (metric(p=np.append(P[:-1], NAN)), D + "row 39"),
    "risks of text": (metric(p=["SECRET-7"] * 40), D),
    "risks of two columns": (metric(p=np.c_[1 - P, P]), D),
    "complex risks": (metric(p=P + 0j), D),
    "outcomes of one class": (metric(y=np.ones(40)), D + "both|one|class|outcome"),
    "outcomes of three classes": (metric(y=np.arange(40) % 3), D),
    "outcomes of NaN": (metric(y=np.append(Y[:-1].astype(float), NAN)), D),
    "outcomes of text": (metric(y=["SECRET-7"] * 40), D),
    "too few outcomes": (metric(y=Y[:-1]), D),
    "nothing": (metric(y=[], p=[]), D),
    "scalars": (metric(y=1, p=0.5), D),
    "None": (metric(y=None), D),
    "negative weights": (metric(sample_weight=np.full(40, -1.0)), D + "weight"),
    "weights of NaN": (metric(sample_weight=np.full(40, NAN)), D + "weight"),
    "weights of zero": (metric(sample_weight=np.zeros(40)), D + "weight"),
    "weights too few": (metric(sample_weight=np.ones(3)), D + "weight"),
    "0 bins": (metric("expected_calibration_error", bins=0), D + "bins"),
    "2.5 bins": (metric("expected_calibration_error", bins=2.5), D + "bins"),
    "NaN bins": (metric("reliability", bins=NAN), D + "bins"),
    "text bins": (metric("summary", bins="x"), D + "bins"),
    "a clip of 1": (metric("log_loss", clip=1.0), D + "clip"),
    "a clip of NaN": (metric("log_loss", clip=NAN), D + "clip"),
    "a risk of 0 where the outcome was bad": (
        metric("log_loss", p=np.where(np.arange(40) == 1, 0.0, P)),
        lambda loss: loss == INF,
    ),
}


@pytest.mark.parametrize(("call", "expected"), METRICS.values(), ids=METRICS)
def test_metrics(judge, call, expected):
    judge(call, expected)
