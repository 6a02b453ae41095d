"""One applicant: dragging, typing, pasting, what-if and paper; the probability is always Python's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plainrisk as pr

Opener = Callable[..., Any]
TERM = "Duration of the loan"
HEADINGS = "[...document.querySelectorAll('main h2')].map((e) => e.getBoundingClientRect().top + scrollY)"


def said(model: Any, german: Any, row: dict[str, Any]) -> str:
    """The probability as the page writes it."""
    columns = {name: [row.get(name)] for name in german.frame.columns}
    return f"{model.predict_proba(type(german.frame)(columns))[0, 1]:.1%}"


@pytest.fixture
def typical(german_page: Path) -> dict[str, Any]:
    text = german_page.read_text(encoding="utf-8")
    found = re.search(r'id="payload">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    payload: dict[str, Any] = json.loads(found[1])
    return dict(payload["models"][0]["typical"])


def test_drag(open_page: Opener, german_page: Path, model: Any, german: Any, typical: dict[str, Any]) -> None:
    seen = open_page(german_page, "applicant")
    before, headings = seen.probability(), seen.page.evaluate(HEADINGS)
    slider = seen.page.get_by_label(f"{TERM}, slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    seen.page.mouse.move(box["x"] + box["width"] / 2, middle)
    seen.page.mouse.down()
    shown = set()
    for step in range(1, 9):
        seen.page.mouse.move(box["x"] + box["width"] * (0.5 + step / 18), middle)
        shown.add(seen.probability())
    assert len(shown) > 2  # it moves on the way, not only at the end
    assert seen.page.evaluate(HEADINGS) == headings
    seen.page.mouse.up()
    assert seen.probability() != before
    value = float(seen.feature(TERM).input_value())
    assert seen.probability() == said(model, german, typical | {"Duration in month": value})


def test_keyboard(open_page: Opener, german_page: Path) -> None:
    seen = open_page(german_page, "applicant")
    before = seen.feature(TERM).input_value()
    seen.page.get_by_label(f"{TERM}, slider").focus()
    for _ in range(40):
        seen.page.keyboard.press("ArrowRight")
    assert float(seen.feature(TERM).input_value()) > float(before)


def test_type(open_page: Opener, german_page: Path, model: Any, german: Any, typical: dict[str, Any]) -> None:
    seen = open_page(german_page, "applicant")
    seen.feature(TERM).fill("48")
    assert seen.probability() == said(model, german, typical | {"Duration in month": 48})
    seen.feature("Purpose of the loan").select_option("A46")
    changed = typical | {"Duration in month": 48, "Purpose": "A46"}
    assert seen.probability() == said(model, german, changed)
    codes = seen.page.get_by_label(f"{TERM}: a value, a code or not given")
    codes.select_option(label="not given")
    assert seen.probability() == said(model, german, changed | {"Duration in month": None})
    codes.select_option(label="code -1000")
    assert seen.probability() == said(model, german, changed | {"Duration in month": -1000})
    status = seen.page.locator(".verdict [role=status]")
    status.filter(has_text=seen.probability()).wait_for(state="attached")


def test_codes_are_asked_for_by_their_meaning(
    open_page: Opener, german_page: Path, model: Any, german: Any, typical: dict[str, Any]
) -> None:
    seen = open_page(german_page, "applicant")
    account = seen.feature("Checking account")
    account.select_option(label="no account")
    name = "Status of existing checking account"
    assert seen.probability() == said(model, german, typical | {name: 14})
    account.select_option(label="not given")
    assert seen.probability() == said(model, german, typical | {name: None})
    assert "Checking account not given" in seen.page.locator(".waterfall").inner_text().replace("\xa0", " ")


@pytest.mark.filterwarnings("ignore:.*may be a leak")
def test_a_value_that_is_refused_is_called_by_its_title(open_page: Opener, written: Callable[..., Path]) -> None:
    features = {"x": {"label": "Income", "missing": "error"}, "d": {}}
    rows = {"x": [float(i % 9) for i in range(100)], "d": [float(i % 4) for i in range(100)]}
    fitted = pr.AdditiveRiskModel(pr.Schema(features=features)).fit(rows, [int(i % 9 > 4) for i in range(100)])
    seen = open_page(written("refused", fitted), "applicant")
    seen.feature("Income").fill("")
    assert seen.page.locator(".verdict").inner_text() == "Income must not be empty."
    assert seen.page.locator(".what-if, .reasons, .waterfall").count() == 0


def test_pieces_add_up(open_page: Opener, german_page: Path) -> None:
    seen = open_page(german_page, "applicant")
    seen.feature(TERM).fill("48")
    number = lambda text: float(text.rstrip("%").replace("−", "-"))  # noqa: E731
    rows = seen.page.locator(".waterfall")
    first, last = (number(t) for t in rows.locator(".whole tr:not(.paper-only) .numeric").all_inner_texts())
    guarded = rows.locator(".part", has_text="Protected attributes")
    pieces = rows.locator(".term:not(.paper-only)").or_(guarded).locator(".numeric")
    terms = [number(t) for t in pieces.all_inner_texts()]
    assert first + sum(terms) == pytest.approx(last, abs=0.06 * len(terms))
    assert f"{last:.1f}%" == seen.probability()


@pytest.mark.parametrize("form", ["csv", "json"])
def test_paste(open_page: Opener, german_page: Path, model: Any, german: Any, form: str) -> None:
    row = {name: german.frame[name][7] for name in german.frame.columns}
    row = {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}
    text = (
        json.dumps(row)
        if form == "json"
        else "\n".join([",".join(f'"{n}"' for n in row), ",".join(map(str, row.values()))])
    )
    seen = open_page(german_page, "applicant")
    paste(seen, text)
    assert seen.probability() == said(model, german, row)
    assert seen.page.locator(".problems").count() == 0


BAD_ROWS = {
    "": "Two lines",
    "{oops": "not JSON",
    '{"income": 3}': "None of these names",
    "Duration in month,Purpose\n12": "2 names, but 1",
    '{"Duration in month": "long"}': "Duration in month",
    "Duration in month;Purpose\n1,5;A43": "Duration in month must be a number, with a point before decimals",
}


@pytest.mark.filterwarnings("ignore:.*may be a leak")
def test_paste_of_names_with_every_mark(open_page: Opener, written: Callable[..., Path]) -> None:
    """The mark between cells is looked for outside quotes."""
    n, name = 100, 'a; "b",\tc'
    rows = {name: [float(i % 9) for i in range(n)], "d": [float(i % 4) for i in range(n)]}
    fitted = pr.AdditiveRiskModel(pr.Schema(features={name: {}, "d": {}})).fit(rows, [int(i % 9 > 4) for i in range(n)])
    seen = open_page(written("marks", fitted), "applicant")
    quoted = '"a; ""b"",\tc"'
    for mark in ",;\t":
        paste(seen, f"{quoted}{mark}d\n8{mark}1")
        assert seen.page.locator(".problems").all_inner_texts() == []
        assert seen.feature(name).input_value() == "8"
        seen.page.get_by_role("button", name="Most frequent values").click()


def test_paste_of_bad_rows(open_page: Opener, german_page: Path) -> None:
    seen = open_page(german_page, "applicant")
    before = seen.probability()
    for text, problem in BAD_ROWS.items():
        paste(seen, text)
        seen.page.get_by_role("alert").filter(has_text=problem).wait_for()
        assert seen.probability() == before
    seen.page.get_by_role("button", name="Most frequent values").click()
    assert seen.page.locator(".problems").count() == 0


def paste(seen: Any, text: str) -> None:
    box = seen.page.locator("details.paste:not(.receipt)")
    if box.get_attribute("open") is None:
        box.locator("summary").click()
    seen.page.get_by_label("CSV with a header line, or JSON").fill(text)
    seen.page.get_by_role("button", name="Read the row").click()


def test_examples_are_rows_of_the_data(open_page: Opener, german_page: Path, model: Any, german: Any) -> None:
    seen = open_page(german_page, "applicant")
    menu = seen.page.get_by_label("Start from an example")
    name = menu.locator("option").nth(1).inner_text()
    menu.select_option(label=name)
    risk = model.predict_proba(german.frame)[int(name.removeprefix("row ")), 1]
    assert seen.probability() == f"{risk:.1%}"


def test_what_if(open_page: Opener, undecided_page: Path, model: Any, german: Any, typical: dict[str, Any]) -> None:
    seen = open_page(undecided_page, "applicant?cutoff=0.8")
    section = seen.page.get_by_role("region", name="The smallest changes that would lead to approval")
    section.locator(".answers > li").first.wait_for()
    frame = type(german.frame)({name: [typical.get(name)] for name in german.frame.columns})
    expected = model.annotate({"policy": {"cutoff": 0.8}}).what_if(frame, answers=3)
    shown = [li.locator(".name").all_inner_texts() for li in section.locator(".answers > li").all()]
    assert shown == [[german.schema.title(c.feature) for c in answer.changes] for answer in expected.answers]

    first = shown[0][0]
    section.get_by_role("button", name=f"Search again with {first} as it is").first.click()
    section.locator(".answers .name").get_by_text(first, exact=True).first.wait_for(state="detached")
    section.get_by_role("button", name="Apply").first.click()
    assert "Would be approved" in seen.page.locator(".decision").inner_text()
    assert float(seen.probability().rstrip("%")) >= 80


def test_paper(open_page: Opener, german_page: Path) -> None:
    seen = open_page(german_page, "applicant")
    seen.page.locator(".what-if:not(.waiting)").wait_for()
    pdf = seen.page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    seen.page.emulate_media(media="print")
    assert not seen.page.get_by_role("navigation").is_visible()
    assert not seen.page.get_by_role("button", name="Print").is_visible()
    assert seen.page.locator(".probability").is_visible()
    paper = seen.page.locator(".paper-line").inner_text()
    assert paper.startswith("Date: ")
    assert "Reference number:" in paper
    assert re.search(r"Model: \S.*, hash [0-9a-f]{64}, plainrisk ", paper)


def test_paper_is_light_in_the_dark(open_page: Opener, german_page: Path) -> None:
    seen = open_page(german_page, "applicant", color_scheme="dark")
    seen.page.emulate_media(media="print", color_scheme="dark")
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
