"""What `make docs` says of a built site (scripts/check_site.py): links, what is fetched, and what the search finds."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "scripts" / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_that_lead_nowhere_are_found(check, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="deep/b.html#here">B</a><a href="#top">up</a>')
    (tmp_path / "deep" / "b.html").write_text(
        '<a href="../a.html#gone">A</a><img src="no.png"><a href="https://x.org/y">x</a>'
    )
    assert sorted(check.broken(tmp_path)) == [
        "a.html: no #here in deep/b.html",
        "deep/b.html: no #gone in a.html",
        "deep/b.html: no no.png",
    ]


def test_what_a_page_would_fetch_is_found(check, tmp_path):
    (tmp_path / "a.html").write_text('<script src="https://cdn.org/x.js"></script><a href="https://x.org">x</a>')
    (tmp_path / "s.css").write_text("p { background: url(//fonts.org/f.woff) }")
    assert len(check.fetched(tmp_path)) == 2


def test_a_search_needs_every_word_that_counts(check, tmp_path):
    pytest.importorskip("snowballstemmer")
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "language_data.js").write_text('const stopwords = new Set(["the", "of"]);')
    index = {"docnames": ["x", "y"], "terms": {"cutoff": [0, 1], "profit": 0}, "titleterms": {"reason": 1}}
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    search = check.Search(tmp_path)
    assert search.find("profit of the cutoffs") == {"x"}
    assert search.find("reasons") == {"y"}
    assert search.find("prof 42") == {"x"}  # within a word; numbers do not count
    assert search.find("profit reasons") == set()


def test_every_question_names_a_page_that_is_there(check):
    docs = ROOT / "docs"
    pages = set(check.QUESTIONS.values())
    assert len(check.QUESTIONS) > 80
    assert not [page for page in pages if not any((docs / f"{page}{end}").exists() for end in (".md", ".ipynb"))]
