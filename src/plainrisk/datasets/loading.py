"""Load data sets by name, and check which are here."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from plainrisk.datasets.content import verify as verify_content
from plainrisk.datasets.dataset import Backend, Dataset, to_frame
from plainrisk.datasets.lending_club import read_block, read_years, resolved_loans
from plainrisk.datasets.registry import Info, info, schema_of
from plainrisk.datasets.registry import names as all_names
from plainrisk.datasets.sources import Found, Progress, absent_message, download, find
from plainrisk.datasets.tables import Table, read_table
from plainrisk.errors import DataError, PlainriskWarning

__all__ = ["CheckResult", "check", "load"]


@dataclass(frozen=True)
class CheckResult:
    """Whether a data set is on this machine.

    Attributes
    ----------
    name : the data set
    status : "present", "partial" (a known incomplete copy), "absent", or "wrong" (another or a damaged file)
    rows, positive_rate : what the file holds, if it could be read
    path : the file
    message : what to do, where something is to be done
    """

    name: str
    status: Literal["present", "absent", "partial", "wrong"]
    rows: int | None = None
    positive_rate: float | None = None
    path: Path | None = None
    message: str = ""


def load(
    name: str,
    *,
    backend: Backend | None = None,
    download: bool = False,
    verify: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """Load a data set: from the folder PLAINRISK_DATA, the cache, the package, or its public source.

    Parameters
    ----------
    name : one of `datasets.names()`
    backend : "polars", "pandas" or "pyarrow"
        The library of the frame; by default the first of these that is installed.
    download : bool
        Whether a file that is not here may be fetched. Without it nothing ever touches the network.
    verify : bool
        Whether rows, outcomes and a hash of the parsed content must be as expected, else DataError.
    progress : callable, optional
        Called during a download with the bytes fetched and the total, if known.

    Examples
    --------
    >>> german = load("german")
    >>> german.n_rows, german.positive_rate, german.schema.target
    (1000, 0.7, 'good')
    """
    entry = info(name)
    found = find(entry)
    # A full copy is better than a partial one, if the caller lets us fetch it.
    if download and entry.url is not None and (found is None or found.partial):
        found, table = _fetch(entry, verify, progress)
    elif found is None:
        raise DataError(absent_message(entry))
    else:
        table = _read(entry, found, verify)
    if found.partial and entry.partial is not None:
        warnings.warn(
            f"{name}: {found.path} holds {entry.partial.rows:,} of {entry.rows:,} rows.",
            PlainriskWarning,
            stacklevel=2,
        )
    return _dataset(entry, table, found, backend)


def check(names: Iterable[str] | None = None) -> list[CheckResult]:
    """Say of each data set whether it is on this machine and right; nothing is downloaded.

    Parameters
    ----------
    names : iterable of str, optional
        Data sets to check; all by default.

    Examples
    --------
    >>> [(r.status, r.rows) for r in check(["german"])]
    [('present', 1000)]
    """
    return [_check(info(name)) for name in (all_names() if names is None else names)]


def _check(entry: Info) -> CheckResult:
    found = find(entry)
    if found is None:
        return CheckResult(entry.name, "absent", message=absent_message(entry))
    try:
        if entry.block is not None:
            # Counting all blocks takes one look at the file; reading one takes another.
            target = resolved_loans(found.path).block(entry.block).charged_off
            if not len(target) or (entry.rows is not None and len(target) != entry.rows):
                return CheckResult(entry.name, "wrong", len(target), None, found.path, "Too few resolved loans.")
        else:
            target = _read(entry, found, verify=True).target
    except DataError as error:
        return CheckResult(entry.name, "wrong", path=found.path, message=str(error))
    status: Literal["partial", "present"] = "partial" if found.partial else "present"
    note = f"{len(target):,} of {entry.rows:,} rows" if found.partial else ""
    return CheckResult(entry.name, status, len(target), float(target.mean()), found.path, note)


def _fetch(entry: Info, verify: bool, progress: Progress | None) -> tuple[Found, Table]:
    found = Found(download(entry, progress))
    try:
        return found, _read(entry, found, verify)
    except DataError:
        # A wrong file must not stand in the way of the next attempt.
        found.path.unlink(missing_ok=True)
        raise


def _read(entry: Info, found: Found, verify: bool) -> Table:
    schema = schema_of(entry.schema)
    if entry.reader == "lending_club_block":
        table = read_block(found.path, schema, entry.block or 0)
    elif entry.reader == "lending_club_years":
        table = read_years(found.path, schema, () if entry.hindsight else entry.after_the_fact)
    else:
        table = read_table(found.path, entry, schema)
    if verify:
        expected = entry.partial if found.partial and entry.partial is not None else entry
        verify_content(entry, table, found.path, expected)
    return table


def _dataset(entry: Info, table: Table, found: Found, backend: Backend | None) -> Dataset:
    raw = schema_of(entry.schema)
    # The target is 0/1 by now, so the raw file's name and label for it no longer hold.
    schema = msgspec.structs.replace(raw.select(table.columns), target=entry.outcome, positive=1)
    return Dataset(
        name=entry.name,
        title=entry.title,
        frame=to_frame(table.columns, backend),
        target=table.target,
        schema=schema,
        source=entry.source,
        licence=entry.licence,
        citation=entry.citation,
        note=entry.note,
        expected_rows=entry.rows,
        expected_positive_rate=entry.positive_rate,
        after_the_fact=tuple(name for name in entry.after_the_fact if name in table.columns),
        partial=found.partial,
        path=found.path,
    )
