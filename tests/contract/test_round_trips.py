"""Fitted estimators survive joblib and skops, and answer as before."""

from __future__ import annotations

import io

import joblib
import pytest

import plainrisk as pr


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german")


@pytest.mark.parametrize("name", ["SmoothARM1", "LinARM2", "MixLinARM1"])
def test_joblib(name, german):
    model = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    again = joblib.load(file)
    assert (again.predict_proba(german.frame) == model.predict_proba(german.frame)).all()
    assert again.form_ == model.form_
    assert repr(again.certify()) == repr(model.certify())


@pytest.mark.parametrize("name", ["SmoothARM1", "LinARM2", "MixLinARM1"])
def test_skops(name, german):
    skops = pytest.importorskip("skops.io")
    model = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
    raw = skops.dumps(model)
    unknown = skops.get_untrusted_types(data=raw)
    assert unknown, "nothing of plainrisk is trusted unseen"
    assert all(kind.startswith("plainrisk.") for kind in unknown), unknown
    again = skops.loads(raw, trusted=unknown)
    assert (again.predict_proba(german.frame) == model.predict_proba(german.frame)).all()
