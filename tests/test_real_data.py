"""What the models reach on credit data: German credit everywhere, the others where PLAINRISK_DATA holds them."""

from __future__ import annotations

import warnings

import narwhals as nw
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning


def load(name):
    """Load a data set, or skip the test if it is not on this machine; German credit always is."""
    try:
        return pr.datasets.load(name)
    except DataError as error:
        if "is not on this machine" not in str(error):
            raise
        pytest.skip(f"{name} is not on this machine: set PLAINRISK_DATA to the folder that holds it")


def cross_validate(model, data, folds):
    """Out-of-fold risks, the AUC of each fold, and the fitted models."""
    X, y = nw.from_native(data.frame), np.asarray(data.target)
    risk, aucs, models = np.empty(len(y)), [], []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(y, y):
        fresh = type(model)(**{**model.get_params(deep=False), "schema": data.schema})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            fresh.fit(X[train].to_native(), y[train])
        risk[test] = fresh.predict_proba(X[test].to_native())[:, 1]
        aucs.append(roc_auc_score(y[test], risk[test]))
        models.append(fresh)
    return risk, float(np.mean(aucs)), models


@pytest.mark.parametrize(
    ("model", "expected"),
    [(pr.AdditiveRiskModel(), 0.796), (pr.TwoLayerRiskModel(), 0.795)],
    ids=["ARM1", "ARM2"],
)
def test_heloc(model, expected):
    _, auc, models = cross_validate(model, load("heloc"), folds=10)
    assert auc == pytest.approx(expected, abs=0.003)
    for fitted in models:
        assert fitted.fit_record_.converged
        assert max(fitted.fit_record_.kkt) < 1e-8
        assert fitted.certify().valid


def test_gmsc_line_at_its_true_base_rate():
    data = load("gmsc")
    risk, auc, models = cross_validate(pr.AdditiveRiskModel(link="linear"), data, folds=10)
    y = np.asarray(data.target)
    assert y.mean() < 0.07
    assert auc >= 0.855
    assert pr.metrics.expected_calibration_error(y, risk, bins=15) <= 0.010
    assert np.mean((risk == 0) | (risk == 1)) <= 0.20
    assert all(fitted.fit_record_.clipped <= 0.20 for fitted in models)
    assert all(fitted.certify().valid for fitted in models)


@pytest.mark.parametrize(("name", "least"), [("german", 0.785), ("australia", 0.92), ("japan", 0.92)])
def test_small_data_with_the_default_ridge(name, least):
    _, auc, models = cross_validate(pr.AdditiveRiskModel(), load(name), folds=10)
    assert auc >= least
    assert all(fitted.certify().valid for fitted in models)
