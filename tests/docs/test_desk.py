"""The worked examples of docs: every command and every line of Python of a page is run, in order, in one folder."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from plainrisk.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "desk.md"
PAGES = [PAGE, DOCS / "other-libraries.md", DOCS / "prices.md", DOCS / "terms.md", DOCS / "validation.md"]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(kind: str) -> list[str]:
    """Return the fenced blocks of one kind."""
    return [body for name, body in FENCED.findall(PAGE.read_text(encoding="utf-8")) if name == kind]


def run_console(block: str) -> None:
    """Run each command after "$ " and compare what it prints, on stdout and stderr together."""
    for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, expected = piece.partition("\n")
        program, *words = shlex.split(line)
        assert program == "plainrisk"
        done = CliRunner().invoke(app, words)
        example = doctest.Example(line, expected)
        checker = doctest.OutputChecker()
        if not checker.check_output(expected, done.output, FLAGS):
            pytest.fail(f"{line}\n{checker.output_difference(example, done.output, FLAGS)}\n{done.exception!r}")
        assert done.exit_code == 0, line


def run_python(block: str, names: dict[str, object]) -> dict[str, object]:
    """Run the examples of a block with the names of those before; return all names."""
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(block, names, PAGE.name, str(PAGE), 0)
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=told.append, clear_globs=False)
    if told:
        pytest.fail("".join(told))
    return test.globs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_shows_what_is_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # tables are as wide as the terminal
    names: dict[str, object] = {}
    examples = [(kind, body) for kind, body in FENCED.findall(page.read_text(encoding="utf-8")) if kind]
    assert examples
    for kind, body in examples:
        if kind == "python":
            names = run_python(body, names)
        elif kind == "console":
            run_console(body)


def test_the_page_holds_what_is_run():
    commands = {
        words.split()[0] for body in blocks("console") for words in re.findall(r"^\$ plainrisk (.*)", body, re.M)
    }
    needed = {"annotate", "bins", "cutoffs", "diff", "evaluate", "explain", "fairness", "fit", "schema", "score"}
    assert commands >= needed | {"scorecard"}
    assert {kind for kind, _ in FENCED.findall(PAGE.read_text(encoding="utf-8"))} <= {"console", "python"}


def test_an_output_that_differs_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pytest.fail.Exception, match="--version"):
        run_console("$ plainrisk --version\nanother program\n")
    with pytest.raises(pytest.fail.Exception, match="Expected"):
        run_python(">>> 1 + 1\n3\n", {})
