"""`plainrisk score`: the risk of every row, in batches."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plainrisk.cli import show
from plainrisk.cli.options import Data, Json, Missing, ModelFile
from plainrisk.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import polars as pl

    from plainrisk.model import RiskModel

__all__ = ["score"]

_ROW = "row of the data"


def score(
    data: Data,
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write: .parquet, .csv, .csv.gz or .jsonl.")],
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="A column to copy beside the risk. Repeatable."),
    ] = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Write the risk of every row; rows are read in batches, so that memory stays small."""
    from plainrisk.cli.source import scan_source
    from plainrisk.cli.tables import WRITE, check_output, count_rows
    from plainrisk.model import load

    start = time.perf_counter()
    check_output(output, WRITE)
    loaded = load(model)
    rows = _columns(scan_source(data, missing, _ROW), loaded, keep or [], data)
    with show.progress("Scoring", count_rows(rows, data)) as advance:
        tally = _Tally(advance)
        _write(_scored(rows, loaded, keep or [], tally), output, tally)
    result = {
        "data": data,
        "model": str(model),
        "file": str(output),
        "rows": tally.rows,
        "mean_risk": tally.mean,
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        show.print_json(result)
    else:
        mean = "" if tally.mean is None else f", mean risk {tally.mean:.4f}"
        show.out().print(f"{tally.rows:,} rows{mean}, {result['seconds']:.1f} s: wrote {output}")


@dataclass
class _Tally:
    """Rows and risks so far; polars scores batches in several threads."""

    advance: Callable[[int], None]
    rows: int = 0
    sums: list[float] = field(default_factory=list)
    error: BaseException | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, n: int, total: float) -> None:
        with self.lock:
            self.rows += n
            self.sums.append(total)
        self.advance(n)

    @property
    def mean(self) -> float | None:
        # Which rows fall into which batch differs from run to run, and so do the last digits of a sum.
        return round(math.fsum(self.sums) / self.rows, 12) if self.rows else None


def _columns(rows: pl.LazyFrame, model: RiskModel, keep: Sequence[str], data: str) -> pl.LazyFrame:
    """Take the columns that are needed, or say which is missing."""
    from plainrisk.cli.tables import check_text

    names = rows.collect_schema().names()
    if "risk" in keep:
        raise DataError("--keep risk: the new column has this name. Rename the old one first.")
    features = model.form_.schema.features
    for name, who in [*((n, "feature") for n in features), *((n, "--keep") for n in keep)]:
        if name not in names:
            raise DataError(f"{data}: {who} {name!r} is not in the data.{did_you_mean(name, names)}")
    check_text(rows, data, [name for name, feature in features.items() if feature.kind == "continuous"])
    return rows.select(list(dict.fromkeys([_ROW, *keep, *features])))


def _scored(rows: pl.LazyFrame, model: RiskModel, keep: Sequence[str], tally: _Tally) -> pl.LazyFrame:
    import polars as pl

    types = rows.collect_schema()
    kept = list(dict.fromkeys(keep))

    def add_risk(batch: pl.DataFrame) -> pl.DataFrame:
        try:
            risk = model.predict_proba(batch)[:, 1]
        except BaseException as error:
            tally.error = _located(error, batch)
            raise
        tally.add(batch.height, float(risk.sum()))
        return pl.DataFrame([*(batch[name] for name in kept), pl.Series("risk", risk)])

    schema = {**{name: types[name] for name in kept}, "risk": pl.Float64()}
    return rows.map_batches(add_risk, schema=schema, streamable=True)


def _write(scored: pl.LazyFrame, output: Path, tally: _Tally) -> None:
    from plainrisk.cli.tables import write_lazy

    try:
        write_lazy(scored, output)
    except BaseException:
        # polars may have wrapped what a batch raised in an error of its own.
        if tally.error is not None:
            raise tally.error from None
        raise


def _located(error: BaseException, batch: pl.DataFrame) -> BaseException:
    """Say where a batch starts, since a message of the model counts rows from there."""
    if not isinstance(error, DataError):
        return error
    return DataError(f"{error} (Rows are counted from row {batch[_ROW][0]:,} of the data.)")
