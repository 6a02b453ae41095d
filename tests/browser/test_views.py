"""All views: they open, on every screen, and what the reader chose stands in the address."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import plainrisk as pr

from .conftest import VIEWS

Opener = Callable[..., Any]

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


def test_colors_can_be_switched(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page)
    root = seen.page.locator("html")
    seen.page.get_by_role("button", name="Dark colors").click()
    seen.page.locator("html[data-theme=dark]").wait_for()
    assert root.evaluate("(e) => getComputedStyle(e).colorScheme") == "dark"
    seen.page.get_by_role("button", name="Light colors").click()
    seen.page.locator("html[data-theme=light]").wait_for()
    assert root.evaluate("(e) => getComputedStyle(e).colorScheme") == "light"


def test_overview_says_what_is_certain(open_page: Callable[..., Any], german_page: Path, model: Any) -> None:
    text = open_page(german_page, "overview").page.locator("main").inner_text()
    assert "Probability that the applicant repays the loan" in text
    assert "Certificate valid" in text
    assert "95% interval" in text
    for name in model.fit_record_.features_left:
        assert model.form_.schema.title(name) in text


def test_model_view_sorts_and_searches(open_page: Callable[..., Any], german_page: Path, model: Any) -> None:
    seen = open_page(german_page, "model")
    cards = seen.page.locator(".card h2")
    titles = lambda: [text.split("\n")[0].removesuffix(" protected") for text in cards.all_inner_texts()]  # noqa: E731
    used = set(model.form_.features) - set(model.fit_record_.features_left)
    assert sorted(titles()) == sorted(model.form_.schema.title(name) for name in used)
    seen.page.get_by_label("Sort").select_option("name")
    assert titles() == sorted(titles(), key=str.lower)
    for words in ("amount of", "credit am"):
        seen.page.get_by_label("Search").fill(words)
        assert cards.all_inner_texts() == ["Amount of the loan\nCredit amount"]
    table = seen.page.locator(".card details")
    table.locator("summary").click()
    levels = model.form_.parts[0].shapes["Credit amount"].levels
    assert table.locator("table").first.locator("tbody tr").count() == len(levels)
    by_band = table.get_by_role("table", name="Points against the one before, by the probability")
    steps = [row for row in model.effects().of("Credit amount") if row.kind == "bin"]
    assert by_band.locator("thead th").all_inner_texts()[1:] == list(model.effects().bands_in_words("all"))
    first = by_band.locator("tbody tr").first.locator("td").all_inner_texts()[1:]
    assert [text.replace("\N{MINUS SIGN}", "-") for text in first] == list(steps[0].points_by_band)


def test_pictures_of_levels_have_a_name(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page, "model")
    assert seen.page.get_by_role("img", name="Effect of Amount of the loan by level").count() == 1


def test_address_keeps_the_state(open_page: Callable[..., Any], undecided_page: Path) -> None:
    seen = open_page(undecided_page, "applicant")
    seen.feature("Duration of the loan").fill("48")
    seen.feature("Purpose of the loan").select_option("A46")
    seen.page.get_by_label("Cut-off in percent").fill("55")
    seen.page.wait_for_url(re.compile("cutoff=0.55"))
    address = seen.page.evaluate("location.hash.slice(1)")

    other = open_page(undecided_page, address)
    assert other.probability() == seen.probability()
    assert other.feature("Duration of the loan").input_value() == "48"
    assert other.feature("Purpose of the loan").input_value() == "A46"
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
    seen.page.get_by_label("Duration of the loan, applicant B", exact=True).fill("6")
    a, b = seen.page.locator(".probability").all_inner_texts()
    assert a == first
    assert a != b
    moved = seen.page.locator(".waterfall .term", has_text="Duration of the loan").locator(".numeric").inner_text()
    total = float(b.rstrip("%")) - float(a.rstrip("%"))
    assert float(moved) == pytest.approx(total, abs=0.11)


def test_validator_has_every_table(open_page: Callable[..., Any], german_page: Path) -> None:
    page = open_page(german_page, "validator").page
    for name in ("Certificate", "Calibration", "Cut-offs", "Drift", "Groups by Personal status", "Fit", "Schema"):
        section = page.locator("section", has=page.get_by_role("heading", name=name))
        assert section.locator("tbody tr").count() > 1, name


def test_groups_fit_a_phone_and_four_fifths_are_marked(
    open_page: Callable[..., Any], written: Callable[..., Path], model: Any, german: Any
) -> None:
    strict = model.annotate({"policy": {"cutoff": 0.9}})
    path = written("groups", strict, data=pl.DataFrame(german.frame), by="Personal status and sex")
    page = open_page(path, "validator", viewport={"width": 390, "height": 844}).page
    section = page.locator("section", has=page.get_by_role("heading", name="Groups by Personal status and sex"))
    assert page.evaluate(SIDEWAYS) == 0
    box = section.locator(".table-scroll")
    assert box.evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
    assert "man, single" in section.inner_text()
    ratios = section.locator("td[data-head='impact ratio']").all_inner_texts()
    assert any("below 4/5" in text for text in ratios)
    for text in ratios:
        assert ("below 4/5" in text) == (float(text.split()[0]) < 0.8)


def test_shifts_are_said_in_words(
    open_page: Callable[..., Any], written: Callable[..., Path], model: Any, german: Any
) -> None:
    rows = pl.DataFrame(german.frame)
    rows = rows.filter(rows["Duration in month"] > 24)
    page = open_page(written("shifted", model, data=rows), "validator").page
    section = page.locator("section", has=page.get_by_role("heading", name="Drift"))
    said = {
        row.locator("td").first.inner_text().strip(): row.locator("td").nth(2).inner_text()
        for row in section.locator("tbody tr").all()
    }
    assert said["Duration in month"] == "large"
    assert set(said.values()) == {"large", "moderate", "small"}
    assert "from 0.1 a shift is moderate, from 0.25 it is large" in section.inner_text()


def test_the_certificate_is_checked_here(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page)
    seen.go("validator")
    rows = seen.page.locator("section[aria-labelledby=certificate] table").first.locator("tbody tr")
    assert rows.count() >= 5
    assert rows.get_by_text("checked here").count() == rows.count()


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
    inside.get_by_label("Duration of the loan", exact=True).fill("60")
    assert inside.locator(".probability").inner_text() != before
    inside.get_by_role("link", name="Model").click()
    assert inside.locator(".card").count() > 9
    assert tab.locator("h1").inner_text() == "Notebook"
    context.close()
    assert noise == []


def test_a_line_says_what_one_unit_adds(open_page: Opener, written: Callable[..., Path], german: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pr.make_classifier("LinNNLR", german.schema).fit(german.frame, german.target)
    page = open_page(written("lines", model), "model").page
    card = page.locator("article.card", has_text="Duration of the loan")
    assert card.locator(".sentence").inner_text() == "-0.54 points per month, for everybody inside the linear range."


def test_a_mixture_shows_what_each_subscale_says(open_page: Opener, written: Callable[..., Path], german: Any) -> None:
    model = pr.make_classifier("MixARM1", german.schema).fit(german.frame, german.target)
    page = open_page(written("mixture", model), "applicant").page
    page.locator(".terms summary").click()
    cells = [row.split("\t") for row in page.locator(".terms tbody tr").all_inner_texts()]
    assert [cell[0] for cell in cells] == [*model.weights_, "Sum"]
    for (_, own, term), weight in zip(cells, model.weights_.values(), strict=False):
        assert float(term.strip("%")) == pytest.approx(weight * float(own.strip("%")), abs=0.011)
