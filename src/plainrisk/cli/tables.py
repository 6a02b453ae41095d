"""Tables in files: CSV, CSV.gz, Parquet and JSON lines, read and written by polars."""

from __future__ import annotations

import contextlib
import gzip
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar, cast

from plainrisk.errors import DataError, PlainriskWarning, quoted
from plainrisk.files import output_target, replacing

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "READ",
    "WRITE",
    "check_output",
    "check_text",
    "count_rows",
    "read_table",
    "scan_table",
    "write_lazy",
]

T = TypeVar("T")

READ = (".csv", ".csv.gz", ".parquet")
WRITE = (*READ, ".jsonl")


def read_table(path: str | Path, missing: Sequence[str] = ()) -> pl.DataFrame:
    """Read a whole file."""
    lazy = scan_table(path, missing)
    with _reading(path):
        return _once(lazy.collect)


def scan_table(path: str | Path, missing: Sequence[str] = (), index: str | None = None) -> pl.LazyFrame:
    """Open a file to be read in batches, with the number of each row in a column `index` if it is named.

    The types of a CSV's columns come from all of its rows, so that a batch is read as the whole would be.
    """
    import polars as pl

    path = Path(path)
    suffix = _suffix(path, READ, "read")
    if not path.is_file():
        raise DataError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}.")
    with _reading(path):
        if suffix == ".parquet":
            lazy = pl.scan_parquet(path, row_index_name=index, glob=False)
        else:
            lazy = pl.scan_csv(
                path,
                separator=_separator(path),
                infer_schema_length=None,
                null_values=list(missing) or None,
                row_index_name=index,
                glob=False,
            )
        _refuse_repeated(path, lazy.collect_schema().names())
    return lazy


def count_rows(lazy: pl.LazyFrame, path: str) -> int:
    """Return how many rows there are."""
    import polars as pl

    with _reading(path):
        return int(_once(lazy.select(pl.len()).collect).item())


def write_lazy(lazy: pl.LazyFrame, path: str | Path) -> None:
    """Compute rows in batches and write them; the file is there in full or not at all."""
    import polars as pl

    path = Path(path)
    suffix = _suffix(path, WRITE, "write")
    formulas: set[str] = set()
    if suffix.startswith(".csv"):
        lazy = lazy.map_batches(lambda batch: _noted_formulas(batch, formulas), streamable=True)
    with _explained(f"{path} was not written", pl.exceptions.PolarsError), replacing(path) as temporary:
        if suffix == ".parquet":
            _once(lambda: lazy.sink_parquet(temporary))
        elif suffix == ".jsonl":
            _once(lambda: lazy.sink_ndjson(temporary))
        elif suffix == ".csv":
            _once(lambda: lazy.sink_csv(temporary))
        else:
            # polars calls its own compression unstable. Without a name and a time the same rows give the same file.
            with temporary.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0, compresslevel=6) as gz:
                _once(lambda: lazy.sink_csv(cast("IO[bytes]", gz)))
    if formulas:
        warnings.warn(
            f"{path}: texts in {quoted(sorted(formulas))} begin with =, +, -, @ or a control character, and a "
            "spreadsheet would run them as formulas. They are written as they are; import them as text, or write "
            ".parquet or .jsonl.",
            PlainriskWarning,
            stacklevel=2,
        )


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
    _suffix(path, allowed, "write")
    output_target(path)


def check_text(lazy: pl.LazyFrame, path: str, continuous: Sequence[str]) -> None:
    """Say which row of a file holds text where a model needs a number.

    The library's own message counts rows inside a batch.
    """
    import polars as pl

    schema = lazy.collect_schema()
    for name in continuous:
        if schema[name] != pl.String:
            continue
        value = pl.col(name)
        wrong = value.is_not_null() & value.cast(pl.Float64, strict=False).is_null()
        with _reading(path):
            found = _once(lazy.select(value).with_row_index("_row").filter(wrong).head(1).collect)
        if len(found):
            row, text = found.row(0)
            raise DataError(
                f"{path}: feature {name!r} is a number in this model but holds text: {text!r} in row {row} "
                f"(the first is 0). Correct it, or read it as missing with --missing {text!r}."
            )


def _reading(path: str | Path) -> contextlib.AbstractContextManager[None]:
    import polars as pl

    return _explained(f"{path} cannot be read", pl.exceptions.PolarsError, OSError)


@contextlib.contextmanager
def _explained(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn the errors of polars and the system into one of ours, with a remedy where one is known."""
    try:
        yield
    except kinds as error:
        message = str(error).partition("\n")[0].strip().rstrip(".")
        raise DataError(f"{what}: {message}.{_remedy(message)}") from None


def _remedy(message: str) -> str:
    for sign, remedy in (
        ("utf-8", " Save it as UTF-8."),
        ("more fields", " A row has more fields than the header: quote texts that hold the separator."),
        ("empty", " A header line and rows are needed."),
        ("parquet", " Is it a Parquet file, and complete?"),
        ("end of file", " Is the file complete?"),
    ):
        if sign in message.lower():
            return remedy
    return ""


def _suffix(path: Path, allowed: Sequence[str], verb: str) -> str:
    name = path.name.lower()
    for suffix in sorted(allowed, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    endings = f"{', '.join(allowed[:-1])} or {allowed[-1]}" if len(allowed) > 1 else allowed[0]
    raise DataError(f"{path}: cannot {verb} this kind of file. The name must end in {endings}.")


def _separator(path: Path) -> str:
    """Return the separator of a CSV: a comma, unless the header has none but semicolons or tabs."""
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        header = file.readline(2**20)
    if b"," in header:
        return ","
    return max(";", "\t", key=lambda mark: header.count(mark.encode())) if re.search(b"[;\t]", header) else ","


def _refuse_repeated(path: Path, names: Sequence[str]) -> None:
    """Polars renames the second of two equal columns; a model would read the first unawares."""
    for name in names:
        first = re.sub(r"_duplicated_\d+$", "", name)
        if first != name and first in names:
            raise DataError(f"{path}: column {first!r} appears more than once. Rename one.")


def _once(query: Callable[[], T]) -> T:
    """Run a query so that one interrupt is raised once.

    polars raises it, and Python raises the same signal again at the next chance, which would be the clean-up.
    """
    try:
        return query()
    except KeyboardInterrupt:
        try:  # noqa: SIM105  entering contextlib.suppress would be the next chance
            time.sleep(0.01)
        except KeyboardInterrupt:
            pass
        raise
