"""In a notebook's frame, which has no origin of its own, the page is as alive as in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def test_an_explanation_in_a_sandboxed_frame(browser: Any, model: Any, german: Any, tmp_path: Path) -> None:
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body>{model.explain(german.frame[:2])._repr_html_()}", encoding="utf-8")
    context = browser.new_context(locale="en-GB")
    tab, noise = context.new_page(), []
    tab.on("console", lambda message: noise.append(message.text))
    tab.on("pageerror", lambda error: noise.append(str(error)))
    tab.goto(path.as_uri())
    frame = tab.frame_locator("iframe")
    assert frame.locator(".probability").first.inner_text() == f"{model.predict_proba(german.frame[:1])[0, 1]:.1%}"
    frame.get_by_role("navigation").get_by_role("link", name="Overview").click()
    frame.get_by_role("heading", name="Probability that").first.wait_for()
    assert tab.url == path.as_uri()
    context.close()
    assert noise == []
