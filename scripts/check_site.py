"""Check the built site: it reads nothing from a network, and its search answers what people ask.

python scripts/check_site.py build/site     # after make docs, which runs it
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import snowballstemmer

# What users asked, as they would type it, and a page that answers.
QUESTIONS = {
    "NA null values": "guides/missing",
}
# Whatever a browser fetches by itself when it shows a page.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=["'](?:https?:)?//[^"']+"""
    r"""|<link\b(?![^>]*rel=["']canonical)[^>]*\bhref=["'](?:https?:)?//[^"']+"""
    r"""|url\(["']?(?:https?:)?//[^)]+|@import\s+["'](?:https?:)?//[^"']+"""
)


def fetched(site: Path) -> list[str]:
    """Return what pages and styles would read from a network."""
    files = [path for kind in ("html", "css") for path in site.rglob(f"*.{kind}")]
    return [
        f"{path.relative_to(site)}: {match[0][:120]}"
        for path in files
        for match in FETCHED.finditer(path.read_text(encoding="utf-8"))
    ]


class Search:
    """The index of the site, asked as its page does: a page is found if it has every word."""

    def __init__(self, site: Path) -> None:
        text = (site / "searchindex.js").read_text(encoding="utf-8")
        index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
        self.pages = index["docnames"]
        self.words: dict[str, set[int]] = {}
        for kind in ("terms", "titleterms"):
            for word, pages in index[kind].items():
                self.words.setdefault(word, set()).update(pages if isinstance(pages, list) else [pages])
        self._stem = snowballstemmer.stemmer("english").stemWord

    def find(self, question: str) -> set[str]:
        """Return the pages that have every word of a question."""
        having = [self.words.get(self._stem(word), set()) for word in re.findall(r"\w+", question.lower())]
        return {self.pages[page] for page in set.intersection(*having)}


def main(site: Path) -> None:
    problems = fetched(site)
    search = Search(site)
    problems += [f"search: {q!r} does not find {page}" for q, page in QUESTIONS.items() if page not in search.find(q)]
    print(*problems, f"{len(QUESTIONS)} questions asked, {len(problems)} problems", sep="\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
