"""Fitted estimators survive joblib and skops, and answer as before."""

from __future__ import annotations

import io
from pathlib import Path

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
    assert again.certify() == model.certify()


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


@pytest.mark.filterwarnings("ignore")  # its own advice
def test_the_recipe_for_mlflow(german, tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    text = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    recipe = text.rpartition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    model = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
    model.save("model.json")
    exec(recipe, {"__name__": "recipe"})
    import mlflow

    rows = german.frame.to_pandas().head(5)
    found = mlflow.pyfunc.load_model("risk").predict(rows)
    assert (found["risk"] == model.predict_proba(rows)[:, 1]).all()
