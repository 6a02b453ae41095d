"""A C file without dependencies beyond the standard library.

Compile it with -ffp-contract=off where the processor multiplies and adds in one rounding, so that sums keep their bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from plainrisk.export.code import CodePrinter, digits
from plainrisk.export.expression import Program, Text, refuse_characters, slugs
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

/* The candidates that are reasons, in order: the largest losses, then subscale by subscale; -1 where there is none. */
static void rank(const double *losses, const double *totals, int *found) {
  for (int r = 0; r < MOST; r++) {
    int best = -1;
    for (int j = 0; j < CANDIDATES; j++) {
      int taken = 0;
      for (int s = 0; s < r; s++) taken |= found[s] == j;
      if (!taken && losses[j] > LEAST && (best < 0 || losses[j] > losses[best])) best = j;
    }
    found[r] = best;
  }
  if (!BY_SUBSCALE) return;
  for (int r = 1; r < MOST && found[r] >= 0; r++)
    for (int s = r; s > 0; s--) {
      int a = found[s - 1], b = found[s];
      if (totals[a] > totals[b] || (totals[a] == totals[b] && groups[a] <= groups[b])) break;
      found[s - 1] = b;
      found[s] = a;
    }
}
"""

_REASONS = """
  rank(losses, totals, answer->reason_feature);
  for (int r = 0; r < MOST; r++) {
    int j = answer->reason_feature[r];
    answer->reason[r] = j < 0 ? -1 : (int)words[j];
    answer->lost[r] = j < 0 ? NAN : losses[j];
  }
  return 0;
}
"""

_TEST = """
#ifdef PLAINRISK_TEST
{rows}
{numbers}
{reasons}

int main(void) {{
  double largest = 0;
  for (int n = 0; n < {count}; n++) {{
    plainrisk_answer answer;
    if (plainrisk_score(&rows[n], &answer)) return printf("row %d is refused\\n", n), 1;
    const double found[] = {{{found}}};
    for (int j = 0; j < {width}; j++) {{
      double difference = fabs(found[j] - expected[n][j]);
      if (!(difference <= 1e-12)) return printf("row %d, number %d differs by %g\\n", n, j, difference), 1;
      if (difference > largest) largest = difference;
    }}
    for (int r = 0; r < MOST; r++)
      if (answer.reason[r] != expected_reasons[n][r]) return printf("row %d has another reason\\n", n), 1;
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


class CPrinter(CodePrinter):
    """Prints C."""

    IF, ELIF, ELSE, END = "if ({}) {{", "}} else if ({}) {{", "} else {", "}"
    ASSIGN, FIRST, COMMENT = "{} = {};", "const double {} = {};", "// "
    ABS = "fabs"
    AND, OR = "&&", "||"

    def text(self, e: Text) -> str:
        """A text."""
        return _string(e.value)

    def array(self, values: Sequence[float]) -> str:
        """An array; an empty one has one entry that nobody reads."""
        return self.constant(f"{{{', '.join(map(digits, values)) or '0'}}}", "static const double {}[] = {};")

    def dictionary(self, values: Mapping[str, float]) -> str:
        """Two arrays and their length."""
        names = self.constant(f"{{{', '.join(map(_string, values)) or 'NULL'}}}", "static const char *const {}[] = {};")
        return f"{names}, {self.array(list(values.values()))}, {len(values)}"

    def _declared(self, id: str, note: str) -> Iterator[str]:
        yield f"double {id};{note}"

    def _entry(self, array: str, at: str) -> str:
        return f"{array}[(int)({at})]"


def c_file(program: Program, test: SelfTest) -> str:
    """Return the file's text."""
    refuse_characters(program, "\0", "C")
    printer = CPrinter()
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
    rank = program.rank
    yield f"#define CANDIDATES {len(rank.features)}"
    yield f"#define MOST {rank.k}"
    yield f"#define LEAST {digits(rank.least)}"
    yield f"#define BY_SUBSCALE {int(bool(rank.totals))}"
    yield ""
    yield "/* Missing is NaN in a number, NULL in a text (UTF-8). */"
    yield "typedef struct {"
    yield from (f"  {kind}{name};" for kind, name in _members(program))
    yield "} plainrisk_row;"
    yield ""
    yield "/* Reasons are numbers of plainrisk_texts, their features of plainrisk_features; -1 where there is none. */"
    yield "typedef struct {"
    yield from (f"  double {o.name};" for o in program.outputs)
    yield "  int reason[MOST + 1], reason_feature[MOST + 1];"
    yield "  double lost[MOST + 1];"
    yield "} plainrisk_answer;"
    yield ""


def _constants(program: Program) -> Iterator[str]:
    rank = program.rank
    problems = ", ".join(["NULL", *(_string(c.message) for c in program.checks)])
    yield f"const char *const plainrisk_texts[] = {{{', '.join(map(_string, rank.texts))}}};"
    yield f"const char *const plainrisk_features[] = {{{', '.join(map(_string, rank.features)) or 'NULL'}}};"
    yield f"const char *const plainrisk_problems[] = {{{problems}}};"
    yield f"static const int groups[] = {{{', '.join(map(str, rank.groups)) or '0'}}};"


def _function(program: Program, printer: CPrinter) -> Iterator[str]:
    rank = program.rank
    yield "/* Score one row; returns 0, or the number of the problem for which it is refused. */"
    yield "int plainrisk_score(const plainrisk_row *row, plainrisk_answer *answer) {"
    for i, (kind, name) in zip(program.inputs, _members(program), strict=True):
        yield f"  {kind.replace('double', 'const double')}{i.id} = row->{name};"
    body = list(printer.statements(program))
    for n, check in enumerate(program.checks, 1):
        yield f"  if ({printer.show(check.condition)}) return {n};"
    yield from (f"  {line}" for line in body)
    yield from (f"  answer->{o.name} = {o.step};" for o in program.outputs)
    yield f"  const double losses[] = {{{', '.join(rank.losses) or '0'}}};"
    yield f"  const double words[] = {{{', '.join(rank.words) or '0'}}};"
    yield f"  const double totals[] = {{{', '.join(rank.totals) or '0'}}};"
    yield _REASONS.strip("\n")


def c_rows(program: Program, rows: Sequence[Row]) -> str:
    """Return the declaration of an array of rows."""

    def cell(value: float | str | None, is_text: bool) -> str:
        if value is None:
            return "NULL" if is_text else "NAN"
        return _string(str(value)) if is_text else digits(float(value)).replace("inf", "INFINITY")

    kinds = [i.is_text for i in program.inputs]
    return _array("plainrisk_row rows[]", (map(cell, row, kinds) for row in rows))


def _array(declaration: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [f"  {{{', '.join(row)}}}," for row in rows]
    return "\n".join([f"static const {declaration} = {{", *lines, "};"])


def _test(program: Program, test: SelfTest) -> str:
    code = {text: str(n) for n, text in enumerate(program.rank.texts)}
    width = len(program.outputs)
    reasons = ([*("-1" if text is None else code[text] for text in row), "0"] for row in test.reasons)
    return _TEST.format(
        rows=c_rows(program, test.rows),
        numbers=_array(f"double expected[][{width}]", (map(digits, row) for row in test.numbers)),
        reasons=_array("int expected_reasons[][MOST + 1]", reasons),
        width=width,
        count=len(test.rows),
        found=", ".join(f"answer.{o.name}" for o in program.outputs),
    )
