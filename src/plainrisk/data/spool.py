"""A list of groups of arrays that moves to a temporary file when it grows, and groups of distinct rows."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Protocol

import numpy as np

from plainrisk._types import Array
from plainrisk.totals import total_of

__all__ = ["Arrays", "Kept", "Spool", "distinct_rows", "rows_of_group"]

Arrays = tuple[Array, ...]

# The number of bytes in memory before the groups move to disk.
IN_MEMORY = 1 << 27


class Kept(Protocol):
    """Groups of arrays that stay where they were made: in memory, on disk, or on other machines."""

    def total(self, function: Callable[[int, Arrays], Any]) -> Any:
        """Apply a function to the number and the arrays of every group and add up the results, in a fixed order."""

    @property
    def only(self) -> Arrays | None:
        """The arrays, if they are one group in memory."""


def rows_of_group(arrays: Arrays, group: int, n_groups: int) -> Arrays:
    """Return the rows that belong to one of some groups by their keys, the last array."""
    if n_groups == 1:
        return arrays
    rows = np.flatnonzero(arrays[-1] % np.uint64(n_groups) == group)
    return tuple(a[rows] for a in arrays)


def distinct_rows(groups: Sequence[Arrays]) -> Arrays:
    """Return rows with different keys, the last array, in the order of the keys, and how many there are of each.

    >>> [a.tolist() for a in distinct_rows([(np.array([5, 6]), np.array([9, 7])), (np.array([5]), np.array([9]))])]
    [[6, 5], [7, 9], [1, 2]]
    """
    arrays = tuple(map(np.concatenate, zip(*groups, strict=True)))
    _, first, count = np.unique(arrays[-1], return_index=True, return_counts=True)
    return (*(a[first] for a in arrays), count)


class Spool:
    """Groups of arrays, in memory up to a limit and on disk beyond it, and read back one group at a time.

    The temporary file has no name and disappears with the spool. `TMPDIR` sets its folder.

    >>> spool = Spool(limit=10)
    >>> for k in range(3):
    ...     spool.append((np.arange(k), np.ones((2, k))))
    >>> [(len(a), b.shape) for a, b in spool], spool.on_disk
    ([(0, (2, 0)), (1, (2, 1)), (2, (2, 2))], True)
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = IN_MEMORY if limit is None else limit
        self.nbytes = 0
        self._held: list[Arrays] = []
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()  # a file has one position, and passes over rows have several threads
        self._index: list[tuple[int, tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]]] = []

    @property
    def on_disk(self) -> bool:
        """Whether the groups are stored in a file."""
        return self._file is not None

    def append(self, arrays: Arrays) -> None:
        """Add a group at the end."""
        self.nbytes += sum(a.nbytes for a in arrays)
        self._held.append(arrays)
        if self._file is None:
            if self.nbytes <= self.limit:
                return
            self._file = tempfile.TemporaryFile(prefix="plainrisk-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        for group in self._held:
            self._write(self._file, group)
        self._held.clear()

    def _write(self, file: IO[bytes], arrays: Arrays) -> None:
        self._index.append((file.seek(0, 2), tuple((a.dtype, a.shape) for a in arrays)))
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)

    def __len__(self) -> int:
        return len(self._held) if self._file is None else len(self._index)

    def __getitem__(self, index: int) -> Arrays:
        if self._file is None:
            return self._held[index]
        position, kinds = self._index[index]
        with self._lock:
            self._file.seek(position)
            # From the handle's own buffer, not from its descriptor, which may lag behind what was written.
            return tuple(
                np.frombuffer(self._file.read(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
                for dtype, shape in kinds
            )

    def __iter__(self) -> Iterator[Arrays]:
        return (self[i] for i in range(len(self)))

    def total(self, function: Callable[[int, Arrays], Any]) -> Any:
        """Apply a function to the number and the arrays of every group and add up the results; see `Kept`."""
        return total_of(function(number, arrays) for number, arrays in enumerate(self))

    @property
    def only(self) -> Arrays | None:
        """The arrays, if they are one group in memory."""
        return self._held[0] if len(self) == 1 and not self.on_disk else None

    def distinct(self, n_groups: int) -> Spool:
        """Return the distinct rows in this many groups by their keys, the last array, and how often each occurs.

        The groups, and the order of the rows in them, do not depend on how these rows were grouped.
        """
        dealt, found = [Spool(self.limit / n_groups) for _ in range(n_groups)], Spool(self.limit)
        for arrays in self:
            for k, group in enumerate(dealt):
                group.append(rows_of_group(arrays, k, n_groups))
        while dealt:
            found.append(distinct_rows(list(dealt.pop(0))))
        return found
