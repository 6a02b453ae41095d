"""Tables of Spark by name or path, for the command line: `spark:risk.loans`, `spark:s3a://bucket/loans`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from plainrisk.data.rows import Progress, StoredRows
from plainrisk.data.spark_errors import raised_by_spark
from plainrisk.errors import DataError, missing_extra

__all__ = ["is_remote", "open_remote", "remote_rows", "sample_remote", "write_remote"]

_PREFIX = "spark:"
_FORMATS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".jsonl": "json", ".csv": "csv"}


def is_remote(data: str) -> bool:
    """Whether rows are a Spark table.

    >>> is_remote("spark:risk.loans"), is_remote("loans.parquet")
    (True, False)
    """
    return data.startswith(_PREFIX)


def remote_rows(data: str, master: str | None, conf: Sequence[str], progress: Progress | None = None) -> StoredRows:
    """Return the rows of a table of Spark, to be fitted where they are."""
    from plainrisk.data.rows import spark

    return spark(open_remote(data, master, conf), progress=progress)


def open_remote(data: str, master: str | None, conf: Sequence[str]) -> Any:
    """Return a DataFrame: a table by its name, or files if it looks like a path, Parquet unless the ending differs.

    Parameters
    ----------
    master : where Spark runs, such as local[2] or sc://host:15002 for Connect; by default, taken from the environment
    conf : settings, key=value each
    """
    name = data.removeprefix(_PREFIX)
    if not name:
        raise DataError(f"{data!r} names no table. Write {_PREFIX}TABLE, or {_PREFIX}PATH.")
    with raised_by_spark(f"opening {name}"):
        session = _session(master, conf)
        if "/" not in name and os.path.splitext(name)[1] not in _FORMATS:
            return session.table(name)
        kind = _FORMATS.get(os.path.splitext(name)[1], "parquet")
        reader = session.read.format(kind)
        return (reader.options(header=True, inferSchema=True) if kind == "csv" else reader).load(name)


def sample_remote(data: str, master: str | None, conf: Sequence[str], most: int) -> tuple[Any, int]:
    """Return a random sample of about `most` rows of a Spark table, as an Arrow table, and its number of rows."""
    table = open_remote(data, master, conf)
    with raised_by_spark("taking a sample"):
        n_rows = int(table.count())
        # The number of rows of a random share differs from the share by chance.
        chosen = table if n_rows <= most else table.sample(fraction=most / n_rows, seed=0)
        return chosen.toArrow(), n_rows


def write_remote(df: Any, path: str) -> int:
    """Write rows as Spark files, all or none of them, and return their number."""
    kind = _FORMATS.get(os.path.splitext(path)[1], "parquet")
    with raised_by_spark(f"writing {path}"):
        writer = df.write.format(kind).mode("error")
        (writer.options(header=True) if kind == "csv" else writer).save(path)
        return int(df.sparkSession.read.format(kind).options(header=True).load(path).count())


def _session(master: str | None, conf: Sequence[str]) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise missing_extra("pyspark", "spark") from None
    builder = SparkSession.builder.appName("plainrisk").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    for setting in conf:
        name, equals, value = setting.partition("=")
        if not equals:
            raise DataError(f"--conf {setting}: write KEY=VALUE, such as spark.executor.memory=4g.")
        builder = builder.config(name, value)
    # Rows come and go as Arrow, so pyspark's warnings about pandas do not matter here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    # Workers on this machine need the Python that has plainrisk.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return builder.getOrCreate()
