"""What people read uses the standard words of docs/reference/glossary.md, in American spelling."""

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
# British spelling: endings, and words that no ending shows.
BRITISH = re.compile(
    r"(?<![a-z])(?:[a-z]{2,}(?:is(?:e|ed|es|er|ers|ing|ations?)|ys(?:e|ed|es|ing))"
    r"|[a-z]*(?:behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|rum|vig)our[a-z]*"
    r"|(?:cal|cent|fib|lit|lust|met|theat)(?:ib)?re[ds]?|centring"
    r"|(?:re|mis)?(?:cancel|channel|label|level|model|signal|total|travel)l(?:ed|ers?|ings?)"
    r"|(?:ana|cata|dia|epi|mono|pro)logue[ds]?|greys?|(?:de|of|pre)fences?|licences?|judgements?|programmes?"
    r"|(?:mis)?spelt|learnt|instalments?|dependants?|ageing|artefacts?|practis[a-z]+|fulfil|towards|afterwards|whilst|amongst)"
    r"(?![a-z])",
    re.IGNORECASE,
)
# Words that only look British, and public names that stay.
NOT_BRITISH = re.compile(
    r"(?:[a-z]*(?:wise|raise[ds]?|raising|noise|precise)|(?:un)?(?:super|re|de|ad|impro)vis(?:e[ds]?|ers?|ing)|(?:a|un)?ris(?:e|es|ing)"
    r"|[a-z]*promis(?:e[ds]?|ing)|(?:sur|com|enter)pris(?:e[ds]?|ing)|premises?|exercis(?:e[ds]?|ing)|expertise|concise|franchise[ds]?"
    r"|merchandise|advertis[a-z]+|disguise[ds]?|likewise|otherwise|linearis[a-z]+|praise|demise|analyses)",
    re.IGNORECASE,
)
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


def british_words(text: str) -> set[str]:
    """Return the words in British spelling, but for the paper's title, a name of HTML and a message of Spark."""
    text = re.sub(r"Probability\s+Modelling|aria-labelledby|Job 3 cancelled", "", text)
    return {word for word in BRITISH.findall(text) if not NOT_BRITISH.fullmatch(word)}


def test_people_read_american_spelling():
    files = {*FILES, *ROOT.glob("tests/**/*.py"), *ROOT.glob("lab/tests/**/*.py"), *ROOT.glob("src/**/*.[ch]")}
    wrong = {
        path.relative_to(ROOT).as_posix(): words
        for path in sorted(files)
        if path != Path(__file__) and (words := british_words(path.read_text("utf-8")))
    }
    assert not wrong, "\n".join(f"{name}: {', '.join(sorted(words))}" for name, words in wrong.items())


@pytest.mark.parametrize("text", ["a colour_map", "neighbouring bins", "Minimised", "labelled", "licence", "towards 0"])
def test_british_spelling_is_found(text):
    assert british_words(text)


def test_american_words_are_not_taken_for_british():
    assert not british_words("raises otherwise pairwise linearise Linearised advised promise noise toward centers four")


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
