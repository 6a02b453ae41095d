"""Fits to Spark tables: the model in memory, whatever the partitions, and what happens when Spark fails."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.data.folds import Folds
from plainrisk.data.frame import as_frame
from plainrisk.data.spark_tasks import arrow_function
from plainrisk.errors import DataError, PlainriskError, PlainriskWarning

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
]
FEATURES = ["age", "income", "job"]


def fitted(model, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        return model.fit(*arguments, **options)


def in_memory(name, loans, *, weighted=False):
    schema, frame = loans
    weight = frame["weight"].to_numpy() if weighted else None
    return fitted(pr.make_classifier(name, schema), frame.select(FEATURES), frame["bad"].to_numpy(), weight)


def same(there, here, loans):
    X = loans[1].select(FEATURES)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=0, atol=1e-9)


OURS = [name for name in pr.CLASSIFIERS if "XGB" not in name]
# Partial results of more than 32 partitions are merged on the executors.
SPREAD = [(1, False), (7, True), (64, False), (1, True), (7, False)]


@pytest.mark.parametrize(("name", "parts", "weighted"), [(n, *SPREAD[k % 5]) for k, n in enumerate(OURS)])
def test_every_model_is_the_one_in_memory(table, loans, name, parts, weighted):
    seen = []
    shuffled = table.selectExpr("*", "hash(age, income) AS place").orderBy("place").drop("place").repartition(parts)
    rows = pr.rows.spark(shuffled, "weight" if weighted else None, progress=lambda *said: seen.append(said))
    there = fitted(pr.make_classifier(name, loans[0]), rows)
    same(there, in_memory(name, loans, weighted=weighted), loans)
    assert seen[0] == ("reading outcomes", 1, 1)
    assert [done for _, done, _ in seen] == list(range(1, len(seen) + 1))
    assert there.fit_record_.rows == 600
    assert not table.sparkSession.sparkContext._jsc.getPersistentRDDs().size() > 1, "only the table itself is cached"


def test_a_rerun_gives_the_same_bytes(table, loans, tmp_path):
    spread, paths = table.repartition(7, "age").persist(), [tmp_path / "one.json", tmp_path / "two.json"]
    for path in paths:
        fitted(pr.make_classifier("SmoothARM1", loans[0]), pr.rows.spark(spread, "weight")).save(path)
    spread.unpersist()
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_folds_are_dealt_where_the_rows_are(table, loans):
    """By a hash of what rows hold, or of the customer: as in memory with the same folds."""
    schema, frame = loans
    home = Folds(3, texts=("age",), seed=(0, 0))(as_frame(frame))
    X, y = frame.select(FEATURES), frame["bad"].to_numpy()
    splits = [(np.flatnonzero(home != k), np.flatnonzero(home == k)) for k in range(3)]
    here = fitted(pr.SubscaleMixture(schema=schema, cv=splits), X, y)
    there = fitted(pr.SubscaleMixture(schema=schema, cv=3), pr.rows.spark(table, group="age"))
    assert there.weights_ == pytest.approx(here.weights_, abs=1e-9)
    by_row = [fitted(pr.SubscaleMixture(schema=schema, cv=3), pr.rows.spark(table.repartition(n))) for n in (1, 7)]
    assert by_row[0].weights_ == pytest.approx(by_row[1].weights_, abs=1e-9)


def test_cross_validation_is_that_of_a_file(table, loans, tmp_path):
    schema, frame = loans
    frame.write_parquet(tmp_path / "loans.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        model = pr.make_classifier("ARM1", schema)
        here, there = (
            pr.cross_validate(model, rows, cv=2)
            for rows in (pr.rows.parquet(tmp_path / "loans.parquet"), pr.rows.spark(table.repartition(3)))
        )
    for name, values in here.scores.items():
        np.testing.assert_allclose(there.scores[name], values, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "few"), [("SmoothARM1", 1 << 20), ("MixLinARM1", 0)])
def test_refits_of_the_bootstrap_are_those_of_memory(table, loans, name, few, monkeypatch):
    """Of distinct rows that come to the driver, and of those that stay in two groups where they are."""
    monkeypatch.setattr("plainrisk.data.spark_rows._FEW_ROWS", few)
    monkeypatch.setattr("plainrisk.validate.draws._GROUP_ROWS", 300)
    X, y = loans[1].select(FEATURES), loans[1]["bad"].to_numpy()
    weight = loans[1]["weight"].to_numpy()
    model = in_memory(name, loans, weighted=True)
    here = pr.bootstrap(model, X, y, n=2, sample_weight=weight).risk(X)
    there = pr.bootstrap(model, pr.rows.spark(table.repartition(5), "weight"), n=2).risk(X)
    np.testing.assert_allclose(there.low, here.low, rtol=0, atol=1e-9)
    np.testing.assert_allclose(there.high, here.high, rtol=0, atol=1e-9)
    assert table.sparkSession.sparkContext._jsc.getPersistentRDDs().size() <= 1


def test_smooth_shapes_in_bands(table, loans):
    schema, frame = loans
    model = pr.AdditiveRiskModel(schema, shapes="smooth", link="bands", pieces=3)
    there = fitted(model, pr.rows.spark(table.repartition(2)))
    here = fitted(
        pr.AdditiveRiskModel(schema, shapes="smooth", link="bands", pieces=3),
        frame.select(FEATURES),
        frame["bad"].to_numpy(),
    )
    same(there, here, loans)


@pytest.mark.parametrize(("name", "tasks"), [("DirectARM1", 1), ("MixARM1", 5)])
def test_a_worker_that_is_killed_changes_nothing(table, loans, tmp_path, name, tasks):
    """In the first task of the first pass, and in one of the pass that codes the rows."""
    log, killed = str(tmp_path / "tasks"), str(tmp_path / "killed")

    def kill_once(batches):
        import signal

        with open(log, "a") as file:
            file.write("x")
        if os.path.getsize(log) >= tasks:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(killed, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    df = table.repartition(2).mapInArrow(kill_once, table.schema)
    there = fitted(pr.make_classifier(name, loans[0]), pr.rows.spark(df))
    assert os.path.exists(killed), "a worker was killed"
    same(there, in_memory(name, loans), loans)


def test_the_garbage_collector_of_a_worker_is_spared_our_modules(spark):
    """It runs after every task; going through everything that is imported took most of a small task's time."""

    def counted(batches):
        import gc

        import pyarrow

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()], "left": [len(gc.get_objects())]})

    found = spark.range(0, 2, 1, 2).mapInArrow(arrow_function(counted), "frozen long, left long").collect()
    assert len(found) == 2
    assert all(row["frozen"] > 3 * row["left"] for row in found)


def test_errors_are_one_line_and_free_the_cache(spark, table, loans):
    schema, model = loans[0], pr.make_classifier("DirectARM1", loans[0])
    spoilt = table.selectExpr("age", "CASE WHEN income = -9 THEN double('inf') ELSE income END AS income", "job", "bad")
    with pytest.raises(PlainriskError, match=r"feature 'income' holds infinity"):
        fitted(model, pr.rows.spark(spoilt))

    def broken(batches):
        for _ in batches:
            raise ValueError("the tape is torn")
            yield

    with pytest.raises(PlainriskError, match=r"^Spark, .*: a partition failed: ValueError: the tape is torn$"):
        fitted(model, pr.rows.spark(table.mapInArrow(broken, table.schema)))
    with pytest.raises(DataError, match="target 'bad' is missing in row"):
        fitted(model, pr.rows.spark(table.selectExpr("age", "income", "job", "nullif(bad, 1) AS bad")))
    with pytest.raises(DataError, match="There are no rows to fit"):
        fitted(model, pr.rows.spark(table.where("bad > 1")))
    with pytest.raises(DataError, match=r"boosted trees.*a sample in memory"):
        fitted(pr.make_classifier("XGB", schema.select(["age", "income"])), pr.rows.spark(table))
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= 1


KILLED = """
import os, signal, sys
from plainrisk.cli.app import app
from plainrisk.data.spark_rows import SparkRows
merged = SparkRows.merged
def killed(self, *given, **options):
    found = merged(self, *given, **options)
    if self.passes == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
if sys.argv.pop(1) == "kill":
    SparkRows.merged = killed
app()
"""


def test_a_driver_that_is_killed_leaves_nothing_and_a_rerun_works(needs_spark, loans, tmp_path):
    schema, frame = loans
    frame.write_parquet(tmp_path / "loans.parquet")
    schema.save(tmp_path / "loans.toml")
    words = ["fit", f"spark:{tmp_path / 'loans.parquet'}", "--schema", "loans.toml", "--model", "DirectARM1"]
    words += ["--master", "local[2]", "-o", "model.json"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}

    def run(how):
        command = [sys.executable, "-c", KILLED, how, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)

    assert run("kill").returncode == -signal.SIGKILL
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loans.parquet", "loans.toml"]
    done = run("go on")
    assert done.returncode == 0, done.stderr[-3000:]
    same(pr.load(tmp_path / "model.json"), in_memory("DirectARM1", loans), loans)


CONNECT = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, polars as pl
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
import plainrisk as pr
from plainrisk.spark import RiskClassifier, RiskClassifierModel
rows, schema, folder = sys.argv[1], pr.Schema.load(sys.argv[2]), sys.argv[3]
session = (SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate())
assert "connect" in type(session).__module__
frame = pl.read_parquet(rows)
table = session.createDataFrame(frame.to_arrow())
X, y, w = frame.select("age", "income", "job"), frame["bad"].to_numpy(), frame["weight"].to_numpy()
found = {}

def gap(name, one, other):
    found[name] = float(np.abs(np.asarray(one) - np.asarray(other)).max())

def column(df, name):
    return [row[name] for row in df.select(name).collect()]

# Fits, a mixture among them, and the bootstrap.
here = {name: pr.make_classifier(name, schema).fit(X, y, sample_weight=w) for name in ("DirectARM1", "MixARM1")}
for name, model in here.items():
    there = pr.make_classifier(name, schema).fit(pr.rows.spark(table.repartition(3), "weight"))
    gap(f"fit {name}", there.predict_proba(X), model.predict_proba(X))
arm = here["DirectARM1"]
refits = [pr.bootstrap(arm, X, y, n=2, sample_weight=w), pr.bootstrap(arm, pr.rows.spark(table, "weight"), n=2)]
gap("bootstrap", *(one.risk(X).high for one in refits))

# SQL with all columns of answers, saved and read.
scorer = RiskClassifierModel(pr.load(folder + "/model.json"))
scorer.setParams(reasonsCol="why", contributionsCol="parts", decisionCol="said")
scorer.write().save(folder + "/scorer")
for name, model in (("sql", scorer), ("read", RiskClassifierModel.load(folder + "/scorer"))):
    scored = model.transform(table)
    gap(f"{name} risk", column(scored, "risk"), arm.predict_proba(X)[:, 1])
    gap(f"{name} vector", [v.toArray() for v in column(scored, "probability")], arm.predict_proba(X))
    reasons, explained = arm.reasons(X), arm.explain(X)
    texts = np.array([*reasons.texts, None], dtype=object)[reasons.text_codes]
    found[f"{name} reasons"] = column(scored, "why") == [[t for t in own if t is not None] for own in texts]
    parts = column(scored, "parts")
    for feature, own in zip(explained.features, explained.contributions.T):
        gap(f"{name} contribution of {feature}", [one[feature] for one in parts], own)
    said = np.where(arm.decide(X).refused, "refused", "approved")
    found[f"{name} decisions"] = column(scored, "said") == said.tolist()

# A pipeline.
stage = RiskClassifier(schema=schema, classifier="DirectARM1", weightCol="weight", reasonsCol="why")
Pipeline(stages=[stage]).write().save(folder + "/unfitted")
fitted = Pipeline.load(folder + "/unfitted").fit(table)
fitted.write().save(folder + "/fitted")
scored = PipelineModel.load(folder + "/fitted").transform(table)
gap("pipeline", column(scored, "risk"), arm.predict_proba(X)[:, 1])
found["pipeline reasons"] = column(scored, "why") == column(scorer.transform(table), "why")

# Spark's cross validation and its evaluator.
stage = RiskClassifier(schema=schema, classifier="DirectARM1")
grid = ParamGridBuilder().addGrid(stage.options, ['{"max_bins": 3}']).build()
folds = table.withColumn("fold", F.pmod(F.hash("age"), F.lit(2)))
judge = BinaryClassificationEvaluator(labelCol="bad")
best = CrossValidator(estimator=stage, estimatorParamMaps=grid, evaluator=judge, numFolds=2, foldCol="fold").fit(folds)
found["area under the curve"] = float(best.avgMetrics[0])
three = pr.make_classifier("DirectARM1", schema, max_bins=3).fit(X, y)
gap("best model", column(best.bestModel.transform(table), "risk"), three.predict_proba(X)[:, 1])
session.stop()
print("found", json.dumps(found))
"""


def test_spark_connect(needs_spark, loans, tmp_path):
    """Fits, the bootstrap, SQL with all answers, models and pipelines saved and read, and Spark's cross validation."""
    schema, frame = loans
    frame.write_parquet(tmp_path / "loans.parquet")
    schema.save(tmp_path / "loans.toml")
    in_memory("DirectARM1", loans, weighted=True).save(tmp_path / "model.json")
    command = [sys.executable, "-c", CONNECT, *(str(tmp_path / name) for name in ("loans.parquet", "loans.toml", "."))]
    env = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    said = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    assert said, done.stderr[-3000:]
    found = json.loads(said[0].removeprefix("found "))
    assert 0.55 < found.pop("area under the curve") < 1.0
    same = [name for name in found if name.endswith(("reasons", "decisions"))]
    assert len(same) == 5
    assert all(found.pop(name) is True for name in same)
    assert len(found) == 15
    assert max(found.values()) < 1e-9
    assert all(gap < 1e-12 for name, gap in found.items() if name.startswith(("sql", "read")))


def test_no_driver_file_is_left_when_java_is_absent(needs_spark, tmp_path):
    script = (
        "from plainrisk.data.remote import open_remote; from plainrisk.errors import PlainriskError\n"
        "try: open_remote('spark:x', 'local', ())\nexcept PlainriskError as error: print(error)"
    )
    env = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env)
    assert "Spark 4 needs Java 17 or newer" in done.stdout, json.dumps(done.stderr[-2000:])
