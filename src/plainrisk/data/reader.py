"""The one reader of tables in files: CSV, CSV.gz and Parquet, whole or in batches, by polars.

Commands, `plainrisk.rows` and studies all read here, so that a damaged file is refused alike everywhere. The records
of CSV files are checked first (`plainrisk.data.records`), and the types of columns come from all rows of all files.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import narwhals as nw

from plainrisk.checks import LIST, check_parameters
from plainrisk.data.records import csv_layout
from plainrisk.errors import DataError, missing_extra, quoted

if TYPE_CHECKING:
    import polars as pl

__all__ = ["READ", "Files", "Table", "explained", "find_files", "once", "open_table", "read_file", "suffix_of"]

T = TypeVar("T")
Files = str | Path | Sequence[str | Path]

READ = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True)
class Table:
    """Rows of one file or of several with the same columns, not yet read.

    Attributes
    ----------
    name : the file or the pattern, for messages
    lazy : all rows
    parts : each file with the number of its rows
    """

    name: str
    lazy: pl.LazyFrame
    parts: tuple[tuple[str, int], ...]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(rows for _, rows in self.parts)

    def collect(self) -> pl.DataFrame:
        """Read all rows."""
        with self.reading():
            return once(self.lazy.collect)

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Turn what polars raises while it reads into an error that names the file."""
        import polars as pl

        return explained(f"{self.name} cannot be read", pl.exceptions.PolarsError, OSError)

    def where(self, row: int) -> str:
        """Return the file and the row in it, counted from 0, of a row counted over all files."""
        ends = list(accumulate(rows for _, rows in self.parts))
        part = bisect_right(ends, row)
        return f"{self.parts[part][0]}, row {row - ends[part] + self.parts[part][1]:,}, the first being 0"

    def check_numbers(self, names: Sequence[str]) -> None:
        """Say which row of which file holds text where a number is needed.

        The error of a model counts rows inside a batch.
        """
        import polars as pl

        types = self.lazy.collect_schema()
        for name in names:
            if types[name] != pl.String:
                continue
            value = pl.col(name)
            wrong = value.is_not_null() & ~value.cast(pl.Float64, strict=False).is_finite().fill_null(False)
            with self.reading():
                found = once(self.lazy.select(value).with_row_index("row").filter(wrong).head(1).collect)
            if len(found):
                raise DataError(
                    f"{self.where(found['row'][0])}: feature {name!r} is a number in this model but holds text. "
                    "Correct it, or read that text as missing: --missing TEXT."
                )


def open_table(files: Files, missing: Sequence[str] = (), kind: str | None = None) -> Table:
    """Check files and open them as one table.

    Parameters
    ----------
    files : a file, a pattern such as "loans/*.csv", or a list of them
    missing : texts in a CSV that stand for a missing value, beside the empty one
    kind : ".csv" or ".parquet"; the names of the files tell it unless it is given
    """
    check_parameters("rows", {"missing": missing}, {"missing": LIST})
    paths = find_files(files)
    kinds = {kind or suffix_of(path, READ, "read").removesuffix(".gz") for path in paths}
    name = str(files) if isinstance(files, str | Path) else str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    if len(kinds) > 1:
        raise DataError(f"{name}: CSV and Parquet files are mixed. Name files of one kind.")
    opened = [_open_csv(path, missing) if kinds == {".csv"} else _open_parquet(path) for path in paths]
    _refuse_other_columns(opened)
    types = _common_types(opened)
    lazy = _concatenated([one.scan(types) for one in opened], list(types))
    return Table(name, lazy, tuple((str(one.path), one.n_rows) for one in opened))


def read_file(path: str | Path) -> Any:
    """Read a file as a frame of polars, or where that is not installed of pandas or arrow."""
    try:
        return open_table(path).collect()
    except ImportError:
        pass
    (path,) = find_files(path)
    is_csv = suffix_of(path, READ, "read") != ".parquet"
    layout = csv_layout(path) if is_csv else None
    for library in ("pandas", "pyarrow"):
        with contextlib.suppress(ImportError), explained(f"{path} cannot be read", Exception):
            if layout is None:
                return nw.read_parquet(str(path), backend=library).to_native()
            return nw.read_csv(str(path), backend=library, separator=layout.separator).to_native()
    raise missing_extra("polars", "cli")


def find_files(files: Files) -> list[Path]:
    """Return the files that are meant, in the order of their names, or say that there are none."""
    found: list[Path] = []
    for one in [files] if isinstance(files, str | Path) else files:
        path = Path(one)
        if os.path.isfile(path):  # a name with brackets is a name first
            found.append(path)
            continue
        if os.path.isdir(path):
            raise DataError(f"{path} is a folder. Its files are, for example, {str(path / '*.parquet')!r}.")
        if os.path.exists(path):
            raise DataError(f"{path} is a pipe or a device, which cannot be read twice. Write it to a file first.")
        if not glob.has_magic(str(one)):
            raise DataError(f"{path} does not exist.")
        matches = [Path(m) for m in sorted(glob.glob(str(one), recursive=True)) if os.path.isfile(m)]
        if not matches:
            raise DataError(f"Data: no file matches {str(one)!r}.")
        found += matches
    if not found:
        raise DataError("Data: the list of files is empty.")
    return found


def suffix_of(path: Path, allowed: Sequence[str], verb: str) -> str:
    """Return the ending of a file's name that says its format, or list those that are allowed."""
    name = path.name.lower()
    for suffix in sorted(allowed, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    endings = f"{', '.join(allowed[:-1])} or {allowed[-1]}" if len(allowed) > 1 else allowed[0]
    raise DataError(f"{path}: cannot {verb} this kind of file. The name must end in {endings}.")


# ---- one file


@dataclass(frozen=True)
class _Opened:
    """One file: its rows, its columns with their types, and how it is scanned with given types."""

    path: Path
    n_rows: int
    types: Mapping[str, Any]
    scan: Callable[[Mapping[str, Any]], pl.LazyFrame]


def _open_parquet(path: Path) -> _Opened:
    pl = _polars()
    with explained(f"{path} cannot be read", pl.exceptions.PolarsError, OSError):
        lazy = pl.scan_parquet(path, glob=False)
        n_rows = int(lazy.select(pl.len()).collect().item())
        return _Opened(path, n_rows, lazy.collect_schema(), lambda types: lazy.cast(_changed(lazy, types)))


def _open_csv(path: Path, missing: Sequence[str]) -> _Opened:
    pl = _polars()
    layout = csv_layout(path)

    def scan(types: Mapping[str, Any] | None = None) -> Any:
        return pl.scan_csv(
            path,
            separator=layout.separator,
            schema=None if types is None else {name: types[name] for name in layout.names},
            infer_schema_length=None,
            null_values=["", *missing],
            glob=False,
        )

    with explained(f"{path} cannot be read", pl.exceptions.PolarsError, OSError):
        types = once(scan().collect_schema)
        _refuse_decimal_commas(path, scan(types))
    return _Opened(path, layout.n_rows, types, scan)


def _refuse_decimal_commas(path: Path, lazy: pl.LazyFrame) -> None:
    """Raise if every value of a column of text is a number with a comma, which would be read as a category."""
    import polars as pl

    texts = [name for name, kind in lazy.collect_schema().items() if kind == pl.String]

    def numbers(rows: pl.LazyFrame) -> list[str]:
        # At least one comma, and nothing else than numbers.
        checks = [
            (pl.col(n).str.contains(r"^\s*[-+]?\d*(,\d+)*\s*$").all() & pl.col(n).str.contains(",").any()).alias(n)
            for n in texts
        ]
        return [n for n, found in rows.select(checks).collect().row(0, named=True).items() if found]

    # Most columns of text are found to be none from the first rows.
    texts = numbers(lazy.head(1000)) if texts else []
    texts = numbers(lazy) if texts else []
    if texts:
        raise DataError(
            f"{path}: column {texts[0]!r} holds numbers with commas. Write decimal points, and no marks of thousands."
        )


def _changed(lazy: pl.LazyFrame, types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types of those columns that a file stores in another type."""
    return {name: types[name] for name, own in lazy.collect_schema().items() if own != types[name]}


# ---- several files


def _refuse_other_columns(opened: Sequence[_Opened]) -> None:
    """Raise if a file has other columns than the first; their order may differ."""
    first = opened[0]
    for one in opened[1:]:
        lacking = [name for name in first.types if name not in one.types]
        extra = [name for name in one.types if name not in first.types]
        if lacking or extra:
            what = f"lacks {quoted(lacking)}" if lacking else f"has {quoted(extra)} too"
            raise DataError(f"{one.path}: the columns differ from those of {first.path}: it {what}.")


def _common_types(opened: Sequence[_Opened]) -> dict[str, Any]:
    """Return the type of each column that holds the values of all files."""
    return {name: _common_type(name, opened) for name in opened[0].types}


def _common_type(name: str, opened: Sequence[_Opened]) -> Any:
    """Return the type of a column in all files: whole and other numbers are numbers, no other types are mixed."""
    import polars as pl

    first = opened[0].types[name]
    if all(one.types[name] == first for one in opened):
        return first
    # A column without any value has no type of its own, whatever a file says.
    known = [one for one in opened if not _is_empty(one, name)] or list(opened[:1])
    first = known[0].types[name]
    other = next((one for one in known if one.types[name] != first), None)
    if other is None:
        return first
    if all(one.types[name].is_numeric() for one in known):
        return pl.Int64() if all(one.types[name].is_signed_integer() for one in known) else pl.Float64()
    raise DataError(
        f"Data: column {name!r} is {first} in {known[0].path}, but {other.types[name]} in {other.path}. "
        "Store it in one type."
    )


def _is_empty(one: _Opened, name: str) -> bool:
    import polars as pl

    return bool(once(one.scan(one.types).select(pl.col(name).is_null().all()).collect).item())


def _concatenated(parts: Sequence[pl.LazyFrame], names: Sequence[str]) -> pl.LazyFrame:
    import polars as pl

    return parts[0] if len(parts) == 1 else pl.concat([part.select(names) for part in parts])


# ---- errors


@contextlib.contextmanager
def explained(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn the errors of libraries and of the system into one of ours; values that they quote are left out."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except kinds as error:
        message = re.sub(r"`[^`]*`", "a value", str(error).partition("\n\n")[0]).partition("\n")[0]
        raise DataError(f"{what}: {message.strip().rstrip('.')}.{_remedy(message)}") from None


def _remedy(message: str) -> str:
    for sign, remedy in (("parquet", " Is it a Parquet file, and complete?"), ("end of file", " Is it complete?")):
        if sign in message.lower():
            return remedy
    return ""


def once(query: Callable[[], T]) -> T:
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


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise missing_extra("polars", "cli") from None
    return polars
