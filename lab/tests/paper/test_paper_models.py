"""What the paper's models reach on credit data, on ten folds: the published figures, and where ours depart from them.

German credit is built in, so its figures are checked everywhere; the others where PLAINRISK_DATA holds them.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import plainrisk as pr
from plainrisk.errors import PlainriskWarning
from plainrisk_lab.paper.published import paper_table


def mean_auc(name, data, **options):
    """The mean AUC over ten folds; every fold's contributions add up, and directions hold where they are promised."""
    X, y = data.frame, np.asarray(data.target)
    aucs = []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(y, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            model = pr.make_classifier(name, data.schema, **options).fit(X[train], y[train])
        risk = model.predict_proba(X[test])[:, 1]
        aucs.append(pr.metrics.roc_auc(y[test], risk))
        explained = model.explain(X[test], portfolio=X[train])
        np.testing.assert_allclose(explained.total, risk, rtol=0, atol=1e-12)
        assert model.certify().valid or name in ("XGB", "MixXGB")
    return float(np.mean(aucs))


# The paper's folds are not known, so the mean of ten is within 0.003 of the published figure. (The mixtures of boosted
# trees take longer than a test should; the study has them.)
@pytest.mark.parametrize("name", ["LinARM1", "LinARM2", "MixARM1", "MixLinARM1", "XGB", "MonoXGB"])
def test_heloc_is_the_paper_s(load, name):
    if "XGB" in name:
        pytest.importorskip("xgboost")
    published = paper_table("auc").value("heloc", name)
    assert mean_auc(name, load("heloc")) == pytest.approx(published, abs=0.003)


# A fold has a hundred rows, so the bound is wider. The two-layer models and mixtures are above the published figures,
# which the report lists as not explained.
@pytest.mark.parametrize("name", ["ARM1", "LinARM1", "XGB", "MonoXGB"])
def test_german_is_the_paper_s(load, name):
    if "XGB" in name:
        pytest.importorskip("xgboost")
    published = paper_table("auc").value("german", name)
    assert mean_auc(name, load("german"), paper=True) == pytest.approx(published, abs=0.015)


@pytest.mark.parametrize("name", ["ARM2", "LinARM2", "MixARM1", "MixLinARM1"])
def test_german_is_above_the_paper_s(load, name):
    assert mean_auc(name, load("german"), paper=True) > paper_table("auc").value("german", name)


@pytest.mark.parametrize("name", ["australia", "japan"])
def test_the_paper_s_weakest_spot_is_cured(load, name):
    """The paper has 0.760 and 0.756 there: one certain error cost an expert its weight. Its variant is kept."""
    assert mean_auc("MixLinARM1", load(name)) >= 0.93
    published = paper_table("auc").value(name, "MixLinARM1")
    assert mean_auc("MixLinARM1", load(name), paper=True) == pytest.approx(published, abs=0.03)


@pytest.mark.parametrize("name", ["german", "heloc", "australia"])
def test_bands_rank_as_the_logistic_model_does(load, name):
    data = load(name)
    X, y = data.frame, np.asarray(data.target)
    own = pr.AdditiveRiskModel(data.schema).fit(X, y)
    bands = pr.linearise(own, X, pieces=3)
    risk = bands.predict_proba(X)[:, 1]
    assert pr.metrics.roc_auc(y, risk) == pr.metrics.roc_auc(y, own.predict_proba(X)[:, 1])
    assert pr.metrics.certainty(y, risk) == 0.0
    ece = [pr.metrics.expected_calibration_error(y, model.predict_proba(X)[:, 1]) for model in (own, bands)]
    assert ece[1] < ece[0] + 0.02  # the bands follow the sigmoid by log loss
