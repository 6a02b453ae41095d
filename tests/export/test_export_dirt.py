"""Exports take clean values, and say which features the caller converts."""

from __future__ import annotations

import numpy as np
import pytest

import plainrisk as pr


@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
def test_an_export_names_the_features_that_the_caller_converts(rng, tmp_path):
    rate, bad = rng.uniform(1, 40, 300).round(1), rng.integers(0, 2, 300)
    frame = {"rate": [f"{x}%" for x in rate], "job": np.where(rate > 20, "cook", "?").tolist(), "age": rate + 20}
    features = {"rate": {"read": "percent"}, "job": {"kind": "categorical", "null_values": ["?"]}, "age": {}}
    model = pr.AdditiveRiskModel(pr.Schema(features=features)).fit(frame, bad)
    model.export(tmp_path / "score.py")
    assert '"converted_by_the_caller": ["rate", "job"]' in (tmp_path / "score.py").read_text()
    assert pr.verify_export(tmp_path / "score.py", model).agrees
    module = {"__name__": "export"}
    exec((tmp_path / "score.py").read_text(), module)
    risk = module["score"]({"rate": 7.5, "job": None, "age": 30.0})["risk"]
    dirty = {"rate": "7.5%", "job": "?", "age": 30.0}
    assert risk == pytest.approx(model.predict_proba(dirty)[0, 1], abs=1e-12)
