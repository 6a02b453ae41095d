"""A model with a policy: one decision in words, reasons only of a refusal, protected attributes never named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROTECTED = ("Personal status and sex", "Age in years", "foreign worker")
BAD = "applicant?a.Duration+in+month=48&a.Credit+amount=99999"
METHOD = (" link", "band", "pool", "atom", "score", "mean rate", "(no subscale)", "(never seen)")


@pytest.fixture(scope="session")
def decided_page(written: Callable[..., Path], model: Any) -> Path:
    features: dict[str, Any] = {name: {"protected": True} for name in PROTECTED}
    features["Duration in month"] = {"label": "Loan term", "unit": "months"}
    changes = {"outcome": {"positive": "repays"}, "features": features, "policy": {"cutoff": 0.7}}
    return written("decided", model.annotate(changes), model.annotate(changes))


def test_a_refusal_in_words(open_page: Callable[..., Any], decided_page: Path) -> None:
    page = open_page(decided_page, BAD).page
    page.locator(".what-if:not(.waiting) .answers").wait_for()
    assert page.locator(".decision").inner_text() == "Refused (limit 70%)"
    assert page.get_by_label("Cut-off in percent").count() == 0
    assert page.get_by_role("heading", name="Main reasons").count() == 1
    text = page.locator(".result").inner_text()
    assert "Probability that the applicant repays" in text
    assert "Beyond the data the model was built on: Credit amount" in text
    assert "protected attribute also counted; it is never given as a reason." in text
    assert "Protected attributes" in text
    assert "48 months" in text
    for word in (*PROTECTED, *METHOD):
        assert word not in text
    assert page.locator(".reasons li .numeric").first.inner_text().endswith(" points")


def test_an_approval_gives_no_main_reasons(open_page: Callable[..., Any], decided_page: Path) -> None:
    page = open_page(decided_page, "applicant?a.Duration+in+month=6&a.Credit+history=A34&cutoff=0.99").page
    assert page.locator(".decision").inner_text() == "Approved"
    assert page.get_by_role("heading", name="Main reasons").count() == 0
    assert page.get_by_role("heading", name="What counted most against").count() == 1
    assert "Nothing needs to change." in page.locator(".what-if").inner_text()


def test_while_it_searches_it_says_so(open_page: Callable[..., Any], decided_page: Path) -> None:
    seen = open_page(decided_page, "applicant?a.Duration+in+month=6&a.Credit+history=A34")
    seen.feature("Loan term").fill("60")
    seen.feature("Credit history").select_option("A30")
    text = seen.page.locator(".what-if").inner_text()
    assert "Looking for the smallest changes…" in text or "→" in text
    assert "Nothing needs" not in text


def test_two_models_have_two_names(open_page: Callable[..., Any], decided_page: Path) -> None:
    page = open_page(decided_page, "overview").page
    first, second = page.locator(".choice label").all_inner_texts()
    assert first != second
