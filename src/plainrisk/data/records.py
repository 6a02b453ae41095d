"""The records of a CSV file, counted and checked byte by byte before any value is read.

The libraries that parse CSV forgive: a line that is cut off becomes a row of missing values, a decimal comma moves all
fields to its right, a second column of one name is renamed. So the bytes are read once before: every record must have
the fields of the header. The pass holds one block at a time, and deletes all bytes but separators, quotes and line
ends, so that it costs little compared with the parsing.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, cast

import numpy as np

from plainrisk._types import Array, Bools
from plainrisk.errors import DataError
from plainrisk.text import counted

__all__ = ["Layout", "csv_layout", "csv_pieces", "is_gzip"]

# Large enough for numpy, small enough for the cache.
BLOCK = 1 << 22
LONGEST = 1 << 26  # bytes of a record: a file of a few kilobytes may unpack to one of gigabytes
SEPARATORS = ",;\t"
QUOTE, LINE_END = ord('"'), ord("\n")


@dataclass(frozen=True)
class Layout:
    """The facts about a CSV file that are needed to parse it.

    Attributes
    ----------
    separator : a comma, a semicolon or a tab
    names : the columns
    n_rows : how many records follow the header
    """

    separator: str
    names: tuple[str, ...]
    n_rows: int


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return path.name.lower().endswith(".gz")


def csv_layout(path: Path) -> Layout:
    """Check every record of a CSV file, and return its columns and how many rows there are; names file and line."""
    with _opened(path) as file:
        return _layout(path, file)


def csv_pieces(path: Path) -> Iterator[bytes]:
    """Yield a CSV file in pieces of a few megabytes, which are CSV themselves: the header and some records."""
    with _opened(path) as file:
        header, piece = b"", b""
        for block in _blocks(path, file):
            piece += block
            if piece.count(QUOTE) % 2 == 0:  # else it ends inside a field
                yield header + piece
                header, piece = header or piece[: int(_record_ends(piece, False)[0]) + 1], b""
            elif len(piece) > LONGEST:
                raise _too_long(path)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a CSV file, unpacked; whatever is wrong with it, also later, is an error that names it."""
    try:
        with gzip.open(path, "rb") if is_gzip(path) else path.open("rb") as file:
            yield cast("IO[bytes]", file)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(
            f"{path} cannot be read: it is damaged, cut off or no gzip file. Compress it or copy it again."
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _layout(path: Path, file: IO[bytes]) -> Layout:
    blocks = _blocks(path, file)
    first = next(blocks, b"").removeprefix(b"\xef\xbb\xbf")
    if not first.strip():
        raise DataError(f"{path} is empty. A line of column names and rows are needed.")
    checker = _Records(path)
    checker.refuse_bytes(first)
    header, example = _first_records(first)
    separator = _separator(path, header, example)
    try:
        names = tuple(next(csv.reader(io.StringIO(header.decode(), newline=""), delimiter=separator), ()))
    except csv.Error:  # a quote that is not closed makes one endless name
        raise DataError(f"{path}, line 1: the names of the columns cannot be read. Are their quotes closed?") from None
    if not names:
        raise DataError(f"{path}, line 1 is empty. It must hold the names of the columns.")
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path}: column {name!r} appears {names.count(name)} times. Rename one.")
    checker.expect(separator, len(names))
    checker.add(first)
    for block in blocks:
        checker.refuse_bytes(block)
        checker.add(block)
    return Layout(separator, names, checker.finish() - 1)


def _blocks(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Read a file in blocks that end with a line; the last line gets an end if it has none."""
    rest = b""
    while block := file.read(BLOCK):
        lines, end, tail = block.rpartition(b"\n")
        if end:
            yield rest + lines + end
            rest = tail
        else:
            rest += tail
        if len(rest) > LONGEST:
            raise _too_long(path)
    if rest:
        yield rest + b"\n"


def _too_long(path: Path) -> DataError:
    return DataError(f"{path} is no CSV file: a line or a quoted field has more than {LONGEST >> 20} megabytes.")


def _first_records(block: bytes) -> tuple[bytes, bytes | None]:
    """Return the header and the first record after it, or None if this block has none."""
    ends = _record_ends(block, False)
    header = block[: int(ends[0])] if len(ends) else block
    example = block[int(ends[0]) + 1 : int(ends[1])] if len(ends) > 1 else None
    return header.removesuffix(b"\r"), example


def _record_ends(block: bytes, quoted: bool) -> Array:
    """Return where records end: at line ends outside quotes. `quoted`: the block starts inside quotes."""
    values = np.frombuffer(block, np.uint8)
    return np.flatnonzero((values == LINE_END) & ~_inside_quotes(values, quoted))


def _inside_quotes(values: Array, quoted: bool) -> Bools:
    """Return which bytes are inside quotes, an opening quote included."""
    return np.asarray(np.logical_xor.accumulate(values == QUOTE) ^ quoted)


def _separator(path: Path, header: bytes, example: bytes | None) -> str:
    """Return the one separator of the header; if it holds several, the one that the next record has as often."""

    def count(record: bytes | None, mark: str) -> int:
        return re.sub(rb'"[^"]*"', b"", record or b"").count(mark.encode())

    marks = [mark for mark in SEPARATORS if count(header, mark)]
    if len(marks) > 1:
        marks = [mark for mark in marks if count(header, mark) == count(example, mark)]
        if len(marks) != 1:
            raise DataError(
                f"{path}, line 1: commas, semicolons or tabs stand side by side, and either could separate the "
                "columns. Quote the names that hold one."
            )
    return marks[0] if marks else ","


class _Records:
    """Counts records and lines block by block, and raises where a record differs from the header."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0  # before the present block
        self.records = 0  # the header is one
        self.quoted = False  # whether the block starts inside quotes
        self.opened = 0  # the line of the last quote that opened a field
        self.begun = b""  # separators of a record whose quoted field goes on in the next block

    def expect(self, separator: str, fields: int) -> None:
        """Set the shape of every record: its separator and its number of fields."""
        self.mark, self.fields = separator.encode(), fields
        self.pattern = self.mark * (fields - 1) + b"\n"
        self.deleted = bytes(set(range(256)) - set(self.mark + b'"\n'))
        self.beside_quote = np.zeros(256, np.bool_)
        self.beside_quote[list(self.mark + b'"\r\n')] = True

    def refuse_bytes(self, block: bytes) -> None:
        """Raise if bytes are not text."""
        zero = block.find(b"\0")
        if zero >= 0:
            self._refuse(
                self._line(block, zero), "a NUL byte, which no text holds. Save the table as CSV in UTF-8, not UTF-16"
            )
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError as error:
                self._refuse(self._line(block, error.start), "bytes that are not UTF-8. Save the file as UTF-8")

    def add(self, block: bytes) -> None:
        """Check the records of a block, which ends with a line."""
        quoted, marks = self.quoted, block.translate(None, self.deleted)
        if block.count(b"\r") != block.count(b"\r\n"):
            self._refuse_carriage_return(block)
        if quoted or b'"' in marks:
            self._refuse_stray_quote(block)
            marks = self._outside_quotes(self.begun + b'"' * quoted + marks)
        records, end, self.begun = marks.rpartition(b"\n")
        records += end
        n = records.count(b"\n")
        if records != self.pattern * n:
            self._refuse_record(block, quoted, records)
        self.records += n
        self.lines += block.count(b"\n")

    def finish(self) -> int:
        """Return the number of records, the header included."""
        if self.quoted:
            self._refuse(self.opened, "a quote opens a field and is never closed. Close it, or double it")
        return self.records

    def _outside_quotes(self, marks: bytes) -> bytes:
        """Delete quoted fields from the marks of a block."""
        # Most quoted fields hold no separator, and doubled quotes are pairs too.
        marks = marks.replace(b'""', b"")
        marks, quote, _ = re.sub(rb'"[^"]*"', b"", marks).partition(b'"')
        self.quoted = bool(quote)
        return marks

    def _refuse_stray_quote(self, block: bytes) -> None:
        """Raise if a quote opens or closes inside a field; keep the line of the last that opens."""
        values = np.frombuffer(block, np.uint8)
        at = np.flatnonzero(values == QUOTE)
        opens = np.arange(len(at)) % 2 == self.quoted
        beside = values[np.where(opens, np.maximum(at - 1, 0), at + 1)]  # a block ends with a line, not a quote
        stray = ~self.beside_quote[beside]
        last = at[: int(stray.argmax()) + 1] if stray.any() else at
        opening = last[opens[: len(last)]]
        if len(opening):
            self.opened = self._line(block, int(opening[-1]))
        if stray.any():
            self._refuse(
                self.opened,
                "a quote stands inside a field, or a field goes on after its quote. "
                "Put the whole field in quotes, and double each quote in it",
            )

    def _line(self, block: bytes, position: int) -> int:
        return self.lines + block.count(b"\n", 0, position) + 1

    def _refuse(self, line: int, what: str) -> NoReturn:
        raise DataError(f"{self.path}, line {line:,}: {what}.")

    def _refuse_carriage_return(self, block: bytes) -> None:
        values = np.frombuffer(block, np.uint8)
        alone = (values[:-1] == ord("\r")) & (values[1:] != LINE_END) & ~_inside_quotes(values, self.quoted)[:-1]
        if alone.any():
            line = self._line(block, int(alone.argmax()))
            self._refuse(line, "a carriage return without a line feed. Save the file with the usual line ends")

    def _refuse_record(self, block: bytes, quoted: bool, records: bytes) -> NoReturn:
        """Name the first record whose fields differ in number from the header's."""
        n_fields = [record.count(self.mark) + 1 for record in records.split(b"\n")[:-1]]
        wrong = [i for i, n in enumerate(n_fields) if n != self.fields]
        start = int(_record_ends(block, quoted)[wrong[0] - 1]) + 1 if wrong[0] else 0
        line = self.opened if quoted and not start else self._line(block, start)
        if block.startswith((b"\n", b"\r\n"), start):
            self._refuse(line, "the line is empty. Delete it")
        remedy = (
            f"Put a field that holds the separator {self.mark.decode()!r} in quotes; write decimal points, not commas"
            if n_fields[wrong[0]] > self.fields
            else "Is the line cut off? An empty field needs its separator too"
        )
        more = f" ({len(wrong) - 1:,} more such records follow soon)" if len(wrong) > 1 else ""
        has = counted(n_fields[wrong[0]], "field")
        self._refuse(line, f"the record has {has}, the header {self.fields}{more}. {remedy}")
