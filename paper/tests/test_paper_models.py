"""What the paper's models reach on real credit data, on the same ten folds: the figures the project promises."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning

# The paper's table. Its folds are not known, so the mean of ten stays within 0.003. (The mixtures of boosted trees,
# 0.7842 and 0.7757 there, take longer than a test should; the study has them.)
HELOC = {
    "LinARM1": 0.7963,
    "LinARM2": 0.7958,
    "MixARM1": 0.7817,
    "MixLinARM1": 0.7818,
    "XGB": 0.7931,
    "MonoXGB": 0.7908,
}


@pytest.fixture(scope="module")
def load(data_folder):
    @cache
    def load_or_skip(name):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLAINRISK_DATA", str(data_folder))
            try:
                return pr.datasets.load(name)
            except (DataError, FileNotFoundError) as error:
                pytest.skip(f"{name} is not in the folder of real data: {str(error)[:60]}")

    return load_or_skip


def cross_validate(name, data, **options):
    """The mean AUC over ten folds; every fold's contributions add up, and directions hold where they are promised."""
    X, y = data.frame, np.asarray(data.target)
    aucs = []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(y, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            model = pr.make_classifier(name, data.schema, **options).fit(X[train], y[train])
        risk = model.predict_proba(X[test])[:, 1]
        aucs.append(pr.metrics.roc_auc(y[test], risk))
        explained = model.explain(X[test])
        total = explained.total if explained.unit == "probability" else 1 / (1 + np.exp(-explained.total))
        np.testing.assert_allclose(total, risk, rtol=0, atol=1e-12)
        assert model.certify().valid or name in ("XGB", "MixXGB")
    return float(np.mean(aucs))


@pytest.mark.parametrize("name", HELOC)
def test_heloc_is_the_paper_s(load, name):
    if "XGB" in name:
        pytest.importorskip("xgboost")
    assert cross_validate(name, load("heloc")) == pytest.approx(HELOC[name], abs=0.003)


@pytest.mark.parametrize("name", ["australia", "japan"])
def test_the_paper_s_weakest_spot_is_cured(load, name):
    """The paper has 0.760 and 0.756 there: one certain error cost an expert its weight. Its variant is kept."""
    assert cross_validate("MixLinARM1", load(name)) >= 0.93
    assert cross_validate("MixLinARM1", load(name), paper=True) == pytest.approx(0.76, abs=0.03)


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
    assert ece[1] < ece[0] + 0.01
