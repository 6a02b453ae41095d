"""BoostedRiskModel: XGBoost exactly as the paper ran it, and a form that scores as the booster does."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, MissingExtraError, PlainriskWarning
from plainrisk.form import Logistic, TreePart

xgboost = pytest.importorskip("xgboost")

N = 700
SCHEMA = pr.Schema(
    features={
        "up": {"direction": "increasing", "lower_bound": -1.0, "special_values": (-1,)},
        "down": {"direction": "decreasing", "lower_bound": -1.0},
        "free": {"lower_bound": -1.0},
    },
    subscales={"first": ("up", "down"), "second": ("free",)},
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(21)
    X = pd.DataFrame(rng.integers(0, 40, (N, 3)) / 10, columns=["up", "down", "free"])  # tenths are no float32 numbers
    X = X.mask(rng.random(X.shape) < 0.1, -1.0).mask(rng.random(X.shape) < 0.05)
    score = X["up"].fillna(2) - X["down"].fillna(1) + np.sin(2 * X["free"].fillna(0)) + rng.normal(size=N)
    return X, (score > 0.5).to_numpy().astype(int)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_booster_is_xgboost_with_the_paper_s_parameters(data, monotone, weighted):
    """missing = lower bound, given to XGBoost as it is, without a schema in between."""
    X, y = data
    w = np.random.default_rng(2).uniform(0.5, 2, N) if weighted else None
    name = "MonoXGB" if monotone else "XGB"
    model = pr.make_classifier(name, SCHEMA).fit(X, y, sample_weight=w)
    chosen = model.booster_.get_xgb_params()
    assert (chosen["max_depth"], chosen["learning_rate"]) == (2, 0.1)
    assert model.booster_.n_estimators == 50 == len(model.form_.parts[0].trees)
    assert model.booster_.eval_metric == "logloss"
    assert model.booster_.monotone_constraints == ((1, -1, 0) if monotone else None)
    own = xgboost.XGBClassifier(
        max_depth=2,
        n_estimators=50,
        learning_rate=0.1,
        eval_metric="logloss",
        missing=-1.0,
        monotone_constraints=(1, -1, 0) if monotone else None,
        n_jobs=1,
    ).fit(X.to_numpy(), y, sample_weight=w)
    np.testing.assert_allclose(model.predict_proba(X), own.predict_proba(X.to_numpy()), rtol=0, atol=1e-6)


def at_the_edges(model, X):
    """Rows that stand on, right below and right above the edges of the trees."""
    part = model.form_.parts[0]
    rng = np.random.default_rng(0)
    columns = {}
    for k, given in enumerate(part.inputs):
        edges = np.array([e for t in part.trees for e, j in zip(t.edges, t.inputs, strict=True) if j == k] or [0.0])
        around = [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), edges.astype(np.float32), [np.nan]]
        columns[given.feature] = rng.choice(np.concatenate(around), 2000)
    return pd.DataFrame(columns)[list(X)]


@pytest.mark.parametrize(
    "options", [{}, {"max_depth": 4, "n_estimators": 80}, {"params": {"num_parallel_tree": 3}}], ids=str
)
def test_the_form_scores_as_the_booster_does(data, options):
    X, y = data
    model = pr.BoostedRiskModel(SCHEMA, **options).fit(X, y)
    part = model.form_.parts[0]
    assert isinstance(part, TreePart)
    assert part.link == Logistic()
    for rows in (X, at_the_edges(model, X)):
        matrix = np.where(rows == -1.0, np.nan, rows)
        np.testing.assert_allclose(model.predict_proba(rows), model.booster_.predict_proba(matrix), rtol=0, atol=1e-6)


def test_categories_are_indicators_and_ordered_ones_places():
    rng = np.random.default_rng(6)
    schema = pr.Schema(
        features={
            "job": {"kind": "categorical"},
            "grade": {"kind": "categorical", "direction": "increasing", "categories": ("good", "fair", "poor")},
            "rank": {"kind": "categorical", "direction": "decreasing"},
            "code": {"kind": "categorical", "direction": "increasing"},
        }
    )
    X = pd.DataFrame({
        "job": rng.choice(["clerk", "cook", "none"], N),
        "grade": rng.choice(["poor", "good", "fair"], N),
        "rank": rng.integers(1, 12, N),
        "code": rng.integers(1, 12, N).astype(str),
    })  # fmt: skip
    place = X["grade"].map({"good": 0, "fair": 1, "poor": 2})
    y = (place - 0.2 * X["rank"] + 0.2 * X["code"].astype(int) + (X["job"] == "cook") + rng.normal(size=N) > 1).astype(
        int
    )
    model = pr.BoostedRiskModel(schema, monotone=True).fit(X, y)
    by_feature = {}
    for given in model.form_.parts[0].inputs:
        by_feature.setdefault(given.feature, []).append(given)
    assert [i.category for i in by_feature["job"]] == ["clerk", "cook", "none"]
    assert [i.order for i in by_feature["grade"]] == [("good", "fair", "poor")]
    assert [(i.category, i.order) for i in by_feature["rank"]] == [(None, None)]
    assert [i.order for i in by_feature["code"]] == [tuple(str(k) for k in range(1, 12))], "11 comes after 2"
    matrix = np.column_stack(
        [*(X["job"] == job for job in ("clerk", "cook", "none")), place, X["rank"], X["code"].astype(int)]
    ).astype(float)
    own = xgboost.XGBClassifier(
        max_depth=2, n_estimators=50, learning_rate=0.1, monotone_constraints=(0, 0, 0, 1, -1, 1), n_jobs=1
    ).fit(matrix, y)
    np.testing.assert_allclose(model.predict_proba(X), own.predict_proba(matrix), rtol=0, atol=1e-6)
    assert model.certify().valid
    same = X.iloc[[0] * 3].assign(grade=["good", "fair", "poor"])
    risk = model.predict_proba(same)[:, 1]
    assert risk[0] <= risk[1] <= risk[2]
    assert risk[0] < risk[2]
    assert np.isfinite(model.predict_proba(X.iloc[:2].assign(grade=["never seen", None], job=["new", None]))).all()


@pytest.mark.parametrize("seed", range(3))
def test_directions_are_kept_and_certified(seed):
    """On an outcome that goes against them, over a grid of all combinations; without them it does go wrong."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(N, 3)).round(1), columns=["up", "down", "free"])
    y = (np.sin(3 * X["up"]) - np.cos(2 * X["down"]) + rng.normal(size=N) > 0).astype(int)
    schema = pr.Schema(features={"up": {"direction": "increasing"}, "down": {"direction": "decreasing"}, "free": {}})
    values = np.linspace(-4, 4, 33)
    grid = pd.DataFrame(np.array(np.meshgrid(values, values, [-1.0, 1.0], indexing="ij")).reshape(3, -1).T)
    grid.columns = ["up", "down", "free"]
    faults = {}
    for monotone in (True, False):
        model = pr.BoostedRiskModel(schema, monotone=monotone).fit(X, y)
        risk = model.form_.risk(grid).reshape(33, 33, 2)
        faults[monotone] = (np.diff(risk, axis=0) < 0).sum() + (np.diff(risk, axis=1) > 0).sum()
        assert model.certify().valid is monotone
    assert faults[True] == 0
    assert faults[False] > 0


def test_contributions_are_the_whole_model_s(data):
    X, y = data
    model = pr.BoostedRiskModel(SCHEMA).fit(X, y)
    with pytest.raises(DataError, match=r"part 'all' is a sum of trees. Pass portfolio=rows"):
        model.explain(X)
    explained = model.explain(X, portfolio=X)
    assert explained.features == (None,)
    np.testing.assert_allclose(explained.total, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    mixture = pr.SubscaleMixture(pr.BoostedRiskModel(), SCHEMA).fit(X, y)
    explained = mixture.explain(X, portfolio=X)
    assert explained.subscales == ("first", "second")
    np.testing.assert_allclose(explained.total, mixture.predict_proba(X)[:, 1], rtol=0, atol=1e-12)


def test_saved_and_loaded_without_xgboost(data, tmp_path, monkeypatch):
    X, y = data
    model = pr.BoostedRiskModel(SCHEMA).fit(X, y)
    model.save(tmp_path / "trees.json")
    monkeypatch.setitem(sys.modules, "xgboost", None)
    again = pr.load(tmp_path / "trees.json")
    assert again.form_ == model.form_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(MissingExtraError, match=r"xgboost is needed .* pip install 'plainrisk\[boost\]'"):
        pr.BoostedRiskModel(SCHEMA).fit(X, y)


def test_further_parameters_go_before(data):
    X, y = data
    model = pr.BoostedRiskModel(SCHEMA, params={"n_estimators": 7, "reg_lambda": 5.0, "n_jobs": 1}).fit(X, y)
    assert len(model.form_.parts[0].trees) == 7
    assert model.booster_.reg_lambda == 5.0
    for name, value in (
        ("objective", "binary:hinge"),
        ("booster", "dart"),
        ("missing", -9),
        ("early_stopping_rounds", 5),
    ):
        with pytest.raises(DataError, match=f"BoostedRiskModel: params cannot set '{name}'"):
            pr.BoostedRiskModel(SCHEMA, params={name: value}).fit(X, y)


# ---- what the schema says of levels


STRICT = pr.Schema(
    features={
        "a": {},
        "job": {"kind": "categorical", "unseen": "error", "categories": ["cook", "clerk", "king"]},
        "grade": {
            "kind": "categorical",
            "unseen": "error",
            "direction": "increasing",
            "categories": ["low", "mid", "high"],
        },
    }
)


@pytest.fixture(scope="module")
def strict():
    rng = np.random.default_rng(3)
    n = 400
    X = {
        "a": rng.normal(size=n),
        "job": rng.choice(["cook", "clerk"], n),
        "grade": rng.choice(["low", "mid"], n),
    }
    y = (X["a"] + (X["job"] == "cook") + (X["grade"] == "mid") + rng.normal(size=n) > 1).astype(int)
    return X, y


@pytest.mark.parametrize(
    ("feature", "label"), [("job", "astronaut"), ("job", "king"), ("grade", "top"), ("grade", "high")]
)
def test_trees_refuse_a_level_that_training_never_saw(strict, feature, label):
    X, y = strict
    boosted = pr.BoostedRiskModel(STRICT, monotone=True).fit(X, y)
    additive = pr.AdditiveRiskModel(STRICT).fit(X, y)
    rows = {name: column.astype(object) for name, column in X.items()}
    rows[feature] = rows[feature].copy()
    rows[feature][17] = label
    assert boosted.predict_proba(X).shape == additive.predict_proba(X).shape
    for model in (boosted, additive, pr.RiskModel(boosted.form_)):
        with pytest.raises(DataError, match=f"feature '{feature}', row 17: level .* was not in the training data"):
            model.predict_proba(rows)
        with pytest.raises(DataError, match=f"feature '{feature}', row 17"):
            model.explain(rows, portfolio=X)
    neutral = pr.Schema(features={"a": {}, "job": {"kind": "categorical"}, "grade": {"kind": "categorical"}})
    assert pr.BoostedRiskModel(neutral).fit(X, y).predict_proba(rows).shape == (400, 2)


def test_a_refused_level_is_named_with_its_row_in_any_block(strict, monkeypatch):
    X, y = strict
    model = pr.BoostedRiskModel(STRICT).fit(X, y)
    monkeypatch.setattr("plainrisk.form.form.PIECE_ROWS", 7)
    rows = {**X, "job": np.where(np.arange(400) == 300, "astronaut", X["job"])}
    with pytest.raises(DataError, match="feature 'job', row 300"):
        model.predict_proba(rows)


def test_the_user_is_told_that_trees_read_special_values_as_numbers(strict):
    X, y = strict
    special = pr.Schema(features={"a": {"special_values": [-9], "direction": "increasing"}})
    with pytest.warns(PlainriskWarning, match="trees read special values as plain numbers, .*: 'a'"):
        pr.BoostedRiskModel(special, monotone=True).fit({"a": X["a"]}, y)
    pr.BoostedRiskModel(special).fit({"a": X["a"]}, y)
