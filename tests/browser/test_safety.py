"""Names that try to run are shown, the policy holds, and axe finds nothing serious."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from .conftest import HOSTILE, VIEWS

# axe calls the widths of texts and colors "serious"; "moderate" and "minor" are opinions about structure.
SERIOUS = "(found) => found.violations.filter((v) => ['serious', 'critical'].includes(v.impact))"


def test_hostile_names_are_shown(open_page: Callable[..., Any], hostile_page: Path) -> None:
    seen = open_page(hostile_page, "overview")
    assert seen.page.locator("header .brand").inner_text() == f"title {HOSTILE}"
    for view in VIEWS:
        seen.go(view)
        assert HOSTILE in seen.page.locator("main").inner_text()
        assert seen.page.locator("img").count() == 0
    seen.go("applicant")
    seen.feature(HOSTILE).fill("6")
    seen.page.wait_for_url(re.compile("=6"))
    assert f"reason {HOSTILE}" in seen.page.locator(".reasons").inner_text()
    again = open_page(hostile_page, seen.page.evaluate("location.hash.slice(1)"))
    assert again.feature(HOSTILE).input_value() == "6"


def test_hostile_address(open_page: Callable[..., Any], german_page: Path) -> None:
    name = quote(HOSTILE)
    seen = open_page(german_page, f"applicant?a.{name}={name}&a.Purpose={name}&search={name}&fixed={name}")
    assert HOSTILE in seen.page.locator(".notice").inner_text()
    assert seen.page.locator("img").count() == 0


def test_policy_is_in_force(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page)
    with seen.page.expect_console_message(lambda message: message.text.startswith("policy script-src")):
        ran = seen.page.evaluate(
            """() => {
                const script = document.createElement('script');
                script.textContent = 'globalThis.ran = true';
                document.body.append(script);
                return globalThis.ran === true;
            }"""
        )
    assert not ran
    seen.noise.clear()  # what the page must never cause was caused here on purpose


def test_page_needs_no_network(open_page: Callable[..., Any], german_page: Path) -> None:
    seen = open_page(german_page, offline=True)
    for view in VIEWS:
        seen.go(view)
    assert seen.page.evaluate("performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(open_page: Callable[..., Any], german_page: Path, scheme: Any) -> None:
    seen = open_page(german_page, color_scheme=scheme)
    seen.page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    # In the dark only the colors are others.
    options = "{runOnly: ['color-contrast']}" if scheme == "dark" else "{}"
    for view in VIEWS:
        seen.go(view)
        if view == "applicant":
            seen.page.locator(".what-if:not(.waiting)").wait_for()
        found = seen.page.evaluate(f"axe.run(document, {options}).then({SERIOUS})")
        assert [(v["id"], [n["target"] for n in v["nodes"]][:5]) for v in found] == [], view
