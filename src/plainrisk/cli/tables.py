"""Results in files, one writer for all: CSV, Excel, Markdown, HTML, JSON, Parquet, JSON lines and CSV.gz.

Results computed row by row are written to CSV, Parquet and JSON lines in batches; the other formats keep all rows in
memory.
"""

from __future__ import annotations

import contextlib
import gzip
import html
import json
import math
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from plainrisk.data.reader import as_data_error, interrupted_once, polars_errors, suffix_of
from plainrisk.errors import DataError, missing_extra, quoted, warn
from plainrisk.files import output_target, replacing
from plainrisk.leftovers import temporary_folder
from plainrisk.tables import cell_text, is_figure, markdown_table
from plainrisk.text import one_line

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "WRITE",
    "check_output",
    "check_table",
    "standard_output",
    "write_lazy",
    "write_table",
]

WRITE = (".csv", ".xlsx", ".md", ".html", ".json", ".parquet", ".jsonl", ".csv.gz")
SHEET_ROWS, SHEET_COLUMNS = 2**20 - 1, 2**14  # of an Excel sheet, below the header
EXACT = 10**15  # from here on a spreadsheet does not keep every digit of a whole number


def write_lazy(lazy: pl.LazyFrame, path: str | Path, source: str = "") -> None:
    """Compute rows in batches and write them; the file is there in full or not at all."""
    path = Path(path)
    suffix = suffix_of(path, WRITE, "write")
    formulas: set[str] = set()
    if suffix.startswith(".csv"):
        lazy = lazy.map_batches(lambda batch: _noted_formulas(batch, formulas), streamable=True)
    # The rows are read while they are written, so an error may be either's.
    what = f"{path} was not written from {source}" if source else f"{path} was not written"
    with as_data_error(what, *polars_errors()), replacing(path) as temporary:
        sinks: dict[str, Any] = {".parquet": lazy.sink_parquet, ".jsonl": lazy.sink_ndjson}
        if suffix in (*sinks, ".csv", ".csv.gz"):
            # polars opens a path in a separate thread, perhaps only after the error for which the file was removed.
            with _opened(temporary, suffix) as file:
                interrupted_once(lambda: sinks.get(suffix, lazy.sink_csv)(file))
        else:
            _write_held(lazy, suffix, temporary, path)
    if formulas:
        warn(
            f"{path}: texts in {quoted(sorted(formulas))} begin with =, +, -, @ or a control character, and a "
            "spreadsheet would run them as formulas. They are written as they are; import them as text, or write "
            ".parquet or .jsonl.",
        )


@contextlib.contextmanager
def _opened(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """Open a file for writing, compressed if the suffix asks for it."""
    with path.open("wb") as file:
        if not suffix.endswith(".gz"):
            yield file
            return
        # polars calls its own compression unstable. Without a name and a time the same rows give the same file.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0, compresslevel=6) as packed:
            yield cast("IO[bytes]", packed)


@contextlib.contextmanager
def standard_output() -> Iterator[Path]:
    """Give a temporary CSV file, and copy it to standard output when it is complete."""
    with temporary_folder() as folder:
        path = folder / "stdout.csv"
        yield path
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _noted_formulas(batch: pl.DataFrame, columns: set[str]) -> pl.DataFrame:
    """Add to `found` the columns whose name or texts a spreadsheet would run; a number is none, even if it is text."""
    import polars as pl

    text = pl.col(pl.String)
    formula = text.str.contains(r"^[=+\-@\t\r]") & text.cast(pl.Float64, strict=False).is_null()
    held = batch.select(formula.any())
    columns.update(name for name in held.columns if held[name].sum())
    columns.update(name for name in batch.columns if name.startswith(("=", "+", "-", "@", "\t", "\r")))
    return batch


def write_table(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write a table that is given by its columns."""
    import polars as pl

    plain = {name: [_plain(value) for value in values] for name, values in columns.items()}
    write_lazy(pl.DataFrame(plain, strict=False).lazy(), path)


# ---- formats that keep all rows in memory


def _write_held(lazy: pl.LazyFrame, suffix: str, temporary: Path, path: Path) -> None:
    names = lazy.collect_schema().names()
    most = SHEET_ROWS if suffix == ".xlsx" else None
    if most is not None and len(names) > SHEET_COLUMNS:
        raise _too_large(path, f"{SHEET_COLUMNS:,} columns, and there are {len(names):,}")
    lines: list[list[Any]] = []
    for batch in lazy.collect_batches(maintain_order=True):
        lines += ([_plain(cell) for cell in line] for line in batch.iter_rows())
        if most is not None and len(lines) > most:
            raise _too_large(path, f"{most:,} rows below its header, and there are more")
    if suffix == ".xlsx":
        _write_xlsx(names, lines, temporary, path)
        return
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines({".json": _json, ".md": _markdown, ".html": _html}[suffix](names, lines))


def _too_large(path: Path, why: str) -> DataError:
    return DataError(f"{path} was not written: an Excel sheet holds at most {why}. Write .csv or .parquet.")


def _plain(value: Any) -> Any:
    """Return a cell as a number, a truth value or a text; numbers that are not finite are empty."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int | str) else str(value)


def _json(names: list[str], lines: list[list[Any]]) -> Iterable[str]:
    records = [dict(zip(names, line, strict=True)) for line in lines]
    yield json.dumps(records, ensure_ascii=False, indent=2) + "\n"


def _markdown(names: list[str], lines: list[list[Any]]) -> Iterable[str]:
    yield markdown_table([names, *lines])


def _html(names: list[str], lines: list[list[Any]]) -> Iterable[str]:
    def cell(value: Any) -> str:
        right = ' style="text-align: right"' if is_figure(value) else ""
        return f"<td{right}>{html.escape(cell_text(value))}</td>"

    head = "".join(f"<th>{html.escape(one_line(name))}</th>" for name in names)
    yield '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>plainrisk</title>\n'
    yield f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n"
    yield from (f"<tr>{''.join(map(cell, line))}</tr>\n" for line in lines)
    yield "</tbody>\n</table>\n</html>\n"


def _write_xlsx(names: list[str], lines: list[list[Any]], temporary: Path, path: Path) -> None:
    import xlsxwriter

    options = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
    book = xlsxwriter.Workbook(str(temporary), options)
    book.set_properties({"created": datetime(2000, 1, 1)})  # the same table gives the same bytes
    sheet, bold = book.add_worksheet(), book.add_format({"bold": True})
    whole, decimals = book.add_format({"num_format": "#,##0"}), book.add_format({"num_format": "#,##0.0000"})
    sheet.write_row(0, 0, names, bold)
    for i, line in enumerate(lines, 1):
        for j, cell in enumerate(line):
            shown = decimals if isinstance(cell, float) else whole if is_figure(cell) else None
            if sheet.write(i, j, str(cell) if shown is whole and abs(cell) >= EXACT else cell, shown):
                raise _too_large(path, f"32,767 characters in a cell, and a text in {names[j]!r} is longer")
    sheet.freeze_panes(1, 0)
    sheet.autofit()
    book.close()


# ---- before any work


def check_output(path: Path | None, allowed: Sequence[str]) -> None:
    """Raise before any work starts if an output file could not be written, or its ending is unknown."""
    if path is None:
        return
    suffix_of(path, allowed, "write")
    output_target(path)


def check_table(path: Path | None, also: Sequence[str] = ()) -> None:
    """Raise before any work starts if a table could not be written, or its ending is unknown."""
    check_output(path, (*WRITE, *also))
    if path is not None and path.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise missing_extra("xlsxwriter", "export")
