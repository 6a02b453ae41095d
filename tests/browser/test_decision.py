"""A model with a policy: one decision in words, reasons only of a refusal, protected attributes never named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROTECTED = ("Personal status and sex", "Age", "Foreign worker")
BAD = "applicant?a.Duration+in+month=48&a.Credit+amount=99999"
METHOD = (" link", "band", "pool", "atom", "score", "mean slope", "subscale", "(never seen)", " bin", "contribution")
METHOD += ("log odds", "reference", "additive", "marginal", "monotone", "A11", "< x")


@pytest.fixture(scope="session")
def decided_page(written: Callable[..., Path], model: Any) -> Path:
    features = {"Duration in month": {"label": "Loan term", "unit": "months"}}
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
    assert "Outside the data that the model was built on: Amount of the loan" in text
    assert "protected attribute also counted; it is never given as a reason." in text
    assert "Protected attributes" in text
    assert "48 months" in text
    for word in (*PROTECTED, *METHOD):
        assert not re.search(rf"{re.escape(word)}\b", text), word
    assert page.locator(".reasons li .numeric").first.inner_text().endswith(" points")


def test_an_approval_gives_no_main_reasons(open_page: Callable[..., Any], decided_page: Path) -> None:
    page = open_page(decided_page, "applicant?a.Duration+in+month=6&a.Credit+history=A34&cutoff=0.99").page
    assert page.locator(".decision").inner_text() == "Approved"
    assert page.get_by_role("heading", name="Main reasons").count() == 0
    assert page.get_by_role("heading", name="What counted most against the applicant").count() == 1
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
    page = open_page(decided_page, "compare").page
    assert page.locator(".headline .what").all_inner_texts() == [first, second]


# ---- protected features

OLD = "a.Age+in+years=22&a.Personal+status+and+sex=A92&a.foreign+worker=A202&a.Duration+in+month=48"


@pytest.mark.parametrize("versus", ["applicants", "models"])
def test_comparisons_do_not_name_protected_features(
    open_page: Callable[..., Any], decided_page: Path, versus: str
) -> None:
    page = open_page(decided_page, f"compare?versus={versus}&{OLD}").page
    shown = page.locator(".waterfall" if versus == "applicants" else "table.models")
    text = shown.inner_text()
    assert "Protected attributes" in text
    assert "Loan term" in text
    for word in PROTECTED:
        assert not re.search(rf"{word}\b", text)
    assert not set(PROTECTED) & set(page.locator(".pairs .differs th").all_inner_texts())


def test_what_differs_is_told_from_a_to_b(open_page: Callable[..., Any], decided_page: Path) -> None:
    page = open_page(decided_page, "compare?versus=applicants&a.Duration+in+month=48&b.Duration+in+month=12").page
    assert page.locator(".waterfall .term").count() == 1
    assert "48 months → 12 months" in page.locator(".waterfall .term").inner_text()
    first, second = page.locator(".headline .context").all_inner_texts()
    assert first == "Refused (limit 70%)"
    assert re.fullmatch(r"Approved, \+\d+\.\d points", second)


def test_no_shape_of_a_protected_feature_beside_its_control(open_page: Callable[..., Any], decided_page: Path) -> None:
    page = open_page(decided_page, "applicant").page
    feature = lambda name: page.locator(".feature", has=page.get_by_label(name, exact=True))  # noqa: E731
    assert feature("Loan term").locator(".spark").count() == 1
    assert feature("Age").locator(".spark").count() == 0
    assert feature("Age").locator(".piece").inner_text() == ""


@pytest.mark.parametrize(("view", "place"), [("model", ".card"), ("overview", "tr"), ("validator", "#levels ~ * tr")])
def test_views_of_the_modeler_mark_protected_features(
    open_page: Callable[..., Any], decided_page: Path, view: str, place: str
) -> None:
    page = open_page(decided_page, view).page
    for summary in page.locator("details:has(table) > summary").all():
        summary.click()
    marked = [row.inner_text() for row in page.locator(f"{place}:has(.tag:text-is('protected'))").all()]
    for word in ("Personal status and sex", "Age in years", "foreign worker"):
        assert any(word in row for row in marked), word
    assert not any("Duration in month" in row for row in marked)


# ---- nothing old, nothing contrary

WATCH = """() => {
  globalThis.seen = [];
  const places = [".probability", ".decision", ".reasons h2", ".what-if", ".verdict [role=status]"];
  const note = () => seen.push(places.map((place) => document.querySelector(place)?.innerText ?? ""));
  const all = {subtree: true, childList: true, characterData: true};
  new MutationObserver(note).observe(document.getElementById("app"), all);
}"""


def test_no_sentence_is_old_or_contrary_while_one_types(open_page: Callable[..., Any], decided_page: Path) -> None:
    seen = open_page(decided_page, "applicant?a.Credit+history=A32")
    page = seen.page
    page.evaluate(WATCH)
    term = seen.feature("Loan term")
    for months in ("6", "60", "7", "48", "8", "72"):
        term.fill("")
        term.press_sequentially(months, delay=25)
    page.locator(".what-if:not(.waiting) .answers").wait_for()
    seen.feature("Credit history").select_option("A30")
    term.press_sequentially("0", delay=10)
    term.fill("6")
    page.locator(".what-if:not(.waiting)").wait_for()
    page.wait_for_timeout(600)
    told = page.evaluate("globalThis.seen")
    decisions = {decision for _, decision, *_ in told}
    assert decisions == {"Approved", "Refused (limit 70%)"}
    contrary = []
    for risk, decision, heading, changes, spoken in told:
        refused = float(risk.rstrip("%")) < 70
        agree = (
            decision == ("Refused (limit 70%)" if refused else "Approved"),
            heading == ("Main reasons" if refused else "What counted most against the applicant"),
            ("Nothing needs to change." in changes) == (not refused),
            ("→" in changes or "Looking" in changes or "No possible change" in changes) == refused,
            spoken in ("", f"Probability {risk}. {decision}."),
        )
        if not all(agree):
            contrary.append((risk, decision, heading, changes, spoken))
    assert not contrary


def test_the_comparison_follows_what_is_typed(open_page: Callable[..., Any], decided_page: Path) -> None:
    seen = open_page(decided_page, "compare?versus=applicants")
    page = seen.page
    field = page.get_by_label("Loan term, applicant B", exact=True)
    for months in ("60", "6", "48"):
        field.fill(months)
        risks = page.locator(".headline .probability").all_inner_texts()
        ends = page.locator(".waterfall .whole tr:not(.paper-only) .numeric").all_inner_texts()
        assert ends == risks
        for risk, note in zip(risks, page.locator(".headline .context").all_inner_texts(), strict=True):
            if risk != "70.0%":  # which is rounded
                assert note.startswith("Refused" if float(risk.rstrip("%")) < 70 else "Approved")


def test_a_copied_address_is_that_of_the_applicant_shown(open_page: Callable[..., Any], decided_page: Path) -> None:
    seen = open_page(decided_page, "applicant", permissions=["clipboard-read", "clipboard-write"])
    page = seen.page
    seen.feature("Loan term").fill("33")
    page.get_by_role("button", name="Copy address").click()
    hint = page.locator(".share .hint")
    hint.filter(has_text=re.compile(r"\S")).wait_for()
    copied = page.evaluate("navigator.clipboard.readText().catch(() => '')") or hint.inner_text()
    assert "a.Duration+in+month=33" in copied
    seen.feature("Loan term").fill("34")
    assert hint.inner_text() == ""
