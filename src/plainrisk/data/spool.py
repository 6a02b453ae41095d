"""A list of groups of arrays that moves to a temporary file when it grows."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from typing import IO, Any, overload

import numpy as np

from plainrisk._types import Array

__all__ = ["Spool"]

Arrays = tuple[Array, ...]

# Bytes that are kept in memory before the groups move to disk.
IN_MEMORY = 1 << 27


class Spool(Sequence[Arrays]):
    """Groups of arrays, in memory up to a limit and on disk beyond it; read back one group at a time.

    The temporary file has no name and is gone with the spool. `TMPDIR` says where it lies.

    >>> spool = Spool(limit=10)
    >>> for k in range(3):
    ...     spool.append((np.arange(k), np.ones((2, k))))
    >>> [(len(a), b.shape) for a, b in spool], spool.on_disk
    ([(0, (2, 0)), (1, (2, 1)), (2, (2, 2))], True)
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = IN_MEMORY if limit is None else limit
        self.nbytes = 0
        self._held: list[Arrays] = []
        self._file: IO[bytes] | None = None
        self._index: list[tuple[int, tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]]] = []

    @property
    def on_disk(self) -> bool:
        """Whether the groups lie in a file."""
        return self._file is not None

    def append(self, arrays: Arrays) -> None:
        """Add a group at the end."""
        self.nbytes += sum(a.nbytes for a in arrays)
        if self._file is None and self.nbytes <= self.limit:
            self._held.append(arrays)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="plainrisk-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            for group in self._held:
                self._write(self._file, group)
            self._held.clear()
        self._write(self._file, arrays)

    def _write(self, file: IO[bytes], arrays: Arrays) -> None:
        self._index.append((file.tell(), tuple((a.dtype, a.shape) for a in arrays)))
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)

    def _read(self, file: IO[bytes], index: int) -> Arrays:
        position, kinds = self._index[index]
        file.seek(position)
        # From the handle's own buffer, not from its descriptor, which may lag behind what was written.
        return tuple(
            np.frombuffer(file.read(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
            for dtype, shape in kinds
        )

    def __len__(self) -> int:
        return len(self._held) if self._file is None else len(self._index)

    @overload
    def __getitem__(self, index: int) -> Arrays: ...
    @overload
    def __getitem__(self, index: slice) -> list[Arrays]: ...
    def __getitem__(self, index: int | slice) -> Arrays | list[Arrays]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"the spool has {len(self)} groups, not {index}")
        if self._file is None:
            return self._held[index]
        # A write in between left the position at the end.
        end = self._file.seek(0, 2)
        group = self._read(self._file, index % len(self))
        self._file.seek(end)
        return group

    def __iter__(self) -> Iterator[Arrays]:
        return (self[i] for i in range(len(self)))
