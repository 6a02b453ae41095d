"""Ask every surface about every applicant of German credit, and count wrong answers.

    python scripts/surfaces.py [--rows N] [surface ...]

For each surface, one line shows the number of applicants, how many decisions and reasons differ from the library's,
how often it names a protected feature as a reason or a change, how many approved applicants get a letter of refusal,
and for how many of its suggested changes `decide` would still refuse.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import plainrisk as pr
from plainrisk.errors import PlainriskWarning

K = 4
EXPORTS = {
    "Python": ("python", "score.py", None),
    "JavaScript": ("javascript", "score.mjs", None),
    "C": ("c", "score.c", None),
    "SQL, DuckDB": ("sql", "score.sql", "duckdb"),
    "SQL, SQLite": ("sql", "score.sql", "sqlite"),
    "ONNX": ("onnx", "score.onnx", None),
    "PMML": ("pmml", "score.pmml", None),
    "xlsx": ("xlsx", "score.xlsx", None),
}


@dataclass(frozen=True)
class Said:
    """What a surface says of one applicant; None where it does not speak of it."""

    decision: str | None = None
    reasons: tuple[str, ...] | None = None
    withheld: int | None = None
    letter: str | None = None
    answers: tuple[Mapping[str, Any], ...] | None = None  # of what-if: the values that change


@dataclass
class Line:
    """A line of the table."""

    surface: str
    rows: int = 0
    refused: int = 0
    reasons: int = 0
    other_decisions: int = 0
    other_reasons: int = 0
    protected_named: int = 0
    refusals_to_approved: int = 0
    answers: int = 0
    protected_changed: int = 0
    still_refused: int = 0

    @property
    def wrong(self) -> int:
        """How much of what it says must not be said."""
        wrong = self.other_decisions + self.other_reasons + self.protected_named + self.refusals_to_approved
        return wrong + self.protected_changed + self.still_refused


class Bench:
    """The model, the applicants, and what the library says of them."""

    def __init__(self, folder: Path, rows: int) -> None:
        german = pr.datasets.load("german", backend="polars")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainriskWarning)
            fitted = pr.make_classifier("SmoothARM1", german.schema).fit(german.frame, german.target)
        self.folder, self.file = folder, folder / "model.json"
        fitted.save(self.file)
        self.model = pr.load(self.file)
        self.frame = german.frame.head(rows)
        self.rows: list[dict[str, Any]] = self.frame.to_dicts()
        self.data = folder / "rows.csv"
        self.frame.write_csv(self.data)
        self.schema = self.model.form_.schema
        self.found = self.model.reasons(self.frame)
        assert self.found.refused is not None
        self.refused = [i for i, is_refused in enumerate(self.found.refused) if is_refused]
        # Whatever an applicant could read that names a protected feature.
        known = self.schema.features
        texts = [(n, known[n].title(n), known[n].reason, *known[n].reasons.values()) for n in self.schema.protected]
        self.forbidden = {text for each in texts for text in each if text}

    def judge(self, surface: str, said: Mapping[int, Said]) -> Line:
        """Count what is wrong in what a surface says, by the number of the applicant."""
        line = Line(surface, rows=len(said), refused=sum(i in set(self.refused) for i in said))
        for i, one in said.items():
            decided = "refused" if self.found.refused[i] else "approved"  # type: ignore[index]
            line.other_decisions += one.decision not in (None, decided)
            if one.reasons is not None:
                line.reasons += len(one.reasons)
                line.other_reasons += one.reasons != self.found.words(i)
                line.other_reasons += one.withheld not in (None, int(self.found.withheld[i]))
                line.protected_named += sum(self._names(reason) for reason in one.reasons)
            if one.letter is not None:
                letter = self.found.letter(i)
                line.refusals_to_approved += decided == "approved" and "cannot approve" in one.letter
                line.other_decisions += one.letter.split() != letter.split()
                line.protected_named += self._names(one.letter)
            for changes in one.answers or ():
                line.answers += 1
                line.protected_changed += bool(set(changes) & set(self.schema.protected))
                line.still_refused += bool(self.model.decide({**self.rows[i], **changes}).refused[0])
        return line

    def _names(self, text: str) -> bool:
        return any(word in text for word in self.forbidden)


# ---- library and commands


def library(bench: Bench) -> dict[int, Said]:
    """Reasons, decisions and letters of the model object."""
    decided = bench.model.decide(bench.frame)
    columns = decided.columns()
    return {
        i: Said(
            decision=columns["decision"][i],
            reasons=bench.found.words(i),
            withheld=int(bench.found.withheld[i]),
            letter=decided.letter(i),
        )
        for i in range(len(bench.rows))
    }


def library_what_if(bench: Bench) -> dict[int, Said]:
    """Three answers to every refused applicant."""
    found = bench.model.what_ifs(bench.frame[bench.refused], answers=3)
    return {
        i: Said(answers=tuple({c.feature: c.to_value for c in a.changes} for a in one.answers))
        for i, one in zip(bench.refused, found.rows, strict=True)
        if one.reached
    }


def run(bench: Bench, command: str, *options: str) -> str:
    """Run a command and return what it prints."""
    from typer.testing import CliRunner

    from plainrisk.cli.app import app

    done = CliRunner().invoke(app, [command, str(bench.file), str(bench.data), *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def table(bench: Bench, command: str, *options: str) -> list[dict[str, str]]:
    """Run a command on all rows and read the table it writes."""
    path = bench.folder / f"{command}.csv"
    run(bench, command, "-o", str(path), *options)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def listed(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The reasons of a row of a table, in order."""
    found = [row.get(f"reason_{r}") for r in range(1, K + 1)]
    return tuple(str(text) for text in found if text)


def cli_score(bench: Bench) -> dict[int, Said]:
    """`plainrisk score --decision --reasons`: reasons of the refused."""
    rows = table(bench, "score", "--decision", "--reasons", str(K))
    told = [Said(row["decision"], listed(row) if row["decision"] == "refused" else None) for row in rows]
    assert not any(listed(row) for row in rows if row["decision"] == "approved")
    return dict(enumerate(told))


def cli_reasons(bench: Bench) -> dict[int, Said]:
    """`plainrisk reasons -o`."""
    return {i: Said(None, listed(row), int(row["withheld"])) for i, row in enumerate(table(bench, "reasons"))}


def cli_letter(bench: Bench) -> dict[int, Said]:
    """`plainrisk reasons --row N`: the letter to everybody."""
    return {i: Said(letter=run(bench, "reasons", "--row", str(i))) for i in range(len(bench.rows))}


def cli_what_if(bench: Bench) -> dict[int, Said]:
    """`plainrisk what-if --row N --json` of every refused applicant, three answers each."""
    found = {i: json.loads(run(bench, "what-if", "--row", str(i), "--json")) for i in bench.refused}
    return {i: Said(answers=changes_of(one)) for i, one in found.items() if one["reached"]}


def changes_of(plain: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The changes of a what-if in plain data."""
    return tuple({c["feature"]: c["to_value"] for c in answer["changes"]} for answer in plain["answers"])


# ---- service


@contextmanager
def served(bench: Bench) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Ask the service about rows."""
    from starlette.testclient import TestClient

    from plainrisk.serve import Settings, make_app

    with TestClient(make_app(Settings(models=(str(bench.file),))), base_url="http://localhost") as client:

        def ask(verb: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> list[dict[str, Any]]:
            found = client.post(f"/{verb}", json={"rows": list(rows), **more})
            assert found.status_code == 200, found.text
            return list(found.json()["rows"])

        yield ask


def service(bench: Bench) -> dict[int, Said]:
    """`/decide` and `/reasons`."""
    with served(bench) as ask:
        decided, reasons = ask("decide", bench.rows), ask("reasons", bench.rows)
    return {
        i: Said(d["decision"], tuple(x["reason"] for x in r["reasons"]), r["withheld"], d["letter"])
        for i, (d, r) in enumerate(zip(decided, reasons, strict=True))
    }


def service_what_if(bench: Bench) -> dict[int, Said]:
    """`/what-if` for every refused applicant."""
    said = {}
    with served(bench) as ask:
        for start in range(0, len(bench.refused), 10):
            some = bench.refused[start : start + 10]
            for i, one in zip(some, ask("what-if", [bench.rows[i] for i in some]), strict=True):
                if one["reached"]:
                    said[i] = Said(answers=changes_of(one))
    return said


# ---- page

# The page follows its address at once; the search for changes follows a pause.
SHOW = """async ([address, search]) => {
  location.hash = address;
  await new Promise((done) => setTimeout(done, 0));
  await new Promise(requestAnimationFrame);
  const text = (found) => found.innerText.trim();
  const all = (where, what) => [...where.querySelectorAll(what)];
  for (const hidden of all(document, '.reasons details')) hidden.open = true;
  const said = {
    decision: text(document.querySelector('.decision')),
    reasons: all(document, '.reasons ol > li').map((li) => text(li.querySelector(':scope > span:not(.group)'))),
    withheld: all(document, '.reasons .hint').map(text).find((t) => /^[0-9]+ protected/.test(t)) ?? '0',
  };
  if (!search) return said;
  const busy = () => document.querySelector('.what-if').matches('.waiting');
  while (busy()) await new Promise((done) => setTimeout(done, 20));
  said.answers = all(document, '.answers .answer').map((a) => all(a, '.name').map(text));
  return said;
}"""


def page(bench: Bench) -> dict[int, Said]:
    """What stands on the page in Chromium, from a thread of its own: one thread holds one Playwright."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_page, bench).result()


def _page(bench: Bench) -> dict[int, Said]:
    """Decision and reasons of everybody, and changes for the refused."""
    from playwright.sync_api import sync_playwright

    path = bench.folder / "page.html"
    bench.model.report(path)
    known = {bench.schema.title(name): name for name in bench.schema.features}
    chromium = next(p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p)
    searched, said = set(bench.refused), {}
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_context(locale="en-GB").new_page()
        tab.goto(f"{path.as_uri()}#applicant")
        tab.locator(".decision").wait_for()
        for i, row in enumerate(bench.rows):
            address = "applicant?" + urlencode({f"a.{n}": v for n, v in row.items() if n in bench.model.form_.features})
            found = tab.evaluate(SHOW, [address, i in searched])
            decision = "refused" if found["decision"].startswith("Refused") else found["decision"].lower()
            applied = []
            if found.get("answers"):  # the first is applied, and its values are read where they are typed
                tab.locator(".answers .answer button", has_text="Apply").first.click()
                typed = {known[t]: tab.get_by_label(t, exact=True).first.input_value() for t in found["answers"][0]}
                kinds = {name: bench.schema.features[name].kind for name in typed}
                applied = [{n: float(v) if kinds[n] == "continuous" else v for n, v in typed.items()}]
            named = tuple(dict.fromkeys(known[title] for title in answer) for answer in found.get("answers", [])[1:])
            assert not any(set(changes) & set(bench.schema.protected) for changes in named)
            reasons, withheld = tuple(found["reasons"]), int(found["withheld"].split()[0])
            said[i] = Said(decision, reasons, withheld, answers=tuple(applied))
        browser.close()
    return said


# ---- exports


def export(bench: Bench, kind: str) -> dict[int, Said]:
    """What an export says where it runs."""
    from plainrisk.explain.options import ReasonOptions
    from plainrisk.export.engines import Job, engine_of
    from plainrisk.exports import Answerer, prepare, write_program

    target, name, dialect = EXPORTS[kind]
    facts = {"target": target, "dialect": dialect, "table": "applicants", "keep": []}
    program, _ = prepare(bench.model.form_, ReasonOptions(), {})
    program = replace(program, facts={**program.facts, **facts})
    given = [tuple(row[i.feature] for i in program.inputs) for row in bench.rows]
    test = Answerer.of(bench.model.form_, ReasonOptions()).answers(program, given)
    path = bench.folder / name
    write_program(path, program, test)
    (answers,) = engine_of(facts)[1]([Job(path, program, test.rows)])
    return {i: Said(a["decision"], listed(a), int(a["withheld"])) for i, a in enumerate(answers)}


SURFACES: Mapping[str, Callable[[Bench], dict[int, Said]]] = {
    "library": library,
    "library, what-if": library_what_if,
    "CLI score": cli_score,
    "CLI reasons": cli_reasons,
    "CLI letter": cli_letter,
    "CLI what-if": cli_what_if,
    "service": service,
    "service, what-if": service_what_if,
    "page in Chromium": page,
    **{kind: lambda bench, kind=kind: export(bench, kind) for kind in EXPORTS},
}


def show(lines: Sequence[Line]) -> str:
    """Return the table as Markdown."""
    heads = [field.name.replace("_", " ") for field in fields(Line)]
    out = io.StringIO()
    print("|" + "|".join(heads) + "|", file=out)
    print("|---|" + "---:|" * (len(heads) - 1), file=out)
    for line in lines:
        print("|" + "|".join(str(getattr(line, field.name)) for field in fields(Line)) + "|", file=out)
    return out.getvalue()


def main() -> None:
    """Print the table; exit 1 if a surface says what it must not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("surfaces", nargs="*", metavar="surface", help=f"some of: {', '.join(SURFACES)}")
    parser.add_argument("--rows", type=int, default=1000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), asked.rows)
        lines = []
        for name in asked.surfaces or SURFACES:
            lines.append(bench.judge(name, SURFACES[name](bench)))
            print(name, lines[-1].wrong, file=sys.stderr, flush=True)
        print(show(lines))
        sys.exit(any(line.wrong for line in lines))


if __name__ == "__main__":
    main()
