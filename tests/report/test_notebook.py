"""In a notebook a fitted model and an explanation are the page, in a frame that can reach nothing else."""

from __future__ import annotations

import html
import json
import re

import pytest
import sklearn
from sklearn.utils import estimator_html_repr

import plainrisk as pr


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german")


@pytest.fixture(scope="module")
def model(german):
    return pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)


def payload(text):
    inside = html.unescape(re.search(r'srcdoc="([^"]*)"', text)[1])
    return json.loads(re.search(r'id="payload">(.*?)</script>', inside, re.DOTALL)[1])


def test_a_fitted_model_shows_the_page(model):
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    assert bundle["text/html"] == model._repr_html_()
    assert payload(bundle["text/html"])["applicants"] == []


def test_a_loaded_model_shows_the_page(model, tmp_path):
    model.save(tmp_path / "model.json")
    assert "<iframe" in pr.load(tmp_path / "model.json")._repr_html_()


def test_diagram_of_scikit_learn_stays_reachable(model):
    assert "sk-top-container" in pr.AdditiveRiskModel()._repr_html_()
    assert "sk-top-container" in pr.AdditiveRiskModel()._repr_mimebundle_()["text/html"]
    assert "sk-top-container" in estimator_html_repr(model)


def test_display_as_text_is_text(model, german):
    with sklearn.config_context(display="text"):
        for shown in (model, pr.AdditiveRiskModel()):
            assert list(shown._repr_mimebundle_()) == ["text/plain"]
        assert model.explain(german.frame.head(2))._repr_html_() is None


def test_an_explanation_opens_at_its_first_row(model, german):
    found = payload(model.explain(german.frame.head(3))._repr_html_())
    assert len(found["applicants"]) == 3
    assert found["start"] == {"view": "applicant", "row": found["applicants"][0]["row"]}
    assert model.form_.risk(found["start"]["row"]) == model.form_.risk(german.frame.head(1))


def test_an_explanation_of_a_bare_form_is_text(model, german):
    assert pr.explain.explain(model.form_, german.frame.head(2))._repr_html_() is None
