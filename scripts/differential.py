"""Score random forms with random policies on every surface, and compare the answers with the library's.

    python scripts/differential.py [--forms 250] [--rows 400] [--seed 0] [surface ...]

Every form has random features, levels, links, pairs, parts, pools, reasons and a random policy; its rows are at,
next to and far from all its cuts. A surface is an export that runs here (except PostgreSQL, which needs a server), or
the script of the decision page in Node. The script compares risk, contributions, reasons and decision, and exits with
code 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from plainrisk.errors import MissingExtraError
from plainrisk.explain.atoms import value_frame
from plainrisk.explain.options import ReasonOptions
from plainrisk.export.engines import Job, engine_of
from plainrisk.exports import Answerer, compare_answers, prepare, write_program
from plainrisk.form import RiskForm

PARITY = Path(__file__).parents[1] / "tests" / "parity"
EXPORTS = {
    "Python": ("python", "score.py", None),
    "C": ("c", "score.c", None),
    "JavaScript": ("javascript", "score.mjs", None),
    "ONNX": ("onnx", "score.onnx", None),
    "SQL, DuckDB": ("sql", "score.sql", "duckdb"),
    "SQL, SQLite": ("sql", "score.sql", "sqlite"),
}
PAGE = "page"
Row = Mapping[str, Any]


def load(path: Path) -> ModuleType:
    """Return a module of the tests, which have the random forms and the page."""
    spec = importlib.util.spec_from_file_location(f"differential_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Cases:
    """Random forms and their rows."""

    def __init__(self) -> None:
        self.forms, self.edges = (
            load(PARITY / "exports" / "test_export_forms.py"),
            load(PARITY / "exports" / "conftest.py"),
        )

    def make(self, seed: int, rows: int) -> tuple[RiskForm, list[Row], list[Row]]:
        """Return a form, rows that it takes, and rows of which one is the typical applicant."""
        labels = [label for label in self.forms.LABELS if label]
        form = self.forms.make_form(self.forms.Seeded(seed), labels=labels)
        near = self.edges.accepted(form, self.edges.all_edge_rows(form, rows, seed, True))
        return form, near, self.edges.accepted(form, self.edges.all_edge_rows(form, 50, seed, False))


class Exports:
    """The exports of one form: how they are asked, and what the library says."""

    def __init__(self, form: RiskForm, rows: Sequence[Row], portfolio: Sequence[Row], folder: Path) -> None:
        options = ReasonOptions(portfolio=value_frame({n: [row[n] for row in portfolio] for n in portfolio[0]}))
        self.program, _ = prepare(form, options, {})
        given = [tuple(row[i.feature] for i in self.program.inputs) for row in rows]
        self.test, self.folder = Answerer.of(form, options).answers(self.program, given), folder

    def differ(self, surface: str) -> str | None:
        """Return how the answers of an export differ from the library's, or None."""
        kind, name, dialect = EXPORTS[surface]
        facts = {"target": kind, "dialect": dialect, "table": "applicants", "keep": []}
        program = replace(self.program, facts={**self.program.facts, **facts})
        path = self.folder / name
        write_program(path, program, self.test)
        engine, run = engine_of(facts)
        (answers,) = run([Job(path, program, self.test.rows)])
        found = compare_answers(kind, engine, program, self.test, answers)
        return None if found.agrees and found.rows == len(self.test.rows) else str(found)


def page_differs(page: ModuleType, form: RiskForm, rows: Sequence[Row]) -> str | None:
    """Return how the page's answers differ from the library's, or None."""
    frame = {name: [row[name] for row in rows] for name in rows[0]}
    try:
        page.check(form, value_frame(frame), cutoff=form.schema.policy.cutoff or 0.3)
    except AssertionError:
        return traceback.format_exc(limit=-1)[:2000]
    return None


def run(
    forms: int, rows: int, seed: int, surfaces: Sequence[str], tell: Callable[[str], None] = print
) -> dict[str, Counter]:
    """Compare forms of as many seeds on every surface; return the pairs of form and row, and the forms that differ."""
    cases, page = Cases(), load(PARITY / "conftest.py")
    counts = {surface: Counter() for surface in surfaces}
    for own in range(seed, seed + forms):
        form, near, portfolio = cases.make(own, rows)
        if not near or not portfolio:
            continue
        with tempfile.TemporaryDirectory() as folder:
            exports = Exports(form, near, portfolio, Path(folder))
            for surface in list(counts):
                begin = time.process_time()
                try:
                    wrong = page_differs(page, form, near) if surface == PAGE else exports.differ(surface)
                except MissingExtraError as error:
                    tell(f"{surface} is left out: {error}")
                    del counts[surface]
                    continue
                counts[surface] += Counter(forms=1, rows=len(near), differ=wrong is not None)
                counts[surface]["seconds"] += time.process_time() - begin
                if wrong is not None:
                    tell(f"{surface}, seed {own}: {wrong}")
    return counts


def main() -> None:
    """Print a line per surface; exit 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("surfaces", nargs="*", metavar="surface", help=f"some of: {', '.join([*EXPORTS, PAGE])}")
    parser.add_argument("--forms", type=int, default=250)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    counts = run(asked.forms, asked.rows, asked.seed, asked.surfaces or [*EXPORTS, PAGE])
    print("| surface | forms | forms times rows | forms that differ |\n| --- | ---: | ---: | ---: |")
    for surface, count in counts.items():
        print(f"| {surface} | {count['forms']:,} | {count['rows']:,} | {count['differ']:,} |")
    sys.exit(any(count["differ"] for count in counts.values()))


if __name__ == "__main__":
    main()
