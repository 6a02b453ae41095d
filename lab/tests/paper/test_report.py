"""The report from a store of made-up cells: every part is there, nothing is fetched, both forms agree."""

from __future__ import annotations

import html
import re

import msgspec
import numpy as np
import pytest

from plainrisk.errors import DataError
from plainrisk_lab.paper.document import Fold, Grid, Heading, Items, Mark, Pictures, Prose, render_page, to_markdown
from plainrisk_lab.paper.plans import STUDIES
from plainrisk_lab.paper.published import paper_table
from plainrisk_lab.paper.report import write_report, write_results
from plainrisk_lab.study import METRICS, Plan, Store, study_table
from plainrisk_lab.study.store import Cell, CellKey, DataSet

SETS = ("heloc", "taiwan", "german", "poland_2")
TOLD = ("paper", "balanced", "product", "slsqp", "one-hot", "leakage", "trees", "seed-1", "refitted", "codes")


def made_up(store: Store, plan: Plan, rng: np.random.Generator) -> None:
    """Write a study whose risks follow the outcome loosely."""
    sets = []
    for spec in plan.data:
        y = (rng.random(60) < 0.4).astype(np.uint8)
        store.put_data(spec.name, spec.name, y, 9)
        y, fold_of = store.outcomes(spec.name), store.fold_of(spec.name, plan.cv, plan.seed)
        sets.append(DataSet(spec.name, spec.name))
        for c in plan.lineup:
            for fold in range(plan.cv):
                truth = y[fold_of == fold]
                risks = np.clip(0.3 * truth + 0.7 * rng.random(len(truth)), 0, 1)
                figures = {m: METRICS[m].of(truth, risks) for m in plan.metrics}
                key = CellKey(spec.name, c.key, plan.cv, plan.seed, fold)
                facts = {"fit_seconds": 0.5, "score_seconds": 0.1, "versions": '{"plainrisk": "1"}'}
                store.put(Cell(key=key, status="done", risks=risks, figures=figures, **facts))
    sets.append(DataSet("gmsc", None))
    store.put_plan(plan, sets)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(5)
    with Store(tmp_path_factory.mktemp("report") / "s.db") as store:
        for name in TOLD:
            plan = STUDIES[name]
            sets = tuple(d for d in plan.data if d.name in SETS) or plan.data
            made_up(store, msgspec.structs.replace(plan, datasets=sets, cv=2), rng)
        yield store


@pytest.fixture(scope="module")
def page(store, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(store, path)
    return path.read_text(encoding="utf-8")


def test_the_page_stands_alone(page) -> None:
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<script|<link|<img|<iframe|src=", page)
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") > 10


def test_the_page_is_well_formed(page) -> None:
    """Every tag that is opened is closed, in order."""
    open_tags: list[str] = []
    for closing, tag, rest in re.findall(r"<(/?)([a-z][a-z0-9]*)((?:[^<>\"]|\"[^\"]*\")*)>", page):
        if tag == "meta" or rest.endswith("/"):
            continue
        if closing:
            assert open_tags.pop() == tag
        else:
            open_tags.append(tag)
    assert not open_tags


def test_the_page_tells_every_part(page) -> None:
    text = html.unescape(page)
    for part in (
        "1. The paper reproduced",
        "2. The study as it should be run",
        "ECE by the recipe, beside the published table",
        "Hodges-Lehmann",
        "The paper's claims, one by one",
        "Coverage.",
        "1.9 Corrections to the paper",
        "Figure 1:",
        "NNLR and LinNNLR: the solver",
        "Taiwan: a direction that was not used",
        "an AUC of 0.99 is hindsight",
        "how much depends on the folds",
        "MonoXGB, not explained",
        "both classes get equal weight",
        "Published figures reached, by reading",
        "Every AUC that misses its bound at the optimum",
        "the code for a missing ratio, read as a number",
        "LinARM2: when the second layer is fitted",
        "The recipe with the rows in other orders",
        "The paper's statistics from its own tables",
        "201.1378 and 73.5923 for the AUC",
        "AUC: ours in rows against rivals",
        "AUC: the best of each kind",
        "paper: time by classifier",
        "python -m plainrisk_lab.paper run paper",
        "left out: GMSC",
    ):
        assert part in text
    anchors = set(re.findall(r'href="#([^"]+)"', page))
    assert anchors <= set(re.findall(r'id="([^"]+)"', page))


def test_differences_are_ours_minus_the_paper_s(page, store) -> None:
    mine = study_table(store, "paper", "auc").value("heloc", "ARM1")
    printed = paper_table("auc").value("heloc", "ARM1")
    shown = f"{mine:.4f}<small class=@>{printed:.4f}</small><small>{mine - printed:+.4f}".replace("-", "−")
    assert shown.replace("@", '"aside"') in page


def test_markdown_says_the_same(store, page, tmp_path) -> None:
    write_report(store, tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    headings = re.findall(r"<h[234] id=[^>]*>(.*?)</h", page)
    written = re.findall(r"^##+ (.*)$", text, flags=re.M)
    assert [html.unescape(re.sub("<[^>]+>", "", h)) for h in headings] == written
    assert "http" not in text
    tables = [line for line in text.splitlines() if line.startswith("| ---")]
    assert len(tables) == page.count("<table")


def test_the_folder_holds_all_there_is_to_publish(store, tmp_path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        write_results(store, tmp_path / "nowhere")
    folder = tmp_path / "results"
    folder.mkdir()
    written = write_results(store, folder)
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in written)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "`python -m plainrisk_lab.paper run paper --store study.db --jobs 2`" in text
    assert "paper, balanced, product, slsqp, one-hot, leakage, trees, seed-1, refitted, codes: plainrisk 1." in text
    assert str(tmp_path) not in text


def test_one_data_set_and_a_gap(tmp_path) -> None:
    """Ranks over one data set make no sense, and a missing fold is told."""
    with Store(tmp_path / "s.db") as store:
        plan = msgspec.structs.replace(STUDIES["product"], datasets=("german",), cv=2)
        made_up(store, plan, np.random.default_rng(1))
        broken = "update cells set status = 'failed', reason = 'it broke' where classifier like '%LGBM%'"
        store._all(broken)
        write_report(store, tmp_path / "r.md")
        with pytest.raises(DataError, match=r"a \.html or a \.md file"):
            write_report(store, tmp_path / "r.pdf")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "Ranks need two data sets" in text
    assert "| product | LightGBM | failed | 2 | German (fold 0–1) | it broke |" in text


def test_an_empty_store(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store, pytest.raises(DataError, match="neither the study 'paper' nor 'product'"):
        write_report(store, tmp_path / "r.html")


def test_blocks_in_both_forms() -> None:
    blocks = [
        Heading(1, "A & B"),
        Prose("a **bold**\n  word, `code` and <tag>"),
        Items(("one", "two")),
        Grid("caption", ("x", "y"), [["a|b", Mark("1", below="+0.5", bold=True, tone="bad")]], "note"),
        Grid("two", ("x", "y"), [["c", Mark("1", "2", "-1")]]),
        Fold("more", (Pictures(('<svg xmlns="http://www.w3.org/2000/svg"></svg>',), "shown"),)),
    ]
    page, text = render_page("title", "lead", blocks), to_markdown(blocks)
    assert '<h2 id="a-b">A &amp; B</h2>' in page
    assert "<p>a <b>bold</b> word, <code>code</code> and &lt;tag&gt;</p>" in page
    assert '<td class="bad"><b>1</b><small>+0.5</small></td>' in page
    assert '<div class="picture"><svg></svg></div>' in page
    assert "| a\\|b | **1** (+0.5) |" in text
    assert '<td>1<small class="aside">2</small><small>-1</small></td>' in page
    assert "| c | 1 / 2 (-1) |" in text
    assert "- one\n- two" in text
    assert "*In the page: shown*" in text
