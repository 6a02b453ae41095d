"""Results in files: rows as CSV, CSV.gz, Parquet and JSON lines, tables also as Excel, Markdown, HTML and JSON."""

from __future__ import annotations

import contextlib
import gzip
import html
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from plainrisk.data.reader import READ, explained, once, suffix_of
from plainrisk.errors import missing_extra, quoted, warn
from plainrisk.files import output_target, replacing, write_text
from plainrisk.text import one_line, plain_number

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "TABLE",
    "WRITE",
    "check_output",
    "check_table",
    "standard_output",
    "write_lazy",
    "write_table",
]

WRITE = (*READ, ".jsonl")
TABLE = (".csv", ".xlsx", ".md", ".html", ".json", ".parquet")  # of a result that is a table, not one line per row


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
    with explained(what, pl.exceptions.PolarsError), replacing(path) as temporary, _opened(temporary, suffix) as file:
        # polars opens a path in a thread of its own, perhaps only after the error for which the file was removed.
        sinks: dict[str, Any] = {".parquet": lazy.sink_parquet, ".jsonl": lazy.sink_ndjson}
        sink = sinks.get(suffix, lazy.sink_csv)
        once(lambda: sink(file))
    if formulas:
        warn(
            f"{path}: texts in {quoted(sorted(formulas))} begin with =, +, -, @ or a control character, and a "
            "spreadsheet would run them as formulas. They are written as they are; import them as text, or write "
            ".parquet or .jsonl.",
        )


@contextlib.contextmanager
def _opened(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """Open a file to write to, compressed if the suffix says so."""
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


# ---- small tables


def check_table(path: Path | None, also: Sequence[str] = ()) -> None:
    """Say before any work if a table could not be written, or its name does not say how."""
    check_output(path, (*TABLE, *also))
    if path is not None and path.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise missing_extra("xlsxwriter", "export")


def write_table(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write a table, given by its columns, in the format that the ending of the file's name says."""
    import polars as pl

    plain = {name: [_plain(value) for value in values] for name, values in columns.items()}
    lines = [list(line) for line in zip(*plain.values(), strict=True)]
    suffix = suffix_of(path, TABLE, "write")
    if suffix in (".csv", ".parquet"):
        write_lazy(pl.DataFrame(plain, strict=False).lazy(), path)
    elif suffix == ".xlsx":
        with replacing(path) as temporary:
            _write_xlsx(list(plain), lines, temporary)
    elif suffix == ".json":
        records = [dict(zip(plain, line, strict=True)) for line in lines]
        write_text(path, json.dumps(records, ensure_ascii=False, indent=2) + "\n")
    else:
        write_text(path, (_markdown if suffix == ".md" else _html)(list(plain), lines))


def _plain(value: Any) -> Any:
    """Return a cell as plain data; what is not a finite number is empty."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return plain_number(cell)
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else one_line(cell)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _markdown(names: list[str], lines: list[list[Any]]) -> str:
    rule = ["---:" if _is_number(cell) else "---" for cell in (lines or [names])[0]]
    texts = [[_text(cell).replace("|", "\\|") for cell in line] for line in (names, *lines)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (texts[0], rule, *texts[1:]))


def _html(names: list[str], lines: list[list[Any]]) -> str:
    def cell(value: Any) -> str:
        right = ' style="text-align: right"' if _is_number(value) else ""
        return f"<td{right}>{html.escape(_text(value))}</td>"

    head = "".join(f"<th>{html.escape(one_line(name))}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(cell, line))}</tr>\n" for line in lines)
    start = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>plainrisk</title>\n'
    return f"{start}<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</html>\n"


def _write_xlsx(names: list[str], lines: list[list[Any]], path: Path) -> None:
    import xlsxwriter

    book = xlsxwriter.Workbook(str(path), {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True})
    book.set_properties({"created": datetime(2000, 1, 1)})  # the same table gives the same bytes
    sheet, bold = book.add_worksheet(), book.add_format({"bold": True})
    whole, decimals = book.add_format({"num_format": "#,##0"}), book.add_format({"num_format": "#,##0.0000"})
    sheet.write_row(0, 0, names, bold)
    for i, line in enumerate(lines, 1):
        for j, cell in enumerate(line):
            shown = decimals if isinstance(cell, float) else whole if _is_number(cell) else None
            sheet.write(i, j, cell, shown)
    sheet.freeze_panes(1, 0)
    sheet.autofit()
    book.close()


# ---- before any work


def check_output(path: Path | None, allowed: Sequence[str]) -> None:
    """Say before any work if a file that is wanted could not be written, or its name does not say how."""
    if path is None:
        return
    suffix_of(path, allowed, "write")
    output_target(path)
