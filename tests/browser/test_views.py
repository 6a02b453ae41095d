"""All views: they open, on every screen, and what the reader chose stands in the address."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import VIEWS

SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 900, 1400])
def test_views_fit_the_screen(open_page: Callable[..., Any], german_page: Path, width: int, scheme: Any) -> None:
    seen = open_page(german_page, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for view in VIEWS:
        seen.go(view)
        assert seen.page.locator(f"main.view-{view} h1").count() == 1
        assert seen.page.evaluate(SIDEWAYS) == 0, view
    background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(252, 251, 249)") == (scheme == "light")


def test_colours_can_be_switched(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page)
    root = seen.page.locator("html")
    seen.page.get_by_role("button", name="Dark colours").click()
    seen.page.locator("html[data-theme=dark]").wait_for()
    assert root.evaluate("(e) => getComputedStyle(e).colorScheme") == "dark"
    seen.page.get_by_role("button", name="Light colours").click()
    seen.page.locator("html[data-theme=light]").wait_for()
    assert root.evaluate("(e) => getComputedStyle(e).colorScheme") == "light"


def test_overview_says_what_is_certain(open_page: Callable[..., Any], german_page: Path, model: Any) -> None:
    text = open_page(german_page, "overview").page.locator("main").inner_text()
    assert "Probability that good is 1" in text
    assert "Certificate valid" in text
    assert "95% interval" in text
    for name in model.fit_record_.features_left:
        assert name in text


def test_model_view_sorts_and_searches(open_page: Callable[..., Any], german_page: Path, model: Any) -> None:
    seen = open_page(german_page, "model")
    titles = seen.page.locator(".card h2")
    left = model.fit_record_.features_left
    assert sorted(titles.all_inner_texts()) == sorted(set(model.form_.features) - set(left))
    seen.page.get_by_label("Sort").select_option("name")
    names = titles.all_inner_texts()
    assert names == sorted(names, key=str.lower)
    seen.page.get_by_label("Search").fill("credit am")
    assert titles.all_inner_texts() == ["Credit amount"]
    table = seen.page.locator(".card details")
    table.locator("summary").click()
    levels = model.form_.parts[0].shapes["Credit amount"].levels
    assert table.locator("tbody tr").count() == len(levels)


def test_pictures_of_levels_have_a_name(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page, "model")
    assert seen.page.get_by_role("img", name="Effect of Credit amount by level").count() == 1


def test_address_keeps_the_state(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page, "applicant")
    seen.feature("Duration in month").fill("48")
    seen.feature("Purpose").select_option("A46")
    seen.page.get_by_label("Cut-off in percent").fill("55")
    seen.page.wait_for_url(re.compile("cutoff=0.55"))
    address = seen.page.evaluate("location.hash.slice(1)")

    other = open_page(german_page, address)
    assert other.probability() == seen.probability()
    assert other.feature("Duration in month").input_value() == "48"
    assert other.feature("Purpose").input_value() == "A46"
    assert other.page.get_by_label("Cut-off in percent").input_value() == "55"

    other.go("model")
    other.page.wait_for_url(re.compile("#model"))
    other.page.go_back()
    other.page.locator("main.view-applicant").wait_for()
    assert other.probability() == seen.probability()


def test_address_of_another_model_is_named(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page, "applicant?a.income=3&a.Duration+in+month=many&cutoff=7")
    assert "income, Duration in month" in seen.page.locator(".notice").inner_text()


def test_two_models_of_one_applicant(open_page: Callable[..., Any], two_models_page: Path, model: Any) -> None:
    seen = open_page(two_models_page, "compare")
    first, second = seen.page.locator(".probability").all_inner_texts()
    assert first != second
    assert seen.page.locator("table.models thead th").count() == 3
    seen.page.get_by_label("Two applicants").check()
    seen.page.get_by_label("Duration in month, applicant B", exact=True).fill("6")
    a, b = seen.page.locator(".probability").all_inner_texts()
    assert a == first
    assert a != b
    moved = seen.page.locator(".waterfall .term", has_text="Duration in month").locator(".numeric").inner_text()
    total = float(b.rstrip("%")) - float(a.rstrip("%"))
    assert float(moved) == pytest.approx(total, abs=0.11)


def test_validator_has_every_table(open_page: Callable[..., Any], german_page: Path) -> None:
    page = open_page(german_page, "validator").page
    for name in ("Certificate", "Calibration", "Cut-offs", "Drift", "Groups by Personal status", "Fit", "Schema"):
        section = page.locator("section", has=page.get_by_role("heading", name=name))
        assert section.locator("tbody tr").count() > 1, name


def test_tables_can_be_downloaded(open_page: Callable[..., Any], german_page: Path, model: Any) -> None:
    seen = open_page(german_page, "validator")
    section = seen.page.get_by_role("region", name="Levels", exact=True)
    with seen.page.expect_download() as waiting:
        section.get_by_role("button", name="Download CSV").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0].startswith("part,feature,level,rows")
    assert len(lines) - 1 == sum(len(s.levels) for s in model.form_.parts[0].shapes.values())
    assert "'= -1000" in text  # what a spreadsheet would take for a formula is text


def test_numbers_follow_the_locale(open_page: Callable[..., Any], german_page: Path) -> None:
    english = open_page(german_page, "applicant").probability()
    german = open_page(german_page, "applicant", locale="de-DE").probability()
    assert german == english.replace(".", ",").replace("%", "\xa0%")


def test_frame_of_a_notebook(browser: Any, model: Any) -> None:
    """In the sandbox there is no address, no clipboard and no way out; the page works all the same."""
    context = browser.new_context()
    tab = context.new_page()
    noise: list[str] = []
    tab.on("console", lambda message: noise.append(message.text))
    tab.on("pageerror", lambda error: noise.append(str(error)))
    tab.set_content(f"<h1>Notebook</h1>{model._repr_html_()}")
    inside = tab.frame_locator("iframe")
    inside.get_by_role("link", name="Applicant").click()
    before = inside.locator(".probability").inner_text()
    inside.get_by_label("Duration in month", exact=True).fill("60")
    assert inside.locator(".probability").inner_text() != before
    inside.get_by_role("link", name="Model").click()
    assert inside.locator(".card").count() > 9
    assert tab.locator("h1").inner_text() == "Notebook"
    context.close()
    assert noise == []
