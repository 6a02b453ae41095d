"""The pages of docs: every command, every block of Python and every schema on them is run, or a line says why not."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plainrisk.cli.app import app
from plainrisk.schema import Schema

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCED = re.compile(r"^(?P<fence>`{3,})(?P<kind>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
EXCUSE = re.compile(r"\*Not run by the tests: [^*\n]+\*\Z")
RUN = ("python", "console", "toml")
# What a page shows and nobody runs: figures and formulas.
SHOWN = ("", "text", "json", "math")
# Folders that a build of the site writes.
MADE = ("_build", "gallery", "generated", "pages")


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind, its text, and whether the line above says why it is not run."""

    kind: str
    body: str
    excused: bool


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page but for the directives of Sphinx."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match["kind"].strip(), match["body"], bool(EXCUSE.search(text[: match.start()].rstrip())))
        for match in FENCED.finditer(text)
    ]
    return [block for block in found if not block.kind.startswith("{")]


def run_page(page: Path) -> None:
    """Run what a page shows, in the working directory; names of Python stay for the blocks that follow."""
    names: dict[str, Any] = {}
    for block in blocks_of(page):
        if block.excused or block.kind not in RUN:
            continue
        if block.kind == "python":
            names = run_python(block.body, names)
        elif block.kind == "console":
            run_console(block.body)
        else:
            read_schema(block.body)


def run_console(block: str) -> None:
    """Run each command after "$ " and compare what it prints, on stdout and stderr together."""
    for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, expected = piece.partition("\n")
        code, output = run_command(*shlex.split(line, comments=True))
        assert code in (0, 5), f"{line}\n{output}"  # 5: a limit is crossed
        example = doctest.Example(line, expected)
        checker = doctest.OutputChecker()
        if expected.strip() and not checker.check_output(expected, output, FLAGS):
            pytest.fail(f"{line}\n{checker.output_difference(example, output, FLAGS)}")


def run_command(program: str, *words: str) -> tuple[int, str]:
    """Run one command; return its exit code and what it prints."""
    if program == "python":
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=600, check=False)
        return done.returncode, done.stdout + done.stderr
    if program == "pip":
        return missing_extras(" ".join(words))
    assert program == "plainrisk", f"{program}: only plainrisk and python can be run"
    said = CliRunner().invoke(app, words)
    return said.exit_code, said.output + (f"{said.exception!r}" if said.exception else "")


def missing_extras(words: str) -> tuple[int, str]:
    """Nothing is installed by a test, but the extras that a page names are there."""
    named = re.search(r"plainrisk(?:\[([\w,]+)\])?", words)
    assert named, words
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    missing = set(filter(None, (named[1] or "").split(","))) - set(extras)
    return len(missing), f"no extra {sorted(missing)}"


def run_python(block: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a block with the names of those before: examples with their output, or a script; return all names."""
    if ">>>" not in block:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, "page", "exec"), names)
        return names
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(block, names, "page", None, 0)
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    if said:
        pytest.fail("".join(said))
    return test.globs


def read_schema(block: str) -> Schema:
    """Read a block of TOML as a schema."""
    return Schema.from_dict(tomllib.loads(block))


def pages() -> Iterator[Path]:
    """Yield every page that people write, not those that a build or a study does."""
    written_by_studies = {
        DOCS / "results" / "report.md",
        DOCS / "results" / "README.md",
        DOCS / "benchmarks" / "README.md",
    }
    for page in sorted(DOCS.rglob("*.md")):
        if page not in written_by_studies and not set(MADE) & set(page.parts):
            yield page


PAGES = list(pages())
TRIED = [page for page in PAGES if any(block.kind in RUN and not block.excused for block in blocks_of(page))]
COMMAND = re.compile(r"^ {4,}(\$ )?(plainrisk|python|pip|curl|make|z3|export) ", re.MULTILINE)


def name(page):
    return page.relative_to(DOCS).as_posix()


# A reader sees our warnings on stderr; they are no part of what a page shows of Python.
@pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")
@pytest.mark.parametrize("page", TRIED, ids=name)
def test_the_page_shows_what_is_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # tables are as wide as the terminal
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_run_or_says_why_not(page):
    for block in blocks_of(page):
        assert block.excused or block.kind in (*RUN, *SHOWN), f"```{block.kind}\n{block.body}"
        assert block.kind != "console" or block.body.startswith("$ "), block.body
        assert block.kind in RUN or not re.search(r"^(\$ )?(plainrisk|python) ", block.body, re.MULTILINE), block.body


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "decisions.md"], ids=name)
def test_commands_stand_in_blocks_that_are_run(page):
    text = page.read_text(encoding="utf-8")
    fenced = "".join(block.body for block in blocks_of(page))
    assert not [match[0] for match in COMMAND.finditer(text) if match[0] not in fenced]


def test_an_output_that_differs_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pytest.fail.Exception, match="--version"):
        run_console("$ plainrisk --version\nanother program\n")
    with pytest.raises(pytest.fail.Exception, match="Expected"):
        run_python(">>> 1 + 1\n3\n", {})
    with pytest.raises(NameError, match="nothing"):
        run_python("nothing + 1\n", {})


def test_every_decision_has_a_date_and_a_topic():
    text = (DOCS / "decisions.md").read_text(encoding="utf-8")
    _, *topics = re.split(r"^## .+\n", text, flags=re.MULTILINE)
    assert len(topics) > 10
    undated = [
        paragraph[:60]
        for topic in topics
        for paragraph in topic.strip().split("\n\n")
        if not re.match(r"\*\*20\d\d-\d\d-\d\d · [^*]+\*\*", paragraph)
    ]
    assert not undated
    titles = re.findall(r"^\*\*20\d\d-\d\d-\d\d · ([^*]+?)\.?\*\*", text, flags=re.MULTILINE)
    assert len(titles) == len(set(titles))
