"""Measure every export of a model with 200 features: size, time to write and to check, and speed on many rows.

    python scripts/export_speed.py [--features 200] [--rows 10000000]

With --rows, one run times SQL in DuckDB, ONNX, the Python model and XGBoost. The model is then SmoothARM1 on HELOC
(needs PLAINRISK_DATA) or else on German credit. The columns of the synthetic rows are drawn independently from the
data. Rows are scored from memory, batch by batch (DuckDB: from one table); reading and converting them is not timed.
"everything" is risk, contributions and reasons.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import onnxruntime
import polars as pl
import xgboost

import plainrisk as pr
from plainrisk.errors import MissingExtraError, PlainriskError, PlainriskWarning

BATCH = 250_000
FILES = {
    "python": ("score.py", None),
    "javascript": ("score.mjs", None),
    "c": ("score.c", None),
    "onnx": ("score.onnx", None),
    "sql, DuckDB": ("score.sql", "duckdb"),
    "sql, SQLite": ("sqlite.sql", "sqlite"),
    "pmml": ("score.pmml", None),
    "xlsx": ("score.xlsx", None),
}


def wide(features: int) -> Any:
    """Fit a model of many features, of which every fifth is categorical and every tenth protected; 4 reasons."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5000, features)).round(3)
    bad = values.sum(axis=1) / features**0.5 + rng.normal(size=5000) > 0
    frame, known = {}, {}
    for j, column in enumerate(values.T):
        coded = j % 5 == 4
        frame[f"feature {j}"] = np.array(list("abcd"))[np.digitize(column, [-0.7, 0, 0.7])] if coded else column
        fixed = {"protected": True, "actionable": "fixed"} if j % 10 == 9 else {}
        known[f"feature {j}"] = {"kind": "categorical" if coded else "continuous", **fixed}
    schema = pr.Schema(features=known, policy={"cutoff": 0.5, "reasons": 4})
    return pr.make_classifier("ARM1", schema).fit(pl.DataFrame(frame), bad.astype(int))


def print_sizes(features: int, folder: Path) -> None:
    """Print what every export weighs, and how long it takes to write it and to check it where its runtime is here."""
    model = wide(features)
    print(f"{f'{features} features, 4 reasons':40}{'kB':>10}{'write, s':>10}{'check, s':>10}")
    for name, (file, dialect) in FILES.items():
        path = folder / file
        write = timed(lambda path=path, dialect=dialect: model.export(path, dialect=dialect))
        try:
            check = f"{timed(lambda path=path: require(pr.verify_export(path, model))):10.1f}"
        except MissingExtraError:
            check = f"{'':10}"
        print(f"{name:40}{path.stat().st_size / 1000:10,.0f}{write:10.1f}{check}", flush=True)


def require(found: Any) -> None:
    if not found.agrees:
        raise SystemExit(f"The export does not agree with the model: {found}")


def fit() -> tuple[Any, Any]:
    try:
        data = pr.datasets.load("heloc")
    except PlainriskError:
        data = pr.datasets.load("german")
    return data, pr.make_classifier("SmoothARM1", data.schema).fit(data.frame, data.target)


def typed(data: Any) -> pl.DataFrame:
    """Return the columns with the types that exports read: texts and doubles."""
    kinds = {name: feature.kind for name, feature in data.schema.features.items()}
    return data.frame.cast(
        {name: pl.String if kinds[name] == "categorical" else pl.Float64 for name in data.frame.columns}
    )


def write_rows(frame: pl.DataFrame, rows: int, folder: Path) -> None:
    """Write the synthetic rows as Parquet files of one batch each."""
    for n, start in enumerate(range(0, rows, BATCH)):
        size = min(BATCH, rows - start)
        rng = np.random.default_rng(n)
        drawn = [column.gather(rng.integers(0, len(frame), size)) for column in frame]
        pl.DataFrame(drawn).write_parquet(folder / f"rows{n:05}.parquet")


def batches(folder: Path) -> Iterator[pl.DataFrame]:
    return (pl.read_parquet(path) for path in sorted(folder.glob("rows*.parquet")))


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def by_duckdb(folder: Path) -> dict[str, float]:
    query = (folder / "score.sql").read_text(encoding="utf-8").rstrip().rstrip(";")
    with duckdb.connect(config={"memory_limit": "8GB", "temp_directory": str(folder)}) as connection:
        connection.execute(f"CREATE TABLE applicants AS SELECT * FROM read_parquet('{folder}/rows*.parquet')")
        names = [column[0] for column in connection.execute(f"{query} LIMIT 0").description]
        # The largest value of a column needs all of its values, and keeps none.
        every = ", ".join(f'max("{name}")' for name in names)
        return {
            "DuckDB, SQL: risk": timed(lambda: connection.execute(f"SELECT max(risk) FROM ({query})").fetchall()),
            "DuckDB, SQL: everything": timed(lambda: connection.execute(f"SELECT {every} FROM ({query})").fetchall()),
        }


def by_python(model: Any, folder: Path) -> dict[str, float]:
    risk = everything = 0.0
    for frame in batches(folder):
        risk += timed(lambda frame=frame: model.predict_proba(frame))
        everything += timed(lambda frame=frame: (model.explain(frame), model.reasons(frame)))
    return {"Python's model: risk": risk, "Python's model: everything": everything}


def by_onnx(folder: Path) -> dict[str, float]:
    session = onnxruntime.InferenceSession(str(folder / "score.onnx"), providers=["CPUExecutionProvider"])
    risk = everything = 0.0
    for frame in batches(folder):
        feed = {}
        for column in frame:
            is_text = column.dtype == pl.String
            values = column.fill_null("" if is_text else np.nan).to_numpy()
            feed[column.name] = values.astype(object if is_text else np.float64)[:, None]
        risk += timed(lambda feed=feed: session.run(["risk"], feed))
        everything += timed(lambda feed=feed: session.run(None, feed))
    return {"ONNX: risk": risk, "ONNX: everything": everything}


def by_xgboost(training: pl.DataFrame, target: Any, folder: Path) -> dict[str, float]:
    labels = {c.name: pl.Enum(c.unique().drop_nulls().sort()) for c in training if c.dtype == pl.String}

    def matrix(frame: pl.DataFrame) -> np.ndarray:
        codes = [pl.col(name).cast(kind).to_physical() for name, kind in labels.items()]
        return frame.with_columns(codes).cast(pl.Float32).to_numpy()

    model = xgboost.XGBClassifier(n_estimators=200, max_depth=4).fit(matrix(training), target)
    seconds = 0.0
    for frame in batches(folder):
        rows = matrix(frame)
        seconds += timed(lambda rows=rows: model.predict_proba(rows))
    return {"XGBoost, 200 trees of depth 4: risk": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--rows", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", PlainriskWarning)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print_sizes(options.features, folder)
        if options.rows:
            print_speed(options.rows, folder)


def print_speed(rows: int, folder: Path) -> None:
    data, model = fit()
    frame = typed(data)
    for file in ("score.sql", "score.onnx"):
        model.export(folder / file, dialect="duckdb" if file == "score.sql" else None)
    write_rows(frame, rows, folder)
    print(f"{data.frame.width} features, {rows:,} rows, {os.cpu_count()} processors")
    print(f"{'':40}{'seconds':>10}{'rows/s':>14}")
    runs = (
        lambda: by_duckdb(folder),
        lambda: by_python(model, folder),
        lambda: by_onnx(folder),
        lambda: by_xgboost(frame, data.target, folder),
    )
    for run in runs:
        for what, seconds in run().items():
            print(f"{what:40}{seconds:10.2f}{rows / seconds:14,.0f}", flush=True)


if __name__ == "__main__":
    main()
