"""The one reader of tables in files: CSV, CSV.gz and Parquet, whole or in batches, by polars.

Commands, `plainrisk.rows` and studies all read here, so that a damaged file is refused alike everywhere. The records
of CSV files are checked first (`plainrisk.data.records`). A CSV file has no types: a column is read by what is known of
it (`Table.read_as`), so that a row means the same whatever other rows are there. Only where nothing is known the types
come from all rows of all files.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import narwhals as nw

from plainrisk.checks import LIST, check_parameters, instance
from plainrisk.data.columns import PADDED, TRUTH
from plainrisk.data.records import csv_layout, csv_pieces
from plainrisk.errors import DataError, missing_extra, quoted

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "READ",
    "Files",
    "Kind",
    "Table",
    "as_data_error",
    "find_files",
    "interrupted_once",
    "open_table",
    "polars_errors",
    "read_file",
    "suffix_of",
    "text_in",
]

T = TypeVar("T")
Files = str | Path | Sequence[str | Path]

# The type of a column: the kinds of features, or text that is copied or compared unchanged.
Kind = Literal["categorical", "continuous", "text"]

READ = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True)
class Table:
    """Rows of one file or of several with the same columns, not yet read.

    Attributes
    ----------
    name : the file or the pattern, for messages
    lazy : all rows
    parts : each file with the number of its rows
    written : of CSV files, all rows with some columns as the text that the files hold
    """

    name: str
    lazy: pl.LazyFrame
    parts: tuple[tuple[str, int], ...]
    written: Callable[[Collection[str]], pl.LazyFrame] | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(rows for _, rows in self.parts)

    def read_as(
        self,
        kinds: Mapping[str, Kind] | None,
        texts: Collection[str] = (),
        copies: Mapping[str, str] | None = None,
        *,
        drafting: bool = False,
    ) -> Table:
        """Return the same rows, the columns of CSV files read by what they mean and not by the values in the file.

        Text is read as it is written: 01, 1 and 1.0 are three categories. A category that is written true or false is
        the truth value, "True" or "False", as a column of booleans has it; in a number they are 1 and 0. Files that
        store types keep them.

        Parameters
        ----------
        kinds : what is known of columns; None if nothing is, and numbers with leading zeros are then text
        texts : further columns of text
        copies : new names of columns that are copied as they are written, with their names in the files
        drafting : whether numbers with commas may stay text, for a draft to say how they are read
        """
        import polars as pl

        there = self.lazy.collect_schema()
        copied = [pl.col(old).alias(new) for new, old in (copies or {}).items() if old in there]
        if self.written is None:
            return replace(self, lazy=self.lazy.with_columns(copied)) if copied else self
        if not drafting:
            self._refuse_commas([*(n for n, kind in (kinds or {}).items() if kind != "continuous"), *texts])
        kind_of = dict.fromkeys(self._padded(), "text") if kinds is None else kinds
        wanted = {*(n for n, kind in kind_of.items() if kind != "continuous"), *texts, *(copies or {}).values()}
        lazy = self.written(wanted)
        text_columns = [name for name, kind in lazy.collect_schema().items() if kind == pl.String]
        numbers = self._numbers(lazy, [name for name in text_columns if kind_of.get(name) == "continuous"])
        categories = [pl.col(name).replace(TRUTH) for name in text_columns if kind_of.get(name) == "categorical"]
        return replace(self, lazy=lazy.with_columns(*copied, *categories, *map(_number, numbers)))

    def _refuse_commas(self, stated: Collection[str]) -> None:
        """Raise if every value of a column of text is a number with a comma, which would be read as a category."""
        import polars as pl

        texts = [name for name, kind in self.lazy.collect_schema().items() if kind == pl.String and name not in stated]

        def numbers(rows: pl.LazyFrame) -> list[str]:
            # At least one comma, and nothing but numbers.
            checks = [
                (pl.col(n).str.contains(r"^\s*[-+]?\d*(,\d+)*\s*$").all() & pl.col(n).str.contains(",").any()).alias(n)
                for n in texts
            ]
            return [n for n, found in _summary(rows.select(checks)).row(0, named=True).items() if found]

        with self.reading():
            # Most columns of text are found to be none from the first rows.
            texts = numbers(self.lazy.head(1000)) if texts else []
            texts = numbers(self.lazy) if texts else []
        if texts:
            raise DataError(
                f"{self.name}: column {texts[0]!r} holds numbers with commas. Write decimal points, and no marks of "
                "thousands, or say in the schema how they are read: read = 'amount' or 'decimal_comma'."
            )

    def _padded(self) -> list[str]:
        """Return the columns that would be numeric without leading zeros."""
        import polars as pl

        names = [name for name, kind in self.lazy.collect_schema().items() if kind.is_numeric()]
        if self.written is None or not names:
            return []
        with self.reading():
            is_padded = _summary(self.written(names).select(pl.col(names).str.contains(PADDED).any()))
        return [name for name in names if is_padded[name][0]]

    def _numbers(self, lazy: pl.LazyFrame, names: Sequence[str]) -> list[str]:
        """Return the columns of text in which every value is a number."""
        import polars as pl

        if not names:
            return []
        with self.reading():
            all_numbers = _summary(lazy.select((_number(n).is_not_null() | pl.col(n).is_null()).all() for n in names))
        return [name for name in names if all_numbers[name][0]]

    def collect(self) -> pl.DataFrame:
        """Read all rows."""
        with self.reading():
            frame = interrupted_once(self.lazy.collect)
        if frame.height != self.n_rows:
            raise DataError(
                f"{self.name} says that it has {self.n_rows:,} rows and holds {frame.height:,}. Is it whole?"
            )
        return frame

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Turn what polars raises while it reads into an error that names the file."""
        return as_data_error(f"{self.name} cannot be read", *polars_errors(), OSError)

    def where(self, row: int) -> str:
        """Return the file and the row in it, counted from 0, of a row counted over all files."""
        ends = list(accumulate(rows for _, rows in self.parts))
        part = bisect_right(ends, row)
        return f"{self.parts[part][0]}, row {row - ends[part] + self.parts[part][1]:,}, the first being 0"

    def check_numbers(self, names: Sequence[str]) -> None:
        """Raise at the first text where a number is needed, naming its row and file.

        The error of a model counts rows inside a batch.
        """
        import polars as pl

        types = self.lazy.collect_schema()
        for name in names:
            if types[name] != pl.String:
                continue
            with self.reading():
                first_wrong = _summary(self.lazy.select(name).with_row_index("row").filter(_is_text(name)).head(1))
            if len(first_wrong):
                raise DataError(f"{self.where(first_wrong['row'][0])}: {text_in(name)}")

    def noting_texts(self, names: Sequence[str], column: str) -> Table:
        """Return the rows with a new column: the first of some features that has text instead of a number.

        The features themselves have no value there.
        """
        import polars as pl

        types = self.lazy.collect_schema()
        own = [name for name in names if types[name] == pl.String]
        noted = pl.coalesce(pl.lit(None, pl.String), *(pl.when(_is_text(name)).then(pl.lit(name)) for name in own))
        return replace(self, lazy=self.lazy.with_columns(noted.alias(column), *map(_number, own)))


def text_in(name: str) -> str:
    """Return the message that a feature contains text instead of numbers."""
    return (
        f"feature {name!r} is a number in this model but holds text. Correct it, or read that text as missing: "
        "--missing TEXT."
    )


def _is_text(name: str) -> pl.Expr:
    """Return whether a text column contains anything but finite numbers."""
    import polars as pl

    return pl.col(name).is_not_null() & _number(name).is_infinite().fill_null(True)


def _number(name: str) -> pl.Expr:
    """Return a column of text as numbers, with null for other texts. The text NaN is a missing number."""
    import polars as pl

    text = pl.col(name)
    number = text.cast(pl.Float64, strict=False)
    truth = text.replace(TRUTH).replace_strict({"True": 1.0, "False": 0.0}, default=None, return_dtype=pl.Float64)
    return pl.coalesce(pl.when(number.is_not_nan() | (text == "NaN")).then(number), truth)


def open_table(
    files: Files, missing: Sequence[str] = (), kind: str | None = None, texts: Collection[str] = ()
) -> Table:
    """Check files and open them as one table.

    Parameters
    ----------
    files : a file, a pattern such as "loans/*.csv", or a list of them
    missing : texts in a CSV that mean a missing value, in addition to the empty one
    kind : ".csv" or ".parquet"; the names of the files tell it unless it is given
    texts : columns of a CSV that are text, whatever the files hold; names that are not there do no harm
    """
    check_parameters("rows", {"missing": missing, "text": texts}, {"missing": LIST, "text": LIST})
    paths = find_files(files)
    kinds = {kind or suffix_of(path, READ, "read").removesuffix(".gz") for path in paths}
    name = str(files) if isinstance(files, str | Path) else str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    if len(kinds) > 1:
        raise DataError(f"{name}: CSV and Parquet files are mixed. Name files of one kind.")
    is_csv = kinds == {".csv"}
    opened = [_open_csv(path, missing, texts) if is_csv else _open_parquet(path) for path in paths]
    _refuse_other_columns(opened)
    types = _common_types(opened)

    def written(names: Collection[str]) -> pl.LazyFrame:
        column_types = {name: _polars().String() if name in names else kind for name, kind in types.items()}
        return _concatenated([one.scan(column_types) for one in opened], list(column_types))

    parts = tuple((str(one.path), one.n_rows) for one in opened)
    return Table(
        name, _concatenated([one.scan(types) for one in opened], list(types)), parts, written if is_csv else None
    )


def read_file(path: str | Path, kinds: Mapping[str, Kind] | None = None) -> Any:
    """Read a file as a frame of polars, or where that is not installed, by the types it guesses, of pandas or arrow."""
    try:
        texts = [name for name, kind in (kinds or {}).items() if kind != "continuous"]
        return open_table(path, texts=texts).read_as(kinds).collect()
    except ImportError:
        pass
    (path,) = find_files(path)
    is_csv = suffix_of(path, READ, "read") != ".parquet"
    layout = csv_layout(path) if is_csv else None
    for library in ("pandas", "pyarrow"):
        with contextlib.suppress(ImportError), as_data_error(f"{path} cannot be read", Exception):
            if layout is None:
                return nw.read_parquet(str(path), backend=library).to_native()
            return nw.read_csv(str(path), backend=library, separator=layout.separator).to_native()
    raise missing_extra("polars", "cli")


def find_files(files: Files) -> list[Path]:
    """Return the matching files in the order of their names, or raise an error if there are none."""
    check_parameters("rows", {"files": files}, {"files": instance("a file", str, Path) | LIST})
    paths: list[Path] = []
    for one in [files] if isinstance(files, str | Path) else files:
        path = Path(one)
        if os.path.isfile(path):  # a name with brackets is a name first
            paths.append(path)
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
        paths += matches
    if not paths:
        raise DataError("Data: the list of files is empty.")
    return paths


def suffix_of(path: Path, allowed: Sequence[str], verb: str) -> str:
    """Return the ending of a file's name, which gives its format, or raise with the allowed endings."""
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
    with as_data_error(f"{path} cannot be read", *polars_errors(), OSError):
        lazy = pl.scan_parquet(path, glob=False)
        n_rows = int(lazy.select(pl.len()).collect().item())
        return _Opened(path, n_rows, lazy.collect_schema(), lambda types: lazy.cast(_changed(lazy, types)))


def _open_csv(path: Path, missing: Sequence[str], texts: Collection[str]) -> _Opened:
    pl = _polars()
    layout = csv_layout(path)
    stated = {name: pl.String() for name in layout.names if name in texts}
    # polars leaves quotes in names doubled. Renaming reads the file once more, so it is done only if needed.
    renamed = layout.names if any('"' in name for name in layout.names) else None

    def scan(types: Mapping[str, Any] | None = None, source: Any = path) -> Any:
        return pl.scan_csv(
            source,
            separator=layout.separator,
            new_columns=renamed,
            schema=None if types is None else {name: types[name] for name in layout.names},
            schema_overrides=stated if types is None else None,
            infer_schema_length=None,
            null_values=["", *missing],
            glob=False,
        )

    with as_data_error(f"{path} cannot be read", *polars_errors(), OSError):
        types = _inferred(scan(source=io.BytesIO(piece)) for piece in csv_pieces(path))
    return _Opened(path, layout.n_rows, types, scan)


def _inferred(pieces: Iterable[pl.LazyFrame]) -> dict[str, Any]:
    """Return the types of all pieces of a file, as if it were inferred whole, which takes a multiple of its size."""
    import polars as pl

    numbers = [pl.Int64(), pl.Int128(), pl.Float64()]
    types: dict[str, Any] = {}  # None where no piece has a value
    for piece in pieces:
        for name, piece_type in interrupted_once(piece.collect_schema).items():
            is_new_text = piece_type == pl.String and types.get(name) != piece_type
            kind = None if is_new_text and _is_empty(piece, name) else piece_type
            before = types.setdefault(name, kind)
            if before in numbers and kind in numbers:
                types[name] = max(before, kind, key=numbers.index)
            elif before != kind:
                types[name] = pl.String() if before and kind else before or kind
    return {name: kind or pl.String() for name, kind in types.items()}


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
    """Return the type of each column that can hold the values of all files."""
    return {name: _common_type(name, opened) for name in opened[0].types}


def _common_type(name: str, opened: Sequence[_Opened]) -> Any:
    """Return the type of a column over all files: integers and other numbers combine to numbers; no other types mix."""
    import polars as pl

    first = opened[0].types[name]
    if all(one.types[name] == first for one in opened):
        return first
    # A column without any value has no type, whatever the file says.
    nonempty = [one for one in opened if not _is_empty(one.scan(one.types), name)] or list(opened[:1])
    first = nonempty[0].types[name]
    other = next((one for one in nonempty if one.types[name] != first), None)
    if other is None:
        return first
    if all(one.types[name].is_numeric() for one in nonempty):
        return pl.Int64() if all(one.types[name].is_signed_integer() for one in nonempty) else pl.Float64()
    raise DataError(
        f"Data: column {name!r} is {first} in {nonempty[0].path}, but {other.types[name]} in {other.path}. "
        "Store it in one type, or if it is a category name it as text."
    )


def _is_empty(rows: pl.LazyFrame, name: str) -> bool:
    import polars as pl

    return bool(_summary(rows.select(pl.col(name).is_null().all())).item())


def _summary(query: pl.LazyFrame) -> pl.DataFrame:
    """Return the result of a query over all rows without holding them in memory."""
    return interrupted_once(lambda: query.collect(engine="streaming"))


def _concatenated(parts: Sequence[pl.LazyFrame], names: Sequence[str]) -> pl.LazyFrame:
    import polars as pl

    return parts[0] if len(parts) == 1 else pl.concat([part.select(names) for part in parts])


# ---- errors


@contextlib.contextmanager
def as_data_error(what: str, *kinds: type[BaseException]) -> Iterator[None]:
    """Turn errors of libraries and of the system into one of ours, without the values that they quote."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except kinds as error:
        if not isinstance(error, Exception):  # a panic, whose message is about the code of polars
            raise DataError(f"{what}: it is damaged. Is it complete?") from None
        message = re.sub(r"`[^`]*`", "a value", str(error).partition("\n\n")[0]).partition("\n")[0]
        raise DataError(f"{what}: {message.strip().rstrip('.')}.{_remedy(message)}") from None


def polars_errors() -> tuple[type[BaseException], ...]:
    """Return what polars may raise; a panic, which damaged files can cause, is no `Exception`."""
    errors = _polars().exceptions
    return errors.PolarsError, errors.PanicException


def _remedy(message: str) -> str:
    for sign, remedy in (("parquet", " Is it a Parquet file, and complete?"), ("end of file", " Is it complete?")):
        if sign in message.lower():
            return remedy
    return ""


def interrupted_once(query: Callable[[], T]) -> T:
    """Run a query so that a single interrupt is raised once.

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
