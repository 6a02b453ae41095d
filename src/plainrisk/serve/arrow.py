"""Streams of Arrow batches; their size is read from the message headers before anything is decompressed."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from plainrisk.errors import DataError, missing_extra
from plainrisk.serve.requests import TooLargeError

__all__ = ["arrow_of", "rows_of_arrow"]

DICTIONARY, BATCH = 2, 3  # kinds of a message's head, in Arrow's Message.fbs


def rows_of_arrow(body: bytes, max_rows: int, max_bytes: int) -> Any:
    """Read a stream of Arrow batches; one of too many rows or bytes is refused before it is decompressed."""
    try:
        import polars as pl
    except ImportError:
        raise missing_extra("polars", "serve") from None
    try:
        rows, size = _announced(body, max_bytes)
    except (struct.error, IndexError, ValueError):
        raise DataError("The body is not a stream of Arrow batches.") from None
    if rows > max_rows:
        raise TooLargeError(f"{rows:,} rows are more than the {max_rows:,} this service takes at once.")
    if size > max_bytes:
        raise TooLargeError(f"The body unpacks to more than {max_bytes:,} bytes. Send fewer rows at once.")
    try:
        frame = pl.read_ipc_stream(io.BytesIO(body))
        text = sum(frame[name].str.len_bytes().sum() or 0 for name, kind in frame.schema.items() if kind == pl.String)
    except (Exception, pl.exceptions.PanicException):  # polars raises errors of many kinds, which clients need not see
        raise DataError("The body is not a stream of Arrow batches.") from None
    if frame.height == 0:
        raise DataError("The batch has no rows.")
    # Many rows may show the same long text.
    if frame.height > max_rows or text > max_bytes:
        raise TooLargeError(f"The body unpacks to more than {max_bytes:,} bytes. Send fewer rows at once.")
    return frame


def arrow_of(columns: Mapping[str, Any]) -> bytes:
    """Write columns as a stream of Arrow batches."""
    import polars as pl

    out = io.BytesIO()
    pl.DataFrame(dict(columns)).write_ipc_stream(out)
    return out.getvalue()


def _announced(body: bytes, most: int) -> tuple[int, int]:
    """Return how many rows and decompressed bytes the messages of a stream announce.

    No column, and no list of values within one, may have more than `most` entries.
    """
    rows = size = 0
    for kind, batch, data in _messages(body):
        if kind == DICTIONARY:
            batch = batch.table(1) or batch
        n = batch.number(0, "<q")
        rows += n if kind == BATCH else 0
        size += _decompressed_size(batch, data)
        if any(not 0 <= length <= most for length in (n, *(length for length, _ in batch.pairs(1)))):
            raise ValueError("a column of an impossible length")
    return rows, size


def _decompressed_size(batch: _Table, data: memoryview) -> int:
    """Return the size of a batch's buffers; a compressed one begins with its size, or -1 if it is not compressed."""
    compressed, size = batch.table(3) is not None, 0
    for offset, length in batch.pairs(2):
        if not 0 <= offset <= offset + length <= len(data):
            raise ValueError("a buffer outside of its message")
        if length and not compressed:
            size += length
        elif length:
            (announced,) = struct.unpack_from("<q", data, offset)
            size += length if announced == -1 else announced
            if announced < -1:
                raise ValueError("a negative length")
    return size


def _messages(body: bytes) -> Iterator[tuple[int, _Table, memoryview]]:
    """Yield the kind, the header and the data of every batch and dictionary."""
    view, at = memoryview(body), 0
    while at + 4 <= len(view):
        (length,) = struct.unpack_from("<I", view, at)
        at += 4
        if length == 0xFFFFFFFF:  # a continuation marker, which streams before Arrow 0.15 lack
            (length,) = struct.unpack_from("<I", view, at)
            at += 4
        if length == 0:
            return
        head = view[at : at + length]
        message = _Table(head, struct.unpack_from("<I", head, 0)[0])
        at += length
        body_length = message.number(3, "<q")
        if not at <= at + body_length <= len(view):
            raise ValueError("a message that ends elsewhere")
        kind, inner = message.number(1, "<B"), message.table(2)
        if kind in (DICTIONARY, BATCH) and inner is not None:
            yield kind, inner, view[at : at + body_length]
        at += body_length


class _Table:
    """A table of FlatBuffers: numbered fields, whose offsets stand in an index."""

    def __init__(self, buffer: memoryview, at: int) -> None:
        self.buffer, self.at = buffer, at
        self.index = at - struct.unpack_from("<i", buffer, at)[0]
        if self.index < 0:
            raise ValueError("an index before the start")

    def _place(self, field: int) -> int | None:
        (size,) = struct.unpack_from("<H", self.buffer, self.index)
        if 4 + 2 * field >= size:
            return None
        (offset,) = struct.unpack_from("<H", self.buffer, self.index + 4 + 2 * field)
        return self.at + offset if offset else None

    def number(self, field: int, form: str) -> int:
        """Return a number, or 0 if it is absent."""
        place = self._place(field)
        return 0 if place is None else int(struct.unpack_from(form, self.buffer, place)[0])

    def _follow(self, field: int) -> int | None:
        place = self._place(field)
        return None if place is None else place + struct.unpack_from("<I", self.buffer, place)[0]

    def table(self, field: int) -> _Table | None:
        """Return a table within this one."""
        place = self._follow(field)
        return None if place is None else _Table(self.buffer, place)

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yield the entries of a list of pairs of whole numbers."""
        place = self._follow(field)
        if place is not None:
            (count,) = struct.unpack_from("<I", self.buffer, place)
            for i in range(count):
                yield struct.unpack_from("<qq", self.buffer, place + 4 + 16 * i)
