"""Time fits to a Spark table beside the same rows in Parquet files, and beside what Spark has.

    python scripts/spark_bench.py --rows 20000000 --cores 2 -o spark.json
    python scripts/spark_bench.py --rows 200000 --models DirectARM1

Rows are made by Spark itself: 30 features, of which 24 are continuous, 4 whole numbers and 2 categories. Every fit
tells seconds, CPU seconds of driver, Java and workers together (which other work on the machine does not change),
passes over the rows, bytes that came back to the driver, and the driver's memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CONTINUOUS, WHOLE, WORDS = 24, 4, 2


def cpu_seconds() -> float:
    """CPU time of this process, of Java and of the workers: of all that began after this one, on Linux."""
    ticks, own = os.sysconf("SC_CLK_TCK"), os.getpid()
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)], used[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / ticks

    def is_ours(pid: int) -> bool:
        return pid == own or (pid in parents and is_ours(parents[pid]))

    return sum(seconds for pid, seconds in used.items() if is_ours(pid))


def session(cores: int) -> Any:
    """Start Spark on this machine."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    settings = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": cores}
    for name, value in {**settings, "spark.ui.showConsoleProgress": "false"}.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def write_rows(spark: Any, rows: int, parts: int, path: str) -> None:
    """Write synthetic rows as Parquet files."""
    numbers = [f"round(randn({k}), 3) AS x{k}" for k in range(CONTINUOUS)]
    wholes = [f"int(rand({50 + k}) * {10 * (k + 1)}) AS n{k}" for k in range(WHOLE)]
    words = [f"concat('w', int(rand({80 + k}) * {5 * (k + 1)})) AS c{k}" for k in range(WORDS)]
    table = spark.range(0, rows, 1, parts).selectExpr(*numbers, *wholes, *words)
    score = " + ".join(f"{0.5 - 0.04 * k:.2f} * x{k}" for k in range(12)) + " + 0.08 * n0 - 2.5"
    table.selectExpr("*", f"int(rand(99) < 1 / (1 + exp(-({score})))) AS bad").write.parquet(path)


def schema() -> Any:
    """Say what is known of the features."""
    import plainrisk as pr

    kinds = {f"x{k}": {"kind": "continuous", "direction": "increasing"} for k in range(8)}
    kinds |= {f"x{k}": {"kind": "continuous"} for k in range(8, CONTINUOUS)}
    kinds |= {f"n{k}": {"kind": "continuous"} for k in range(WHOLE)}
    return pr.Schema(target="bad", features=kinds | {f"c{k}": {"kind": "categorical"} for k in range(WORDS)})


def measured(name: str, fit: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run one fit, and tell what it took."""
    start, before = time.perf_counter(), cpu_seconds()
    found = fit()
    found |= {"what": name, "seconds": time.perf_counter() - start, "cpu": cpu_seconds() - before}
    found["driver_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in found.items()}), flush=True)
    return found


def ours(df: Any, files: str, name: str) -> list[dict[str, Any]]:
    """Fit one of ours to the table and to the files, and compare the two models."""
    import plainrisk as pr

    models = {}

    def there() -> dict[str, Any]:
        rows = pr.rows.spark(df)
        models["spark"] = pr.make_classifier(name, schema()).fit(rows)
        return {"passes": rows.passes, "megabytes": rows.received / 1e6}

    def here() -> dict[str, Any]:
        models["files"] = pr.make_classifier(name, schema()).fit(pr.rows.parquet(files))
        return {}

    found = [measured(f"{name} on Spark", there), measured(f"{name} on the Parquet files", here)]
    sample = df.limit(2_000).toArrow()
    gap = np.abs(models["spark"].predict_proba(sample) - models["files"].predict_proba(sample)).max()
    print(f"largest difference of a probability: {gap:.1e}", flush=True)
    return found


def rivals(df: Any) -> list[dict[str, Any]]:
    """Fit what Spark has, and xgboost.spark where it is installed."""
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import VectorAssembler

    numeric = [name for name, kind in df.dtypes if kind != "string" and name != "bad"]
    vectors = VectorAssembler(inputCols=numeric, outputCol="features").transform(df)

    def logistic() -> dict[str, Any]:
        model = LogisticRegression(labelCol="bad", maxIter=50).fit(vectors)
        return {"passes": model.summary.totalIterations}

    found = [measured("Spark ML's LogisticRegression, numeric columns", logistic)]
    try:
        from xgboost.spark import SparkXGBClassifier
    except ImportError:
        return found

    def trees() -> dict[str, Any]:
        SparkXGBClassifier(features_col=numeric, label_col="bad", n_estimators=50, max_depth=2).fit(df)
        return {}

    try:
        return [*found, measured("xgboost.spark, 50 trees of depth 2", trees)]
    except Exception as error:
        print(f"xgboost.spark: {str(error).splitlines()[0]}", file=sys.stderr)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--models", nargs="*", default=["DirectARM1", "SmoothARM1"])
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    spark = session(given.cores)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows"
        write_rows(spark, given.rows, max(given.cores, given.rows // 1_000_000), path)
        df = spark.read.parquet(path)
        found = [one for name in given.models for one in ours(df, f"{path}/*.parquet", name)]
        found += [] if given.no_rivals else rivals(df)
    spark.stop()
    if given.output:
        given.output.write_text(json.dumps({"rows": given.rows, "cores": given.cores, "fits": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
