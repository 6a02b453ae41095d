"""Change one thing at a time in forms, certificates, reasons and decisions, and see whether a test notices.

python scripts/mutants.py                            # some 30 changes to a file; hours
python scripts/mutants.py --only links --changes 10  # minutes

A change swaps a comparison, an operator or "and" and "or", drops a "not", or moves a number by 1. The code of a
function is exchanged in a copy of this process, which then runs the tests that guard the file. Nothing is written.
What no test notices is listed with its line; `EXPLAINED` says of some why they change nothing.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import inspect
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
LIMIT = 600.0  # seconds for the tests of one change; what takes longer has been noticed

GUARDS: dict[str, tuple[str, ...]] = {
    "decision": ("explain/test_reasons.py",),
    "form.links": ("form/test_links.py", "form/test_best_bands.py"),
    "form.levels": ("form/test_levels.py", "form/test_scoring.py"),
    "form.form": ("form/test_form.py", "form/test_pairs.py", "form/test_scoring.py"),
    "form.shapes": ("form/test_curves.py", "form/test_pairs.py", "form/test_form.py"),
    "form.trees": ("form/test_trees.py",),
    "form.ranking": ("form/test_ranking.py", "explain/test_reasons.py"),
    "form.file": ("form/test_model_file.py", "contract/test_round_trips.py"),
    "explain.certify": ("explain/test_certify.py", "explain/test_certify_pairs.py", "form/test_trees.py"),
    "explain.reasons": ("explain/test_reasons.py",),
}

# Changes that alter nothing, by file and line as they stand.
_PATH = "where Newton's iterations begin or how they go, not where they end"
EXPLAINED: dict[tuple[str, str], str] = {
    ("form.links", "density = q * (1 + q)"): _PATH,
    ("explain.certify", "gap = min(above) - max(below) if sign >= 0 else min(below) - max(above)"): "no sign is 0 here",
    ("explain.reasons", "if len(kept) > KEPT:"): "how many prepared answers are kept",
    (
        "explain.reasons",
        "block = frame if n <= PIECE_ROWS else frame.take(rows.start, rows.stop)",
    ): "all rows are taken, one way or the other",
    ("form.links", "share = np.cumsum((q * (1 - q) * (1 - 2 * q)) ** 1.4)"): _PATH,
}

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Give what a node may be changed into, as copies."""
    other = copy.deepcopy(node)
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            one = copy.deepcopy(node)
            one.ops[k] = SWAPPED[type(op)]()  # type: ignore[call-overload]
            yield one
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        other.op = SWAPPED[type(node.op)]()  # type: ignore[attr-defined]
        yield other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        other.value = node.value + 1  # type: ignore[attr-defined]
        yield other
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        other.value = not node.value  # type: ignore[attr-defined]
        yield other


def mutants(source: str) -> Iterator[tuple[int, str, ast.Module]]:
    """Give every change inside a function: the line, the line after the change, and the tree of the whole file."""
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    inside = {id(n) for f in functions for statement in f.body for n in ast.walk(statement)}
    for parent in [n for n in ast.walk(tree) if id(n) in inside]:
        for field, value in ast.iter_fields(parent):
            for place, node in enumerate(value if isinstance(value, list) else [value]):
                for other in changed(node) if isinstance(node, ast.AST) else ():
                    _put(parent, field, place, ast.copy_location(other, node), value)
                    yield node.lineno, ast.unparse(_statement(tree, node.lineno)), ast.fix_missing_locations(tree)
                    _put(parent, field, place, node, value)


def _put(parent: ast.AST, field: str, place: int, node: ast.AST, value: Any) -> None:
    if isinstance(value, list):
        value[place] = node
    else:
        setattr(parent, field, node)


def _statement(tree: ast.Module, line: int) -> ast.AST:
    """Return the smallest expression or statement that spans a line."""
    spans = (n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0))
    return min(spans, key=lambda n: (n.end_lineno or 0) - n.lineno)


def functions_of(module: ModuleType) -> dict[str, FunctionType]:
    """Return the functions of a module by their qualified names, those of classes and behind decorators, too."""
    found: dict[str, FunctionType] = {}
    spaces = [
        vars(module),
        *(vars(v) for v in vars(module).values() if inspect.isclass(v) and v.__module__ == module.__name__),
    ]
    for value in [value for space in spaces for value in space.values()]:
        value = getattr(value, "__func__", getattr(value, "fget", value))
        value = getattr(value, "func", value)  # of a cached property
        value = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            found[value.__qualname__] = value
    return found


def exchange(module: ModuleType, tree: ast.Module) -> int:
    """Give the functions of a loaded module the code of a tree; say how many were changed."""
    code, number = compile(tree, module.__file__ or "", "exec"), 0
    functions = functions_of(module)
    left = [code]
    while left:
        for one in left.pop().co_consts:
            if isinstance(one, CodeType):
                left.append(one)
                function = functions.get(one.co_qualname)
                if (
                    function is not None
                    and function.__code__ != one
                    and one.co_freevars == function.__code__.co_freevars
                ):
                    function.__code__, number = one, number + 1
    return number


def noticed(module: ModuleType, tree: ast.Module, tests: list[str]) -> bool | None:
    """Whether a test fails in a copy of this process with the change; None if the change could not be made there."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(LIMIT))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        import pytest

        if not exchange(module, tree):
            os._exit(77)
        os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests])))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if code == 77 else code != 0


def tried(name: str, changes: int, seed: int) -> tuple[int, list[str]]:
    """Try some changes to one file; return how many were made, and what no test noticed."""
    module = importlib.import_module(f"plainrisk.{name}")
    source = inspect.getsource(module)
    every = [(line, text) for line, text, _ in mutants(source)]
    chosen = set(random.Random(seed).sample(range(len(every)), min(changes, len(every))))
    tests, made, lived = [str(ROOT / "tests" / test) for test in GUARDS[name]], 0, []
    for k, (line, text, tree) in enumerate(mutants(source)):
        if k in chosen:
            found, first = noticed(module, tree, tests), text.partition("\n")[0]
            made += found is not None
            if found is False:
                why = EXPLAINED.get((name, first))
                lived.append(f"{name}:{line}  {first}" + (f"  (nothing changes: {why})" if why else ""))
                print("  not noticed:", lived[-1], flush=True)
    return made, lived


def main() -> int:
    """Print a table of files, changes and what was not noticed; 1 if something was not that is not explained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="files whose name holds this")
    parser.add_argument("--changes", type=int, default=30, help="to each file, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.chdir(ROOT)
    rows, left = [], 0
    for name in GUARDS:
        if options.only in name:
            start = time.monotonic()
            made, lived = tried(name, options.changes, options.seed)
            explained = sum("nothing changes" in one for one in lived)
            left += len(lived) - explained
            rows.append(f"| {name} | {made} | {made - len(lived)} | {explained} | {len(lived) - explained} |")
            print(f"{rows[-1]}  {time.monotonic() - start:.0f} s", flush=True)
    print(
        "\n| file | changes | noticed | change nothing | not noticed |\n| --- | --- | --- | --- | --- |",
        *rows,
        sep="\n",
    )
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main())
