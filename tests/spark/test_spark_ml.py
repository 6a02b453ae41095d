"""The Estimator and the Model of Spark's pipelines: SQL says what Python says, and no class of the JVM is saved."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning"),
]
FEATURES = ["age", "income", "job"]


@pytest.fixture(scope="module")
def model(loans):
    schema, frame = loans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return pr.make_classifier("SmoothARM1", schema).fit(frame.select(FEATURES), frame["bad"].to_numpy())


def test_sql_says_what_python_says(table, loans, model):
    from plainrisk.spark import RiskClassifierModel

    X = loans[1].select(FEATURES)
    scorer = RiskClassifierModel(model).setParams(reasonsCol="why", contributionsCol="parts")
    scored = scorer.transform(table.withColumnRenamed("weight", "risk of fire"))
    assert scored.columns[:5] == [*FEATURES, "bad", "risk of fire"]
    plan = scored._jdf.queryExecution().toString()
    assert "ArrowEvalPython" not in plan
    assert "MapInArrow" not in plan
    rows = scored.select("risk", "prediction", "why", "parts", "probability").collect()
    proba = model.predict_proba(X)
    np.testing.assert_allclose([row["risk"] for row in rows], proba[:, 1], rtol=0, atol=1e-12)
    np.testing.assert_allclose([row["probability"].toArray() for row in rows], proba, rtol=0, atol=1e-12)
    assert [row["prediction"] for row in rows] == model.predict(X).astype(float).tolist()
    reasons = model.reasons(X)
    texts = np.array([*reasons.texts, None], dtype=object)[reasons.text_codes]
    assert [row["why"] for row in rows] == [[text for text in own if text is not None] for own in texts]
    explained = model.explain(X)
    for name, own in zip(explained.features, explained.contributions.T, strict=True):
        np.testing.assert_allclose([row["parts"][name] for row in rows], own, rtol=0, atol=1e-12)


def test_a_row_that_cannot_be_scored_is_told_or_fails(table, model):
    from pyspark.errors import PySparkException

    from plainrisk.spark import RiskClassifierModel

    spoilt = table.limit(2).selectExpr("age", "double('inf') AS income", "job")
    told = RiskClassifierModel(model).setParams(problemCol="problem").transform(spoilt).first()
    assert (told["risk"], told["problem"]) == (None, "feature 'income' holds infinity")
    scored = RiskClassifierModel(model).transform(spoilt)
    with pytest.raises(PySparkException, match="feature 'income' holds infinity"):
        scored.collect()


def test_texts_are_read_as_the_schema_states(spark):
    from plainrisk.spark import RiskClassifierModel

    rng = np.random.default_rng(2)
    rate, job = rng.integers(1, 40, 300), rng.choice(["clerk", "cook", " n/a", "?"], 300)
    text = [None if k % 11 == 0 else "NA" if k % 7 == 0 else f"{value}%" for k, value in enumerate(rate)]
    frame = pl.DataFrame({"rate": text, "job": job.tolist()})
    known = {"kind": "continuous", "read": "percent", "null_values": ["NA"]}
    schema = pr.Schema(features={"rate": known, "job": {"kind": "categorical", "null_values": ["n/a", "?"]}})
    outcomes = (rng.random(300) < 0.2 + 0.01 * rate + 0.2 * (job == "?")).astype(int)
    model = pr.make_classifier("DirectARM1", schema).fit(frame, outcomes)
    scorer = RiskClassifierModel(model).setParams(reasonsCol="why")
    rows = scorer.transform(spark.createDataFrame(frame.to_arrow())).select("rate", "job", "risk").collect()
    assert [row["rate"] for row in rows] == text, "columns are handed on as they came"
    np.testing.assert_allclose([row["risk"] for row in rows], model.predict_proba(frame)[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["bigint", "double", "boolean", "date"])
def test_codes_that_are_not_text_are_read_as_the_schema_states(spark, kind):
    """Codes that mean missing are named as text, whatever type the column has."""
    from plainrisk.spark import RiskClassifierModel

    rng = np.random.default_rng(3)
    code, null = rng.integers(0, 2 if kind == "boolean" else 4, 300), {"bigint": "3", "double": "3", "boolean": "true"}
    days = pl.Series(code).cast(pl.Int32).cast(pl.Date)
    column = {"bigint": pl.Series(code), "double": pl.Series(code * 1.0), "boolean": pl.Series(code > 0), "date": days}[
        kind
    ]
    frame = pl.DataFrame({"code": column, "x": rng.random(300)})
    frame = frame.with_columns(code=pl.when(pl.int_range(300) % 9 > 0).then("code"))
    known = {"kind": "categorical", "null_values": [null.get(kind, "1970-01-04")]}
    schema = pr.Schema(features={"code": known, "x": {"kind": "continuous"}})
    outcomes = (rng.random(300) < 0.2 + 0.2 * (code % 3)).astype(int)
    model = pr.make_classifier("ARM1", schema).fit(frame, outcomes)
    assert null.get(kind, "1970-01-04") not in model.form_.parts[0].shapes["code"].levels.labels
    table = spark.createDataFrame(frame.to_arrow())
    assert dict(table.dtypes)["code"] == kind
    rows = RiskClassifierModel(model).setParams(reasonsCol="why").transform(table).select("code", "risk").collect()
    assert [row["code"] for row in rows] == frame["code"].to_list(), "columns are handed on as they came"
    np.testing.assert_allclose([row["risk"] for row in rows], model.predict_proba(frame)[:, 1], rtol=0, atol=1e-12)
    there = pr.make_classifier("ARM1", schema).fit(
        pr.rows.spark(spark.createDataFrame(frame.with_columns(bad=outcomes).to_arrow())), "bad"
    )
    np.testing.assert_allclose(there.predict_proba(frame), model.predict_proba(frame), rtol=0, atol=1e-9)


def test_trees_are_scored_through_arrow(table, loans):
    from plainrisk.spark import RiskClassifierModel

    pytest.importorskip("xgboost")
    schema, frame = loans
    numbers = schema.select(["age", "income"])
    trees = pr.make_classifier("XGB", numbers).fit(frame.select("age", "income"), frame["bad"].to_numpy())
    rows = RiskClassifierModel(trees).transform(table.repartition(2)).select("age", "income", "risk").toPandas()
    np.testing.assert_allclose(rows["risk"], trees.predict_proba(rows[["age", "income"]])[:, 1], rtol=0, atol=1e-12)
    with pytest.raises(DataError, match="sum of trees has no contributions and reasons"):
        RiskClassifierModel(trees).setParams(reasonsCol="why").transform(table)


def test_a_pipeline_is_fitted_saved_and_read(table, loans, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel

    from plainrisk.spark import RiskClassifier

    schema, frame = loans
    stage = RiskClassifier(schema=schema, classifier="DirectARM1", options={"max_bins": 3}, weightCol="weight")
    stage.write().overwrite().save(str(tmp_path / "stage"))
    again = RiskClassifier.load(str(tmp_path / "stage"))
    assert again.explainParams() == stage.explainParams()
    fitted = Pipeline(stages=[again]).fit(table)
    here = pr.make_classifier("DirectARM1", schema, max_bins=3)
    here.fit(frame.select(FEATURES), frame["bad"].to_numpy(), sample_weight=frame["weight"].to_numpy())
    fitted.save(str(tmp_path / "pipeline"))
    read = PipelineModel.load(str(tmp_path / "pipeline"))
    risks = [row["risk"] for row in read.transform(table).select("risk").collect()]
    np.testing.assert_allclose(risks, here.predict_proba(frame.select(FEATURES))[:, 1], rtol=0, atol=1e-9)


def test_cross_validation_and_an_evaluator_of_spark(table, loans):
    from pyspark.ml.evaluation import BinaryClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
    from pyspark.sql import functions as F  # noqa: N812

    from plainrisk.spark import RiskClassifier

    stage = RiskClassifier(schema=loans[0], classifier="DirectARM1")
    grid = ParamGridBuilder().addGrid(stage.options, ['{"max_bins": 3}']).build()
    judge = BinaryClassificationEvaluator(labelCol="bad")
    folds = table.withColumn("fold", F.pmod(F.hash("age"), F.lit(2)))
    options = {"numFolds": 2, "foldCol": "fold"}
    found = CrossValidator(estimator=stage, estimatorParamMaps=grid, evaluator=judge, **options).fit(folds)
    assert 0.55 < found.avgMetrics[0] < 1.0
    assert judge.evaluate(found.bestModel.transform(table)) > 0.6
