"""What must not change a model: the order of rows and columns, the names of categories, the frame library."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import plainrisk as pr
from plainrisk.errors import PlainriskWarning

CLOSE = {"rtol": 0.0, "atol": 1e-9}
GRADES = ("A", "B", "C")
FEATURES = {
    "income": {"direction": "decreasing", "special_values": (-9,), "lower_bound": 0.0},
    "debt": {"direction": "increasing"},
    "age": {},
    "grade": {"kind": "categorical", "direction": "increasing", "categories": GRADES},
    "job": {"kind": "categorical"},
}
SCHEMA = pr.Schema(features=FEATURES, subscales={"money": ("income", "debt"), "person": ("age", "grade", "job")})


def rows(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "income": np.where(rng.random(n) < 0.1, -9.0, (50 * rng.gamma(2, size=n) - 5).round()),
        "debt": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(1)),
        "age": rng.integers(18, 80, n).astype(float),
        "grade": rng.choice(GRADES, n),
        "job": rng.choice(np.array(["cook", "clerk", "smith", None], dtype=object), n),
    })  # fmt: skip
    score = X["debt"].fillna(0.5) - X["income"].clip(0, 200) / 60 + (X["grade"] == "C") + (X["job"] == "cook")
    y = (score + 1.5 * rng.normal(size=n) > 0).astype(int)
    return X, y.to_numpy()


# The least size of a bin counts rows, not weights: a row of weight 2 is one row there.
ANY_BIN = {"min_bin_rows": 1}
MODELS = {
    "ARM1": pr.AdditiveRiskModel(SCHEMA, **ANY_BIN),
    "ARM1, no ridge": pr.AdditiveRiskModel(SCHEMA, ridge=0.0, **ANY_BIN),
    "direct ARM1": pr.AdditiveRiskModel(SCHEMA, link="linear", **ANY_BIN),
    "smooth ARM1": pr.AdditiveRiskModel(SCHEMA, shapes="smooth", **ANY_BIN),
    "smooth direct ARM1": pr.AdditiveRiskModel(SCHEMA, shapes="smooth", link="linear", **ANY_BIN),
    "NNLR": pr.NonnegativeLogisticRegression(SCHEMA),
    "ARM2": pr.TwoLayerRiskModel(schema=SCHEMA, **ANY_BIN),
    "direct ARM2": pr.TwoLayerRiskModel(schema=SCHEMA, link="linear", **ANY_BIN),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def risk(model, X, y, at=None, weight=None, **parameters):
    """Fit a fresh copy and score."""
    fresh = type(model)(**{**model.get_params(deep=False), **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        fresh.fit(X, y, sample_weight=weight)
    positive = fresh.classes_.tolist().index(fresh.positive_)
    return fresh.predict_proba(X if at is None else at)[:, positive]


@every_model
def test_the_order_of_rows(model):
    X, y = rows()
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_allclose(risk(model, X.iloc[order], y[order], at=X), risk(model, X, y), **CLOSE)


@every_model
def test_the_order_of_columns_and_of_the_schema(model):
    X, y = rows()
    expected = risk(model, X, y)
    names = ["job", "debt", "grade", "income", "age"]
    np.testing.assert_array_equal(risk(model, X[names], y), expected)
    schema = pr.Schema(
        features={n: FEATURES[n] for n in names},
        subscales={"person": ("job", "age", "grade"), "money": ("debt", "income")},
    )
    np.testing.assert_allclose(risk(model, X[names], y, schema=schema), expected, **CLOSE)


@every_model
def test_duplicated_rows_are_weights(model):
    X, y = rows()
    times = np.random.default_rng(2).integers(0, 4, len(y))
    twice = np.repeat(np.arange(len(y)), times)
    if getattr(model, "shapes", "steps") == "smooth":
        model = clone(model).set_params(weights="counts")
    np.testing.assert_allclose(
        risk(model, X, y, at=X, weight=times), risk(model, X.iloc[twice], y[twice], at=X), **CLOSE
    )


@every_model
def test_rows_without_weight_are_no_rows(model):
    X, y = rows()
    weight = np.random.default_rng(3).choice([0.0, 1.0, 0.7], len(y))
    X.loc[weight == 0, "job"] = "seen without weight only"
    X.loc[weight == 0, "income"] *= 1e6
    kept = weight > 0
    np.testing.assert_allclose(
        risk(model, X, y, at=X, weight=weight), risk(model, X[kept], y[kept], at=X, weight=weight[kept]), **CLOSE
    )


@pytest.mark.parametrize("name", [name for name in MODELS if "smooth" in name])
def test_the_scale_of_weights_does_not_matter_to_smooth_shapes(name):
    X, y = rows()
    weight = np.random.default_rng(4).uniform(0.5, 2.0, len(y))
    wanted = risk(MODELS[name], X, y, weight=weight)
    for scale in (1 / len(y), 1000.0):
        np.testing.assert_allclose(risk(MODELS[name], X, y, weight=scale * weight), wanted, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", [name for name in MODELS if "smooth" not in name])
def test_the_scale_of_weights_changes_the_automatic_ridge_only(name):
    model = MODELS[name]
    X, y = rows()
    weight = np.random.default_rng(4).uniform(0.5, 2.0, len(y))
    fixed = risk(model, X, y, weight=weight, ridge=0.01)
    np.testing.assert_allclose(risk(model, X, y, weight=1000 * weight, ridge=0.01), fixed, **CLOSE)
    automatic = risk(model, X, y, weight=1000 * weight, ridge="auto")
    explicit = risk(model, X, y, weight=weight, ridge=1 / (2000 * weight.sum()))
    np.testing.assert_allclose(automatic, explicit, **CLOSE)


@every_model
def test_the_names_of_categories(model):
    X, y = rows()
    grades = {"A": "zebra", "B": "1", "C": "ä"}
    jobs = {"cook": "3", "clerk": "", "smith": "cook"}
    renamed = X.assign(grade=X["grade"].map(grades), job=X["job"].map(jobs))
    features = {**FEATURES, "grade": {**FEATURES["grade"], "categories": tuple(grades[g] for g in GRADES)}}
    schema = pr.Schema(features=features, subscales=SCHEMA.subscales)
    np.testing.assert_allclose(risk(model, renamed, y, schema=schema), risk(model, X, y), **CLOSE)


@every_model
def test_the_frame_library(model):
    X, y = rows()
    expected = risk(model, X, y)
    nullable = X.convert_dtypes()
    frames = {
        "pandas, nullable": nullable,
        "pandas, categorical": X.assign(job=X["job"].astype("category"), grade=X["grade"].astype("category")),
        "polars": pl.from_pandas(X, nan_to_null=True),
        "arrow": pa.Table.from_pandas(X),
        "dict": {name: X[name].tolist() for name in X},
    }
    for name, frame in frames.items():
        np.testing.assert_array_equal(risk(model, frame, y), expected, err_msg=name)


@every_model
def test_relabeling_the_outcome(model):
    X, y = rows()
    expected = risk(model, X, y)
    words = np.where(y == 1, "bad", "good")
    schema = pr.Schema(features=FEATURES, subscales=SCHEMA.subscales, positive="bad")
    np.testing.assert_array_equal(risk(model, X, words, schema=schema), expected)


# ---- determinism

SCRIPT = """
import warnings, sys
import numpy as np
import plainrisk as pr
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n = 600
X = {"u": rng.normal(size=n), "v": rng.choice(["a", "b", "c"], n), "w": rng.integers(0, 9, n)}
y = (X["u"] + (X["v"] == "b") + rng.normal(size=n) > 0).astype(int)
kinds = {"u": {"direction": "increasing"}, "v": {"kind": "categorical"}, "w": {}}
schema = pr.Schema(features=kinds, subscales={"one": ("u", "v"), "two": ("w",)})
for k, model in enumerate([
    pr.AdditiveRiskModel(schema), pr.AdditiveRiskModel(schema, link="linear"), pr.TwoLayerRiskModel(schema=schema),
    pr.NonnegativeLogisticRegression(schema, class_weight={1: 2.0, 0: 1.0}), pr.AdditiveRiskModel(),
]):
    model.fit(X, y).save(f"{sys.argv[1]}-{k}.json")
"""


def test_two_processes_write_the_same_bytes(tmp_path):
    for seed in ("1", "271828"):
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / seed)],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            timeout=600,
        )
    for k in range(5):
        first, second = ((tmp_path / f"{seed}-{k}.json").read_bytes() for seed in ("1", "271828"))
        assert len(first) > 1000
        assert first == second


@every_model
def test_fitting_twice_writes_the_same_bytes(model, tmp_path):
    X, y = rows()
    for name in ("a", "b"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            model.fit(X, y).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
