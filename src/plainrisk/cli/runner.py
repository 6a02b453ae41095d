"""How commands pass rows through a model: read a batch, compute, write, in memory that does not grow.

`row_command` makes a command of a function that defines what is computed for each row. With --output every row is
computed and written, else one row is shown. `table_command` makes one of a function that measures a model on all rows.
Both add the options that such commands share.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from plainrisk._types import Bools
from plainrisk.cli import show, source, tables
from plainrisk.cli.options import Data, Json, Missing, ModelArgument, TableOutput, declared, option, read_options
from plainrisk.cli.rejects import TEXT_IN, Rejects
from plainrisk.data.reader import Kind
from plainrisk.data.remote import is_remote
from plainrisk.errors import DataError
from plainrisk.form import RiskForm
from plainrisk.form.beyond import warn_of_strangers
from plainrisk.model import RiskModel, load
from plainrisk.tables import TableResult

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Measured", "Request", "RowReader", "TableRequest", "Work", "row_command", "table_command"]

T = TypeVar("T")

STDOUT = Path("-")
LOG = logging.getLogger("plainrisk")

MOST_LINES = 10  # features with values that are missing or new, on screen

# The column in which the reader numbers the rows, and the names under which it copies others; no message shows them.
ROW = "row of the data"
COPY = "as written: "
# The use of a column that an option names.
KINDS: Mapping[str, Kind] = {
    "--against": "continuous",
    "--by": "text",
    "--weight": "continuous",
    "--amount": "continuous",
}


@dataclass(frozen=True)
class Request:
    """The options of every command over rows."""

    model: ModelArgument
    data: Data
    output: Path | None = option(
        "Write all rows: .csv, .xlsx, .md, .html, .json, .parquet, .jsonl, .csv.gz, or - for CSV on standard output. "
        "Without it one row is shown.",
        None,
        "--output",
        "-o",
    )
    row: int = option("Which row to show, from 0.", 0, min=0)
    keep: list[str] | None = option("A column to copy next to the results. Repeatable.", metavar="COLUMN")
    rejects: Path | None = option(
        "Set aside rows that cannot be used, and write them there with their errors. Without it, one such row stops "
        "the command.",
        metavar="FILE",
    )
    missing: Missing = None
    json: Json = False


@dataclass(frozen=True)
class Work:
    """What a command computes.

    Attributes
    ----------
    compute : from rows to a result for these rows, which has `columns()` and `to_dict(row)`
    show : prints a result of one row, given the row's number
    types : polars types of columns whose type an empty result does not show
    numbered : whether the number of each row is written beside its results
    chosen : from a result to the rows that are written; None for all
    counts : from a result to its `plainrisk.form.beyond.counts`; None for none
    """

    compute: Callable[[pl.DataFrame], Any]
    show: Callable[[Any, int], None]
    types: Mapping[str, Any] = field(default_factory=dict)
    numbered: bool = False
    chosen: Callable[[Any], Bools] | None = None
    counts: Callable[[Any], Mapping[str, Mapping[str, int]]] | None = None


def row_command(
    options: type | None = None,
    *,
    model_alone: tuple[str, str, Callable[[RiskModel, Request], None]] | None = None,
    elsewhere: Callable[..., None] | None = None,
) -> Callable[[Callable[..., Work]], Callable[..., None]]:
    """Make a command of a function that takes a model, the request, the options and its own parameters.

    Parameters
    ----------
    options : a declaration of `plainrisk.explain.options`, whose fields become options of the command
    model_alone : a flag, its help, and what is done instead with it; then no data are needed
    elsewhere : what is done instead with rows that stay where they are, given the request and the parameters
    """
    flag, about, instead = model_alone or ("", "", None)

    def decorate(make: Callable[..., Work]) -> Callable[..., None]:
        shared, specific = _parameters(Request), _parameters(make)[2 if options is None else 3 :]
        asked = [] if options is None else declared(options)

        def command(**given: Any) -> None:
            request = Request(**{p.name: given[p.name] for p in shared})
            if instead is not None and given[flag]:
                instead(load(request.model), request)
                return
            if request.data is None:
                raise typer.BadParameter(f"DATA is missing. Only --{flag} does without.")
            if elsewhere is not None and is_remote(request.data):
                elsewhere(request, **{p.name: given[p.name] for p in specific})
                return

            def work(model: RiskModel) -> Work:
                arguments = {p.name: given[p.name] for p in specific}
                if options is not None:
                    asked_for = {p.name: given[p.name] for p in asked}
                    arguments["options"] = read_options(options, asked_for, request.missing, model)
                return make(model, request, **arguments)

            _run(request, work)

        parameters = [*shared[:2], *asked, *specific, *shared[2:]]
        if instead is not None:
            parameters[1] = parameters[1].replace(annotation=Annotated[str | None, *get_args(Data)[1:]], default=None)
            kind = Annotated[bool, typer.Option(f"--{flag}", help=about)]
            parameters.insert(2, Parameter(flag, Parameter.KEYWORD_ONLY, default=False, annotation=kind))
        return _named(command, make, parameters)

    return decorate


@dataclass(frozen=True)
class TableRequest:
    """The options of every command that measures a model on rows."""

    model: ModelArgument
    data: Data
    output: TableOutput = None
    missing: Missing = None
    json: Json = False


@dataclass(frozen=True)
class Measured:
    """What such a command found.

    Attributes
    ----------
    facts : for --json, beside the names of model and data
    columns : returns the table for --output
    show : prints what was found
    file : another file that was written
    exit_code : by which the command ends
    """

    facts: Mapping[str, Any]
    columns: Callable[[], Mapping[str, Sequence[Any]]]
    show: Callable[[], None]
    file: Path | None = None
    exit_code: int = 0

    @classmethod
    def of(cls, result: TableResult, show: Callable[[Any], None], **facts: Any) -> Measured:
        """Return what is to be done with a result of the library; `facts` are more of them."""
        return cls({**facts, **result.to_dict()}, result.columns, lambda: show(result))


def table_command(make: Callable[..., Measured]) -> Callable[..., None]:
    """Make a command of a function that takes a model, the request and parameters of its own."""
    shared, specific = _parameters(TableRequest), _parameters(make)[2:]

    def command(**given: Any) -> None:
        request = TableRequest(**{p.name: given.pop(p.name) for p in shared})
        tables.check_table(request.output)
        measured = make(load(request.model), request, **given)
        if request.output is not None:
            tables.write_table(measured.columns(), request.output)
        result = {"model": str(request.model), "data": request.data, **measured.facts}
        show.result(result, request.json, lambda _: measured.show())
        show.wrote(request.output)
        show.wrote(measured.file)
        if measured.exit_code:
            raise typer.Exit(measured.exit_code)

    return _named(command, make, [*shared[:2], *specific, *shared[2:]])


def _named(command: Callable[..., None], make: Callable[..., Any], parameters: list[Parameter]) -> Callable[..., None]:
    command.__name__, command.__doc__ = make.__name__, make.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    return [
        p.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints.get(p.name, Any))
        for p in signature(function).parameters.values()
    ]


def _run(request: Request, make: Callable[[RiskModel], Work]) -> None:
    """Show one row, or write all rows and report what was done."""
    start = time.perf_counter()
    to_stdout = request.output == STDOUT
    if to_stdout and request.json:
        raise DataError("-o - writes the rows to standard output, where --json would print, too. Leave out one.")
    tables.check_table(None if to_stdout else request.output)
    _check_rejects(request)
    model = load(request.model)
    keep, set_aside = dict.fromkeys(request.keep or (), "--keep"), request.rejects is not None
    reader = RowReader(request.data, [model.form_], request.missing, keep, note_texts=set_aside)
    LOG.info("%s: %s rows", request.data, reader.table.n_rows)
    work = make(model)
    result: dict[str, Any] = {"model": str(request.model), "data": request.data}
    if request.output is None:
        answer = work.compute(reader.row(request.row))
        result |= {"row": request.row, **answer.to_dict(0)}
        show.result(result, request.json, lambda _: work.show(answer, request.row))
        return
    with tables.standard_output() if to_stdout else contextlib.nullcontext(request.output) as output:
        rejects = Rejects(model.form_, ROW, reader.kept) if set_aside else None
        result |= {"file": str(request.output), **_write(reader, work, output, rejects)}
        if rejects is not None and request.rejects is not None:
            rejects.write(request.rejects, reader.kept(reader.lazy.head(0).collect()))
            result["rejects"] = str(request.rejects)
    result["seconds"] = round(time.perf_counter() - start, 3)
    tell = show.hint if to_stdout else show.out().print
    show.result(result, request.json, lambda _: tell(_written(result)))


def _check_rejects(request: Request) -> None:
    """Raise before any work starts if rows could not be set aside."""
    if request.rejects is None:
        return
    if request.output is None:
        raise DataError("--rejects sets rows aside where all are written. Add -o FILE.")
    if request.rejects == request.output:
        raise DataError(f"{request.rejects}: --rejects and -o name the same file. Name two.")
    tables.check_table(request.rejects)


def _written(result: dict[str, Any]) -> str:
    aside = f" (set aside in {result['rejects']})" if result["unusable"] and "rejects" in result else ""
    unusable = f"{result['unusable']:,} unusable{aside}"
    counts = f"{result['rows']:,} rows read, {unusable}, {result['scored']:,} scored"
    some = "" if result["written"] == result["scored"] else f", {result['written']:,} written"
    mean = "" if result["mean_risk"] is None else f", mean risk {result['mean_risk']:.4f}"
    values = [f"{name}: {_in_words(own)}" for name, own in result.get("values", {}).items()]
    more = [f"... and {len(values) - MOST_LINES:,} more features (--json has all)"] if len(values) > MOST_LINES else []
    first = f"{counts}{some}{mean}, {result['seconds']:.1f} s: wrote {result['file']}"
    return "\n".join([first, *values[:MOST_LINES], *more])


def _in_words(counts: Mapping[str, int]) -> str:
    """Return how many values are unusual.

    >>> _in_words({"missing": 1200, "out_of_range": 3})
    '1,200 missing, 3 out of range'
    """
    return ", ".join(f"{n:,} {what.replace('_', ' ')}" for what, n in counts.items())


def _write(reader: RowReader, work: Work, output: Path, rejects: Rejects | None) -> dict[str, Any]:
    """Compute all rows, write their results next to the columns to copy, and return the number of rows."""
    import polars as pl

    types = {**({"row": pl.Int64()} if work.numbered else {}), **_types(work, reader)}
    for name in reader.keep:
        if name in types:
            raise DataError(f"--keep {name}: a new column has this name. Rename the old one first.")
    done: list[tuple[int, int, float]] = []
    counted: list[Mapping[str, Mapping[str, int]]] = []

    def compute(batch: pl.DataFrame) -> pl.DataFrame:
        if rejects is None:
            answers = work.compute(batch)
        else:
            batch, answers = rejects.computed(batch, work.compute)
        columns = {**({"row": batch[ROW]} if work.numbered else {}), **answers.columns()}
        # polars takes texts from a list, not from an array of objects.
        new = [pl.Series(n, list(columns[n]) if t == pl.String() else columns[n], dtype=t) for n, t in types.items()]
        table = pl.DataFrame([*reader.kept(batch), *new])
        if work.counts is not None:
            counted.append(work.counts(answers))
        if work.chosen is not None:
            table = table.filter(pl.Series(work.chosen(answers)))
        done.append((batch.height, table.height, float(table["risk"].sum())))
        return table

    reader.write(output, compute, types)
    rows, scored, written = reader.table.n_rows, sum(n for n, _, _ in done), sum(n for _, n, _ in done)
    # Which rows fall into which batch differs from run to run, and so do the last digits of a sum.
    mean = round(math.fsum(risk for _, _, risk in done) / written, 12) if written else None
    # The rows that were counted as the file was checked, and those that came as it was read.
    facts = {"rows": rows, "unusable": rows - scored, "scored": scored, "written": written, "mean_risk": mean}
    if work.counts is None:
        return facts
    values = _summed(counted)
    warn_of_strangers(values, scored)
    return {**facts, "values": values}


def _summed(counted: Sequence[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Add up the counts of batches."""
    total: dict[str, Counter[str]] = {}
    for batch in counted:
        for name, counts in batch.items():
            total.setdefault(name, Counter()).update(counts)
    return {name: dict(sorted(total[name].items())) for name in sorted(total)}


def _types(work: Work, reader: RowReader) -> dict[str, Any]:
    """Return the polars type of every column that is computed, from the columns of no rows."""
    import numpy as np
    import polars as pl

    by_kind = {"f": pl.Float64(), "i": pl.Int64(), "u": pl.Int64(), "b": pl.Boolean(), "O": pl.String()}
    empty = work.compute(reader.lazy.head(0).collect()).columns()
    return {name: work.types.get(name, by_kind[np.asarray(values).dtype.kind]) for name, values in empty.items()}


class RowReader:
    """Rows of a file or a data set: the columns that some forms read, and those to keep.

    Attributes
    ----------
    lazy : the rows, numbered in the column `ROW`
    keep : columns to copy next to the results, each with the option that names it; of --keep as they are written
    note_texts : whether text where a number is needed is noted in the column `TEXT_IN`; else it is an error
    """

    def __init__(
        self,
        data: str,
        forms: Sequence[RiskForm],
        missing: Sequence[str] | None,
        keep: Mapping[str, str] | None = None,
        keep_if_present: str | None = None,
        *,
        note_texts: bool = False,
    ) -> None:
        self.data, asked = data, keep or {}
        self._copies = {COPY + name: name for name, option in asked.items() if option == "--keep"}
        outcome = next((name for name, option in asked.items() if option == "--column"), keep_if_present)
        asked_kinds = {name: KINDS[option] for name, option in asked.items() if option in KINDS}
        kinds = asked_kinds | source.kinds_of_forms(forms, outcome)
        self.table = source.scan_source(data, missing, kinds, copies=self._copies)
        names = self.table.lazy.collect_schema().names()
        self.keep = {**asked, **({keep_if_present: ""} if keep_if_present in names else {})}
        self.lazy = self._needed(forms, names, note_texts)
        self._error: BaseException | None = None

    def _needed(self, forms: Sequence[RiskForm], names: Sequence[str], note_texts: bool) -> pl.LazyFrame:
        """Take the required columns, or raise an error if one is missing or contains text."""
        features = [(name, form.schema.features[name].written) for form in forms for name in form.features]
        source.require_columns(self.data, names, {**{name: "feature" for name, _ in features}, **self.keep})
        numbers = list(dict.fromkeys(name for name, kind in features if kind == "continuous"))
        needed = dict.fromkeys([*map(self._source, self.keep), *(name for name, _ in features)])
        if note_texts:
            self.table, needed[TEXT_IN] = self.table.noting_texts(numbers, TEXT_IN), None
        else:
            self.table.check_numbers(numbers)
        return self.table.lazy.select(list(needed)).with_row_index(ROW)

    def kept(self, batch: pl.DataFrame) -> list[pl.Series]:
        """Return the columns to copy next to the results."""
        return [batch[self._source(name)].alias(name) for name in self.keep]

    def _source(self, name: str) -> str:
        return COPY + name if COPY + name in self._copies else name

    def row(self, number: int) -> pl.DataFrame:
        """Return one row, counted from 0."""
        if number >= self.table.n_rows:
            raise DataError(
                f"{self.data}: there is no row {number}. It has {self.table.n_rows:,} rows; the first is 0."
            )
        with self.table.reading():
            return self.lazy.slice(number, 1).collect()

    def write(self, output: Path, compute: Callable[[pl.DataFrame], pl.DataFrame], types: Mapping[str, Any]) -> None:
        """Write the results of every batch, with the columns to copy and those of `types`.

        polars computes several batches at a time.
        """
        file_types = self.lazy.collect_schema()
        schema = {**{name: file_types[self._source(name)] for name in self.keep}, **types}
        with self._watched(compute) as watched:
            tables.write_lazy(self.lazy.map_batches(watched, schema=schema, streamable=True), output, self.data)

    def each(self, add: Callable[[pl.DataFrame], Any]) -> None:
        """Hand every batch to `add`, in the order of the rows."""
        with self.table.reading(), self._watched(add) as watched:
            for batch in self.lazy.collect_batches(maintain_order=True):
                watched(batch)

    @contextlib.contextmanager
    def _watched(self, compute: Callable[[pl.DataFrame], T]) -> Iterator[Callable[[pl.DataFrame], T]]:
        """Show how many rows were computed; if a batch fails, raise its error with the place in the data."""

        def watched(batch: pl.DataFrame) -> T:
            try:
                answers = compute(batch)
            except DataError as error:
                # A message of the model counts rows from the start of the batch.
                self._error = DataError(f"{error} (Rows are counted from {self.table.where(batch[ROW][0])}.)")
                raise
            except BaseException as error:
                self._error = error
                raise
            bar.advance(batch.height)
            return answers

        with show.progress("Rows", self.table.n_rows) as bar:
            try:
                yield watched
            except BaseException:
                # polars may have wrapped it in an error of its own.
                if self._error is not None:
                    raise self._error from None
                raise
