"""Nothing that a person reads uses a private word for a standard thing (docs/reference/glossary.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What was once written, and what to write instead.
INSTEAD = {
    r"levels? outside the order": "special level",
    r"outside the order": "special level; for people: empty fields and codes",
    r"what is usual": "hyperprior",
    r"(?:goes?|going) before the": "takes precedence over the",
    r"unless (?:it is )?told": "by default; unless you say otherwise",
    r"from it on\b": "at or above it",
    r"of before\b": "earlier",
    r"links? bends?": "the link is piecewise linear; bands",
    r"mean rates?\b": "mean slope",
    r"a hair of": "a tiny",
    r"act / look / steady": "large / moderate / small shift",
    r"\bbarred\b": "protected",
    r"[\d}] pp\b": "points",
    r"risk of class": "probability that ..., in the schema's words",
    r"(?:hangs?|hung) on\b": "depends on",
    r"\b(?:bins|tables) (?:are |were )?joined|joined (?:bins|tables)": "merged",
    r"leaves? again": "is dropped",
    r"levels? (?:is|are|was|were) held at": "is fixed at",
}
# Words that are there for a reason, by file.
ALLOWED = {
    "docs/reference/glossary.md": set(INSTEAD),
    "docs/decisions.md": {r"\bbarred\b"},  # an option that is gone
    "CHANGELOG.md": {r"\bbarred\b"},
    "src/plainrisk/explain/certify.py": {r"outside the order"},  # in files of format 3
}
# Help, letters, errors, warnings, docstrings and comments are in the sources; the page has its own.
READ = (
    "src/**/*.py",
    "src/**/*.toml",
    "lab/src/**/*.py",
    "lab/src/**/*.toml",
    "scripts/*.py",
    "benchmarks/*.py",
    "examples/*",
)
READ = (
    *READ,
    "docs/**/*.md",
    "docs/notebooks/*.ipynb",
    "docs/_ext/*.py",
    "*.md",
    "lab/*.md",
    ".github/**/*.md",
    "*.cff",
)
READ = (*READ, "page/src/**/*.ts", "page/src/**/*.tsx", "Makefile", "pyproject.toml")
MADE = {"gallery", "generated", "pages", "_build"}  # folders that a build of the site writes
FILES = sorted(path for pattern in READ for path in ROOT.glob(pattern) if path.is_file() and not MADE & set(path.parts))


def private_words(text: str, allowed: set[str]) -> list[str]:
    """Return what should be said in other words, with the line it stands in and what to say."""
    flat = re.sub(r"\s+(?:#|//|\*)?\s*", " ", text)  # sentences go on over lines and comment marks
    return [
        f"{match.group()!r} in '...{flat[max(0, match.start() - 40) : match.end() + 20]}...': say {say!r}"
        for pattern, say in INSTEAD.items()
        if pattern not in allowed
        for match in re.finditer(pattern, flat, re.IGNORECASE)
    ]


def test_people_read_standard_words():
    assert len(FILES) > 300
    wrong = {
        name: words
        for path in FILES
        if (
            words := private_words(
                path.read_text("utf-8"), ALLOWED.get(name := path.relative_to(ROOT).as_posix(), set())
            )
        )
    }
    assert not wrong, "\n".join(f"{name}: {word}" for name, words in wrong.items() for word in words)


@pytest.mark.parametrize("text", ["A level outside the\n# order is free.", "It moves by 3.5 pp.", "Formats of before"])
def test_a_private_word_is_found(text):
    assert private_words(text, set())


def test_what_is_allowed_is_there():
    """An exception that nobody needs any more goes."""
    for name, patterns in ALLOWED.items():
        if name != "docs/reference/glossary.md":
            text = (ROOT / name).read_text("utf-8")
            assert all(re.search(pattern, text, re.IGNORECASE) for pattern in patterns), name
