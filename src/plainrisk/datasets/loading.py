"""Data sets by name: load them, check what was read, and check which are on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec
import narwhals as nw

from plainrisk._types import Array, Floats, Outcome
from plainrisk.datasets.lending_club import read_block, read_years, resolved_loans
from plainrisk.datasets.registry import (
    Info,
    LocalFile,
    Partial,
    Progress,
    absent_message,
    download,
    find,
    info,
    schema_of,
)
from plainrisk.datasets.registry import names as all_names
from plainrisk.datasets.tables import Table, content_sha256, read_table
from plainrisk.errors import DataError, MissingExtraError, warn
from plainrisk.schema import Schema

__all__ = ["Backend", "CheckResult", "Dataset", "check", "load", "to_frame"]

Backend = Literal["polars", "pandas", "pyarrow"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Features, outcome and further facts.

    Attributes
    ----------
    name, title, source, license, citation, note : str
    frame : data frame of the features alone, in schema order; missing values are null (NaN in pandas)
    target : array of 0 and 1; 1 is the outcome that ``schema.target`` names
    schema : what is known of the features
    after_the_fact : features that were known only after the loan was made
    partial : whether this is a known incomplete copy
    path : the file that was read
    truth : the true probability of each row, of synthetic data only
    """

    name: str
    title: str
    frame: Any = field(repr=False)
    target: Outcome = field(repr=False)
    schema: Schema = field(repr=False)
    source: str
    license: str
    citation: str = field(repr=False)
    note: str = field(default="", repr=False)
    after_the_fact: tuple[str, ...] = ()
    partial: bool = False
    path: Path | None = None
    truth: Floats | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.target)

    @property
    def positive_rate(self) -> float:
        """The share of rows whose outcome is 1."""
        return float(self.target.mean())

    def with_target(self) -> Any:
        """Return the frame with the target as its last column, under the name that the schema gives it."""
        frame = nw.from_native(self.frame, eager_only=True)
        name = str(self.schema.target)
        target = nw.new_series(name, self.target, backend=frame.implementation)
        return frame.with_columns(target).to_native()

    def select(self, names: Iterable[str]) -> Dataset:
        """Return the data set with these features alone.

        >>> from plainrisk.datasets import load
        >>> load("german").select(["Age in years", "Housing"]).frame.columns
        ['Age in years', 'Housing']
        """
        keep = list(names)
        for name in keep:
            if name not in self.schema.features:
                raise DataError(f"Datasets: {self.name} has no feature {name!r}.")
        frame = nw.from_native(self.frame, eager_only=True)[keep].to_native()
        after = tuple(name for name in self.after_the_fact if name in keep)
        return replace(self, frame=frame, schema=self.schema.select(keep), after_the_fact=after)


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
    backend : the library of the frame, "polars", "pandas" or "pyarrow"; by default the first that is installed
    download : whether a file that is not here may be fetched; without it nothing ever touches the network
    verify : whether rows, outcomes and a hash of the parsed content must be as expected, else DataError
    progress : called during a download with the bytes fetched and the total, if known

    Examples
    --------
    >>> german = load("german")
    >>> german.n_rows, german.positive_rate, german.schema.target
    (1000, 0.7, 'good')
    """
    entry = info(name)
    file = find(entry)
    # A full copy is better than a partial one, if the caller lets us fetch it.
    if download and entry.url is not None and (file is None or file.partial):
        file, table = _fetch(entry, verify, progress)
    elif file is None:
        raise DataError(absent_message(entry))
    else:
        table = _read(entry, file, verify)
    if file.partial and entry.partial is not None:
        warn(
            f"{name}: {file.path} holds {entry.partial.rows:,} of {entry.rows:,} rows.",
        )
    return _dataset(entry, table, file, backend)


def check(names: Iterable[str] | None = None) -> list[CheckResult]:
    """Check which data sets (all, or those named) are on this machine, and whether they are right; downloads nothing.

    >>> [(r.status, r.rows) for r in check(["german"])]
    [('present', 1000)]
    """
    return [_check(info(name)) for name in (all_names() if names is None else names)]


def _check(entry: Info) -> CheckResult:
    file = find(entry)
    if file is None:
        return CheckResult(entry.name, "absent", message=absent_message(entry))
    try:
        if entry.block is not None:
            # Counting all blocks takes one pass over the file; reading one block takes another.
            target = resolved_loans(file.path).block(entry.block).charged_off
            if not len(target) or (entry.rows is not None and len(target) != entry.rows):
                return CheckResult(entry.name, "wrong", len(target), None, file.path, "Too few resolved loans.")
        else:
            target = _read(entry, file, verify=True).target
    except DataError as error:
        return CheckResult(entry.name, "wrong", path=file.path, message=str(error))
    status: Literal["partial", "present"] = "partial" if file.partial else "present"
    note = f"{len(target):,} of {entry.rows:,} rows" if file.partial else ""
    return CheckResult(entry.name, status, len(target), float(target.mean()), file.path, note)


def _fetch(entry: Info, verify: bool, progress: Progress | None) -> tuple[LocalFile, Table]:
    file = LocalFile(download(entry, progress))
    try:
        return file, _read(entry, file, verify)
    except DataError:
        # A wrong file must not block the next attempt.
        file.path.unlink(missing_ok=True)
        raise


def _read(entry: Info, file: LocalFile, verify: bool) -> Table:
    schema = schema_of(entry.schema)
    if entry.reader == "lending_club_block":
        table = read_block(file.path, schema, entry.block or 0)
    elif entry.reader == "lending_club_years":
        table = read_years(file.path, schema, () if entry.hindsight else entry.after_the_fact)
    else:
        table = read_table(file.path, entry, schema)
    if verify:
        _verify(entry, table, file)
    return table


def _verify(entry: Info, table: Table, file: LocalFile) -> None:
    """Raise DataError unless the table has the expected rows, outcomes and values."""
    expected: Info | Partial = entry.partial if file.partial and entry.partial is not None else entry
    rows, positives = len(table.target), int(table.target.sum())
    if expected.rows is not None and rows != expected.rows:
        problem = f"{rows:,} rows, not {expected.rows:,}."
    elif expected.positives is not None and positives != expected.positives:
        problem = f"{positives:,} rows are {entry.outcome!r}, not {expected.positives:,}."
    elif expected.content_sha256 not in (None, content_sha256(table.columns, table.target)):
        problem = "its values or their order differ."
    else:
        return
    raise DataError(
        f"Datasets: {file.path} is not {entry.name}: {problem} Get the file anew (see "
        f"plainrisk.datasets.info({entry.name!r}).source), or load with verify=False."
    )


def _dataset(entry: Info, table: Table, file: LocalFile, backend: Backend | None) -> Dataset:
    raw = schema_of(entry.schema)
    # The target is now 0/1, so the raw file's name and label for it no longer apply.
    schema = msgspec.structs.replace(raw.select(table.columns), target=entry.outcome, positive=1)
    return Dataset(
        name=entry.name,
        title=entry.title,
        frame=to_frame(table.columns, backend),
        target=table.target,
        schema=schema,
        source=entry.source,
        license=entry.license,
        citation=entry.citation,
        note=entry.note,
        after_the_fact=tuple(name for name in entry.after_the_fact if name in table.columns),
        partial=file.partial,
        path=file.path,
    )


def to_frame(columns: Mapping[str, Array], backend: Backend | None = None) -> Any:
    """Return a data frame: polars if it is installed, otherwise pandas or an arrow table."""
    library = _library(backend)
    words = {name for name, column in columns.items() if column.dtype == object}
    data = {name: column.tolist() if name in words else column for name, column in columns.items()}
    frame = nw.from_dict(data, backend=library)
    # A column with only texts that mean missing has no type.
    types = frame.schema
    casts = [nw.col(name).cast(nw.String) for name in words if types[name] != nw.String]
    if library != "pandas":
        casts += [nw.col(name).fill_nan(None) for name, column in columns.items() if column.dtype.kind == "f"]
    return frame.with_columns(casts).to_native() if casts else frame.to_native()


def _library(backend: Backend | None) -> Backend:
    libraries: tuple[Backend, ...] = ("polars", "pandas", "pyarrow")
    if backend is not None and backend not in libraries:
        raise DataError(f"Datasets: backend must be 'polars', 'pandas' or 'pyarrow', not {backend!r}.")
    for library in libraries if backend is None else (backend,):
        if find_spec(library):
            return library
    wanted = backend or "polars"
    raise MissingExtraError(f"{wanted} is needed for this and is not installed: pip install {wanted}")
