from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from plainrisk.errors import ExtractionError
from plainrisk.extract import extract_form
from plainrisk.form import Part, Table, TreePart

xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def rows(credit):
    """Numbers with missing values, many zeros, and values that single precision rounds."""
    X = credit.X[["age", "income", "delays", "debt"]].copy()
    X["delays"] = X.delays - 1.0
    return X


def near_the_splits(form, X):
    """Rows on every edge of the form and right beside it, once in each feature."""
    part = form.parts[0]
    if isinstance(part, Part):
        edges = {name: np.array(shape.levels.edges) for name, shape in part.shapes.items()}
    else:
        pairs = [
            (part.inputs[j].feature, e) for t in part.trees for j, e in zip(t.inputs, t.edges, strict=True) if j >= 0
        ]
        edges = {name: np.array([e for n, e in pairs if n == name]) for name in X}
    out = []
    for name, values in edges.items():
        at = np.r_[values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf), np.float32(values)]
        rows = X.iloc[np.arange(len(at)) % len(X)].copy()
        rows[name] = at
        out.append(rows)
    return pd.concat(out, ignore_index=True)


def agree(model, X, own, atol):
    """The form is the model: on its rows, on its edges, and with every feature missing in turn."""
    form = extract_form(model, X)
    holes = X.iloc[:40].copy()
    for j, name in enumerate(X):
        holes.loc[holes.index[j::7], name] = np.nan
    checks = [X, near_the_splits(form, X)]
    if form.parts[0].name == "all" and not isinstance(model, GradientBoostingClassifier):
        checks.append(holes)
    for rows in checks:
        np.testing.assert_allclose(form.score(rows), own(rows), rtol=0, atol=atol)
    return form


def kind_of(depth):
    return Part if depth == 1 else TreePart


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("missing", [np.nan, -1.0])
def test_xgb_classifier(credit, rows, depth, missing):
    model = xgboost.XGBClassifier(n_estimators=25, max_depth=depth, n_jobs=1, missing=missing)
    model.fit(rows, credit.y)
    form = agree(model, rows, lambda X: model.predict(X, output_margin=True), atol=1e-5)
    assert isinstance(form.parts[0], kind_of(depth))
    if depth == 1:
        shape = form.parts[0].shapes["delays"]
        assert isinstance(shape, Table)
        assert shape.levels.special_values == (() if np.isnan(missing) else (-1.0,))
        if missing == -1.0:
            assert shape.scores[-2] == shape.scores[-1]  # the code counts as missing


def test_xgb_splits_are_exact(credit):
    # With whole numbers above 2^24 many inputs lie half way between singles.
    x = 2.0**24 + np.arange(600.0)
    X = pd.DataFrame({"x": x})
    y = (np.arange(600) // 7 % 2).astype(int)
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=6, n_jobs=1).fit(X, y)
    form = extract_form(model, X)
    assert isinstance(form.parts[0], Part)  # one feature only
    np.testing.assert_allclose(form.score(X), model.predict(X, output_margin=True), rtol=0, atol=1e-5)


def test_xgb_stops_at_the_best_iteration(credit, rows):
    model = xgboost.XGBClassifier(n_estimators=300, max_depth=1, early_stopping_rounds=2, n_jobs=1)
    model.fit(rows[:300], credit.y[:300], eval_set=[(rows[300:], credit.y[300:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    agree(model, rows, lambda X: model.predict(X, output_margin=True), atol=1e-5)
    booster = model.get_booster()
    data = xgboost.DMatrix(rows)
    np.testing.assert_allclose(
        extract_form(booster).score(rows), booster.predict(data, output_margin=True), rtol=0, atol=1e-5
    )


def test_xgb_options(credit, rows):
    many = xgboost.XGBClassifier(
        n_estimators=5, max_depth=1, num_parallel_tree=3, subsample=0.5, base_score=0.1, random_state=0, n_jobs=1
    ).fit(rows, credit.y)
    agree(many, rows, lambda X: many.predict(X, output_margin=True), atol=1e-5)
    lines = xgboost.XGBClassifier(booster="gblinear", n_estimators=4, n_jobs=1)
    scaled = (rows - rows.mean()) / rows.std()
    lines.fit(scaled, credit.y)
    form = extract_form(lines, scaled)
    np.testing.assert_allclose(form.score(scaled), lines.predict(scaled, output_margin=True), rtol=0, atol=1e-5)


def test_xgb_refusals(credit, rows):
    def fitted(**options):
        return xgboost.XGBClassifier(n_estimators=2, n_jobs=1, **options).fit(rows, credit.y)

    with pytest.raises(ExtractionError, match="booster is 'dart'"):
        extract_form(fitted(booster="dart"))
    with pytest.raises(ExtractionError, match="objective is 'binary:hinge'"):
        extract_form(fitted(objective="binary:hinge"))
    with pytest.raises(ExtractionError, match="not fitted"):
        extract_form(xgboost.XGBClassifier())
    many = xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(rows, credit.X.region - 1)
    with pytest.raises(ExtractionError, match="multi-class"):
        extract_form(many)
    jobs = credit.X[["job"]].astype("category")
    categories = xgboost.XGBClassifier(n_estimators=2, enable_categorical=True, max_cat_to_onehot=1, n_jobs=1)
    with pytest.raises(ExtractionError, match="splits on categories"):
        extract_form(categories.fit(jobs, credit.y))


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize(
    "options",
    [{}, {"zero_as_missing": True}, {"use_missing": False}, {"sigmoid": 2.0}, {"boosting_type": "dart"}],
    ids=str,
)
def test_lgbm_classifier(credit, rows, depth, options):
    model = lightgbm.LGBMClassifier(
        n_estimators=25, max_depth=depth, verbose=-1, min_child_samples=5, n_jobs=1, **options
    ).fit(rows, credit.y)
    factor = options.get("sigmoid", 1.0)
    form = agree(model, rows, lambda X: factor * model.predict(X, raw_score=True), atol=1e-12)
    assert isinstance(form.parts[0], kind_of(depth))
    # What counts as zero, and what does not any more.
    tiny = np.array([0.0, 1e-36, -1e-36, 1e-35, -1e-35, 2e-35, -2e-35, np.nan])
    X = pd.DataFrame({name: np.roll(tiny, j) for j, name in enumerate(rows)})
    np.testing.assert_allclose(form.score(X), factor * model.predict(X, raw_score=True), rtol=0, atol=1e-12)


def test_lgbm_stops_at_the_best_iteration_and_has_lost_blanks(credit, rows):
    spaced = rows.rename(columns={"age": "age in years"})
    model = lightgbm.LGBMClassifier(n_estimators=200, max_depth=1, verbose=-1, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the blanks, and of how later versions call eval_set
        model.fit(
            spaced[:300],
            credit.y[:300],
            eval_set=[(spaced[300:], credit.y[300:])],
            callbacks=[lightgbm.early_stopping(2, verbose=False)],
        )
    assert 0 < model.best_iteration_ < 200
    for owner in (model, model.booster_):
        form = extract_form(owner, spaced)
        assert form.columns == tuple(spaced)
        np.testing.assert_allclose(form.score(spaced), model.predict(spaced, raw_score=True), rtol=0, atol=1e-12)


def test_lgbm_refusals(credit, rows):
    def fitted(y=credit.y, **options):
        return lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1, **options).fit(rows, y)

    with pytest.raises(ExtractionError, match="averages its trees"):
        extract_form(fitted(boosting_type="rf", subsample=0.5, subsample_freq=1))
    with pytest.raises(ExtractionError, match="leaves are lines"):
        extract_form(fitted(linear_tree=True))
    with pytest.raises(ExtractionError, match="multi-class"):
        extract_form(fitted(y=credit.X.region))
    with pytest.raises(ExtractionError, match="objective is 'multiclass'"):
        extract_form(fitted(y=credit.X.region).booster_)
    with pytest.raises(ExtractionError, match="objective is 'cross_entropy'"):
        extract_form(fitted(objective="cross_entropy"))
    with pytest.raises(ExtractionError, match="not fitted"):
        extract_form(lightgbm.LGBMClassifier())
    jobs = credit.X[["job"]].astype("category")
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1).fit(jobs, credit.y)
    with pytest.raises(ExtractionError, match="splits on categories"):
        extract_form(model)


@pytest.mark.parametrize("depth", [1, 3])
def test_hist_gradient_boosting(credit, rows, depth):
    model = HistGradientBoostingClassifier(max_depth=depth, max_iter=25, min_samples_leaf=5)
    model.fit(rows, credit.y)
    form = agree(model, rows, model.decision_function, atol=1e-12)
    assert isinstance(form.parts[0], kind_of(depth))


def test_a_split_that_only_asks_what_is_missing(credit):
    X = pd.DataFrame({"x": np.where(credit.y == 1, np.nan, 1.0), "z": 1.0})
    X.loc[X.index[:20], "x"] = 1.0
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, credit.y)
    thresholds = [p.nodes["num_threshold"][0] for (p,) in model._predictors]
    assert np.isinf(thresholds).any()
    form = extract_form(model, X)
    np.testing.assert_allclose(form.score(X), model.decision_function(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("init", [None, "zero"])
@pytest.mark.parametrize("depth", [1, 3])
def test_gradient_boosting(credit, rows, depth, init):
    X = rows.fillna(0.0)
    model = GradientBoostingClassifier(max_depth=depth, n_estimators=20, init=init, random_state=0)
    model.fit(X, credit.y)
    form = agree(model, X, model.decision_function, atol=1e-12)
    assert isinstance(form.parts[0], kind_of(depth))
    if depth == 1:
        assert all(shape.weights[-1] == 0 for shape in form.parts[0].shapes.values())  # takes no missing


def test_sklearn_refusals(credit, rows):
    X = rows.fillna(0.0)
    with pytest.raises(ExtractionError, match="loss is 'exponential'"):
        extract_form(GradientBoostingClassifier(n_estimators=2, loss="exponential").fit(X, credit.y))
    start = LogisticRegression(max_iter=3000)
    with pytest.raises(ExtractionError, match="starts from a model of its own"):
        extract_form(GradientBoostingClassifier(n_estimators=2, init=start).fit(X / X.max(), credit.y))
    jobs = credit.X[["job"]].astype("category")
    with pytest.raises(ExtractionError, match="splits on categories"):
        extract_form(HistGradientBoostingClassifier(max_iter=2).fit(jobs, credit.y))
    with pytest.raises(ExtractionError, match="multi-class"):
        extract_form(HistGradientBoostingClassifier(max_iter=2).fit(X, credit.X.region))
    with pytest.raises(ExtractionError, match="not fitted"):
        extract_form(HistGradientBoostingClassifier())


@pytest.mark.parametrize("depth", [1, 3])
def test_trees_behind_an_encoder(credit, depth):
    X = credit.X[["age", "job", "region"]]
    parts = make_column_transformer(
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["job", "region"]), remainder="passthrough"
    )
    model = make_pipeline(parts, HistGradientBoostingClassifier(max_depth=depth, max_iter=15))
    model.fit(X, credit.y)
    form = extract_form(model, X)
    assert isinstance(form.parts[0], kind_of(depth))
    strange = pd.DataFrame({"age": [50.0, 60.0], "job": ["actor", None], "region": [9, 1]})
    for rows in (X, strange):
        np.testing.assert_allclose(form.score(rows), model.decision_function(rows), rtol=0, atol=1e-12)


def test_trees_behind_other_steps_are_refused(credit):
    X = credit.numbers
    deep = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=3)).fit(X, credit.y)
    with pytest.raises(ExtractionError, match="after a step has changed its values"):
        extract_form(deep)
    sparse = make_pipeline(OneHotEncoder(), xgboost.XGBClassifier(n_estimators=2, n_jobs=1))
    with pytest.raises(ExtractionError, match="zeros of a sparse matrix for missing"):
        extract_form(sparse.fit(credit.X[["job"]], credit.y))
