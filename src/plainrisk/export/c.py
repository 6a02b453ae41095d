"""A C file without dependencies beyond the standard library.

Compile it with -ffp-contract=off if the processor multiplies and adds in one rounding, so that sums keep their bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from plainrisk.export.code import CodePrinter, digits
from plainrisk.export.expression import Call, Expr, Output, Program, Text, refuse_characters, slugs
from plainrisk.export.self_test import Row, SelfTest

__all__ = ["c_file", "c_rows"]

_HEAD = """/* A risk model as plain C: plainrisk_score fills in the risk, its contributions and the reasons of one row.
   Self-test: cc -DPLAINRISK_TEST -ffp-contract=off -o test FILE.c -lm && ./test
   {facts} */
#include <math.h>
#include <stdio.h>
#include <string.h>
"""

_HELPERS = """
static double clip(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

/* Look up a number in n + 1 cells that are closed on the right; the last value is for missing. */
static double cell(double x, const double *cuts, const double *values, int n) {
  if (x != x) return values[n + 1];
  int low = 0, high = n;
  while (low < high) {
    int middle = (low + high) / 2;
    if (cuts[middle] < x) low = middle + 1;
    else high = middle;
  }
  return values[low];
}

static double label(const char *x, const char *const *names, const double *values, int n, double missing,
                    double unseen) {
  if (x == NULL) return missing;
  for (int j = 0; j < n; j++)
    if (strcmp(x, names[j]) == 0) return values[j];
  return unseen;
}

static double largest(const double *values, int n) {
  double most = values[0];
  for (int j = 1; j < n; j++)
    if (values[j] > most) most = values[j];
  return most;
}

/* The index of the first value that is x, or of the last. */
static double position(double x, const double *values, int n) {
  int j = 0;
  while (j < n - 1 && values[j] != x) j++;
  return j;
}
"""

_TEST = """
#ifdef PLAINRISK_TEST
{rows}
{expected}

static int other_text(const char *a, const char *b) {{
  return a == NULL || b == NULL ? a != b : strcmp(a, b) != 0;
}}

int main(void) {{
  double largest = 0;
  for (int n = 0; n < {count}; n++) {{
    plainrisk_answer answer;
    const plainrisk_answer *correct = &expected[n];
    if (plainrisk_score(&rows[n], &answer)) return printf("row %d is refused\\n", n), 1;
    const double differences[] = {{{differences}}};
    for (int j = 0; j < {width}; j++) {{
      if (!(differences[j] <= 1e-12)) return printf("row %d, number %d differs by %g\\n", n, j, differences[j]), 1;
      if (differences[j] > largest) largest = differences[j];
    }}
    if ({others}) return printf("row %d has another text\\n", n), 1;
  }}
  printf("{count} rows agree; the largest difference is %g\\n", largest);
  return 0;
}}
#endif
"""


def _string(text: str) -> str:
    """Return a text as a C literal of UTF-8; three octal digits end an escape."""
    plain = "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
        for b in text.encode("utf-8", "surrogatepass")
    )
    return f'"{plain}"'


class _Printer(CodePrinter):
    """Prints C."""

    IF, ELIF, ELSE, END = "if ({}) {{", "}} else if ({}) {{", "} else {", "}"
    ASSIGN, FIRST, COMMENT = "{} = {};", "const double {} = {};", "// "
    FUNCTIONS: Mapping[str, str] = {"exp": "exp", "abs": "fabs"}
    SYMBOLS: Mapping[str, str] = {"and": "&&", "or": "||"}
    LIST, CHOICE = "((const double[]){{{}}})", "({condition} ? {then} : {other})"

    def text(self, e: Text) -> str:
        return _string(e.value)

    def array(self, values: Sequence[float]) -> str:
        return self.constant(f"{{{', '.join(map(digits, values)) or '0'}}}", "static const double {}[] = {};")

    def dictionary(self, values: Mapping[str, float]) -> str:
        names = self.constant(f"{{{', '.join(map(_string, values)) or 'NULL'}}}", "static const char *const {}[] = {};")
        return f"{names}, {self.array(list(values.values()))}, {len(values)}"

    def words(self, values: Sequence[str]) -> str:
        return self.constant(f"{{{', '.join(map(_string, values))}}}", "static const char *const {}[] = {};")

    def call(self, e: Call) -> str:
        if e.function == "max":
            return f"largest({self.list(e.values)}{self._length(e.values)})"
        return super().call(e)

    def _length(self, values: Sequence[Expr]) -> str:
        return f", {len(values)}"

    def answer(self, o: Output) -> str:
        """A number (NaN if missing) or a text (NULL if missing)."""
        self.NONE = "NULL" if o.words else "NAN"
        return super().answer(o)

    def _declared(self, id: str, note: str) -> Iterator[str]:
        yield f"double {id};{note}"

    def _entry(self, array: str, at: str) -> str:
        return f"{array}[(int)({at})]"


def c_file(program: Program, test: SelfTest) -> str:
    """Return the file's text."""
    refuse_characters(program, "\0", "C")
    printer = _Printer()
    function = list(_function(program, printer))  # first: it collects the printer's constants
    lines = [
        _HEAD.format(facts=program.head.replace("*/", "*\\/")),
        *_types(program),
        *_constants(program),
        *printer.constants,
        _HELPERS,
        *function,
        _test(program, test).rstrip("\n"),
    ]
    return "\n".join(lines) + "\n"


def _members(program: Program) -> list[tuple[str, str]]:
    """Return the type and the name of the members of `plainrisk_row`, one per input."""
    names = slugs([i.feature for i in program.inputs], "x_", set())
    return [("const char *" if i.is_text else "double ", name) for i, name in zip(program.inputs, names, strict=True)]


def _types(program: Program) -> Iterator[str]:
    yield "/* Missing is NaN in a number, NULL in a text (UTF-8). */"
    yield "typedef struct {"
    yield from (f"  {kind}{name};" for kind, name in _members(program))
    yield "} plainrisk_row;"
    yield ""
    yield "/* Where there is no answer, a text is NULL and a number NaN. */"
    yield "typedef struct {"
    yield from (f"  {'const char *' if o.words else 'double '}{o.name};" for o in program.outputs)
    yield "} plainrisk_answer;"
    yield ""


def _constants(program: Program) -> Iterator[str]:
    problems = ", ".join(["NULL", *(_string(c.message) for c in program.checks)])
    yield f"const char *const plainrisk_problems[] = {{{problems}}};"


def _function(program: Program, printer: _Printer) -> Iterator[str]:
    yield "/* Score one row; returns 0, or the number of the problem for which it is refused. */"
    yield "int plainrisk_score(const plainrisk_row *row, plainrisk_answer *answer) {"
    for i, (kind, name) in zip(program.inputs, _members(program), strict=True):
        yield f"  {kind.replace('double', 'const double')}{i.id} = row->{name};"
    body = list(printer.statements(program))
    for n, check in enumerate(program.checks, 1):
        yield f"  if ({printer.show(check.condition)}) return {n};"
    yield from (f"  {line}" for line in body)
    yield from (f"  answer->{o.name} = {printer.answer(o)};" for o in program.outputs)
    yield "  return 0;\n}"


def c_rows(program: Program, rows: Sequence[Row]) -> str:
    """Return the declaration of an array of rows."""

    kinds = [i.is_text for i in program.inputs]
    return _array("plainrisk_row rows[]", (map(_literal, row, kinds) for row in rows))


def _literal(value: float | str | None, is_text: bool) -> str:
    if value is None:
        return "NULL" if is_text else "NAN"
    return _string(str(value)) if is_text else digits(float(value)).replace("inf", "INFINITY")


def _array(declaration: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [f"  {{{', '.join(row)}}}," for row in rows]
    return "\n".join([f"static const {declaration} = {{", *lines, "};"])


def _test(program: Program, test: SelfTest) -> str:
    kinds = [bool(o.words) for o in program.outputs]
    numbers = [o.name for o in program.outputs if not o.words]
    # Two absent numbers have no difference.
    same = "(isnan(answer.{0}) && isnan(correct->{0}) ? 0 : fabs(answer.{0} - correct->{0}))"
    other = "other_text(answer.{0}, correct->{0})"
    return _TEST.format(
        rows=c_rows(program, test.rows),
        expected=_array("plainrisk_answer expected[]", (map(_literal, row, kinds) for row in test.answers)),
        width=len(numbers),
        count=len(test.rows),
        differences=", ".join(map(same.format, numbers)),
        others=" || ".join(other.format(o.name) for o in program.outputs if o.words),
    )
