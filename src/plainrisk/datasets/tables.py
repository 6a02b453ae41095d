"""Files of text as columns of numbers and words: CSV, blank-separated, ARFF.

Written on the standard library, so that a file means the same whichever data frame library is installed.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from plainrisk._types import Array, Outcome
from plainrisk.datasets.registry import Info
from plainrisk.errors import DataError
from plainrisk.schema import Schema, label_of
from plainrisk.text import as_number

__all__ = ["RawTable", "Table", "content_sha256", "numbers", "open_text", "read_raw", "read_table", "tidy", "words"]

_MISSING = frozenset({"", "?", "NA", "NaN", "nan"})
_LEADING_ZERO = re.compile(r"[+-]?0\d")


@dataclass(frozen=True)
class RawTable:
    """A file's cells as text, by column; `names` is None where the file has no header."""

    names: tuple[str, ...] | None
    columns: list[tuple[str, ...]]


@dataclass(frozen=True)
class Table:
    """Features (int64, float64 with NaN, or words with None) and the target (0 or 1)."""

    columns: dict[str, Array]
    target: Outcome


def read_table(path: Path, entry: Info, schema: Schema) -> Table:
    """Read a file whose columns are the features, under their own, other or no names."""
    raw = read_raw(path)
    *cells, outcomes = _select(path, raw, entry, schema)
    columns = {}
    for (name, feature), texts in zip(schema.features.items(), cells, strict=True):
        if feature.kind == "continuous":
            columns[name] = numbers(texts, f"{path}: column {name!r}", entry.code_prefix)
        else:
            columns[name] = words(texts)
    return Table(columns, _target(path, outcomes, label_of(schema.positive), entry.negative))


# ---- files to text


def read_raw(path: Path) -> RawTable:
    """Read a .csv, .data, .dat or .arff file, compressed or not."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    with open_text(path) as stream:
        if kind == "arff":
            header, rows = _arff(stream)
        elif kind in ("data", "dat"):
            header, rows = None, _split(stream)
        else:
            rows = csv.reader(stream)
            header = next(rows, None)
        return _by_column(path, header, rows)


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a text file, compressed or not; anything wrong while reading becomes one DataError."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            yield stream
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as problem:
        raise DataError(f"Datasets: {path} is damaged or cannot be read: {problem}.") from None


def _arff(stream: TextIO) -> tuple[list[str], Iterator[list[str]]]:
    header = []
    for line in stream:
        first, _, rest = line.strip().partition(" ")
        if first.lower() == "@attribute":
            header.append(re.split(r"\s", rest.strip(), maxsplit=1)[0].strip("'\""))
        elif first.lower() == "@data":
            break
    return header, csv.reader(line for line in stream if not line.startswith("%"))


def _split(stream: TextIO) -> Iterator[list[str]]:
    for line in stream:
        yield line.strip().split(",") if "," in line else line.split()


def _by_column(path: Path, header: Sequence[str] | None, rows: Iterable[list[str]]) -> RawTable:
    kept = [row for row in rows if row and row != [""]]
    width = len(header) if header is not None else len(kept[0]) if kept else 0
    for i, row in enumerate(kept):
        if len(row) != width:
            raise DataError(f"Datasets: {path} is damaged: row {i} has {len(row)} cells, not {width}.")
    if not kept:
        raise DataError(f"Datasets: {path} is damaged: it holds no rows.")
    return RawTable(None if header is None else tuple(header), list(zip(*kept, strict=True)))


# ---- which columns


def _select(path: Path, raw: RawTable, entry: Info, schema: Schema) -> list[tuple[str, ...]]:
    """Return the features' cells in schema order, then the target's."""
    wanted = (*schema.features, str(schema.target))
    if entry.by_position:
        if len(raw.columns) != len(wanted):
            raise DataError(f"Datasets: {path} has {len(raw.columns)} columns; {entry.name} has {len(wanted)}.")
        return raw.columns
    names = raw.names or ()
    # A sheet saved as CSV may carry its real header in the second line.
    for skip, header in ((1, tuple(column[0] for column in raw.columns)), (0, names)):
        for candidate in (wanted, *entry.aliases):
            if set(candidate) <= set(header):
                return [raw.columns[header.index(name)][skip:] for name in candidate]
    absent = [name for name in wanted if name not in names]
    raise DataError(f"Datasets: {path} is not {entry.name}: it has no column {absent[0]!r}.")


# ---- text to values


def numbers(texts: Sequence[str], where: str, prefix: str = "") -> Array:
    """Return numbers, NaN for missing; int64 where all are whole and none is missing."""
    number_of = {text: _number(text.strip().removeprefix(prefix)) for text in set(texts)}
    if None in number_of.values():
        row = next(i for i, text in enumerate(texts) if number_of[text] is None)
        raise DataError(f"Datasets: {where}, row {row}: {texts[row]!r} is not a number.")
    return tidy(np.array([number_of[text] for text in texts], dtype=np.float64))


def words(texts: Sequence[str]) -> Array:
    """Return categories: numbers if all are and none has leading zeros (00202 is a word), else text."""
    word_of = {text: None if (bare := text.strip()) in _MISSING else bare for text in set(texts)}
    present = {word for word in word_of.values() if word is not None}
    if present and not any(_LEADING_ZERO.match(word) or _number(word) is None for word in present):
        return numbers(texts, "")
    return np.array([word_of[text] for text in texts], dtype=object)


def _number(text: str) -> float | None:
    """Return a number, NaN if the text means missing, None if it is neither."""
    return np.nan if text in _MISSING else as_number(text)


def tidy(values: Array) -> Array:
    """Return integers as int64; fractions, missing values and words do not change."""
    if values.dtype != np.float64:
        return values
    # NaN is not equal to itself, so a missing value keeps the column float.
    whole = np.array_equal(values, np.rint(values)) and np.abs(values).max(initial=0) < 2**53
    return values.astype(np.int64) if whole else values


def _target(path: Path, texts: Sequence[str], positive: str, negative: str) -> Outcome:
    outcome_of = {positive: 1, negative: 0}
    labels = {text: _plain_label(text) for text in set(texts)}
    strange = sorted(label for label in labels.values() if label not in outcome_of)
    if strange:
        raise DataError(
            f"Datasets: {path} is damaged or another file: the outcome must be {positive!r} or {negative!r}, "
            f"not {strange[0]!r}."
        )
    return np.fromiter((outcome_of[labels[t]] for t in texts), np.uint8, len(texts))


def _plain_label(text: str) -> str:
    text = text.strip()
    return text if (number := as_number(text)) is None else label_of(number)


# ---- a fingerprint of the parsed columns


def content_sha256(columns: Mapping[str, Array], target: Outcome) -> str:
    """Return the SHA-256 of columns and target, the same for every file format they may come in.

    Numbers are hashed as little-endian float64 with one NaN and one zero, words as UTF-8. Names, and the order of
    columns and rows, also count.
    """
    digest = hashlib.sha256()
    for name, column in columns.items():
        digest.update(f"{name}\0".encode())
        digest.update(_word_bytes(column) if column.dtype == object else _number_bytes(column))
    digest.update(np.ascontiguousarray(target, dtype=np.uint8).tobytes())
    return digest.hexdigest()


def _number_bytes(column: Array) -> bytes:
    values = column.astype("<f8")
    values[np.isnan(values)] = np.nan
    values += 0.0  # -0.0 becomes 0.0
    return b"n" + values.tobytes()


def _word_bytes(column: Array) -> bytes:
    return b"w" + "".join("\x1e" if text is None else f"\x1f{text}" for text in column).encode()
