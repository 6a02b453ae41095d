"""One SELECT, in several dialects of SQL.

Steps are common table expressions, one per depth, so that no expression is deep. The SQL uses only CASE, arithmetic,
comparisons, CAST, ABS and EXP, and converts missing values to NULL first, because engines treat NaN differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plainrisk.errors import DataError, did_you_mean
from plainrisk.export import expression as ex
from plainrisk.export.code import digits, side_of
from plainrisk.export.self_test import SelfTest

__all__ = ["DIALECTS", "Dialect", "dialect_of", "sql_query", "sql_test", "table_name"]


def _with_exponent(value: float) -> str:
    """A number with an exponent, which makes it a double where 0.1 is a decimal."""
    text = digits(value)
    return text if "e" in text else f"{text}e0"


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    """A text where the backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r") + "'"


@dataclass(frozen=True)
class Dialect:
    """The differences between SQL engines.

    Attributes
    ----------
    double, text : the types
    is_nan : the condition that a number is NaN; empty where no column can hold NaN
    number : how a double is written
    string : how a text is written
    quote : how a name is written
    read : how a column of text is read
    no_number : the condition that a value is not a number, where columns have no types
    fence : the end of a step's query, which keeps the planner from copying its expressions into the next
    materialized : the word after AS, for the same purpose
    largest : the largest of several values
    """

    double: str = "DOUBLE PRECISION"
    text: str = "VARCHAR"
    is_nan: str = ""
    number: Callable[[float], str] = _with_exponent
    string: Callable[[str], str] = _doubled
    quote: Callable[[str], str] = lambda name: '"' + name.replace('"', '""') + '"'
    read: str = "CAST({} AS {})"
    no_number: str = ""
    fence: str = ""
    materialized: str = ""
    largest: Callable[[Sequence[str]], str] = lambda values: f"GREATEST({', '.join(values)})"


DIALECTS: Mapping[str, Dialect] = {
    "duckdb": Dialect("DOUBLE", is_nan="isnan({})"),
    "postgres": Dialect(
        text="TEXT", is_nan="{} = 'NaN'::float8", number=lambda v: f"{digits(v)}::float8", fence=" OFFSET 0"
    ),
    "sqlite": Dialect(
        "REAL",
        "TEXT",
        number=digits,
        materialized="MATERIALIZED ",
        no_number="typeof({}) IN ('text', 'blob')",
        largest=lambda values: f"MAX({', '.join(values)})",
    ),
    "spark": Dialect(
        "DOUBLE", "STRING", "isnan({})", string=_escaped, quote=lambda name: f"`{name.replace('`', '``')}`"
    ),
    "snowflake": Dialect(
        "DOUBLE",
        is_nan="{} = 'NaN'::DOUBLE",
        number=lambda v: f"'{digits(v)}'::DOUBLE",
        string=lambda text: _doubled(text.replace("\\", "\\\\")),
    ),
    "bigquery": Dialect(
        "FLOAT64",
        "STRING",
        "IS_NAN({})",
        number=digits,
        string=_escaped,
        quote=lambda name: "`" + _escaped(name)[1:-1].replace("`", "\\`") + "`",
    ),
    "tsql": Dialect(
        "FLOAT",
        "NVARCHAR(MAX)",
        string=lambda text: f"N{_doubled(text)}",
        quote=lambda name: f"[{name.replace(']', ']]')}]",
        read="CAST({} AS {}) COLLATE Latin1_General_BIN2",
        # GREATEST came with SQL Server 2022.
        largest=lambda values: f"(SELECT MAX(v) FROM (VALUES {', '.join(f'({v})' for v in values)}) AS listed(v))",
    ),
    "redshift": Dialect(
        text="VARCHAR(MAX)",
        is_nan="{} = 'NaN'::float8",
        number=lambda v: f"'{digits(v)}'::float8",
        string=lambda text: _doubled(text.replace("\\", "\\\\")),
    ),
}


def dialect_of(name: str | None) -> Dialect:
    """Return a dialect by name."""
    if name is None or name not in DIALECTS:
        raise DataError(f"export: dialect must be one of {', '.join(DIALECTS)}.{did_you_mean(name, DIALECTS)}")
    return DIALECTS[name]


class _Printer(ex.Printer):
    """Prints expressions as SQL."""

    SYMBOLS: Mapping[str, str] = {"==": "=", "and": "AND", "or": "OR"}

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def number(self, e: ex.Number) -> str:
        text = self.dialect.number(abs(e.value))
        return text if e.value >= 0 else f"(-{text})"

    def text(self, e: ex.Text) -> str:
        return self.dialect.string(e.value)

    def clip(self, e: ex.Clip) -> str:
        x, low, high = self.show(e.x), self.show(ex.Number(e.low)), self.show(ex.Number(e.high))
        floor = "" if e.low == float("-inf") else f"WHEN {x} < {low} THEN {low} "
        return f"CASE {floor}WHEN {x} > {high} THEN {high} ELSE {x} END"

    def if_(self, e: ex.If) -> str:
        """One of two values; chains are flat."""
        whens: list[str] = []
        last: ex.Expr = e
        while isinstance(last, ex.If):
            whens.append(f"WHEN {self.show(last.condition)} THEN {self.show(last.then)}")
            last = last.other
        return f"CASE {' '.join(whens)} ELSE {self.show(last)} END"

    def cells(self, e: ex.Cells) -> str:
        whens = [] if e.missing is None else [f"WHEN {e.x.id} IS NULL THEN {self.show(e.missing)}"]
        for cut, value in zip(e.cuts, e.values, strict=False):
            closed, end = side_of(cut, e.open)
            less = f"{e.x.id} {'<=' if closed else '<'} {self.show(ex.Number(end))}"
            whens.append(f"WHEN {less} THEN {self.show(value)}")
        return f"CASE {' '.join(whens)} ELSE {self.show(e.values[-1])} END" if whens else self.show(e.values[-1])

    def labels(self, e: ex.Labels) -> str:
        whens = [f"WHEN {e.x.id} IS NULL THEN {self.show(e.missing)}"]
        for label, value in e.values.items():
            spelled = ", ".join(self.dialect.string(s) for s in _spellings(label, e.values))
            whens.append(f"WHEN {e.x.id} IN ({spelled}) THEN {self.show(value)}")
        return f"CASE {' '.join(whens)} ELSE {self.show(e.unseen)} END"

    def table(self, e: ex.Table) -> str:
        """A table by index; indices are whole numbers."""
        index = self.show(e.index)
        whens = [f"WHEN {n} THEN {self.show(v)}" for n, v in enumerate(e.values)]
        return f"CASE CAST({index} AS INTEGER) {' '.join(whens)} END"

    def call(self, e: ex.Call) -> str:
        if e.function == "max" and len(e.values) > 1:
            return self.dialect.largest([self.show(v) for v in e.values])
        return super().call(e)

    def position(self, e: ex.Position) -> str:
        """The first that is equal, in a flat CASE."""
        whens = [f"WHEN {v.id} = {e.x.id} THEN {self.show(ex.Number(float(n)))}" for n, v in enumerate(e.values[:-1])]
        last = self.show(ex.Number(float(len(e.values) - 1)))
        return f"CASE {' '.join(whens)} ELSE {last} END" if whens else last

    def answer(self, o: ex.Output) -> str:
        """An output, or NULL if it does not exist or the row has a problem."""
        there = f" AND {o.there} >= 0" if o.there else ""
        value = self.show(ex.Table(ex.Name(o.step), tuple(map(ex.Text, o.words)))) if o.words else o.step
        return f"CASE WHEN problem IS NULL{there} THEN {value} END"


def _spellings(label: str, labels: Mapping[str, ex.Expr]) -> list[str]:
    """Return how CAST may write a category: the number 2 also as 2.0, True also as true."""
    more = {f"{label}.0"} if re.fullmatch(r"-?\d+", label) else {label.lower()} if label in ("True", "False") else set()
    return [label, *(s for s in sorted(more) if s not in labels)]


# ---- the query


def sql_query(program: ex.Program, dialect_name: str | None, table: str, keep: Sequence[str]) -> str:
    """Return the SELECT over a table, with the columns to keep in front; it begins with a line of facts."""
    dialect = dialect_of(dialect_name)
    _refuse_names(program, keep)
    lines = ["WITH", *_stages(program, dialect, table_name(table, dialect), keep)]
    return "\n".join([*_head(program), *lines, *_answer(program, dialect, keep)]) + ";\n"


def table_name(table: str, dialect: Dialect) -> str:
    """Return a table name as SQL with quoted parts: schema.table; a part in double quotes may contain dots.

    >>> table_name('risk.applicants', DIALECTS["duckdb"]), table_name('"a.b"', DIALECTS["duckdb"])
    ('"risk"."applicants"', '"a.b"')
    """
    parts = re.findall(r'(?:^|\.)(?:"((?:[^"]|"")+)"|([^".]+))(?=\.|$)', table)
    plain = [quoted.replace('""', '"') if quoted else name for quoted, name in parts]
    length = sum(2 + len(quoted) if quoted else len(name) for quoted, name in parts) + len(parts) - 1
    if not 1 <= len(parts) <= 3 or length != len(table):
        raise DataError(
            f"export: table {table!r} must be up to three names with dots between them (risk.applicants); write a name "
            'that holds a dot in double quotes ("a.b").'
        )
    return ".".join(map(dialect.quote, plain))


def _refuse_names(program: ex.Program, keep: Sequence[str]) -> None:
    """Refuse names that differ only in case, which most engines treat as one column."""
    owner_of = {name.lower(): f"the answer {name!r}" for name in program.answer_names}
    for name in keep:
        other = owner_of.get(name.lower())
        if other is not None:
            raise DataError(f"export: keep has {name!r}, which is also {other}. Rename the column in a view.")
        owner_of[name.lower()] = f"kept as {name!r}"
    features: dict[str, str] = {}
    for name in (*(i.feature for i in program.inputs), *keep):
        other = features.setdefault(name.lower(), name)
        if other != name:
            raise DataError(
                f"export: SQL takes {other!r} and {name!r} for one column, since they differ in case only. Rename one "
                "of them, or export another target (python, javascript, c)."
            )


def _head(program: ex.Program) -> Iterator[str]:
    ex.refuse_characters(program, "\0", "SQL")
    yield f"-- {program.head}"
    yield "-- Risk, contributions in probability against the typical applicant, and reasons against the best levels."


def _stages(program: ex.Program, dialect: Dialect, source: str, keep: Sequence[str]) -> Iterator[str]:
    """Yield the common table expressions: stage 0 reads the columns, each further one has the steps of one depth."""
    printer = _Printer(dialect)
    depths = _by_depth(program.steps, program.inputs)
    wanted = {id for o in program.outputs for id in (o.step, o.there)}
    later = [wanted]
    for steps in reversed(depths):
        later.append(later[-1].union(*(_names(step.value) for step in steps)))
    later.reverse()
    kept = [f"k{j}" for j in range(len(keep))]
    columns = [*zip((f"t.{dialect.quote(name)}" for name in keep), kept, strict=True), *_reads(program, dialect)]
    yield _stage(0, [], columns, f"{source} AS t", dialect)
    carried = [i.id for i in program.inputs]
    for n, steps in enumerate(depths, 1):
        carried = [id for id in carried if id in later[n] or id in kept]
        columns = [(printer.show(step.value), step.id) for step in steps if step.id in later[n]]
        before = [*kept, "problem", *carried] if n > 1 else [*kept, *carried]
        columns += [(_problem(program, printer), "problem")] if n == 1 else []
        yield _stage(n, before, columns, f"stage{n - 1}", dialect)
        carried += [step.id for step in steps]
    yield f"answered AS (SELECT * FROM stage{len(depths)})"


def _stage(n: int, before: Sequence[str], columns: Sequence[tuple[str, str]], source: str, dialect: Dialect) -> str:
    lines = [*before, *(f"{value} AS {id}" for value, id in columns)]
    body = ",\n  ".join(lines)
    return f"stage{n} AS {dialect.materialized}(SELECT\n  {body}\n  FROM {source}{dialect.fence}),"


def _by_depth(steps: Sequence[ex.Step], inputs: Sequence[ex.Input]) -> list[list[ex.Step]]:
    """Sort steps by the number of other steps that they depend on."""
    depth = {i.id: 0 for i in inputs}
    layers: list[list[ex.Step]] = []
    for step in steps:
        depth[step.id] = 1 + max((depth[id] for id in _names(step.value)), default=0)
        layers += [[] for _ in range(depth[step.id] - len(layers))]
        layers[depth[step.id] - 1].append(step)
    return layers


def _names(e: ex.Expr) -> set[str]:
    return {part.id for part in ex.walk(e) if isinstance(part, ex.Name)}


def _reads(program: ex.Program, dialect: Dialect) -> Iterator[tuple[str, str]]:
    for i in program.inputs:
        # Qualified: SQLite takes a misspelled quoted name for a text.
        column = f"t.{dialect.quote(i.feature)}"
        if i.is_text:
            yield dialect.read.format(column, dialect.text), i.id
            continue
        value = f"CAST({column} AS {dialect.double})"
        yield f"CASE WHEN {dialect.is_nan.format(value)} THEN NULL ELSE {value} END" if dialect.is_nan else value, i.id
        if dialect.no_number:
            yield dialect.no_number.format(column), f"no_{i.id}"


def _problem(program: ex.Program, printer: _Printer) -> str:
    """Return the text of a row's first problem, or NULL."""
    checks = [(printer.show(c.condition), c.message) for c in program.checks]
    if printer.dialect.no_number:
        numbers = [i for i in program.inputs if not i.is_text]
        checks = [(f"no_{i.id}", f"feature {i.feature!r} must be a number") for i in numbers] + checks
    text = printer.dialect.text
    if not checks:
        return f"CAST(NULL AS {text})"
    whens = " ".join(f"WHEN {condition} THEN {printer.dialect.string(message)}" for condition, message in checks)
    return f"CASE {whens} END"


def _answer(program: ex.Program, dialect: Dialect, keep: Sequence[str]) -> Iterator[str]:
    """Yield the last SELECT; if there is a problem, all answers are NULL."""
    printer = _Printer(dialect)
    columns = [f"k{j} AS {dialect.quote(name)}" for j, name in enumerate(keep)]
    columns += [f"{printer.answer(o)} AS {o.name}" for o in program.outputs]
    body = ",\n  ".join([*columns, "problem"])
    yield f"SELECT\n  {body}\nFROM answered"


# ---- the self-test


def sql_test(program: ex.Program, dialect_name: str | None, test: SelfTest) -> str:
    """Return a SELECT that scores the rows of the self-test and counts the wrong answers."""
    dialect = dialect_of(dialect_name)
    printer = _Printer(dialect)
    rows = [
        ", ".join([f"{n} AS n", *(_literal(v, i, dialect) for v, i in zip(row, program.inputs, strict=True))])
        for n, row in enumerate(test.rows)
    ]
    expected = []
    for n, answer in enumerate(test.answers):
        cells = [f"{_expected(v, o, printer)} AS {o.name}" for v, o in zip(answer, program.outputs, strict=True)]
        expected.append(", ".join([f"{n} AS n", *cells]))
    wrong = [_differs(o, dialect) for o in program.outputs]
    lines = [
        *_head(program),
        "-- Self-test: scores the rows below and counts those whose answer is not the model's; wrong must be 0.",
        "WITH",
        f"applicants AS (SELECT {' UNION ALL SELECT '.join(rows)}),",
        f"expected AS (SELECT {' UNION ALL SELECT '.join(expected)}),",
        *_stages(program, dialect, "applicants", ["n"]),
        ", answer AS (",
        *_answer(program, dialect, ["n"]),
        ")",
        "SELECT COUNT(*) AS tested, SUM(CASE WHEN " + "\n  OR ".join(wrong) + "\n  THEN 1 ELSE 0 END) AS wrong",
        f"FROM expected JOIN answer ON answer.{dialect.quote('n')} = expected.n",
    ]
    return "\n".join(lines) + ";\n"


def _expected(value: float | str | None, o: ex.Output, printer: _Printer) -> str:
    if o.words:
        return _text(value, printer.dialect)
    number = "NULL" if value is None else printer.show(ex.Number(float(value)))
    return f"CAST({number} AS {printer.dialect.double})"


def _differs(o: ex.Output, dialect: Dialect) -> str:
    """The condition that an answer differs from the expected one; comparisons with NULL are false."""
    a, b = f"answer.{o.name}", f"expected.{o.name}"
    if o.words:
        none = dialect.string("")
        return f"COALESCE({a}, {none}) <> COALESCE({b}, {none})"
    missing = [f"(CASE WHEN {x} IS NULL THEN 1 ELSE 0 END)" for x in (a, b)]
    return f"{missing[0]} <> {missing[1]} OR ABS({a} - {b}) > 1e-12"


def _literal(value: float | str | None, i: ex.Input, dialect: Dialect) -> str:
    if i.is_text:
        return f"{_text(value, dialect)} AS {dialect.quote(i.feature)}"
    number = "NULL" if value is None else _Printer(dialect).show(ex.Number(float(value)))
    return f"CAST({number} AS {dialect.double}) AS {dialect.quote(i.feature)}"


def _text(value: object, dialect: Dialect) -> str:
    return f"CAST({'NULL' if value is None else dialect.string(str(value))} AS {dialect.text})"
