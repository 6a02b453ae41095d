"""Running an export if its runtime is available, to compare its answers with the model's."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plainrisk.errors import DataError, MissingExtraError, missing_extra
from plainrisk.export.c import c_rows
from plainrisk.export.expression import Program
from plainrisk.export.onnx import group_of
from plainrisk.export.self_test import Row
from plainrisk.export.sql import dialect_of, table_name
from plainrisk.export.xlsx import ROWS_SHEET
from plainrisk.leftovers import temporary_folder

__all__ = ["Answer", "Engine", "Job", "complete", "engine_of", "find_package", "find_tool", "rows_by_name", "write_csv"]

Answer = dict[str, Any]  # by the names of the program's answers; None where there is none


class Job(NamedTuple):
    """An export and the rows to run it on."""

    path: Path
    program: Program
    rows: Sequence[Row]


# An engine runs several exports at once, since some engines start slowly.
Engine = Callable[[Sequence[Job]], list[list[Answer]]]
SECONDS = 600  # for a runtime to answer


def engine_of(facts: Mapping[str, Any]) -> tuple[str, Engine]:
    """Return the name of the runtime that an export needs, and the function that runs it."""
    if facts["target"] != "sql":
        return _ENGINES[facts["target"]]
    name = facts["dialect"]
    return _SQL.get(name, (f"no {name}: parsed by sqlglot", _each(_parse)))


def _each(run: Callable[[Path, Program, Sequence[Row]], list[Answer]]) -> Engine:
    """Return the engine that runs several exports one after the other."""
    return lambda jobs: [run(*job) for job in jobs]


def find_tool(*names: str) -> str:
    """Return the path of a program, or raise if it is missing."""
    for name in names:
        if path := shutil.which(name):
            return path
    raise MissingExtraError(f"{names[0]} is needed to run this export and is not installed.")


def find_package(name: str, extra: str = "export") -> None:
    """Raise if a Python package is missing."""
    if importlib.util.find_spec(name) is None:
        raise missing_extra(name, extra)


def _output(command: Sequence[str], text: str, **more: Any) -> str:
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False, **more
    )
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise DataError(f"verify_export: {Path(command[0]).name} failed: {last[:300]}")
    return str(done.stdout)


# ---- plain code

_PYTHON = """
import json, runpy, sys
module = runpy.run_path(sys.argv[1], run_name="export")
def answer(row):
    try:
        return module["score"](row)
    except ValueError as error:
        return {"problem": str(error)}
json.dump([answer(row) for row in json.load(sys.stdin)], sys.stdout)
"""

_NODE = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { score } = await import(pathToFileURL(process.argv[1]));
const answer = (row) => { try { return score(row); } catch (error) { return { problem: error.message }; } };
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8"), revive).map(answer)));
function revive(key, value) {
  return value === "plainriskinf" ? Infinity : value === "plainrisk-inf" ? -Infinity : value;
}
"""


def rows_by_name(program: Program, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return rows with the names of their features."""
    return [{i.feature: value for i, value in zip(program.inputs, row, strict=True)} for row in rows]


def _python(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
    out = _output([sys.executable, "-I", "-c", _PYTHON, str(path)], json.dumps(rows_by_name(program, rows)))
    return [complete(program, answer) for answer in json.loads(out)]


def _javascript(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
    # JSON has no infinity.
    given = [[f"plainrisk{v}" if v in (math.inf, -math.inf) else v for v in row] for row in rows]
    text = json.dumps(rows_by_name(program, given))
    out = _output([find_tool("node"), "--input-type=module", "-e", _NODE, str(path.resolve())], text)
    return [complete(program, answer) for answer in json.loads(out)]


def complete(program: Program, answer: Mapping[str, Any]) -> Answer:
    """Return an answer with None for what it lacks."""
    return {name: answer.get(name) for name in program.answer_names}


_MAIN = """#include "export.c"
{rows}
static void text(const char *x) {{
  for (; x && *x; x++) printf("%02x", (unsigned char)*x);
  printf(x ? "! " : "- ");
}}
int main(void) {{
  for (int n = 0; n < {count}; n++) {{
    plainrisk_answer a;
    int problem = plainrisk_score(&rows[n], &a);
    printf("%d ", problem);
    if (!problem) {{ {prints} }}
    printf("\\n");
  }}
  return 0;
}}
"""


def _c(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
    """Compile the code and run it with a main function that contains the rows; a crash ends only that process."""
    prints = " ".join(f"text(a.{o.name});" if o.words else f'printf("%.17g ", a.{o.name});' for o in program.outputs)
    main = _MAIN.format(rows=c_rows(program, rows), count=len(rows), prints=prints)
    with temporary_folder() as folder:
        shutil.copy(path, Path(folder, "export.c"))
        Path(folder, "main.c").write_text(main, encoding="ascii")
        binary = str(Path(folder, "main"))
        _output([find_tool("cc", "gcc", "clang"), "-ffp-contract=off", "-o", binary, f"{folder}/main.c", "-lm"], "")
        lines = _output([binary], "").splitlines()
    answers = []
    for problem, *values in map(str.split, lines):
        answer: dict[str, Any] = {} if problem == "0" else {"problem": program.checks[int(problem) - 1].message}
        for o, value in zip(program.outputs, values, strict=False):
            answer[o.name] = _text_of(value) if o.words else _or_none(float(value))
        answers.append(complete(program, answer))
    return answers


def _text_of(value: str) -> str | None:
    """Read a text as the main function writes it: in hexadecimal digits, since it may hold spaces and line breaks."""
    return None if value == "-" else bytes.fromhex(value[:-1]).decode("utf-8", "surrogatepass")


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


# ---- SQL


def _columns(program: Program) -> list[tuple[str, bool]]:
    """The columns of the table that a query reads: name, and whether it is text."""
    kept = [(name, False) for name in program.facts["keep"]]
    return kept + [(i.feature, i.is_text) for i in program.inputs if i.feature not in program.facts["keep"]]


def _table_rows(program: Program, rows: Sequence[Row]) -> list[list[Any]]:
    at = {i.feature: j for j, i in enumerate(program.inputs)}
    return [[row[at[name]] if name in at else None for name, _ in _columns(program)] for row in rows]


def _create(program: Program, dialect_name: str, word: str) -> str:
    dialect = dialect_of(dialect_name)
    columns = [f"{dialect.quote(n)} {dialect.text if is_text else dialect.double}" for n, is_text in _columns(program)]
    return f"{word} {table_name(program.facts['table'], dialect)} ({', '.join(columns)})"


def _in_memory(dialect_name: str, connect: Callable[[], Any]) -> Engine:
    """Return the engine that makes the table in a database of its own and runs the query there."""

    def run(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
        table = table_name(program.facts["table"], dialect_of(dialect_name))
        marks = ", ".join("?" for _ in _columns(program))
        with contextlib.closing(connect()) as connection:
            connection.execute(_create(program, dialect_name, "CREATE TABLE"))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", _table_rows(program, rows))
            result = connection.execute(path.read_text(encoding="utf-8"))
            names = [column[0] for column in result.description]
            return [complete(program, dict(zip(names, row, strict=True))) for row in result.fetchall()]

    return _each(run)


def _duckdb() -> Any:
    find_package("duckdb", "dev")
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")  # rows stay in order
    return connection


def _postgres(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
    """Run a query by psql, on the server that its variables (PGHOST, PGPORT, PGUSER ...) name."""
    dialect = dialect_of("postgres")

    def literal(value: Any, is_text: bool) -> str:
        text = "NULL" if value is None else dialect.string(str(value))
        return f"CAST({text} AS {dialect.text if is_text else dialect.double})"

    kinds = [is_text for _, is_text in _columns(program)]
    values = ",\n".join(f"({', '.join(map(literal, row, kinds))})" for row in _table_rows(program, rows))
    query = path.read_text(encoding="utf-8").rstrip().rstrip(";")
    script = (
        f"{_create(program, 'postgres', 'CREATE TEMPORARY TABLE')};\n"
        f"INSERT INTO {table_name(program.facts['table'], dialect)} VALUES {values};\n"
        f"SELECT row_to_json(answers) FROM (\n{query}\n) AS answers;\n"
    )
    environment = {**os.environ, "PGCLIENTENCODING": "UTF8", "PGOPTIONS": "-c client_min_messages=error"}
    command = [find_tool("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"]
    out = _output(command, script, env=environment)
    return [complete(program, json.loads(line)) for line in out.split("\n") if line]


def _parse(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
    """Parse a query in a dialect that no engine here runs; there are no answers."""
    find_package("sqlglot")
    import sqlglot

    try:
        sqlglot.parse_one(path.read_text(encoding="utf-8"), read=program.facts["dialect"])
    except sqlglot.errors.ParseError as error:
        raise DataError(f"verify_export: {path} is not valid SQL: {str(error).splitlines()[0][:200]}") from None
    return []


# ---- ONNX


def _onnx(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
    find_package("onnxruntime", "dev")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {}
    for i, values in zip(program.inputs, zip(*rows, strict=True), strict=True):
        none = "" if i.is_text else math.nan
        column = np.array([none if v is None else v for v in values], dtype=object if i.is_text else np.float64)
        feed[i.feature] = column[:, None]
    names = [output.name for output in session.get_outputs()]
    answer = dict(zip(names, session.run(names, feed), strict=True))
    answers = []
    for n in range(len(rows)):
        used: dict[str, int] = {}
        answer_of_row: dict[str, Any] = {"problem": answer["problem"][n, 0] or None}
        for o in program.outputs:
            group = group_of(o.name)
            value = answer[group][n, used.setdefault(group, 0)]
            used[group] += 1
            answer_of_row[o.name] = (value or None) if o.words else _or_none(float(value))
        answers.append(complete(program, answer_of_row))
    return answers


# ---- spreadsheets

_PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode"><value>0</value></prop>
</item>
</oor:items>
"""


def write_csv(books: Sequence[Path], folder: str | Path, sheet: int) -> None:
    """Compute workbooks by LibreOffice; write a sheet of each (-1: every sheet) to a folder as name-sheet.csv."""
    office = find_tool("soffice", "libreoffice")
    user = Path(folder, "profile", "user")
    user.mkdir(parents=True)
    (user / "registrymodifications.xcu").write_text(_PROFILE, encoding="utf-8")
    # Comma, quotes, UTF-8, all cells with their stored values.
    kind = f"csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,{sheet}"
    profile = f"-env:UserInstallation=file://{folder}/profile"
    _output([office, profile, "--headless", "--convert-to", kind, "--outdir", str(folder), *map(str, books)], "")


def _xlsx(jobs: Sequence[Job]) -> list[list[Answer]]:
    """Read the rows of the self-test from each workbook."""
    with temporary_folder() as folder:
        books = [Path(shutil.copy(job.path, Path(folder, f"export{n}.xlsx"))) for n, job in enumerate(jobs)]
        write_csv(books, folder, ROWS_SHEET)
        return [_sheet(next(Path(folder).glob(f"export{n}-*.csv")), *job[1:]) for n, job in enumerate(jobs)]


def _sheet(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
    """Read the answers of one workbook."""
    with path.open(encoding="utf-8", newline="") as file:
        _, names, _, *lines = csv.reader(file)
    numbers = {o.name for o in program.outputs if not o.words}
    answers = []
    for line in lines[: len(rows)]:
        cells = {name: text for name, text in zip(names, line, strict=False) if text != ""}
        answer = {name: float(text) if name in numbers else text for name, text in cells.items()}
        answers.append(complete(program, answer))
    return answers


# ---- PMML


def _pmml(jobs: Sequence[Job]) -> list[list[Answer]]:
    find_package("pypmml", "dev")
    find_tool("java")
    from pypmml import Model

    def run(path: Path, program: Program, rows: Sequence[Row]) -> list[Answer]:
        model = Model.fromFile(str(path))
        given = [{name: v for name, v in row.items() if v is not None} for row in rows_by_name(program, rows)]
        answers = [dict(model.predict(row)) for row in given]  # the map itself is gone with the machine
        return [complete(program, {k.removeprefix("plainrisk_"): v for k, v in answer.items()}) for answer in answers]

    try:
        return _each(run)(jobs)
    finally:
        Model.close()


_SQL: Mapping[str, tuple[str, Engine]] = {
    "duckdb": ("DuckDB", _in_memory("duckdb", _duckdb)),
    "postgres": ("PostgreSQL", _each(_postgres)),
    "sqlite": ("SQLite", _in_memory("sqlite", lambda: sqlite3.connect(":memory:"))),
}
_ENGINES: Mapping[str, tuple[str, Engine]] = {
    "c": ("C compiler", _each(_c)),
    "javascript": ("Node.js", _each(_javascript)),
    "onnx": ("onnxruntime", _each(_onnx)),
    "pmml": ("PMML4S", _pmml),
    "python": ("Python", _each(_python)),
    "xlsx": ("LibreOffice", _xlsx),
}
