from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from plainrisk.errors import ExtractionError, PlainriskError
from plainrisk.extract import (
    Additive,
    LabelEffect,
    NumberEffect,
    extract_form,
    register_extractor,
    supported_models,
)
from plainrisk.extract.registry import class_names
from plainrisk.models.arm import AdditiveRiskModel


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (CalibratedClassifierCV(LogisticRegression(), cv=2), "no longer the sigmoid of a sum over features"),
        (RandomForestClassifier(2), "averages the votes of trees"),
        (ExtraTreesClassifier(2), "averages the votes of trees"),
        (SVC(), "scores are no log odds, and a kernel mixes"),
        (LinearSVC(), "scores are no log odds"),
        (SGDClassifier(loss="hinge"), "loss is 'hinge'"),
        (SGDClassifier(loss="modified_huber"), "loss is 'modified_huber'"),
        (KNeighborsClassifier(), r"not known\. Known: .*LogisticRegression.*register_extractor"),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), "KNeighborsClassifier cannot be read"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_models_that_are_refused(credit, model, reason):
    X = (credit.numbers - credit.numbers.mean()) / credit.numbers.std()
    with pytest.raises(ExtractionError, match=reason):
        extract_form(model.fit(X, credit.y), X)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        SGDClassifier(loss="log_loss"),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}),
        AdditiveRiskModel(),
    ],
    ids=lambda m: type(m).__name__,
)
def test_unfitted_models(model):
    with pytest.raises(ExtractionError, match="it is not fitted"):
        extract_form(model)


def test_many_classes(credit):
    model = LogisticRegression(max_iter=3000).fit(credit.X[["delays"]], credit.X.region)
    with pytest.raises(ExtractionError, match=r"multi-class \(4 outcomes\)"):
        extract_form(model)


def test_a_class_is_no_model():
    with pytest.raises(ExtractionError, match="is a class"):
        extract_form(LogisticRegression)


def test_rows_that_do_not_fit(credit):
    model = LogisticRegression(max_iter=3000).fit(credit.X[["age", "delays"]], credit.y)
    with pytest.raises(ExtractionError, match="its input 'delays' is not a column"):
        extract_form(model, credit.X[["age", "region"]])
    with pytest.raises(ExtractionError, match="its input 'age' is not a column"):
        extract_form(model, credit.X[["income", "region"]])
    with pytest.raises(ExtractionError, match="reads 2 columns, and the rows it was shown have 3"):
        extract_form(model, np.zeros((4, 3)))


def test_the_error_is_ours_and_a_value_error():
    assert issubclass(ExtractionError, PlainriskError)
    assert issubclass(ExtractionError, ValueError)


class Points:
    """A model of nobody's."""


class MorePoints(Points):
    pass


def test_a_user_can_add_a_reader():
    def read(model, frame):
        effects = {"age": NumberEffect.line(0.1), "job": LabelEffect({"clerk": 1.0}, missing=0.0, unseen=-1.0)}
        return Additive(intercept=-5.0, effects=effects, columns=("age", "job"))

    with pytest.raises(ExtractionError, match="not known"):
        extract_form(Points())
    register_extractor(Points, read)
    form = extract_form(MorePoints())  # subclasses too
    rows = {"age": [50.0, 20.0], "job": ["clerk", "actor"]}
    assert form.score(rows).tolist() == pytest.approx([1.0, -4.0])
    register_extractor(f"{__name__}.MorePoints", lambda model, frame: form)  # by name, and nearer
    assert extract_form(MorePoints()) is form
    assert f"{__name__}.Points" in supported_models()


def test_a_public_name_serves_a_private_module():
    names = list(class_names(LogisticRegression))
    assert names[0] == "sklearn.linear_model._logistic.LogisticRegression"
    assert "sklearn.linear_model.LogisticRegression" in names


def test_no_other_library_is_imported():
    rivals = ["xgboost", "lightgbm", "statsmodels", "interpret", "pygam", "glum"]
    code = f"import sys, plainrisk.extract as e; print([r for r in {rivals} if r in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
