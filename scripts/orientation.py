"""Measure the size of the package and write the figures and their limits into docs/architecture.md.

    python scripts/orientation.py             (make orientation)
    python scripts/orientation.py --check     write nothing; exit with code 1 if the table is outdated or above a limit
    python scripts/orientation.py --list      also print every tuned constant and every long or branched function

How it counts
-------------
lines : all lines of src/**/*.py, *.c and *.h, blank lines, comments and docstrings included; lab/ is not shipped
tuned constants : in Python, UPPER_CASE names of a module or class (not of an Enum) bound to a number, to an
    expression of numbers, or to a tuple of numbers; in C, a #define, an enum constant or a static const variable
    with such a value. Left out are version and format numbers, and those that NOT_TUNED lists with the reason.
modules of a fit : files of the package in which at least one function is called while the default model is fitted to
    German credit, on any thread; the second fit is watched, so that imports do not count. From `fit_layer` on, what
    is called before it (checking parameters, reading rows) and after it (bands, the record, warnings) is left out
complexity : cyclomatic; 1 plus the branches, `and`, `or`, comprehensions and their conditions, as radon counts
function length : from `def` to the last line, docstring included
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "plainrisk"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- orientation: written by make orientation -->", "<!-- end of orientation -->"
VERSIONS = re.compile(r"VERSION|FORMAT$")
# Numbers that nobody could have chosen otherwise: marks, mathematics, and what another library or a data set says.
NOT_TUNED = {
    "cli/main.py:AGAIN": "a mark: 0 is no number of a signal",
    "cli/tables.py:EXACT": "Excel's own number: it keeps 15 digits",
    "cli/tables.py:SHEET_COLUMNS": "Excel's own number",
    "cli/tables.py:SHEET_ROWS": "Excel's own number",
    "explain/pareto.py:STAY": "a mark: -1 is no position of a target",
    "form/trees.py:LEAF": "a mark: -1 is no position of an input",
    "solve/box.py:LOWER": "a mark: at which bound a variable is",
    "solve/box.py:FREE": "a mark: at which bound a variable is",
    "solve/box.py:UPPER": "a mark: at which bound a variable is",
    "form/levels.py:_LARGEST_WHOLE": "mathematics: a float64 holds every whole number below it",
    "form/links.py:ALPHA_STAR": "mathematics: the best line through the sigmoid",
    "datasets/lending_club.py:BLOCK": "the data set: the loans of one of its parts",
    "extract/trees.py:_ZERO": "LightGBM's own number",
}


def python_files() -> list[Path]:
    return sorted(SOURCE.parent.rglob("*.py"))


def c_files() -> list[Path]:
    return sorted(path for ending in ("*.c", "*.h") for path in SOURCE.rglob(ending))


def name_of(path: Path) -> str:
    """Return the name of a file in the package, or beside it."""
    return (path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path.relative_to(SOURCE.parent)).as_posix()


def n_lines(paths: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


# ---- tuned constants


def is_numeric(node: ast.expr) -> bool:
    """Whether an expression is made of numbers, and of at least one written here."""
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(map(is_numeric, node.elts))
    parts = list(ast.walk(node))
    numbers = [p for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, int | float)]
    numbers = [p for p in numbers if not isinstance(p.value, bool)]
    others = [p for p in parts if isinstance(p, ast.Constant) and p not in numbers]
    allowed = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Call, ast.Name, ast.Attribute)
    ignored = (ast.operator, ast.unaryop, ast.expr_context)
    return bool(numbers) and not others and all(isinstance(p, allowed + ignored) for p in parts)


def python_constants(path: Path) -> Iterator[str]:
    """Yield the names of the constants of a module and of its classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    no_enums = [node for node in classes if not any("Enum" in ast.unparse(base) for base in node.bases)]
    for statement in [*tree.body, *(inner for node in no_enums for inner in node.body)]:
        if isinstance(statement, ast.Assign):
            pairs = [pair for target in statement.targets for pair in bound(target, statement.value)]
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            pairs = [(statement.target, statement.value)]
        else:
            continue
        for target, value in pairs:
            if isinstance(target, ast.Name) and re.fullmatch(r"_*[A-Z][A-Z0-9_]*", target.id) and is_numeric(value):
                yield target.id


def bound(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Take `A, B = 1, 2` apart."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def c_constants(path: Path) -> Iterator[str]:
    """Yield the names of numeric #defines, enum constants and static const variables."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    value = r"[-+*/<>()\s\w.]*\d[-+*/<>()\s\w.]*"
    for name, body in re.findall(r"^#define[ \t]+(\w+)[ \t]+([^\n]*)$", text, flags=re.MULTILINE):
        if re.fullmatch(value, body):
            yield name
    for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", text):
        yield from re.findall(rf"(\w+)\s*=(?={value})", body)
    yield from re.findall(rf"^static const \w+ (\w+) = (?:{value});", text, flags=re.MULTILINE)


def constants() -> list[str]:
    """Return the tuned constants, each as file:name."""
    found = [(path, name) for path in python_files() for name in python_constants(path)]
    found += [(path, name) for path in c_files() for name in c_constants(path)]
    named = [f"{name_of(path)}:{name}" for path, name in found if not VERSIONS.search(name)]
    gone = sorted(set(NOT_TUNED) - set(named))
    if gone:
        sys.exit(f"NOT_TUNED names what is no longer there: {', '.join(gone)}.")
    return [name for name in named if name not in NOT_TUNED]


# ---- functions

BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)


def functions() -> list[tuple[int, int, str]]:
    """Return the length, the complexity and the name of every function."""
    return [
        (node.end_lineno - node.lineno + 1, complexity(node), f"{name_of(path)}:{node.name}")
        for path in python_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def complexity(function: ast.AST) -> int:
    """Return 1 plus the number of branches, `and`, `or`, comprehensions and their conditions."""
    total = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            total += 1
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
    return total


# ---- a fit


def modules_of_a_fit() -> tuple[str, set[str], set[str]]:
    """Return the default model's name, the files its fit passes through, and those it does from `fit_layer` on."""
    sys.path.insert(0, str(SOURCE.parent))
    import plainrisk as pr
    from plainrisk.fit.layer import fit_layer

    default = "SmoothARM1" if "SmoothARM1" in pr.CLASSIFIERS else "BandARM1"
    data = pr.datasets.load("german")
    pr.make_classifier(default, data.schema).fit(data.frame, data.target)
    model, all_files, layer_files = pr.make_classifier(default, data.schema), set(), set()
    watched = [all_files]

    def watch(frame, event, _):
        if frame.f_code is fit_layer.__code__:
            watched[1:] = [layer_files] if event == "call" else []
        if event == "call" and frame.f_code.co_name != "<module>":
            for files in watched:
                files.add(frame.f_code.co_filename)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        model.fit(data.frame, data.target)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    every, layer = ({file for file in files if file.startswith(str(SOURCE))} for files in (all_files, layer_files))
    return default, every, layer


# ---- the table


def figures() -> list[tuple[str, str, str]]:
    """Return what is counted, the figure of today and the target."""
    python, c = python_files(), c_files()
    lengths = sorted(length for length, _, _ in functions())
    branched = max(complexity for _, complexity, _ in functions())
    default, passed, from_layer = modules_of_a_fit()
    tenth = statistics.quantiles(lengths, n=10)[-1]
    return [
        ("lines of shipped source, Python and C", f"{n_lines(python) + n_lines(c):,}", "58,500"),
        ("lines of C", f"{n_lines(c):,}", "1,500"),
        ("Python files", f"{len(python)}", "275"),
        ("tuned constants", f"{len(constants())}", "250"),
        (f"modules a fit of the default model ({default}) passes through", f"{len(passed)}", "48"),
        ("modules it passes through from `fit_layer` on", f"{len(from_layer)}", "28"),
        ("largest cyclomatic complexity", f"{branched}", "30"),
        (
            "lines of a function: median, 90%, longest",
            f"{statistics.median(lengths):.0f}, {tenth:.0f}, {lengths[-1]}",
            "",
        ),
    ]


def written(rows: list[tuple[str, str, str]]) -> str:
    """Return the table as Markdown."""
    lines = ["| | today | at most |", "| --- | ---: | ---: |", *(f"| {' | '.join(row).rstrip()} |" for row in rows)]
    return "\n".join(lines)


def write_table(rows: list[tuple[str, str, str]]) -> None:
    """Replace the table between the markers of docs/architecture.md."""
    table = written(rows)
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"{PAGE} has no lines {BEGIN!r} and {END!r} to write between.")
    PAGE.write_text(before + begin + "\n" + table + "\n" + end + after, encoding="utf-8")
    print(table)


def numbers(cell: str) -> list[float]:
    """Return the numbers of a cell."""
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", cell)]


def is_near(today: str, kept: str) -> bool:
    """Whether numbers are those of the page, but for a twentieth or two."""
    both = numbers(today), numbers(kept)
    return len(both[0]) == len(both[1]) and all(abs(a - b) <= max(0.05 * b, 2.0) for a, b in zip(*both, strict=True))


def check_table(rows: list[tuple[str, str, str]]) -> None:
    """End with the rows that are far from those of docs/architecture.md, or above their limit, if there are any."""
    kept = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    cells = {row[0]: row[1:] for row in ([cell.strip() for cell in line.split("|")[1:4]] for line in kept[2:])}
    wrong = []
    for what, today, most in rows:
        before, limit = cells.get(what, ["", ""])
        above = bool(most) and numbers(today)[0] > numbers(most)[0]
        if not is_near(today, before) or limit != most or above:
            wrong.append(f"{what}: {today}; on the page {before or 'nothing'}, at most {most or 'anything'}")
    if wrong or len(cells) != len(rows):
        sys.exit("\n".join([f"{PAGE.name} is not of today, or above a limit; run make orientation. Today:", *wrong]))


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(check_table(figures()))
    write_table(figures())
    if "--list" in sys.argv[1:]:
        print("\nconstants:", *constants(), sep="\n  ")
        print("\nnumbers that are not tuned:", *(f"{name}  {why}" for name, why in NOT_TUNED.items()), sep="\n  ")
        long = [f"{length:3d} {name}" for length, _, name in sorted(functions(), reverse=True) if length > 40]
        branched = [(complexity, name) for _, complexity, name in functions() if complexity > 15]
        print("\nlonger than 40 lines:", *long, sep="\n  ")
        print("\ncomplexity above 15:", *(f"{c:3d} {name}" for c, name in sorted(branched, reverse=True)), sep="\n  ")
        _, passed, from_layer = modules_of_a_fit()
        print("\na fit passes through (* from fit_layer on):")
        print(*(f"  {'*' if file in from_layer else ' '} {file}" for file in sorted(passed)), sep="\n")
