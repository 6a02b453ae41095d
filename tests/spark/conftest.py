"""One Spark session for all tests of Spark; without Java 17 or pyspark they are skipped, in CI they fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import plainrisk as pr


def _why_not() -> str:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: pip install 'plainrisk[spark]'."
    java = shutil.which("java")
    if java is None:
        return "Java is not here: apt install default-jre-headless."
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = said.partition('"')[2].partition(".")[0].partition('"')[0]
    return "" if version.isdecimal() and int(version) >= 17 else f"Spark needs Java 17, and this is {said.strip()!r}."


@pytest.fixture(scope="session")
def needs_spark() -> None:
    """Skip a test where Spark cannot run; in CI, where make test installs Java, fail."""
    reason = _why_not()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"{reason} CI needs Spark.")
    if reason:
        pytest.skip(reason)
    os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="session")
def spark(needs_spark):
    """Classic Spark on two cores, which tries a task four times, as a cluster does."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").appName("tests of plainrisk")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def loans():
    """A schema and rows with all that rows can have: holes, special values, rare categories, weights."""
    rng = np.random.default_rng(5)
    n = 600
    age, job = rng.integers(20, 70, n).astype(float), rng.choice(["a", "b", "c"], n).astype(object)
    income = np.round(rng.lognormal(3, 1, n), 2)
    bad = rng.random(n) < 1 / (1 + np.exp(0.5 * np.log(income) - 0.02 * (age - 45)))
    age[rng.random(n) < 0.1], income[rng.random(n) < 0.1], job[rng.random(n) < 0.1] = np.nan, -9.0, None
    schema = pr.Schema(
        target="bad",
        features={
            "age": {"kind": "continuous", "missing": "not_better", "direction": "increasing"},
            "income": {"kind": "continuous", "direction": "decreasing", "special_values": [-9]},
            "job": {"kind": "categorical"},
        },
        subscales={"Person": ["age", "job"], "Money": ["income"]},
        policy={"cutoff": 0.3, "reasons": 2},
    )
    frame = pl.DataFrame({"age": age, "income": income, "job": job.tolist()}, nan_to_null=True)
    return schema, frame.with_columns(bad=pl.Series(bad.astype(np.int64)), weight=rng.integers(1, 4, n))


@pytest.fixture(scope="session")
def table(spark, loans):
    """The rows as a Spark table."""
    return spark.createDataFrame(loans[1].to_arrow()).cache()
