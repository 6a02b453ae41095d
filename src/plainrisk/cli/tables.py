"""Results in files: CSV, CSV.gz, Parquet and JSON lines, written by polars (`plainrisk.data.reader` reads)."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from plainrisk.data.reader import READ, explained, once, suffix_of
from plainrisk.errors import DataError
from plainrisk.files import replacing

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "WRITE",
    "check_output",
    "write_lazy",
]

WRITE = (*READ, ".jsonl")


def write_lazy(lazy: pl.LazyFrame, path: str | Path) -> None:
    """Compute rows in batches and write them; the file is there in full or not at all."""
    import polars as pl

    path = Path(path)
    suffix = suffix_of(path, WRITE, "write")
    with explained(f"{path} was not written", pl.exceptions.PolarsError), replacing(path) as temporary:
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


def check_output(path: Path | None, allowed: Sequence[str]) -> None:
    """Say before any work if a file that is wanted could not be written, or its name does not say how."""
    if path is None:
        return
    suffix_of(path, allowed, "write")
    folder = path.parent
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        raise DataError(f"{path} cannot be written: the folder {folder} {state}. Make it first.")
    if path.is_dir():
        raise DataError(f"{path} cannot be written: it is a folder. Give the name of a file.")
    if not os.access(folder, os.W_OK):
        raise DataError(f"{path} cannot be written: the folder {folder} may not be written to.")
