"""Time fits to a Spark table beside the same rows in Parquet files, and beside what Spark has.

    python scripts/spark_bench.py --rows 20000000 --cores 2 --data rows -o spark.json
    python scripts/spark_bench.py --rows 200000 --fits DirectARM1 logistic

Rows have 30 features, of which 24 are continuous, 4 whole numbers and 2 categories. Every fit comes after one to a few
rows, which warms Java up. It tells seconds, CPU seconds of the driver, of Java and of the workers (which other work on
the machine changes less), passes over the rows, bytes that came back to the driver, bytes shuffled, and the driver's
memory.
"""

from __future__ import annotations

import argparse
import functools
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
import pyarrow as pa
import pyarrow.parquet as pq

CONTINUOUS, WHOLE, WORDS = 24, 4, 2
FILE_ROWS = 1_000_000


def cpu_seconds() -> dict[str, float]:
    """CPU time of this process, of Java and of the workers: of all that began after this one, on Linux."""
    ticks, own = os.sysconf("SC_CLK_TCK"), os.getpid()
    parents, used, who = {}, {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                name, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            pid, fields = int(entry.name), rest.split()
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15])) / ticks
            who[pid] = "driver" if pid == own else "java" if name.endswith("(java") else "workers"

    def is_ours(pid: int) -> bool:
        return pid == own or (pid in parents and is_ours(parents[pid]))

    found = dict.fromkeys(("driver", "java", "workers"), 0.0)
    for pid, seconds in used.items():
        if is_ours(pid):
            found[who[pid]] += seconds
    return found


def shuffled(spark: Any) -> float:
    """Bytes that all stages have shuffled, by Spark's own count."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return float(sum(executors.apply(k).totalShuffleWrite() for k in range(executors.size())))


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


def write_rows(rows: int, folder: Path) -> None:
    """Write synthetic rows as Parquet files of a million; a file that is there already stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, start in enumerate(range(0, rows, FILE_ROWS)):
        path = folder / f"part-{part:05}.parquet"
        if not path.exists():
            pq.write_table(_million(min(FILE_ROWS, rows - start), part), path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)


def _million(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"x{k}": rng.standard_normal(rows).round(3) for k in range(CONTINUOUS)}
    columns |= {f"n{k}": rng.integers(0, 10 * (k + 1), rows, np.int32) for k in range(WHOLE)}
    for k in range(WORDS):
        words = pa.array([f"w{n}" for n in range(5 * (k + 1))])
        columns[f"c{k}"] = words.take(pa.array(rng.integers(0, len(words), rows)))
    score = sum((0.5 - 0.04 * k) * columns[f"x{k}"] for k in range(12)) + 0.08 * columns["n0"] - 2.5
    return pa.table(columns | {"bad": (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int32)})


def schema() -> Any:
    """Say what is known of the features."""
    import plainrisk as pr

    kinds = {f"x{k}": {"kind": "continuous", "direction": "increasing"} for k in range(8)}
    kinds |= {f"x{k}": {"kind": "continuous"} for k in range(8, CONTINUOUS)}
    kinds |= {f"n{k}": {"kind": "continuous"} for k in range(WHOLE)}
    return pr.Schema(target="bad", features=kinds | {f"c{k}": {"kind": "categorical"} for k in range(WORDS)})


def measured(what: str, rows: int, spark: Any, fit: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run one fit, and tell what it took."""
    start, before, moved = time.perf_counter(), cpu_seconds(), shuffled(spark)
    found = {"what": what, "rows": rows} | fit()
    # Workers that were idle for a minute end, and what they used is no longer counted.
    cpu = {name: max(0.0, seconds - before[name]) for name, seconds in cpu_seconds().items()}
    found |= {"seconds": time.perf_counter() - start, "cpu": sum(cpu.values()), **cpu}
    found |= {"shuffled_mb": (shuffled(spark) - moved) / 1e6}
    found["driver_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in found.items()}), flush=True)
    return found


def on_spark(name: str, df: Any) -> dict[str, Any]:
    """Fit one of ours to the table."""
    import plainrisk as pr

    rows = pr.rows.spark(df)
    MODELS[name] = pr.make_classifier(name, schema()).fit(rows)
    return {"passes": rows.passes, "received_mb": rows.received / 1e6}


def on_files(name: str, files: list[str], df: Any) -> dict[str, Any]:
    """Fit the same to the files, and compare the two models."""
    import plainrisk as pr

    model = pr.make_classifier(name, schema()).fit(pr.rows.parquet(files))
    if name not in MODELS:
        return {}
    sample = df.limit(2_000).toArrow()
    return {"gap": float(np.abs(MODELS[name].predict_proba(sample) - model.predict_proba(sample)).max())}


def logistic(df: Any) -> dict[str, Any]:
    """Fit Spark ML's logistic regression to the numeric columns."""
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import VectorAssembler

    vectors = VectorAssembler(inputCols=_numeric(df), outputCol="features").transform(df)
    model = LogisticRegression(labelCol="bad", maxIter=50).fit(vectors)
    return {"passes": model.summary.totalIterations}


def xgboost(df: Any) -> dict[str, Any]:
    """Fit xgboost.spark to the numeric columns."""
    from xgboost.spark import SparkXGBClassifier

    SparkXGBClassifier(features_col=_numeric(df), label_col="bad", n_estimators=50, max_depth=2).fit(df)
    return {}


def _numeric(df: Any) -> list[str]:
    return [name for name, kind in df.dtypes if kind != "string" and name != "bad"]


MODELS: dict[str, Any] = {}
RIVALS = {"logistic": logistic, "xgboost": xgboost}


def fits(spark: Any, names: list[str], df: Any, files: list[str], rows: int) -> list[dict[str, Any]]:
    """Fit all that are named, each after a fit to a few rows."""
    few, found = df.limit(5_000).persist(), []
    for name in names:
        fit = RIVALS[name] if name in RIVALS else functools.partial(on_spark, name)
        fit(few)
        found.append(measured(f"{name} on Spark", rows, spark, functools.partial(fit, df)))
        if name not in RIVALS:
            beside = functools.partial(on_files, name, files, df)
            found.append(measured(f"{name} on the Parquet files", rows, spark, beside))
    few.unpersist()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[20_000_000], help="one size or several")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fits", nargs="*", default=["DirectARM1", "SmoothARM1", *RIVALS], help="ours, or a rival")
    parser.add_argument("--data", type=Path, help="where rows are kept for other runs")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = str(given.cores)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        home = given.data or Path(folder)
        write_rows(max(given.rows), home)
        spark = session(given.cores)
        for rows in given.rows:
            files = [str(home / f"part-{k:05}.parquet") for k in range(-(-rows // FILE_ROWS))]
            df = spark.read.parquet(*files)
            found += fits(spark, given.fits, df, files, df.count())
        spark.stop()
    if given.output:
        given.output.write_text(json.dumps({"cores": given.cores, "fits": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
