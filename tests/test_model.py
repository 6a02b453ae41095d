"""A loaded model: a finished classifier for scikit-learn, ready without it."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.calibration import CalibrationDisplay
from sklearn.inspection import permutation_importance
from sklearn.metrics import RocCurveDisplay, accuracy_score, get_scorer, roc_auc_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import plainrisk as pr
from plainrisk.errors import PlainriskError
from plainrisk.model import FormMethods


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german", backend="pandas")


@pytest.fixture(scope="module")
def fitted(german):
    return pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)


@pytest.fixture(scope="module")
def model(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    fitted.save(path)
    return pr.load(path)


def test_it_is_a_fitted_classifier(model):
    check_is_fitted(model)
    assert is_classifier(model)
    tags = get_tags(model)
    assert not tags.classifier_tags.multi_class
    assert tags.input_tags.allow_nan
    assert model.classes_.tolist() == [0, 1]


def test_scorers_and_metrics_take_it(model, fitted, german):
    X, y = german.frame, german.target
    assert model.score(X, y) == fitted.score(X, y) == accuracy_score(y, model.predict(X))
    weight = np.arange(len(y), dtype=float)
    assert model.score(X, y, sample_weight=weight) == accuracy_score(y, model.predict(X), sample_weight=weight)
    auc = roc_auc_score(y, model.predict_proba(X)[:, 1])
    assert get_scorer("roc_auc")(model, X, y) == pytest.approx(auc)
    assert get_scorer("neg_brier_score")(model, X, y) == pytest.approx(get_scorer("neg_brier_score")(fitted, X, y))


def test_displays_take_it(model, german):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    shown = RocCurveDisplay.from_estimator(model, german.frame, german.target)
    assert shown.roc_auc == pytest.approx(roc_auc_score(german.target, model.predict_proba(german.frame)[:, 1]))
    shown = CalibrationDisplay.from_estimator(model, german.frame, german.target, n_bins=5)
    np.testing.assert_array_equal(shown.y_prob, model.predict_proba(german.frame)[:, 1])


def test_permutation_importance_takes_it(model, german):
    found = permutation_importance(
        model, german.frame, german.target, scoring="roc_auc", n_repeats=2, random_state=0, n_jobs=1
    )
    best = german.frame.columns[int(np.argmax(found.importances_mean))]
    assert best == "Status of existing checking account"


def test_it_cannot_be_fitted_again(model, german):
    with pytest.raises(PlainriskError, match="finished and cannot be fitted again"):
        model.fit(german.frame, german.target)


def test_loading_a_model_needs_no_scikit_learn_of_its_own():
    """plainrisk itself imports estimators; the module of loaded models must not ask for scikit-learn by itself."""
    source = inspect.getsource(sys.modules["plainrisk.model"])
    assert not [line for line in source.splitlines() if line.startswith(("import sklearn", "from sklearn"))]
    script = "import sys, types\nroot = types.ModuleType('plainrisk')\nroot.__path__ = [sys.argv[1]]\n"
    script += "sys.modules['plainrisk'] = root\nimport plainrisk.model\nassert 'sklearn' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", script, pr.__path__[0]], check=True, timeout=120)


PUBLIC = [name for name, value in vars(FormMethods).items() if inspect.isfunction(value) and name[0] != "_"]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_method_is_documented_with_an_example(name):
    method = getattr(FormMethods, name)
    text = inspect.getdoc(method)
    signature = inspect.signature(method)
    assert ("Parameters\n----------" in text) == (len(signature.parameters) > 1)
    assert "Examples\n--------\n>>> " in text
    assert ("Returns\n-------" in text) == (signature.return_annotation != "None")


def test_fit_save_and_load_are_logged_without_a_word_of_the_rows(german, tmp_path, caplog):
    with caplog.at_level("INFO", logger="plainrisk"):
        pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target).save(tmp_path / "m.json")
        pr.load(tmp_path / "m.json")
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "AdditiveRiskModel: fitting to 1000 rows, 20 features"
    assert said[1].startswith("AdditiveRiskModel: fitted.")
    assert [line.split()[0] for line in said[2:]] == ["wrote", "read"]
    assert {record.name for record in caplog.records} == {"plainrisk"}
