"""Results in files: CSV, CSV.gz, Parquet and JSON lines, written by polars (`plainrisk.data.reader` reads)."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from plainrisk.data.reader import READ, explained, once, suffix_of
from plainrisk.errors import quoted, warn
from plainrisk.files import output_target, replacing

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "WRITE",
    "check_output",
    "standard_output",
    "write_lazy",
]

WRITE = (*READ, ".jsonl")


def write_lazy(lazy: pl.LazyFrame, path: str | Path, source: str = "") -> None:
    """Compute rows in batches and write them; the file is there in full or not at all."""
    import polars as pl

    path = Path(path)
    suffix = suffix_of(path, WRITE, "write")
    formulas: set[str] = set()
    if suffix.startswith(".csv"):
        lazy = lazy.map_batches(lambda batch: _noted_formulas(batch, formulas), streamable=True)
    # The rows are read while they are written, so an error may be either's.
    what = f"{path} was not written from {source}" if source else f"{path} was not written"
    with explained(what, pl.exceptions.PolarsError), replacing(path) as temporary:
        if suffix == ".parquet":
            once(lambda: lazy.sink_parquet(temporary))
        elif suffix == ".jsonl":
            once(lambda: lazy.sink_ndjson(temporary))
        elif suffix == ".csv":
            once(lambda: lazy.sink_csv(temporary))
        else:
            # polars calls its own compression unstable. Without a name and a time the same rows give the same file.
            with temporary.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0, compresslevel=6) as gz:
                once(lambda: lazy.sink_csv(cast("IO[bytes]", gz)))
    if formulas:
        warn(
            f"{path}: texts in {quoted(sorted(formulas))} begin with =, +, -, @ or a control character, and a "
            "spreadsheet would run them as formulas. They are written as they are; import them as text, or write "
            ".parquet or .jsonl.",
        )


@contextlib.contextmanager
def standard_output() -> Iterator[Path]:
    """Give a temporary CSV file, and copy it to standard output when it is complete."""
    with tempfile.TemporaryDirectory(prefix="plainrisk-") as folder:
        path = Path(folder) / "stdout.csv"
        yield path
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _noted_formulas(batch: pl.DataFrame, found: set[str]) -> pl.DataFrame:
    """Add to `found` the columns whose name or texts a spreadsheet would run; a number is none, even if it is text."""
    import polars as pl

    text = pl.col(pl.String)
    formula = text.str.contains(r"^[=+\-@\t\r]") & text.cast(pl.Float64, strict=False).is_null()
    held = batch.select(formula.any())
    found.update(name for name in held.columns if held[name].sum())
    found.update(name for name in batch.columns if name.startswith(("=", "+", "-", "@", "\t", "\r")))
    return batch


def check_output(path: Path | None, allowed: Sequence[str]) -> None:
    """Say before any work if a file that is wanted could not be written, or its name does not say how."""
    if path is None:
        return
    suffix_of(path, allowed, "write")
    output_target(path)
